//! The program as its users run it: exit codes, messages, files that appear or do not, JSON on stdout.
#![cfg(feature = "cli")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A closed box of 1 x 4 x 1; the last two faces are its top.
const BOX: &str = "\
v 0 0 0\nv 1 0 0\nv 0 4 0\nv 1 4 0\nv 0 0 1\nv 1 0 1\nv 0 4 1\nv 1 4 1\n\
f 1 3 4 2\nf 5 6 8 7\nf 1 2 6 5\nf 1 5 7 3\nf 2 4 8 6\nf 3 7 8\nf 3 8 4\n";

const SKELETON: &str = r#"{"bones": [
{"name": "low", "head": [0.5, 0.5, 0.5], "tail": [0.5, 2, 0.5], "parent": null},
{"name": "high", "head": [0.5, 2, 0.5], "tail": [0.5, 3.5, 0.5], "parent": "low"}]}"#;

struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// A folder with the inputs `box.obj` and `bones.json`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box.obj"), BOX).unwrap();
    fs::write(folder.path().join("bones.json"), SKELETON).unwrap();
    folder
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

/// `bind box.obj -s bones.json --resolution 16` and more.
fn bind(folder: &Path, more: &[&str]) -> Run {
    run(folder, &[&["bind", "box.obj", "-s", "bones.json", "--resolution", "16"], more].concat())
}

fn ok(run: Run) -> Run {
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run
}

/// All files but the inputs, with their bytes.
fn others(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap_or_default()))
        .filter(|(name, _)| !["box.obj", "bones.json"].contains(&name.as_str()))
        .collect();
    files.sort();
    files
}

fn names(folder: &Path) -> Vec<String> {
    others(folder).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn bind_writes_all_outputs_and_reports() {
    let folder = folder();
    let outputs = ["-o", "o.glb", "-o", "o.gltf", "-o", "o.mhw", "--report", "r.json", "--json", "-q"];
    let done = ok(bind(folder.path(), &outputs));
    assert_eq!(names(folder.path()), ["o.bin", "o.glb", "o.gltf", "o.mhw", "r.json"]);
    assert_eq!(done.stderr, "", "quiet");
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    let written: Value = serde_json::from_slice(&fs::read(folder.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(report, written);
    for (key, value) in [("vertices", 8), ("triangles", 12), ("bones", 2), ("components", 1), ("resolution", 16)] {
        assert_eq!(report[key], value, "{key}");
    }
    assert_eq!((&report["method"], &report["device"]), (&"voxel-heat".into(), &"cpu".into()));
    assert!(report["peak_bytes"].as_u64().unwrap() > 10_000);
    let seconds = report["seconds"].as_object().unwrap();
    let stages: f64 = seconds.iter().filter(|(k, _)| *k != "total").map(|(_, s)| s.as_f64().unwrap()).sum();
    assert!(seconds.contains_key("read") && seconds.contains_key("write"));
    // The same few numbers, added in the same order.
    assert!((stages - seconds["total"].as_f64().unwrap()).abs() < 1e-12);
    for other in ["o.mhw", "o.gltf"] {
        // Weights in a glTF file are rounded to 32 bits or less.
        ok(run(folder.path(), &["compare", "o.glb", other, "--tolerance", "1e-4"]));
    }
}

#[test]
fn every_kind_of_fault_has_its_exit_code_and_leaves_the_folder_alone() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("there.glb"), "old").unwrap();
    fs::write(path.join("nan.obj"), BOX.replace("v 1 4 1", "v 1 nan 1")).unwrap();
    fs::write(path.join("cycle.json"), SKELETON.replace("null", "\"high\"")).unwrap();
    let before = others(path);
    let base = ["bind", "box.obj", "-s", "bones.json"];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    for (code, arguments, says) in [
        (2, with(&["--no-such-option"]), "--no-such-option"),
        (2, with(&[]), "--output"),
        (2, with(&["-o", "o.glb", "--resolution", "15"]), "resolution"),
        (2, with(&["-o", "o.glb", "--smoothing", "-1"]), "smoothing"),
        (2, with(&["-o", "o.glb", "--method", "magic"]), "magic"),
        (2, with(&["-o", "o.xyz"]), "o.xyz"),
        (2, with(&["-o", "o.glb", "-o", "./o.glb"]), "o.glb"),
        (3, vec!["bind", "absent.obj", "-s", "bones.json", "-o", "o.glb"], "absent.obj"),
        (3, vec!["bind", "box.obj", "-o", "o.glb"], "box.obj"),
        (3, vec!["bind", "nan.obj", "-s", "bones.json", "-o", "o.glb"], "nan.obj: line 8"),
        (3, vec!["bind", "nan.obj", "-s", "bones.json", "-o", "there.glb", "--force"], "nan.obj: line 8"),
        (3, vec!["bind", "box.obj", "-s", "cycle.json", "-o", "o.glb"], "cycle.json"),
        (3, vec!["bind", "bones.json", "-s", "bones.json", "-o", "o.glb"], "bones.json"),
        (3, vec!["inspect", "there.glb"], "there.glb"),
        (3, with(&["-o", "o.glb", "--exclude", "tail"]), "tail"),
        (4, with(&["-o", "nowhere/o.glb"]), "nowhere"),
        (4, with(&["-o", "there.glb"]), "there.glb"),
        (4, with(&["-o", "o.mhw", "--report", "there.glb"]), "there.glb"),
        (5, with(&["-o", "o.glb", "--device", "no-such-device"]), "no-such-device"),
    ] {
        let run = run(path, &arguments);
        assert_eq!(run.code, Some(code), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(says), "{arguments:?} does not name {says}: {}", run.stderr);
        assert!((1..=10).contains(&run.stderr.lines().count()), "{arguments:?}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{arguments:?}");
        assert_eq!(others(path), before, "{arguments:?} changed the folder");
    }
}

#[test]
fn existing_outputs_are_replaced_with_force_and_never_by_a_dry_run() {
    let folder = folder();
    let path = folder.path();
    ok(bind(path, &["--dry-run", "--report", "r.json"]));
    ok(bind(path, &["--dry-run", "-o", "o.mhw"]));
    assert!(names(path).is_empty());
    fs::write(path.join("o.mhw"), "old").unwrap();
    ok(bind(path, &["-o", "o.mhw", "--force"]));
    let weights: Value = serde_json::from_slice(&fs::read(path.join("o.mhw")).unwrap()).unwrap();
    assert_eq!(weights["weights"].as_object().unwrap().len(), 2);
}

#[test]
fn warnings_stand_on_stderr_unless_quiet() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("far.json"), SKELETON.replace("0.5, 0.5, 0.5", "900, 0.5, 0.5")).unwrap();
    let said = |more: &[&str]| {
        let arguments = [&["bind", "box.obj", "-s", "far.json", "--dry-run", "--json"], more].concat();
        let run = ok(run(path, &arguments));
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert!(!report["warnings"].as_array().unwrap().is_empty());
        run.stderr
    };
    assert!(said(&[]).lines().any(|line| line.starts_with("warning: ")));
    assert_eq!(said(&["-q"]), "");
}

#[test]
fn inspect_tells_closed_from_open() {
    let folder = folder();
    let path = folder.path();
    let open: String = BOX.lines().take(8 + 5).map(|l| format!("{l}\n")).collect();
    fs::write(path.join("open.obj"), open).unwrap();
    let mesh = |file: &str| {
        let text = ok(run(path, &["inspect", file, "--json"])).stdout;
        serde_json::from_str::<Value>(&text).unwrap()["mesh"].clone()
    };
    let closed = mesh("box.obj");
    assert_eq!((&closed["watertight"], &closed["holes"], &closed["triangles"]), (&true.into(), &0.into(), &12.into()));
    let open = mesh("open.obj");
    assert_eq!((&open["watertight"], &open["holes"], &open["boundary_edges"]), (&false.into(), &1.into(), &4.into()));
    ok(bind(path, &["-o", "o.glb"]));
    let table = ok(run(path, &["inspect", "o.glb"])).stdout;
    for word in ["watertight", "joints in use", "high", "weight sums"] {
        assert!(table.contains(word), "{word}: {table}");
    }
}

#[test]
fn compare_measures_and_judges() {
    let folder = folder();
    let path = folder.path();
    let put = |name: &str, low: &str, high: &str| {
        let text = format!("{{\"name\": \"\", \"version\": 1, \"weights\": {{\"low\": {low}, \"high\": {high}}}}}");
        fs::write(path.join(name), text).unwrap();
    };
    put("a.mhw", "[[0, 1], [1, 0.75]]", "[[1, 0.25]]");
    put("b.mhw", "[[0, 1], [1, 0.25]]", "[[1, 0.75]]");
    put("longer.mhw", "[[0, 1], [1, 1], [2, 1]]", "[]");
    fs::write(path.join("strangers.mhw"), "{\"weights\": {\"x\": [[0, 1], [1, 1]]}}").unwrap();
    let compare = |more: &[&str]| run(path, &[&["compare"], more].concat());
    let same: Value = serde_json::from_str(&ok(compare(&["a.mhw", "a.mhw", "--json"])).stdout).unwrap();
    assert_eq!((&same["max_difference"], &same["dominant_agreement"]), (&0.0.into(), &1.0.into()));
    let other: Value = serde_json::from_str(&ok(compare(&["a.mhw", "b.mhw", "--json"])).stdout).unwrap();
    assert_eq!((&other["max_difference"], &other["mean_difference"]), (&0.5.into(), &0.25.into()));
    assert_eq!(other["worst_vertices"][0]["vertex"], 1);
    ok(compare(&["a.mhw", "b.mhw", "--tolerance", "0.5"]));
    let failed = compare(&["a.mhw", "b.mhw", "--tolerance", "0.4"]);
    assert!(failed.code == Some(6) && failed.stderr.contains("vertex 1"), "{}", failed.stderr);
    for file in ["longer.mhw", "strangers.mhw", "absent.mhw"] {
        let refused = compare(&["a.mhw", file]);
        assert!(refused.code == Some(3) && refused.stderr.contains(file), "{}", refused.stderr);
    }
}

/// Whatever adapters there are, or none.
#[cfg(feature = "gpu")]
#[test]
fn devices_are_listed_and_unknown_ones_refused() {
    let folder = folder();
    let path = folder.path();
    let listed: Value = serde_json::from_str(&ok(run(path, &["devices", "--json"])).stdout).unwrap();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
    let table = ok(run(path, &["devices"])).stdout;
    let refused = bind(path, &["-o", "o.glb", "--device", "no-such-device"]);
    assert_eq!(refused.code, Some(5));
    for name in names.iter().chain(&["cpu"]) {
        assert!(refused.stderr.contains(name), "{}", refused.stderr);
        assert!(*name == "cpu" || table.contains(name), "{table}");
    }
    for command in ["verify", "bench"] {
        assert_eq!(run(path, &[command, "--device", "no-such-device"]).code, Some(5), "{command}");
        assert_eq!(run(path, &[command, "--resolution", "9"]).code, Some(2), "{command}");
    }
}

#[test]
fn help_shows_the_pipeline_and_examples() {
    let folder = folder();
    assert!(ok(run(folder.path(), &["--help"])).stdout.contains("weights"));
    for command in ["bind", "inspect", "compare", "pose", "render", "demo"] {
        let help = ok(run(folder.path(), &[command, "--help"])).stdout;
        assert!(help.contains(&format!("Examples:\n  skinbind {command}")), "{help}");
    }
    assert_eq!(run(folder.path(), &[]).code, Some(2));
}

#[test]
fn the_demo_writes_a_rigged_and_animated_character_and_may_do_so_again() {
    let folder = folder();
    let path = folder.path();
    for _ in 0..2 {
        let said = ok(run(path, &["demo"])).stdout;
        assert!(said.contains("character.glb") && said.contains("inspect"), "{said}");
        let written =
            ["body.obj", "character.glb", "character.png", "skeleton.json", "weights-upper_arm.L.png", "weights.png"];
        assert_eq!(names(&path.join("skinbind-demo")), written);
    }
    let text = ok(run(path, &["inspect", "skinbind-demo/character.glb", "--json"])).stdout;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["mesh"]["watertight"], true);
    assert_eq!(report["skin"]["joints"], 38);
    assert_eq!(report["skin"]["joints_used"], 38);
    assert_eq!(report["contents"]["animations"], 2);
}

/// The input is a pipe: the program has set up everything by the time it opens it, and cannot finish before it is fed.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_with_130_and_leaves_no_file() {
    use std::io::Write;
    let folder = folder();
    let path = folder.path();
    let pipe = path.join("pipe.obj");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let child = Command::new(env!("CARGO_BIN_EXE_skinbind"))
        .args(["bind", "pipe.obj", "-s", "bones.json", "-o", "o.glb", "--resolution", "256"])
        .current_dir(path)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut feed = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    feed.write_all(BOX.as_bytes()).unwrap();
    drop(feed);
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("interrupted"), "{message}");
    fs::remove_file(&pipe).unwrap();
    assert!(names(path).is_empty(), "{:?}", names(path));
}
