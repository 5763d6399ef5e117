//! Skeletons as JSON: a list of bones, each with its name, head, tail, parent and whether it deforms.
//!
//! `{"bones": [{"name": "hips", "head": [x, y, z], "tail": [x, y, z], "parent": "root" | index | null, "deform": true}]}`,
//! or the list alone. Keys that are not named here are passed over.

use std::collections::HashMap;
use std::path::Path;

use glam::DVec3;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::model::{Bone, Skeleton};

/// Reads a skeleton from a JSON file.
///
/// # Errors
/// All under the file's name: [`Error::Read`], [`Error::Line`] where it is not JSON, [`Error::Format`] naming the bone and the
/// field, and those of [`Skeleton::new`].
pub fn read(path: impl AsRef<Path>) -> Result<Skeleton> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|e| Error::Read(e).in_file(path))?;
    parse(&bytes).map_err(|e| e.in_file(path))
}

/// Reads a skeleton from the text of a JSON file; errors as [`read`].
pub fn parse(text: &[u8]) -> Result<Skeleton> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let document: Value = serde_json::from_slice(text).map_err(json_fault)?;
    let list = match &document {
        Value::Array(list) => list,
        Value::Object(object) => match object.get("bones") {
            Some(Value::Array(list)) => list,
            Some(_) => return Err(Error::format("\"bones\"", "is not a list")),
            None => return Err(Error::format("skeleton", "has no list \"bones\"")),
        },
        _ => return Err(Error::format("skeleton", "is neither an object with a list \"bones\" nor a list of bones")),
    };
    let names = list.iter().enumerate().map(|(i, v)| name(i, v)).collect::<Result<Vec<_>>>()?;
    let mut index_of = HashMap::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        index_of.entry(name.as_str()).or_insert(i);
    }
    let bones =
        list.iter().zip(&names).map(|(value, name)| bone(value, name, &index_of)).collect::<Result<Vec<_>>>()?;
    Skeleton::new(bones)
}

/// A skeleton as the text of a JSON file that [`parse`] reads back the same.
pub fn to_text(skeleton: &Skeleton) -> String {
    let bones = skeleton.bones();
    let lines = bones.iter().map(|b| {
        let parent = b.parent.map(|p| bones[p].name.as_str());
        let (head, tail) = (b.head.to_array(), b.tail.to_array());
        json!({"name": b.name, "head": head, "tail": tail, "parent": parent, "deform": b.deform}).to_string()
    });
    format!("{{\"bones\": [\n{}\n]}}\n", lines.collect::<Vec<_>>().join(",\n"))
}

/// The line on which a text stops being the JSON that was expected.
pub(crate) fn json_fault(error: serde_json::Error) -> Error {
    let whole = error.to_string();
    let what = whole.split(" at line ").next().unwrap_or(&whole);
    Error::Line { line: error.line(), what: format!("{what} (column {})", error.column()) }
}

fn name(index: usize, value: &Value) -> Result<String> {
    let place = format!("bone {index} (0-based)");
    match value.get("name") {
        Some(Value::String(name)) if !name.is_empty() => Ok(name.clone()),
        Some(Value::String(_)) => Err(Error::format(place, "its \"name\" is empty")),
        Some(_) => Err(Error::format(place, "its \"name\" is not a text")),
        None if value.is_object() => Err(Error::format(place, "it has no \"name\"")),
        None => Err(Error::format(place, "it is not an object")),
    }
}

fn bone(value: &Value, name: &str, index_of: &HashMap<&str, usize>) -> Result<Bone> {
    let place = || format!("bone \"{name}\"");
    let Value::Object(fields) = value else { return Err(Error::format(place(), "it is not an object")) };
    Ok(Bone {
        name: name.to_owned(),
        head: point(fields, "head").map_err(|what| Error::format(place(), what))?,
        tail: point(fields, "tail").map_err(|what| Error::format(place(), what))?,
        parent: parent(fields.get("parent"), name, index_of)?,
        deform: match fields.get("deform") {
            None | Some(Value::Null) => true,
            Some(Value::Bool(deform)) => *deform,
            Some(_) => return Err(Error::format(place(), "its \"deform\" is neither true nor false")),
        },
    })
}

fn point(fields: &Map<String, Value>, key: &str) -> Result<DVec3, String> {
    let value = fields.get(key).ok_or_else(|| format!("it has no \"{key}\""))?;
    let numbers: Option<Vec<f64>> = value.as_array().and_then(|list| list.iter().map(Value::as_f64).collect());
    match numbers.as_deref() {
        Some(&[x, y, z]) => Ok(DVec3::new(x, y, z)),
        _ => Err(format!("its \"{key}\" is not a list of three numbers")),
    }
}

fn parent(value: Option<&Value>, bone: &str, index_of: &HashMap<&str, usize>) -> Result<Option<usize>> {
    let unknown = |parent: String| Error::UnknownParent { bone: bone.to_owned(), parent };
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => match index_of.get(name.as_str()) {
            Some(&index) => Ok(Some(index)),
            None => Err(unknown(name.clone())),
        },
        Some(Value::Number(number)) => match number.as_i64() {
            Some(-1) => Ok(None),
            // Skeleton::new refuses an index beyond the last bone.
            Some(index) => usize::try_from(index).map(Some).map_err(|_| unknown(number.to_string())),
            None => Err(unknown(number.to_string())),
        },
        Some(_) => Err(Error::format(
            format!("bone \"{bone}\""),
            "its \"parent\" is neither a bone's name, nor its number, nor null",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(fields: &str) -> Result<Skeleton> {
        parse(format!("{{\"bones\": [{{\"name\": \"hips\", {fields}}}]}}").as_bytes())
    }

    #[test]
    fn parents_are_names_numbers_or_none_and_may_come_later() {
        let text = br#"{"version": 2, "bones": [
            {"name": "hand", "head": [0, 2, 0], "tail": [0, 3, 0], "parent": "arm", "roll": 0.5},
            {"name": "arm", "head": [0, 1, 0], "tail": [0, 2, 0], "parent": 2, "deform": false},
            {"name": "root", "head": [0, 0, 0], "tail": [0, 1, 0], "parent": -1},
            {"name": "other", "head": [0, 0, 0], "tail": [0, 0, 0], "parent": null},
            {"name": "last", "head": [0, 0, 1e-3], "tail": [0, 0, 0]}]}"#;
        let skeleton = parse(text).unwrap();
        let parents: Vec<_> = skeleton.bones().iter().map(|b| b.parent).collect();
        assert_eq!(parents, [Some(1), Some(2), None, None, None]);
        let deform: Vec<_> = skeleton.bones().iter().map(|b| b.deform).collect();
        assert_eq!(deform, [true, false, true, true, true]);
        assert_eq!(skeleton.bones()[0].tail, DVec3::new(0.0, 3.0, 0.0));
        assert_eq!(parse(to_text(&skeleton).as_bytes()).unwrap(), skeleton);
    }

    #[test]
    fn a_bare_list_and_a_byte_order_mark_are_read() {
        let skeleton = parse("\u{feff}[{\"name\": \"a\", \"head\": [0,0,0], \"tail\": [1,0,0]}]".as_bytes()).unwrap();
        assert_eq!(skeleton.bones()[0].name, "a");
    }

    #[test]
    fn messages_name_the_bone_and_the_field() {
        let ends = "\"head\": [0,0,0], \"tail\": [0,1,0]";
        for (fields, parts) in [
            ("\"tail\": [0,1,0]".to_owned(), ["hips", "head"]),
            ("\"head\": [0,0], \"tail\": [0,1,0]".to_owned(), ["hips", "head"]),
            ("\"head\": [0,0,0], \"tail\": [0,1,null]".to_owned(), ["hips", "tail"]),
            ("\"head\": [0,0,0], \"tail\": [0,1e39,0]".to_owned(), ["hips", "tail"]),
            (format!("{ends}, \"parent\": \"hipz\""), ["hips", "hipz"]),
            (format!("{ends}, \"parent\": 1"), ["hips", "1"]),
            (format!("{ends}, \"parent\": -2"), ["hips", "-2"]),
            (format!("{ends}, \"parent\": 0.5"), ["hips", "0.5"]),
            (format!("{ends}, \"parent\": {{}}"), ["hips", "parent"]),
            (format!("{ends}, \"parent\": 0"), ["hips", "cycle"]),
            (format!("{ends}, \"deform\": 1"), ["hips", "deform"]),
            (format!("{ends}, \"deform\": false"), ["skeleton", "deform"]),
        ] {
            let message = one(&fields).expect_err(&fields).to_string();
            for part in parts {
                assert!(message.contains(part), "{fields}: {message}");
            }
        }
        assert!(one(ends).is_ok());
    }

    #[test]
    fn documents_of_another_shape_are_refused() {
        for (text, part) in [
            ("{\"bones\": []}", "no bones"),
            ("{}", "bones"),
            ("{\"bones\": {}}", "not a list"),
            ("3", "neither"),
            ("[3]", "bone 0"),
            ("[{\"name\": 3}]", "bone 0"),
            ("[{\"name\": \"\"}]", "empty"),
            ("{\n\"bones\": [,]}", "line 2"),
            ("", "line 1"),
        ] {
            let message = parse(text.as_bytes()).expect_err(text).to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
    }
}
