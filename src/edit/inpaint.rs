//! Weight inpainting: fills places without weights as smoothly as those around them allow (Abdrashitov, Raichstat, Monsen and
//! Hill, "Robust Skin Weights Transfer via Weight Inpainting", SIGGRAPH Asia 2023).

use std::collections::BTreeMap;

use glam::DVec3;
use rayon::prelude::*;

use crate::edit::rows::to_one;
use crate::error::{Error, Result};
use crate::geometry::mesh_graph::Laplacian;
use crate::geometry::supernodal::{Factor, Matrix};
use crate::model::{Influence, Mesh, Weights, Weld};
use crate::progress::{Progress, Stage};

/// Filled weights below this are noise of the solution.
const FAINT: f64 = 1e-9;

const KNOWN: u32 = u32::MAX;

/// Fills the empty rows of places: for each bone the weights x minimise `x^T Q x`, `Q = S + S M^-1 S`, with the given rows
/// fixed, where S = -L is the cotangent Laplacian and M the area of a place in squared diagonals of the mesh, so that the
/// unit of length does not matter. Results are cut off at 0 and scaled to add up to 1.
///
/// `rows` has one row a place of `weld`, empty or with the sum 1. Each connected component must have a row that is not
/// empty.
///
/// # Errors
/// [`Error::Length`]; [`Error::Check`] for a component without weights; [`Error::Limit`] where more is empty than can be
/// solved; [`Error::NoExtent`]; [`Error::Cancelled`].
pub fn inpaint(mesh: &Mesh, weld: &Weld, rows: &Weights, progress: Progress) -> Result<Weights> {
    inpaint_on(mesh, weld, &Laplacian::new(mesh, weld), rows, progress)
}

/// The same with the Laplacian of the mesh made before.
pub(super) fn inpaint_on(
    mesh: &Mesh,
    weld: &Weld,
    laplacian: &Laplacian,
    rows: &Weights,
    progress: Progress,
) -> Result<Weights> {
    if rows.len() != weld.places() {
        return Err(Error::Length { what: "weights of places", found: rows.len(), expected: weld.places() });
    }
    let unknown: Vec<u32> = (0..rows.len() as u32).filter(|&p| rows.of(p as usize).is_empty()).collect();
    if unknown.is_empty() {
        return Ok(rows.clone());
    }
    check_bound(mesh, weld, rows)?;
    let diagonal = mesh.bounds().diagonal();
    if diagonal == 0.0 {
        return Err(Error::NoExtent);
    }
    let system = System::new(laplacian, diagonal * diagonal, rows, &unknown);
    let positions: Vec<DVec3> = unknown.iter().map(|&p| mesh.positions()[weld.first[p as usize] as usize]).collect();
    let factor = Factor::new(&system.matrix(), &positions, |done| progress.at(Stage::Influence, done))?;
    let solve = |(&joint, sources): (&u32, &Vec<(u32, f64)>)| {
        progress.at(Stage::Influence, 1.0)?;
        let mut x = vec![0.0; unknown.len()];
        sources.iter().for_each(|&(row, value)| x[row as usize] += value);
        factor.solve(&mut x);
        let kept = x.iter().enumerate().filter(|(_, w)| **w > FAINT);
        Ok((joint, kept.map(|(row, &w)| (row as u32, w)).collect()))
    };
    let columns: Vec<(u32, Vec<(u32, f64)>)> = system.sources.par_iter().map(solve).collect::<Result<_>>()?;
    let mut filled = vec![Vec::new(); unknown.len()];
    for (joint, column) in columns {
        column.into_iter().for_each(|(row, weight)| filled[row as usize].push(Influence { joint, weight }));
    }
    let mut next = filled.into_iter();
    let mut all = Weights::with_capacity(rows.len(), 4 * rows.len());
    for row in rows.iter() {
        if row.is_empty() {
            let mut row = next.next().unwrap_or_default();
            to_one(&mut row);
            all.push(row);
        } else {
            all.push(row.iter().copied());
        }
    }
    Ok(all)
}

/// Without a fixed place a component has no solution of its own.
fn check_bound(mesh: &Mesh, weld: &Weld, rows: &Weights) -> Result<()> {
    let components = mesh.components(weld);
    let mut bound = vec![false; components.len()];
    for (row, &component) in rows.iter().zip(&components.of_place) {
        bound[component as usize] |= !row.is_empty();
    }
    match components.of_place.iter().position(|&c| !bound[c as usize]) {
        Some(place) => Err(Error::Check(format!(
            "vertex {} (0-based) is connected to none that has weights, so there is nothing to fill it from",
            weld.first[place]
        ))),
        None => Ok(()),
    }
}

/// The equations of the unknown places: `Q_uu x = -Q_uk w`.
struct System {
    /// The entries of row r beside the diagonal are `first[r]..first[r + 1]` of `columns` and `values`.
    first: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
    diagonal: Vec<f64>,
    /// For each joint its right-hand side: row and value, a row perhaps more than once.
    sources: BTreeMap<u32, Vec<(u32, f64)>>,
}

impl System {
    /// `unit` is the area in which areas are measured.
    fn new(laplacian: &Laplacian, unit: f64, rows: &Weights, unknown: &[u32]) -> Self {
        let mut number = vec![KNOWN; rows.len()];
        unknown.iter().enumerate().for_each(|(u, &place)| number[place as usize] = u as u32);
        let mut system = Self {
            first: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
            diagonal: Vec::new(),
            sources: BTreeMap::new(),
        };
        let mut values = vec![0.0; rows.len()];
        let mut touched = Vec::new();
        for (u, &place) in unknown.iter().enumerate() {
            row_of_q(laplacian, unit, place, &mut values, &mut touched);
            touched.sort_unstable();
            touched.dedup();
            let entries: Vec<(u32, f64)> =
                touched.drain(..).map(|p| (p, std::mem::take(&mut values[p as usize]))).collect();
            for &(place, value) in entries.iter().filter(|(p, _)| number[*p as usize] == KNOWN) {
                for i in rows.of(place as usize) {
                    system.sources.entry(i.joint).or_default().push((u as u32, -value * i.weight));
                }
            }
            for &(place, value) in entries.iter().filter(|(p, _)| number[*p as usize] != KNOWN) {
                match number[place as usize] {
                    column if column == u as u32 => system.diagonal.push(value),
                    column => {
                        system.columns.push(column);
                        system.values.push(value);
                    }
                }
            }
            system.first.push(system.columns.len() as u32);
        }
        system
    }

    fn matrix(&self) -> Matrix<'_> {
        Matrix { first: &self.first, columns: &self.columns, values: &self.values, diagonal: &self.diagonal }
    }
}

/// Adds row `place` of `S + S M^-1 S` to `values` and lists the columns it touches.
fn row_of_q(laplacian: &Laplacian, unit: f64, place: u32, values: &mut [f64], touched: &mut Vec<u32>) {
    let degree = |p: u32| laplacian.of(p).iter().map(|e| e.1).sum::<f64>();
    let mut put = |column: u32, value: f64| {
        values[column as usize] += value;
        touched.push(column);
    };
    let mut through = |middle: u32, entry: f64| {
        // S itself, and S M^-1 S over this place in the middle.
        put(middle, entry);
        let scaled = entry * unit / laplacian.area[middle as usize];
        put(middle, scaled * degree(middle));
        laplacian.of(middle).iter().for_each(|&(p, w)| put(p, -scaled * w));
    };
    through(place, degree(place));
    laplacian.of(place).iter().for_each(|&(p, w)| through(p, -w));
}
