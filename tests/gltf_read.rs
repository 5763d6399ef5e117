//! Meshes and skeletons in glTF files are read as the specification says.

#[path = "common/gltf_doc.rs"]
mod gltf_doc;

use gltf_doc::{CORNERS, Doc, U8, U16, U32, apart, open, tetrahedron};
use serde_json::json;
use skinbind::glam::DVec3;

/// Mode, indices, and the triangles they mean.
type ListCase<'a> = (u32, Option<&'a [u32]>, Vec<[u32; 3]>);
/// Component type, whether normalised, the bytes of an element with its padding, and the position they mean.
type ElementCase<'a> = (u32, bool, &'a [u8], [f64; 3]);

#[test]
fn every_kind_of_triangle_list_is_read() {
    let points = [[0., 0., 0.], [1., 0., 0.], [0., 1., 0.], [1., 1., 0.], [0., 2., 0.]];
    let bytes = |list: &[u32], component: u32| -> Vec<u8> {
        list.iter().flat_map(|n| n.to_le_bytes()[..[1, 0, 2, 0, 4][component as usize - 5121]].to_vec()).collect()
    };
    let strip = vec![[0, 1, 2], [1, 3, 2], [2, 3, 4]];
    let cases: [ListCase; 6] = [
        (4, Some(&[0, 1, 2, 2, 1, 3]), vec![[0, 1, 2], [2, 1, 3]]),
        (5, None, strip.clone()),
        (5, Some(&[0, 1, 2, 3, 4]), strip),
        (5, Some(&[0, 1, 2, 2, 2, 4, 3]), vec![[0, 1, 2], [2, 4, 3]]),
        (6, Some(&[0, 1, 3, 2]), vec![[1, 3, 0], [3, 2, 0]]),
        (6, None, vec![[1, 2, 0], [2, 3, 0], [3, 4, 0]]),
    ];
    for (mode, corners, expected) in cases {
        for component in [U8, U16, U32] {
            let mut doc = Doc::new(json!([{"mesh": 0}]));
            let p = doc.positions(&points);
            let mut primitive = json!({"attributes": {"POSITION": p}, "mode": mode});
            if let Some(list) = corners {
                primitive["indices"] = doc.column(&bytes(list, component), component, "SCALAR", list.len()).into();
            }
            doc.mesh(json!([primitive]));
            let (mesh, warnings) = open(&doc).mesh(false).unwrap();
            assert_eq!(mesh.triangles(), expected, "mode {mode}, type {component}, {corners:?}");
            assert!(warnings.is_empty());
        }
    }
}

#[test]
fn strides_offsets_and_quantised_positions_are_read() {
    let cases: [ElementCase; 5] = [
        (5120, false, &[1, 255, 3, 0], [1., -1., 3.]),
        (5120, true, &[127, 129, 128, 0], [1., -1., -1.]),
        (U8, true, &[255, 0, 51, 0], [1., 0., 0.2]),
        (5122, true, &[255, 127, 1, 128, 0, 0, 0, 0], [1., -1., 0.]),
        (U16, false, &[1, 0, 0, 1, 255, 255, 0, 0], [1., 256., 65535.]),
    ];
    for (component, normalized, element, expected) in cases {
        let mut doc = Doc::new(json!([{"mesh": 0}]));
        let mut bytes = vec![0xee; 8];
        for _ in 0..3 {
            bytes.extend(element);
        }
        let view = doc.view(&bytes, Some(element.len()));
        let accessor = json!({"bufferView": view, "byteOffset": 8, "componentType": component, "normalized": normalized,
            "type": "VEC3", "count": 3});
        let p = doc.push("accessors", accessor);
        doc.mesh(json!([{"attributes": {"POSITION": p}}]));
        doc.root["extensionsRequired"] = json!(["KHR_mesh_quantization"]);
        let (mesh, _) = open(&doc).mesh(false).unwrap();
        let expected = [DVec3::from_array(expected); 3];
        assert_eq!(mesh.positions(), expected, "type {component}, normalized {normalized}");
    }
}

#[test]
fn sparse_accessors_replace_elements_of_a_base_or_of_zeros() {
    for based in [true, false] {
        let mut doc = tetrahedron();
        let rows = doc.view(&[2, 3], None);
        let values = doc.view(bytemuck::cast_slice(&[[7f32, 8., 9.], [4., 5., 6.]]), None);
        doc.root["accessors"][0]["sparse"] = json!({"count": 2,
            "indices": {"bufferView": rows, "componentType": U8}, "values": {"bufferView": values}});
        if !based {
            doc.root["accessors"][0].as_object_mut().unwrap().remove("bufferView");
        }
        let (mesh, _) = open(&doc).mesh(false).unwrap();
        let second = if based { [1., 3., 0.] } else { [0., 3., 0.] };
        let expected = [[0., 3., 0.], second, [7., 11., 9.], [4., 8., 6.]].map(DVec3::from_array);
        assert_eq!(mesh.positions(), expected, "based {based}");
    }
}

#[test]
fn node_transforms_of_both_kinds_stack() {
    let mut doc = tetrahedron();
    let half = std::f64::consts::FRAC_1_SQRT_2;
    doc.root["nodes"] = json!([
        {"mesh": 0, "translation": [10, 0, 0], "rotation": [0, 0, half, half], "scale": [2, 3, 4]},
        {"children": [0], "matrix": [0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 100, 1]},
    ]);
    let (mesh, _) = open(&doc).mesh(false).unwrap();
    // Scale, quarter turn about z, shift by (10, 0, 0); then (x, y, z) -> (z, x, y) and shift by (0, 0, 100).
    let expected = CORNERS.map(|[x, y, z]| {
        let (x, y, z) = (2.0 * f64::from(x), 3.0 * f64::from(y), 4.0 * f64::from(z));
        let (x, y) = (10.0 - y, x);
        DVec3::new(z, x, y + 100.0)
    });
    assert!(apart(mesh.positions(), &expected) < 1e-13, "f64 rounding at a size of 100");
    assert!(apart(mesh.positions(), &expected.map(|p| p + DVec3::X * 1e-6)) > 1e-13);
}

#[test]
fn tails_follow_the_straightest_child_and_leaves_go_on() {
    let mut doc = tetrahedron();
    doc.root["nodes"] = json!([
        {"mesh": 0},
        {"name": "hips", "translation": [0, 1, 0], "children": [2, 3]},
        {"name": "leg", "translation": [0.2, -1, 0]},
        {"name": "not a joint", "translation": [0, 0.5, 0], "children": [4]},
        {"name": "spine", "translation": [0, 0.5, 0], "children": [5, 6]},
        {"name": "arm", "translation": [1, 0, 0]},
        {"name": "neck", "translation": [0.1, 1, 0]},
    ]);
    doc.root["skins"] = json!([{"joints": [6, 1, 2, 4, 5]}]);
    let rig = open(&doc).skeleton(None).unwrap().unwrap();
    let bones = rig.skeleton.bones();
    let of = |name: &str| &bones[rig.skeleton.find(name).unwrap()];
    assert_eq!(bones[0].name, "neck");
    assert_eq!(of("spine").parent, rig.skeleton.find("hips"), "over the node that is no joint");
    assert_eq!(of("spine").head, DVec3::new(0.0, 2.0, 0.0));
    // Hips come from nowhere: the child with most joints below. The neck is more in line with the spine than the arm.
    assert_eq!(of("hips").tail, of("spine").head);
    assert_eq!(of("spine").tail, of("neck").head);
    let length = of("spine").head.distance(of("spine").tail);
    assert!((of("arm").tail - DVec3::new(1.0 + length / 2.0, 2.0, 0.0)).length() < 1e-15);
    assert!((of("leg").head - of("leg").tail).length() - 0.5 < 1e-15);

    let below = open(&doc).skeleton(Some("not a joint")).unwrap().unwrap();
    let names: Vec<&str> = below.skeleton.bones().iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["not a joint", "spine", "arm", "neck"]);
    let single = open(&doc).skeleton(Some("arm")).unwrap().unwrap();
    assert_eq!(single.skeleton.bones()[0].head, single.skeleton.bones()[0].tail, "one bone alone is a point");
    assert!(open(&doc).skeleton(Some("tail")).unwrap_err().to_string().contains("\"tail\""));
    assert!(open(&tetrahedron()).skeleton(None).unwrap().is_none());
}
