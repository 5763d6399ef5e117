//! Accessors: typed views of the binary data, plain, strided or sparse (glTF 2.0, section 3.6).
//!
//! Everything is checked against the bytes that are there before anything is allocated.

use serde_json::Value;

use super::Document;
use super::json::{index, member, need_index, text};
use crate::error::{Error, Result};

/// How a number is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Component {
    I8,
    U8,
    I16,
    U16,
    U32,
    F32,
}

impl Component {
    fn from_code(code: usize, place: &str) -> Result<Self> {
        Ok(match code {
            5120 => Self::I8,
            5121 => Self::U8,
            5122 => Self::I16,
            5123 => Self::U16,
            5125 => Self::U32,
            5126 => Self::F32,
            _ => return Err(Error::format(place, format!("componentType {code} is not one that glTF has"))),
        })
    }

    fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::U32 | Self::F32 => 4,
        }
    }

    /// The number at the start of `bytes`.
    fn decode(self, bytes: &[u8]) -> f64 {
        match self {
            Self::I8 => f64::from(bytes[0] as i8),
            Self::U8 => f64::from(bytes[0]),
            Self::I16 => f64::from(i16::from_le_bytes([bytes[0], bytes[1]])),
            Self::U16 => f64::from(u16::from_le_bytes([bytes[0], bytes[1]])),
            Self::U32 => f64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
            Self::F32 => f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        }
    }

    /// What a normalised integer is divided by; 1 for floats.
    fn full(self) -> f64 {
        match self {
            Self::I8 => 127.0,
            Self::U8 => 255.0,
            Self::I16 => 32767.0,
            Self::U16 => 65535.0,
            Self::U32 => f64::from(u32::MAX),
            Self::F32 => 1.0,
        }
    }
}

/// Elements that lie in a buffer view, `step` bytes apart. All of them were checked to be there.
#[derive(Debug, Clone, Copy)]
struct Strided<'a> {
    bytes: &'a [u8],
    step: usize,
}

#[derive(Debug, Clone, Copy)]
struct Sparse<'a> {
    count: usize,
    rows: Strided<'a>,
    row_type: Component,
    values: Strided<'a>,
}

/// A checked accessor: reading it can no longer run past the data.
#[derive(Debug, Clone)]
pub(super) struct Accessor<'a> {
    pub place: String,
    pub component: Component,
    /// Numbers an element.
    pub width: usize,
    pub normalized: bool,
    pub count: usize,
    base: Option<Strided<'a>>,
    sparse: Option<Sparse<'a>>,
}

impl Accessor<'_> {
    /// Checks that elements have `width` numbers stored in one of these ways.
    pub fn expect(&self, width: usize, allowed: &[Component], what: &str) -> Result<()> {
        if self.width == width && allowed.contains(&self.component) {
            return Ok(());
        }
        let found = format!("{} numbers of type {:?}", self.width, self.component);
        Err(Error::format(&self.place, format!("{found} an element do not fit {what}")))
    }

    /// All elements, each made from its numbers (normalised integers as fractions).
    ///
    /// # Errors
    /// A sparse accessor that names an element beyond its own.
    pub fn read<T: Clone>(&self, make: impl Fn(&[f64]) -> T) -> Result<Vec<T>> {
        let scale = if self.normalized { self.component.full() } else { 1.0 };
        let size = self.component.size();
        let element = |at: &Strided, row: usize| {
            let bytes = &at.bytes[row * at.step..];
            let mut numbers = [0.0; 16];
            for (i, number) in numbers[..self.width].iter_mut().enumerate() {
                *number = self.component.decode(&bytes[i * size..]);
                if self.normalized {
                    *number = (*number / scale).max(-1.0);
                }
            }
            make(&numbers[..self.width])
        };
        let mut out = match &self.base {
            Some(base) => (0..self.count).map(|row| element(base, row)).collect(),
            None => vec![make(&[0.0; 16][..self.width]); self.count],
        };
        if let Some(sparse) = &self.sparse {
            for i in 0..sparse.count {
                let row = sparse.row_type.decode(&sparse.rows.bytes[i * sparse.rows.step..]) as usize;
                *out.get_mut(row).ok_or_else(|| {
                    let what = format!("its sparse part names element {row}, but it has only {}", self.count);
                    Error::format(&self.place, what)
                })? = element(&sparse.values, i);
            }
        }
        Ok(out)
    }

    /// All elements as whole numbers: indices, joints.
    pub fn read_whole(&self) -> Result<Vec<u32>> {
        self.expect(1, &[Component::U8, Component::U16, Component::U32], "indices")?;
        self.read(|e| e[0] as u32)
    }
}

impl Document {
    /// The accessor of this index, checked against the data.
    pub(super) fn accessor(&self, number: usize, used_by: &str) -> Result<Accessor<'_>> {
        let row = self.entry("accessors", number, used_by)?;
        let place = format!("accessor {number}");
        let component = Component::from_code(need_index(row, "componentType", &place)?, &place)?;
        let width = match text(row, "type", &place)? {
            Some("SCALAR") => 1,
            Some("VEC2") => 2,
            Some("VEC3") => 3,
            Some("VEC4") => 4,
            Some("MAT4") => 16,
            other => {
                return Err(Error::format(&place, format!("type {} does not fit here", other.unwrap_or("(missing)"))));
            }
        };
        let count = need_index(row, "count", &place)?;
        if count == 0 {
            return Err(Error::format(&place, "count is 0; glTF asks for at least 1"));
        }
        let normalized = match member(row, "normalized") {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => return Err(Error::format(&place, "normalized is neither true nor false")),
        };
        let offset = index(row, "byteOffset", &place)?.unwrap_or(0);
        let size = width * component.size();
        let base = match index(row, "bufferView", &place)? {
            Some(view) => Some(self.strided(view, offset, count, size, &place)?),
            None => {
                self.check_made_up(count, &place)?;
                None
            }
        };
        let sparse = member(row, "sparse").map(|s| self.sparse(s, count, size, &place)).transpose()?;
        Ok(Accessor { place, component, width, normalized, count, base, sparse })
    }

    /// Elements that no view backs are zeros we make ourselves: a small file must not ask for gigabytes of them.
    fn check_made_up(&self, count: usize, place: &str) -> Result<()> {
        if count <= self.file_bytes {
            return Ok(());
        }
        let what = format!("{count} elements without a buffer view, in a file of {} bytes", self.file_bytes);
        Err(Error::format(place, what))
    }

    fn sparse(&self, sparse: &Value, count: usize, size: usize, place: &str) -> Result<Sparse<'_>> {
        let place = format!("{place}, sparse");
        let n = need_index(sparse, "count", &place)?;
        if n > count {
            return Err(Error::format(&place, format!("{n} elements to replace, but there are only {count}")));
        }
        let part = |key: &str| member(sparse, key).ok_or_else(|| Error::format(&place, format!("{key} is missing")));
        let (rows, values) = (part("indices")?, part("values")?);
        let row_type = Component::from_code(need_index(rows, "componentType", &place)?, &place)?;
        if !matches!(row_type, Component::U8 | Component::U16 | Component::U32) {
            return Err(Error::format(&place, "its indices are not unsigned integers"));
        }
        let find = |part: &Value, size: usize| {
            let view = need_index(part, "bufferView", &place)?;
            let offset = index(part, "byteOffset", &place)?.unwrap_or(0);
            self.strided(view, offset, n, size, &place)
        };
        Ok(Sparse { count: n, rows: find(rows, row_type.size())?, row_type, values: find(values, size)? })
    }

    /// `count` elements of `size` bytes in a buffer view, which must hold them all.
    fn strided(&self, view: usize, offset: usize, count: usize, size: usize, place: &str) -> Result<Strided<'_>> {
        let (bytes, stride) = self.view(view, place)?;
        let step = stride.unwrap_or(size);
        if step < size {
            let what = format!("byteStride {step} of bufferView {view} is less than the {size} bytes of an element");
            return Err(Error::format(place, what));
        }
        // 128 bits hold any product of numbers a file can state.
        let need = offset as u128 + (count.max(1) as u128 - 1) * step as u128 + size as u128;
        if count > 0 && need > bytes.len() as u128 {
            let what = format!("{count} elements need {need} bytes of bufferView {view}, which has {}", bytes.len());
            return Err(Error::format(place, what));
        }
        Ok(Strided { bytes: &bytes[offset.min(bytes.len())..], step })
    }

    /// The bytes of a buffer view, and its stride where it has one.
    pub(super) fn view(&self, number: usize, used_by: &str) -> Result<(&[u8], Option<usize>)> {
        let row = self.entry("bufferViews", number, used_by)?;
        let place = format!("bufferView {number}");
        let buffer = need_index(row, "buffer", &place)?;
        self.entry("buffers", buffer, &place)?;
        let Some(data) = self.buffers[buffer].as_ref().map(super::container::Bytes::get) else {
            if let Some(extensions) = member(row, "extensions").and_then(Value::as_object)
                && let Some(name) = extensions.keys().find(|k| k.contains("compression"))
            {
                return Err(super::extension_error(name));
            }
            return Err(Error::format(place, format!("buffer {buffer} has no data")));
        };
        let start = index(row, "byteOffset", &place)?.unwrap_or(0);
        let length = need_index(row, "byteLength", &place)?;
        let end = start.checked_add(length).filter(|&end| end <= data.len()).ok_or_else(|| {
            let what =
                format!("bytes {start} to {start}+{length} reach past buffer {buffer}, which has {}", data.len());
            Error::format(&place, what)
        })?;
        Ok((&data[start..end], index(row, "byteStride", &place)?))
    }
}
