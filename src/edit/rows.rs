//! Edits of each vertex by itself, and the locks that all edits keep.

use rayon::prelude::*;

use crate::error::Result;
use crate::influence::{Limits, Stats, finish};
use crate::model::{Influence, Skeleton, Weights, Weld};

/// Vertices a task: long enough to pay for handing it out.
const CHUNK: usize = 4096;

/// Bones and vertices whose weights an edit keeps. Those never named are not locked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Locks {
    bones: Vec<bool>,
    vertices: Vec<bool>,
}

impl Locks {
    /// Nothing is locked.
    pub const NONE: Locks = Locks { bones: Vec::new(), vertices: Vec::new() };

    /// Locks a bone or frees it again.
    pub fn set_bone(&mut self, joint: u32, locked: bool) {
        set(&mut self.bones, joint as usize, locked);
    }

    /// Locks a vertex or frees it again.
    pub fn set_vertex(&mut self, vertex: usize, locked: bool) {
        set(&mut self.vertices, vertex, locked);
    }

    /// Whether a bone is locked.
    pub fn bone(&self, joint: u32) -> bool {
        self.bones.get(joint as usize).copied().unwrap_or(false)
    }

    /// Whether a vertex is locked.
    pub fn vertex(&self, vertex: usize) -> bool {
        self.vertices.get(vertex).copied().unwrap_or(false)
    }
}

fn set(flags: &mut Vec<bool>, at: usize, value: bool) {
    if flags.len() <= at {
        flags.resize(at + 1, false);
    }
    flags[at] = value;
}

/// Adds to the weight of a joint in a row.
pub(super) fn add(row: &mut Vec<Influence>, joint: u32, weight: f64) {
    match row.iter_mut().find(|i| i.joint == joint) {
        Some(known) => known.weight += weight,
        None => row.push(Influence { joint, weight }),
    }
}

/// The sum of a row's weights.
pub(super) fn sum(row: &[Influence]) -> f64 {
    row.iter().map(|i| i.weight).sum()
}

/// Divides a row by its sum; without a positive one it ends empty.
pub(super) fn to_one(row: &mut Vec<Influence>) {
    row.retain(|i| i.weight > 0.0);
    let total = sum(row);
    row.iter_mut().for_each(|i| i.weight /= total);
}

/// The rows that `edit(vertex, locked, free, stats)` makes: it is handed the weights of locked bones at a vertex and those of
/// the others, each joint once, and changes the latter. They are then scaled to what the locked ones leave of 1.
pub(super) fn edit_rows(
    weights: &Weights,
    locks: &Locks,
    edit: impl Fn(usize, &[Influence], &mut Vec<Influence>, &mut Stats) + Sync,
) -> (Weights, Stats) {
    let chunk = |chunk: usize| {
        let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(weights.len());
        let mut rows = Weights::with_capacity(range.len(), 4 * range.len());
        let mut stats = Stats::default();
        let (mut locked, mut free) = (Vec::new(), Vec::new());
        for vertex in range {
            let before = weights.of(vertex);
            if locks.vertex(vertex) {
                rows.push(before.iter().copied());
                continue;
            }
            split(before, locks, &mut locked, &mut free);
            edit(vertex, &locked, &mut free, &mut stats);
            free.retain(|i| i.weight > 0.0 && !locks.bone(i.joint));
            let left = (1.0 - sum(&locked)).max(0.0);
            if free.is_empty() && left > 0.0 {
                split(before, locks, &mut locked, &mut free);
            }
            let total = sum(&free);
            // One bone alone has all that is left, to the last bit.
            let share = |w: f64| if w == total { left } else { w / total * left };
            let scaled = free.iter().map(|i| Influence { joint: i.joint, weight: share(i.weight) });
            rows.push(locked.iter().copied().chain(scaled.filter(|i| i.weight > 0.0)));
        }
        (rows, stats)
    };
    let parts: Vec<(Weights, Stats)> = (0..weights.len().div_ceil(CHUNK)).into_par_iter().map(chunk).collect();
    let (rows, stats): (Vec<Weights>, Vec<Stats>) = parts.into_iter().unzip();
    (Weights::concat(&rows), stats.into_iter().fold(Stats::default(), Stats::merge))
}

/// The weights of locked bones and of the others, doubles taken together, those not above 0 left out.
fn split(row: &[Influence], locks: &Locks, locked: &mut Vec<Influence>, free: &mut Vec<Influence>) {
    locked.clear();
    free.clear();
    for i in row.iter().filter(|i| i.weight > 0.0) {
        add(if locks.bone(i.joint) { locked } else { free }, i.joint, i.weight);
    }
}

/// Scales each vertex' weights to add up to 1. Doubles are taken together, weights not above 0 dropped; a vertex without
/// weights stays without.
pub fn normalize(weights: &Weights, locks: &Locks) -> Weights {
    edit_rows(weights, locks, |_, _, _, _| {}).0
}

/// Takes the weights of a joint that stands more than once at a vertex together. Nothing else changes.
pub fn merge_doubles(weights: &Weights) -> Weights {
    let mut merged = Weights::with_capacity(weights.len(), 4 * weights.len());
    let mut row = Vec::new();
    for before in weights.iter() {
        row.clear();
        before.iter().for_each(|i| add(&mut row, i.joint, i.weight));
        merged.push(row.iter().copied());
    }
    merged
}

/// Keeps the `most` strongest influences of each vertex (ties by bone name) and scales them to add up to 1; the largest
/// share that was cut off is in the figures. Locked bones count among the `most`, but are never cut, and one other stays
/// beside them where they leave something to share.
///
/// # Errors
/// [`crate::Error::Parameter`] where `most` is not from 1 to 16.
pub fn limit(weights: &Weights, most: usize, skeleton: &Skeleton, locks: &Locks) -> Result<(Weights, Stats)> {
    let limits = Limits { max_influences: most, threshold: 0.0 };
    limits.check()?;
    Ok(edit_rows(weights, locks, |_, locked, free, stats| {
        let limits = Limits { max_influences: most.saturating_sub(locked.len()).max(1), ..limits };
        finish(free, usize::MAX, &limits, skeleton, stats);
    }))
}

/// Drops weights below `least` and scales the others to add up to 1. The strongest bone that is not locked always stays.
///
/// # Errors
/// [`crate::Error::Parameter`] where `least` is not at least 0 and below 1.
pub fn threshold(weights: &Weights, least: f64, skeleton: &Skeleton, locks: &Locks) -> Result<(Weights, Stats)> {
    Limits { threshold: least, ..Limits::default() }.check()?;
    Ok(edit_rows(weights, locks, |_, locked, free, stats| {
        // `finish` measures shares of the row that it is given.
        let threshold = least / (1.0 - sum(locked)).max(f64::MIN_POSITIVE);
        finish(free, usize::MAX, &Limits { max_influences: usize::MAX, threshold }, skeleton, stats);
    }))
}

/// The weights of each place: the mean over its vertices that have weights, each scaled to add up to 1.
///
/// `weights` has one row a vertex of the mesh that `weld` was made of.
pub fn place_rows(weights: &Weights, weld: &Weld) -> Weights {
    let members = Members::new(weld);
    let mut rows = Weights::with_capacity(weld.places(), 4 * weld.places());
    let mut row = Vec::new();
    for place in 0..weld.places() as u32 {
        row.clear();
        for &vertex in members.of(place) {
            let of_vertex = weights.of(vertex as usize);
            let total = sum(of_vertex);
            if total > 0.0 {
                of_vertex.iter().for_each(|i| add(&mut row, i.joint, i.weight / total));
            }
        }
        to_one(&mut row);
        rows.push(row.iter().copied());
    }
    rows
}

/// The vertices of each place of a weld.
#[derive(Debug, Clone)]
pub(super) struct Members {
    starts: Vec<usize>,
    vertices: Vec<u32>,
}

impl Members {
    /// A counting sort.
    pub fn new(weld: &Weld) -> Self {
        let mut starts = vec![0; weld.places() + 1];
        weld.place_of.iter().for_each(|&p| starts[p as usize + 1] += 1);
        for p in 0..weld.places() {
            starts[p + 1] += starts[p];
        }
        let mut at = starts.clone();
        let mut vertices = vec![0; weld.place_of.len()];
        for (vertex, &place) in weld.place_of.iter().enumerate() {
            vertices[at[place as usize]] = vertex as u32;
            at[place as usize] += 1;
        }
        Self { starts, vertices }
    }

    /// The vertices of a place, ascending.
    pub fn of(&self, place: u32) -> &[u32] {
        &self.vertices[self.starts[place as usize]..self.starts[place as usize + 1]]
    }
}
