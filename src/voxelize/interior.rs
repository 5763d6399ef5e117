//! The inside of a surface that may have holes: generalized winding number above one half (Jacobson et al. 2013), asked only
//! where signed crossings along rays in the three axes leave a doubt (after Nooruddin and Turk 2003).

use glam::{IVec3, UVec3};
use rayon::prelude::*;

use super::doubt::settle;
use super::parts::Hull;
use crate::error::Result;
use crate::model::{BitGrid, LATTICE};
use crate::progress::{Progress, Stage};

/// The voxels, not in `surface`, whose centres the hull winds around.
///
/// Voxels with rays that agree, and whose columns end outside again, need no winding number: on a closed hull that is all.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn winding(hull: &Hull, surface: &BitGrid, progress: Progress) -> Result<BitGrid> {
    let dims = surface.dims();
    let mut all = BitGrid::new(dims);
    let mut any = BitGrid::new(dims);
    for axis in 0..3 {
        progress.at(Stage::Interior, 0.1 * axis as f64)?;
        let mut inside = BitGrid::new(dims);
        shoot(hull, axis, &mut inside, &mut any);
        if axis == 0 {
            all = inside;
        } else {
            all.words_mut().iter_mut().zip(inside.words()).for_each(|(a, b)| *a &= b);
        }
    }
    let sure = all.words().iter().zip(surface.words());
    any.words_mut().iter_mut().zip(sure).for_each(|(any, (all, surface))| *any &= !(all | surface));
    if any.words().iter().all(|&word| word == 0) {
        return Ok(all);
    }
    progress.at(Stage::Interior, 0.3)?;
    let found = settle(hull, surface, &any, progress)?;
    all.words_mut().iter_mut().zip(found.words()).for_each(|(a, b)| *a |= b);
    Ok(all)
}

/// Shoots a ray along the axis through the voxel centres of every column. Sets in `inside` and `any` the voxels whose centres
/// are inside; where crossings do not add up, sets the whole column in `any` and nothing in `inside`.
fn shoot(hull: &Hull, axis: usize, inside: &mut BitGrid, any: &mut BitGrid) {
    let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
    let dims = inside.dims().to_array();
    let width = dims[u];
    // Column, first voxel beyond, 0 for a way in and 1 for a way out: sorted, a column's crossings follow each other.
    let mut crossings: Vec<u64> = hull
        .triangles
        .par_iter()
        .with_min_len(1024)
        .fold(Vec::new, |mut list, t| {
            cross_columns(t, axis, |column, at, outward| {
                let at = at.clamp(0, dims[axis] as i32) as u64;
                let column = (column[1] as u32 * width + column[0] as u32) as u64;
                list.push(column << 32 | at << 1 | u64::from(outward));
            });
            list
        })
        .reduce(Vec::new, |mut a, mut b| {
            a.append(&mut b);
            a
        });
    crossings.par_sort_unstable();
    let mut set = |column: u32, from: u32, to: u32, sure: bool| {
        let mut at = [0; 3];
        (at[u], at[v]) = (column % width, column / width);
        for i in from..to {
            at[axis] = i;
            any.set(UVec3::from_array(at));
            if sure {
                inside.set(UVec3::from_array(at));
            }
        }
    };
    for column in crossings.chunk_by(|a, b| a >> 32 == b >> 32) {
        let number = (column[0] >> 32) as u32;
        let steps = || {
            column.iter().scan(0i32, |depth, c| {
                *depth += if c & 1 == 0 { 1 } else { -1 };
                Some((*depth, (c >> 1 & 0x7fff_ffff) as u32))
            })
        };
        if steps().any(|(depth, _)| depth < 0) || steps().last().is_some_and(|(depth, _)| depth != 0) {
            set(number, 0, dims[axis], false);
            continue;
        }
        for ((depth, from), (_, to)) in steps().zip(steps().skip(1)) {
            if depth > 0 {
                set(number, from, to, true);
            }
        }
    }
}

/// Calls `crossing(column (u, v), first voxel whose centre is beyond, whether it leads out)` for every column of voxel
/// centres along the axis that goes through the triangle.
///
/// Which of two triangles has a column that goes through their common edge is decided by the direction of the edge, in
/// integers, so that exactly one has it.
fn cross_columns(t: &[IVec3; 3], axis: usize, mut crossing: impl FnMut([i32; 2], i32, bool)) {
    let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut p = t.map(|c| c.to_array().map(i64::from));
    let area =
        |p: &[[i64; 3]; 3]| (p[1][u] - p[0][u]) * (p[2][v] - p[0][v]) - (p[1][v] - p[0][v]) * (p[2][u] - p[0][u]);
    // (u, v, axis) is right-handed: an outward triangle that turns left seen against the axis is a way out.
    let outward = area(&p) > 0;
    if area(&p) < 0 {
        p.swap(1, 2);
    }
    let double_area = area(&p);
    if double_area == 0 {
        return;
    }
    let step = i64::from(LATTICE);
    let columns = |w: usize| {
        let (min, max) = (p[0][w].min(p[1][w]).min(p[2][w]), p[0][w].max(p[1][w]).max(p[2][w]));
        // Centres lie at (i + 1/2) steps.
        (min + step / 2 - 1).div_euclid(step)..=(max - step / 2).div_euclid(step)
    };
    for j in columns(v) {
        for i in columns(u) {
            let (cu, cv) = (i * step + step / 2, j * step + step / 2);
            // Twice the areas of the parts opposite to each corner.
            let mut part = [0i64; 3];
            let inside = (0..3).all(|k| {
                let (a, b) = (p[(k + 1) % 3], p[(k + 2) % 3]);
                let (du, dv) = (b[u] - a[u], b[v] - a[v]);
                part[k] = du * (cv - a[v]) - dv * (cu - a[u]);
                part[k] > 0 || (part[k] == 0 && (dv > 0 || (dv == 0 && du < 0)))
            });
            if inside {
                let depth = (0..3).map(|k| part[k] as f64 * p[k][axis] as f64).sum::<f64>() / double_area as f64;
                let beyond = ((depth - (step / 2) as f64) / step as f64).floor() as i32 + 1;
                crossing([i as i32, j as i32], beyond, outward);
            }
        }
    }
}
