//! Points, normals and tangents of a mesh moved by the matrices of its joints: linear blend skinning, dual quaternion
//! skinning (Kavan, Collins, Zara, O'Sullivan 2007 and 2008) and a mix of the two per vertex.

mod cpu;
mod directions;
pub mod dual_quaternion;
#[cfg(feature = "gpu")]
pub mod gpu;
mod kernel;
pub mod reference;
pub mod split;

use glam::{DVec3, DVec4};

use crate::error::{Error, Result};
use crate::model::{Influence, Palette};

pub use cpu::SkinInput;
pub use kernel::vector_unit;

/// How the joints' motions are blended.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Method<'a> {
    /// The weighted mean of the moved points. Fast, works with any matrices; twisted limbs get thinner.
    #[default]
    Linear,
    /// The weighted mean of the motions. Keeps volume under twist; bent joints bulge a little.
    DualQuaternion,
    /// Both, mixed per vertex: 0 is linear, 1 is dual quaternion. One share a vertex.
    Mixed(&'a [f64]),
}

/// A surface in its bind pose: what skinning moves. Normals and tangents may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Surface<'a> {
    pub positions: &'a [DVec3],
    pub normals: Option<&'a [DVec3]>,
    /// Direction in xyz, handedness in w.
    pub tangents: Option<&'a [DVec4]>,
}

impl<'a> Surface<'a> {
    /// Positions alone.
    pub fn points(positions: &'a [DVec3]) -> Self {
        Self { positions, normals: None, tangents: None }
    }
}

/// A surface moved into a pose. Normals and tangents are there where the surface had them; they are of unit length
/// (a vector of length 0 stays as it is), and the tangents' w is passed through.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Posed {
    pub positions: Vec<DVec3>,
    pub normals: Option<Vec<DVec3>>,
    pub tangents: Option<Vec<DVec4>>,
}

impl Posed {
    /// Room for a posed surface; made once, it serves any number of poses.
    pub fn like(surface: Surface) -> Self {
        Self {
            positions: surface.positions.to_vec(),
            normals: surface.normals.map(<[_]>::to_vec),
            tangents: surface.tangents.map(<[_]>::to_vec),
        }
    }
}

/// Below this share of what its matrix could make of it, a normal or tangent is rounding error: the surface has
/// collapsed there, and the vector of the bind pose stays.
const COLLAPSED: f64 = 1e-12;

/// Checks all that both the reference and the fast path rely on.
fn check(vertices: usize, method: Method, palette: &Palette, surface: Surface) -> Result<()> {
    let lengths = [
        ("positions", surface.positions.len()),
        ("normals", surface.normals.map_or(vertices, <[_]>::len)),
        ("tangents", surface.tangents.map_or(vertices, <[_]>::len)),
        ("shares of dual quaternion", if let Method::Mixed(shares) = method { shares.len() } else { vertices }),
    ];
    for (what, found) in lengths {
        if found != vertices {
            return Err(Error::Length { what, found, expected: vertices });
        }
    }
    if palette.centers.len() != palette.matrices.len() {
        let (found, expected) = (palette.centers.len(), palette.matrices.len());
        return Err(Error::Joints { what: "centres of the palette", found, expected });
    }
    let finite = |joint: &usize| palette.matrices[*joint].is_finite() && palette.centers[*joint].is_finite();
    if let Some(joint) = (0..palette.len()).find(|joint| !finite(joint)) {
        return Err(Error::format(format!("joint {joint} (0-based)"), "its matrix is not finite"));
    }
    if let Method::Mixed(shares) = method
        && let Some(vertex) = shares.iter().position(|share| !(0.0..=1.0).contains(share))
    {
        let value = format!("{} at vertex {vertex} (0-based)", shares[vertex]);
        return Err(Error::Parameter { name: "share of dual quaternion", value, allowed: "it must be from 0 to 1" });
    }
    Ok(())
}

/// The sum of a vertex' weights, correct to one rounding whatever their number (Neumaier 1974): with it a vertex of n
/// influences keeps within (n + 3) roundings of its place under identity matrices. 0 means that nothing moves it.
///
/// # Errors
/// [`Error::Influence`] for a joint that is not among `joints`, and for weights that are negative or not finite.
fn weight_sum(vertex: usize, influences: &[Influence], joints: usize) -> Result<f64> {
    let (mut sum, mut lost) = (0.0, 0.0);
    for &Influence { joint, weight } in influences {
        if joint as usize >= joints {
            return Err(Error::Influence { vertex, joint, what: format!("there are {joints} joints") });
        }
        if !(weight >= 0.0 && weight.is_finite()) {
            return Err(Error::Influence { vertex, joint, what: format!("its weight is {weight}") });
        }
        let next: f64 = sum + weight;
        lost += if sum >= weight { (sum - next) + weight } else { (weight - next) + sum };
        sum = next;
    }
    let total: f64 = sum + lost;
    if total.is_finite() {
        return Ok(total);
    }
    Err(Error::Influence { vertex, joint: influences[0].joint, what: "the weights add up to infinity".into() })
}

/// The influence with the largest weight, the first of equals: the one whose side of the quaternions counts.
fn strongest(influences: &[Influence]) -> usize {
    let mut best = 0;
    for (i, influence) in influences.iter().enumerate() {
        if influence.weight > influences[best].weight {
            best = i;
        }
    }
    best
}
