//! The inner loops of skinning: four influences at a time, blocks of vertices, compiled once for every machine and once
//! for those with wider registers and fused products, which are found when the program runs.

use glam::{DVec3, DVec4};
use multiversion::multiversion;
use multiversion::target::target_cfg_f;

use crate::skin::directions::{Columns, Directions};

/// Vertices that go through the two halves of a kernel together: what passes between them stays in the nearest cache.
pub(super) const BLOCK: usize = 16;

/// Four influences of a vertex. Unused slots have weight 0 and the joint of the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quad {
    pub(super) weights: [f64; 4],
    pub(super) joints: [u16; 4],
}

/// Four columns (x, y, z, translation), or two halves of a dual quaternion, four lanes each.
pub(super) type Lanes<const N: usize> = [[f64; 4]; N];

/// A run of vertices of a surface; empty slices for what it does not have.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) positions: &'a [DVec3],
    pub(super) normals: &'a [DVec3],
    pub(super) tangents: &'a [DVec4],
}

/// Where the posed vertices of such a run go.
pub(super) struct PartMut<'a> {
    pub(super) positions: &'a mut [DVec3],
    pub(super) normals: &'a mut [DVec3],
    pub(super) tangents: &'a mut [DVec4],
}

/// The weights of a part: the quads of vertex v are those from `ends[v]` to `ends[v + 1]`; without ends
/// each vertex has one.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) quads: &'a [Quad],
    pub(super) ends: &'a [usize],
}

impl<'a> Rows<'a> {
    /// The quads of a vertex: at least one.
    #[inline(always)]
    fn of<const ONE: bool>(&self, vertex: usize) -> &'a [Quad] {
        if ONE {
            std::slice::from_ref(&self.quads[vertex])
        } else {
            &self.quads[self.ends[vertex]..self.ends[vertex + 1]]
        }
    }

    #[inline(always)]
    pub(super) fn range(&self, from: usize, to: usize) -> Self {
        if self.ends.is_empty() {
            Self { quads: &self.quads[from..to], ends: &[] }
        } else {
            Self { quads: self.quads, ends: &self.ends[from..=to] }
        }
    }
}

/// Part of a slice that may be empty because there is nothing of its kind.
#[inline(always)]
fn sub<T>(slice: &[T], from: usize, to: usize) -> &[T] {
    if slice.is_empty() { slice } else { &slice[from..to] }
}

impl<'a> Part<'a> {
    #[inline(always)]
    pub(super) fn range(&self, from: usize, to: usize) -> Self {
        Self {
            positions: &self.positions[from..to],
            normals: sub(self.normals, from, to),
            tangents: sub(self.tangents, from, to),
        }
    }
}

impl<'a> PartMut<'a> {
    #[inline(always)]
    pub(super) fn range(&mut self, from: usize, to: usize) -> PartMut<'_> {
        PartMut {
            positions: &mut self.positions[from..to],
            normals: if self.normals.is_empty() { &mut [] } else { &mut self.normals[from..to] },
            tangents: if self.tangents.is_empty() { &mut [] } else { &mut self.tangents[from..to] },
        }
    }

    /// Parts of so many vertices each.
    pub(super) fn chunks(self, size: usize) -> Vec<PartMut<'a>> {
        let mut normals = self.normals.chunks_mut(size);
        let mut tangents = self.tangents.chunks_mut(size);
        let part = |positions| PartMut {
            positions,
            normals: normals.next().unwrap_or_default(),
            tangents: tangents.next().unwrap_or_default(),
        };
        self.positions.chunks_mut(size).map(part).collect()
    }
}

/// The instructions that skinning uses on this machine.
#[multiversion(targets("x86_64+avx2+fma"))]
pub fn vector_unit() -> &'static str {
    if target_cfg_f!(target_feature = "avx2") { "avx2+fma" } else { "baseline" }
}

/// Whether a product and a sum in one instruction are part of the baseline.
const FUSED_BASELINE: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

#[multiversion(targets("x86_64+avx2+fma"))]
pub(super) fn linear_best(rows: Rows, palette: &[Lanes<4>], rest: Part, out: &mut PartMut) {
    if target_cfg_f!(target_feature = "fma") {
        linear::<true, true>(rows, palette, rest, out);
    } else {
        linear::<FUSED_BASELINE, false>(rows, palette, rest, out);
    }
}

pub(super) fn linear_baseline(rows: Rows, palette: &[Lanes<4>], rest: Part, out: &mut PartMut) {
    linear::<FUSED_BASELINE, false>(rows, palette, rest, out);
}

#[multiversion(targets("x86_64+avx2+fma"))]
pub(super) fn dual_best(rows: Rows, palette: &[Lanes<2>], rest: Part, out: &mut PartMut) {
    if target_cfg_f!(target_feature = "fma") {
        dual::<true>(rows, palette, rest, out);
    } else {
        dual::<FUSED_BASELINE>(rows, palette, rest, out);
    }
}

pub(super) fn dual_baseline(rows: Rows, palette: &[Lanes<2>], rest: Part, out: &mut PartMut) {
    dual::<FUSED_BASELINE>(rows, palette, rest, out);
}

#[inline(always)]
fn linear<const F: bool, const WIDE: bool>(rows: Rows, palette: &[Lanes<4>], rest: Part, out: &mut PartMut) {
    if rows.ends.is_empty() {
        linear_kernel::<F, true, WIDE>(rows, palette, rest, out);
    } else {
        linear_kernel::<F, false, WIDE>(rows, palette, rest, out);
    }
}

#[inline(always)]
fn dual<const F: bool>(rows: Rows, palette: &[Lanes<2>], rest: Part, out: &mut PartMut) {
    if rows.ends.is_empty() {
        dual_kernel::<F, true>(rows, palette, rest, out);
    } else {
        dual_kernel::<F, false>(rows, palette, rest, out);
    }
}

/// Linear blend of one part.
#[inline(always)]
fn linear_kernel<const F: bool, const ONE: bool, const WIDE: bool>(
    rows: Rows,
    palette: &[Lanes<4>],
    rest: Part,
    out: &mut PartMut,
) {
    if rest.normals.is_empty() && rest.tangents.is_empty() {
        return linear_points::<F, ONE, WIDE>(rows, palette, rest.positions, out.positions);
    }
    for start in (0..rest.positions.len()).step_by(BLOCK) {
        let end = (start + BLOCK).min(rest.positions.len());
        let (rows, rest, out) = (rows.range(start, end), rest.range(start, end), out.range(start, end));
        let mut matrices = [[[0.0; 4]; 4]; BLOCK];
        for (v, m) in matrices[..end - start].iter_mut().enumerate() {
            *m = blend::<F, 4>(rows.of::<ONE>(v), palette);
        }
        for ((m, p), o) in matrices.iter().zip(rest.positions).zip(out.positions) {
            let moved = move_point::<F>(m, p.to_array());
            *o = DVec3::new(moved[0], moved[1], moved[2]);
        }
        let columns = Columns::of(&matrices);
        if !rest.normals.is_empty() {
            let moved = columns.normals(&Directions::of(rest.normals.iter().copied()));
            for (v, o) in out.normals.iter_mut().enumerate() {
                *o = moved.get(v);
            }
        }
        if !rest.tangents.is_empty() {
            let moved = columns.tangents(&Directions::of(rest.tangents.iter().map(|t| t.truncate())));
            for (v, (o, t)) in out.tangents.iter_mut().zip(rest.tangents).enumerate() {
                *o = DVec4::from((moved.get(v), t.w));
            }
        }
    }
}

/// Dual quaternion blend of one part: quaternions of a block are blended one by one, then all points moved in step.
#[inline(always)]
fn dual_kernel<const F: bool, const ONE: bool>(rows: Rows, palette: &[Lanes<2>], rest: Part, out: &mut PartMut) {
    for start in (0..rest.positions.len()).step_by(BLOCK) {
        let end = (start + BLOCK).min(rest.positions.len());
        let (rows, rest, out) = (rows.range(start, end), rest.range(start, end), out.range(start, end));
        let mut motions = [[[0.0; 4]; 2]; BLOCK];
        for (v, m) in motions[..end - start].iter_mut().enumerate() {
            *m = blend_dual::<F>(rows.of::<ONE>(v), palette);
        }
        move_block::<F>(&motions, rest.positions, out.positions);
        for ((m, n), o) in motions.iter().zip(rest.normals).zip(out.normals) {
            *o = turn::<F>(m, *n);
        }
        for ((m, t), o) in motions.iter().zip(rest.tangents).zip(out.tangents) {
            *o = DVec4::from((turn::<F>(m, t.truncate()), t.w));
        }
    }
}

/// Moves the points of a block in step. A whole block has a length that the compiler knows, and so can use all lanes.
#[inline(always)]
fn move_block<const F: bool>(motions: &[Lanes<2>; BLOCK], points: &[DVec3], posed: &mut [DVec3]) {
    if points.len() == BLOCK
        && let (Some(points), Some(posed)) = (points.first_chunk::<BLOCK>(), posed.first_chunk_mut::<BLOCK>())
    {
        for ((m, p), o) in motions.iter().zip(points).zip(posed) {
            *o = move_rigidly::<F>(m, *p);
        }
    } else {
        for ((m, p), o) in motions.iter().zip(points).zip(posed) {
            *o = move_rigidly::<F>(m, *p);
        }
    }
}

/// Linear blend of points alone. With four lanes to a register (`WIDE`) the fourth lane, which no point needs, is kept alive
/// through a buffer, or the compiler falls back to two; with two lanes it is better gone at once.
#[inline(always)]
fn linear_points<const F: bool, const ONE: bool, const WIDE: bool>(
    rows: Rows,
    palette: &[Lanes<4>],
    points: &[DVec3],
    posed: &mut [DVec3],
) {
    let rows = rows.range(0, points.len());
    if !WIDE {
        for ((v, p), o) in points.iter().enumerate().zip(posed) {
            let m = move_point::<F>(&blend::<F, 4>(rows.of::<ONE>(v), palette), p.to_array());
            *o = DVec3::new(m[0], m[1], m[2]);
        }
        return;
    }
    for (block, (points, posed)) in points.chunks(BLOCK).zip(posed.chunks_mut(BLOCK)).enumerate() {
        let rows = rows.range(block * BLOCK, block * BLOCK + points.len());
        let mut moved = [[0.0; 4]; BLOCK];
        for ((v, p), m) in points.iter().enumerate().zip(&mut moved) {
            *m = move_point::<F>(&blend::<F, 4>(rows.of::<ONE>(v), palette), p.to_array());
        }
        for (o, m) in posed.iter_mut().zip(&moved) {
            *o = DVec3::new(m[0], m[1], m[2]);
        }
    }
}

#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    // Without the instruction `mul_add` is a call of some hundred.
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn first_term<const N: usize>(weight: f64, term: &Lanes<N>) -> Lanes<N> {
    let mut product = [[0.0; 4]; N];
    for (product, term) in product.iter_mut().zip(term) {
        for (p, x) in product.iter_mut().zip(term) {
            *p = weight * x;
        }
    }
    product
}

#[inline(always)]
fn add_term<const F: bool, const N: usize>(sum: &mut Lanes<N>, weight: f64, term: &Lanes<N>) {
    for (sum, term) in sum.iter_mut().zip(term) {
        for (s, x) in sum.iter_mut().zip(term) {
            *s = multiply_add::<F>(weight, *x, *s);
        }
    }
}

/// The weighted mean over all influences of a vertex.
#[inline(always)]
fn blend<const F: bool, const N: usize>(quads: &[Quad], palette: &[Lanes<N>]) -> Lanes<N> {
    let (first, more) = (&quads[0], &quads[1..]);
    let mut sum = first_term(first.weights[0], &palette[usize::from(first.joints[0])]);
    for i in 1..4 {
        add_term::<F, N>(&mut sum, first.weights[i], &palette[usize::from(first.joints[i])]);
    }
    for quad in more {
        for i in 0..4 {
            add_term::<F, N>(&mut sum, quad.weights[i], &palette[usize::from(quad.joints[i])]);
        }
    }
    sum
}

/// The same for dual quaternions, each taken on the side of the first.
#[inline(always)]
fn blend_dual<const F: bool>(quads: &[Quad], palette: &[Lanes<2>]) -> Lanes<2> {
    let (first, more) = (&quads[0], &quads[1..]);
    let pivot = &palette[usize::from(first.joints[0])];
    let term = |i: usize| &palette[usize::from(first.joints[i])];
    let (b, c, d) = (term(1), term(2), term(3));
    let dots = [dot(&pivot[0], &b[0]), dot(&pivot[0], &c[0]), dot(&pivot[0], &d[0])];
    let mut weights = [first.weights[1], first.weights[2], first.weights[3]];
    for (w, dot) in weights.iter_mut().zip(dots) {
        *w = if dot < 0.0 { -*w } else { *w };
    }
    let mut sum = first_term(first.weights[0], pivot);
    add_term::<F, 2>(&mut sum, weights[0], b);
    add_term::<F, 2>(&mut sum, weights[1], c);
    add_term::<F, 2>(&mut sum, weights[2], d);
    for quad in more {
        for i in 0..4 {
            let term = &palette[usize::from(quad.joints[i])];
            let w = quad.weights[i];
            add_term::<F, 2>(&mut sum, if dot(&pivot[0], &term[0]) < 0.0 { -w } else { w }, term);
        }
    }
    sum
}

#[inline(always)]
fn dot(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    let m = [a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]];
    (m[0] + m[2]) + (m[1] + m[3])
}

#[inline(always)]
fn move_point<const F: bool>(columns: &Lanes<4>, p: [f64; 3]) -> [f64; 4] {
    let mut moved = columns[3];
    for (column, x) in columns.iter().zip(p) {
        for (m, c) in moved.iter_mut().zip(column) {
            *m = multiply_add::<F>(*c, x, *m);
        }
    }
    moved
}

/// The motion of a dual quaternion of any length: p + 2 (r x (r x p + w p + d) + w d - d_w r) / |r|^2, with (r, w) and
/// (d, d_w) the vector and scalar of its parts. The length cannot be 0: all terms lie on the pivot's side.
#[inline(always)]
fn move_rigidly<const F: bool>(motion: &Lanes<2>, p: DVec3) -> DVec3 {
    let [[x, y, z, w], [a, b, c, d]] = *motion;
    let square = multiply_add::<F>(x, x, multiply_add::<F>(y, y, multiply_add::<F>(z, z, w * w)));
    let scale = 2.0 / square;
    let ux = multiply_add::<F>(y, p.z, multiply_add::<F>(-z, p.y, multiply_add::<F>(w, p.x, a)));
    let uy = multiply_add::<F>(z, p.x, multiply_add::<F>(-x, p.z, multiply_add::<F>(w, p.y, b)));
    let uz = multiply_add::<F>(x, p.y, multiply_add::<F>(-y, p.x, multiply_add::<F>(w, p.z, c)));
    let vx = multiply_add::<F>(y, uz, multiply_add::<F>(-z, uy, multiply_add::<F>(w, a, -d * x)));
    let vy = multiply_add::<F>(z, ux, multiply_add::<F>(-x, uz, multiply_add::<F>(w, b, -d * y)));
    let vz = multiply_add::<F>(x, uy, multiply_add::<F>(-y, ux, multiply_add::<F>(w, c, -d * z)));
    DVec3::new(multiply_add::<F>(scale, vx, p.x), multiply_add::<F>(scale, vy, p.y), multiply_add::<F>(scale, vz, p.z))
}

/// A direction turned by the motion, of unit length.
#[inline(always)]
fn turn<const F: bool>(motion: &Lanes<2>, direction: DVec3) -> DVec3 {
    move_rigidly::<F>(&[motion[0], [0.0; 4]], direction).normalize_or_zero()
}
