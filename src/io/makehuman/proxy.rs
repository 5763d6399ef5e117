//! Clothes and body proxies: `.mhclo` and `.proxy` tie each vertex of a mesh to one or three vertices of the base mesh, so that
//! it follows the body's shape and takes over its weights.

use std::path::Path;

use glam::DVec3;

use super::weights::{LEAST, Report, Rules};
use crate::error::{Error, Result};
use crate::model::{Influence, Skeleton, Weights};

/// How one vertex is tied to the base mesh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fit {
    /// A copy of a vertex.
    Copy(u32),
    /// A sum of three vertices, of which weights may be negative, and an offset in units of the scales.
    Sum { vertices: [u32; 3], weights: [f64; 3], offset: DVec3 },
}

/// The scale of offsets along an axis: the distance of two vertices along it in units of `length`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scale {
    ends: [u32; 2],
    length: f64,
}

/// A file that ties a mesh to the base mesh.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Proxy {
    pub name: String,
    /// The mesh that it is about.
    pub obj_file: Option<String>,
    /// Weights of its own that override those taken from the body.
    pub weights_file: Option<String>,
    /// One entry for each vertex of the mesh.
    pub fits: Vec<Fit>,
    /// Vertices of the base mesh that it covers, as ranges from first to last.
    pub hides: Vec<[u32; 2]>,
    /// Statements that change the shape and are not known here, with their lines.
    pub left_out: Vec<(usize, String)>,
    scales: [Option<Scale>; 3],
}

/// What the lines at hand belong to.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Header,
    Vertices,
    Hides,
}

impl Proxy {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Read`] and [`Error::Line`], both under the file's name.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::Read(e).in_file(path))?;
        Self::parse(&String::from_utf8_lossy(&bytes)).map_err(|e| e.in_file(path))
    }

    /// Reads the text of a file; errors as [`Proxy::read`].
    pub fn parse(text: &str) -> Result<Self> {
        let mut proxy = Self::default();
        let mut section = Section::Header;
        for (index, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
            let line_fault = |what: String| Error::Line { line: index + 1, what };
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(&first) = words.first().filter(|w| !w.starts_with('#')) else { continue };
            let numeric = first.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
            match section {
                Section::Vertices if numeric => proxy.fits.push(fit(&words).map_err(line_fault)?),
                Section::Hides if numeric => hides(&words, &mut proxy.hides).map_err(line_fault)?,
                _ => section = proxy.statement(&words, index + 1).map_err(line_fault)?,
            }
        }
        if proxy.fits.is_empty() {
            return Err(Error::format("verts", "the file has none: no line of vertices follows a line \"verts\""));
        }
        Ok(proxy)
    }

    /// A line of the header; what follows it.
    fn statement(&mut self, words: &[&str], line: usize) -> Result<Section, String> {
        let text = || words[1..].join(" ");
        match words[0] {
            "verts" => return Ok(Section::Vertices),
            "delete_verts" => return Ok(Section::Hides),
            "name" => self.name = text(),
            "obj_file" => self.obj_file = Some(text()),
            "vertexboneweights_file" => self.weights_file = Some(text()).filter(|t| !t.is_empty()),
            "x_scale" => self.scales[0] = Some(scale(words)?),
            "y_scale" => self.scales[1] = Some(scale(words)?),
            "z_scale" => self.scales[2] = Some(scale(words)?),
            word if word.ends_with("_scale") || word.contains("shear") => self.left_out.push((line, word.into())),
            // The rest is about looks and catalogues.
            _ => {}
        }
        Ok(Section::Header)
    }

    /// Checks that the file fits a base mesh of so many vertices and a mesh of `own` vertices.
    ///
    /// # Errors
    /// [`Error::Format`] naming the vertex at fault, or both numbers.
    pub fn check(&self, base: usize, own: usize) -> Result<()> {
        if self.fits.len() != own {
            let what = format!("it ties {} vertices, but the mesh has {own}", self.fits.len());
            return Err(Error::format("verts", what));
        }
        self.check_base(base)
    }

    fn check_base(&self, base: usize) -> Result<()> {
        let fault = |place: String, vertex: u32| {
            let what = format!("it names vertex {vertex} (0-based) of the base mesh, which has {base} vertices");
            Err(Error::format(place, what))
        };
        for (own, fit) in self.fits.iter().enumerate() {
            if let Some(&bad) = fit.vertices().iter().find(|&&v| v as usize >= base) {
                return fault(format!("vertex {own} (0-based)"), bad);
            }
        }
        for (axis, scale) in ['x', 'y', 'z'].into_iter().zip(&self.scales) {
            if let Some(&bad) = scale.iter().flat_map(|s| &s.ends).find(|&&v| v as usize >= base) {
                return fault(format!("{axis}_scale"), bad);
            }
        }
        match self.hides.iter().flatten().find(|&&v| v as usize >= base) {
            Some(&bad) => fault("delete_verts".into(), bad),
            None => Ok(()),
        }
    }

    /// Where the vertices lie on a base mesh of this shape.
    ///
    /// # Errors
    /// [`Error::Format`] for a vertex that the base mesh lacks.
    pub fn fit(&self, base: &[DVec3]) -> Result<Vec<DVec3>> {
        self.check_base(base.len())?;
        let along = |axis: usize| {
            self.scales[axis].map_or(1.0, |s| {
                let [a, b] = s.ends.map(|v| base[v as usize][axis]);
                (a - b).abs() / s.length
            })
        };
        let scales = DVec3::new(along(0), along(1), along(2));
        let place = |fit: &Fit| match *fit {
            Fit::Copy(vertex) => base[vertex as usize],
            Fit::Sum { vertices, weights, offset } => {
                let sum: DVec3 = vertices.iter().zip(weights).map(|(&v, w)| base[v as usize] * w).sum();
                sum + scales * offset
            }
        };
        Ok(self.fits.iter().map(place).collect())
    }

    /// The weights of the vertices from those of the whole base mesh: fitting weight times bone weight of each vertex it is tied
    /// to, those up to 0.0001 left out (all of negative fitting weight so), and then the rules for weights files.
    ///
    /// # Errors
    /// [`Error::Format`] for a vertex that the base mesh lacks.
    pub fn weights(&self, base: &Weights, skeleton: &Skeleton) -> Result<(Weights, Report)> {
        self.check_base(base.len())?;
        let mut rules = Rules::new(skeleton);
        let mut row = Vec::new();
        for fit in &self.fits {
            row.clear();
            match *fit {
                Fit::Copy(vertex) => row.extend_from_slice(base.of(vertex as usize)),
                Fit::Sum { vertices, weights, .. } => {
                    for (&vertex, share) in vertices.iter().zip(weights) {
                        let scaled = |i: &Influence| Influence { weight: i.weight * share, ..*i };
                        row.extend(base.of(vertex as usize).iter().map(scaled).filter(|i| i.weight > LEAST));
                    }
                }
            }
            rules.push(row.iter().copied());
        }
        Ok(rules.finish())
    }
}

impl Fit {
    /// The vertices of the base mesh that it names.
    fn vertices(&self) -> &[u32] {
        match self {
            Fit::Copy(vertex) => std::slice::from_ref(vertex),
            Fit::Sum { vertices, .. } => vertices,
        }
    }
}

fn vertex(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("\"{word}\" is not the number of a vertex"))
}

fn number(word: &str) -> Result<f64, String> {
    let value = word.parse().ok().filter(|v: &f64| (*v as f32).is_finite());
    value.ok_or_else(|| format!("\"{word}\" is not a finite number"))
}

/// One number: a copy. Three numbers and three weights, then perhaps an offset.
fn fit(words: &[&str]) -> Result<Fit, String> {
    if let [only] = words {
        return Ok(Fit::Copy(vertex(only)?));
    }
    if !matches!(words.len(), 6 | 9) {
        return Err(format!("{} numbers; a vertex has 1, 6 or 9", words.len()));
    }
    let mut values = [0.0; 6];
    for (value, word) in values.iter_mut().zip(&words[3..]) {
        *value = number(word)?;
    }
    let [a, b, c, x, y, z] = values;
    let vertices = [vertex(words[0])?, vertex(words[1])?, vertex(words[2])?];
    Ok(Fit::Sum { vertices, weights: [a, b, c], offset: DVec3::new(x, y, z) })
}

fn scale(words: &[&str]) -> Result<Scale, String> {
    let [_, a, b, length] = words else { return Err("a scale is two vertices and a length".into()) };
    let length = number(length)?;
    if length == 0.0 {
        return Err("the length of a scale is 0".into());
    }
    Ok(Scale { ends: [vertex(a)?, vertex(b)?], length: length.abs() })
}

/// Numbers and ranges "first - last".
fn hides(words: &[&str], list: &mut Vec<[u32; 2]>) -> Result<(), String> {
    let mut rest = words;
    while let [first, after @ ..] = rest {
        let first = vertex(first)?;
        let (last, after) = match after {
            ["-", last, after @ ..] => (vertex(last)?, after),
            _ => (first, after),
        };
        if last < first {
            return Err(format!("\"{first} - {last}\" is not a range of vertices"));
        }
        list.push([first, last]);
        rest = after;
    }
    Ok(())
}
