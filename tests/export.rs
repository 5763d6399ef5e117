//! Exported characters as an independent reader finds them: `assimp` (Debian's `assimp-utils`) reads each format and writes what
//! it understood as JSON. Where it is not installed the tests show as ignored.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use glam::{DAffine3, DMat4, DQuat, DVec3};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use skinbind::io::export::{Character, Format, Piece};
use skinbind::model::{Bone, Influence, Mesh, Pose, Skeleton, Weights};

/// Files hold f32: seven digits of coordinates up to 4, through three joints and back.
const TOLERANCE: f64 = 1e-5;

fn main() -> ExitCode {
    let run = Command::new("assimp").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let missing = !run.is_ok_and(|status| status.success());
    if missing {
        println!("assimp is not installed: the tests that read exported files with it are ignored");
    }
    let reads = |name: &str, file: &'static str| Trial::test(name, move || read_back(file)).with_ignored_flag(missing);
    let trials = vec![
        reads("collada_is_read_back", "character.dae"),
        reads("ogre_xml_is_read_back", "character.mesh.xml"),
        reads("md5_mesh_is_read_back", "character.md5mesh"),
        Trial::test("what_does_not_fit_is_refused", refused),
        Trial::test("formats_go_by_the_name", by_name),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

struct Model {
    mesh: Mesh,
    weights: Weights,
    skeleton: Skeleton,
    rest: Pose,
}

/// A tower of three boxes on three joints, each turned at rest; a child stands before its parent.
fn model() -> Model {
    let mut positions = Vec::new();
    let mut weights = Weights::default();
    for level in 0..4 {
        for (x, z) in [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)] {
            positions.push(DVec3::new(x * (1.0 + 0.1 * f64::from(level)), f64::from(level), z));
            let (low, high) = [(0, 0), (0, 1), (1, 2), (2, 2)][level as usize];
            let share = 0.25 + 0.125 * x;
            let row = [(low, 1.0 - share), (high, share)].map(|(joint, weight)| Influence { joint, weight });
            if low == high { weights.push([Influence { joint: low, weight: 1.0 }]) } else { weights.push(row) }
        }
    }
    let mut triangles = vec![[0, 1, 2], [0, 2, 3], [12, 14, 13], [12, 15, 14]];
    for level in 0..3u32 {
        for side in 0..4 {
            let [a, b] = [level * 4 + side, level * 4 + (side + 1) % 4];
            triangles.extend([[a, a + 4, b], [b, a + 4, b + 4]]);
        }
    }
    let bone = |name: &str, y: f64, parent| Bone {
        name: name.into(),
        head: DVec3::Y * y,
        tail: DVec3::Y * (y + 1.0),
        parent,
        deform: true,
    };
    let list = vec![bone("mid.L", 1.0, Some(1)), bone("low & wide", 0.0, None), bone("top 1", 2.0, Some(0))];
    let skeleton = Skeleton::new(list).unwrap();
    // The weights above count from the bottom up.
    let order = [1, 0, 2];
    let mut by_bone = Weights::default();
    for row in weights.iter() {
        by_bone.push(row.iter().map(|i| Influence { joint: order[i.joint as usize], ..*i }));
    }
    let turned = [DQuat::from_rotation_x(0.4), DQuat::from_rotation_z(-0.3), DQuat::from_rotation_y(2.5)];
    let globals: Vec<DAffine3> =
        skeleton.bones().iter().zip(turned).map(|(b, q)| DAffine3::from_rotation_translation(q, b.head)).collect();
    let mut rest = Pose::from_globals(&skeleton, &globals).unwrap();
    rest.locals.iter_mut().for_each(|local| local.scale = DVec3::ONE);
    Model { mesh: Mesh::new(positions, triangles).unwrap(), weights: by_bone, skeleton, rest }
}

fn read_back(file: &str) -> Result<(), Failed> {
    let Model { mesh, weights, skeleton, rest } = model();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(file);
    let pieces = [Piece { name: "tower", mesh: &mesh, weights: &weights }];
    let character = Character { pieces: &pieces, skeleton: &skeleton, rest: &rest, meters: 1.0 };
    let format = Format::of(&path).expect("a known name");
    for (path, text) in format.files(&character, &path)? {
        fs::write(path, text)?;
    }
    let read = understood(&path, folder.path())?;
    compare(&read, &mesh, &weights, &skeleton)?;
    // Controls: a moved vertex, another weight and a turned triangle are noticed.
    let mut moved = mesh.positions().to_vec();
    moved[5].x += 0.01;
    assert!(compare(&read, &Mesh::new(moved, mesh.triangles().to_vec())?, &weights, &skeleton).is_err());
    let mut other = Weights::default();
    weights.iter().enumerate().for_each(|(v, row)| {
        other.push(
            row.iter().map(|i| Influence { weight: if v == 6 { 1.0 / row.len() as f64 } else { i.weight }, ..*i }),
        );
    });
    assert!(compare(&read, &mesh, &other, &skeleton).is_err());
    let inside_out = mesh.triangles().iter().map(|&[a, b, c]| [a, c, b]).collect();
    assert!(compare(&read, &Mesh::new(mesh.positions().to_vec(), inside_out)?, &weights, &skeleton).is_err());
    Ok(())
}

fn understood(path: &Path, folder: &Path) -> Result<Value, Failed> {
    let out = folder.join("understood.json");
    let run = Command::new("assimp").arg("export").arg(path).arg(&out).arg("-fassjson").output()?;
    let text = fs::read_to_string(&out)
        .map_err(|e| format!("assimp wrote nothing ({e}): {}", String::from_utf8_lossy(&run.stdout)))?;
    Ok(serde_json::from_str(&text)?)
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

fn matrix(list: &Value) -> DMat4 {
    DMat4::from_cols_slice(&numbers(list)).transpose()
}

/// Every node's name and world matrix, and the matrix of the node that shows the mesh.
fn nodes(node: &Value, above: DMat4, named: &mut Vec<(String, DMat4)>, shows: &mut Option<DMat4>) {
    let world = above * matrix(&node["transformation"]);
    named.push((node["name"].as_str().unwrap_or_default().to_owned(), world));
    if node["meshes"].as_array().is_some_and(|m| !m.is_empty()) {
        *shows = Some(world);
    }
    for child in node["children"].as_array().into_iter().flatten() {
        nodes(child, world, named, shows);
    }
}

/// Positions, triangles with their sense, weights by bone, places of the joints, and that the bind pose moves nothing.
fn compare(read: &Value, mesh: &Mesh, weights: &Weights, skeleton: &Skeleton) -> Result<(), Failed> {
    let (mut named, mut shown) = (Vec::new(), None);
    nodes(&read["rootnode"], DMat4::IDENTITY, &mut named, &mut shown);
    let shown = shown.ok_or("no node shows the mesh")?;
    let found = &read["meshes"][0];
    let stored: Vec<DVec3> = numbers(&found["vertices"]).chunks(3).map(|p| DVec3::from_slice(p)).collect();
    let nearest = |p: DVec3| {
        let all = mesh.positions().iter().enumerate();
        let (v, d) = all.map(|(v, q)| (v, q.distance(p))).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        if d < TOLERANCE { Ok(v) } else { Err(format!("no vertex lies at {p}")) }
    };
    let vertex: Vec<usize> =
        stored.iter().map(|&p| nearest(shown.transform_point3(p))).collect::<Result<Vec<_>, String>>()?;
    let canonical = |t: [usize; 3]| {
        let first = (0..3).min_by_key(|&i| t[i]).unwrap_or(0);
        [0, 1, 2].map(|i| t[(first + i) % 3])
    };
    let faces = found["faces"].as_array().ok_or("no faces")?;
    let mut triangles: Vec<[usize; 3]> =
        faces.iter().map(|f| canonical([0, 1, 2].map(|i| vertex[f[i].as_u64().unwrap() as usize]))).collect();
    let mut expected: Vec<[usize; 3]> = mesh.triangles().iter().map(|t| canonical(t.map(|v| v as usize))).collect();
    triangles.sort_unstable();
    expected.sort_unstable();
    if triangles != expected {
        return Err("other triangles".into());
    }
    let (mut moved, mut sums) = (vec![DVec3::ZERO; stored.len()], vec![0.0; stored.len()]);
    for bone in found["bones"].as_array().ok_or("no bones")? {
        let name = bone["name"].as_str().unwrap_or_default();
        // Collada's reader goes by identifiers, in which other signs than letters and digits are underscores.
        let plain = |n: &str| n.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let joint = skeleton.bones().iter().position(|b| plain(&b.name) == plain(name)).ok_or("an unknown bone")?;
        let world = named.iter().find(|(n, _)| n == name).ok_or("a bone without a node")?.1;
        let apart = world.w_axis.truncate().distance(skeleton.bones()[joint].head);
        if apart > TOLERANCE {
            return Err(format!("bone {name} stands {apart} from its head").into());
        }
        for entry in bone["weights"].as_array().into_iter().flatten() {
            let (v, w) = (entry[0].as_u64().unwrap() as usize, entry[1].as_f64().unwrap());
            let wanted = weights.weight(vertex[v], joint as u32);
            if (w - wanted).abs() > TOLERANCE {
                return Err(format!("bone {name}, vertex {}: weight {w}, not {wanted}", vertex[v]).into());
            }
            sums[v] += w;
            moved[v] += w * (world * matrix(&bone["offsetmatrix"])).transform_point3(stored[v]);
        }
    }
    for (v, p) in stored.iter().enumerate() {
        if (sums[v] - 1.0).abs() > TOLERANCE || moved[v].distance(shown.transform_point3(*p)) > TOLERANCE {
            return Err(
                format!("vertex {}: weights of sum {}, moved to {} at rest", vertex[v], sums[v], moved[v]).into()
            );
        }
    }
    Ok(())
}

fn refused() -> Result<(), Failed> {
    let Model { mesh, weights, skeleton, rest } = model();
    let refuse = |weights: &Weights, rest: &Pose, name: &str, file: &str| {
        let pieces = [Piece { name, mesh: &mesh, weights }];
        let character = Character { pieces: &pieces, skeleton: &skeleton, rest, meters: 1.0 };
        let path = Path::new(file);
        Format::of(path).unwrap().files(&character, path).map(|_| ()).map_err(|e| e.to_string())
    };
    for file in ["a.dae", "a.mesh.xml", "a.md5mesh"] {
        assert_eq!(refuse(&weights, &rest, "tower", file), Ok(()));
        assert!(refuse(&Weights::default(), &rest, "tower", file).unwrap_err().contains("weights"));
        let mut beyond = Weights::default();
        mesh.positions().iter().for_each(|_| beyond.push([Influence { joint: 3, weight: 1.0 }]));
        assert!(refuse(&beyond, &rest, "tower", file).unwrap_err().contains("joint 3"));
        let mut scaled = rest.clone();
        scaled.locals[0].scale.x = 2.0;
        assert!(refuse(&weights, &scaled, "tower", file).unwrap_err().contains("mid.L"));
    }
    assert!(refuse(&weights, &rest, "a \"tower\"", "a.md5mesh").unwrap_err().contains("quotes"));
    Ok(())
}

fn by_name() -> Result<(), Failed> {
    assert_eq!(Format::of(Path::new("x/Body.DAE")), Some(Format::Collada));
    assert_eq!(Format::of(Path::new("body.xml")), None);
    assert_eq!(Format::of(Path::new(".dae")), None);
    let path = Path::new("x/body.mesh.xml");
    let targets = Format::of(path).unwrap().targets(path);
    assert_eq!(targets, [path, Path::new("x/body.skeleton.xml")]);
    Ok(())
}
