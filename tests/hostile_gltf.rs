//! Broken and hostile glTF files: a clear error that names the thing at fault, never a panic, a hang or a huge allocation.

#[path = "common/gltf_doc.rs"]
mod gltf_doc;

use gltf_doc::{Doc, F32, U8, glb, skinned, tetrahedron};
use serde_json::{Value, json};
use skinbind::io::gltf::Document;
use skinbind::model::{Influence, Weights};
use skinbind::{Error, Result};

#[cfg(feature = "cli")]
#[global_allocator]
static ALLOCATOR: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

/// Everything that reads a document, and a new skin written into it where it has a mesh.
fn use_all(bytes: Vec<u8>) -> Result<()> {
    let mut document = Document::from_bytes(bytes, None)?;
    let weights = document.weights().map(|_| ());
    let rig = document.skeleton(None);
    let below = document.skeleton(Some("hips")).map(|_| ());
    let (mesh, _) = document.mesh(true)?;
    let rig = rig?;
    weights?;
    if rig.is_some() {
        below?;
    }
    if let Some(rig) = rig {
        let mut weights = Weights::default();
        mesh.positions().iter().for_each(|_| weights.push([Influence { joint: 0, weight: 1.0 }]));
        document.add_skin(&rig.skeleton, Some(&rig.nodes), &weights)?;
        document.add_skin(&rig.skeleton, None, &weights)?;
    }
    let written = document.glb()?.to_vec();
    let (again, _) = Document::from_bytes(written, None)?.mesh(true)?;
    assert_eq!(again.positions().len(), mesh.positions().len());
    Ok(())
}

fn message(bytes: Vec<u8>) -> String {
    use_all(bytes).expect_err("this file is broken").to_string()
}

/// A change to a good file, and what the error must say.
type Fault = (&'static str, fn(&mut Value), &'static [&'static str]);

#[test]
fn each_fault_is_named() {
    let faults: &[Fault] = &[
        ("/accessors/0/count", |v| *v = json!(4_000_000_000u64), &["accessor 0", "48000000000 bytes", "bufferView 0"]),
        ("/accessors/0/count", |v| *v = json!(u64::MAX), &["accessor 0"]),
        ("/accessors/0/count", |v| *v = json!(-1), &["accessor 0", "count is -1"]),
        ("/accessors/0/count", |v| *v = json!(1.5), &["accessor 0", "count is 1.5"]),
        ("/accessors/0/count", |v| *v = json!("4"), &["accessor 0", "count is \"4\""]),
        ("/accessors/0/count", |v| *v = json!(1e300), &["accessor 0", "count"]),
        ("/accessors/0/count", |v| *v = json!(0), &["accessor 0", "count is 0"]),
        ("/accessors/0/byteOffset", |v| *v = json!(u64::MAX), &["accessor 0", "bufferView 0"]),
        ("/accessors/0/componentType", |v| *v = json!(5124), &["accessor 0", "componentType 5124"]),
        ("/accessors/0/type", |v| *v = json!("VEC2"), &["accessor 0", "POSITION"]),
        ("/accessors/0/type", |v| *v = json!("VEC9"), &["accessor 0", "VEC9"]),
        ("/accessors/0/normalized", |v| *v = json!(1), &["accessor 0", "normalized"]),
        ("/accessors/0/bufferView", |v| *v = json!(77), &["accessor 0", "number 77", "bufferViews"]),
        ("/accessors/1/bufferView", |v| *v = json!(0.5), &["accessor 1", "bufferView is 0.5"]),
        ("/bufferViews/0/byteLength", |v| *v = json!(1_000_000), &["bufferView 0", "buffer 0"]),
        ("/bufferViews/0/byteOffset", |v| *v = json!(u64::MAX), &["bufferView 0"]),
        ("/bufferViews/0/byteStride", |v| *v = json!(0), &["byteStride 0", "bufferView 0"]),
        ("/bufferViews/0/byteStride", |v| *v = json!(1u64 << 62), &["accessor 0", "bufferView 0"]),
        ("/bufferViews/0/buffer", |v| *v = json!(3), &["bufferView 0", "number 3"]),
        ("/buffers/0/byteLength", |v| *v = json!(100_000), &["buffer 0", "truncated", "100000"]),
        ("/buffers/0/uri", |v| *v = json!("a.bin"), &["buffer 0", "folder"]),
        ("/buffers/0/uri", |v| *v = json!("data:,"), &["buffer 0", "truncated"]),
        ("/buffers/0/uri", |v| *v = json!("data:;base64,****"), &["buffer 0", "base64"]),
        ("/buffers/0/uri", |v| *v = json!(5), &["buffer 0", "uri is 5"]),
        ("/meshes/0/primitives/0/mode", |v| *v = json!(9), &["mesh 0, primitive 0", "mode 9"]),
        ("/meshes/0/primitives/0/mode", |v| *v = json!(1), &["no faces"]),
        ("/meshes/0/primitives/0/indices", |v| *v = json!(50), &["mesh 0, primitive 0", "number 50"]),
        ("/meshes/0/primitives/0/indices", |v| *v = json!(0), &["accessor 0", "indices"]),
        ("/meshes/0/primitives/0/attributes", |v| *v = json!({}), &["mesh 0, primitive 0", "POSITION"]),
        ("/meshes/0/primitives/0/attributes", |v| *v = json!([]), &["mesh 0, primitive 0", "POSITION"]),
        ("/meshes/0/primitives/0/attributes/WEIGHTS_0", |v| *v = json!(1), &["WEIGHTS_0"]),
        ("/meshes/0/primitives/0/attributes/WEIGHTS_0", |v| *v = Value::Null, &["JOINTS_0 and WEIGHTS_0"]),
        ("/meshes/0/primitives", |v| *v = json!({}), &["mesh 0", "primitives"]),
        ("/nodes/0/mesh", |v| *v = json!(2), &["node 0", "number 2 of meshes"]),
        ("/nodes/0/skin", |v| *v = json!(2), &["node 0", "number 2 of skins"]),
        ("/nodes/0/translation", |v| *v = json!([1, 2]), &["node 0", "translation has 2 numbers"]),
        ("/nodes/0/translation", |v| *v = json!([1, 2, "x"]), &["node 0", "\"x\""]),
        ("/nodes/0/matrix", |v| *v = vec![1; 16].into(), &["node 0", "not affine"]),
        ("/nodes/1/scale", |v| *v = json!([0, 1, 1]), &["node 1", "no inverse"]),
        ("/nodes/1/translation", |v| *v = json!([1e300, 1e300, 0]), &["vertex 0", "x is 1"]),
        ("/nodes/1/children", |v| *v = json!([9]), &["node 1", "number 9"]),
        ("/nodes/1/children", |v| *v = json!([2, 2]), &["node 2", "two parents"]),
        ("/nodes/1/children", |v| *v = json!([1]), &["node 1", "cycle"]),
        ("/nodes/2/children", |v| *v = json!([1]), &["node 1", "cycle"]),
        ("/nodes/2", |v| *v = json!("node"), &["node 2", "not an object"]),
        ("/nodes", |v| *v = json!(7), &["nodes is 7"]),
        ("/skins/0/joints", |v| *v = json!([]), &["skin 0", "no joints"]),
        ("/skins/0/joints", |v| *v = json!([1, 1]), &["skin 0", "joint twice"]),
        ("/skins/0/joints", |v| *v = json!([1]), &["vertex 0", "joint 1"]),
        ("/skins/0/joints", |v| *v = json!([1, 2, 0]), &["skin 0", "2 inverse bind matrices for 3 joints"]),
        ("/skins/0/joints/1", |v| *v = json!(99), &["skin 0", "number 99"]),
        ("/skins/0/inverseBindMatrices", |v| *v = json!(0), &["accessor 0", "inverse bind"]),
        ("/asset/version", |v| *v = json!("1.0"), &["1.0"]),
        ("/asset", |v| *v = Value::Null, &["asset"]),
        ("/extensionsRequired", |v| *v = json!(["KHR_draco_mesh_compression"]), &["KHR_draco", "decompress"]),
        ("/extensionsRequired", |v| *v = json!(["KHR_meshopt_compression"]), &["KHR_meshopt", "decompress"]),
        ("/extensionsRequired", |v| *v = json!(["ACME_shape"]), &["ACME_shape", "without"]),
        ("/extensionsRequired", |v| *v = json!([{}]), &["extensionsRequired"]),
    ];
    for (path, change, expected) in faults {
        let mut doc = skinned();
        doc.root["buffers"] = json!([{"byteLength": doc.bin.len()}]);
        use_all(doc.glb()).expect("good before it is changed");
        change(slot(&mut doc.root, path));
        let text = message(doc.glb());
        for part in *expected {
            assert!(text.contains(part), "{path}: \"{part}\" is not in: {text}");
        }
    }
}

/// The value at a path, made where it is not there.
fn slot<'a>(root: &'a mut Value, path: &str) -> &'a mut Value {
    path[1..].split('/').fold(root, |at, key| match key.parse::<usize>() {
        Ok(number) => &mut at[number],
        Err(_) => &mut at[key],
    })
}

#[test]
fn a_bad_index_and_bad_numbers_are_named() {
    let mut doc = tetrahedron();
    doc.bin[48 + 2 * 5..][..2].copy_from_slice(&999u16.to_le_bytes());
    let text = message(doc.glb());
    assert!(text.contains("index 999") && text.contains("accessor 1") && text.contains("4 vertices"), "{text}");

    let mut doc = tetrahedron();
    doc.bin[12..16].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(matches!(
        Document::from_bytes(doc.glb(), None).unwrap().mesh(false),
        Err(Error::Coordinate { vertex: 1, axis: 'x', .. })
    ));

    let mut doc = skinned();
    let at = doc.root["bufferViews"][3]["byteOffset"].as_u64().unwrap() as usize;
    doc.bin[at + 16..][..4].copy_from_slice(&(-0.5f32).to_le_bytes());
    let text = message(doc.glb());
    assert!(text.contains("vertex 1") && text.contains("-0.5"), "{text}");
}

#[test]
fn sparse_faults_are_named() {
    let sparse = |rows: &[u8], count: usize| {
        let mut doc = tetrahedron();
        let indices = doc.view(rows, None);
        let values = doc.view(&[0; 24], None);
        doc.root["accessors"][0]["sparse"] = json!({"count": count,
            "indices": {"bufferView": indices, "componentType": U8}, "values": {"bufferView": values}});
        doc.glb()
    };
    assert!(use_all(sparse(&[1, 3], 2)).is_ok());
    assert!(message(sparse(&[1, 4], 2)).contains("element 4"));
    assert!(message(sparse(&[1, 2, 3], 3)).contains("accessor 0, sparse"));
    assert!(message(sparse(&[0, 1, 2, 3, 3], 5)).contains("5 elements to replace"));
}

#[test]
fn compressed_geometry_is_refused_where_it_cannot_be_read_plainly() {
    let mut doc = tetrahedron();
    doc.root["meshes"][0]["primitives"][0]["extensions"] = json!({"KHR_draco_mesh_compression": {"bufferView": 0}});
    assert!(use_all(doc.glb()).is_ok(), "the plain copy is read");
    doc.root["accessors"][0].as_object_mut().unwrap().remove("bufferView");
    let text = message(doc.glb());
    assert!(text.contains("KHR_draco_mesh_compression") && text.contains("decompress"), "{text}");

    let mut doc = tetrahedron();
    doc.root["buffers"] = json!([{"byteLength": doc.bin.len()}, {"byteLength": 48}]);
    doc.root["bufferViews"][0] = json!({"buffer": 1, "byteLength": 48, "extensions": {"EXT_meshopt_compression": {}}});
    let text = message(doc.glb());
    assert!(text.contains("EXT_meshopt_compression") && text.contains("decompress"), "{text}");
}

#[test]
fn a_file_cut_anywhere_is_truncated() {
    let bytes = skinned().glb();
    for length in 0..bytes.len() {
        let text = message(bytes[..length].to_vec());
        assert!(length < 4 || text.contains("truncated"), "{length}: {text}");
    }
    let mut longer = bytes.clone();
    longer.extend([0; 5]);
    let document = Document::from_bytes(longer, None).unwrap();
    assert_eq!(document.mesh(true).unwrap().1.len(), 1, "a warning of 5 bytes too many");
    for (at, value) in [(4, 1u32), (8, 11), (12, 0xffff_fff0), (16, 7)] {
        let mut broken = bytes.clone();
        broken[at..at + 4].copy_from_slice(&value.to_le_bytes());
        assert!(use_all(broken).is_err(), "byte {at}");
    }
}

#[test]
fn json_bombs_are_refused() {
    let deep = [b"[".repeat(1_000_000), b"]".repeat(1_000_000)].concat();
    assert!(message(deep.clone()).contains("JSON"));
    assert!(message(glb(&deep, &[])).contains("JSON"));
    let extras = format!(r#"{{"asset":{{"version":"2.0"}},"extras":{}}}"#, "[".repeat(500) + &"]".repeat(500));
    assert!(message(extras.into_bytes()).contains("recursion"));
    for text in ["", "7", "[]", "{", "{}", "null", r#"{"asset":{"version":"2.0"}}"#, r#"{"asset":{"version":1e999}}"#] {
        assert!(use_all(text.as_bytes().to_vec()).is_err(), "{text}");
    }
}

#[test]
fn paths_that_lead_away_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("in")).unwrap();
    let doc = tetrahedron();
    std::fs::write(folder.path().join("a.bin"), &doc.bin).unwrap();
    let open = |uri: &str| {
        let mut root = doc.root.clone();
        root["buffers"] = json!([{"byteLength": doc.bin.len(), "uri": uri}]);
        let path = folder.path().join("in/x.gltf");
        std::fs::write(&path, serde_json::to_vec(&root).unwrap()).unwrap();
        Document::read(&path)
    };
    let absolute = folder.path().join("a.bin");
    let absolute = absolute.to_str().unwrap();
    let away = [
        "http://x.example/a.bin",
        "../a.bin",
        "%2e%2e/a.bin",
        "..%5ca.bin",
        "y/../../a.bin",
        absolute,
        "file:a.bin",
        "C:\\a.bin",
        "\\a.bin",
        "",
        "a%00b",
        "%ff",
    ];
    for uri in away {
        let text = open(uri).unwrap_err().to_string();
        assert!(text.contains("x.gltf") && text.contains("buffer 0") && text.contains("relative"), "{uri}: {text}");
    }
    let text = open("gone.bin").unwrap_err().to_string();
    assert!(text.contains("gone.bin") && text.contains("cannot read"), "{text}");
    assert!(open(".").is_err(), "a folder is no file");
    std::fs::write(folder.path().join("in/a.bin"), &doc.bin[1..]).unwrap();
    assert!(open("a.bin").unwrap_err().to_string().contains("truncated"));
    std::fs::write(folder.path().join("in/a.bin"), &doc.bin).unwrap();
    assert!(open("a.bin").is_ok());
}

/// Files that are small but ask for much: a mesh on very many nodes, zeros without data, names that are all the same.
/// Quadratic work would take minutes here, linear work takes a moment.
#[test]
fn small_files_do_not_grow() {
    let mut doc = tetrahedron();
    let points = doc.positions(&vec![[0.5; 3]; 50_000]);
    doc.mesh(json!([{"attributes": {"POSITION": points}}]));
    doc.root["nodes"] = vec![json!({"mesh": 1}); 5_000].into();
    assert!(message(doc.glb()).contains("vertices of all nodes"));

    let mut doc = tetrahedron();
    doc.root["accessors"][0] = json!({"componentType": F32, "type": "VEC3", "count": 2_000_000_000});
    assert!(message(doc.glb()).contains("accessor 0: 2000000000 elements without a buffer view"));

    let mut doc = skinned();
    let many = 60_000;
    let nodes = doc.root["nodes"].as_array_mut().unwrap();
    nodes.extend((0..many).map(|i| json!({"name": "same", "children": [i + 4]})));
    nodes.push(json!({"name": "same"}));
    doc.root["nodes"][2]["children"] = json!([3]);
    doc.root["skins"][0] = json!({"joints": (1..many + 3).collect::<Vec<_>>()});
    let rig = Document::from_bytes(doc.glb(), None).unwrap().skeleton(None).unwrap().unwrap();
    assert_eq!(rig.skeleton.len(), many + 2);

    let mut doc = skinned();
    doc.root["nodes"] = vec![json!({"mesh": 0, "skin": 0}); 20_000].into();
    doc.root["skins"][0] = json!({"joints": (0..20_000).collect::<Vec<_>>()});
    assert!(message(doc.glb()).contains("joints of all nodes"));
}

/// A small generator of random numbers (xorshift), so that runs repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

fn samples() -> Vec<Doc> {
    let mut sparse = skinned();
    let rows = sparse.view(&[2, 3], None);
    let values = sparse.view(bytemuck::cast_slice(&[[7f32, 8., 9.], [4., 5., 6.]]), None);
    sparse.root["accessors"][0]["sparse"] = json!({"count": 2,
        "indices": {"bufferView": rows, "componentType": U8}, "values": {"bufferView": values}});
    let mut posed = skinned();
    posed.root["nodes"][2]["rotation"] = json!([0, 0, 0.6, 0.8]);
    posed.root["meshes"][0]["primitives"][0]["targets"] = json!([{"POSITION": 0}]);
    let mut shared = skinned();
    shared.root["nodes"].as_array_mut().unwrap().push(json!({"mesh": 0}));
    shared.root["meshes"][0]["primitives"]
        .as_array_mut()
        .unwrap()
        .push(json!({"attributes": {"POSITION": 0}, "mode": 1}));
    for doc in [&mut sparse, &mut posed, &mut shared] {
        doc.root["buffers"] = json!([{"byteLength": doc.bin.len()}]);
        use_all(doc.glb()).expect("good before it is changed");
    }
    vec![sparse, posed, shared]
}

/// What the mutated files below may take: their size is under 4 kB, and no more than a few copies of what they hold and
/// lists of their nodes can be asked for. Other tests of this file may run at the same time; theirs stay below 400 MB.
#[cfg(feature = "cli")]
const MOST_MB: f32 = 500.0;

fn check_peak() {
    #[cfg(feature = "cli")]
    assert!(ALLOCATOR.peak_usage_as_mb() < MOST_MB, "{} MB", ALLOCATOR.peak_usage_as_mb());
}

#[test]
fn flipped_bytes_never_panic() {
    let mut random = Random(0x5eed);
    let mut fine = 0;
    for doc in samples() {
        let good = doc.glb();
        for _ in 0..1500 {
            let mut bytes = good.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = match random.below(3) {
                    0 => random.below(256) as u8,
                    1 => bytes[at] ^ 1 << random.below(8),
                    _ => b"0192-.e[]{},:\"ntf"[random.below(17)],
                };
            }
            fine += usize::from(use_all(bytes).is_ok());
        }
    }
    assert!(fine > 50, "some changes do no harm, or nothing deep was reached: {fine}");
    check_peak();
}

#[test]
fn changed_json_values_never_panic() {
    let mut random = Random(0xbad5eed);
    let mut fine = 0;
    for doc in samples() {
        let mut paths = Vec::new();
        collect(&doc.root, String::new(), &mut paths);
        for path in &paths {
            for _ in 0..12 {
                let mut doc = doc.clone();
                let Some(value) = doc.root.pointer_mut(path) else { continue };
                *value = strange(&mut random);
                fine += usize::from(use_all(doc.glb()).is_ok());
            }
        }
    }
    assert!(fine > 50, "{fine}");
    check_peak();
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| collect(v, format!("{path}/{i}"), paths)),
        Value::Object(map) => map.iter().for_each(|(k, v)| collect(v, format!("{path}/{k}"), paths)),
        _ => {}
    }
    paths.push(path);
}

fn strange(random: &mut Random) -> Value {
    match random.below(22) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(0.5),
        4 => json!(u64::MAX),
        5 => json!(i64::MIN),
        6 => json!(1e308),
        7 => json!(-1e-320),
        8 => json!("text"),
        9 => json!([]),
        10 => json!({}),
        11 => json!([[0]]),
        12 => json!([0, 1, 2]),
        13 => json!([1, 2]),
        14 => json!(4_294_967_295u32),
        15 => json!(5120 + random.below(8)),
        16 => json!(["VEC2", "VEC3", "VEC4", "MAT4", "SCALAR"][random.below(5)]),
        _ => json!(random.below(12)),
    }
}
