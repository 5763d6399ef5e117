//! Heat of all bones on the CPU, in f64: four bones at a time, each group only where it is warm.
//!
//! A bone matters in a part of the solid only. Each group of bones is solved on the coarsest level everywhere, then
//! level by level in the children of the voxels that are warmer than `COLD` of the tolerance, one voxel further, and
//! the voxels that the bones heat themselves; beyond it is 0. By the maximum principle that changes a heat by no more
//! than it is at the border. The coarser level's values start the finer one (nested iteration), so a few iterations do.

use rayon::prelude::*;

use super::levels::Level;
use super::multigrid::{LANES, Solved, Solver};
use crate::error::Result;
use crate::progress::{Progress, Stage};

/// What counts as cold, as a share of the tolerance.
pub(super) const COLD: f64 = 0.3;
/// When a solve has done enough, as a share of the tolerance.
const ENOUGH: f64 = 1.0;

/// A bone's heat in a voxel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat {
    pub bone: u32,
    pub heat: f64,
}

/// The heats of voxels, sparse.
pub struct Heats {
    /// Those of voxel v are `heats[first[v]..first[v + 1]]`, in the order in which bones were solved.
    heats: Vec<Heat>,
    first: Vec<u32>,
    /// Heats up to this one count as none.
    pub cold: f64,
    /// Iterations of all groups at full resolution; on a GPU the most sweeps of a solve.
    pub iterations: usize,
    /// The largest relative residual of a bone, in the part of the solid in which it was solved, before the last
    /// correction; on a GPU a bound of the error there.
    pub residual: f64,
}

impl Heats {
    /// Sorts what groups of bones found, each voxel and heat in the order of voxels, by voxel.
    pub(super) fn new(
        voxels: usize,
        found: &[Vec<(u32, Heat)>],
        tolerance: f64,
        iterations: usize,
        residual: f64,
    ) -> Self {
        let (heats, first) = by_unknown(voxels, found.iter().map(Vec::as_slice));
        Self { heats, first, cold: COLD * tolerance, iterations, residual }
    }

    /// The heats of a voxel, none that are cold.
    pub fn of(&self, voxel: u32) -> &[Heat] {
        &self.heats[self.first[voxel as usize] as usize..self.first[voxel as usize + 1] as usize]
    }
}

/// The heats of these bones in the voxels that are `needed`. `order` has the bones so that those whose heat overlaps
/// stand together: each four of them are solved at once.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn heat(levels: &[Level], order: &[u32], needed: &[bool], tolerance: f64, progress: Progress) -> Result<Heats> {
    let heating = heating(levels, order);
    let groups: Vec<&[u32]> = heating.chunks(LANES).collect();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let (found, solved): (Vec<Vec<(u32, Heat)>>, Vec<Solved>) = groups
        .par_iter()
        .map_init(
            || Solver::new(levels),
            |solver, group| {
                let solved = solve_group(solver, levels, group, needed, tolerance);
                let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
                progress.at(Stage::Heat, done as f64 / groups.len() as f64)?;
                Ok(solved)
            },
        )
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .unzip();
    let iterations = solved.iter().map(|s| s.iterations).sum();
    let residual = solved.iter().map(|s| s.residual).fold(0.0, f64::max);
    Ok(Heats::new(levels[0].len(), &found, tolerance, iterations, residual))
}

/// The bones that heat anything, in this order.
pub(super) fn heating(levels: &[Level], order: &[u32]) -> Vec<u32> {
    order.iter().copied().filter(|&b| !levels[0].heated(b as usize).is_empty()).collect()
}

/// Sorts what groups found by unknown (a voxel, a place), in the order of the groups: the heats, and for each of so many
/// unknowns its first.
pub(super) fn by_unknown<'a>(
    unknowns: usize,
    found: impl Iterator<Item = &'a [(u32, Heat)]> + Clone,
) -> (Vec<Heat>, Vec<u32>) {
    let mut first = vec![0u32; unknowns + 1];
    for (unknown, _) in found.clone().flatten() {
        first[*unknown as usize + 1] += 1;
    }
    for u in 0..unknowns {
        first[u + 1] += first[u];
    }
    let mut next = first.clone();
    let mut heats = vec![Heat { bone: 0, heat: 0.0 }; first[unknowns] as usize];
    for &(unknown, heat) in found.flatten() {
        heats[next[unknown as usize] as usize] = heat;
        next[unknown as usize] += 1;
    }
    (heats, first)
}

/// Solves up to four bones and lists their heats above the tolerance in the voxels needed.
fn solve_group(
    solver: &mut Solver,
    levels: &[Level],
    group: &[u32],
    needed: &[bool],
    tolerance: f64,
) -> (Vec<(u32, Heat)>, Solved) {
    approach(solver, levels, group, tolerance);
    let solved = solver.solve(0, ENOUGH * tolerance);
    let mut found = Vec::new();
    for (voxel, heats) in solver.heats(0).filter(|(voxel, _)| needed[*voxel as usize]) {
        for (&bone, &heat) in group.iter().zip(heats) {
            if heat > COLD * tolerance {
                found.push((voxel, Heat { bone, heat }));
            }
        }
    }
    (found, solved)
}

/// Goes down to full resolution: afterwards the part to solve in and values to start from are at hand there.
pub(super) fn approach(solver: &mut Solver, levels: &[Level], group: &[u32], tolerance: f64) {
    solver.start(group);
    for level in (0..levels.len() - 1).rev() {
        solver.solve(level + 1, ENOUGH * tolerance);
        solver.refine(level, group, COLD * tolerance);
    }
}
