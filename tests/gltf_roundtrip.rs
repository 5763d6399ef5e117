//! What glTF files hold is read as the specification says, and survives when a skin is added.

#[path = "common/gltf_doc.rs"]
mod gltf_doc;

use glam::{DQuat, DVec3};
use gltf_doc::{CORNERS, Doc, F32, FACES, U8, U16, apart, glb, open, skinned, tetrahedron};
use serde_json::{Value, json};
use skinbind::io::gltf::{Document, RotationTrack};
use skinbind::model::{Bone, Code, Influence, Mesh, Skeleton, Weights};
use skinbind::{Error, Result, glam};

fn again(document: &Document) -> Document {
    Document::from_bytes(document.glb().unwrap().to_vec(), None).unwrap()
}

fn bone(name: &str, head: [f64; 3], parent: Option<usize>) -> Bone {
    let head = DVec3::from_array(head);
    Bone { name: name.into(), head, tail: head + DVec3::Y, parent, deform: true }
}

fn two_bones() -> Skeleton {
    Skeleton::new(vec![bone("low", [0.25, 3.0, 0.5], None), bone("high", [0.25, 4.5, 0.5], Some(0))]).unwrap()
}

/// Weights that differ from vertex to vertex.
fn some_weights(vertices: usize, bones: u32) -> Weights {
    let mut weights = Weights::default();
    for v in 0..vertices {
        let t = (v as f64 * 0.37 + 0.1).fract();
        weights
            .push([(0, 1.0 - t), (1 + v as u32 % (bones - 1), t)].map(|(joint, weight)| Influence { joint, weight }));
    }
    weights
}

/// Inverse bind matrices are f32: a rounding of 2^-24 in each of four terms of a size up to ~12 (the largest
/// coordinate here), applied and undone once: 12 * 4 * 2 * 6e-8.
const REST: f64 = 6e-6;

/// Two nodes, the second listed showing the first mesh again.
fn shared() -> Doc {
    let mut doc = tetrahedron();
    doc.root["nodes"] = json!([
        {"mesh": 0, "translation": [0, 1, 0]}, {"name": "empty", "children": [2]}, {"mesh": 1}, {"mesh": 0, "scale": [2, 2, 2]},
    ]);
    doc.root["scenes"][0]["nodes"] = json!([0, 1, 3]);
    let (p, i) = (0, doc.indices(&[3, 1, 0]));
    doc.mesh(json!([{"attributes": {"POSITION": p}, "indices": 1}, {"attributes": {"POSITION": p}, "indices": i}]));
    doc
}

#[test]
fn vertices_count_by_node_and_primitive_and_shared_meshes_are_copied() {
    let mut document = open(&shared());
    let (mesh, _) = document.mesh(false).unwrap();
    let local = CORNERS.map(|p| DVec3::from_array(p.map(f64::from)));
    let expected: Vec<DVec3> = [local.map(|p| p + DVec3::Y), local, local, local.map(|p| p * 2.0)].concat();
    assert_eq!(mesh.positions(), expected);
    assert_eq!(mesh.triangles().len(), 4 + 4 + 1 + 4);
    assert_eq!(mesh.triangles()[8], [11, 9, 8]);

    let weights = some_weights(16, 2);
    document.add_skin(&two_bones(), None, &weights).unwrap();
    let document = again(&document);
    let json = document.json();
    let meshes: Vec<u64> = [0, 2, 3].iter().map(|&n: &usize| json["nodes"][n]["mesh"].as_u64().unwrap()).collect();
    assert_eq!(meshes, [0, 1, 2], "the first node keeps the mesh, the other gets a copy");
    let skins: Vec<u64> = [0, 2, 3].iter().map(|&n: &usize| json["nodes"][n]["skin"].as_u64().unwrap()).collect();
    assert_eq!(skins, [0, 1, 2], "one skin each");
    let primitives =
        [&json["meshes"][0]["primitives"][0], &json["meshes"][2]["primitives"][0]].map(|p| &p["attributes"]);
    assert_eq!(primitives[0]["POSITION"], primitives[1]["POSITION"]);
    assert_ne!(primitives[0]["WEIGHTS_0"], primitives[1]["WEIGHTS_0"]);
    assert!(apart(document.mesh(true).unwrap().0.positions(), &expected) < REST);
    check_weights(&document, &weights, &["low", "high"]);
}

/// The document's weights are these, and the comparison would see a change.
fn check_weights(document: &Document, expected: &Weights, names: &[&str]) {
    let (found_names, found) = document.weights().unwrap().unwrap();
    assert_eq!(found_names, names);
    assert_eq!(found.len(), expected.len());
    let worst = |expected: &Weights| {
        let joints = 0..names.len() as u32;
        let differ = |v: usize, j: u32| (found.weight(v, j) - expected.weight(v, j)).abs();
        joints.flat_map(|j| (0..found.len()).map(move |v| differ(v, j))).fold(0.0, f64::max)
    };
    // One rounding to f32 below 1, and the largest weight also takes what the others' roundings leave.
    let tolerance = 5.0 * f64::from(f32::EPSILON) / 2.0;
    assert!(worst(expected) <= tolerance, "{}", worst(expected));
    let mut broken = Weights::default();
    for (v, list) in expected.iter().enumerate() {
        broken.push(list.iter().map(|i| Influence { weight: i.weight + f64::from(v == 2) * 1e-5, ..*i }));
    }
    assert!(worst(&broken) > tolerance);
}

/// A file with a bit of everything that must survive.
fn rich() -> Doc {
    let mut doc = tetrahedron();
    let uv = doc.column(bytemuck::cast_slice(&[[0.25f32, 0.5]; 4]), F32, "VEC2", 4);
    let normal = doc.column(bytemuck::cast_slice(&[[0f32, 1., 0.]; 4]), F32, "VEC3", 4);
    let morph = doc.positions(&[[0., 0., 0.5]; 4]);
    doc.column(&[1, 2, 3, 4], U8, "SCALAR", 4);
    let times = doc.column(bytemuck::cast_slice(&[0f32, 1.]), F32, "SCALAR", 2);
    doc.root["accessors"][times]["min"] = json!([0.0]);
    doc.root["accessors"][times]["max"] = json!([1.0]);
    let moves = doc.column(bytemuck::cast_slice(&[[0f32; 3], [1.; 3]]), F32, "VEC3", 2);
    let mesh = &mut doc.root["meshes"][0];
    mesh["name"] = "skin".into();
    mesh["extras"] = json!({"targetNames": ["smile"], "ratio": 0.1});
    mesh["weights"] = json!([0.25]);
    let primitive = &mut mesh["primitives"][0];
    primitive["attributes"]["TEXCOORD_0"] = uv.into();
    primitive["attributes"]["NORMAL"] = normal.into();
    primitive["attributes"]["_CUSTOM"] = uv.into();
    primitive["targets"] = json!([{"POSITION": morph}]);
    primitive["material"] = 0.into();
    primitive["extensions"] = json!({"ACME_thing": {"level": 1e-7}});
    doc.root["materials"] =
        json!([{"name": "leather", "pbrMetallicRoughness": {"roughnessFactor": 0.30000001192092896}}]);
    doc.root["cameras"] = json!([{"type": "perspective", "perspective": {"yfov": 0.7, "znear": 0.01}}]);
    doc.root["animations"] = json!([{"channels": [{"sampler": 0, "target": {"node": 0, "path": "translation"}}],
        "samplers": [{"input": times, "output": moves}]}]);
    doc.root["extensionsUsed"] = json!(["ACME_thing"]);
    doc.root["extensions"] = json!({"ACME_thing": {"deep": [[1, 2.5, "\u{e9}"], null, true]}});
    doc.root["extras"] = json!({"big": 18446744073709551615u64, "small": -0.1});
    doc
}

#[test]
fn everything_else_survives_byte_for_byte() {
    let doc = rich();
    let before = open(&doc);
    let mut document = before.clone();
    let weights = some_weights(4, 2);
    document.add_skin(&two_bones(), None, &weights).unwrap();
    let bytes = document.glb().unwrap().to_vec();
    let json_length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let bin = &bytes[20 + json_length + 8..];
    assert_eq!(&bin[..doc.bin.len()], doc.bin, "the binary chunk starts with the old one");

    let mut json = again(&document).json().clone();
    let attributes = json["meshes"][0]["primitives"][0]["attributes"].as_object_mut().unwrap();
    for name in ["JOINTS_0", "WEIGHTS_0"] {
        assert!(attributes.shift_remove(name).is_some());
    }
    assert_eq!(json["nodes"][0].as_object_mut().unwrap().shift_remove("skin"), Some(json!(0)));
    assert_eq!(json["scenes"][0]["nodes"], json!([0, 1]));
    json["scenes"][0]["nodes"] = json!([0]);
    let object = json.as_object_mut().unwrap();
    assert!(object.shift_remove("skins").is_some());
    let old = before.json();
    for key in ["nodes", "accessors", "bufferViews"] {
        object[key].as_array_mut().unwrap().truncate(old[key].as_array().unwrap().len());
    }
    object["buffers"][0]["byteLength"] = doc.bin.len().into();
    assert_eq!(&json, old, "nothing else changed");
    assert_eq!(serde_json::to_string(&json).unwrap(), serde_json::to_string(old).unwrap(), "nor did any order");
}

#[test]
fn a_skin_keeps_the_rest_shape_where_the_node_put_it() {
    let mut document = open(&rich());
    let (rest, _) = document.mesh(false).unwrap();
    let joints = document.add_skin(&two_bones(), None, &some_weights(4, 2)).unwrap();
    let document = again(&document);
    let (after, _) = document.mesh(true).unwrap();
    assert!(apart(after.positions(), rest.positions()) < REST);
    assert_eq!(after.triangles(), rest.triangles());
    assert!(matches!(document.mesh(false), Err(Error::AlreadySkinned { .. })));
    let rig = document.skeleton(None).unwrap().unwrap();
    assert_eq!(rig.nodes, joints);
    for (found, given) in rig.skeleton.bones().iter().zip(two_bones().bones()) {
        assert_eq!((&found.name, found.parent), (&given.name, given.parent));
        assert!(found.head.distance(given.head) < 1e-12);
    }

    // Negative control: a joint that moves takes the shape along.
    let mut moved = document.json().clone();
    moved["nodes"][1]["translation"][0] = json!(0.26);
    let bytes = document.glb().unwrap().to_vec();
    let json_length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let broken = glb(&serde_json::to_vec(&moved).unwrap(), &bytes[28 + json_length..]);
    let broken = Document::from_bytes(broken, None).unwrap().mesh(true).unwrap().0;
    assert!(apart(broken.positions(), rest.positions()) > REST);
}

#[test]
fn several_roots_get_one_and_many_joints_get_16_bits() {
    let mut bones: Vec<Bone> = (0..300).map(|i| bone(&format!("b{i}"), [0., f64::from(i), 0.], None)).collect();
    bones[7].name = "skeleton".into();
    bones[0].parent = Some(299);
    let skeleton = Skeleton::new(bones).unwrap();
    let mut document = open(&tetrahedron());
    let weights = some_weights(4, 300);
    document.add_skin(&skeleton, None, &weights).unwrap();
    let document = again(&document);
    let json = document.json();
    let root = json["scenes"][0]["nodes"][1].as_u64().unwrap() as usize;
    assert_eq!(json["nodes"][root]["name"], "skeleton_1");
    assert_eq!(json["nodes"][root]["children"].as_array().unwrap().len(), 299);
    let joints = json["meshes"][0]["primitives"][0]["attributes"]["JOINTS_0"].as_u64().unwrap() as usize;
    assert_eq!(json["accessors"][joints]["componentType"], U16);
    let names: Vec<&str> = skeleton.bones().iter().map(|b| b.name.as_str()).collect();
    check_weights(&document, &weights, &names);
}

#[test]
fn an_old_skin_in_its_bind_pose_is_replaced_without_touching_positions() {
    let mut document = open(&skinned());
    let (rest, _) = document.mesh(true).unwrap();
    let expected = CORNERS.map(|p| DVec3::from_array(p.map(f64::from)) + DVec3::Y * 5.0);
    assert_eq!(rest.positions(), expected, "the skin counts, the node's transform does not");
    let text = document.mesh(false).unwrap_err().to_string();
    assert!(text.contains("already skinned") && text.contains("body") && text.contains("--replace-skin"), "{text}");

    // Nine influences: three sets.
    let bones = (0..9).map(|i| bone(&format!("b{i}"), [0., f64::from(i), 0.], (i > 0).then(|| i as usize - 1)));
    let skeleton = Skeleton::new(bones.collect()).unwrap();
    let mut weights = Weights::default();
    (0..4).for_each(|v| weights.push((0..9).map(|joint| Influence { joint, weight: f64::from(joint + v + 1) })));
    document.add_skin(&skeleton, None, &weights).unwrap();
    let document = again(&document);
    let json = document.json();
    assert_eq!(json["skins"].as_array().unwrap().len(), 1, "the old skin is gone");
    let attributes = json["meshes"][0]["primitives"][0]["attributes"].as_object().unwrap();
    assert_eq!(attributes["POSITION"], 0);
    assert_eq!(attributes.len(), 1 + 6);
    assert!(apart(document.mesh(true).unwrap().0.positions(), &expected) < REST);
}

#[test]
fn old_joints_serve_again_and_no_nodes_are_made() {
    let mut doc = skinned();
    doc.root["nodes"][2].as_object_mut().unwrap().remove("name");
    doc.root["nodes"].as_array_mut().unwrap().push(json!({"name": "hips"}));
    doc.root["skins"][0]["joints"] = json!([1, 2, 3]);
    doc.root["skins"][0].as_object_mut().unwrap().remove("inverseBindMatrices");
    doc.root["scenes"][0]["nodes"] = json!([0, 1, 3]);
    let mut document = open(&doc);
    let (rest, _) = document.mesh(true).unwrap();
    let rig = document.skeleton(None).unwrap().unwrap();
    let names: Vec<&str> = rig.skeleton.bones().iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["hips", "joint_1", "hips_2"]);
    assert_eq!(rig.warnings.len(), 1);
    assert_eq!((rig.warnings[0].code, rig.warnings[0].bone.as_deref()), (Code::Renamed, Some("hips_2")));
    document.add_skin(&rig.skeleton, Some(&rig.nodes), &some_weights(4, 3)).unwrap();
    let document = again(&document);
    let json = document.json();
    // Two roots: the one node that is made is the common root above them.
    assert_eq!(json["nodes"].as_array().unwrap().len(), 5);
    assert_eq!(json["nodes"][4], json!({"name": "skeleton", "children": [1, 3]}));
    assert_eq!(json["scenes"][0]["nodes"], json!([0, 4]));
    assert_eq!(json["skins"][0]["joints"], json!([1, 2, 3]));
    assert!(apart(document.mesh(true).unwrap().0.positions(), rest.positions()) < REST);
    check_weights(&document, &some_weights(4, 3), &["hips", "joint_1", "hips_2"]);
}

/// The skinned tetrahedron with its head joint turned by a quarter about z, with a morph target, normals and tangents.
fn posed() -> Doc {
    let mut doc = skinned();
    let half = std::f64::consts::FRAC_1_SQRT_2;
    doc.root["nodes"][2]["rotation"] = json!([0, 0, half, half]);
    let morph = doc.positions(&[[0.5, 0., 0.]; 4]);
    let normal = doc.column(bytemuck::cast_slice(&[[1f32, 0., 0.]; 4]), F32, "VEC3", 4);
    let tangent = doc.column(bytemuck::cast_slice(&[[0f32, 1., 0., -1.]; 4]), F32, "VEC4", 4);
    let primitive = &mut doc.root["meshes"][0]["primitives"][0];
    primitive["attributes"]["NORMAL"] = normal.into();
    primitive["attributes"]["TANGENT"] = tangent.into();
    primitive["targets"] = json!([{"POSITION": morph}]);
    doc
}

#[test]
fn an_old_skin_in_another_pose_gives_new_positions() {
    let mut document = open(&posed());
    let (rest, _) = document.mesh(true).unwrap();
    // By hand: hips moves by (0, 5, 0); head turns (x, y - 1) into (-(y - 1), x) and moves by (0, 6, 0).
    let head_share = [0.25, 0.5, 0.75, 0.0];
    let turned = |p: DVec3| DVec3::new(1.0 - p.y, p.x + 6.0, p.z);
    let expected: Vec<DVec3> = CORNERS
        .iter()
        .zip(head_share)
        .map(|(p, w)| {
            let p = DVec3::from_array(p.map(f64::from));
            (p + DVec3::Y * 5.0) * (1.0 - w) + turned(p) * w
        })
        .collect();
    assert!(apart(rest.positions(), &expected) < 1e-14 * 10.0, "f64 rounding at a size below 10");
    document.add_skin(&two_bones(), None, &some_weights(4, 2)).unwrap();
    let document = again(&document);
    let (after, _) = document.mesh(true).unwrap();
    assert!(apart(after.positions(), &expected) < REST);
    assert!(apart(after.normals().unwrap(), rest.normals().unwrap()) < 1e-6, "f32 normals");

    let json = document.json();
    let primitive = &json["meshes"][0]["primitives"][0];
    let reread = |number: &Value| {
        let mut doc = document.json().clone();
        doc["nodes"] = json!([{"mesh": 0}]);
        doc.as_object_mut().unwrap().remove("skins");
        doc["scenes"] = json!([]);
        doc["meshes"] = json!([{"primitives": [{"attributes": {"POSITION": number}, "mode": 5}]}]);
        let bytes = document.glb().unwrap().to_vec();
        let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let file = glb(&serde_json::to_vec(&doc).unwrap(), &bytes[28 + length..]);
        Document::from_bytes(file, None).unwrap().mesh(false).unwrap().0.positions().to_vec()
    };
    // A delta of (0.5, 0, 0) is turned into (0, 0.5, 0) by as much of the head joint as the vertex has.
    let deltas: Vec<DVec3> = head_share.iter().map(|w| DVec3::new(0.5 * (1.0 - w), 0.5 * w, 0.0)).collect();
    assert!(apart(&reread(&primitive["targets"][0]["POSITION"]), &deltas) < 1e-7);
    assert_ne!(primitive["attributes"]["TANGENT"], posed().root["meshes"][0]["primitives"][0]["attributes"]["TANGENT"]);
}

#[test]
fn a_plain_mesh_becomes_a_document_with_skin_and_animation() -> Result<()> {
    let points: Vec<DVec3> = CORNERS.iter().map(|&p| DVec3::from_array(p.map(f64::from)) * 0.1).collect();
    let triangles: Vec<[u32; 3]> = FACES.chunks(3).map(|c| [c[0], c[1], c[2]].map(u32::from)).collect();
    let normals = vec![DVec3::Y * 3.0, DVec3::ZERO, DVec3::X, DVec3::Z];
    let mesh = Mesh::new(points.clone(), triangles.clone())?.with_normals(normals)?;
    let mut document = Document::from_mesh(&mesh, "thing")?;
    let weights = some_weights(4, 2);
    let joints = document.add_skin(&two_bones(), None, &weights)?;
    let turn = RotationTrack {
        joint: 1,
        times: vec![0.0, 0.5],
        rotations: vec![DQuat::IDENTITY, DQuat::from_rotation_z(1.0)],
    };
    document.add_animation("wave", &joints, std::slice::from_ref(&turn))?;
    let back = again(&document);
    let (after, _) = back.mesh(true)?;
    // Positions are stored as f32; inverse bind matrices of heads up to 4.5 add a rounding of theirs.
    assert!(apart(after.positions(), &points) < REST);
    assert_eq!(after.triangles(), triangles);
    assert!(after.normals().unwrap().iter().all(|n| (n.length() - 1.0).abs() < 1e-6));
    check_weights(&back, &weights, &["low", "high"]);
    let animation = &back.json()["animations"][0];
    assert_eq!(animation["channels"][0]["target"], json!({"node": joints.nodes()[1], "path": "rotation"}));

    for (times, rotations) in
        [(vec![], vec![]), (vec![1.0, 1.0], turn.rotations.clone()), (vec![0.0], turn.rotations.clone())]
    {
        let bad = RotationTrack { joint: 0, times, rotations };
        assert!(matches!(document.add_animation("x", &joints, &[bad]), Err(Error::Parameter { .. })));
    }
    Ok(())
}

#[test]
fn weights_that_do_not_fit_are_refused_and_nothing_is_bound() {
    let mut document = open(&tetrahedron());
    let mut nameless = some_weights(3, 2);
    nameless.push([]);
    for bad in [some_weights(3, 2), nameless, some_weights(4, 3)] {
        assert!(document.add_skin(&two_bones(), None, &bad).is_err());
        assert!(again(&document).weights().unwrap().is_none());
        assert!(document.json().get("skins").is_none());
    }
}

#[test]
fn lines_stay_where_they_are_but_are_not_bound() {
    let mut doc = tetrahedron();
    let line = json!({"attributes": {"POSITION": 0}, "mode": 1});
    doc.root["meshes"][0]["primitives"].as_array_mut().unwrap().insert(0, line.clone());
    let mut document = open(&doc);
    let (mesh, warnings) = document.mesh(false).unwrap();
    assert_eq!(mesh.positions().len(), 4);
    assert_eq!(warnings.iter().map(|w| w.code).collect::<Vec<_>>(), [Code::FileIgnored]);
    document.add_skin(&two_bones(), None, &some_weights(4, 2)).unwrap();
    let json = document.json();
    let child = json["nodes"][0]["children"][0].as_u64().unwrap() as usize;
    let lines = json["nodes"][child]["mesh"].as_u64().unwrap() as usize;
    assert_eq!(json["meshes"][lines]["primitives"], json!([line]));
    assert!(json["nodes"][child].get("skin").is_none());
    assert_eq!(json["meshes"][0]["primitives"].as_array().unwrap().len(), 1);

    doc.root["meshes"][0]["primitives"] = json!([line]);
    assert!(matches!(open(&doc).mesh(false), Err(Error::NoFaces)));
}

#[test]
fn gltf_files_with_outside_and_inline_buffers_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let doc = tetrahedron();
    let split = doc.bin.len() - 24;
    std::fs::write(folder.path().join("a b.bin"), &doc.bin[..split]).unwrap();
    std::fs::write(folder.path().join("skin.png"), b"not really a picture").unwrap();
    let mut root = doc.root.clone();
    use base64::Engine;
    let inline = base64::engine::general_purpose::STANDARD.encode(&doc.bin[split..]);
    root["buffers"] = json!([{"byteLength": split, "uri": "a%20b.bin", "name": "first"},
        {"byteLength": 24, "uri": format!("data:application/octet-stream;base64,{inline}")}]);
    root["bufferViews"][1] = json!({"buffer": 1, "byteLength": 24});
    root["images"] = json!([{"uri": "skin.png"}, {"uri": "gone.png"}, {"uri": "../a b.bin", "mimeType": "image/png"}]);
    let path = folder.path().join("in.gltf");
    std::fs::write(&path, [b"\xef\xbb\xbf".as_slice(), &serde_json::to_vec_pretty(&root).unwrap()].concat()).unwrap();
    let mut document = Document::read(&path).unwrap();
    let (mesh, _) = document.mesh(false).unwrap();
    assert_eq!(mesh, open(&doc).mesh(false).unwrap().0);
    document.add_skin(&two_bones(), None, &some_weights(4, 2)).unwrap();

    let elsewhere = tempfile::tempdir().unwrap();
    for (target, taken) in [("out.glb", true), ("a \u{e4}.gltf", false)] {
        for to in [&folder, &elsewhere] {
            let files = document.files(&to.path().join(target)).unwrap();
            for (path, bytes) in &files {
                let mut out = std::fs::File::create(path).unwrap();
                bytes.write_to(&mut out).unwrap();
                assert_eq!(out.metadata().unwrap().len(), bytes.len());
            }
            let back = Document::read(&to.path().join(target)).unwrap();
            assert!(apart(back.mesh(true).unwrap().0.positions(), mesh.positions()) < REST);
            check_weights(&back, &some_weights(4, 2), &["low", "high"]);
            assert_eq!(back.json()["buffers"].as_array().unwrap().len(), 1);
            assert_eq!(back.json()["buffers"][0]["name"], "first");
            let image = &back.json()["images"][0];
            let stays = !taken && std::ptr::eq(to, &folder);
            assert_eq!(image.get("uri").is_some(), stays, "{target}");
            if !stays {
                assert_eq!(image["mimeType"], "image/png");
            }
            assert_eq!(back.json()["images"][1], json!({"uri": "gone.png"}));
            assert_eq!(back.json()["images"][2]["uri"], "../a b.bin");
        }
    }
    assert!(matches!(document.files("x.obj".as_ref()), Err(Error::FileType { .. })));
}

#[test]
fn chunks_of_other_kinds_are_kept() {
    let mut bytes = tetrahedron().glb();
    bytes.extend([&5u32.to_le_bytes()[..], b"ACME", b"hello"].concat());
    let length = bytes.len() as u32;
    bytes[8..12].copy_from_slice(&length.to_le_bytes());
    let out = Document::from_bytes(bytes, None).unwrap().glb().unwrap().to_vec();
    assert!(out.ends_with(b"\x08\0\0\0ACMEhello\0\0\0"));
    assert_eq!(u32::from_le_bytes(out[8..12].try_into().unwrap()) as usize, out.len());
}

#[test]
fn buffers_become_one_and_stand_ins_stay_without_data() {
    let mut doc = tetrahedron();
    let length = doc.bin.len();
    let compressed = |buffer: u32| json!({"ACME_compression": {"buffer": buffer, "byteOffset": 1, "byteLength": 2}});
    doc.root["buffers"] = json!([{"byteLength": length}, {"byteLength": 48, "extras": "stand-in"},
        {"byteLength": 3, "uri": "data:,abc"}]);
    doc.push("bufferViews", json!({"buffer": 1, "byteLength": 48, "extensions": compressed(2)}));
    doc.push("bufferViews", json!({"buffer": 2, "byteOffset": 1, "byteLength": 2, "extensions": compressed(0)}));
    let back = again(&open(&doc));
    let start = length.next_multiple_of(4);
    let json = back.json();
    assert_eq!(json["buffers"], json!([{"byteLength": start + 3}, {"byteLength": 48, "extras": "stand-in"}]));
    let moved = json!({"ACME_compression": {"buffer": 0, "byteOffset": start + 1, "byteLength": 2}});
    assert_eq!(json["bufferViews"][2], json!({"buffer": 1, "byteLength": 48, "extensions": moved}));
    let last = json!({"buffer": 0, "byteOffset": start + 1, "byteLength": 2, "extensions": compressed(0)});
    assert_eq!(json["bufferViews"][3], last);
    assert_eq!(json["bufferViews"][0], open(&doc).json()["bufferViews"][0]);
    let bytes = open(&doc).glb().unwrap().to_vec();
    assert!(bytes.ends_with(b"abc\0"));
}

#[test]
fn texture_coordinates_are_written_downwards() -> Result<()> {
    let obj = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nvt 0 0\nvt 1 0\nvt 0 0.25\nf 1/1 2/2 3/3\nf 3/1 2/2 4/3\n";
    let parsed = skinbind::io::obj::parse_all(obj.as_bytes())?;
    let split = parsed.texture.split(&parsed.mesh)?;
    let back = again(&Document::from_textured(&[("sheet", &split)])?);
    let attributes = &back.json()["meshes"][0]["primitives"][0]["attributes"];
    let accessor = &back.json()["accessors"][attributes["TEXCOORD_0"].as_u64().unwrap() as usize];
    assert_eq!((&accessor["type"], &accessor["count"]), (&json!("VEC2"), &json!(5)));
    let view = &back.json()["bufferViews"][accessor["bufferView"].as_u64().unwrap() as usize];
    let glb = back.glb()?.to_vec();
    let chunk = glb.windows(4).position(|w| w == b"BIN\0").unwrap() + 4;
    let start = chunk + view["byteOffset"].as_u64().unwrap() as usize;
    let number = |i: usize| f32::from_le_bytes(glb[start + 4 * i..][..4].try_into().unwrap());
    let found: Vec<[f32; 2]> = (0..5).map(|v| [number(2 * v), number(2 * v + 1)]).collect();
    assert_eq!(found, [[0., 1.], [1., 1.], [0., 0.75], [0., 0.75], [0., 1.]]);
    // A mesh without coordinates gets none.
    let bare = skinbind::io::obj::parse_all(obj.replace("/1", "").replace("/2", "").replace("/3", "").as_bytes())?;
    let bare = again(&Document::from_textured(&[("sheet", &bare.texture.split(&bare.mesh)?)])?);
    assert!(bare.json()["meshes"][0]["primitives"][0]["attributes"]["TEXCOORD_0"].is_null());
    Ok(())
}
