//! Skinning in f64 at the speed of the vector unit: the same formulas as the reference, four influences at a time, in
//! blocks of vertices, over all cores.

use glam::{DAffine3, DMat3, DVec3, DVec4};
use multiversion::multiversion;
use multiversion::target::target_cfg_f;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::model::{Palette, Weights};
use crate::skin::dual_quaternion::DualQuat;
use crate::skin::reference::{mix_directions, move_normal, move_tangent};
use crate::skin::split::SplitPalette;
use crate::skin::{Method, Posed, Surface, check, strongest, weight_sum};

/// Vertices that go through the two halves of a kernel together: what passes between them stays in the nearest cache.
const BLOCK: usize = 16;

/// Vertices a task: enough to hide what a task costs, few enough that its buffers stay in a core's own cache.
const CHUNK: usize = 2048;

/// Four influences of a vertex. Unused slots have weight 0 and the joint of the first.
#[derive(Debug, Clone, Copy)]
struct Quad {
    weights: [f64; 4],
    joints: [u16; 4],
}

/// Four columns (x, y, z, translation), or two halves of a dual quaternion, four lanes each.
type Lanes<const N: usize> = [[f64; 4]; N];

/// Skin weights laid out for skinning: made once, applied to any number of poses. 40 bytes for every four influences.
#[derive(Debug, Clone)]
pub struct SkinInput {
    quads: Vec<Quad>,
    /// Where each vertex' quads end; empty where each has exactly one.
    ends: Vec<usize>,
    vertices: usize,
    joints: usize,
    portable: bool,
}

/// A stretch of a surface; empty slices for what it does not have.
#[derive(Clone, Copy)]
struct Part<'a> {
    positions: &'a [DVec3],
    normals: &'a [DVec3],
    tangents: &'a [DVec4],
}

/// Where the posed vertices of a part go.
struct PartMut<'a> {
    positions: &'a mut [DVec3],
    normals: &'a mut [DVec3],
    tangents: &'a mut [DVec4],
}

/// The weights of a part: `ends` as in [`SkinInput`], with the end of the vertex before in front.
#[derive(Clone, Copy)]
struct Rows<'a> {
    quads: &'a [Quad],
    ends: &'a [usize],
}

/// A palette as the kernels read it; behind the joints stands one that moves nothing.
struct Prepared {
    matrices: Vec<Lanes<4>>,
    rigid: Vec<Lanes<2>>,
    stretch: Vec<Lanes<4>>,
}

impl SkinInput {
    /// Prepares the weights of a mesh for a skeleton of so many joints. Each vertex' weights are divided by their sum;
    /// a vertex without weights is one that nothing moves.
    ///
    /// # Errors
    /// [`Error::Influence`] for a joint that is not there and for weights that are negative or not finite;
    /// [`Error::Limit`] above 65,535 joints.
    pub fn new(weights: &Weights, joints: usize) -> Result<Self> {
        if joints > usize::from(u16::MAX) {
            return Err(Error::Limit {
                what: "joints".into(),
                needed: joints.to_string(),
                limit: u16::MAX.to_string(),
                advice: "joints are 16-bit numbers in files".into(),
            });
        }
        let one_each = weights.most_influences() <= 4;
        let mut quads = Vec::with_capacity(weights.len());
        let mut ends = Vec::with_capacity(if one_each { 0 } else { weights.len() + 1 });
        if !one_each {
            ends.push(0);
        }
        let mut slots: Vec<(f64, u16)> = Vec::new();
        for (vertex, influences) in weights.iter().enumerate() {
            let total = weight_sum(vertex, influences, joints)?;
            slots.clear();
            slots.extend(influences.iter().map(|i| (i.weight / total, i.joint as u16)));
            if total > 0.0 {
                // The pivot of the dual quaternions stands first.
                slots.swap(0, strongest(influences));
                slots.retain(|s| s.0 > 0.0);
            } else {
                slots.clear();
                slots.push((1.0, joints as u16));
            }
            for four in slots.chunks(4) {
                let slot = |i: usize| four.get(i).copied().unwrap_or((0.0, slots[0].1));
                let [a, b, c, d] = std::array::from_fn(slot);
                quads.push(Quad { weights: [a.0, b.0, c.0, d.0], joints: [a.1, b.1, c.1, d.1] });
            }
            if !one_each {
                ends.push(quads.len());
            }
        }
        Ok(Self { quads, ends, vertices: weights.len(), joints, portable: false })
    }

    /// The same, but using only instructions that every machine of this architecture has. Slower where there are
    /// better ones; the results are then the same to the bit on all of them.
    pub fn portable(mut self) -> Self {
        self.portable = true;
        self
    }

    /// How many vertices there are.
    pub fn len(&self) -> usize {
        self.vertices
    }

    /// Whether there are no vertices.
    pub fn is_empty(&self) -> bool {
        self.vertices == 0
    }

    /// How many joints a palette must have.
    pub fn joints(&self) -> usize {
        self.joints
    }

    /// Moves a surface into the pose of a palette. `posed` is brought to the surface's size where it is not; made once
    /// with [`Posed::like`], it serves any number of poses without new memory.
    ///
    /// # Errors
    /// [`Error::Length`] where weights, positions, normals, tangents or shares differ in number; [`Error::Joints`]
    /// where the palette has not one matrix a joint; [`Error::Parameter`] for a share outside 0 to 1;
    /// [`Error::Format`] for a matrix that is not finite.
    pub fn skin(&self, palette: &Palette, method: Method, surface: Surface, posed: &mut Posed) -> Result<()> {
        if palette.len() != self.joints {
            return Err(Error::Joints { what: "the palette", found: palette.len(), expected: self.joints });
        }
        check(self.vertices, method, palette, surface)?;
        let prepared = Prepared::new(palette, method);
        posed.positions.resize(self.vertices, DVec3::ZERO);
        fit(&mut posed.normals, surface.normals.map(<[_]>::len));
        fit(&mut posed.tangents, surface.tangents.map(<[_]>::len));
        let rest = Part {
            positions: surface.positions,
            normals: surface.normals.unwrap_or(&[]),
            tangents: surface.tangents.unwrap_or(&[]),
        };
        let out = PartMut {
            positions: &mut posed.positions,
            normals: posed.normals.as_deref_mut().unwrap_or(&mut []),
            tangents: posed.tangents.as_deref_mut().unwrap_or(&mut []),
        };
        out.chunks().into_par_iter().enumerate().for_each(|(chunk, mut out)| {
            let (from, to) = (chunk * CHUNK, chunk * CHUNK + out.positions.len());
            self.skin_part(&prepared, method, from, rest.range(from, to), &mut out);
        });
        Ok(())
    }

    /// The vertices from `from` on, as many as `rest` holds.
    fn skin_part(&self, palette: &Prepared, method: Method, from: usize, rest: Part, out: &mut PartMut) {
        let rows = self.rows(from, from + rest.positions.len());
        match method {
            Method::Linear => self.linear(rows, &palette.matrices, rest, out),
            Method::DualQuaternion => self.dual(rows, palette, rest, out),
            Method::Mixed(shares) => {
                self.linear(rows, &palette.matrices, rest, out);
                let mut posed = Buffers::like(rest);
                self.dual(rows, palette, rest, &mut posed.part_mut());
                mix(out, posed.part(), &shares[from..]);
            }
        }
    }

    fn linear(&self, rows: Rows, matrices: &[Lanes<4>], rest: Part, out: &mut PartMut) {
        if self.portable { linear_baseline(rows, matrices, rest, out) } else { linear_best(rows, matrices, rest, out) }
    }

    fn dual(&self, rows: Rows, palette: &Prepared, rest: Part, out: &mut PartMut) {
        let run = if self.portable { dual_baseline } else { dual_best };
        if palette.stretch.is_empty() {
            return run(rows, &palette.rigid, rest, out);
        }
        let mut stretched = Buffers::like(rest);
        self.linear(rows, &palette.stretch, rest, &mut stretched.part_mut());
        run(rows, &palette.rigid, stretched.part(), out);
    }

    fn rows(&self, from: usize, to: usize) -> Rows<'_> {
        if self.ends.is_empty() {
            return Rows { quads: &self.quads[from..to], ends: &[] };
        }
        Rows { quads: &self.quads, ends: &self.ends[from..=to] }
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
fn linear_best(rows: Rows, palette: &[Lanes<4>], rest: Part, out: &mut PartMut) {
    if target_cfg_f!(target_feature = "fma") {
        linear_kernel::<true, BLOCK>(rows, palette, rest, out);
    } else {
        linear_kernel::<FUSED_BASELINE, 1>(rows, palette, rest, out);
    }
}

fn linear_baseline(rows: Rows, palette: &[Lanes<4>], rest: Part, out: &mut PartMut) {
    linear_kernel::<FUSED_BASELINE, 1>(rows, palette, rest, out);
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn dual_best(rows: Rows, palette: &[Lanes<2>], rest: Part, out: &mut PartMut) {
    if target_cfg_f!(target_feature = "fma") {
        dual_kernel::<true>(rows, palette, rest, out);
    } else {
        dual_kernel::<FUSED_BASELINE>(rows, palette, rest, out);
    }
}

fn dual_baseline(rows: Rows, palette: &[Lanes<2>], rest: Part, out: &mut PartMut) {
    dual_kernel::<FUSED_BASELINE>(rows, palette, rest, out);
}

/// Linear blend of one part. `N` is the block for points alone: with four lanes to a register the fourth lane must be
/// kept alive through a buffer, or the compiler falls back to two; with two lanes it is better gone at once.
#[inline(always)]
fn linear_kernel<const F: bool, const N: usize>(rows: Rows, palette: &[Lanes<4>], rest: Part, out: &mut PartMut) {
    if rest.normals.is_empty() && rest.tangents.is_empty() {
        for_each_row::<N>(rows, rest.positions, out.positions, |rows, points, posed| {
            let mut moved = [[0.0; 4]; N];
            for ((v, p), m) in points.iter().enumerate().zip(&mut moved) {
                *m = move_point::<F>(&blend::<F, 4>(rows.of(v), palette), p.to_array());
            }
            for (o, m) in posed.iter_mut().zip(&moved) {
                *o = DVec3::new(m[0], m[1], m[2]);
            }
        });
        return;
    }
    for start in (0..rest.positions.len()).step_by(BLOCK) {
        let end = (start + BLOCK).min(rest.positions.len());
        let (rows, rest, out) = (rows.range(start, end), rest.range(start, end), out.range(start, end));
        let mut matrices = [[[0.0; 4]; 4]; BLOCK];
        for (v, m) in matrices[..end - start].iter_mut().enumerate() {
            *m = blend::<F, 4>(rows.of(v), palette);
        }
        for ((m, p), o) in matrices.iter().zip(rest.positions).zip(out.positions) {
            let moved = move_point::<F>(m, p.to_array());
            *o = DVec3::new(moved[0], moved[1], moved[2]);
        }
        for ((m, n), o) in matrices.iter().zip(rest.normals).zip(out.normals) {
            *o = move_normal(&matrix3(m), *n);
        }
        for ((m, t), o) in matrices.iter().zip(rest.tangents).zip(out.tangents) {
            *o = DVec4::from((move_tangent(&matrix3(m), t.truncate()), t.w));
        }
    }
}

/// Dual quaternion blend of one part: quaternions of a block are blended one by one, then all points moved in step.
#[inline(always)]
fn dual_kernel<const F: bool>(rows: Rows, palette: &[Lanes<2>], rest: Part, out: &mut PartMut) {
    for start in (0..rest.positions.len()).step_by(BLOCK) {
        let end = (start + BLOCK).min(rest.positions.len());
        let (rows, rest, out) = (rows.range(start, end), rest.range(start, end), out.range(start, end));
        let mut motions = [[[0.0; 4]; 2]; BLOCK];
        for (v, m) in motions[..end - start].iter_mut().enumerate() {
            *m = blend_dual::<F>(rows.of(v), palette);
        }
        for ((m, p), o) in motions.iter().zip(rest.positions).zip(out.positions) {
            *o = move_rigidly::<F>(m, *p);
        }
        for ((m, n), o) in motions.iter().zip(rest.normals).zip(out.normals) {
            *o = turn::<F>(m, *n);
        }
        for ((m, t), o) in motions.iter().zip(rest.tangents).zip(out.tangents) {
            *o = DVec4::from((turn::<F>(m, t.truncate()), t.w));
        }
    }
}

/// Calls `run` with blocks of N vertices and then with what is left, one by one.
#[inline(always)]
fn for_each_row<const N: usize>(
    rows: Rows,
    points: &[DVec3],
    posed: &mut [DVec3],
    run: impl Fn(Rows, &[DVec3], &mut [DVec3]),
) {
    for start in (0..points.len()).step_by(N) {
        let end = (start + N).min(points.len());
        run(rows.range(start, end), &points[start..end], &mut posed[start..end]);
    }
}

#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    // Without the instruction `mul_add` is a call of some hundred.
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn first_term<const N: usize>(weight: f64, term: &Lanes<N>) -> Lanes<N> {
    term.map(|lanes| lanes.map(|x| weight * x))
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
    let [b, c, d] = [1, 2, 3].map(|i| &palette[usize::from(first.joints[i])]);
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

fn matrix3(columns: &Lanes<4>) -> DMat3 {
    let [x, y, z] = [columns[0], columns[1], columns[2]].map(|c| DVec3::new(c[0], c[1], c[2]));
    DMat3::from_cols(x, y, z)
}

/// The mix of two posed parts, written over the first.
fn mix(linear: &mut PartMut, dual: Part, shares: &[f64]) {
    for ((a, &b), &share) in linear.positions.iter_mut().zip(dual.positions).zip(shares) {
        *a = a.lerp(b, share);
    }
    for ((a, &b), &share) in linear.normals.iter_mut().zip(dual.normals).zip(shares) {
        *a = mix_directions(*a, b, share);
    }
    for ((a, &b), &share) in linear.tangents.iter_mut().zip(dual.tangents).zip(shares) {
        *a = DVec4::from((mix_directions(a.truncate(), b.truncate(), share), b.w));
    }
}

impl Prepared {
    fn new(palette: &Palette, method: Method) -> Self {
        let mut prepared = Self { matrices: Vec::new(), rigid: Vec::new(), stretch: Vec::new() };
        if method != Method::DualQuaternion {
            prepared.matrices = with_identity(&palette.matrices);
        }
        if method != Method::Linear {
            let split = SplitPalette::new(palette);
            let lanes = |m: &DualQuat| [m.real.to_array(), m.dual.to_array()];
            prepared.rigid = split.rigid.iter().chain([&DualQuat::IDENTITY]).map(lanes).collect();
            prepared.stretch = split.stretch.as_deref().map(with_identity).unwrap_or_default();
        }
        prepared
    }
}

/// Matrices as padded columns, and the identity behind them.
fn with_identity(matrices: &[DAffine3]) -> Vec<Lanes<4>> {
    let lanes = |m: &DAffine3| {
        [m.matrix3.x_axis, m.matrix3.y_axis, m.matrix3.z_axis, m.translation].map(|c| [c.x, c.y, c.z, 0.0])
    };
    matrices.iter().chain([&DAffine3::IDENTITY]).map(lanes).collect()
}

impl<'a> Rows<'a> {
    /// The quads of a vertex: at least one.
    #[inline(always)]
    fn of(&self, vertex: usize) -> &'a [Quad] {
        if self.ends.is_empty() {
            std::slice::from_ref(&self.quads[vertex])
        } else {
            &self.quads[self.ends[vertex]..self.ends[vertex + 1]]
        }
    }

    #[inline(always)]
    fn range(&self, from: usize, to: usize) -> Self {
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
    fn range(&self, from: usize, to: usize) -> Self {
        Self {
            positions: &self.positions[from..to],
            normals: sub(self.normals, from, to),
            tangents: sub(self.tangents, from, to),
        }
    }
}

impl<'a> PartMut<'a> {
    #[inline(always)]
    fn range(&mut self, from: usize, to: usize) -> PartMut<'_> {
        PartMut {
            positions: &mut self.positions[from..to],
            normals: if self.normals.is_empty() { &mut [] } else { &mut self.normals[from..to] },
            tangents: if self.tangents.is_empty() { &mut [] } else { &mut self.tangents[from..to] },
        }
    }

    /// Tasks for the cores.
    fn chunks(self) -> Vec<PartMut<'a>> {
        let mut normals = self.normals.chunks_mut(CHUNK);
        let mut tangents = self.tangents.chunks_mut(CHUNK);
        let part = |positions| PartMut {
            positions,
            normals: normals.next().unwrap_or_default(),
            tangents: tangents.next().unwrap_or_default(),
        };
        self.positions.chunks_mut(CHUNK).map(part).collect()
    }
}

/// Room for a part between two steps.
struct Buffers {
    positions: Vec<DVec3>,
    normals: Vec<DVec3>,
    tangents: Vec<DVec4>,
}

impl Buffers {
    fn like(part: Part) -> Self {
        Self {
            positions: vec![DVec3::ZERO; part.positions.len()],
            normals: vec![DVec3::ZERO; part.normals.len()],
            tangents: vec![DVec4::ZERO; part.tangents.len()],
        }
    }

    fn part(&self) -> Part<'_> {
        Part { positions: &self.positions, normals: &self.normals, tangents: &self.tangents }
    }

    fn part_mut(&mut self) -> PartMut<'_> {
        PartMut { positions: &mut self.positions, normals: &mut self.normals, tangents: &mut self.tangents }
    }
}

/// Brings an output to the length of its input: not there where there is none.
fn fit<T: Default + Clone>(output: &mut Option<Vec<T>>, length: Option<usize>) {
    match length {
        Some(length) => output.get_or_insert_default().resize(length, T::default()),
        None => *output = None,
    }
}
