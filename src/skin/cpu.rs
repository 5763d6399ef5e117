//! Skinning in f64 at the speed of the vector unit: the same formulas as the reference, four influences at a time, in
//! blocks of vertices, over all cores.

use glam::{DAffine3, DVec3, DVec4};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::model::{Palette, Weights};
use crate::skin::dual_quaternion::DualQuat;
use crate::skin::kernel::{Lanes, Part, PartMut, Quad, Rows, dual_baseline, dual_best, linear_baseline, linear_best};
use crate::skin::reference::mix_directions;
use crate::skin::split::SplitPalette;
use crate::skin::{Method, Posed, Surface, check, strongest, weight_sum};

/// Vertices a task: enough to hide what a task costs, few enough that its buffers stay in a core's own cache.
const CHUNK: usize = 2048;

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
        out.chunks(CHUNK).into_par_iter().enumerate().for_each(|(chunk, mut out)| {
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
