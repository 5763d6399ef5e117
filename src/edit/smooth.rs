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
    let mut weights = weights.clone();
    for _ in 0..by.steps {
        let rows = place_rows(&weights, &weld);
        let moved: Vec<Vec<Influence>> = (0..rows.len() as u32)
            .into_par_iter()
            .map(|place| {
                let neighbors = graph.of(place).iter().map(|&n| (rows.of(n as usize), 1.0));
                smooth_row(rows.of(place as usize), neighbors, by.strength)
            })
            .collect();
        let mut places = Weights::with_capacity(moved.len(), moved.iter().map(Vec::len).sum());
        moved.into_iter().for_each(|row| places.push(row));
        weights = take_places(&weights, &places, &weld, locks);
    }
    Ok(weights)
}

/// A row moved by `strength` towards the mean of its neighbours, which come with their weights in the mean. Rows, and the
/// result, add up to 1 or are empty; empty ones take no part.
pub(super) fn smooth_row<'a>(
    row: &[Influence],
    neighbors: impl Iterator<Item = (&'a [Influence], f64)> + Clone,
    strength: f64,
) -> Vec<Influence> {
    let mut moved = row.to_vec();
    let bound = neighbors.filter(|(of, _)| !of.is_empty());
    let total: f64 = bound.clone().map(|(_, weight)| weight).sum();
    if row.is_empty() || total <= 0.0 {
        return moved;
    }
    moved.iter_mut().for_each(|i| i.weight *= 1.0 - strength);
    for (of, weight) in bound {
        let share = strength * weight / total;
        of.iter().for_each(|i| add(&mut moved, i.joint, i.weight * share));
    }
    moved
}

/// Gives the vertices the rows of their places, as far as locks allow.
fn take_places(weights: &Weights, places: &Weights, weld: &Weld, locks: &Locks) -> Weights {
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
