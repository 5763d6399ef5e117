//! The solid at full resolution and at each half of it: the grids of the multigrid solver.
//!
//! A voxel of a coarser level stands for the solid ones of 2 x 2 x 2 finer voxels. Its matrix is Galerkin's for values
//! that are constant in the coarse voxel, with the connections divided by two: constant values see the whole difference
//! of two coarse voxels over one finer step, twice the true slope (Braess 1995 scales the correction for the same
//! reason). The coarser system then is the same heat equation at half the resolution, so that its solution can start
//! the finer one.

use glam::UVec3;
use rayon::prelude::*;

use super::solid::{NONE, Solid};
use crate::model::BitGrid;

/// Levels get coarser until they have no more voxels than this.
const FEW: usize = 200;

/// One level: its voxels, its matrix, and how they hang together with the next coarser level.
pub struct Level {
    /// The neighbours over faces; [`NONE`] for none.
    pub neighbors: Vec<[u32; 6]>,
    /// How well the neighbours conduct; empty at full resolution, where all do with 1. Multiples of powers of two:
    /// exact.
    pub coupling: Vec<[f32; 6]>,
    /// The matrix' diagonal: couplings and conductance to the source.
    pub diagonal: Vec<f64>,
    /// How many voxels are red; see [`Solid`].
    pub red: usize,
    /// The voxel of the next coarser level; empty at the coarsest.
    pub parent: Vec<u32>,
    /// The finer voxels of voxel v are `children[first_child[v]..first_child[v + 1]]`, ascending; empty at full
    /// resolution.
    pub children: Vec<u32>,
    pub first_child: Vec<u32>,
    /// The voxels that each bone heats, with how much: the right sides, all bones after each other.
    heated: Vec<(u32, f64)>,
    /// The bone's are `heated[first_heated[b]..first_heated[b + 1]]`.
    first_heated: Vec<u32>,
}

impl Level {
    /// How many voxels there are.
    pub fn len(&self) -> usize {
        self.neighbors.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.neighbors.is_empty()
    }

    /// The right side of a bone's system: the voxels it heats and the conductance.
    pub fn heated(&self, bone: usize) -> &[(u32, f64)] {
        &self.heated[self.first_heated[bone] as usize..self.first_heated[bone + 1] as usize]
    }

    /// The finer voxels of a voxel.
    pub fn children(&self, voxel: u32) -> &[u32] {
        &self.children[self.first_child[voxel as usize] as usize..self.first_child[voxel as usize + 1] as usize]
    }
}

/// All levels, the finest first. `bone_of` is the bone that heats each voxel, `conductance` how strongly.
pub fn levels(solid: &Solid, bones: usize, bone_of: &[u32], conductance: &[f64]) -> Vec<Level> {
    let neighbors: Vec<[u32; 6]> = (0..solid.len() as u32).into_par_iter().map(|v| solid.neighbors(v)).collect();
    let diagonal =
        neighbors.iter().zip(conductance).map(|(n, g)| n.iter().filter(|&&n| n != NONE).count() as f64 + g).collect();
    let (heated, first_heated) = heated_by(bones, bone_of, conductance);
    let mut levels = vec![Level {
        neighbors,
        coupling: Vec::new(),
        diagonal,
        red: solid.red(),
        parent: Vec::new(),
        children: Vec::new(),
        first_child: Vec::new(),
        heated,
        first_heated,
    }];
    let mut conductance = conductance.to_vec();
    let mut finer_solid = None;
    while levels[levels.len() - 1].len() > FEW {
        let last = levels.len() - 1;
        let finer = finer_solid.as_ref().unwrap_or(solid);
        let (coarser, parent) = halve(finer);
        levels[last].parent = parent;
        let (next, g) = coarsen(&levels[last], &coarser, bones, &conductance);
        conductance = g;
        levels.push(next);
        finer_solid = Some(coarser);
    }
    levels
}

/// The right sides, sorted by bone.
fn heated_by(bones: usize, bone_of: &[u32], conductance: &[f64]) -> (Vec<(u32, f64)>, Vec<u32>) {
    let mut first = vec![0u32; bones + 1];
    for &bone in bone_of {
        first[bone as usize + 1] += 1;
    }
    for b in 0..bones {
        first[b + 1] += first[b];
    }
    let mut next = first.clone();
    let mut heated = vec![(0, 0.0); bone_of.len()];
    for (voxel, (&bone, &g)) in bone_of.iter().zip(conductance).enumerate() {
        heated[next[bone as usize] as usize] = (voxel as u32, g);
        next[bone as usize] += 1;
    }
    (heated, first)
}

/// The solid at half the resolution, and for each voxel the one it is in there.
fn halve(solid: &Solid) -> (Solid, Vec<u32>) {
    let dims = solid.bits().dims();
    let mut bits = BitGrid::new((dims + UVec3::ONE) / 2);
    for voxel in 0..solid.len() as u32 {
        bits.set(solid.coordinates(voxel) / 2);
    }
    let half = Solid::new(bits);
    let parent = (0..solid.len() as u32)
        .into_par_iter()
        .map(|v| half.at((solid.coordinates(v) / 2).as_ivec3()).expect("set above"))
        .collect();
    (half, parent)
}

/// The next coarser level, and the conductances of its voxels.
fn coarsen(finer: &Level, coarser: &Solid, bones: usize, conductance: &[f64]) -> (Level, Vec<f64>) {
    let n = coarser.len();
    let neighbors: Vec<[u32; 6]> = (0..n as u32).into_par_iter().map(|v| coarser.neighbors(v)).collect();
    let mut coupling = vec![[0f32; 6]; n];
    let mut g = vec![0.0; n];
    for (voxel, &parent) in finer.parent.iter().enumerate() {
        g[parent as usize] += conductance[voxel];
        for (side, &neighbor) in finer.neighbors[voxel].iter().enumerate() {
            if neighbor != NONE && finer.parent[neighbor as usize] != parent {
                let conducts = finer.coupling.get(voxel).map_or(1.0, |c| c[side]);
                coupling[parent as usize][side] += 0.5 * conducts;
            }
        }
    }
    let diagonal = coupling.iter().zip(&g).map(|(c, g)| c.iter().map(|&c| f64::from(c)).sum::<f64>() + g).collect();
    let (children, first_child) = children(&finer.parent, n);
    let (heated, first_heated) = heated_coarser(finer, n, bones);
    let level = Level {
        neighbors,
        coupling,
        diagonal,
        red: coarser.red(),
        parent: Vec::new(),
        children,
        first_child,
        heated,
        first_heated,
    };
    (level, g)
}

fn children(parent: &[u32], coarse: usize) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; coarse + 1];
    for &p in parent {
        first[p as usize + 1] += 1;
    }
    for v in 0..coarse {
        first[v + 1] += first[v];
    }
    let mut next = first.clone();
    let mut children = vec![0; parent.len()];
    for (voxel, &p) in parent.iter().enumerate() {
        children[next[p as usize] as usize] = voxel as u32;
        next[p as usize] += 1;
    }
    (children, first)
}

/// The right sides of a coarser level: what the finer voxels of a voxel get together.
fn heated_coarser(finer: &Level, coarse: usize, bones: usize) -> (Vec<(u32, f64)>, Vec<u32>) {
    let mut sum = vec![0.0; coarse];
    let (mut heated, mut first) = (Vec::new(), vec![0]);
    for bone in 0..bones {
        let start = heated.len();
        for &(voxel, g) in finer.heated(bone) {
            let parent = finer.parent[voxel as usize];
            if sum[parent as usize] == 0.0 {
                heated.push((parent, 0.0));
            }
            sum[parent as usize] += g;
        }
        heated[start..].sort_unstable_by_key(|h| h.0);
        for (parent, g) in &mut heated[start..] {
            *g = std::mem::take(&mut sum[*parent as usize]);
        }
        first.push(heated.len() as u32);
    }
    (heated, first)
}
