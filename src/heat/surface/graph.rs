//! The Laplacian of a welded surface: what flows along its edges, in one of two forms.

use glam::DVec3;
use rayon::prelude::*;

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
    /// The graph of a mesh. With [`Conduction::Cotangents`] edges conduct by the cotangents opposite to them and a source
    /// counts by the area around its place; with [`Conduction::Lengths`] edges conduct by the inverse of their squared
    /// length and all sources count alike.
    pub fn new(mesh: &Mesh, weld: &Weld, conduction: Conduction) -> Self {
        let mut laplacian = Laplacian::new(mesh, weld);
        if conduction == Conduction::Lengths {
            let shortest = SHORTEST_EDGE * mesh.bounds().diagonal();
            let at = |place: u32| mesh.positions()[weld.first[place as usize] as usize];
            let conduct = |a: DVec3, b: DVec3| 1.0 / a.distance_squared(b).max(shortest * shortest);
            laplacian.reweigh(|a, b| conduct(at(a), at(b)));
            laplacian.area.par_iter_mut().for_each(|area| *area = 1.0);
        }
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
