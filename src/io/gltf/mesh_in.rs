//! The meshes of a file as one [`Mesh`] in world space (glTF 2.0, section 3.7).
//!
//! Order of the vertices: the nodes that carry a mesh in the order of `nodes`, each with its triangle primitives in
//! order. A mesh on two nodes counts twice, and so do primitives that share a POSITION accessor.

use std::ops::Range;

use glam::DVec3;
use serde_json::Value;

use super::accessor::Component;
use super::json::{index, list, member};
use super::rest::Placement;
use super::{Document, extension_error};
use crate::error::{Error, Result};
use crate::model::{Code, Mesh, Warning};

/// However small the file, this many vertices or corners are fine.
const FREE: usize = 1 << 24;
/// Nodes may show a mesh often; together at most so many vertices or corners for each byte of the file.
const PER_BYTE: usize = 4;
/// What a primitive costs at least, in vertices.
const PART_SIZE: usize = 16;

pub(super) const COORDINATES: [Component; 5] =
    [Component::F32, Component::I8, Component::U8, Component::I16, Component::U16];

pub(super) const DRACO: &str = "KHR_draco_mesh_compression";

/// How a primitive's corners become triangles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Triangles,
    Strip,
    Fan,
}

/// A triangle primitive as one node shows it, and the place of its vertices in the whole.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub node: usize,
    pub mesh: usize,
    pub primitive: usize,
    /// Number of its POSITION accessor.
    pub position: usize,
    pub vertices: Range<usize>,
    mode: Mode,
}

/// All triangle primitives in the order of the whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Layout {
    pub parts: Vec<Part>,
    pub vertices: usize,
    /// Primitives of points and lines.
    left_out: usize,
    /// Joints of the skins of all nodes together.
    joints: usize,
}

impl Layout {
    /// The parts of each node.
    pub fn by_node(&self) -> impl Iterator<Item = &[Part]> {
        self.parts.chunk_by(|a, b| a.node == b.node)
    }
}

impl Document {
    /// All triangle meshes as one, in world space, in the pose that the nodes hold.
    ///
    /// Points and lines are no part of it. A skinned mesh is taken as its skin poses it; its node's transform does not
    /// count. Normals are there where every primitive has them.
    ///
    /// # Errors
    /// [`Error::AlreadySkinned`] without `replace_skin`; [`Error::NoFaces`]; [`Error::Coordinate`] with the vertex' number
    /// in the whole; [`Error::Format`] for what breaks the format; [`Error::Extension`] for compressed data.
    pub fn mesh(&self, replace_skin: bool) -> Result<(Mesh, Vec<Warning>)> {
        let scene = self.scene()?;
        let layout = self.layout()?;
        let nodes = self.list("nodes")?;
        if !replace_skin && let Some(part) = layout.parts.iter().find(|p| member(&nodes[p.node], "skin").is_some()) {
            return Err(Error::AlreadySkinned { place: self.node_place(part.node) });
        }
        if layout.parts.is_empty() && layout.left_out > 0 {
            return Err(Error::NoFaces);
        }
        let mut positions = Vec::with_capacity(layout.vertices);
        let mut triangles = Vec::new();
        let mut normals = self.all_have_normals(&layout)?.then(|| Vec::with_capacity(layout.vertices));
        let mut warnings = self.warnings.clone();
        let mut corners = 0;
        for group in layout.by_node() {
            let placement = self.placement(&scene, group)?;
            if let Placement::Affine(m) = &placement
                && m.determinant() == 0.0
            {
                let what =
                    format!("{} flattens its mesh: its transform has no inverse.", self.node_place(group[0].node));
                warnings.push(Warning::new(Code::DegenerateFaces, what));
            }
            for part in group {
                let matrices = self.vertex_matrices(&placement, part)?;
                let base = part.vertices.start;
                let local = self.part_positions(part)?;
                positions.extend(local.into_iter().enumerate().map(|(v, p)| matrices.at(v).transform_point3(p)));
                if let Some(normals) = &mut normals {
                    let local = self.part_normals(part)?;
                    normals.extend(local.into_iter().enumerate().map(|(v, n)| matrices.normal(v, n)));
                }
                corners += self.add_triangles(part, base as u32, &mut triangles, &mut warnings)?;
                self.check_size(corners, "triangle corners")?;
            }
        }
        if layout.left_out > 0 {
            let what = format!("{} primitives of points or lines stay in the file but are not bound.", layout.left_out);
            warnings.push(Warning::new(Code::FileIgnored, what));
        }
        let mesh = Mesh::new(positions, triangles)?;
        Ok((if let Some(normals) = normals { mesh.with_normals(normals)? } else { mesh }, warnings))
    }

    /// Finds the triangle primitives of all nodes and checks their positions' accessors.
    pub(super) fn layout(&self) -> Result<Layout> {
        let mut layout = Layout::default();
        for (n, node) in self.list("nodes")?.iter().enumerate() {
            let place = self.node_place(n);
            let Some(mesh) = index(node, "mesh", &place)? else { continue };
            if let Some(skin) = index(node, "skin", &place)? {
                layout.joints += list(self.entry("skins", skin, &place)?, "joints", &format!("skin {skin}"))?.len();
                self.check_size(layout.joints, "joints")?;
            }
            let primitives = list(self.entry("meshes", mesh, &place)?, "primitives", &format!("mesh {mesh}"))?;
            for (number, primitive) in primitives.iter().enumerate() {
                self.add_part(&mut layout, n, mesh, number, primitive)?;
            }
        }
        Ok(layout)
    }

    fn add_part(&self, layout: &mut Layout, node: usize, mesh: usize, number: usize, primitive: &Value) -> Result<()> {
        self.check_size((layout.parts.len() + layout.left_out) * PART_SIZE, "primitives (16 each)")?;
        let place = primitive_place(mesh, number);
        let mode = match index(primitive, "mode", &place)?.unwrap_or(4) {
            0..=3 => {
                layout.left_out += 1;
                return Ok(());
            }
            4 => Mode::Triangles,
            5 => Mode::Strip,
            6 => Mode::Fan,
            other => return Err(Error::format(place, format!("mode {other} is not one that glTF has"))),
        };
        let attributes =
            member(primitive, "attributes").ok_or_else(|| Error::format(&place, "attributes are missing"))?;
        let position = index(attributes, "POSITION", &place)?
            .ok_or_else(|| Error::format(&place, "it has no POSITION, so no shape"))?;
        let draco = member(primitive, "extensions").is_some_and(|e| member(e, DRACO).is_some());
        if draco && member(self.entry("accessors", position, &place)?, "bufferView").is_none() {
            return Err(extension_error(DRACO));
        }
        let accessor = self.accessor(position, &place)?;
        accessor.expect(3, &COORDINATES, "POSITION")?;
        let start = layout.vertices;
        layout.vertices = start.saturating_add(accessor.count);
        self.check_size(layout.vertices, "vertices")?;
        layout.parts.push(Part { node, mesh, primitive: number, position, vertices: start..layout.vertices, mode });
        Ok(())
    }

    /// A mesh that stands on many nodes multiplies: a small file must not ask for gigabytes.
    fn check_size(&self, count: usize, what: &str) -> Result<()> {
        let limit = self.file_bytes.saturating_mul(PER_BYTE).clamp(FREE, u32::MAX as usize);
        if count <= limit {
            return Ok(());
        }
        Err(Error::Limit {
            what: format!("{what} of all nodes together"),
            needed: count.to_string(),
            limit: limit.to_string(),
            advice: "the file shows its meshes on too many nodes; bind them one by one".into(),
        })
    }

    pub(super) fn primitive(&self, part: &Part) -> &Value {
        &self.root["meshes"][part.mesh]["primitives"][part.primitive]
    }

    /// Positions as stored, in the space of the mesh.
    pub(super) fn part_positions(&self, part: &Part) -> Result<Vec<DVec3>> {
        self.accessor(part.position, &part.place())?.read(|e| DVec3::from_slice(e))
    }

    fn all_have_normals(&self, layout: &Layout) -> Result<bool> {
        for part in &layout.parts {
            if index(&self.primitive(part)["attributes"], "NORMAL", &part.place())?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn part_normals(&self, part: &Part) -> Result<Vec<DVec3>> {
        self.attribute(part, "NORMAL", 3, &COORDINATES, |e| DVec3::from_slice(e))
    }

    /// An attribute that the primitive must have, one entry a vertex.
    pub(super) fn attribute<T: Clone>(
        &self,
        part: &Part,
        name: &str,
        width: usize,
        allowed: &[Component],
        make: impl Fn(&[f64]) -> T,
    ) -> Result<Vec<T>> {
        let place = part.place();
        let number = index(&self.primitive(part)["attributes"], name, &place)?
            .ok_or_else(|| Error::format(&place, format!("it has no {name}")))?;
        let accessor = self.accessor(number, &place)?;
        accessor.expect(width, allowed, name)?;
        part.check_count(accessor.count, name)?;
        accessor.read(make)
    }

    /// Adds the primitive's triangles; how many corners its list has.
    fn add_triangles(
        &self,
        part: &Part,
        base: u32,
        triangles: &mut Vec<[u32; 3]>,
        warnings: &mut Vec<Warning>,
    ) -> Result<usize> {
        let place = part.place();
        let count = part.vertices.len() as u32;
        let corners = match index(self.primitive(part), "indices", &place)? {
            None => (0..count).collect(),
            Some(number) => {
                let accessor = self.accessor(number, &place)?;
                let corners = accessor.read_whole()?;
                if let Some((at, bad)) = corners.iter().enumerate().find(|&(_, &c)| c >= count) {
                    let what = format!(
                        "index {bad} (entry {at} of {}) is beyond its {count} vertices (0-based)",
                        accessor.place
                    );
                    return Err(Error::format(place, what));
                }
                corners
            }
        };
        let at = |i: usize| corners[i] + base;
        match part.mode {
            Mode::Triangles => {
                triangles.extend(corners.chunks_exact(3).map(|c| [c[0] + base, c[1] + base, c[2] + base]))
            }
            // Every other triangle of a strip runs backwards. Repeated corners only steer the strip.
            Mode::Strip => triangles.extend(
                (2..corners.len())
                    .map(|i| if i % 2 == 0 { [at(i - 2), at(i - 1), at(i)] } else { [at(i - 2), at(i), at(i - 1)] })
                    .filter(|[a, b, c]| a != b && b != c && c != a),
            ),
            Mode::Fan => triangles.extend((2..corners.len()).map(|i| [at(i - 1), at(i), at(0)])),
        }
        if part.mode == Mode::Triangles && corners.len() % 3 != 0 {
            let what = format!("{place}: {} corners are left over after its last triangle.", corners.len() % 3);
            warnings.push(Warning::new(Code::FileIgnored, what));
        }
        Ok(corners.len())
    }
}

impl Part {
    pub fn place(&self) -> String {
        primitive_place(self.mesh, self.primitive)
    }

    pub fn check_count(&self, found: usize, name: &str) -> Result<()> {
        let expected = self.vertices.len();
        if found == expected {
            return Ok(());
        }
        Err(Error::format(self.place(), format!("{name} has {found} entries, POSITION has {expected}")))
    }
}

fn primitive_place(mesh: usize, primitive: usize) -> String {
    format!("mesh {mesh}, primitive {primitive}")
}
