//! Where the bones start: the solid voxels that a bone's segment crosses, or the nearest one.

use std::ops::Range;
use std::sync::OnceLock;

use glam::{DVec3, I64Vec3, IVec3, UVec3};

use super::key::to_fixed;
use crate::geometry::segment;
use crate::model::{Bone, Bricks, Grid, LATTICE};

/// Voxels from the middle of the grid beyond which a segment is cut off before it is put on the lattice, which saturates.
const REACH: f64 = (1u32 << 19) as f64;
/// Greatest distance of a voxel's centre from the centre of its brick, 3.5 voxels along each axis.
const BRICK_RADIUS: f64 = 6.07;
/// The same for a cube of 8 x 8 x 8 bricks, 31.5 voxels along each axis.
const GROUP_RADIUS: f64 = 54.6;

/// Where a bone starts.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// Voxels, each with the fixed-point distance of its centre from the bone.
    pub seeds: Vec<(UVec3, u64)>,
    /// How far the nearest solid voxel's centre is, in voxels, if the bone crosses none.
    pub outside: Option<f64>,
}

/// Finds where bones start in a solid.
pub struct Seeder<'a> {
    grid: &'a Grid,
    bricks: &'a Bricks,
    /// The cubes of 8 x 8 x 8 bricks: slots and centre, from the middle of the grid. Slots are in Z-order, so those of a
    /// cube stand together. Only made when a bone lies outside.
    groups: OnceLock<Vec<(DVec3, Range<usize>)>>,
}

impl<'a> Seeder<'a> {
    /// A finder for these solid voxels.
    pub fn new(grid: &'a Grid, bricks: &'a Bricks) -> Self {
        Self { grid, bricks, groups: OnceLock::new() }
    }

    /// The start of a bone; without any seed only if there is no solid voxel at all.
    pub fn start(&self, bone: &Bone) -> Start {
        let ends = [self.grid.to_middle(bone.head), self.grid.to_middle(bone.tail)];
        let mut seeds = Vec::new();
        if let Some([p, q]) = on_lattice(self.grid, bone, ends) {
            crossed(p, q, self.grid.dims(), |voxel| {
                if self.bricks.index(voxel).is_some() {
                    seeds.push((voxel, to_fixed(self.distance(voxel, ends))));
                }
            });
        }
        if seeds.is_empty() { self.nearest(ends) } else { Start { seeds, outside: None } }
    }

    fn distance(&self, voxel: UVec3, ends: [DVec3; 2]) -> f64 {
        segment::distance(self.centered(voxel.as_dvec3()), ends[0], ends[1])
    }

    /// Voxel coordinates to those from the middle of the grid.
    fn centered(&self, voxel: DVec3) -> DVec3 {
        voxel - (self.grid.dims() / 2).as_dvec3()
    }

    fn groups(&self) -> &[(DVec3, Range<usize>)] {
        self.groups.get_or_init(|| {
            let slots: Vec<usize> = (0..self.bricks.len()).collect();
            let same = |a: &usize, b: &usize| self.bricks.place(*a) / 8 == self.bricks.place(*b) / 8;
            slots
                .chunk_by(same)
                .map(|run| {
                    let low = self.bricks.place(run[0]) / 8 * 64;
                    (self.centered(low.as_dvec3() + 31.5), run[0]..run[0] + run.len())
                })
                .collect()
        })
    }

    /// The solid voxels nearest to a segment, by groups, bricks and voxels in order of the least distance they can have.
    fn nearest(&self, ends: [DVec3; 2]) -> Start {
        let least = |center: DVec3, radius: f64| segment::distance(center, ends[0], ends[1]) - radius;
        let mut best = Nearest { distance: f64::INFINITY, voxels: Vec::new() };
        for (bound, slots) in sorted(self.groups().iter().map(|(c, slots)| (least(*c, GROUP_RADIUS), slots))) {
            if bound > best.limit() {
                break;
            }
            let brick_center = |slot: usize| self.centered(self.bricks.place(slot).as_dvec3() * 8.0 + 3.5);
            for (bound, slot) in sorted(slots.clone().map(|s| (least(brick_center(s), BRICK_RADIUS), s))) {
                if bound > best.limit() {
                    break;
                }
                for cell in self.bricks.cells(slot) {
                    let voxel = self.bricks.voxel(slot, cell);
                    best.offer(voxel, self.distance(voxel, ends));
                }
            }
        }
        self.choose(best)
    }

    /// Of voxels that are equally near, those nearest to the middle of the grid: a mirrored mesh has mirrored seeds.
    fn choose(&self, best: Nearest) -> Start {
        let limit = best.limit();
        let from_middle = |v: UVec3| (v.as_ivec3() - (self.grid.dims() / 2).as_ivec3()).length_squared();
        let tied = best.voxels.iter().filter(|(_, d)| *d <= limit);
        let Some(inner) = tied.clone().map(|(v, _)| from_middle(*v)).min() else { return Start::default() };
        let seeds = tied.filter(|(v, _)| from_middle(*v) == inner).map(|(v, _)| (*v, to_fixed(best.distance)));
        Start { seeds: seeds.collect(), outside: Some(best.distance) }
    }
}

/// The nearest voxels so far, with those that may tie.
struct Nearest {
    distance: f64,
    voxels: Vec<(UVec3, f64)>,
}

impl Nearest {
    /// Distances up to here tie: rounding must not decide between voxels that are equally near.
    fn limit(&self) -> f64 {
        self.distance + 1e-9 + 8.0 * f64::EPSILON * self.distance
    }

    fn offer(&mut self, voxel: UVec3, distance: f64) {
        if distance > self.limit() {
            return;
        }
        if distance < self.distance {
            self.distance = distance;
            let limit = self.limit();
            self.voxels.retain(|(_, d)| *d <= limit);
        }
        self.voxels.push((voxel, distance));
    }
}

fn sorted<T>(items: impl Iterator<Item = (f64, T)>) -> Vec<(f64, T)> {
    let mut items: Vec<(f64, T)> = items.collect();
    items.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    items
}

/// The ends of a bone on the contact lattice; none if it stays far from the grid.
fn on_lattice(grid: &Grid, bone: &Bone, ends: [DVec3; 2]) -> Option<[IVec3; 2]> {
    let near = |p: DVec3| p.abs().max_element() <= REACH;
    if ends.into_iter().all(near) {
        return Some([grid.lattice(bone.head), grid.lattice(bone.tail)]);
    }
    let [t0, t1] = clip(ends)?;
    let along = ends[1] - ends[0];
    let half = (grid.dims() / 2).as_dvec3() + 0.5;
    let cut = |end: DVec3, world: DVec3, at: DVec3| if near(end) { world } else { grid.to_world(at + half) };
    let head = cut(ends[0], bone.head, ends[0] + along * t0);
    let tail = cut(ends[1], bone.tail, ends[0] + along * t1);
    Some([grid.lattice(head), grid.lattice(tail)])
}

/// The part of a segment within `REACH` of the middle of the grid, by parameter (Liang and Barsky 1984).
fn clip(ends: [DVec3; 2]) -> Option<[f64; 2]> {
    let (mut t0, mut t1) = (0.0f64, 1.0f64);
    for (from, to) in ends[0].to_array().into_iter().zip(ends[1].to_array()) {
        let along = to - from;
        if along == 0.0 {
            if from.abs() > REACH {
                return None;
            }
            continue;
        }
        let (a, b) = ((-REACH - from) / along, (REACH - from) / along);
        t0 = t0.max(a.min(b));
        t1 = t1.min(a.max(b));
    }
    (t0 <= t1).then_some([t0, t1])
}

/// Calls `each` for every voxel of a grid that the segment from `p` to `q` (lattice steps) touches, faces, edges and
/// corners included.
///
/// Layer by layer along the axis on which the segment is longest, it is cut to the layer in floating point, a lattice step
/// wider than need be; the few voxels around the cut are then decided exactly, in integers.
pub fn crossed(p: IVec3, q: IVec3, dims: UVec3, mut each: impl FnMut(UVec3)) {
    let along = (q - p).as_dvec3();
    let longest = along.abs().max_position();
    let layers = touched(p[longest].min(q[longest]).into(), p[longest].max(q[longest]).into(), dims[longest]);
    let (u, v) = ((longest + 1) % 3, (longest + 2) % 3);
    for layer in layers {
        let low = f64::from(LATTICE) * f64::from(layer);
        let t = |at: f64| if along[longest] == 0.0 { 0.0 } else { (at - f64::from(p[longest])) / along[longest] };
        let ts = [t(low).clamp(0.0, 1.0), t(low + f64::from(LATTICE)).clamp(0.0, 1.0)];
        let range = |axis: usize| {
            let at = ts.map(|t| f64::from(p[axis]) + t * along[axis]);
            touched(at[0].min(at[1]) - 1.0, at[0].max(at[1]) + 1.0, dims[axis])
        };
        for (i, j) in range(u).flat_map(|i| range(v).map(move |j| (i, j))) {
            let mut voxel = UVec3::ZERO;
            (voxel[longest], voxel[u], voxel[v]) = (layer, i, j);
            if touches(p, q, voxel) {
                each(voxel);
            }
        }
    }
}

/// The voxels along an axis that the closed interval touches, within the grid.
fn touched(low: f64, high: f64, count: u32) -> Range<u32> {
    let step = f64::from(LATTICE);
    let first = ((low / step).ceil() - 1.0).max(0.0);
    let last = (high / step).floor().min(f64::from(count) - 1.0);
    if first > last { 0..0 } else { first as u32..last as u32 + 1 }
}

/// Whether the segment from `p` to `q` and a voxel have a point in common: separating axes (Gottschalk, Lin and Manocha
/// 1996), in integers. All is doubled, so that the voxel's centre is an integer.
pub fn touches(p: IVec3, q: IVec3, voxel: UVec3) -> bool {
    let (p, q, half) = (p.as_i64vec3(), q.as_i64vec3(), i64::from(LATTICE));
    let center = voxel.as_i64vec3() * (2 * half) + half;
    let (a, b) = (2 * p - center, 2 * q - center);
    if (a.min(b).cmpgt(I64Vec3::splat(half)) | a.max(b).cmplt(I64Vec3::splat(-half))).any() {
        return false;
    }
    let d = q - p;
    let size = d.abs();
    let reach = half * I64Vec3::new(size.y + size.z, size.z + size.x, size.x + size.y);
    a.cross(d).abs().cmple(reach).all()
}
