//! `skinbind edit` and `skinbind transfer` as their users run them.
#![cfg(feature = "cli")]

mod common;
#[path = "common/gltf_doc.rs"]
mod gltf_doc;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::shapes;
use serde_json::Value;
use skinbind::io::{gltf, obj, weights_file};
use tempfile::TempDir;

const SKELETON: &str = r#"{"bones": [
{"name": "root", "head": [0, 0.1, 0], "tail": [0, 1, 0], "parent": null},
{"name": "arm.L", "head": [0.1, 1, 0], "tail": [0.2, 1.9, 0], "parent": "root"},
{"name": "arm.R", "head": [-0.1, 1, 0], "tail": [-0.2, 1.9, 0], "parent": "root"}]}"#;

struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(folder: &Path, arguments: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_skinbind"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        // Without it Mesa's Vulkan driver writes a line of its own to stderr.
        .env("XDG_RUNTIME_DIR", std::env::temp_dir())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn ok(folder: &Path, arguments: &[&str]) -> Run {
    let run = run(folder, arguments);
    assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.stderr);
    run
}

/// A folder with a capsule `body.obj` and, bound to three bones, `rigged.glb`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let body = shapes::capsule(0.3, 2.0, 6).mesh();
    let mut file = fs::File::create(folder.path().join("body.obj")).unwrap();
    obj::write(&mut file, &body).unwrap();
    fs::write(folder.path().join("bones.json"), SKELETON).unwrap();
    let bind = ["bind", "body.obj", "-s", "bones.json", "-o", "rigged.glb", "--method", "envelope", "--threshold", "0"];
    ok(folder.path(), &bind);
    folder
}

fn report(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn changes_are_made_in_the_order_given() {
    let folder = folder();
    let path = folder.path();
    let smooth_last = ok(path, &["edit", "rigged.glb", "-o", "a.glb", "--limit", "1", "--smooth", "2", "--json", "-q"]);
    assert_eq!(smooth_last.stderr, "", "quiet");
    assert!(report(&smooth_last)["max_influences"].as_u64().unwrap() > 1);
    assert!(report(&smooth_last)["largest_pruned_share"].as_f64().unwrap() > 0.0);
    let limit_last = ok(path, &["edit", "rigged.glb", "-o", "b.mhw", "--smooth", "2", "--limit", "1", "--json", "-q"]);
    assert_eq!(report(&limit_last)["max_influences"], 1);
    // Twice one step is two steps.
    ok(path, &["edit", "rigged.glb", "-o", "c.glb", "--limit", "1", "--smooth", "1", "--smooth=1"]);
    ok(path, &["compare", "a.glb", "c.glb", "--tolerance", "1e-6"]);
    assert_eq!(run(path, &["compare", "a.glb", "b.mhw", "--tolerance", "1e-2"]).code, Some(6), "control");
    // A lock holds for what follows it.
    ok(path, &["edit", "rigged.glb", "-o", "d.glb", "--lock", "root", "--limit", "1", "--smooth", "3"]);
    let weights = |file: &str| gltf::Document::read(&path.join(file)).unwrap().weights().unwrap().unwrap();
    let (before, after) = (weights("rigged.glb"), weights("d.glb"));
    let root = |of: &(Vec<String>, _)| of.0.iter().position(|name| name == "root").unwrap() as u32;
    let mut moved: f64 = 0.0;
    for v in 0..before.1.len() {
        // Files hold 32-bit weights.
        assert!((before.1.weight(v, root(&before)) - after.1.weight(v, root(&after))).abs() < 1e-6);
        moved = moved.max((before.1.weight(v, 1) - after.1.weight(v, 1)).abs());
    }
    assert!(moved > 1e-3);
}

#[test]
fn mirrored_files_are_symmetric() {
    let folder = folder();
    let path = folder.path();
    ok(path, &["edit", "rigged.glb", "-o", "m.mhw", "--mirror", "x"]);
    ok(path, &["edit", "rigged.glb", "-o", "m.glb", "--mirror", "x"]);
    ok(path, &["edit", "m.glb", "-o", "again.mhw", "--mirror", "x"]);
    ok(path, &["compare", "m.mhw", "again.mhw", "--tolerance", "1e-6"]);
    ok(path, &["edit", "m.glb", "-o", "other.glb", "--mirror", "z"]);
    let file = weights_file::read(path.join("m.mhw")).unwrap();
    let sum = |name: &str| -> f64 {
        file.bones.iter().filter(|(n, _)| n == name).flat_map(|(_, list)| list).map(|(_, w)| w).sum()
    };
    assert!(sum("arm.L") > 1.0 && (sum("arm.L") - sum("arm.R")).abs() < 1e-6);
}

#[test]
fn faults_have_their_exit_codes_and_leave_nothing() {
    let folder = folder();
    let path = folder.path();
    let mut doc = gltf_doc::skinned();
    let (joints, weights) = doc.influences(&[[0; 4]; 4], &[[1.0, 0.0, 0.0, 0.0], [0.0; 4], [0.0; 4], [0.0; 4]]);
    doc.root["meshes"][0]["primitives"][0]["attributes"]["JOINTS_0"] = joints.into();
    doc.root["meshes"][0]["primitives"][0]["attributes"]["WEIGHTS_0"] = weights.into();
    fs::write(path.join("bare.glb"), doc.glb()).unwrap();
    fs::write(path.join("plain.glb"), gltf_doc::tetrahedron().glb()).unwrap();
    let before = fs::read_dir(path).unwrap().count();
    for (code, arguments, says) in [
        (2, vec!["edit", "rigged.glb", "-o", "o.glb", "--limit", "0"], "max influences"),
        (2, vec!["edit", "rigged.glb", "-o", "o.glb", "--limit", "x"], "--limit"),
        (2, vec!["edit", "rigged.glb", "-o", "o.glb", "--threshold", "-1"], "threshold"),
        (2, vec!["edit", "rigged.glb", "-o", "o.glb", "--mirror", "w"], "--mirror"),
        (2, vec!["edit", "rigged.glb", "-o", "o.png"], "o.png"),
        (2, vec!["edit", "rigged.glb"], "--output"),
        (3, vec!["edit", "rigged.glb", "-o", "o.glb", "--lock", "tail"], "tail"),
        (3, vec!["edit", "body.obj", "-o", "o.glb"], "body.obj"),
        (3, vec!["edit", "plain.glb", "-o", "o.glb"], "plain.glb"),
        (3, vec!["edit", "bare.glb", "-o", "o.glb"], "vertex 1"),
        (4, vec!["edit", "rigged.glb", "-o", "rigged.glb"], "--force"),
        (2, vec!["transfer", "rigged.glb", "body.obj", "-o", "o.mhw", "--max-angle", "-3"], "angle"),
        (2, vec!["transfer", "rigged.glb", "body.obj", "-o", "o.mhw", "--max-distance", "nan"], "distance"),
        (3, vec!["transfer", "body.obj", "body.obj", "-o", "o.mhw"], "body.obj"),
        (3, vec!["transfer", "rigged.glb", "none.obj", "-o", "o.mhw"], "none.obj"),
        (3, vec!["transfer", "rigged.glb", "rigged.glb", "-o", "o.mhw"], "--replace-skin"),
        (4, vec!["transfer", "rigged.glb", "body.obj", "-o", "no/o.mhw"], "no such folder"),
    ] {
        let run = run(path, &arguments);
        assert_eq!(run.code, Some(code), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(says), "{arguments:?}: {}", run.stderr);
        assert_eq!(fs::read_dir(path).unwrap().count(), before, "{arguments:?}");
    }
    for to in ["root", "nearest"] {
        let done = ok(path, &["edit", "bare.glb", "-o", &format!("{to}.glb"), "--bare", to, "--json"]);
        assert_eq!(report(&done)["bare_filled"], 3);
    }
}

#[test]
fn transferred_weights_come_with_the_skeleton() {
    let folder = folder();
    let path = folder.path();
    let sleeve = shapes::capsule(0.32, 2.0, 5).keep(|c| c.y > 0.2 && c.y < 1.8).mesh();
    obj::write(&mut fs::File::create(path.join("sleeve.obj")).unwrap(), &sleeve).unwrap();
    let outputs = ["-o", "s.glb", "-o", "s.mhw", "--report", "r.json"];
    let done = ok(path, &[&["transfer", "rigged.glb", "sleeve.obj", "--json"], &outputs[..]].concat());
    let written: Value = serde_json::from_slice(&fs::read(path.join("r.json")).unwrap()).unwrap();
    assert_eq!(report(&done), written);
    assert_eq!((&written["vertices"], &written["bones"]), (&sleeve.positions().len().into(), &3.into()));
    let parts = ["matched_vertices", "filled_vertices", "far_vertices"].map(|key| written[key].as_u64().unwrap());
    assert_eq!(parts.iter().sum::<u64>(), sleeve.positions().len() as u64);
    ok(path, &["compare", "s.glb", "s.mhw", "--tolerance", "1e-6"]);
    let (bones, _) = gltf::Document::read(&path.join("s.glb")).unwrap().weights().unwrap().unwrap();
    assert_eq!(bones, ["root", "arm.L", "arm.R"]);
    // A rigged target, onto itself: nothing changes.
    ok(path, &["transfer", "rigged.glb", "rigged.glb", "-o", "same.glb", "--replace-skin", "--threshold", "0"]);
    ok(path, &["compare", "rigged.glb", "same.glb", "--tolerance", "1e-5"]);
}
