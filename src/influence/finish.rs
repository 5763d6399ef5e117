//! The end of every method: cap at the strongest influences, drop the faint ones, normalise in f64.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::model::{Influence, Skeleton, Weights};
use crate::progress::{Progress, Stage};

/// Most influences a vertex may be given.
pub const MOST_INFLUENCES: usize = 16;
/// Places a task: long enough to pay for handing it out, short enough to cancel and to share between cores.
const CHUNK: usize = 1024;

/// What of a vertex' influences is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Most influences a vertex, 1 to 16. Default 4.
    pub max_influences: usize,
    /// Influences with less than this share of the capped weights are dropped, 0 up to (not with) 1. The strongest always
    /// stays. Default 0.01.
    pub threshold: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_influences: 4, threshold: 0.01 }
    }
}

impl Limits {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        if !(1..=MOST_INFLUENCES).contains(&self.max_influences) {
            let value = self.max_influences.to_string();
            return Err(Error::Parameter { name: "max influences", value, allowed: "it must be from 1 to 16" });
        }
        if !(0.0..1.0).contains(&self.threshold) {
            let value = self.threshold.to_string();
            return Err(Error::Parameter { name: "threshold", value, allowed: "it must be at least 0 and below 1" });
        }
        Ok(())
    }
}

/// What cap and threshold did, over all vertices.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Stats {
    /// How many influences a vertex could have had before the cap.
    pub influences_considered: usize,
    /// The largest number of non-zero influences that a vertex had before the cap.
    pub max_influences_before_cap: usize,
    /// The largest share of a vertex' raw weight that cap and threshold cut off.
    pub largest_pruned_share: f64,
}

impl Stats {
    /// Takes the larger of each figure.
    pub fn merge(self, other: Self) -> Self {
        Self {
            influences_considered: self.influences_considered.max(other.influences_considered),
            max_influences_before_cap: self.max_influences_before_cap.max(other.max_influences_before_cap),
            largest_pruned_share: self.largest_pruned_share.max(other.largest_pruned_share),
        }
    }
}

/// Turns the raw weights of a vertex into its final ones, in place: the strongest `max_influences` (ties, to 1e-9 of a
/// weight, by bone name), less those below the threshold, normalised, in descending order but for such ties. At most
/// `considered` of the strongest count as having been there before the cap: what figures of the cut are about. The exact
/// sum of the results is 1 within n 2^-53, and a single influence is exactly 1. Weights that are not above 0 count as
/// absent; the list ends empty where there are no others.
///
/// Each joint stands at most once in `raw`, in any order: the result does not depend on it.
pub fn finish(raw: &mut Vec<Influence>, considered: usize, limits: &Limits, skeleton: &Skeleton, stats: &mut Stats) {
    raw.retain(|i| i.weight > 0.0);
    let rank = |i: &Influence| skeleton.rank(i.joint as usize);
    raw.sort_unstable_by(|a, b| level(b.weight).cmp(&level(a.weight)).then_with(|| rank(a).cmp(&rank(b))));
    // Around a vertex are voxels with different nearest bones: together they can name more bones than each voxel holds.
    raw.truncate(considered.max(limits.max_influences));
    stats.max_influences_before_cap = stats.max_influences_before_cap.max(raw.len());
    let before = sum(raw);
    let there = raw.len();
    raw.truncate(limits.max_influences);
    let least = limits.threshold * sum(raw);
    // Descending, so the faint ones are the last.
    while raw.len() > 1 && raw.last().is_some_and(|i| i.weight < least) {
        raw.pop();
    }
    let total = sum(raw);
    if raw.len() < there {
        stats.largest_pruned_share = stats.largest_pruned_share.max((before - total) / before);
    }
    for influence in raw {
        influence.weight /= total;
    }
}

/// A weight above 0 on a scale whose steps are 2^-30 of it: weights that are equal but for rounding tie. On the plane of
/// symmetry of a body the bones of both sides do, and another unit of length must not turn over which the cap keeps.
fn level(weight: f64) -> u64 {
    const SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - 30;
    (weight.to_bits() + (1 << (SHIFT - 1))) >> SHIFT
}

fn sum(influences: &[Influence]) -> f64 {
    influences.iter().map(|i| i.weight).sum()
}

/// Runs `candidates(scratch, place, raw)` for each place on all cores and finishes what it puts into `raw` (handed over
/// empty). A place without candidates ends with an empty row. `scratch` makes what a thread keeps from place to place.
///
/// # Errors
/// [`Error::Parameter`] for limits out of range, [`Error::Cancelled`].
pub fn weigh_places<S>(
    places: usize,
    considered: usize,
    limits: &Limits,
    skeleton: &Skeleton,
    progress: Progress,
    scratch: impl Fn() -> S + Sync + Send,
    candidates: impl Fn(&mut S, usize, &mut Vec<Influence>) + Sync + Send,
) -> Result<(Weights, Stats)> {
    limits.check()?;
    let chunks = places.div_ceil(CHUNK);
    let done = AtomicUsize::new(0);
    let parts: Vec<(Weights, Stats)> = (0..chunks)
        .into_par_iter()
        .map_init(&scratch, |scratch, chunk| {
            let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(places);
            let mut rows = Weights::with_capacity(range.len(), range.len() * limits.max_influences.min(4));
            let mut stats = Stats::default();
            let mut raw = Vec::new();
            for place in range {
                raw.clear();
                candidates(scratch, place, &mut raw);
                finish(&mut raw, considered, limits, skeleton, &mut stats);
                rows.push(raw.iter().copied());
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress.at(Stage::Influence, done as f64 / chunks as f64)?;
            Ok((rows, stats))
        })
        .collect::<Result<_>>()?;
    let (rows, stats): (Vec<Weights>, Vec<Stats>) = parts.into_iter().unzip();
    let begin = Stats { influences_considered: considered, ..Stats::default() };
    Ok((Weights::concat(&rows), stats.into_iter().fold(begin, Stats::merge)))
}
