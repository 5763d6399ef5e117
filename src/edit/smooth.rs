//! Smoothing on the mesh' edges: each place moves towards the mean of its neighbours (umbrella operator, Taubin 1995).

use rayon::prelude::*;

use crate::edit::rows::{Locks, add, edit_rows, place_rows};
use crate::error::{Error, Result};
use crate::geometry::mesh_graph::MeshGraph;
use crate::model::{Influence, Mesh, Weights, Weld};

/// How far and how often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smooth {
    /// How often. Default 1.
    pub steps: usize,
    /// How far towards the mean in one step, 0 to 1. Default 0.5.
    pub strength: f64,
}

impl Default for Smooth {
    fn default() -> Self {
        Self { steps: 1, strength: 0.5 }
    }
}

/// Smooths all weights at once, over coincident vertices too: those end with the same weights. The number of influences
/// grows; [`crate::edit::limit`] cuts it again. Neighbours without weights do not count.
///
/// # Errors
/// [`Error::Length`] where there is not one row a vertex, [`Error::Parameter`] for a strength out of range.
pub fn smooth(mesh: &Mesh, weights: &Weights, by: &Smooth, locks: &Locks) -> Result<Weights> {
    check_length(mesh, weights)?;
    if !(0.0..=1.0).contains(&by.strength) {
        let value = by.strength.to_string();
        return Err(Error::Parameter { name: "smoothing strength", value, allowed: "it must be from 0 to 1" });
    }
    let weld = mesh.weld();
    let graph = MeshGraph::new(mesh, &weld);
    let neighbors = |place| graph.of(place).iter().map(|&n| (n, 1.0));
    let mut weights = weights.clone();
    for _ in 0..by.steps {
        let moved = smooth_places(&place_rows(&weights, &weld), by.strength, neighbors, |_| true);
        weights = take_places(&weights, &moved, &weld, locks);
    }
    Ok(weights)
}

/// One step for the places that `which` names. `neighbors` are those of a place with their weights in the mean, which are
/// positive. Rows, and those of the result, add up to 1 or are empty.
pub(super) fn smooth_places<N: Iterator<Item = (u32, f64)>>(
    rows: &Weights,
    strength: f64,
    neighbors: impl Fn(u32) -> N + Sync,
    which: impl Fn(u32) -> bool + Sync,
) -> Weights {
    let bound = |place: u32| neighbors(place).filter(|&(n, _)| !rows.of(n as usize).is_empty());
    let moved: Vec<Vec<Influence>> = (0..rows.len() as u32)
        .into_par_iter()
        .map(|place| {
            let mut row = rows.of(place as usize).to_vec();
            if row.is_empty() || !which(place) {
                return row;
            }
            let total: f64 = bound(place).map(|(_, weight)| weight).sum();
            if total > 0.0 {
                row.iter_mut().for_each(|i| i.weight *= 1.0 - strength);
                for (neighbor, weight) in bound(place) {
                    let share = strength * weight / total;
                    rows.of(neighbor as usize).iter().for_each(|i| add(&mut row, i.joint, i.weight * share));
                }
            }
            row
        })
        .collect();
    let mut all = Weights::with_capacity(rows.len(), moved.iter().map(Vec::len).sum());
    moved.into_iter().for_each(|row| all.push(row));
    all
}

/// Gives the vertices the rows of their places, as far as locks allow.
pub(super) fn take_places(weights: &Weights, places: &Weights, weld: &Weld, locks: &Locks) -> Weights {
    let take = |vertex: usize, _: &[Influence], free: &mut Vec<Influence>, _: &mut _| {
        free.clear();
        free.extend_from_slice(places.of(weld.place_of[vertex] as usize));
    };
    edit_rows(weights, locks, take).0
}

/// Checks that there is a row for each vertex.
pub(super) fn check_length(mesh: &Mesh, weights: &Weights) -> Result<()> {
    let (found, expected) = (weights.len(), mesh.positions().len());
    if found == expected { Ok(()) } else { Err(Error::Length { what: "weights", found, expected }) }
}
