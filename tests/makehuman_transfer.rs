//! Weights of the MakeHuman body for its clothes, against the clothes' own. The data are not part of this project:
//! `SKINBIND_FIXTURES` names the folder that holds `fixtures/makehuman`; without it these tests are ignored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use glam::DVec3;
use libtest_mimic::{Arguments, Failed, Trial};
use skinbind::edit::transfer::{Params, transfer};
use skinbind::edit::{Locks, normalize};
use skinbind::geometry::closest_point::TriangleTree;
use skinbind::io::{obj, weights_file};
use skinbind::model::{Bone, Influence, Mesh, Skeleton, Weights};
use skinbind::progress::Progress;

fn main() -> ExitCode {
    let folder = std::env::var_os("SKINBIND_FIXTURES").map(|f| PathBuf::from(f).join("fixtures/makehuman"));
    if folder.is_none() {
        println!("SKINBIND_FIXTURES is not set: the tests with real clothes are ignored");
    }
    let missing = folder.is_none();
    let folder = folder.unwrap_or_default();
    let trial = |name: &str, run: fn(&Path) -> Result<(), Failed>| {
        let folder = folder.clone();
        Trial::test(name, move || run(&folder)).with_ignored_flag(missing)
    };
    let trials =
        vec![trial("shoes_and_suit_take_the_weights_of_the_body", shoes_and_suit_take_the_weights_of_the_body)];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn shoes_and_suit_take_the_weights_of_the_body(folder: &Path) -> Result<(), Failed> {
    let body = read_body(folder)?;
    let file = weights_file::read(folder.join("rigs/default_weights.mhw"))?;
    let names: Vec<&str> = file.bones.iter().map(|(name, _)| name.as_str()).collect();
    let skeleton = skeleton(&names)?;
    let weights = normalize(&file.weights(Some(body.positions().len()))?, &Locks::NONE);
    for (name, has_own) in [("shoes01", true), ("male_casualsuit02", false)] {
        let clothes = fitted(folder, name, body.positions())?;
        let vertices = clothes.positions().len();
        let closest = plain_closest(&body, &weights, &clothes);
        let mut ours = Vec::new();
        // Shoes have a lining, whose normals point the other way: allowed where nothing else is near, or always.
        for flipped in [false, true] {
            let params = Params { flipped, ..Params::default() };
            let done = transfer(&body, &weights, &skeleton, &clothes, &params, Progress::NONE)?;
            assert!(done.weights.iter().all(|row| !row.is_empty()), "{name} has bare vertices");
            println!(
                "{name}, flipped {flipped}: {vertices} vertices, {} matched, {} filled, {} far; {:.4} from plain closest points",
                done.matched_vertices,
                done.filled_vertices,
                done.far_vertices,
                error(&done.weights, &closest, names.len())
            );
            done.warnings.iter().for_each(|w| println!("  {}", w.message));
            ours.push(done.weights);
        }
        if has_own {
            let own = own_weights(folder, name, &names, vertices)?;
            let err = |weights: &Weights| error(weights, &own, names.len());
            let (strict, lined, plain) = (err(&ours[0]), err(&ours[1]), err(&closest));
            println!("{name}: err {strict:.4}, {lined:.4} with flipped normals, {plain:.4} for plain closest points");
            assert!(strict <= plain && lined <= plain, "worse than plain closest points, {plain}: {strict}, {lined}");
            // Control: the right weights at other vertices are further off.
            let shifted: Vec<u32> = (0..vertices as u32).map(|v| (v + 37) % vertices as u32).collect();
            assert!(err(&ours[0].scatter(&shifted)) > plain);
        }
    }
    Ok(())
}

/// Clothes as their .mhclo file lays them on the body: for each vertex three of the body's with their shares and an offset,
/// the latter scaled by what the body measures between two vertices an axis.
fn fitted(folder: &Path, name: &str, body: &[DVec3]) -> Result<Mesh, Failed> {
    let text = fs::read_to_string(folder.join(format!("clothes/{name}.mhclo")))?;
    let (mut scale, mut fit, mut in_list) = (DVec3::ONE, Vec::new(), false);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers: Vec<f64> = words.iter().filter_map(|w| w.parse().ok()).collect();
        let vertex = |i: usize| body[numbers[i] as usize];
        match words.first() {
            Some(&"verts") => in_list = true,
            Some(key @ (&"x_scale" | &"y_scale" | &"z_scale")) => {
                let axis = usize::from(key.as_bytes()[0] - b'x');
                scale[axis] = (vertex(0)[axis] - vertex(1)[axis]).abs() / numbers[2];
            }
            Some(_) if in_list && numbers.len() == 9 && words.len() == 9 => {
                let on_body = vertex(0) * numbers[3] + vertex(1) * numbers[4] + vertex(2) * numbers[5];
                fit.push((on_body, DVec3::new(numbers[6], numbers[7], numbers[8])));
            }
            Some(_) if in_list && numbers.len() == 1 && words.len() == 1 => fit.push((vertex(0), DVec3::ZERO)),
            Some(_) => in_list = false,
            None => {}
        }
    }
    let mesh = obj::read(folder.join(format!("clothes/{name}.obj")))?;
    assert_eq!(fit.len(), mesh.positions().len(), "{name}");
    let positions = fit.into_iter().map(|(on_body, offset)| on_body + offset * scale).collect();
    Ok(Mesh::new(positions, mesh.triangles().to_vec())?)
}

/// Mean over the vertices of half the sum of the absolute differences.
fn error(a: &Weights, b: &Weights, bones: usize) -> f64 {
    let of = |v: usize| (0..bones as u32).map(|j| (a.weight(v, j) - b.weight(v, j)).abs()).sum::<f64>() / 2.0;
    (0..a.len()).map(of).sum::<f64>() / a.len() as f64
}

/// The weights at the closest point of the body, whatever its distance.
fn plain_closest(body: &Mesh, weights: &Weights, clothes: &Mesh) -> Weights {
    let tree = TriangleTree::new(body.triangles().iter().map(|&t| body.corners(t)).collect());
    let mut found = Weights::default();
    for &p in clothes.positions() {
        let at = tree.closest(p).unwrap();
        let corners = body.triangles()[at.triangle as usize].into_iter().zip(at.barycentric);
        found.push(corners.flat_map(|(v, share)| {
            weights.of(v as usize).iter().map(move |i| Influence { joint: i.joint, weight: share * i.weight })
        }));
    }
    normalize(&found, &Locks::NONE)
}

/// The weights that come with a piece of clothes, joints numbered as in `names`.
fn own_weights(folder: &Path, name: &str, names: &[&str], vertices: usize) -> Result<Weights, Failed> {
    let mut file = weights_file::read(folder.join(format!("clothes/{name}.mhw")))?;
    let mut bones: Vec<_> = names.iter().map(|n| (n.to_string(), Vec::new())).collect();
    for (bone, list) in file.bones.drain(..) {
        match names.iter().position(|n| *n == bone) {
            Some(at) => bones[at].1 = list,
            None if list.is_empty() => {}
            None => return Err(format!("{name} has weights for {bone}, which the body has not").into()),
        }
    }
    file.bones = bones;
    Ok(normalize(&file.weights(Some(vertices))?, &Locks::NONE))
}

/// All vertices of the base mesh, and the faces of the body alone.
fn read_body(folder: &Path) -> Result<Mesh, Failed> {
    let text = fs::read_to_string(folder.join("base.obj"))?;
    let mut group = "";
    let kept = text.lines().filter(|line| {
        group = line.strip_prefix("g ").unwrap_or(group);
        !line.starts_with("f ") || group == "body"
    });
    Ok(obj::parse(kept.collect::<Vec<_>>().join("\n").as_bytes())?)
}

/// Bones of these names; where they are does not matter to a transfer.
fn skeleton(names: &[&str]) -> Result<Skeleton, Failed> {
    let bone =
        |name: &&str| Bone { name: name.to_string(), head: DVec3::ZERO, tail: DVec3::Y, parent: None, deform: true };
    Ok(Skeleton::new(names.iter().map(bone).collect())?)
}
