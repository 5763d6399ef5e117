//! Weights from the labels of voxels, trilinearly sampled: the formula of Dionne and de Lasa (SCA 2013), on many cores.

use glam::{DVec3, IVec3, UVec3};

use crate::error::Result;
use crate::influence::{Falloff, LENGTH_FLOOR, LabelSource, Limits, Stats, weigh_places};
use crate::model::{Grid, Influence, Mesh, Skeleton, Weights, Weld};
use crate::progress::Progress;

/// A value at each of the 8 voxel centres around a point; bits 0, 1, 2 of a corner's number say which side along x, y, z.
type Corners = [f64; 8];

/// The weights of all welded places from the labels of the voxels around them; `labels` is how many a voxel has at most
/// (K + 1). A place that no label reaches gets an empty row: see [`crate::influence::fill_unreached`].
///
/// Mirrored places with mirrored labels get weights that are equal to the last bit.
///
/// # Errors
/// [`crate::Error::Parameter`] for parameters out of range, [`crate::Error::Cancelled`].
#[expect(clippy::too_many_arguments, reason = "each is a thing of its own that only the binding knows")]
pub fn from_labels(
    source: &impl LabelSource,
    grid: &Grid,
    mesh: &Mesh,
    weld: &Weld,
    skeleton: &Skeleton,
    labels: usize,
    falloff: &Falloff,
    limits: &Limits,
    progress: Progress,
) -> Result<(Weights, Stats)> {
    falloff.check()?;
    let positions = mesh.positions();
    let scale = grid.voxel() / mesh.bounds().diagonal();
    let sampler = Sampler { source, grid, scale, smoothing: falloff.smoothing };
    let position = |place: usize| positions[weld.first[place] as usize];
    let run = |raise: &(dyn Fn(&mut Corners) + Sync)| {
        weigh_places(weld.places(), labels, limits, skeleton, progress, Cell::default, |cell, place, raw| {
            sampler.raw_weights(position(place), cell, raise, raw);
        })
    };
    let power = falloff.power;
    // Whole powers by multiplication: pow costs more than all the rest.
    if power == 2.0 {
        run(&|ratios| ratios.iter_mut().for_each(|r| *r *= *r))
    } else if power == 4.0 {
        run(&|ratios| ratios.iter_mut().for_each(|r| *r = (*r * *r) * (*r * *r)))
    } else {
        run(&move |ratios| ratios.iter_mut().for_each(|r| *r = r.powf(power)))
    }
}

/// The labels of the 8 voxels around a point, bone by bone, kept for the next point in the same cell.
#[derive(Default)]
struct Cell {
    /// The voxel at the low side, counted from the middle of the grid.
    low: Option<IVec3>,
    bones: Vec<u32>,
    /// For each bone its distance in voxels at the 8 corners; infinite where the corner lacks it.
    distances: Vec<Corners>,
    reached: [bool; 8],
    /// For each bone the denominators of the formula; infinite where a corner does not count.
    terms: Vec<Corners>,
}

impl Cell {
    fn read(&mut self, low: IVec3, source: &impl LabelSource, grid: &Grid) {
        if self.low == Some(low) {
            return;
        }
        self.low = Some(low);
        self.bones.clear();
        self.distances.clear();
        self.reached = [false; 8];
        let first = low + (grid.dims() / 2).as_ivec3();
        for corner in 0..8 {
            let voxel = first + IVec3::new(corner & 1, corner >> 1 & 1, corner >> 2);
            if grid.contains(voxel) {
                self.read_corner(corner as usize, voxel.as_uvec3(), source);
            }
        }
    }

    fn read_corner(&mut self, corner: usize, voxel: UVec3, source: &impl LabelSource) {
        for (i, label) in source.at(voxel).enumerate() {
            self.reached[corner] = true;
            // Neighbouring voxels mostly have the same bones in the same order.
            let known = if self.bones.get(i) == Some(&label.bone) {
                Some(i)
            } else {
                self.bones.iter().position(|&b| b == label.bone)
            };
            let slot = known.unwrap_or_else(|| {
                self.bones.push(label.bone);
                self.distances.push([f64::INFINITY; 8]);
                self.bones.len() - 1
            });
            self.distances[slot][corner] = label.distance;
        }
    }
}

struct Sampler<'a, S> {
    source: &'a S,
    grid: &'a Grid,
    /// Bounding-box diagonals a voxel.
    scale: f64,
    smoothing: f64,
}

impl<S: LabelSource> Sampler<'_, S> {
    /// Puts the raw weights of a position into `raw`, all divided by the largest value that the formula takes at a corner:
    /// they can neither overflow nor vanish, however far the bones are.
    fn raw_weights(&self, p: DVec3, cell: &mut Cell, raise: &(dyn Fn(&mut Corners) + Sync), raw: &mut Vec<Influence>) {
        let at = self.grid.to_middle(p);
        let low = at.floor();
        cell.read(low.as_ivec3(), self.source, self.grid);
        if cell.bones.is_empty() {
            return;
        }
        // Not 1 - x: a mirrored point has these two exchanged, to the last bit.
        let (from_low, from_high) = (at - low, (low + DVec3::ONE) - at);
        let mut shares = trilinear(from_high, from_low);
        let mut offsets = corner_distances(from_low, from_high);
        drop_unreached(&mut shares, &mut offsets, &cell.reached);
        let nearest = self.terms(&offsets, cell);
        if nearest == f64::INFINITY {
            return;
        }
        for (&joint, terms) in cell.bones.iter().zip(&cell.terms) {
            let mut weights = terms.map(|term| nearest / term);
            raise(&mut weights);
            for (weight, share) in weights.iter_mut().zip(&shares) {
                *weight *= share;
            }
            raw.push(Influence { joint, weight: symmetric_sum(&weights) });
        }
    }

    /// Fills `cell.terms` with `(1-a) l + a l^2` for each bone and corner that counts; returns the smallest.
    fn terms(&self, offsets: &Corners, cell: &mut Cell) -> f64 {
        let (scale, square) = (self.scale, self.smoothing);
        let linear = 1.0 - square;
        let mut nearest = [f64::INFINITY; 8];
        cell.terms.clear();
        for distances in &cell.distances {
            let mut terms = [0.0; 8];
            for c in 0..8 {
                let way = distances[c] + offsets[c];
                // Plain comparisons: f64::max and min also order NaN, which costs as much as the formula.
                let l = way * scale;
                let l = if l > LENGTH_FLOOR { l } else { LENGTH_FLOOR };
                let term = l * (linear + square * l);
                terms[c] = if way < f64::INFINITY { term } else { f64::INFINITY };
                nearest[c] = if terms[c] < nearest[c] { terms[c] } else { nearest[c] };
            }
            cell.terms.push(terms);
        }
        nearest.into_iter().fold(f64::INFINITY, f64::min)
    }
}

/// The trilinear coefficients of the corners, from those of the low and the high side along each axis.
fn trilinear(low: DVec3, high: DVec3) -> Corners {
    std::array::from_fn(|c| side(c, 0, low, high) * side(c, 1, low, high) * side(c, 2, low, high))
}

/// Distances to the corners, from those to the low and the high side along each axis.
fn corner_distances(low: DVec3, high: DVec3) -> Corners {
    let (low, high) = (low * low, high * high);
    std::array::from_fn(|c| (side(c, 0, low, high) + side(c, 1, low, high) + side(c, 2, low, high)).sqrt())
}

fn side(corner: usize, axis: usize, low: DVec3, high: DVec3) -> f64 {
    if corner >> axis & 1 == 0 { low[axis] } else { high[axis] }
}

/// Takes the corners out that no label reaches or that have no share. Where none would be left, the reached ones nearest to
/// the point share equally: its own voxel, if that is reached.
fn drop_unreached(shares: &mut Corners, offsets: &mut Corners, reached: &[bool; 8]) {
    let counting = |shares: &Corners| -> [bool; 8] { std::array::from_fn(|c| reached[c] && shares[c] > 0.0) };
    if !counting(shares).contains(&true) {
        let at_reached = offsets.iter().zip(reached).filter(|(_, reached)| **reached);
        let least = at_reached.map(|(offset, _)| *offset).fold(f64::INFINITY, f64::min);
        *shares = offsets.map(|offset| f64::from(u8::from(offset == least)));
    }
    for (offset, counts) in offsets.iter_mut().zip(counting(shares)) {
        if !counts {
            *offset = f64::INFINITY;
        }
    }
}

/// Sums the corners in pairs along x, then y, then z: a mirrored order gives the same bits.
fn symmetric_sum(v: &Corners) -> f64 {
    ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
}
