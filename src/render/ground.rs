//! A soft shadow on the floor below a mesh, darker where the mesh is near to it, so that characters stand and do not float.

use glam::{DVec2, DVec3};

use crate::model::Mesh;

/// Cells along the mesh' longest side.
const CELLS: f64 = 160.0;
/// Free cells all round, into which the shadow can spread.
const FREE: usize = 24;
/// Cells that a smoothing step reaches to either side, and how many steps there are: three make nearly a bell.
const REACH: usize = 3;
const STEPS: usize = 3;
/// The height, as a share of the mesh' longest side, at which the shadow has faded to 37 %.
const FADE: f64 = 0.045;
const DARKEST: f64 = 0.5;

/// The floor at the height of the lowest vertex.
pub(super) struct Ground {
    pub height: f64,
    origin: DVec2,
    cell: f64,
    columns: usize,
    rows: usize,
    shadow: Vec<f64>,
}

impl Ground {
    /// The floor below a mesh that has some extent.
    pub fn below(mesh: &Mesh) -> Self {
        let bounds = mesh.bounds();
        let size = bounds.extent().max_element();
        let cell = size / CELLS;
        let free = FREE as f64 * cell;
        let origin = DVec2::new(bounds.min.x, bounds.min.z) - free;
        let across = |extent: f64| (extent / cell).ceil() as usize + 2 * FREE + 1;
        let (columns, rows) = (across(bounds.extent().x), across(bounds.extent().z));
        let height = bounds.min.y;
        let mut ground = Self { height, origin, cell, columns, rows, shadow: vec![0.0; columns * rows] };
        for &triangle in mesh.triangles() {
            ground.cast(mesh.corners(triangle), FADE * size);
        }
        for _ in 0..STEPS {
            ground.smooth(columns, rows, 1, columns);
            ground.smooth(rows, columns, columns, 1);
        }
        ground
    }

    /// The shadow straight below a triangle: the darkest of all that cover a cell.
    fn cast(&mut self, corners: [DVec3; 3], fade: f64) {
        let [a, b, c] = corners.map(|p| (DVec2::new(p.x, p.z) - self.origin) / self.cell);
        let area = (b - a).perp_dot(c - a);
        if area == 0.0 {
            return;
        }
        let (low, high) = (a.min(b).min(c), a.max(b).max(c));
        for row in (low.y - 0.5).ceil() as usize..((high.y + 0.5) as usize).min(self.rows) {
            for column in (low.x - 0.5).ceil() as usize..((high.x + 0.5) as usize).min(self.columns) {
                let p = DVec2::new(column as f64 + 0.5, row as f64 + 0.5);
                let shares = [(b - p).perp_dot(c - p), (c - p).perp_dot(a - p), (a - p).perp_dot(b - p)];
                if shares.iter().all(|s| s / area >= 0.0) {
                    let y: f64 = shares.iter().zip(corners).map(|(s, corner)| s / area * corner.y).sum();
                    let dark = DARKEST * (-(y - self.height).max(0.0) / fade).exp();
                    let cell = &mut self.shadow[row * self.columns + column];
                    *cell = cell.max(dark);
                }
            }
        }
    }

    /// The mean of neighbours along `length` cells that lie `step` apart, in `lines` lines that lie `between` apart.
    fn smooth(&mut self, length: usize, lines: usize, step: usize, between: usize) {
        let mut line = vec![0.0; length];
        for start in (0..lines).map(|l| l * between) {
            line.iter_mut().enumerate().for_each(|(i, value)| *value = self.shadow[start + i * step]);
            for i in 0..length {
                let near = &line[i.saturating_sub(REACH)..(i + REACH + 1).min(length)];
                self.shadow[start + i * step] = near.iter().sum::<f64>() / (2 * REACH + 1) as f64;
            }
        }
    }

    /// How dark the floor is below a point: 0 for not at all.
    pub fn shadow(&self, p: DVec3) -> f64 {
        let at = (DVec2::new(p.x, p.z) - self.origin) / self.cell - 0.5;
        let inside = at.x >= 0.0 && at.y >= 0.0 && at.x < (self.columns - 1) as f64 && at.y < (self.rows - 1) as f64;
        if !inside {
            return 0.0;
        }
        let (column, row) = (at.x as usize, at.y as usize);
        let share = at - at.floor();
        let of = |row: usize| {
            let cells = &self.shadow[row * self.columns + column..];
            cells[0] + (cells[1] - cells[0]) * share.x
        };
        of(row) + (of(row + 1) - of(row)) * share.y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_darkest_below_what_is_lowest_and_nothing_far_away() {
        let points = [[0., 0., 0.], [1., 0., 0.], [0., 0., 1.], [3., 1., 3.], [4., 1., 3.], [3., 1., 4.]];
        let mesh = Mesh::new(points.map(DVec3::from_array).to_vec(), vec![[0, 1, 2], [3, 4, 5]]).unwrap();
        let ground = Ground::below(&mesh);
        let at = |x: f64, z: f64| ground.shadow(DVec3::new(x, 9.0, z));
        // The slanted edge is just within reach of the smoothing.
        assert!((at(0.3, 0.3) - DARKEST).abs() < 1e-3, "{}", at(0.3, 0.3));
        let (near, high, far) = (at(-0.05, 0.3), at(3.3, 3.3), at(2.0, 2.0));
        assert!(near > 0.02 && near < DARKEST && high < 0.01 && high > 0.0 && far == 0.0, "{near} {high} {far}");
        assert_eq!(at(1e9, -1e9), 0.0);
    }
}
