//! Wavefront OBJ: positions, faces and, where there is one a vertex, normals (the format as in Wavefront's appendix B1, with
//! what programs really write).
//!
//! Read are `v`, `vn`, `f` and, where asked for, `g` and `vt`; all other statements are passed over, unknown ones too. Vertices keep the order of the `v`
//! lines. Points, lines and faces of fewer than three corners have no area and are passed over as well.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use glam::{DVec2, DVec3};

use crate::error::{Error, Result};
use crate::io::polygon::Triangulator;
use crate::io::texture::Texture;
use crate::model::Mesh;

/// Reads an OBJ file.
///
/// # Errors
/// All under the file's name: [`Error::Read`]; [`Error::Line`] for a coordinate that is not a finite 32-bit number and for a
/// face that names a vertex that is not there; [`Error::NoVertices`] and [`Error::NoFaces`].
pub fn read(path: impl AsRef<Path>) -> Result<Mesh> {
    Ok(read_all(path)?.mesh)
}

/// The same with groups and texture coordinates.
///
/// # Errors
/// As [`read`].
pub fn read_all(path: impl AsRef<Path>) -> Result<Parsed> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|e| Error::Read(e).in_file(path))?;
    parse_all(&bytes).map_err(|e| e.in_file(path))
}

/// Reads the text of an OBJ file; errors as [`read`].
pub fn parse(text: &[u8]) -> Result<Mesh> {
    Ok(parse_all(text)?.mesh)
}

/// All that is read of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    pub mesh: Mesh,
    /// The groups of faces in the file's order; a name that stands twice gives two. Groups without a triangle are left out.
    pub groups: Vec<Group>,
    /// Empty where no face names any. Coordinates that are missing or no numbers are passed over.
    pub texture: Texture,
}

/// Triangles that stand under one `g` statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The words after `g`, with single blanks between them; empty for faces before the first `g`.
    pub name: String,
    /// Which of the mesh's triangles.
    pub triangles: Range<usize>,
}

/// Reads the text of an OBJ file with groups and texture coordinates; errors as [`read`].
pub fn parse_all(text: &[u8]) -> Result<Parsed> {
    let mut groups = vec![Group { name: String::new(), triangles: 0..0 }];
    let mut reader = Reader::default();
    let mut lines = Lines::new(text);
    let mut joined = Vec::new();
    while let Some((number, line)) = lines.next() {
        let (keyword, mut rest) = keyword(line);
        if !matches!(keyword, b"v" | b"f" | b"vn" | b"vt" | b"fo" | b"g") {
            continue;
        }
        if rest.ends_with(b"\\") {
            lines.join(rest, &mut joined);
            rest = &joined;
        }
        match keyword {
            b"v" => reader.vertex(number, rest)?,
            b"vn" => reader.normals.add(rest),
            b"vt" => reader.texture_coordinates(rest),
            b"g" => start_group(&mut groups, rest, reader.triangles.len()),
            _ => reader.face(number, rest)?,
        }
    }
    let (mesh, texture) = reader.finish()?;
    end_group(&mut groups, mesh.triangles().len());
    Ok(Parsed { mesh, groups, texture })
}

fn start_group(groups: &mut Vec<Group>, rest: &[u8], triangles: usize) {
    end_group(groups, triangles);
    let text = String::from_utf8_lossy(rest);
    let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
    groups.push(Group { name, triangles: triangles..triangles });
}

fn end_group(groups: &mut Vec<Group>, triangles: usize) {
    if let Some(last) = groups.last_mut() {
        last.triangles.end = triangles;
        if last.triangles.is_empty() {
            groups.pop();
        }
    }
}

/// Writes positions, normals where there are some, and triangles. Numbers are the shortest decimals that give the same f64 again.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut impl Write, mesh: &Mesh) -> std::io::Result<()> {
    for p in mesh.positions() {
        writeln!(out, "v {:?} {:?} {:?}", p.x, p.y, p.z)?;
    }
    for n in mesh.normals().unwrap_or_default() {
        writeln!(out, "vn {:?} {:?} {:?}", n.x, n.y, n.z)?;
    }
    for t in mesh.triangles() {
        let [a, b, c] = t.map(|v| u64::from(v) + 1);
        match mesh.normals() {
            Some(_) => writeln!(out, "f {a}//{a} {b}//{b} {c}//{c}")?,
            None => writeln!(out, "f {a} {b} {c}")?,
        }
    }
    Ok(())
}

#[derive(Default)]
struct Reader {
    positions: Vec<DVec3>,
    triangles: Vec<[u32; 3]>,
    normals: Normals,
    texture: Texture,
    corners: Vec<u32>,
    /// The texture coordinates of those.
    of_corners: Vec<Option<u32>>,
    late: Vec<LateFace>,
    triangulator: Triangulator,
}

/// A face that names vertices which had not been read yet. Its triangles are in place but for how they split it.
struct LateFace {
    line: usize,
    first_triangle: usize,
    corners: Vec<u32>,
    of_corners: Vec<Option<u32>>,
}

impl Reader {
    fn vertex(&mut self, line: usize, mut rest: &[u8]) -> Result<()> {
        let vertex = self.positions.len();
        if vertex >= u32::MAX as usize {
            return Err(fault(line, "more vertices than a mesh can number (4,294,967,295)"));
        }
        let mut p = [0.0; 3];
        for (value, axis) in p.iter_mut().zip(['x', 'y', 'z']) {
            let Some(word) = next_word(&mut rest) else {
                return Err(fault(line, format!("vertex {vertex} (0-based): {axis} is missing")));
            };
            *value = match float(word) {
                Some(value) if (value as f32).is_finite() => value,
                _ => {
                    let what = format!(
                        "vertex {vertex} (0-based): {axis} is \"{}\", which is not a finite 32-bit number",
                        shown(word)
                    );
                    return Err(fault(line, what));
                }
            };
        }
        self.positions.push(DVec3::from_array(p));
        Ok(())
    }

    fn texture_coordinates(&mut self, mut rest: &[u8]) {
        let mut number = || next_word(&mut rest).and_then(float);
        let (u, v) = (number().unwrap_or(f64::NAN), number().unwrap_or(0.0));
        self.texture.push(DVec2::new(u, v));
    }

    fn face(&mut self, line: usize, mut rest: &[u8]) -> Result<()> {
        self.corners.clear();
        self.of_corners.clear();
        let mut late = false;
        while let Some(word) = next_word(&mut rest) {
            if word[0] == b'#' {
                break;
            }
            let (corner, texture, normal) = corner(word)
                .ok_or_else(|| fault(line, format!("the face's corner \"{}\" is not a vertex number", shown(word))))?;
            let vertex = resolve(corner, self.positions.len()).map_err(|what| fault(line, what))?;
            late |= vertex as usize >= self.positions.len();
            self.corners.push(vertex);
            self.of_corners.push(texture.and_then(|t| resolve(t, self.texture.count()).ok()));
            self.normals.corner(vertex, normal);
        }
        if late {
            let (corners, of_corners) = (self.corners.clone(), self.of_corners.clone());
            self.late.push(LateFace { line, first_triangle: self.triangles.len(), corners, of_corners });
            self.triangles.extend((2..self.corners.len()).map(|_| [0; 3]));
        } else if self.corners.len() >= 3 {
            let first = self.triangles.len();
            self.triangulator
                .split(&self.positions, &self.corners, &mut self.triangles)
                .map_err(|_| too_intricate(line, self.corners.len()))?;
            name_texture(&mut self.texture, &self.triangles, first, &self.corners, &self.of_corners);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(Mesh, Texture)> {
        let vertices = self.positions.len();
        let mut split = Vec::new();
        for face in &self.late {
            if let Some(&c) = face.corners.iter().find(|&&c| c as usize >= vertices) {
                let what = format!("the face names vertex {}, but the file has {vertices} vertices", u64::from(c) + 1);
                return Err(fault(face.line, what));
            }
            if face.corners.len() >= 3 {
                split.clear();
                self.triangulator
                    .split(&self.positions, &face.corners, &mut split)
                    .map_err(|_| too_intricate(face.line, face.corners.len()))?;
                let end = face.first_triangle + split.len();
                self.triangles[face.first_triangle..end].copy_from_slice(&split);
                let known = &self.triangles[..end];
                name_texture(&mut self.texture, known, face.first_triangle, &face.corners, &face.of_corners);
            }
        }
        let mesh = Mesh::new(self.positions, self.triangles)?;
        let mesh = match self.normals.one_a_vertex(vertices) {
            Some(normals) => mesh.with_normals(normals)?,
            None => mesh,
        };
        Ok((mesh, self.texture))
    }
}

/// Gives the triangles from `first` on, which a face was split into, the texture coordinates of its corners.
fn name_texture(
    texture: &mut Texture,
    triangles: &[[u32; 3]],
    first: usize,
    corners: &[u32],
    of_corners: &[Option<u32>],
) {
    if of_corners.iter().all(Option::is_none) {
        return;
    }
    let of = |vertex: u32| corners.iter().position(|&c| c == vertex).and_then(|at| of_corners[at]);
    for (number, triangle) in triangles.iter().enumerate().skip(first) {
        texture.name(number, triangle.map(of));
    }
}

/// Which normal each vertex takes, as long as it is one.
#[derive(Default)]
struct Normals {
    values: Vec<DVec3>,
    /// For each vertex the index of its normal; `MAX` where no face has named one.
    of_vertex: Vec<u32>,
    /// A vertex has two normals, or a corner has none.
    ambiguous: bool,
}

impl Normals {
    fn add(&mut self, mut rest: &[u8]) {
        let mut number = || next_word(&mut rest).and_then(float).unwrap_or(f64::NAN);
        self.values.push(DVec3::new(number(), number(), number()));
    }

    fn corner(&mut self, vertex: u32, normal: Option<i64>) {
        if self.ambiguous {
            return;
        }
        let index =
            normal.and_then(|n| resolve(n, self.values.len()).ok()).filter(|&n| (n as usize) < self.values.len());
        let Some(index) = index else {
            self.ambiguous = true;
            return;
        };
        // A vertex far beyond those that have normals may be a wrong number: no list that long is made for it.
        if vertex as usize >= self.of_vertex.len() {
            if vertex as usize > 8 * (self.values.len() + self.of_vertex.len()) {
                self.ambiguous = true;
                return;
            }
            self.of_vertex.resize(vertex as usize + 1, u32::MAX);
        }
        match &mut self.of_vertex[vertex as usize] {
            none if *none == u32::MAX => *none = index,
            other if self.values[*other as usize] == self.values[index as usize] => {}
            _ => self.ambiguous = true,
        }
    }

    fn one_a_vertex(&self, vertices: usize) -> Option<Vec<DVec3>> {
        if self.ambiguous || self.of_vertex.len() != vertices {
            return None;
        }
        let normal = |&n: &u32| self.values.get(n as usize).copied().filter(|n| n.try_normalize().is_some());
        self.of_vertex.iter().map(normal).collect()
    }
}

/// The lines of a text with their numbers from 1, without surrounding blanks.
struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
    end: u8,
}

impl<'a> Lines<'a> {
    fn new(text: &'a [u8]) -> Self {
        let rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        // Files from before Mac OS X end their lines by a carriage return alone.
        let end = if rest.contains(&b'\n') { b'\n' } else { b'\r' };
        Self { rest, number: 0, end }
    }

    fn next(&mut self) -> Option<(usize, &'a [u8])> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|&b| b == self.end).unwrap_or(self.rest.len());
        let line = self.rest[..end].trim_ascii();
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        self.number += 1;
        Some((self.number, line))
    }

    /// A statement whose first line ends with a backslash, and the lines that go on with it.
    fn join(&mut self, first: &[u8], joined: &mut Vec<u8>) {
        joined.clear();
        let mut part = first;
        loop {
            match part.strip_suffix(b"\\") {
                Some(text) => joined.extend_from_slice(text),
                None => return joined.extend_from_slice(part),
            }
            joined.push(b' ');
            match self.next() {
                Some((_, line)) => part = line,
                None => return,
            }
        }
    }
}

/// The first word of a line, and what follows it.
fn keyword(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    line.split_at(end)
}

fn next_word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.iter().position(|b| !b.is_ascii_whitespace())?;
    let text = &rest[start..];
    let (word, after) = keyword(text);
    *rest = after;
    Some(word)
}

/// The vertex, texture coordinates and normal of a corner: `v`, `v/vt`, `v//vn` or `v/vt/vn`.
fn corner(word: &[u8]) -> Option<(i64, Option<i64>, Option<i64>)> {
    let (vertex, rest) = integer(word)?;
    if rest.is_empty() {
        return Some((vertex, None, None));
    }
    let rest = rest.strip_prefix(b"/")?;
    let (texture, rest) = integer(rest).map_or((None, rest), |(number, after)| (Some(number), after));
    if rest.is_empty() {
        return Some((vertex, texture, None));
    }
    let rest = rest.strip_prefix(b"/")?;
    match integer(rest) {
        Some((normal, [])) => Some((vertex, texture, Some(normal))),
        None if rest.is_empty() => Some((vertex, texture, None)),
        _ => None,
    }
}

/// An integer at the start of a text, and what follows it. Saturates.
fn integer(text: &[u8]) -> Option<(i64, &[u8])> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let end = digits.iter().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let value = digits[..end].iter().fold(0i64, |n, &d| n.saturating_mul(10).saturating_add(i64::from(d - b'0')));
    Some((if negative { -value } else { value }, &digits[end..]))
}

/// The 0-based index of a 1-based number, or of one that counts back from the last of `count`. May lie beyond `count`, for
/// what stands further down in the file.
fn resolve(number: i64, count: usize) -> Result<u32, String> {
    let index = if number < 0 { count as i64 + number } else { number - 1 };
    if number == 0 {
        return Err("the face names vertex 0, but vertices are numbered from 1".into());
    }
    if number < 0 && index < 0 {
        return Err(format!("the face names vertex {number}, but only {count} vertices stand before it"));
    }
    // The largest u32 stands for "none".
    u32::try_from(index)
        .ok()
        .filter(|&i| i != u32::MAX)
        .ok_or_else(|| format!("the face names vertex {number}, more than a mesh can number"))
}

/// A decimal number, rounded correctly.
fn float(word: &[u8]) -> Option<f64> {
    short_float(word).or_else(|| std::str::from_utf8(word).ok()?.parse().ok())
}

/// Numbers of at most 15 digits without exponent: both parts of the quotient are exact, so one division rounds correctly
/// (Clinger 1990).
fn short_float(word: &[u8]) -> Option<f64> {
    const TENS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (negative, digits) = match word.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, word),
    };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut whole = 0u64;
    let mut count = 0;
    let mut point = None;
    for &d in digits {
        match d {
            b'0'..=b'9' => {
                whole = whole * 10 + u64::from(d - b'0');
                count += 1;
            }
            b'.' if point.is_none() => point = Some(count),
            _ => return None,
        }
    }
    if count == 0 || count > 15 {
        return None;
    }
    let value = whole as f64 / TENS[count - point.unwrap_or(count)];
    Some(if negative { -value } else { value })
}

/// A word of the file as it can stand in a message.
fn shown(word: &[u8]) -> String {
    let start = &word[..word.len().min(40)];
    let text: String =
        String::from_utf8_lossy(start).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if start.len() < word.len() { format!("{text}...") } else { text }
}

fn fault(line: usize, what: impl Into<String>) -> Error {
    Error::Line { line, what: what.into() }
}

fn too_intricate(line: usize, corners: usize) -> Error {
    fault(
        line,
        format!("the face of {corners} corners is too intricate to be split into triangles; triangulate it first"),
    )
}
