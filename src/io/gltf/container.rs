//! The bytes around the JSON: GLB chunks, external buffers and data URIs (glTF 2.0, sections 3.6.1 and 4).

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use serde_json::Value;

use super::json::{brief, need_index, text};
use crate::error::{Error, Result};

pub(super) const MAGIC: &[u8; 4] = b"glTF";
pub(super) const JSON_CHUNK: u32 = 0x4e4f_534a;
pub(super) const BIN_CHUNK: u32 = 0x004e_4942;

/// A stretch of bytes in memory; the BIN chunk stays inside the file that was read.
#[derive(Debug, Clone)]
pub(super) struct Bytes {
    data: std::sync::Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Bytes {
    pub fn new(data: Vec<u8>) -> Self {
        let range = 0..data.len();
        Self { data: std::sync::Arc::new(data), range }
    }

    pub fn get(&self) -> &[u8] {
        &self.data[self.range.clone()]
    }

    /// Makes room for so many bytes more.
    pub fn reserve(&mut self, more: usize) {
        std::sync::Arc::make_mut(&mut self.data).reserve(more);
    }

    /// Adds to the end, at a multiple of 4, and says where.
    pub fn append(&mut self, more: &[u8]) -> usize {
        let data = std::sync::Arc::make_mut(&mut self.data);
        data.truncate(self.range.end);
        data.resize(data.len().next_multiple_of(4), 0);
        let at = data.len() - self.range.start;
        data.extend_from_slice(more);
        self.range.end = data.len();
        at
    }
}

/// A file taken apart: its JSON, its BIN chunk, and chunks of other kinds, which are kept as they are.
pub(super) struct Container {
    pub root: Value,
    pub binary: Option<Bytes>,
    pub chunks: Vec<(u32, Bytes)>,
    pub trailing: usize,
}

/// Takes a .glb or .gltf file apart; which of the two it is, its first bytes say.
pub(super) fn take_apart(file: Vec<u8>) -> Result<Container> {
    if !file.starts_with(MAGIC) {
        let json = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&file);
        return Ok(Container { root: parse(json)?, binary: None, chunks: Vec::new(), trailing: 0 });
    }
    let total = check_header(&file)?;
    let trailing = file.len() - total;
    let ranges = chunk_ranges(&file, total)?;
    let Some((JSON_CHUNK, json)) = ranges.first().cloned() else {
        return Err(Error::format("first chunk", "it is not the JSON that a GLB file starts with"));
    };
    let root = parse(&file[json])?;
    let data = std::sync::Arc::new(file);
    let bytes = |range: Range<usize>| Bytes { data: data.clone(), range };
    let mut rest = ranges.into_iter().skip(1).peekable();
    let binary = rest.next_if(|(kind, _)| *kind == BIN_CHUNK).map(|(_, range)| bytes(range));
    let chunks = rest.map(|(kind, range)| (kind, bytes(range))).collect();
    Ok(Container { root, binary, chunks, trailing })
}

fn check_header(file: &[u8]) -> Result<usize> {
    if file.len() < 12 {
        return Err(Error::format(
            "header",
            format!("truncated: a GLB header has 12 bytes, the file has {}", file.len()),
        ));
    }
    let version = word(file, 4);
    if version != 2 {
        return Err(Error::format("header", format!("GLB version {version}; only version 2 can be read")));
    }
    let total = word(file, 8) as usize;
    if total > file.len() {
        let what = format!("truncated: the header says {total} bytes, the file has {}", file.len());
        return Err(Error::format("header", what));
    }
    if total < 12 {
        return Err(Error::format("header", format!("its length of {total} bytes is less than the header")));
    }
    Ok(total)
}

fn chunk_ranges(file: &[u8], total: usize) -> Result<Vec<(u32, Range<usize>)>> {
    let mut ranges = Vec::new();
    let mut at = 12;
    while at < total {
        let place = format!("chunk {}", ranges.len());
        if total - at < 8 {
            return Err(Error::format(place, format!("truncated: {} bytes are left for its header", total - at)));
        }
        let (length, kind) = (word(file, at) as usize, word(file, at + 4));
        at += 8;
        if length > total - at {
            let what = format!("truncated: it should have {length} bytes, but {} are left", total - at);
            return Err(Error::format(place, what));
        }
        ranges.push((kind, at..at + length));
        at += length;
    }
    Ok(ranges)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn parse(json: &[u8]) -> Result<Value> {
    // serde_json stops at a depth of 128, so that nesting can not exhaust the stack.
    let root: Value = serde_json::from_slice(json).map_err(|e| Error::format("JSON", e.to_string()))?;
    if root.is_object() { Ok(root) } else { Err(Error::format("JSON", format!("{}, not an object", brief(&root)))) }
}

/// The data of a buffer: `None` where the file has none for it, as for the stand-in buffers of compressed files.
pub(super) fn load_buffer(
    number: usize,
    row: &Value,
    folder: Option<&Path>,
    binary: Option<&Bytes>,
) -> Result<Option<Bytes>> {
    let place = format!("buffer {number}");
    let length = need_index(row, "byteLength", &place)?;
    let mut bytes = match text(row, "uri", &place)? {
        None if number == 0 => match binary {
            Some(binary) => binary.clone(),
            None => return Ok(None),
        },
        None => return Ok(None),
        Some(uri) => match data_uri(uri, &place)? {
            Some(data) => Bytes::new(data),
            None => Bytes::new(read_beside(uri, folder, length, &place)?),
        },
    };
    if bytes.get().len() < length {
        let what = format!("truncated: byteLength says {length} bytes, there are {}", bytes.get().len());
        return Err(Error::format(place, what));
    }
    bytes.range.end = bytes.range.start + length;
    Ok(Some(bytes))
}

pub(super) fn is_data_uri(uri: &str) -> bool {
    uri.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"))
}

/// The bytes in a data URI; `None` for a URI of another kind.
pub(super) fn data_uri(uri: &str, place: &str) -> Result<Option<Vec<u8>>> {
    if !is_data_uri(uri) {
        return Ok(None);
    }
    let rest = &uri["data:".len()..];
    let (head, body) =
        rest.split_once(',').ok_or_else(|| Error::format(place, "its data URI has no comma before the data"))?;
    if !head.to_ascii_lowercase().ends_with(";base64") {
        return Ok(Some(percent_decode(body)));
    }
    let data = STANDARD_PAD_INDIFFERENT.decode(body.as_bytes());
    data.map(Some).map_err(|e| Error::format(place, format!("its data URI is not valid base64: {e}")))
}

/// Where a relative URI leads, in the folder of the file that names it.
///
/// # Errors
/// A URI that leaves that folder or names another machine: a file must not make us read elsewhere.
pub(super) fn beside(uri: &str, folder: &Path, place: &str) -> Result<PathBuf> {
    let refuse = |why: &str| {
        let short: String = uri.chars().take(200).collect();
        let advice = "put the file beside this one and name it by a relative path";
        Err(Error::format(place, format!("its uri \"{short}\" {why}; {advice}")))
    };
    let scheme = uri.split_once(':').map(|(s, _)| s).filter(|s| s.starts_with(|c: char| c.is_ascii_alphabetic()));
    if scheme.is_some_and(|s| s.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))) {
        return refuse("has a scheme, and only relative paths are read");
    }
    let Ok(decoded) = String::from_utf8(percent_decode(uri)) else {
        return refuse("is not UTF-8");
    };
    if decoded.is_empty() || decoded.contains(['\0', ':']) {
        return refuse("is not a file name");
    }
    if decoded.starts_with(['/', '\\']) {
        return refuse("is an absolute path");
    }
    if decoded.split(['/', '\\']).any(|part| part == "..") {
        return refuse("leads out of the file's folder");
    }
    Ok(folder.join(decoded))
}

fn read_beside(uri: &str, folder: Option<&Path>, length: usize, place: &str) -> Result<Vec<u8>> {
    let Some(folder) = folder else {
        return Err(Error::format(place, "it lies in another file, and the document was not read from a folder"));
    };
    let path = beside(uri, folder, place)?;
    read_file(&path, length as u64).map_err(|e| e.in_file(path))
}

/// The first bytes of a file, at most `most`. Only plain files: a device would never end.
pub(super) fn read_file(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(Error::Read)?;
    let about = file.metadata().map_err(Error::Read)?;
    if !about.is_file() {
        return Err(Error::Read(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a plain file")));
    }
    let mut data = Vec::with_capacity(usize::try_from(about.len().min(most)).unwrap_or(0));
    file.take(most).read_to_end(&mut data).map_err(Error::Read)?;
    Ok(data)
}

/// `%41` -> `A`. A stray `%` stands for itself.
fn percent_decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|&b| (b as char).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// The name as a URI: everything but unreserved characters becomes `%XX`.
pub(super) fn percent_encode(name: &str) -> String {
    name.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}
