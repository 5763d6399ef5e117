//! Texture coordinates that belong to corners of triangles, and the mesh split where they disagree at a vertex.

use std::collections::HashMap;

use glam::DVec2;

use crate::error::Result;
use crate::model::Mesh;

/// No coordinates.
const NONE: u32 = u32::MAX;

/// Texture coordinates of a mesh's corners. `v` grows upwards, as in OBJ.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Texture {
    values: Vec<DVec2>,
    /// For each triangle the index of the coordinates of each corner; [`NONE`] for a corner that has none.
    corners: Vec<[u32; 3]>,
}

/// A mesh with one pair of texture coordinates a vertex.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    pub mesh: Mesh,
    /// For each vertex the one that it was before. All that were there keep their numbers.
    pub vertices: Vec<u32>,
    /// One a vertex, 0 for a vertex without; empty where no corner has any.
    pub coordinates: Vec<DVec2>,
}

impl Texture {
    /// Adds coordinates; corners name them in this order.
    pub fn push(&mut self, value: DVec2) {
        self.values.push(value);
    }

    /// How many coordinates there are so far.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Whether no corner of a triangle has coordinates.
    pub fn is_empty(&self) -> bool {
        self.corners.is_empty()
    }

    /// Names the coordinates of a triangle's corners, which may be added later. Triangles may come in any order.
    pub fn name(&mut self, triangle: usize, corners: [Option<u32>; 3]) {
        if corners.iter().any(Option::is_some) {
            if self.corners.len() <= triangle {
                self.corners.resize(triangle + 1, [NONE; 3]);
            }
            self.corners[triangle] = corners.map(|c| c.unwrap_or(NONE));
        }
    }

    /// The coordinates of some of the triangles, in a new order.
    pub fn of_triangles(&self, triangles: impl IntoIterator<Item = usize>) -> Self {
        let corners = triangles.into_iter().map(|t| self.of(t)).collect();
        Self { values: self.values.clone(), corners }
    }

    fn of(&self, triangle: usize) -> [u32; 3] {
        self.corners.get(triangle).copied().unwrap_or([NONE; 3])
    }

    fn value(&self, index: u32) -> Option<DVec2> {
        self.values.get(index as usize).copied().filter(|value| value.is_finite())
    }

    /// Doubles the vertices of a mesh at which corners have different coordinates, with their normals.
    ///
    /// # Errors
    /// Those of [`Mesh::new`].
    pub fn split(&self, mesh: &Mesh) -> Result<Split> {
        let count = mesh.positions().len();
        let mut vertices: Vec<u32> = (0..count as u32).collect();
        if self.is_empty() {
            return Ok(Split { mesh: mesh.clone(), vertices, coordinates: Vec::new() });
        }
        let mut coordinates: Vec<Option<DVec2>> = vec![None; count];
        let mut doubles: HashMap<(u32, [u64; 2]), u32> = HashMap::new();
        let mut triangles = mesh.triangles().to_vec();
        for (number, triangle) in triangles.iter_mut().enumerate() {
            for (corner, index) in triangle.iter_mut().zip(self.of(number)) {
                let Some(value) = self.value(index) else { continue };
                let vertex = *corner;
                match &mut coordinates[vertex as usize] {
                    none @ None => *none = Some(value),
                    Some(first) if *first == value => {}
                    Some(_) => {
                        let bits = value.to_array().map(f64::to_bits);
                        *corner = *doubles.entry((vertex, bits)).or_insert_with(|| {
                            vertices.push(vertex);
                            vertices.len() as u32 - 1
                        });
                        coordinates.resize(vertices.len(), Some(value));
                    }
                }
            }
        }
        let positions = vertices.iter().map(|&v| mesh.positions()[v as usize]).collect();
        let mut split = Mesh::new(positions, triangles)?;
        if let Some(normals) = mesh.normals() {
            split = split.with_normals(vertices.iter().map(|&v| normals[v as usize]).collect())?;
        }
        let coordinates = coordinates.into_iter().map(Option::unwrap_or_default).collect();
        Ok(Split { mesh: split, vertices, coordinates })
    }
}

#[cfg(test)]
mod tests {
    use glam::DVec3;

    use super::*;

    #[test]
    fn vertices_are_doubled_only_where_coordinates_differ() {
        let points = [[0., 0.], [1., 0.], [1., 1.], [0., 1.]].map(|[x, y]| DVec3::new(x, y, 0.0)).to_vec();
        let mesh = Mesh::new(points, vec![[0, 1, 2], [0, 2, 3]]).unwrap();
        let mesh = mesh.with_normals((0..4).map(|i| DVec3::Z * f64::from(i + 1)).collect()).unwrap();
        let mut texture = Texture::default();
        for value in [[0., 0.], [1., 0.], [1., 1.], [0.5, 0.5]] {
            texture.push(value.into());
        }
        texture.name(0, [Some(0), Some(1), Some(2)]);
        // Corner 0 as before, corner 2 elsewhere, corner 3 names what is not there.
        texture.name(1, [Some(0), Some(3), Some(99)]);
        let split = texture.split(&mesh).unwrap();
        assert_eq!(split.vertices, [0, 1, 2, 3, 2]);
        assert_eq!(split.mesh.triangles(), [[0, 1, 2], [0, 4, 3]]);
        assert_eq!(split.mesh.positions()[4], mesh.positions()[2]);
        assert_eq!(split.mesh.normals().unwrap()[4], DVec3::Z * 3.0);
        assert_eq!(split.coordinates, [[0., 0.], [1., 0.], [1., 1.], [0., 0.], [0.5, 0.5]].map(DVec2::from));
        // The second triangle alone needs no doubles.
        let part = Mesh::new(mesh.positions().to_vec(), vec![[0, 2, 3]]).unwrap();
        assert_eq!(texture.of_triangles([1]).split(&part).unwrap().vertices, [0, 1, 2, 3]);
        let none = Texture::default().split(&mesh).unwrap();
        assert_eq!((none.mesh, none.coordinates), (mesh, Vec::new()));
    }
}
