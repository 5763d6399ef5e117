//! Rigged files in the poses of their animations and of BVH files, against the formulas, and the program's `pose`.

mod common;
#[path = "common/gltf_doc.rs"]
mod gltf_doc;

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2};

use common::shapes::Random;
use gltf_doc::{CORNERS, Doc, F32, FACES, U8, U16, apart, open, skinned};
use serde_json::{Value, json};
use skinbind::glam::{DAffine3, DMat3, DQuat, DVec3};
use skinbind::io::bvh::Bvh;
use skinbind::io::gltf::{Document, Rigged};
use skinbind::model::Influence;
use skinbind::skin::{Method, Posed, reference};

const I16: u32 = 5122;

/// Adds a channel with its sampler to animation 0, which is made.
struct Channel<'a> {
    node: usize,
    path: &'a str,
    interpolation: &'a str,
    times: &'a [f32],
    output: usize,
}

fn add_channel(doc: &mut Doc, channel: &Channel) {
    let input = doc.column(bytemuck::cast_slice(channel.times), F32, "SCALAR", channel.times.len());
    if doc.root["animations"].is_null() {
        doc.root["animations"] = json!([{"name": "move", "samplers": [], "channels": []}]);
    }
    let animation = &mut doc.root["animations"][0];
    let samplers = animation["samplers"].as_array_mut().unwrap();
    samplers.push(json!({"input": input, "output": channel.output, "interpolation": channel.interpolation}));
    let target = json!({"node": channel.node, "path": channel.path});
    let sampler = samplers.len() - 1;
    animation["channels"].as_array_mut().unwrap().push(json!({"sampler": sampler, "target": target}));
}

fn vectors(doc: &mut Doc, values: &[[f32; 3]]) -> usize {
    doc.column(bytemuck::cast_slice(values), F32, "VEC3", values.len())
}

/// Rotations as normalised 16-bit integers.
fn short_turns(doc: &mut Doc, values: &[[i16; 4]]) -> usize {
    let number = doc.column(bytemuck::cast_slice(values), I16, "VEC4", values.len());
    doc.root["accessors"][number]["normalized"] = true.into();
    number
}

const ARMATURE: [f64; 3] = [2.0, 0.0, 1.0];
const HALF_TURN_Y: [f64; 4] = [0.0, 1.0, 0.0, 0.0];
const QUARTER_TURN_X: [f64; 4] = [FRAC_1_SQRT_2, 0.0, 0.0, FRAC_1_SQRT_2];

/// A tetrahedron skinned by two joints below a node that is no joint, turned and scaled; its own node stands elsewhere. The
/// ancestor moves in steps, the hips turn on a spline, the head moves on a line and grows.
fn character() -> Doc {
    let mut doc = Doc::new(json!([
        {"name": "body", "mesh": 0, "skin": 0, "translation": [9.0, 9.0, 9.0]},
        {"name": "armature", "translation": ARMATURE, "rotation": HALF_TURN_Y, "scale": [2.0, 2.0, 2.0], "children": [2]},
        {"name": "hips", "translation": [0.0, 5.0, 0.0], "children": [3, 4]},
        {"name": "head", "translation": [0.0, 1.0, 0.0], "rotation": QUARTER_TURN_X},
        {"name": "sword", "mesh": 1, "translation": [1.0, 0.0, 0.0]},
    ]));
    let (p, i) = (doc.positions(&CORNERS), doc.indices(&FACES));
    let normals = doc.column(bytemuck::cast_slice(&[[0f32, 0., 1.]; 4]), F32, "VEC3", 4);
    let uv = doc.column(bytemuck::cast_slice(&[[0.25f32, 0.75]; 4]), F32, "VEC2", 4);
    let (j, w) = doc.influences(
        &[[0, 1, 0, 0]; 4],
        &[[0.75, 0.25, 0., 0.], [0.5, 0.5, 0., 0.], [0.25, 0.75, 0., 0.], [1., 0., 0., 0.]],
    );
    doc.skin(&[2, 3], &[[0.5, 0., 0.], [0., -1., 0.25]]);
    doc.root["materials"] = json!([{"name": "skin"}]);
    let attributes = json!({"POSITION": p, "NORMAL": normals, "TEXCOORD_0": uv, "JOINTS_0": j, "WEIGHTS_0": w});
    doc.mesh(json!([{"attributes": attributes, "indices": i, "material": 0}]));
    doc.mesh(json!([{"attributes": {"POSITION": p, "NORMAL": normals}, "indices": i}]));

    let steps = vectors(&mut doc, &[[2., 0., 1.], [4., 0., 1.]]);
    add_channel(
        &mut doc,
        &Channel { node: 1, path: "translation", interpolation: "STEP", times: &[0., 1.], output: steps },
    );
    // In-tangent, value, out-tangent of two keys: from no turn to a quarter about z, without slope.
    let (zero, quarter) = ([0; 4], [0, 0, 23170, 23170]);
    let spline = short_turns(&mut doc, &[zero, [0, 0, 0, 32767], zero, zero, quarter, zero]);
    add_channel(
        &mut doc,
        &Channel { node: 2, path: "rotation", interpolation: "CUBICSPLINE", times: &[0., 2.], output: spline },
    );
    let line = vectors(&mut doc, &[[0., 1., 0.], [0., 3., 1.]]);
    add_channel(
        &mut doc,
        &Channel { node: 3, path: "translation", interpolation: "LINEAR", times: &[0., 4.], output: line },
    );
    let growth = vectors(&mut doc, &[[1., 1., 1.], [1., 3., 1.]]);
    add_channel(
        &mut doc,
        &Channel { node: 3, path: "scale", interpolation: "LINEAR", times: &[0., 1.], output: growth },
    );
    doc
}

/// World matrices of hips and head at 1 s, by hand.
fn by_hand() -> [DAffine3; 2] {
    let armature = DAffine3::from_scale_rotation_translation(
        DVec3::splat(2.0),
        DQuat::from_array(HALF_TURN_Y),
        DVec3::new(4.0, 0.0, 1.0),
    );
    // Half way a spline without slope is at the mean of its keys, which is then made a unit quaternion.
    let turn = (DQuat::IDENTITY + DQuat::from_rotation_z(FRAC_PI_2)).normalize();
    let hips = armature * DAffine3::from_rotation_translation(turn, DVec3::new(0.0, 5.0, 0.0));
    let grown = DAffine3::from_scale(DVec3::new(1.0, 3.0, 1.0));
    let turned = DAffine3::from_quat(DQuat::from_array(QUARTER_TURN_X));
    [hips, hips * DAffine3::from_translation(DVec3::new(0.0, 1.5, 0.25)) * turned * grown]
}

fn posed(rigged: &Rigged, worlds: &[DAffine3], method: Method) -> Posed {
    let palette = rigged.palette(worlds).unwrap();
    let mut posed = Posed::default();
    rigged.skin_input().unwrap().skin(&palette, method, rigged.surface(), &mut posed).unwrap();
    let slow = reference::skin(rigged.weights(), &palette, method, rigged.surface()).unwrap();
    // A few roundings of coordinates below 32.
    assert!(apart(&posed.positions, &slow.positions) < 1e-13, "the fast path differs from the formulas");
    assert!(apart(posed.normals.as_ref().unwrap(), slow.normals.as_ref().unwrap()) < 1e-13);
    posed
}

/// Sum of the weighted, moved corners, as glTF defines it.
fn expected(joints: &[DAffine3; 2]) -> Vec<DVec3> {
    let inverse = [DVec3::new(0.5, 0., 0.), DVec3::new(0., -1., 0.25)].map(DAffine3::from_translation);
    let shares = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [1.0, 0.0]];
    let moved = |(p, w): (&[f32; 3], [f64; 2])| {
        let p = DVec3::from_array(p.map(f64::from));
        (0..2).map(|j| (joints[j] * inverse[j]).transform_point3(p) * w[j]).sum()
    };
    CORNERS.iter().zip(shares).map(moved).collect()
}

#[test]
fn a_file_is_posed_as_it_says() {
    let document = open(&character());
    let (rigged, warnings) = document.rigged().unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let (animation, warnings) = document.animation(0).unwrap();
    assert!(warnings.is_empty() && animation.name == "move" && animation.end() == 4.0);
    let at = |time: f64| rigged.animated(&animation, time).unwrap();
    let worlds = at(1.0);
    let joints = by_hand();
    let out = posed(&rigged, &worlds, Method::Linear);
    let body = &out.positions[..4];
    // A 16-bit quarter turn is off by 3e-5 of a radian, coordinates are below 20.
    assert!(apart(body, &expected(&joints)) < 1e-3, "{body:?}");
    assert!(worlds[2].abs_diff_eq(joints[0], 1e-3) && worlds[3].abs_diff_eq(joints[1], 1e-3));
    // The sword has no skin: it follows its node.
    let sword = joints[0] * DAffine3::from_translation(DVec3::X);
    let blade: Vec<DVec3> =
        CORNERS.iter().map(|p| sword.transform_point3(DVec3::from_array(p.map(f64::from)))).collect();
    assert!(apart(&out.positions[4..], &blade) < 1e-3);
    // Controls: another time, the ancestor left out, the mesh' own node counted.
    assert!(apart(&posed(&rigged, &at(0.999), Method::Linear).positions[..4], body) > 1.0, "the step at 1 s");
    assert!(
        apart(&expected(&joints.map(|j| DAffine3::from_translation(DVec3::new(4., 0., 1.)).inverse() * j)), body) > 1.0
    );
    let node = DAffine3::from_translation(DVec3::splat(9.0));
    assert!(apart(&expected(&joints.map(|j| node * j)), body) > 1.0);
    // Both methods, and a pose with stretch.
    let dual = posed(&rigged, &worlds, Method::DualQuaternion);
    assert!(apart(&dual.positions, &out.positions) > 1e-3);
}

#[test]
fn at_rest_it_is_the_mesh_that_binding_sees() {
    for doc in [character(), skinned()] {
        let document = open(&doc);
        let (rigged, _) = document.rigged().unwrap();
        let (mesh, _) = document.mesh(true).unwrap();
        let palette = rigged.palette(&rigged.rest()).unwrap();
        let out = reference::skin(rigged.weights(), &palette, Method::Linear, rigged.surface()).unwrap();
        assert!(apart(&out.positions, mesh.positions()) < 1e-13);
        let moved = rigged.posed_mesh(&out).unwrap();
        assert_eq!((moved.triangles(), moved.normals().is_some()), (mesh.triangles(), mesh.normals().is_some()));
        let (names, weights) = document.weights().unwrap().unwrap();
        let skeleton = rigged.skeleton().unwrap();
        assert!(skeleton.bones().iter().map(|b| &b.name).eq(&names));
        assert_eq!(rigged.bone_weights(), weights);
        for (bone, [head, tail]) in skeleton.bones().iter().zip(rigged.bones_at(&rigged.rest())) {
            assert!(head.distance(bone.head) < 1e-13 && tail.distance(bone.tail) < 1e-13);
        }
    }
}

#[test]
fn a_vertex_without_weights_goes_with_the_first_joint() {
    let mut doc = skinned();
    let number = doc.root["meshes"][0]["primitives"][0]["attributes"]["WEIGHTS_0"].as_u64().unwrap() as usize;
    let none = doc.column(&[0u8; 64], F32, "VEC4", 4);
    doc.root["accessors"][number] = doc.root["accessors"][none].clone();
    let document = open(&doc);
    let (rigged, _) = document.rigged().unwrap();
    assert!(rigged.weights().iter().all(|row| row == [Influence { joint: 0, weight: 1.0 }]));
    assert!(apart(document.mesh(true).unwrap().0.positions(), &moved_by_five()) < 1e-14);
}

fn moved_by_five() -> Vec<DVec3> {
    CORNERS.iter().map(|p| DVec3::from_array(p.map(f64::from)) + DVec3::Y * 5.0).collect()
}

#[test]
fn faulty_animations_name_themselves() {
    let fault = |change: &dyn Fn(&mut Doc)| {
        let mut doc = character();
        change(&mut doc);
        open(&doc).animation(0).map(|_| ()).unwrap_err().to_string()
    };
    let sampler = |doc: &mut Doc, number: usize, key: &str, value: Value| {
        doc.root["animations"][0]["samplers"][number][key] = value;
    };
    let column = |doc: &mut Doc, values: &[f32], kind: &str, width: usize| {
        doc.column(bytemuck::cast_slice(values), F32, kind, values.len() / width)
    };
    type Change<'a> = &'a dyn Fn(&mut Doc);
    let cases: [(&str, Change); 12] = [
        ("channel 0", &|doc| sampler(doc, 0, "interpolation", "SMOOTH".into())),
        ("SMOOTH", &|doc| sampler(doc, 0, "interpolation", "SMOOTH".into())),
        ("1 values for 2 keys", &|doc| {
            let one = column(doc, &[0., 0., 0.], "VEC3", 3);
            sampler(doc, 0, "output", one.into());
        }),
        ("not after", &|doc| {
            let times = column(doc, &[1., 1.], "SCALAR", 1);
            sampler(doc, 2, "input", times.into());
        }),
        ("time is NaN", &|doc| {
            let times = column(doc, &[0., f32::NAN], "SCALAR", 1);
            sampler(doc, 2, "input", times.into());
        }),
        ("not finite", &|doc| {
            let values = column(doc, &[0., 0., 0., 0., f32::INFINITY, 0.], "VEC3", 3);
            sampler(doc, 2, "output", values.into());
        }),
        ("do not fit", &|doc| doc.root["animations"][0]["channels"][0]["target"]["path"] = "rotation".into()),
        ("sampler 99", &|doc| doc.root["animations"][0]["channels"][1]["sampler"] = 99.into()),
        ("number 77 of nodes", &|doc| doc.root["animations"][0]["channels"][1]["target"]["node"] = 77.into()),
        ("number 999 of accessors", &|doc| sampler(doc, 3, "input", 999.into())),
        ("earlier channel", &|doc| doc.root["animations"][0]["channels"][3]["target"]["path"] = "translation".into()),
        ("shears", &|doc| {
            let node = doc.root["nodes"][3].as_object_mut().unwrap();
            node.remove("translation");
            let matrix = [1., 0., 0., 0., 0.5, 1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1.];
            node.insert("matrix".into(), matrix.to_vec().into());
        }),
    ];
    for (says, change) in cases {
        let message = fault(change);
        assert!(message.contains(says), "{says}: {message}");
    }
    // A channel without a node and one for morph targets are left out, and said to be.
    let mut doc = character();
    doc.root["animations"][0]["channels"][0]["target"] = json!({"path": "translation"});
    doc.root["animations"][0]["channels"][3]["target"]["path"] = "weights".into();
    let (animation, warnings) = open(&doc).animation(0).unwrap();
    assert!(animation.joints[1].translation.is_none() && animation.joints[3].scale.is_none());
    assert!(warnings.len() == 1 && warnings[0].message.contains("2 channels"), "{warnings:?}");
    assert!(open(&character()).animation(1).is_err());
}

#[test]
fn channels_that_share_their_data_can_not_multiply_a_file() {
    let nodes: Vec<Value> = (0..2000).map(|n| json!({"name": format!("n{n}")})).collect();
    let mut doc = Doc::new(nodes.into());
    let times: Vec<f32> = (0..4000).map(|t| t as f32).collect();
    let values = vec![[1f32, 0., 0.]; 4000];
    let output = vectors(&mut doc, &values);
    add_channel(&mut doc, &Channel { node: 0, path: "scale", interpolation: "LINEAR", times: &times, output });
    let channels = doc.root["animations"][0]["channels"].as_array_mut().unwrap();
    channels.extend((1..2000).map(|n| json!({"sampler": 0, "target": {"node": n, "path": "scale"}})));
    let error = open(&doc).animation(0).unwrap_err();
    assert!(matches!(error, skinbind::Error::Limit { .. }), "{error}");
}

#[test]
fn a_posed_copy_shows_the_pose_and_keeps_the_looks() {
    let mut doc = character();
    doc.root["extensions"] = json!({"VRM": {"humanoid": {"node": 2}}, "KHR_lights_punctual": {"lights": []}});
    doc.root["extensionsUsed"] = json!(["VRM", "KHR_lights_punctual"]);
    let document = open(&doc);
    let (rigged, _) = document.rigged().unwrap();
    let (animation, _) = document.animation(0).unwrap();
    let worlds = rigged.animated(&animation, 1.5).unwrap();
    let out = posed(&rigged, &worlds, Method::DualQuaternion);
    let (copy, warnings) = document.posed(&rigged, &worlds, &out).unwrap();
    assert!(warnings.is_empty());
    let back = Document::from_bytes(copy.glb().unwrap().to_vec(), None).unwrap();
    let (mesh, _) = back.mesh(false).expect("no skin is left");
    // Coordinates below 32 as 32-bit numbers.
    assert!(apart(mesh.positions(), &out.positions) < 2e-6);
    assert!(apart(mesh.normals().unwrap(), out.normals.as_ref().unwrap()) < 1e-6);
    assert!(apart(document.mesh(true).unwrap().0.positions(), &out.positions) > 1.0, "control: the pose is another");
    let json = back.json();
    for gone in ["skins", "animations", "cameras"] {
        assert!(json[gone].is_null(), "{gone}");
    }
    assert_eq!((&json["nodes"][0]["name"], &json["nodes"][1]["name"]), (&"body".into(), &"sword".into()));
    assert_eq!(json["scenes"][0]["nodes"], json!([0, 1]));
    let primitive = &json["meshes"][0]["primitives"][0];
    assert_eq!((&primitive["material"], &json["materials"][0]["name"]), (&0.into(), &"skin".into()));
    assert!(primitive["attributes"]["TEXCOORD_0"].is_u64() && primitive["attributes"]["JOINTS_0"].is_null());
    assert_eq!(json["extensionsUsed"], json!(["KHR_lights_punctual"]));
    assert!(json["extensions"]["VRM"].is_null());
}

/// Three joints of which one is in no rig, in centimetres; frame 1 turns the hips a quarter about z and moves them.
const BVH: &str = "HIERARCHY\nROOT Hips\n{\nOFFSET 0 0 0\nCHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation\n\
JOINT head_01\n{\nOFFSET 0 100 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n\
JOINT antenna\n{\nOFFSET 0 10 0\nCHANNELS 3 Zrotation Xrotation Yrotation\nEnd Site\n{\nOFFSET 0 1 0\n}\n}\n}\n}\n\
MOTION\nFrames: 2\nFrame Time: 0.5\n\
7 7 7 0 0 0 0 0 0 0 0 0\n207 7 7 90 0 0 0 0 0 0 0 0\n";

/// Nodes as in `skinned`, the joints turned in themselves, which changes nothing at rest.
fn turned_joints(doc: &mut Doc) {
    doc.root["nodes"][1]["rotation"] = json!(QUARTER_TURN_X);
    // Seen from the turned hips, the head stands along -z.
    doc.root["nodes"][2]["translation"] = json!([0.0, 0.0, -1.0]);
    let turn = DMat3::from_rotation_x(-FRAC_PI_2);
    let inverse = [DVec3::ZERO, DVec3::Y * -1.0].map(|t| DAffine3::from_mat3(turn) * DAffine3::from_translation(t));
    let numbers: Vec<f32> =
        inverse.iter().flat_map(|m| skinbind::glam::DMat4::from(*m).as_mat4().to_cols_array()).collect();
    let matrices = doc.column(bytemuck::cast_slice(&numbers), F32, "MAT4", 2);
    doc.root["skins"][0]["inverseBindMatrices"] = matrices.into();
}

#[test]
fn a_bvh_file_turns_joints_about_the_axes_of_the_world() {
    let bvh = Bvh::parse(BVH).unwrap();
    let mut other = skinned();
    turned_joints(&mut other);
    // The mesh stands at (0, 5, 0), where the hips are: turned a quarter about z there, and 200 cm to the right, which are
    // 2 of the rig's units.
    let want: Vec<DVec3> = CORNERS
        .iter()
        .map(|p| DVec3::from_array(p.map(f64::from)))
        .map(|p| DVec3::new(-p.y + 2.0, p.x + 5.0, p.z))
        .collect();
    for doc in [skinned(), other] {
        let (rigged, _) = open(&doc).rigged().unwrap();
        let skin = |time: f64| {
            let palette = rigged.palette(&rigged.moved(&bvh, time).unwrap()).unwrap();
            reference::skin(rigged.weights(), &palette, Method::Linear, rigged.surface()).unwrap().positions
        };
        assert!(apart(&skin(0.0), &moved_by_five()) < 1e-6, "the first frame is at rest");
        // 32-bit inverse bind matrices.
        assert!(apart(&skin(0.5), &want) < 1e-6, "{:?}", skin(0.5));
        assert!(apart(&skin(0.4), &want) > 0.1, "control");
    }
}

/// Poses a file in every way there is; whether it got to the end.
fn pose_all(bytes: Vec<u8>, bvh: &Bvh) -> Result<(), skinbind::Error> {
    let document = Document::from_bytes(bytes, None)?;
    let (rigged, _) = document.rigged()?;
    let (animation, _) = document.animation(0)?;
    let input = rigged.skin_input()?;
    for worlds in [rigged.rest(), rigged.animated(&animation, 1.3)?, rigged.moved(bvh, 0.25)?] {
        let mut out = Posed::default();
        input.skin(&rigged.palette(&worlds)?, Method::DualQuaternion, rigged.surface(), &mut out)?;
        document.posed(&rigged, &worlds, &out)?.0.glb()?;
        assert_eq!(rigged.bones_at(&worlds).len(), rigged.skeleton().map_or(0, |s| s.len()));
    }
    Ok(())
}

#[test]
fn damaged_files_are_refused_or_posed_and_never_panic() {
    let (whole, bvh) = (character().glb(), Bvh::parse(BVH).unwrap());
    pose_all(whole.clone(), &bvh).unwrap();
    let mut random = Random(5);
    let mut random = |below: usize| random.below(below as u64) as usize;
    let (mut refused, mut digits) = (0, 0);
    for n in 0..6000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + n % 3 {
            // Half of them change a digit, which leaves the JSON whole and the numbers wrong.
            let at = if n % 2 == 0 { random(bytes.len()) } else { random(bytes.len() / 2) };
            let digit = bytes[at].is_ascii_digit();
            digits += usize::from(digit && n % 2 == 1);
            bytes[at] = if n % 2 == 0 {
                random(256) as u8
            } else if digit {
                b'0' + random(10) as u8
            } else {
                bytes[at]
            };
        }
        refused += usize::from(pose_all(bytes, &bvh).is_err());
    }
    assert!((1000..5900).contains(&refused) && digits > 500, "{refused} {digits}");
}

#[cfg(feature = "cli")]
mod program {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Output};

    use tempfile::TempDir;

    fn folder() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("in.glb"), character().glb()).unwrap();
        fs::write(folder.path().join("in.bvh"), BVH).unwrap();
        folder
    }

    fn run(folder: &Path, arguments: &str) -> Output {
        let arguments = arguments.split(' ');
        Command::new(env!("CARGO_BIN_EXE_skinbind")).args(arguments).current_dir(folder).output().unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entry = |e: std::io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(entry).collect();
        names.retain(|n| !n.starts_with("in."));
        names.sort();
        names
    }

    #[test]
    fn writes_the_pose_to_the_last_bit() {
        let folder = folder();
        let path = folder.path();
        let done = run(path, "pose in.glb --animation move --time 1.5 -o a.obj -o a.glb");
        assert!(done.status.success(), "{done:?}");
        let document = open(&character());
        let (rigged, _) = document.rigged().unwrap();
        let (animation, _) = document.animation(0).unwrap();
        let out = posed(&rigged, &rigged.animated(&animation, 1.5).unwrap(), Method::Linear);
        let mesh = skinbind::io::obj::read(path.join("a.obj")).unwrap();
        assert_eq!(mesh.positions(), out.positions);
        assert_eq!(mesh.normals().unwrap(), out.normals.unwrap());
        let copy = Document::read(&path.join("a.glb")).unwrap();
        assert!(apart(copy.mesh(false).unwrap().0.positions(), &out.positions) < 2e-6);
        assert!(
            run(path, "pose in.glb --animation move --time 1.5 -o b.obj --method dual-quaternion").status.success()
        );
        let dual = skinbind::io::obj::read(path.join("b.obj")).unwrap();
        assert!(apart(dual.positions(), &out.positions) > 1e-3, "the method counts");
    }

    #[test]
    fn frames_become_files_of_their_numbers() {
        let folder = folder();
        let path = folder.path();
        assert!(run(path, "pose in.glb --animation move --frames 2..4 --fps 2 -q -o f_%03d.obj").status.success());
        assert_eq!(names(path), ["f_002.obj", "f_003.obj", "f_004.obj"]);
        assert!(run(path, "pose in.glb --animation move --time 1.5 -q -o t.obj").status.success());
        let read = |name: &str| fs::read(path.join(name)).unwrap();
        assert_eq!(read("f_003.obj"), read("t.obj"));
        assert_ne!(read("f_004.obj"), read("t.obj"));
    }

    #[test]
    fn a_bvh_file_names_the_joints_that_move_nothing() {
        let folder = folder();
        let path = folder.path();
        let done = run(path, "pose in.glb --bvh in.bvh --frames 1..1 -o p.obj");
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.success() && said.contains("1 of 3 joints") && said.contains("\"antenna\""), "{said}");
        fs::write(path.join("in.other.bvh"), BVH.replace("Hips", "a").replace("head_01", "b")).unwrap();
        let done = run(path, "pose in.glb --bvh in.other.bvh --time 0 -o q.obj");
        assert_eq!((done.status.code(), names(path)), (Some(3), vec!["p.obj".to_owned()]));
    }

    #[test]
    fn faults_have_their_codes_and_leave_no_file() {
        let folder = folder();
        let path = folder.path();
        fs::write(path.join("in.plain.glb"), gltf_doc::tetrahedron().glb()).unwrap();
        fs::write(path.join("in.cut.glb"), &gltf_doc::glb(b"{}", b"")[..20]).unwrap();
        for (code, arguments, says) in [
            (3, "pose in.glb --animation run --time 0 -o a.obj", "\"move\""),
            (3, "pose in.plain.glb --animation run --time 0 -o a.obj", "no animations"),
            (3, "pose in.plain.glb --bvh in.bvh --time 0 -o a.obj", "no joints"),
            (3, "pose in.cut.glb --bvh in.bvh --time 0 -o a.obj", "in.cut.glb"),
            (3, "pose in.glb --bvh in.glb --time 0 -o a.obj", "in.glb"),
            (3, "pose in.bvh --bvh in.bvh --time 0 -o a.obj", "in.bvh"),
            (2, "pose in.glb --time 0 -o a.obj", "--animation"),
            (2, "pose in.glb --animation move -o a.obj", "--time"),
            (2, "pose in.glb --animation move --time nan -o a.obj", "time"),
            (2, "pose in.glb --animation move --frames 0..3 -o a.obj", "%04d"),
            (2, "pose in.glb --animation move --frames 3..0 -o a_%d.obj", "after the last"),
            (2, "pose in.glb --animation move --frames 0..3 --fps 0 -o a_%d.obj", "fps"),
            (2, "pose in.glb --animation move --time 0 -o a_%d.obj", "--frames"),
            (2, "pose in.glb --animation move --time 0 -o a.fbx", "a.fbx"),
            (4, "pose in.glb --animation move --time 0 -o in.bvh.obj -o nowhere/a.obj", "nowhere"),
        ] {
            let done = run(path, arguments);
            let said = String::from_utf8(done.stderr).unwrap();
            assert_eq!(done.status.code(), Some(code), "{arguments}: {said}");
            assert!(said.contains(says), "{arguments}: {said}");
            assert!(names(path).is_empty(), "{arguments} left {:?}", names(path));
        }
        // One that can be written and one that is there already: neither is touched.
        fs::write(path.join("in.there.obj"), "old").unwrap();
        let done = run(path, "pose in.glb --animation move --time 0 -o a.obj -o in.there.obj");
        assert_eq!((done.status.code(), names(path).len()), (Some(4), 0));
        assert_eq!(fs::read(path.join("in.there.obj")).unwrap(), b"old");
    }
}

#[test]
fn integers_are_times_and_places_no_more_than_vectors_are_rotations() {
    let mut doc = character();
    let bytes = doc.column(&[0, 0, 0, 255, 0, 0, 0, 255], U8, "VEC4", 2);
    doc.root["animations"][0]["samplers"][2]["output"] = bytes.into();
    let message = open(&doc).animation(0).unwrap_err().to_string();
    assert!(message.contains("channel 2") && message.contains("do not fit"), "{message}");
    let short = doc.column(&[0u8; 8], U16, "SCALAR", 2);
    doc.root["animations"][0]["samplers"][1]["input"] = short.into();
    assert!(open(&doc).animation(0).unwrap_err().to_string().contains("times"));
}
