//! What flows along the edges of a welded surface, in one of two forms.

use crate::geometry::mesh_graph::Laplacian;
use crate::heat::surface::Conduction;
use crate::model::{Mesh, Weld};

/// Shortest edge that counts, in bounding-box diagonals of the mesh: shorter ones would conduct without bound.
const SHORTEST_EDGE: f64 = 1e-6;

/// Places, what flows between them, and how much of the surface is each one's.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    laplacian: Laplacian,
}

impl Graph {
    /// The graph of a mesh.
    pub fn new(mesh: &Mesh, weld: &Weld, conduction: Conduction) -> Self {
        let laplacian = match conduction {
            Conduction::Cotangents => Laplacian::new(mesh, weld),
            Conduction::Lengths => {
                let mut laplacian = Laplacian::by_length(mesh, weld, SHORTEST_EDGE * mesh.bounds().diagonal());
                laplacian.area.fill(1.0);
                laplacian
            }
        };
        Self { laplacian }
    }

    /// The neighbours of a place with what flows to them, ascending.
    pub fn of(&self, place: u32) -> &[(u32, f64)] {
        self.laplacian.of(place)
    }

    /// How much the source of each place counts.
    pub fn mass(&self) -> &[f64] {
        &self.laplacian.area
    }
}
