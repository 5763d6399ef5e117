//! MakeHuman's base mesh: a body and, in the same OBJ file, helper geometry that is never shown (cubes that joints are the
//! middles of, hulls that clothes are fitted to).

use std::collections::HashMap;
use std::path::Path;

use glam::DVec3;

use crate::error::{Error, Result};
use crate::io::obj::{self, Group, Parsed};
use crate::io::texture::Texture;
use crate::model::{Mesh, Weights};

/// The group that is the visible body.
const BODY: &str = "body";

/// The base mesh, with all its helpers.
#[derive(Debug, Clone, PartialEq)]
pub struct Base {
    pub mesh: Mesh,
    groups: Vec<Group>,
    texture: Texture,
}

/// A mesh of some of the vertices of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub mesh: Mesh,
    /// For each vertex its number in the whole mesh, ascending.
    pub vertices: Vec<u32>,
    pub texture: Texture,
}

impl Base {
    /// Reads the OBJ file.
    ///
    /// # Errors
    /// Those of [`obj::read`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::Read(e).in_file(path))?;
        Self::parse(&bytes).map_err(|e| e.in_file(path))
    }

    /// Reads the text of the OBJ file; errors as [`Base::read`].
    pub fn parse(text: &[u8]) -> Result<Self> {
        let Parsed { mesh, groups, texture } = obj::parse_all(text)?;
        Ok(Self { mesh, groups, texture })
    }

    /// How many vertices there are, helpers included: what weights files and clothes number.
    pub fn vertices(&self) -> usize {
        self.mesh.positions().len()
    }

    /// The middle of the vertices of each group of faces, by its name.
    pub(super) fn group_middles(&self) -> HashMap<&str, DVec3> {
        let mut of_group: HashMap<&str, Vec<u32>> = HashMap::new();
        for group in &self.groups {
            let corners = self.mesh.triangles()[group.triangles.clone()].as_flattened();
            of_group.entry(&group.name).or_default().extend(corners);
        }
        let middle = |mut vertices: Vec<u32>| {
            vertices.sort_unstable();
            vertices.dedup();
            let sum: DVec3 = vertices.iter().map(|&v| self.mesh.positions()[v as usize]).sum();
            sum / vertices.len() as f64
        };
        of_group.into_iter().map(|(name, vertices)| (name, middle(vertices))).collect()
    }

    /// What is shown: the faces of the group `body`, or all where there is no such group, without those all of whose
    /// corners are in one of the ranges of hidden vertices (first and last). Vertices of no such face are left out.
    ///
    /// # Errors
    /// [`Error::NoFaces`] where everything is hidden.
    pub fn body(&self, hidden: &[[u32; 2]]) -> Result<Part> {
        let is_hidden = within(hidden, self.vertices());
        let has_body = self.groups.iter().any(|g| g.name == BODY);
        let shown = self.groups.iter().filter(|g| !has_body || g.name == BODY);
        let numbers: Vec<usize> = shown
            .flat_map(|g| g.triangles.clone())
            .filter(|&t| !self.mesh.triangles()[t].iter().all(|&v| is_hidden[v as usize]))
            .collect();
        let triangles: Vec<[u32; 3]> = numbers.iter().map(|&t| self.mesh.triangles()[t]).collect();
        let mut vertices: Vec<u32> = triangles.as_flattened().to_vec();
        vertices.sort_unstable();
        vertices.dedup();
        let mut number = vec![0; self.vertices()];
        vertices.iter().enumerate().for_each(|(n, &v)| number[v as usize] = n as u32);
        let positions: Vec<DVec3> = vertices.iter().map(|&v| self.mesh.positions()[v as usize]).collect();
        if positions.is_empty() {
            return Err(Error::NoFaces);
        }
        let triangles = triangles.iter().map(|t| t.map(|v| number[v as usize])).collect();
        let texture = self.texture.of_triangles(numbers);
        Ok(Part { mesh: Mesh::new(positions, triangles)?, vertices, texture })
    }
}

/// Whether each of `count` numbers is in one of these ranges, ends included.
fn within(ranges: &[[u32; 2]], count: usize) -> Vec<bool> {
    let mut steps = vec![0i64; count + 1];
    for &[first, last] in ranges {
        steps[(first as usize).min(count)] += 1;
        steps[(last as usize + 1).min(count)] -= 1;
    }
    let mut depth = 0;
    let inside = steps[..count].iter().map(|step| {
        depth += step;
        depth > 0
    });
    inside.collect()
}

impl Part {
    /// The weights of its vertices out of those of the whole mesh.
    pub fn weights(&self, whole: &Weights) -> Weights {
        whole.scatter(&self.vertices)
    }
}
