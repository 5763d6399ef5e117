//! Normals and tangents under blended matrices, all vertices of a block in step: the formulas of
//! [`crate::skin::reference`], with coordinates in rows so that a root or a division serves every lane of a register.
//! Products and sums are rounded one by one, as there: where a blend of turns has all but collapsed, the normal magnifies
//! each rounding of its cross products.

use glam::DVec3;

use crate::skin::COLLAPSED;
use crate::skin::kernel::{BLOCK, Lanes};

/// A number for each vertex of a block.
type Row = [f64; BLOCK];

/// The directions of a block, a row for each coordinate; those past the end of the part are 0.
pub(super) struct Directions([Row; 3]);

impl Directions {
    #[inline(always)]
    pub(super) fn of(vectors: impl Iterator<Item = DVec3>) -> Self {
        let mut rows = [[0.0; BLOCK]; 3];
        for (i, vector) in (0..BLOCK).zip(vectors) {
            (rows[0][i], rows[1][i], rows[2][i]) = (vector.x, vector.y, vector.z);
        }
        Self(rows)
    }

    #[inline(always)]
    pub(super) fn get(&self, vertex: usize) -> DVec3 {
        let [x, y, z] = &self.0;
        DVec3::new(x[vertex], y[vertex], z[vertex])
    }

    #[inline(always)]
    fn at(&self, i: usize) -> [f64; 3] {
        [self.0[0][i], self.0[1][i], self.0[2][i]]
    }

    #[inline(always)]
    fn set(&mut self, i: usize, v: [f64; 3]) {
        let [x, y, z] = &mut self.0;
        (x[i], y[i], z[i]) = (v[0], v[1], v[2]);
    }
}

/// The 3 x 3 matrices of a block, a row for each entry, so that every step below is one for all lanes.
pub(super) struct Columns([[Row; 3]; 3]);

impl Columns {
    #[inline(always)]
    pub(super) fn of(matrices: &[Lanes<4>; BLOCK]) -> Self {
        let mut columns = [[[0.0; BLOCK]; 3]; 3];
        for (i, m) in matrices.iter().enumerate() {
            for (column, entries) in columns.iter_mut().zip(m) {
                for (row, entry) in column.iter_mut().zip(entries) {
                    row[i] = *entry;
                }
            }
        }
        Self(columns)
    }

    /// What [`crate::skin::reference::move_normal`] does.
    #[inline(always)]
    pub(super) fn normals(&self, rest: &Directions) -> Directions {
        let mut moved = Directions([[0.0; BLOCK]; 3]);
        for i in 0..BLOCK {
            let [x, y, z] = self.at(i);
            let n = rest.at(i);
            let (a, b, c) = (cross(y, z), cross(z, x), cross(x, y));
            let side = if dot3(x, a) < 0.0 { -1.0 } else { 1.0 };
            let m = [0, 1, 2].map(|k| side * (a[k] * n[0] + b[k] * n[1] + c[k] * n[2]));
            let size = dot3(x, x) + dot3(y, y) + dot3(z, z);
            moved.set(i, unit_unless_collapsed(m, size * size, n));
        }
        moved
    }

    /// What [`crate::skin::reference::move_tangent`] does.
    #[inline(always)]
    pub(super) fn tangents(&self, rest: &Directions) -> Directions {
        let mut moved = Directions([[0.0; BLOCK]; 3]);
        for i in 0..BLOCK {
            let [x, y, z] = self.at(i);
            let t = rest.at(i);
            let m = [0, 1, 2].map(|k| x[k] * t[0] + y[k] * t[1] + z[k] * t[2]);
            let size = dot3(x, x) + dot3(y, y) + dot3(z, z);
            moved.set(i, unit_unless_collapsed(m, size, t));
        }
        moved
    }

    #[inline(always)]
    fn at(&self, i: usize) -> [[f64; 3]; 3] {
        let [x, y, z] = &self.0;
        [[x[0][i], x[1][i], x[2][i]], [y[0][i], y[1][i], y[2][i]], [z[0][i], z[1][i], z[2][i]]]
    }
}

#[inline(always)]
fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[inline(always)]
fn dot3(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The direction of `moved`, or `rest` where next to nothing is left of what the matrix could make of it: the squares are
/// compared, which spares two roots.
#[inline(always)]
fn unit_unless_collapsed(moved: [f64; 3], size_squared: f64, rest: [f64; 3]) -> [f64; 3] {
    let square = dot3(moved, moved);
    let most = size_squared * dot3(rest, rest);
    let scale = 1.0 / square.sqrt();
    let kept = square > COLLAPSED * COLLAPSED * most;
    [0, 1, 2].map(|k| if kept { moved[k] * scale } else { rest[k] })
}
