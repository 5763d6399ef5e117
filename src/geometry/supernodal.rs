//! Sparse Cholesky factorisation of large matrices by fronts (Duff and Reid, "The Multifrontal Solution of Indefinite Sparse
//! Symmetric Linear Systems", 1983): the pieces of a nested dissection are dense blocks, separate ones are factorised at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use glam::DVec3;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::geometry::dense;
use crate::geometry::dissection::{Dissection, NONE, Piece, dissect};

/// Pieces of so few rows are not cut further: a dense block of them is cheap.
const LEAF: usize = 12;
/// Most numbers in the factor: 8 bytes each.
const MOST_NUMBERS: usize = 1_000_000_000;
/// Parts of the tree that are worked on at once: many more than there are cores, so that they end at about the same time.
const TASKS: usize = 48;

/// A symmetric matrix to factorise: the entries beside the diagonal, of both triangles, row by row, and the diagonal.
pub struct Matrix<'a> {
    /// The entries of row r are `first[r]..first[r + 1]` of `columns` and `values`.
    pub first: &'a [u32],
    pub columns: &'a [u32],
    pub values: &'a [f64],
    pub diagonal: &'a [f64],
}

/// The factor of a matrix: `A = L L^T` in the order of elimination.
#[derive(Debug, Clone)]
pub struct Factor {
    /// The row of the matrix at each position of the elimination.
    pub order: Vec<u32>,
    pub pieces: Vec<Piece>,
    below_first: Vec<usize>,
    below: Vec<u32>,
    panel_first: Vec<usize>,
    panels: Vec<f64>,
}

/// What a piece leaves to its parent: a square over the rows below it, of which the lower triangle counts.
struct Update {
    piece: usize,
    square: Vec<f64>,
}

impl Factor {
    /// Factorises a matrix whose rows lie at `positions`; rows that have a common entry should be near each other.
    /// `step(fraction)` is asked now and then whether to go on.
    ///
    /// # Errors
    /// [`Error::Check`] for a matrix that is not positive definite, [`Error::Limit`] for one whose factor does not fit into
    /// 8 GB, and what `step` returns.
    pub fn new(matrix: &Matrix, positions: &[DVec3], step: impl Fn(f64) -> Result<()> + Sync) -> Result<Self> {
        let Dissection { order, pieces } = dissect(matrix.first, matrix.columns, positions, LEAF);
        step(0.1)?;
        let upper = Upper::new(matrix, &order);
        let tasks = tasks(&pieces, order.len());
        let (below_first, below) = structure(&pieces, &upper, &tasks);
        let mut panel_first = Vec::with_capacity(pieces.len() + 1);
        panel_first.push(0);
        for (k, piece) in pieces.iter().enumerate() {
            let width = (piece.end - piece.start) as usize;
            panel_first.push(panel_first[k] + width * (width + below_first[k + 1] - below_first[k]));
        }
        let numbers = panel_first[pieces.len()];
        if numbers > MOST_NUMBERS {
            return Err(Error::Limit {
                what: "numbers in a sparse factor".into(),
                needed: numbers.to_string(),
                limit: MOST_NUMBERS.to_string(),
                advice: "use a mesh of fewer vertices".into(),
            });
        }
        let mut factor = Self { order, pieces, below_first, below, panel_first, panels: Vec::new() };
        step(0.2)?;
        let mut panels = vec![0.0; numbers];
        factor.numeric(&mut panels, &upper, &tasks, &|done| step(0.2 + 0.8 * done))?;
        factor.panels = panels;
        Ok(factor)
    }

    /// The positions, beyond a piece, of the rows that its columns reach, ascending.
    pub fn below(&self, piece: usize) -> &[u32] {
        &self.below[self.below_first[piece]..self.below_first[piece + 1]]
    }

    /// The columns of L that belong to a piece, row after row: first its own rows (lower triangle, the diagonal inverted),
    /// then those below.
    pub fn panel(&self, piece: usize) -> &[f64] {
        &self.panels[self.panel_first[piece]..self.panel_first[piece + 1]]
    }

    /// Solves the system in place: `b` is the right-hand side, then the solution.
    pub fn solve(&self, b: &mut [f64]) {
        let mut x: Vec<f64> = self.order.iter().map(|&row| b[row as usize]).collect();
        for (k, piece) in self.pieces.iter().enumerate() {
            let (start, width) = (piece.start as usize, (piece.end - piece.start) as usize);
            let (own, below) = self.panel(k).split_at(width * width);
            for i in 0..width {
                let known: f64 = (0..i).map(|c| own[i * width + c] * x[start + c]).sum();
                x[start + i] = (x[start + i] - known) * own[i * width + i];
            }
            for (row, values) in self.below(k).iter().zip(below.chunks_exact(width)) {
                let known: f64 = values.iter().zip(&x[start..start + width]).map(|(l, x)| l * x).sum();
                x[*row as usize] -= known;
            }
        }
        for (k, piece) in self.pieces.iter().enumerate().rev() {
            let (start, width) = (piece.start as usize, (piece.end - piece.start) as usize);
            let (own, below) = self.panel(k).split_at(width * width);
            for (row, values) in self.below(k).iter().zip(below.chunks_exact(width)) {
                let known = x[*row as usize];
                x[start..start + width].iter_mut().zip(values).for_each(|(x, l)| *x -= l * known);
            }
            for i in (0..width).rev() {
                let known: f64 = (i + 1..width).map(|r| own[r * width + i] * x[start + r]).sum();
                x[start + i] = (x[start + i] - known) * own[i * width + i];
            }
        }
        self.order.iter().zip(x).for_each(|(&row, value)| b[row as usize] = value);
    }

    /// How many rows the matrix has.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether the matrix has no rows.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How many numbers the factor holds.
    pub fn numbers(&self) -> usize {
        self.panels.len()
    }

    fn numeric(
        &self,
        panels: &mut [f64],
        upper: &Upper,
        tasks: &[Task],
        step: &(impl Fn(f64) -> Result<()> + Sync),
    ) -> Result<()> {
        let done = AtomicUsize::new(0);
        let mut shares = Vec::with_capacity(tasks.len());
        let mut rest = panels;
        for task in tasks {
            let (share, behind) = rest.split_at_mut(self.panel_first[task.end] - self.panel_first[task.start]);
            shares.push(share);
            rest = behind;
        }
        let run = |task: &Task, share: &mut [f64], stack: &mut Vec<Update>| -> Result<()> {
            let mut rest = share;
            for piece in task.start..task.end {
                let (panel, behind) = rest.split_at_mut(self.panel_first[piece + 1] - self.panel_first[piece]);
                rest = behind;
                self.eliminate(piece, panel, upper, stack)?;
            }
            let rows = self.pieces[task.start..task.end].iter().map(|p| (p.end - p.start) as usize).sum();
            let done = done.fetch_add(rows, Ordering::Relaxed) + rows;
            step(done as f64 / self.order.len() as f64)
        };
        let (apart, joining): (Vec<_>, Vec<_>) = tasks.iter().zip(shares).partition(|(task, _)| task.apart);
        let left: Vec<Vec<Update>> = apart
            .into_par_iter()
            .map(|(task, share)| {
                let mut stack = Vec::new();
                run(task, share, &mut stack).map(|()| stack)
            })
            .collect::<Result<_>>()?;
        let (mut left, mut joining) = (left.into_iter(), joining.into_iter());
        let mut stack = Vec::new();
        for task in tasks {
            if task.apart {
                stack.extend(left.next().into_iter().flatten());
            } else if let Some((task, share)) = joining.next() {
                run(task, share, &mut stack)?;
            }
        }
        Ok(())
    }

    /// Takes what the children of a piece left from the stack, adds the matrix, eliminates the piece and puts what it
    /// leaves on the stack.
    fn eliminate(&self, piece: usize, panel: &mut [f64], upper: &Upper, stack: &mut Vec<Update>) -> Result<()> {
        let Piece { start, end, parent } = self.pieces[piece];
        let width = (end - start) as usize;
        let below = self.below(piece);
        let mut square = vec![0.0; below.len() * below.len()];
        for position in start..end {
            let column = (position - start) as usize;
            panel[column * width + column] += upper.diagonal[position as usize];
            let mut at = 0;
            for &(row, value) in upper.of(position) {
                let row = if row < end {
                    (row - start) as usize
                } else {
                    at += below[at..].partition_point(|&b| b < row);
                    width + at
                };
                panel[row * width + column] += value;
            }
        }
        while stack.last().is_some_and(|u| self.pieces[u.piece].parent as usize == piece) {
            let Some(update) = stack.pop() else { break };
            self.add(&update, piece, panel, &mut square);
        }
        dense::factorise(panel, width).map_err(|column| {
            let row = self.order[start as usize + column];
            Error::Check(format!("row {row} of a matrix has no pivot above 0"))
        })?;
        if parent != NONE {
            dense::subtract_square(&mut square, &panel[width * width..], width);
            stack.push(Update { piece, square });
        }
        Ok(())
    }

    /// Adds what a child left to a piece's panel and square.
    fn add(&self, update: &Update, piece: usize, panel: &mut [f64], square: &mut [f64]) {
        let Piece { start, end, .. } = self.pieces[piece];
        let width = (end - start) as usize;
        let (rows, below) = (self.below(update.piece), self.below(piece));
        let own = rows.partition_point(|&r| r < end);
        let mut at = 0;
        let mut place = Vec::with_capacity(rows.len());
        place.extend(rows[..own].iter().map(|&r| (r - start) as usize));
        for &row in &rows[own..] {
            while below[at] != row {
                at += 1;
            }
            place.push(at);
        }
        for (i, from) in update.square.chunks_exact(rows.len().max(1)).enumerate() {
            if i < own {
                let into = &mut panel[place[i] * width..];
                place[..=i].iter().zip(from).for_each(|(&to, value)| into[to] += value);
            } else {
                let into = &mut panel[(width + place[i]) * width..];
                place[..own].iter().zip(from).for_each(|(&to, value)| into[to] += value);
                let into = &mut square[place[i] * below.len()..];
                place[own..=i].iter().zip(&from[own..]).for_each(|(&to, value)| into[to] += value);
            }
        }
    }
}

/// The matrix in the order of elimination: for each position the later ones that it has entries with, ascending.
struct Upper {
    first: Vec<u32>,
    entries: Vec<(u32, f64)>,
    diagonal: Vec<f64>,
}

impl Upper {
    fn new(matrix: &Matrix, order: &[u32]) -> Self {
        let mut position = vec![0; order.len()];
        order.iter().enumerate().for_each(|(k, &row)| position[row as usize] = k as u32);
        let mut first = vec![0];
        let mut entries = Vec::with_capacity(matrix.columns.len() / 2);
        for (k, &row) in order.iter().enumerate() {
            let before = entries.len();
            for i in matrix.first[row as usize] as usize..matrix.first[row as usize + 1] as usize {
                let other = position[matrix.columns[i] as usize];
                if other > k as u32 {
                    entries.push((other, matrix.values[i]));
                }
            }
            entries[before..].sort_unstable_by_key(|e| e.0);
            first.push(entries.len() as u32);
        }
        let diagonal = order.iter().map(|&row| matrix.diagonal[row as usize]).collect();
        Self { first, entries, diagonal }
    }

    fn of(&self, position: u32) -> &[(u32, f64)] {
        &self.entries[self.first[position as usize] as usize..self.first[position as usize + 1] as usize]
    }
}

/// Pieces that one thread works through, in order.
struct Task {
    start: usize,
    end: usize,
    /// Whether it is all of a subtree, and can be done beside others; else a piece that joins such.
    apart: bool,
}

/// Cuts the tree into subtrees of about equal size, and pieces that join them.
fn tasks(pieces: &[Piece], rows: usize) -> Vec<Task> {
    let most = rows.div_ceil(TASKS) as u32;
    // The first row below each piece.
    let mut first_row: Vec<u32> = pieces.iter().map(|p| p.start).collect();
    for (k, piece) in pieces.iter().enumerate().filter(|(_, p)| p.parent != NONE) {
        let parent = piece.parent as usize;
        first_row[parent] = first_row[parent].min(first_row[k]);
    }
    let small = |k: usize| pieces[k].end - first_row[k] <= most;
    let mut tasks = Vec::new();
    let mut start = 0;
    for (k, piece) in pieces.iter().enumerate() {
        if !small(k) {
            tasks.push(Task { start: k, end: k + 1, apart: false });
            start = k + 1;
        } else if piece.parent == NONE || !small(piece.parent as usize) {
            tasks.push(Task { start, end: k + 1, apart: true });
            start = k + 1;
        }
    }
    tasks
}

/// For each piece the later positions that its columns reach: those of the matrix, and what its children reach.
fn structure(pieces: &[Piece], upper: &Upper, tasks: &[Task]) -> (Vec<usize>, Vec<u32>) {
    let run = |task: &Task, known: &mut Vec<(usize, Vec<u32>)>, done: &mut Vec<Vec<u32>>| {
        for (k, piece) in pieces.iter().enumerate().take(task.end).skip(task.start) {
            let mut rows: Vec<u32> = Vec::new();
            for position in piece.start..piece.end {
                rows.extend(upper.of(position).iter().map(|e| e.0).filter(|&row| row >= piece.end));
            }
            while known.last().is_some_and(|(child, _)| pieces[*child].parent as usize == k) {
                let Some((_, below)) = known.pop() else { break };
                rows.extend(below.into_iter().filter(|&row| row >= piece.end));
            }
            rows.sort_unstable();
            rows.dedup();
            if piece.parent != NONE {
                known.push((k, rows.clone()));
            }
            done.push(rows);
        }
    };
    let apart: Vec<_> = tasks.iter().filter(|t| t.apart).collect();
    let found: Vec<_> = apart
        .into_par_iter()
        .map(|task| {
            let (mut known, mut done) = (Vec::new(), Vec::new());
            run(task, &mut known, &mut done);
            (known, done)
        })
        .collect();
    let mut found = found.into_iter();
    let (mut first, mut below, mut known) = (vec![0], Vec::new(), Vec::new());
    for task in tasks {
        let mut done = Vec::new();
        if !task.apart {
            run(task, &mut known, &mut done);
        } else if let Some((left, rows)) = found.next() {
            known.extend(left);
            done = rows;
        }
        for rows in done {
            below.extend(rows);
            first.push(below.len());
        }
    }
    (first, below)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Laplacian of an n x n grid plus `shift` on the diagonal.
    struct Grid {
        first: Vec<u32>,
        columns: Vec<u32>,
        values: Vec<f64>,
        diagonal: Vec<f64>,
        positions: Vec<DVec3>,
    }

    impl Grid {
        fn new(n: u32, shift: f64) -> Self {
            let mut grid =
                Self { first: vec![0], columns: vec![], values: vec![], diagonal: vec![], positions: vec![] };
            for row in 0..n * n {
                let (x, y) = (row % n, row / n);
                let sides = [
                    (y > 0, row.wrapping_sub(n)),
                    (x > 0, row.wrapping_sub(1)),
                    (x + 1 < n, row + 1),
                    (y + 1 < n, row + n),
                ];
                let mut diagonal = shift;
                for (_, column) in sides.into_iter().filter(|s| s.0) {
                    // The same from both ends.
                    let value = 1.0 + f64::from((row + column) % 7);
                    grid.columns.push(column);
                    grid.values.push(-value);
                    diagonal += value;
                }
                grid.first.push(grid.columns.len() as u32);
                grid.diagonal.push(diagonal);
                grid.positions.push(DVec3::new(f64::from(x), f64::from(y), 0.0));
            }
            grid
        }

        fn matrix(&self) -> Matrix<'_> {
            Matrix { first: &self.first, columns: &self.columns, values: &self.values, diagonal: &self.diagonal }
        }

        fn times(&self, x: &[f64]) -> Vec<f64> {
            let row = |r: usize| self.first[r] as usize..self.first[r + 1] as usize;
            let beside = |r: usize| row(r).map(|i| self.values[i] * x[self.columns[i] as usize]).sum::<f64>();
            (0..x.len()).map(|r| self.diagonal[r] * x[r] + beside(r)).collect()
        }
    }

    /// `L L^T x`.
    fn times(factor: &Factor, x: &[f64]) -> Vec<f64> {
        let x: Vec<f64> = factor.order.iter().map(|&row| x[row as usize]).collect();
        let (mut down, mut product) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        let mut entries = Vec::new();
        for (k, piece) in factor.pieces.iter().enumerate() {
            let width = (piece.end - piece.start) as usize;
            let rows = (piece.start..piece.end).chain(factor.below(k).iter().copied());
            for (r, (row, values)) in rows.zip(factor.panel(k).chunks_exact(width)).enumerate() {
                for (c, &value) in values.iter().enumerate().take(r + 1) {
                    entries.push((row as usize, piece.start as usize + c, if r == c { 1.0 / value } else { value }));
                }
            }
        }
        entries.iter().for_each(|&(r, c, l)| down[c] += l * x[r]);
        entries.iter().for_each(|&(r, c, l)| product[r] += l * down[c]);
        let mut by_row = vec![0.0; x.len()];
        factor.order.iter().zip(product).for_each(|(&row, value)| by_row[row as usize] = value);
        by_row
    }

    #[test]
    fn the_factor_times_itself_is_the_matrix() {
        // Separators wider than a block of the dense kernel.
        let grid = Grid::new(90, 1e-3);
        let mut factor = Factor::new(&grid.matrix(), &grid.positions, |_| Ok(())).unwrap();
        assert!(factor.pieces.iter().any(|p| p.end - p.start > 70));
        // Nested dissection: about 8 n^2 log2(n) numbers; a band would have n^3.
        assert!(factor.numbers() < 90 * 90 * 60, "{}", factor.numbers());
        let x: Vec<f64> = (0..factor.len()).map(|i| (i as f64 * 0.7).sin()).collect();
        let worst = |factor: &Factor| {
            times(factor, &x).iter().zip(grid.times(&x)).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()))
        };
        // Entries are below 30; a few dozen roundings of 2^-53 each.
        assert!(worst(&factor) < 1e-12, "{:e}", worst(&factor));
        // Control: one number of the factor.
        let last = factor.panels.len() - 2;
        factor.panels[last] += 1e-9;
        assert!(worst(&factor) > 1e-11);
    }

    #[test]
    fn it_solves() {
        let grid = Grid::new(60, 1e-3);
        let factor = Factor::new(&grid.matrix(), &grid.positions, |_| Ok(())).unwrap();
        let truth: Vec<f64> = (0..factor.len()).map(|i| (i as f64 * 0.7).sin()).collect();
        let worst = |side: &[f64]| {
            let mut x = side.to_vec();
            factor.solve(&mut x);
            x.iter().zip(&truth).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()))
        };
        // The condition number is at most 56 / 1e-3, so the error is some 1e5 times 2^-53 times a small growth.
        let mut side = grid.times(&truth);
        assert!(worst(&side) < 1e-9, "{:e}", worst(&side));
        // Control: another right-hand side has another solution.
        side[777] += 1e-3;
        assert!(worst(&side) > 1e-5);
    }

    #[test]
    fn a_singular_matrix_is_refused_and_the_caller_can_stop() {
        let grid = Grid::new(20, -1e-3);
        assert!(matches!(Factor::new(&grid.matrix(), &grid.positions, |_| Ok(())), Err(Error::Check(_))));
        let grid = Grid::new(20, 1.0);
        let stopped = Factor::new(&grid.matrix(), &grid.positions, |_| Err(Error::Cancelled));
        assert!(matches!(stopped, Err(Error::Cancelled)));
    }
}
