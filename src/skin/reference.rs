//! Skinning in f64 as its formulas read: the measure of every faster path.

use glam::{DAffine3, DMat3, DVec3, DVec4};

use crate::error::Result;
use crate::model::{Influence, Palette, Weights};
use crate::skin::dual_quaternion::DualQuat;
use crate::skin::split::SplitPalette;
use crate::skin::{COLLAPSED, Method, Posed, Surface, check, strongest, weight_sum};

/// One vertex: position, normal, tangent.
#[derive(Debug, Clone, Copy)]
struct Vertex {
    position: DVec3,
    normal: DVec3,
    tangent: DVec3,
}

/// Moves a surface into the pose of a palette.
///
/// # Errors
/// [`crate::Error::Length`] where weights, positions, normals, tangents or shares differ in number;
/// [`crate::Error::Influence`] for weights that cannot be; [`crate::Error::Parameter`] for a share outside 0 to 1;
/// [`crate::Error::Format`] for a matrix that is not finite.
pub fn skin(weights: &Weights, palette: &Palette, method: Method, surface: Surface) -> Result<Posed> {
    check(weights.len(), method, palette, surface)?;
    let split = SplitPalette::new(palette);
    let mut posed = Posed::like(surface);
    for (v, influences) in weights.iter().enumerate() {
        let total = weight_sum(v, influences, palette.len())?;
        let rest = Vertex {
            position: surface.positions[v],
            normal: surface.normals.map_or(DVec3::ZERO, |n| n[v]),
            tangent: surface.tangents.map_or(DVec3::ZERO, |t| t[v].truncate()),
        };
        let moved = match method {
            Method::Linear => linear(influences, total, &palette.matrices, rest),
            Method::DualQuaternion => dual(influences, total, &split, rest),
            Method::Mixed(shares) => mix(
                linear(influences, total, &palette.matrices, rest),
                dual(influences, total, &split, rest),
                shares[v],
            ),
        };
        posed.positions[v] = moved.position;
        if let Some(normals) = &mut posed.normals {
            normals[v] = moved.normal;
        }
        if let Some(tangents) = &mut posed.tangents {
            tangents[v] = DVec4::from((moved.tangent, tangents[v].w));
        }
    }
    Ok(posed)
}

/// `p' = sum w_i (M_i p)`, each weight divided by the sum of all; normals and tangents by the blended matrix.
fn linear(influences: &[Influence], total: f64, matrices: &[DAffine3], rest: Vertex) -> Vertex {
    let position = if total > 0.0 {
        influences.iter().map(|i| (i.weight / total) * matrices[i.joint as usize].transform_point3(rest.position)).sum()
    } else {
        rest.position
    };
    let blended = blend(influences, total, matrices).matrix3;
    Vertex { position, normal: move_normal(&blended, rest.normal), tangent: move_tangent(&blended, rest.tangent) }
}

/// The stretches are blended linearly in the bind pose, then the rigid motions as dual quaternions.
fn dual(influences: &[Influence], total: f64, palette: &SplitPalette, rest: Vertex) -> Vertex {
    let stretched = match &palette.stretch {
        Some(stretch) => linear(influences, total, stretch, rest),
        None => linear(&[], 0.0, &[], rest),
    };
    let motion = if total > 0.0 {
        let pivot = palette.rigid[influences[strongest(influences)].joint as usize];
        let terms = influences.iter().map(|i| (palette.rigid[i.joint as usize], i.weight / total));
        DualQuat::blend(&pivot, terms).unwrap_or(pivot)
    } else {
        DualQuat::IDENTITY
    };
    Vertex {
        position: motion.transform_point(stretched.position),
        normal: motion.rotate(stretched.normal),
        tangent: motion.rotate(stretched.tangent),
    }
}

/// Positions on the straight line between the two, normals and tangents brought to unit length after that.
fn mix(linear: Vertex, dual: Vertex, share: f64) -> Vertex {
    Vertex {
        position: linear.position.lerp(dual.position, share),
        normal: mix_directions(linear.normal, dual.normal, share),
        tangent: mix_directions(linear.tangent, dual.tangent, share),
    }
}

/// The direction between two; the second where they cancel out.
pub(super) fn mix_directions(a: DVec3, b: DVec3, share: f64) -> DVec3 {
    a.lerp(b, share).try_normalize().unwrap_or(b)
}

/// The weighted mean of matrices; the identity where nothing has weight.
fn blend(influences: &[Influence], total: f64, matrices: &[DAffine3]) -> DAffine3 {
    if total <= 0.0 {
        return DAffine3::IDENTITY;
    }
    let mut blended = DAffine3::ZERO;
    for i in influences {
        let (m, w) = (&matrices[i.joint as usize], i.weight / total);
        blended.matrix3 += m.matrix3 * w;
        blended.translation += m.translation * w;
    }
    blended
}

/// A normal by the inverse transpose, from the cross products of the columns, which need no division and are defined
/// for flat matrices too. They differ from it by the determinant, whose sign counts: a mirrored surface' normals point
/// outwards as before.
fn move_normal(m: &DMat3, n: DVec3) -> DVec3 {
    let (x, y, z) = (m.x_axis, m.y_axis, m.z_axis);
    let moved = y.cross(z) * n.x + z.cross(x) * n.y + x.cross(y) * n.z;
    let moved = if x.dot(y.cross(z)) < 0.0 { -moved } else { moved };
    let size = x.length_squared() + y.length_squared() + z.length_squared();
    unit_unless_collapsed(moved, size * n.length(), n)
}

/// A tangent moves as the surface does.
fn move_tangent(m: &DMat3, t: DVec3) -> DVec3 {
    let size = m.x_axis.length_squared() + m.y_axis.length_squared() + m.z_axis.length_squared();
    unit_unless_collapsed(*m * t, size.sqrt() * t.length(), t)
}

fn unit_unless_collapsed(moved: DVec3, most: f64, rest: DVec3) -> DVec3 {
    let length = moved.length();
    if length > COLLAPSED * most { moved / length } else { rest }
}
