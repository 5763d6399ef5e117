//! Broken text files: whatever is done to them, the readers return a result or an error, and neither panic nor make room for
//! what is not there.

use skinbind::io::{obj, skeleton_json, weights_file};

const OBJ: &str = "\
mtllib a.mtl\nv 0 0 0\nv 1 0 0 0.5 0.5 0.5\r\nv 1 1 0\nv 0 1 1e-1\nv 0.5 0.5 2\nvn 0 0 1\nvt 0 0\n\
f 1/1/1 2/1/1 3/1/1 4/1/1\nf -5//1 -4//1 \\\n -1//1\nf 2 3 5\nf 3 4 5\nf 4 1 5 2 3\nl 1 2\n";
const SKELETON: &str = r#"{"bones": [{"name": "a", "head": [0, 0, 0], "tail": [0, 1, 0], "parent": null},
{"name": "b", "head": [0, 1, 0], "tail": [0, 2e0, 0], "parent": "a", "deform": true},
{"name": "c", "head": [0, 1, 0], "tail": [0, -2, 0], "parent": 0}]}"#;
const WEIGHTS: &str =
    r#"{"name": "w", "version": 110, "weights": {"a": [[0, 1.0], [1, 0.25], [2, 1e-3]], "b": [[1, 0.75]], "c": []}}"#;

/// What is put in at random places: numbers at the edges, and the marks of all three formats.
const WORDS: [&str; 32] = [
    "0",
    "-0",
    "-1",
    "1e39",
    "1e308",
    "1e400",
    "nan",
    "inf",
    "-1.#IND",
    "4294967295",
    "4294967296",
    "-9223372036854775808",
    "99999999999999999999999",
    "0.5",
    "\\",
    "\\\n",
    "\n",
    "\r",
    "\"",
    "{",
    "[",
    "]",
    "}",
    ",",
    ":",
    "/",
    "//",
    "f ",
    "v ",
    "vn ",
    "null",
    "\u{e4}",
];

/// A sequence that is the same in every run (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % limit.max(1) as u64) as usize
    }

    fn mutate(&mut self, text: &mut Vec<u8>) {
        let (a, b) = (self.below(text.len() + 1), self.below(text.len() + 1));
        let range = a.min(b)..a.max(b).min(a.min(b) + 40);
        match self.below(6) {
            0 if !text.is_empty() => {
                let at = self.below(text.len());
                text[at] ^= 1 << self.below(8);
            }
            1 => drop(text.drain(range)),
            2 => {
                let copy = text[range].to_vec();
                text.splice(b..b, copy);
            }
            3 => text.truncate(a.max(b)),
            _ => drop(text.splice(a..a, WORDS[self.below(WORDS.len())].bytes())),
        }
    }
}

/// Feeds mutated texts to a reader and counts what it takes and what it refuses.
fn feed(seed: u64, start: &str, read: impl Fn(&[u8]) -> bool) {
    assert!(read(start.as_bytes()), "the text itself can be read");
    let mut random = Random(seed);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut text = start.as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            random.mutate(&mut text);
        }
        if read(&text) { taken += 1 } else { refused += 1 }
    }
    // Both ways are walked, or the mutations are too tame or too wild to test anything.
    assert!(taken > 500 && refused > 500, "{taken} taken, {refused} refused");
}

#[test]
fn broken_obj_files() {
    feed(1, OBJ, |text| match obj::parse(text) {
        Ok(mesh) => {
            let vertices = mesh.positions().len() as u32;
            assert!(mesh.triangles().iter().flatten().all(|&v| v < vertices));
            true
        }
        Err(error) => {
            assert!(error.to_string().lines().count() <= 2, "{error}");
            false
        }
    });
}

#[test]
fn broken_skeletons() {
    feed(2, SKELETON, |text| skeleton_json::parse(text).is_ok());
}

#[test]
fn broken_weights_files() {
    feed(3, WEIGHTS, |text| match weights_file::parse(text).and_then(|file| file.weights(None)) {
        Ok(weights) => {
            assert!(weights.iter().flatten().all(|i| i.weight.is_finite() && i.weight >= 0.0));
            true
        }
        Err(_) => false,
    });
}

#[test]
fn a_polygon_made_to_take_hours_ends_soon() {
    // A jagged spiral of 60,000 corners, half of them concave: it may be split or refused, but it ends.
    let mut text = String::new();
    let corners = 60_000;
    for i in 0..corners {
        let angle = f64::from(i) * 0.05;
        let radius = 1.0 + f64::from(i) * 1e-4 + if i % 2 == 0 { 0.0 } else { 0.004 };
        text += &format!("v {} {} 0\n", radius * angle.cos(), radius * angle.sin());
    }
    text += "f";
    for i in 1..=corners {
        text += &format!(" {i}");
    }
    match obj::parse(text.as_bytes()) {
        Ok(mesh) => assert_eq!(mesh.triangles().len(), corners as usize - 2),
        Err(error) => assert!(error.to_string().contains("too intricate"), "{error}"),
    }
}
