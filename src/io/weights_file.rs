//! Skin weights as JSON, in the layout of MakeHuman's `.mhw` files: for each bone a list of (vertex, weight).
//!
//! `{"name": "...", "version": 110, "weights": {"hips": [[0, 0.25], [1, 1.0]], "spine": []}}`. Vertices are 0-based in the
//! mesh file's own order. Every bone of the skeleton is written, those without weights with an empty list, so that the
//! file also tells which bones there were.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::error::{Error, Result};
use crate::io::skeleton_json::json_fault;
use crate::model::{Influence, Weights};

/// The version that MakeHuman 1.1 and later write and read.
const VERSION: u32 = 110;
/// Where nothing tells how many vertices a mesh has, at most this many, or so many an entry, are made room for.
const VERTICES_WITHOUT_DOUBT: usize = 1 << 20;
const VERTICES_AN_ENTRY: usize = 64;

/// The weights of one bone as a file lists them: (vertex, weight) in the file's order, a vertex perhaps more than once.
pub type BoneWeights = Vec<(u32, f64)>;

/// What a weights file holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WeightsFile {
    /// The file's own title, perhaps empty.
    pub name: String,
    /// Bones with their weights, in the file's order; no name twice. Weights are finite and not negative; their sums need
    /// not be 1.
    pub bones: Vec<(String, BoneWeights)>,
}

/// Reads a weights file.
///
/// # Errors
/// All under the file's name: [`Error::Read`], and [`Error::Line`] where it is not JSON of this layout, a bone stands twice,
/// a vertex is not a 32-bit number or a weight is negative or not finite.
pub fn read(path: impl AsRef<Path>) -> Result<WeightsFile> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|e| Error::Read(e).in_file(path))?;
    parse(&bytes).map_err(|e| e.in_file(path))
}

/// Reads the text of a weights file; errors as [`read`].
pub fn parse(text: &[u8]) -> Result<WeightsFile> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    serde_json::from_slice(text).map_err(json_fault)
}

/// Writes weights; `bones` are the names by joint number. Numbers are the shortest decimals that give the same f64 again.
///
/// # Errors
/// Those of `out`, and `InvalidData` for a weight that is not finite or a joint without a name, which JSON can not express.
pub fn write(out: &mut impl Write, name: &str, bones: &[&str], weights: &Weights) -> io::Result<()> {
    let columns = by_bone(bones.len(), weights)?;
    write!(out, "{{\"name\": {}, \"version\": {VERSION}, \"weights\": {{", serde_json::to_string(name)?)?;
    for (joint, (bone, column)) in bones.iter().zip(&columns).enumerate() {
        out.write_all(if joint == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, bone)?;
        out.write_all(b": [")?;
        for (i, (vertex, weight)) in column.iter().enumerate() {
            out.write_all(if i == 0 { b"[" } else { b", [" })?;
            serde_json::to_writer(&mut *out, vertex)?;
            out.write_all(b", ")?;
            serde_json::to_writer(&mut *out, weight)?;
            out.write_all(b"]")?;
        }
        out.write_all(b"]")?;
    }
    out.write_all(b"\n}}\n")
}

fn by_bone(bones: usize, weights: &Weights) -> io::Result<Vec<BoneWeights>> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut counts = vec![0; bones];
    for (vertex, row) in weights.iter().enumerate() {
        for i in row {
            if !i.weight.is_finite() {
                return Err(invalid(format!("vertex {vertex} has the weight {}", i.weight)));
            }
            *counts.get_mut(i.joint as usize).ok_or_else(|| invalid(format!("joint {} has no name", i.joint)))? += 1;
        }
    }
    let mut columns: Vec<BoneWeights> = counts.into_iter().map(Vec::with_capacity).collect();
    for (vertex, row) in weights.iter().enumerate() {
        for i in row.iter().filter(|i| i.weight != 0.0) {
            columns[i.joint as usize].push((vertex as u32, i.weight));
        }
    }
    Ok(columns)
}

impl WeightsFile {
    /// One more than the highest vertex that has an entry: all that the file tells of the number of vertices.
    pub fn vertices(&self) -> usize {
        let highest = self.bones.iter().flat_map(|(_, list)| list).map(|&(vertex, _)| vertex).max();
        highest.map_or(0, |v| v as usize + 1)
    }

    /// The weights by vertex; joint numbers follow `bones`. Entries of one bone and vertex add up.
    ///
    /// # Errors
    /// [`Error::Format`] naming the bone and the vertex where that is not below `vertices`. Where `vertices` is `None` it is
    /// taken from the file, and a number out of all proportion to the number of entries is refused.
    pub fn weights(&self, vertices: Option<usize>) -> Result<Weights> {
        let entries: usize = self.bones.iter().map(|(_, list)| list.len()).sum();
        let limit = vertices.unwrap_or_else(|| VERTICES_WITHOUT_DOUBT.max(entries.saturating_mul(VERTICES_AN_ENTRY)));
        for (bone, list) in &self.bones {
            if let Some((vertex, _)) = list.iter().find(|&&(v, _)| v as usize >= limit) {
                let what = match vertices {
                    Some(n) => format!("it names vertex {vertex} (0-based), but the mesh has {n} vertices"),
                    None => format!("it names vertex {vertex}, but the file has only {entries} entries"),
                };
                return Err(Error::format(format!("bone \"{bone}\""), what));
            }
        }
        let count = vertices.unwrap_or_else(|| self.vertices());
        let (starts, rows) = self.by_vertex(count, entries);
        let mut weights = Weights::with_capacity(count, entries);
        for row in starts.windows(2) {
            weights.push(merged(&rows[row[0]..row[1]]));
        }
        Ok(weights)
    }

    /// A counting sort: influences of vertex v at `starts[v]..starts[v + 1]`, in the order of the bones.
    fn by_vertex(&self, count: usize, entries: usize) -> (Vec<usize>, Vec<Influence>) {
        let mut starts = vec![0; count + 1];
        for &(vertex, _) in self.bones.iter().flat_map(|(_, list)| list) {
            starts[vertex as usize + 1] += 1;
        }
        for v in 0..count {
            starts[v + 1] += starts[v];
        }
        let mut at = starts.clone();
        let mut rows = vec![Influence { joint: 0, weight: 0.0 }; entries];
        for (joint, (_, list)) in self.bones.iter().enumerate() {
            for &(vertex, weight) in list {
                rows[at[vertex as usize]] = Influence { joint: joint as u32, weight };
                at[vertex as usize] += 1;
            }
        }
        (starts, rows)
    }
}

/// Influences of one joint, which stand side by side, taken together.
fn merged(row: &[Influence]) -> impl Iterator<Item = Influence> + '_ {
    row.chunk_by(|a, b| a.joint == b.joint)
        .map(|same| Influence { joint: same[0].joint, weight: same.iter().map(|i| i.weight).sum() })
}

impl<'de> Deserialize<'de> for WeightsFile {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(FileVisitor)
    }
}

struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = WeightsFile;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with \"weights\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WeightsFile, A::Error> {
        let mut name = String::new();
        let mut bones = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" => name = map.next_value()?,
                "weights" if bones.is_some() => return Err(de::Error::custom("\"weights\" stands twice")),
                "weights" => bones = Some(map.next_value::<Bones>()?.0),
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        let bones = bones.ok_or_else(|| de::Error::custom("there is no \"weights\""))?;
        Ok(WeightsFile { name, bones })
    }
}

struct Bones(Vec<(String, BoneWeights)>);

impl<'de> Deserialize<'de> for Bones {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(BonesVisitor)
    }
}

struct BonesVisitor;

impl<'de> Visitor<'de> for BonesVisitor {
    type Value = Bones;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("\"weights\" as an object with a list of [vertex, weight] for each bone")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Bones, A::Error> {
        let mut bones: Vec<(String, BoneWeights)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some(bone) = map.next_key::<String>()? {
            if !seen.insert(bone.clone()) {
                return Err(de::Error::custom(format!("bone \"{bone}\" stands twice")));
            }
            let list: BoneWeights = map.next_value().map_err(|e| de::Error::custom(format!("bone \"{bone}\": {e}")))?;
            if let Some((vertex, weight)) = list.iter().find(|(_, w)| !(w.is_finite() && *w >= 0.0)) {
                return Err(de::Error::custom(format!("bone \"{bone}\": the weight of vertex {vertex} is {weight}")));
            }
            bones.push((bone, list));
        }
        Ok(Bones(bones))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(rows: &[&[(u32, f64)]]) -> Weights {
        let mut weights = Weights::default();
        for row in rows {
            weights.push(row.iter().map(|&(joint, weight)| Influence { joint, weight }));
        }
        weights
    }

    #[test]
    fn what_is_written_reads_back_bit_for_bit() {
        let third = 1.0 / 3.0;
        let tiny = f64::from_bits(0x3ca5_5555_5555_5555);
        let given = weights(&[&[(0, third), (2, 1.0 - third)], &[(2, 1.0)], &[], &[(0, tiny), (2, 1.0 - tiny)]]);
        let mut text = Vec::new();
        write(&mut text, "a \"b\"", &["hips", "unused", "sp\u{e4}ne"], &given).unwrap();
        let file = parse(&text).unwrap();
        assert_eq!(file.name, "a \"b\"");
        let names: Vec<_> = file.bones.iter().map(|(n, list)| (n.as_str(), list.len())).collect();
        assert_eq!(names, [("hips", 2), ("unused", 0), ("sp\u{e4}ne", 3)]);
        assert_eq!(file.weights(None).unwrap(), given);
        let mut other = file.clone();
        other.bones[0].1[0].1 = third.next_up();
        assert_ne!(other.weights(None).unwrap(), given, "the control: one bit off is seen");
    }

    #[test]
    fn entries_of_one_bone_and_vertex_add_up_and_other_keys_are_passed_over() {
        let file = parse(
            br#"{"license": "CC0", "weights": {"a": [[1, 0.25], [0, 1], [1, 0.5]], "b": [[1, 0.25]]}, "version": 1}"#,
        );
        let expected = weights(&[&[(0, 1.0)], &[(0, 0.75), (1, 0.25)]]);
        assert_eq!(file.unwrap().weights(None).unwrap(), expected);
    }

    #[test]
    fn messages_name_the_bone_and_the_line() {
        for (text, parts) in [
            ("{\"weights\": {\n\"hips\": [[0, 1.5], [-1, 2]]}}", ["hips", "line 2"]),
            ("{\"weights\": {\n\"hips\": [[0, -0.5]]}}", ["hips", "-0.5"]),
            ("{\"weights\": {\n\"hips\": [[0]]}}", ["hips", "line 2"]),
            ("{\"weights\": {\n\"hips\": [[4294967296, 1]]}}", ["hips", "4294967296"]),
            ("{\"weights\": {\n\"hips\": [[0, 1, 2]]}}", ["hips", "line 2"]),
            ("{\"weights\": {\n\"hips\": [[0, \"1\"]]}}", ["hips", "line 2"]),
            ("{\"weights\": {\"a\": [], \n\"a\": []}}", ["\"a\"", "twice"]),
            ("{\"weights\": {}, \"weights\": {}}", ["weights", "twice"]),
            ("{\"weights\": [[0, 1]]}", ["weights", "line 1"]),
            ("{\"name\": \"x\"}", ["weights", "line 1"]),
            ("{\"weights\": {\"a\": [[0, 1", ["line 1", "column"]),
            ("[]", ["line 1", "weights"]),
        ] {
            let message = parse(text.as_bytes()).expect_err(text).to_string();
            for part in parts {
                assert!(message.contains(part), "{text}: {message}");
            }
        }
    }

    #[test]
    fn vertices_beyond_the_mesh_are_refused_without_room_being_made_for_them() {
        let file = parse(b"{\"weights\": {\"a\": [[0, 1]], \"spine\": [[4294967295, 1]]}}").unwrap();
        assert!(file.weights(None).unwrap_err().to_string().contains("4294967295"));
        let message = file.weights(Some(74)).unwrap_err().to_string();
        assert!(message.contains("spine") && message.contains("4294967295") && message.contains("74"), "{message}");
    }

    #[test]
    fn weights_that_json_can_not_express_are_not_written() {
        for bad in [f64::NAN, f64::INFINITY] {
            assert!(write(&mut Vec::new(), "", &["a"], &weights(&[&[(0, bad)]])).is_err());
        }
        assert!(write(&mut Vec::new(), "", &["a"], &weights(&[&[(1, 1.0)]])).is_err());
    }
}
