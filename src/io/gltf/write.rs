//! Documents as bytes: one .glb, or a .gltf and the .bin beside it (glTF 2.0, section 4).

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Document;
use super::container::{BIN_CHUNK, JSON_CHUNK, MAGIC, beside, is_data_uri, percent_encode, read_file};
use super::json::{index, list_mut};
use crate::error::{Error, Result};

/// The bytes of a file, in pieces: what was read is not copied, only written.
#[derive(Debug, Clone)]
pub struct Encoded<'a> {
    pieces: Vec<Cow<'a, [u8]>>,
}

impl Encoded<'_> {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.pieces.iter().map(|p| p.len() as u64).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_to(&self, out: &mut impl Write) -> std::io::Result<()> {
        self.pieces.iter().try_for_each(|piece| out.write_all(piece))
    }

    /// All of it in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces.concat()
    }
}

/// All binary data laid end to end.
struct Merged<'a> {
    root: Value,
    pieces: Vec<Cow<'a, [u8]>>,
    length: u64,
}

impl Document {
    /// The document as a .glb file. Images in other files are taken in where they can be read.
    ///
    /// # Errors
    /// [`Error::Limit`] beyond 4 GiB, the format's limit.
    pub fn glb(&self) -> Result<Encoded<'_>> {
        let mut merged = self.merged(true)?;
        let mut json = serde_json::to_vec(&merged.root).map_err(|e| Error::format("JSON", e.to_string()))?;
        json.resize(json.len().next_multiple_of(4), b' ');
        let mut body = vec![Cow::Owned([header(json.len() as u64, JSON_CHUNK), json].concat())];
        if merged.length > 0 {
            merged.pieces.push(padding(merged.length));
            body.push(Cow::Owned(header(merged.length.next_multiple_of(4), BIN_CHUNK)));
            body.append(&mut merged.pieces);
        }
        for (kind, bytes) in &self.chunks {
            let length = bytes.get().len() as u64;
            body.push(Cow::Owned(header(length.next_multiple_of(4), *kind)));
            body.push(Cow::Borrowed(bytes.get()));
            body.push(padding(length));
        }
        let total = 12 + body.iter().map(|p| p.len() as u64).sum::<u64>();
        let Ok(stated) = u32::try_from(total) else {
            return Err(Error::Limit {
                what: "bytes of the .glb file".into(),
                needed: total.to_string(),
                limit: u32::MAX.to_string(),
                advice: "write .gltf instead, which has no such limit".into(),
            });
        };
        let mut start = MAGIC.to_vec();
        start.extend(2u32.to_le_bytes());
        start.extend(stated.to_le_bytes());
        body.insert(0, Cow::Owned(start));
        Ok(Encoded { pieces: body })
    }

    /// The document as a .gltf file and the binary file that it will name `bin_name`. `folder` is where they will lie:
    /// images in other files stay there if that is where the document came from, else they are taken in.
    ///
    /// # Errors
    /// None for documents that were read or built here; [`Error::Format`] otherwise.
    pub fn gltf(&self, bin_name: &str, folder: Option<&Path>) -> Result<(Encoded<'_>, Encoded<'_>)> {
        let stays = match (folder, &self.folder) {
            (Some(to), Some(from)) => same_folder(to, from),
            _ => false,
        };
        let mut merged = self.merged(!stays)?;
        if merged.length > 0 {
            merged.root["buffers"][0]["uri"] = percent_encode(bin_name).into();
        }
        let json = serde_json::to_vec_pretty(&merged.root).map_err(|e| Error::format("JSON", e.to_string()))?;
        Ok((Encoded { pieces: vec![Cow::Owned(json)] }, Encoded { pieces: merged.pieces }))
    }

    /// The files that make up the document at `path`, by its extension: a .glb, or a .bin and then the .gltf.
    ///
    /// # Errors
    /// [`Error::FileType`] for another extension; those of [`Document::glb`].
    pub fn files(&self, path: &Path) -> Result<Vec<(PathBuf, Encoded<'_>)>> {
        let is = |name: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(name));
        if is("glb") {
            return Ok(vec![(path.to_path_buf(), self.glb()?)]);
        }
        if !is("gltf") {
            return Err(Error::FileType { path: path.to_path_buf(), expected: ".glb and .gltf can be written" });
        }
        let bin = path.with_extension("bin");
        let name = bin.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let (json, data) = self.gltf(&name, path.parent())?;
        let mut files = vec![(bin, data), (path.to_path_buf(), json)];
        files.retain(|(_, bytes)| !bytes.is_empty());
        Ok(files)
    }

    /// The JSON with one buffer for all data. What was buffer 0 stays at its start, so its offsets hold; views of other
    /// buffers are moved along. Stand-in buffers without data come after it.
    fn merged(&self, take_images: bool) -> Result<Merged<'_>> {
        let mut root = self.root.clone();
        let mut pieces = Vec::new();
        let mut length = 0;
        let mut starts = Vec::with_capacity(self.buffers.len());
        for bytes in &self.buffers {
            starts.push(bytes.as_ref().map(|b| add(&mut pieces, &mut length, Cow::Borrowed(b.get()))));
        }
        let images = if take_images { self.outside_images() } else { Vec::new() };
        let taken: Vec<_> = images
            .into_iter()
            .map(|image| {
                let size = image.bytes.len();
                let start = add(&mut pieces, &mut length, Cow::Owned(image.bytes));
                (image.number, image.kind, json!({"buffer": 0, "byteOffset": start, "byteLength": size}))
            })
            .collect();
        let rows: Vec<Value> = self.list("buffers")?.to_vec();
        let mut data = None;
        let mut others = Vec::new();
        let with_data = usize::from(length > 0);
        let mut moved = Vec::with_capacity(rows.len());
        for (row, start) in rows.into_iter().zip(starts) {
            if let Some(start) = start {
                data.get_or_insert(row);
                moved.push((0, start));
            } else {
                moved.push((with_data + others.len(), 0));
                others.push(row);
            }
        }
        if let Some(views) = root.get_mut("bufferViews").and_then(Value::as_array_mut) {
            views.iter_mut().for_each(|view| move_view(view, &moved));
        }
        taken.into_iter().try_for_each(|(number, kind, view)| put_image(&mut root, number, kind, view))?;
        if with_data == 1 {
            let mut row = data.unwrap_or_else(|| json!({}));
            if let Some(row) = row.as_object_mut() {
                row.shift_remove("uri");
                row.insert("byteLength".into(), length.into());
            }
            others.insert(0, row);
        }
        if !others.is_empty() {
            root["buffers"] = others.into();
        }
        Ok(Merged { root, pieces, length })
    }

    /// Images that lie in other files. One that can not be read keeps its name: what shows the document will miss it as
    /// it would have missed it before.
    fn outside_images(&self) -> Vec<OutsideImage> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let images = self.root.get("images").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let read = |(number, image): (usize, &Value)| {
            let uri = image["uri"].as_str().filter(|uri| !is_data_uri(uri))?;
            let kind = image["mimeType"].as_str().or_else(|| image_type(uri))?.to_owned();
            let path = beside(uri, folder, "image").ok()?;
            Some(OutsideImage { number, kind, bytes: read_file(&path, u64::MAX).ok()? })
        };
        images.iter().enumerate().filter_map(read).collect()
    }
}

/// Makes an image one that a buffer view holds.
fn put_image(root: &mut Value, number: usize, kind: String, view: Value) -> Result<()> {
    let views = list_mut(root, "bufferViews", "root")?;
    views.push(view);
    let view = views.len() - 1;
    if let Some(image) = root["images"][number].as_object_mut() {
        image.shift_remove("uri");
        image.insert("mimeType".into(), kind.into());
        image.insert("bufferView".into(), view.into());
    }
    Ok(())
}

struct OutsideImage {
    number: usize,
    kind: String,
    bytes: Vec<u8>,
}

/// Points a view, and what its extensions say of buffers, to where the data lies now.
fn move_view(view: &mut Value, moved: &[(usize, u64)]) {
    let repoint = |holder: &mut Value| {
        let buffer = index(holder, "buffer", "").ok().flatten().and_then(|b| moved.get(b));
        let offset = index(holder, "byteOffset", "").ok().flatten().unwrap_or(0) as u64;
        if let Some(&(buffer, start)) = buffer {
            holder["buffer"] = buffer.into();
            if start > 0 {
                holder["byteOffset"] = (start + offset).into();
            }
        }
    };
    repoint(view);
    if let Some(extensions) = view.get_mut("extensions").and_then(Value::as_object_mut) {
        extensions.values_mut().for_each(repoint);
    }
}

/// The media type of an image by its name; `None` for kinds that glTF does not have.
fn image_type(uri: &str) -> Option<&'static str> {
    let extension = uri.rsplit_once('.')?.1.to_ascii_lowercase();
    Some(match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ktx2" => "image/ktx2",
        "dds" => "image/vnd-ms.dds",
        _ => return None,
    })
}

fn same_folder(a: &Path, b: &Path) -> bool {
    let full = |p: &Path| if p.as_os_str().is_empty() { Path::new(".") } else { p }.canonicalize();
    matches!((full(a), full(b)), (Ok(a), Ok(b)) if a == b)
}

fn header(length: u64, kind: u32) -> Vec<u8> {
    // Lengths beyond 32 bits are refused when the whole is known.
    [(length as u32).to_le_bytes(), kind.to_le_bytes()].concat()
}

fn padding(length: u64) -> Cow<'static, [u8]> {
    Cow::Borrowed(&[0u8; 4][..(length.next_multiple_of(4) - length) as usize])
}

/// Adds a piece at a multiple of 4; where it starts.
fn add<'a>(pieces: &mut Vec<Cow<'a, [u8]>>, length: &mut u64, piece: Cow<'a, [u8]>) -> u64 {
    let start = length.next_multiple_of(4);
    pieces.push(padding(*length));
    *length = start + piece.len() as u64;
    pieces.push(piece);
    start
}
