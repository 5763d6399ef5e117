//! Heat in the solid the plain way, in f64: every bone on its own over all solid voxels, solved until rounding stops
//! it.
//!
//! `(L + diag g) w_b = g [owner = b]` with the unit Laplacian of the six neighbours over faces, by conjugate gradients
//! with the diagonal as preconditioner (Hestenes & Stiefel 1952). Slow and obviously right: the oracle for the fast
//! solver and for the GPU.

use super::solid::NONE;

/// The heat of one bone in every voxel: 1 where only this bone heats, 0 where it does not reach.
///
/// `neighbors` are the voxels' neighbours ([`NONE`] for none), `conductance` is `g`, and `owned` says whether the bone
/// owns a voxel. Every part that is connected over faces needs a voxel with `g > 0`. Solved to `|residual| <= tolerance
/// |right side|`.
pub fn heat_of_bone(
    neighbors: &[[u32; 6]],
    conductance: &[f64],
    owned: impl Fn(usize) -> bool,
    tolerance: f64,
) -> Vec<f64> {
    let n = neighbors.len();
    let mut heat = vec![0.0; n];
    let mut residual: Vec<f64> = (0..n).map(|i| if owned(i) { conductance[i] } else { 0.0 }).collect();
    let diagonal: Vec<f64> = (0..n).map(|i| conductance[i] + degree(&neighbors[i])).collect();
    let goal = tolerance * norm(&residual);
    let mut direction: Vec<f64> = residual.iter().zip(&diagonal).map(|(r, d)| r / d).collect();
    let mut energy = dot(&residual, &direction);
    // Without rounding n steps solve the system; in practice far fewer do.
    for _ in 0..n.max(100) {
        if norm(&residual) <= goal {
            break;
        }
        let product = apply(neighbors, conductance, &direction);
        let step = energy / dot(&direction, &product);
        for i in 0..n {
            heat[i] += step * direction[i];
            residual[i] -= step * product[i];
        }
        let before = energy;
        energy = residual.iter().zip(&diagonal).map(|(r, d)| r * r / d).sum();
        for i in 0..n {
            direction[i] = residual[i] / diagonal[i] + energy / before * direction[i];
        }
    }
    heat
}

/// `(L + diag g) x`.
pub fn apply(neighbors: &[[u32; 6]], conductance: &[f64], x: &[f64]) -> Vec<f64> {
    (0..x.len())
        .map(|i| {
            let flow: f64 = neighbors[i].iter().filter(|&&n| n != NONE).map(|&n| x[i] - x[n as usize]).sum();
            flow + conductance[i] * x[i]
        })
        .collect()
}

fn degree(neighbors: &[u32; 6]) -> f64 {
    neighbors.iter().filter(|&&n| n != NONE).count() as f64
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Voxels in a row.
    fn row(n: u32) -> Vec<[u32; 6]> {
        (0..n)
            .map(|i| {
                let right = if i + 1 < n { i + 1 } else { NONE };
                [i.checked_sub(1).unwrap_or(NONE), right, NONE, NONE, NONE, NONE]
            })
            .collect()
    }

    #[test]
    fn a_rod_heated_at_its_ends_has_the_closed_form() {
        // Sources at the two ends only, with conductances g and h: heat falls linearly along the rod, and the flow into
        // the rod at one end, g (1 - first), is the flow out at the other, h last, and the drop of each step.
        let (n, g, h) = (30, 0.7, 2.0);
        let mut conductance = vec![0.0; n];
        (conductance[0], conductance[n - 1]) = (g, h);
        let heat = heat_of_bone(&row(n as u32), &conductance, |i| i == 0, 1e-13);
        let flow = 1.0 / (1.0 / g + (n - 1) as f64 + 1.0 / h);
        for (i, w) in heat.iter().enumerate() {
            let expected = 1.0 - flow / g - flow * i as f64;
            assert!((w - expected).abs() < 1e-11, "voxel {i}: {w}, not {expected}");
        }
        // Negative control: the other end's conductance matters.
        conductance[n - 1] = 2.1;
        let other = heat_of_bone(&row(n as u32), &conductance, |i| i == 0, 1e-13);
        assert!((other[0] - heat[0]).abs() > 1e-5);
    }
}
