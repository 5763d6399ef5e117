//! Sources chosen by the way through the body: steps 5 and 6 of the source rule with distances of the crawl.
//!
//! A straight line to a source may cross the open: from one finger to the next, from an arm to the ribs. The crawl
//! ([`crate::crawl`]) measures the way through the solid. Its distances are those of a lattice with 26 directions, longer
//! than the straight line even where nothing is in the way, so it has a say only where it finds a detour.

use rayon::prelude::*;

use super::solid::Solid;
use super::sources::{Source, middle, score_at, within_tie};
use crate::crawl::{self, Labels, MAX_LABELS, MIN_LABELS, Neighbors};
use crate::error::Result;
use crate::model::{Bone, Grid, Skeleton};
use crate::progress::Progress;
use crate::voxelize::Voxels;

/// How much longer than the straight line (x, y, z), x >= y >= z >= 0, a way of straight, diagonal and space-diagonal steps
/// can be: it is x + (sqrt 2 - 1) y + (sqrt 3 - sqrt 2) z long, so at most the length of that vector of factors, 1.1281.
const LATTICE_ERROR: f64 = 1.1282;
/// By how many voxels both ends of a way may be off the points they stand for: half a space diagonal each.
const ENDS: f64 = 1.75;

/// For each voxel its source, and its distance from it in voxels by which it is heated.
pub fn owners(voxels: &Voxels, solid: &Solid, sources: &[Source], progress: Progress) -> Result<(Vec<u32>, Vec<f64>)> {
    let labels = labels(voxels, sources, progress)?;
    let of_voxel = |voxel: u32| own(&labels, solid, sources, voxel);
    Ok((0..solid.len() as u32).into_par_iter().map(of_voxel).unzip())
}

/// The nearest sources of each voxel, as far as they may be chosen from.
fn labels(voxels: &Voxels, sources: &[Source], progress: Progress) -> Result<Labels> {
    let bones = sources.iter().enumerate().map(|(number, source)| as_bone(&voxels.grid, number, source)).collect();
    let skeleton = Skeleton::new(bones)?;
    let count = sources.len().clamp(MIN_LABELS, MAX_LABELS);
    let all = vec![true; sources.len()];
    Ok(crawl::crawl(voxels, &skeleton, &all, count, Neighbors::TwentySix, progress)?.0)
}

/// The trimmed source as a bone whose name keeps the order of the sources.
fn as_bone(grid: &Grid, number: usize, source: &Source) -> Bone {
    let end = |t: f64| grid.to_world(source.whole.at(t));
    Bone { name: format!("{number:010}"), head: end(source.from), tail: end(source.to), parent: None, deform: true }
}

/// The source of a voxel and its distance. Where the crawl brought none (only the trimmed-off part of a source runs through
/// this part of the solid), all are asked by straight lines.
fn own(labels: &Labels, solid: &Solid, sources: &[Source], voxel: u32) -> (u32, f64) {
    let p = middle(solid, voxel);
    let crawled: Vec<(u32, f64)> =
        labels.at(solid.coordinates(voxel)).map(|label| (label.bone, label.distance)).collect();
    let candidates = if crawled.is_empty() { (0..sources.len() as u32).map(|s| (s, 0.0)).collect() } else { crawled };
    let scored: Vec<(u32, f64, Option<f64>)> = candidates
        .into_iter()
        .map(|(number, way)| {
            let source = &sources[number as usize];
            let t = source.whole.closest(p).clamp(source.from, source.to);
            let straight = source.whole.at(t).distance(p);
            let detour = (way > LATTICE_ERROR * straight + ENDS).then_some(way);
            let d = detour.unwrap_or(straight);
            (number, score_at(source, d * d, source.radii.at(t)), detour)
        })
        .collect();
    let limit = within_tie(scored.iter().map(|s| s.1).fold(f64::INFINITY, f64::min));
    let tied = scored.iter().filter(|s| s.1 <= limit);
    let &(owner, _, detour) = tied.min_by_key(|s| s.0).expect("the least is within its own limit");
    (owner, detour.unwrap_or_else(|| sources[owner as usize].whole.distance(p)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lattice_error_is_that_of_the_worst_direction() {
        let factors = [1.0, 2f64.sqrt() - 1.0, 3f64.sqrt() - 2f64.sqrt()];
        let worst = factors.iter().map(|f| f * f).sum::<f64>().sqrt();
        assert!(worst < LATTICE_ERROR && worst > LATTICE_ERROR - 1e-3, "{worst}");
    }
}
