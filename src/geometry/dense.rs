//! The dense blocks inside a sparse factor: Cholesky of a panel, and its product with itself. Plain multiplications and
//! additions in one order, so results are the same on every machine and for any number of threads.

use multiversion::multiversion;
use rayon::prelude::*;

/// Columns of a tile: two or four vector registers.
const WIDE: usize = 8;
/// Rows of a tile.
const TALL: usize = 4;
/// Columns that are factorised at once.
const BLOCK: usize = 32;
/// Products of so many multiplications are shared between cores.
const PARALLEL: usize = 4_000_000;

/// Factorises the first `p` rows of a panel (`p` columns, row after row) into `L L^T`, of which it holds the lower
/// triangle, and brings the rows below to `A L^-T`. The diagonal ends as the inverse of L's. What is above the diagonal does not
/// count.
///
/// # Errors
/// The first column whose pivot is not above 0.
pub fn factorise(panel: &mut [f64], p: usize) -> Result<(), usize> {
    let rows = panel.len() / p.max(1);
    for start in (0..p).step_by(BLOCK) {
        let end = (start + BLOCK).min(p);
        if start > 0 {
            let columns = pack(&panel[start * p..end * p], p, start);
            let update = |rows: &mut [f64]| subtract_products(rows, p, start, &columns, end - start);
            for_rows(&mut panel[start * p..], p, (rows - start) * start * (end - start), update);
        }
        factorise_block(&mut panel[start * p..end * p], p, start).map_err(|column| start + column)?;
        let mut upper = [[0.0; BLOCK]; BLOCK];
        for (j, row) in panel[start * p..end * p].chunks_exact(p).enumerate() {
            row[start..=start + j].iter().enumerate().for_each(|(k, &value)| upper[k][j] = value);
        }
        let solve = |rows: &mut [f64]| solve_rows(rows, p, start, end - start, &upper);
        for_rows(&mut panel[end * p..], p, (rows - end) * BLOCK * (end - start) / 2, solve);
    }
    Ok(())
}

/// Subtracts `B B^T` from the lower triangle of the square `s` (both row after row); `b` has `p` columns and as many rows as
/// the square. What is above the diagonal ends as anything.
pub fn subtract_square(s: &mut [f64], b: &[f64], p: usize) {
    let n = b.len() / p.max(1);
    let columns = pack(b, p, p);
    let each = |(chunk, s): (usize, &mut [f64])| subtract_lower(s, n, chunk * ROWS, b, p, &columns);
    if n * n * p / 2 > PARALLEL {
        s.par_chunks_mut(ROWS * n).enumerate().for_each(each);
    } else if n > 0 {
        s.chunks_mut(ROWS * n).enumerate().for_each(each);
    }
}

/// Rows a task.
const ROWS: usize = 32;

fn for_rows(rows: &mut [f64], p: usize, work: usize, each: impl Fn(&mut [f64]) + Sync + Send) {
    if work > PARALLEL {
        rows.par_chunks_mut(ROWS * p).for_each(each);
    } else {
        each(rows);
    }
}

/// The first `k` entries of rows of length `p`, eight rows side by side; missing rows are 0.
fn pack(rows: &[f64], p: usize, k: usize) -> Vec<[f64; WIDE]> {
    let mut packed = Vec::with_capacity(rows.len().div_ceil(p * WIDE) * k);
    for tile in rows.chunks(p * WIDE) {
        let before = packed.len();
        packed.resize(before + k, [0.0; WIDE]);
        for (c, row) in tile.chunks_exact(p).enumerate() {
            packed[before..].iter_mut().zip(row).for_each(|(into, &value)| into[c] = value);
        }
    }
    packed
}

/// `A B^T` for four rows of A and eight of B, packed.
#[inline(always)]
fn product(a: [&[f64]; TALL], b: &[[f64; WIDE]]) -> [[f64; WIDE]; TALL] {
    let mut sum = [[0.0; WIDE]; TALL];
    let a = a.map(|row| &row[..b.len()]);
    for (k, b) in b.iter().enumerate() {
        for r in 0..TALL {
            let value = a[r][k];
            for c in 0..WIDE {
                sum[r][c] += value * b[c];
            }
        }
    }
    sum
}

/// Subtracts, from columns `k..k + width` of rows of length `p`, the products of their first k entries with the packed
/// rows.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn subtract_products(rows: &mut [f64], p: usize, k: usize, columns: &[[f64; WIDE]], width: usize) {
    let n = rows.len() / p;
    for (tile, column) in columns.chunks_exact(k).enumerate() {
        let from = k + tile * WIDE;
        let to = (from + WIDE).min(k + width);
        for i in (0..n).step_by(TALL) {
            let row = |r: usize| (i + r).min(n - 1) * p;
            let sum = product([0, 1, 2, 3].map(|r| &rows[row(r)..row(r) + k]), column);
            for (r, sum) in sum.iter().enumerate().take(n - i) {
                let into = &mut rows[(i + r) * p + from..(i + r) * p + to];
                into.iter_mut().zip(sum).for_each(|(x, s)| *x -= s);
            }
        }
    }
}

/// Subtracts from rows `start..` of a square with `n` columns, up to the tile of the diagonal, the products of rows of `b`.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn subtract_lower(s: &mut [f64], n: usize, start: usize, b: &[f64], p: usize, columns: &[[f64; WIDE]]) {
    let rows = s.len() / n;
    if p == 0 {
        return;
    }
    for (tile, column) in columns.chunks_exact(p).enumerate() {
        let from = tile * WIDE;
        let to = (from + WIDE).min(n);
        if from >= start + rows {
            break;
        }
        let first = from.saturating_sub(start) / TALL * TALL;
        for i in (first..rows).step_by(TALL) {
            let row = |r: usize| (start + (i + r).min(rows - 1)) * p;
            let sum = product([0, 1, 2, 3].map(|r| &b[row(r)..row(r) + p]), column);
            for (r, sum) in sum.iter().enumerate().take(rows - i) {
                let into = &mut s[(i + r) * n + from..(i + r) * n + to];
                into.iter_mut().zip(sum).for_each(|(x, s)| *x -= s);
            }
        }
    }
}

/// Cholesky of the square of these rows that begins at column `start`.
fn factorise_block(rows: &mut [f64], p: usize, start: usize) -> Result<(), usize> {
    let n = rows.len() / p;
    for j in 0..n {
        let (above, row) = rows.split_at_mut(j * p);
        let row = &mut row[start..start + n];
        for k in 0..j {
            let other = &above[k * p + start..k * p + start + k + 1];
            let sum: f64 = row[..k].iter().zip(other).map(|(a, b)| a * b).sum();
            row[k] = (row[k] - sum) * other[k];
        }
        let pivot = row[j] - row[..j].iter().map(|a| a * a).sum::<f64>();
        if !(pivot > 0.0 && pivot.is_finite()) {
            return Err(j);
        }
        row[j] = 1.0 / pivot.sqrt();
    }
    Ok(())
}

/// Solves `X U = A` for each row of A, which begins at column `start`; U is upper triangular, its diagonal inverted.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn solve_rows(rows: &mut [f64], p: usize, start: usize, n: usize, upper: &[[f64; BLOCK]; BLOCK]) {
    let count = rows.len() / p;
    for i in (0..count).step_by(TALL) {
        // Four rows at once, side by side in the registers.
        let mut x = [[0.0; BLOCK]; TALL];
        for (r, x) in x.iter_mut().enumerate().take(count - i) {
            x[..n].copy_from_slice(&rows[(i + r) * p + start..(i + r) * p + start + n]);
        }
        for j in 0..n {
            for x in &mut x {
                let value = x[j] * upper[j][j];
                x[j] = value;
                // From the start of the vector: what is up to j stays as it is, as U is 0 there.
                for c in j + 1..n {
                    x[c] -= value * upper[j][c];
                }
            }
        }
        for (r, x) in x.iter().enumerate().take(count - i) {
            rows[(i + r) * p + start..(i + r) * p + start + n].copy_from_slice(&x[..n]);
        }
    }
}
