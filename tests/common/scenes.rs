//! Scenes for the crawl and its definition in whole numbers: what the CPU and the GPU are held against, bit for bit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use glam::{DVec3, UVec3};
use skinbind::crawl::{Label, Neighbors, reference};
use skinbind::model::{BitGrid, Bone, Bounds, Grid, Skeleton};
use skinbind::voxelize::{Interior, Voxels};

use super::shapes::Random;

/// A grid of 16 voxels along x and so many along y and z, one world unit a voxel times `scale`.
pub fn grid(size: UVec3, scale: f64) -> Grid {
    let half = size.as_dvec3() * 0.5 * scale;
    let longest = size.max_element();
    Grid::around(&Bounds { min: -half, max: half }, longest).unwrap()
}

pub fn voxels(grid: Grid, solid: BitGrid) -> Voxels {
    Voxels { grid, surface: solid.clone(), solid, interior: Interior::Flood, reason: "test", warnings: Vec::new() }
}

pub fn filled(grid: &Grid, keep: impl Fn(UVec3) -> bool) -> BitGrid {
    let mut solid = BitGrid::new(grid.dims());
    reference::voxels(grid.dims()).filter(|&v| keep(v)).for_each(|v| solid.set(v));
    solid
}

pub fn scene(size: UVec3, keep: impl Fn(UVec3) -> bool) -> Voxels {
    let grid = grid(size, 1.0);
    let solid = filled(&grid, keep);
    voxels(grid, solid)
}

/// Centre of a voxel, in the world.
pub fn center(grid: &Grid, v: UVec3) -> DVec3 {
    grid.to_world(v.as_dvec3() + 0.5)
}

pub fn skeleton(ends: &[(DVec3, DVec3)]) -> Skeleton {
    // Names in an order unlike that of the bones, so that ranks and indices differ.
    let name = |i: usize| format!("{}{i}", ["m", "z", "a"][i % 3]);
    let bone =
        |(i, &(head, tail)): (usize, &(DVec3, DVec3))| Bone { name: name(i), head, tail, parent: None, deform: true };
    Skeleton::new(ends.iter().enumerate().map(bone).collect()).unwrap()
}

/// A point in the grid or at most `beyond` voxels outside it.
pub fn random_point(random: &mut Random, grid: &Grid, beyond: f64) -> DVec3 {
    let d = grid.dims().as_dvec3();
    let g = DVec3::new(random.unit(), random.unit(), random.unit()) * (d + 2.0 * beyond) - beyond;
    grid.to_world(g)
}

/// Shapes of many kinds, by number.
pub fn shape(kind: usize, size: UVec3, random: &mut Random) -> Voxels {
    let g = grid(size, 1.0);
    let density = [0.08, 0.25, 0.5, 0.8, 0.97][kind % 5];
    let solid = match kind / 5 % 6 {
        0 => {
            let mut solid = BitGrid::new(g.dims());
            reference::voxels(g.dims()).for_each(|v| {
                if random.unit() < density {
                    solid.set(v);
                }
            });
            solid
        }
        // Thin sheets, a U-bend, a serpentine, a full box, a ball with holes.
        1 => filled(&g, |v| (v.x + 2 * v.y + v.z) % 7 < 2),
        2 => filled(&g, |v| v.y < 3 || v.x < 4 || v.x > g.dims().x - 5),
        3 => filled(&g, |v| v.y % 2 == 0 || v.x == if v.y % 4 == 1 { 0 } else { g.dims().x - 1 }),
        4 => filled(&g, |_| true),
        _ => filled(&g, |v| {
            let away = v.as_dvec3() - g.dims().as_dvec3() / 2.0;
            away.length() < 8.0 && (v.x * 7 + v.y * 5 + v.z * 3) % 11 > 2
        }),
    };
    voxels(g, solid)
}

pub fn bones(random: &mut Random, grid: &Grid, count: usize) -> Skeleton {
    let mut ends = Vec::new();
    for i in 0..count {
        let head = random_point(random, grid, if i % 7 == 6 { 20.0 } else { 0.0 });
        let tail = match i % 3 {
            0 => head,
            _ => random_point(random, grid, 3.0),
        };
        ends.push((head, tail));
        // A mirrored twin now and then: ties.
        if i % 4 == 0 {
            let mirror = DVec3::new(-1.0, 1.0, 1.0);
            ends.push((head * mirror, tail * mirror));
        }
    }
    ends.truncate(count);
    skeleton(&ends)
}

/// Distances as whole numbers of steps of 2^-`bits` voxel, as a device has them.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    pub bits: u32,
}

impl Fixed {
    /// Steps a voxel.
    pub fn unit(self) -> f64 {
        2f64.powi(self.bits as i32)
    }

    /// The start of a bone: to 2^-32 voxel, as the host finds it, and from there to the device's steps.
    fn start(self, distance: f64) -> u64 {
        let fine = (distance * 2f64.powi(32)).round() as u64;
        if self.bits == 32 { fine } else { (fine + (1 << (31 - self.bits))) >> (32 - self.bits) }
    }

    /// Distance of every voxel from one bone, by Dijkstra; with the number of steps on the way.
    pub fn distances(self, v: &Voxels, bone: &Bone, neighbors: Neighbors) -> Vec<Option<(u64, u32)>> {
        let dims = v.grid.dims();
        let mut found: Vec<Option<(u64, u32)>> = vec![None; v.grid.len() as usize];
        let mut heap = BinaryHeap::new();
        for (voxel, d) in reference::start(&v.grid, &v.solid, bone) {
            heap.push(Reverse((self.start(d), 0u32, voxel.to_array())));
        }
        while let Some(Reverse((d, steps, voxel))) = heap.pop() {
            let voxel = UVec3::from_array(voxel);
            let at = &mut found[reference::place(dims, voxel)];
            if at.is_some() {
                continue;
            }
            *at = Some((d, steps));
            for (next, apart) in reference::around(&v.solid, neighbors, voxel) {
                if found[reference::place(dims, next)].is_none() {
                    heap.push(Reverse((d + (apart * self.unit()).round() as u64, steps + 1, next.to_array())));
                }
            }
        }
        found
    }

    /// Most steps on a shortest way from a bone to a voxel.
    pub fn longest(self, v: &Voxels, s: &Skeleton, neighbors: Neighbors) -> u32 {
        s.bones().iter().flat_map(|b| self.distances(v, b, neighbors)).flatten().map(|(_, n)| n).max().unwrap()
    }

    /// The labels of every voxel.
    pub fn labels(self, v: &Voxels, s: &Skeleton, labels: usize, neighbors: Neighbors) -> Vec<Vec<Label>> {
        let mut all: Vec<Vec<(u64, u32, u32)>> = vec![Vec::new(); v.grid.len() as usize];
        for (b, bone) in s.bones().iter().enumerate() {
            for (at, found) in all.iter_mut().zip(self.distances(v, bone, neighbors)) {
                at.extend(found.map(|(d, _)| (d, s.rank(b), b as u32)));
            }
        }
        let label = |&(d, _, bone): &(u64, u32, u32)| Label { bone, distance: d as f64 / self.unit() };
        all.iter_mut()
            .map(|at| {
                at.sort_unstable();
                at.iter().take(labels).map(label).collect()
            })
            .collect()
    }
}

/// The first voxel whose labels are not as expected.
pub fn first_difference<L: Iterator<Item = Label>>(
    v: &Voxels,
    found: impl Fn(UVec3) -> L,
    expected: &[Vec<Label>],
) -> Option<String> {
    reference::voxels(v.grid.dims()).zip(expected).find_map(|(voxel, expected)| {
        let found: Vec<Label> = found(voxel).collect();
        (found != *expected).then(|| format!("{voxel}: {found:?}, expected {expected:?}"))
    })
}
