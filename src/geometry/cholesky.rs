//! Sparse factorisation L D L^T of symmetric positive definite matrices: up-looking (Davis, "Algorithm 849: A Concise
//! Sparse Cholesky Factorization Package", 2005), ordered by nested dissection of places in space (George 1973).

use glam::DVec3;

use crate::error::{Error, Result};

/// Pieces of so few rows are not cut further: a dense block of them is cheap.
const LEAF: usize = 24;
/// Most numbers in the factor: 16 bytes each.
const MOST_NUMBERS: usize = 250_000_000;
/// Columns between two questions whether to go on.
const COLUMNS_A_STEP: usize = 512;

const NONE: u32 = u32::MAX;

/// A symmetric sparse matrix: for each row all its entries, both triangles.
#[derive(Debug, Clone, Default)]
pub struct SymmetricMatrix {
    starts: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl SymmetricMatrix {
    /// No rows yet; `push` adds them in order.
    pub fn new() -> Self {
        Self { starts: vec![0], entries: Vec::new() }
    }

    /// Adds the next row: columns, each at most once, with their values.
    pub fn push(&mut self, row: impl IntoIterator<Item = (u32, f64)>) {
        self.entries.extend(row);
        self.starts.push(self.entries.len());
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries of a row.
    pub fn row(&self, row: usize) -> &[(u32, f64)] {
        &self.entries[self.starts[row]..self.starts[row + 1]]
    }
}

/// A matrix factorised, to solve for any number of right-hand sides.
#[derive(Debug, Clone)]
pub struct Cholesky {
    /// For each row of the factor, the row of the matrix.
    order: Vec<u32>,
    starts: Vec<usize>,
    /// Columns of L without its unit diagonal: row and value.
    entries: Vec<(u32, f64)>,
    diagonal: Vec<f64>,
}

impl Cholesky {
    /// Factorises a matrix whose rows lie at `positions`; rows that have a common entry should be near each other.
    /// `step(fraction)` is asked now and then whether to go on.
    ///
    /// # Errors
    /// [`Error::Check`] for a matrix that is not positive definite, [`Error::Limit`] for one whose factor does not fit into
    /// 4 GB, and what `step` returns.
    pub fn new(matrix: &SymmetricMatrix, positions: &[DVec3], mut step: impl FnMut(f64) -> Result<()>) -> Result<Self> {
        let order = dissection(matrix, positions);
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(k, &row)| place[row as usize] = k as u32);
        let (parent, starts) = symbolic(matrix, &order, &place);
        let numbers = starts[order.len()];
        if numbers > MOST_NUMBERS {
            return Err(Error::Limit {
                what: "numbers in a sparse factor".into(),
                needed: numbers.to_string(),
                limit: MOST_NUMBERS.to_string(),
                advice: "use a mesh of fewer vertices".into(),
            });
        }
        let mut factor = Self { entries: vec![(0, 0.0); numbers], diagonal: vec![0.0; order.len()], order, starts };
        factor.numeric(matrix, &place, &parent, &mut step)?;
        Ok(factor)
    }

    /// One row of L after the other: row k solves L y = column k of the matrix, over the columns that the tree reaches.
    fn numeric(
        &mut self,
        matrix: &SymmetricMatrix,
        place: &[u32],
        parent: &[u32],
        step: &mut impl FnMut(f64) -> Result<()>,
    ) -> Result<()> {
        let n = self.order.len();
        let mut filled = self.starts[..n].to_vec();
        let mut y = vec![0.0; n];
        let mut seen = vec![NONE; n];
        let (mut pattern, mut path) = (Vec::new(), Vec::new());
        for k in 0..n {
            if k % COLUMNS_A_STEP == 0 {
                step(k as f64 / n as f64)?;
            }
            pattern.clear();
            seen[k] = k as u32;
            for &(column, value) in matrix.row(self.order[k] as usize) {
                let column = place[column as usize];
                if column as usize > k {
                    continue;
                }
                y[column as usize] += value;
                let mut at = column;
                while seen[at as usize] != k as u32 {
                    seen[at as usize] = k as u32;
                    path.push(at);
                    at = parent[at as usize];
                }
                // Later paths end in earlier ones, so in the end, read backwards, children come before parents.
                pattern.extend(path.drain(..).rev());
            }
            let mut pivot = std::mem::take(&mut y[k]);
            for &column in pattern.iter().rev() {
                let column = column as usize;
                let value = std::mem::take(&mut y[column]);
                for &(row, l) in &self.entries[self.starts[column]..filled[column]] {
                    y[row as usize] -= l * value;
                }
                let l = value / self.diagonal[column];
                pivot -= l * value;
                self.entries[filled[column]] = (k as u32, l);
                filled[column] += 1;
            }
            if !(pivot > 0.0 && pivot.is_finite()) {
                return Err(Error::Check(format!("row {} of a matrix has the pivot {pivot}", self.order[k])));
            }
            self.diagonal[k] = pivot;
        }
        Ok(())
    }

    /// Solves the system in place: `b` is the right-hand side, then the solution.
    pub fn solve(&self, b: &mut [f64]) {
        let mut x: Vec<f64> = self.order.iter().map(|&row| b[row as usize]).collect();
        for k in 0..x.len() {
            let value = x[k];
            if value != 0.0 {
                for &(row, l) in self.column(k) {
                    x[row as usize] -= l * value;
                }
            }
        }
        for k in (0..x.len()).rev() {
            let below: f64 = self.column(k).iter().map(|&(row, l)| l * x[row as usize]).sum();
            x[k] = x[k] / self.diagonal[k] - below;
        }
        self.order.iter().zip(x).for_each(|(&row, value)| b[row as usize] = value);
    }

    fn column(&self, k: usize) -> &[(u32, f64)] {
        &self.entries[self.starts[k]..self.starts[k + 1]]
    }
}

/// The elimination tree and where each column of L begins.
fn symbolic(matrix: &SymmetricMatrix, order: &[u32], place: &[u32]) -> (Vec<u32>, Vec<usize>) {
    let n = order.len();
    let (mut parent, mut seen) = (vec![NONE; n], vec![NONE; n]);
    let mut starts = vec![0; n + 1];
    for k in 0..n as u32 {
        seen[k as usize] = k;
        for &(column, _) in matrix.row(order[k as usize] as usize) {
            let mut at = place[column as usize];
            while at < k && seen[at as usize] != k {
                if parent[at as usize] == NONE {
                    parent[at as usize] = k;
                }
                starts[at as usize + 1] += 1;
                seen[at as usize] = k;
                at = parent[at as usize];
            }
        }
    }
    for k in 0..n {
        starts[k + 1] += starts[k];
    }
    (parent, starts)
}

/// An order of elimination that keeps the factor sparse: halves in space first, the rows that join them last.
fn dissection(matrix: &SymmetricMatrix, positions: &[DVec3]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..matrix.len() as u32).collect();
    let mut side = vec![0u32; matrix.len()];
    let mut cuts = 0;
    // Ranges still to be cut; the separators are already in place behind their halves.
    let mut open = vec![(0, order.len())];
    while let Some((start, end)) = open.pop() {
        let rows = &mut order[start..end];
        if rows.len() <= LEAF {
            continue;
        }
        let at = |row: u32| positions[row as usize];
        let nothing = (DVec3::INFINITY, DVec3::NEG_INFINITY);
        let bounds = rows.iter().fold(nothing, |b, &r| (b.0.min(at(r)), b.1.max(at(r))));
        let axis = (bounds.1 - bounds.0).max_position();
        let half = rows.len() / 2;
        rows.select_nth_unstable_by(half, |&a, &b| at(a)[axis].total_cmp(&at(b)[axis]).then(a.cmp(&b)));
        cuts += 1;
        rows[..half].iter().for_each(|&row| side[row as usize] = cuts);
        let joins = |row: u32| matrix.row(row as usize).iter().any(|&(column, _)| side[column as usize] == cuts);
        let (mut apart, mut separator): (Vec<u32>, Vec<u32>) = rows[half..].iter().partition(|&&row| !joins(row));
        let middle = half + apart.len();
        apart.append(&mut separator);
        rows[half..].copy_from_slice(&apart);
        open.push((start, start + half));
        // Where all of the second half is a separator there is nothing left to cut.
        open.push((start + half, start + middle));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Laplacian of an n x n grid, plus a small multiple of the identity.
    fn grid(n: u32, shift: f64) -> (SymmetricMatrix, Vec<DVec3>) {
        let (mut matrix, mut positions) = (SymmetricMatrix::new(), Vec::new());
        for row in 0..n * n {
            let (x, y) = (row % n, row / n);
            let mut entries = Vec::new();
            let mut join = |there: bool, column: u32| {
                if there {
                    entries.push((column, -1.0));
                }
            };
            join(x > 0, row.wrapping_sub(1));
            join(x + 1 < n, row + 1);
            join(y > 0, row.wrapping_sub(n));
            join(y + 1 < n, row + n);
            entries.push((row, entries.len() as f64 + shift));
            matrix.push(entries);
            positions.push(DVec3::new(f64::from(x), f64::from(y), 0.0));
        }
        (matrix, positions)
    }

    #[test]
    fn solves_and_stays_sparse() {
        let (matrix, positions) = grid(40, 1e-3);
        let factor = Cholesky::new(&matrix, &positions, |_| Ok(())).unwrap();
        // Without an order the band of a grid fills up: n^3 numbers. Nested dissection: about 8 n^2 log2(n).
        assert!(factor.entries.len() < 40 * 40 * 40, "{}", factor.entries.len());
        let truth: Vec<f64> = (0..matrix.len()).map(|i| (i as f64 * 0.7).sin()).collect();
        let times = |x: &[f64]| -> Vec<f64> {
            (0..matrix.len()).map(|r| matrix.row(r).iter().map(|&(c, v)| v * x[c as usize]).sum()).collect()
        };
        let mut x = times(&truth);
        factor.solve(&mut x);
        // The condition number is at most 8 / 1e-3, so the error is some 1e4 times 2^-53 times a small growth.
        let worst = |x: &[f64]| x.iter().zip(&truth).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
        assert!(worst(&x) < 1e-10, "{}", worst(&x));
        // Control: another right-hand side has another solution.
        let mut other = times(&truth);
        other[777] += 1e-3;
        factor.solve(&mut other);
        assert!(worst(&other) > 1e-5);
    }

    #[test]
    fn a_singular_matrix_is_refused_and_the_caller_can_stop() {
        let (matrix, positions) = grid(8, -1e-3);
        assert!(matches!(Cholesky::new(&matrix, &positions, |_| Ok(())), Err(Error::Check(_))));
        let (matrix, positions) = grid(8, 1.0);
        assert!(matches!(Cholesky::new(&matrix, &positions, |_| Err(Error::Cancelled)), Err(Error::Cancelled)));
    }
}
