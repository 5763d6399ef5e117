//! Heat of all bones from one factorisation: eight bones at a time, each group only where it is warm.
//!
//! Forward substitution visits the pieces of the elimination tree on the way from a bone's sources to the root. Backward
//! substitution visits those, and of the others the ones that something warm borders on: a piece without a source, and
//! all below it, is no warmer than the warmest place around it (maximum principle), so what is left out changes no heat by
//! more than the heat that counts as cold.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::error::Result;
use crate::geometry::dissection::{NONE, Piece};
use crate::geometry::supernodal::{Factor, Matrix};
use crate::heat::cpu::Heat;
use crate::heat::surface::system::System;
use crate::progress::{Progress, Stage};

use glam::DVec3;

/// Bones that are solved at once.
const LANES: usize = 8;
/// The numbers of the bones of a group at one unknown.
type Lanes = [f64; LANES];
/// The share of the time that the factorisation takes, for the progress.
const FACTORISING: f64 = 0.6;

/// What a solve found.
pub struct Solved {
    /// For each group of bones its heats: the unknown, the bone and the heat, none that are cold.
    pub groups: Vec<Vec<(u32, Heat)>>,
    /// The largest residual over the diagonal of its row: the most that one more sweep would change a heat. What was left
    /// out as cold is its largest part.
    pub residual: f64,
    /// Numbers in the factor.
    pub factor_numbers: usize,
}

/// Solves a system for all bones of a skeleton of so many, in groups of the order given (those whose heats overlap should
/// stand together). Heats up to `cold` are left out. `positions` are those of the unknowns.
///
/// # Errors
/// [`crate::Error::Limit`] where the factor would not fit into 8 GB, [`crate::Error::Cancelled`].
pub fn solve(
    system: &System,
    positions: &[DVec3],
    bones: usize,
    order: &[u32],
    cold: f64,
    progress: Progress,
) -> Result<Solved> {
    let negative: Vec<f64> = system.conductance.iter().map(|c| -c).collect();
    let diagonal: Vec<f64> = (0..system.len()).map(|i| system.diagonal(i)).collect();
    let matrix = Matrix { first: &system.first, columns: &system.neighbor, values: &negative, diagonal: &diagonal };
    let factor = Factor::new(&matrix, positions, |done| progress.at(Stage::Heat, FACTORISING * done))?;
    let sides = system.right_sides(bones);
    let heated: Vec<u32> = order.iter().copied().filter(|&b| !sides[b as usize].is_empty()).collect();
    let groups: Vec<&[u32]> = heated.chunks(LANES).collect();
    let tree = Tree::new(&factor);
    let done = std::sync::atomic::AtomicUsize::new(0);
    let found: Vec<(Vec<(u32, Heat)>, f64)> = groups
        .par_iter()
        .map_init(
            || Solver::new(&factor, &tree),
            |solver, group| {
                solver.solve(group, &sides, cold);
                let residual = solver.residual(system, &diagonal, group);
                let heats = solver.take(group, cold);
                let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
                let share = done as f64 / groups.len() as f64;
                progress.at(Stage::Heat, FACTORISING + (1.0 - FACTORISING) * share)?;
                Ok((heats, residual))
            },
        )
        .collect::<Result<_>>()?;
    let residual = found.iter().map(|f| f.1).fold(0.0, f64::max);
    let groups = found.into_iter().map(|f| f.0).collect();
    Ok(Solved { groups, residual, factor_numbers: factor.numbers() })
}

/// The tree of the factor's pieces.
struct Tree {
    /// The position of each row.
    position: Vec<u32>,
    /// The piece of each position.
    piece: Vec<u32>,
    child_first: Vec<u32>,
    children: Vec<u32>,
    roots: Vec<u32>,
}

impl Tree {
    fn new(factor: &Factor) -> Self {
        let mut position = vec![0; factor.len()];
        factor.order.iter().enumerate().for_each(|(k, &row)| position[row as usize] = k as u32);
        let mut piece = vec![0; factor.len()];
        let mut child_first = vec![0u32; factor.pieces.len() + 1];
        let mut roots = Vec::new();
        for (k, p) in factor.pieces.iter().enumerate() {
            piece[p.start as usize..p.end as usize].fill(k as u32);
            match p.parent {
                NONE => roots.push(k as u32),
                parent => child_first[parent as usize + 1] += 1,
            }
        }
        for k in 0..factor.pieces.len() {
            child_first[k + 1] += child_first[k];
        }
        let mut next = child_first.clone();
        let mut children = vec![0; child_first[factor.pieces.len()] as usize];
        for (k, p) in factor.pieces.iter().enumerate().filter(|(_, p)| p.parent != NONE) {
            children[next[p.parent as usize] as usize] = k as u32;
            next[p.parent as usize] += 1;
        }
        Self { position, piece, child_first, children, roots }
    }

    fn children(&self, piece: u32) -> &[u32] {
        &self.children[self.child_first[piece as usize] as usize..self.child_first[piece as usize + 1] as usize]
    }
}

/// What a thread keeps from group to group.
struct Solver<'a> {
    factor: &'a Factor,
    tree: &'a Tree,
    /// By position; 0 wherever the group at hand has not been.
    x: Vec<Lanes>,
    /// Which pieces hold sources, or have some below.
    marked: Vec<bool>,
    visited: Vec<u32>,
}

impl<'a> Solver<'a> {
    fn new(factor: &'a Factor, tree: &'a Tree) -> Self {
        let (x, marked) = (vec![[0.0; LANES]; factor.len()], vec![false; factor.pieces.len()]);
        Self { factor, tree, x, marked, visited: Vec::new() }
    }

    /// Solves for a group of bones.
    fn solve(&mut self, group: &[u32], sides: &[Vec<(u32, f64)>], cold: f64) {
        let mut forward = Vec::new();
        for (lane, &bone) in group.iter().enumerate() {
            for &(unknown, value) in &sides[bone as usize] {
                let position = self.tree.position[unknown as usize] as usize;
                self.x[position][lane] += value;
                let mut piece = self.tree.piece[position];
                while piece != NONE && !self.marked[piece as usize] {
                    self.marked[piece as usize] = true;
                    forward.push(piece);
                    piece = self.factor.pieces[piece as usize].parent;
                }
            }
        }
        forward.sort_unstable();
        for &piece in &forward {
            let Piece { start, end, .. } = self.factor.pieces[piece as usize];
            let (panel, below) = (self.factor.panel(piece as usize), self.factor.below(piece as usize));
            substitute_forward(panel, (end - start) as usize, below, start as usize, &mut self.x);
        }
        self.visited.clear();
        let mut open = self.tree.roots.clone();
        while let Some(piece) = open.pop() {
            let below = self.factor.below(piece as usize);
            let warm = |&row: &u32| self.x[row as usize].iter().any(|&heat| heat > cold);
            if !self.marked[piece as usize] && !below.iter().any(warm) {
                continue;
            }
            let Piece { start, end, .. } = self.factor.pieces[piece as usize];
            let panel = self.factor.panel(piece as usize);
            substitute_backward(panel, (end - start) as usize, below, start as usize, &mut self.x);
            self.visited.push(piece);
            open.extend(self.tree.children(piece));
        }
        forward.into_iter().for_each(|piece| self.marked[piece as usize] = false);
    }

    /// The largest residual of the group over the diagonal of its row, where it was solved.
    fn residual(&self, system: &System, diagonal: &[f64], group: &[u32]) -> f64 {
        let mut largest = 0.0f64;
        for &piece in &self.visited {
            let piece = self.factor.pieces[piece as usize];
            for position in piece.start as usize..piece.end as usize {
                let unknown = self.factor.order[position] as usize;
                let mut rest = self.x[position].map(|heat| -diagonal[unknown] * heat);
                for (neighbor, conductance) in system.edges(unknown) {
                    let heats = &self.x[self.tree.position[neighbor as usize] as usize];
                    rest.iter_mut().zip(heats).for_each(|(rest, heat)| *rest += conductance * heat);
                }
                let heaters = system.heaters_of(unknown);
                for (rest, bone) in rest.iter_mut().zip(group) {
                    if heaters.contains(bone) {
                        *rest += system.source[unknown] / heaters.len() as f64;
                    }
                }
                largest = rest.iter().fold(largest, |largest, rest| largest.max(rest.abs() / diagonal[unknown]));
            }
        }
        largest
    }

    /// The heats of the group, and a clean slate for the next.
    fn take(&mut self, group: &[u32], cold: f64) -> Vec<(u32, Heat)> {
        let mut heats = Vec::new();
        for &piece in &self.visited {
            let piece = self.factor.pieces[piece as usize];
            for position in piece.start as usize..piece.end as usize {
                let lanes = std::mem::take(&mut self.x[position]);
                let unknown = self.factor.order[position];
                let warm = group.iter().zip(lanes).filter(|(_, heat)| *heat > cold);
                heats.extend(warm.map(|(&bone, heat)| (unknown, Heat { bone, heat })));
            }
        }
        heats
    }
}

/// One piece of `L y = b`: what it holds, from position `start` on, and what it takes from the rows below.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn substitute_forward(panel: &[f64], width: usize, below: &[u32], start: usize, x: &mut [Lanes]) {
    let (square, rest) = panel.split_at(width * width);
    let (_, own) = x.split_at_mut(start);
    let own = &mut own[..width];
    for (j, row) in square.chunks_exact(width).enumerate() {
        let mut sum = own[j];
        for (l, y) in row[..j].iter().zip(own.iter()) {
            for lane in 0..LANES {
                sum[lane] -= l * y[lane];
            }
        }
        own[j] = sum.map(|value| value * row[j]);
    }
    for (row, &to) in rest.chunks_exact(width).zip(below) {
        let mut sum = x[to as usize];
        for (l, y) in row.iter().zip(&x[start..start + width]) {
            for lane in 0..LANES {
                sum[lane] -= l * y[lane];
            }
        }
        x[to as usize] = sum;
    }
}

/// One piece of `L^T x = y`.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn substitute_backward(panel: &[f64], width: usize, below: &[u32], start: usize, x: &mut [Lanes]) {
    let (square, rest) = panel.split_at(width * width);
    for (row, &from) in rest.chunks_exact(width).zip(below) {
        let value = x[from as usize];
        for (l, own) in row.iter().zip(&mut x[start..start + width]) {
            for lane in 0..LANES {
                own[lane] -= l * value[lane];
            }
        }
    }
    let own = &mut x[start..start + width];
    for (j, row) in square.chunks_exact(width).enumerate().rev() {
        let value = own[j].map(|value| value * row[j]);
        own[j] = value;
        for (l, own) in row[..j].iter().zip(own.iter_mut()) {
            for lane in 0..LANES {
                own[lane] -= l * value[lane];
            }
        }
    }
}
