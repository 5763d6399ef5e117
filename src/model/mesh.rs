//! Triangle meshes: positions in f64, triangles, and what follows from the two alone.

use glam::DVec3;

use crate::error::{Error, Result};

/// A triangle mesh in world space. Checked when made: there is at least one vertex and one triangle, coordinates
/// are finite 32-bit numbers in magnitude, and triangles name vertices that are there.
#[derive(Debug, Clone, PartialEq)]
pub struct Mesh {
    positions: Vec<DVec3>,
    triangles: Vec<[u32; 3]>,
    normals: Option<Vec<DVec3>>,
}

/// An axis-aligned box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub min: DVec3,
    pub max: DVec3,
}

impl Bounds {
    /// The smallest box around the points; `None` where there are none.
    pub fn of(points: impl IntoIterator<Item = DVec3>) -> Option<Self> {
        let mut points = points.into_iter();
        let first = points.next()?;
        Some(points.fold(Bounds { min: first, max: first }, |b, p| Bounds { min: b.min.min(p), max: b.max.max(p) }))
    }

    /// Edge lengths.
    pub fn extent(&self) -> DVec3 {
        self.max - self.min
    }

    /// The middle, computed so that mirrored boxes have mirrored centres.
    pub fn center(&self) -> DVec3 {
        self.min * 0.5 + self.max * 0.5
    }

    /// Length of the space diagonal.
    pub fn diagonal(&self) -> f64 {
        self.extent().length()
    }
}

/// Coincident vertices taken together: bit-equal positions, with -0 equal to 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Weld {
    /// For each vertex of the mesh, its place: an index below `places()`, numbered by first appearance.
    pub place_of: Vec<u32>,
    /// For each place, the first vertex there.
    pub first: Vec<u32>,
}

impl Weld {
    /// How many different positions there are.
    pub fn places(&self) -> usize {
        self.first.len()
    }
}

/// Parts of a mesh that are connected over edges, coincident vertices counting as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Components {
    /// For each place of the weld, its component, numbered by first appearance.
    pub of_place: Vec<u32>,
    /// Vertices (not places) of each component.
    pub vertices: Vec<usize>,
}

impl Components {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }
}

impl Mesh {
    /// A mesh from its positions and triangles.
    ///
    /// # Errors
    /// [`Error::NoVertices`], [`Error::NoFaces`], [`Error::Coordinate`] and [`Error::VertexIndex`], each for the first fault.
    pub fn new(positions: Vec<DVec3>, triangles: Vec<[u32; 3]>) -> Result<Self> {
        if positions.is_empty() {
            return Err(Error::NoVertices);
        }
        if triangles.is_empty() {
            return Err(Error::NoFaces);
        }
        for (vertex, p) in positions.iter().enumerate() {
            for (axis, value) in ['x', 'y', 'z'].into_iter().zip(p.to_array()) {
                if !(value as f32).is_finite() {
                    return Err(Error::Coordinate { vertex, axis, value });
                }
            }
        }
        let vertices = positions.len();
        for (triangle, corners) in triangles.iter().enumerate() {
            if let Some(&index) = corners.iter().find(|&&c| c as usize >= vertices) {
                return Err(Error::VertexIndex { triangle, index: index.into(), vertices });
            }
        }
        Ok(Self { positions, triangles, normals: None })
    }

    /// The same mesh with one normal a vertex (not necessarily of unit length).
    ///
    /// # Errors
    /// [`Error::Length`] where there is not one normal a vertex.
    pub fn with_normals(mut self, normals: Vec<DVec3>) -> Result<Self> {
        if normals.len() != self.positions.len() {
            return Err(Error::Length { what: "normals", found: normals.len(), expected: self.positions.len() });
        }
        self.normals = Some(normals);
        Ok(self)
    }

    /// A normal for each vertex from the triangles around it, weighted by their areas; unit length, +z where there is no
    /// area.
    pub fn smooth_normals(&self) -> Vec<DVec3> {
        let mut around = vec![DVec3::ZERO; self.positions.len()];
        for &triangle in &self.triangles {
            let [a, b, c] = self.corners(triangle);
            let normal = (b - a).cross(c - a);
            triangle.iter().for_each(|&v| around[v as usize] += normal);
        }
        around.into_iter().map(|n| n.normalize_or(DVec3::Z)).collect()
    }

    /// Vertex positions, in world space.
    pub fn positions(&self) -> &[DVec3] {
        &self.positions
    }

    /// Corners of the triangles.
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// One normal a vertex, where the file had them.
    pub fn normals(&self) -> Option<&[DVec3]> {
        self.normals.as_deref()
    }

    /// The positions of a triangle's corners.
    pub fn corners(&self, triangle: [u32; 3]) -> [DVec3; 3] {
        triangle.map(|v| self.positions[v as usize])
    }

    /// The box around all vertices, those without a face too.
    pub fn bounds(&self) -> Bounds {
        Bounds::of(self.positions.iter().copied()).expect("a mesh has at least one vertex")
    }
}
