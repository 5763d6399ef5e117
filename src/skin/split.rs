//! A matrix as a stretch followed by a rigid motion, for dual quaternions can only blend the latter (two-phase skinning of
//! Kavan et al. 2008). The rotation is the one nearest to the matrix: by Newton's iteration for the polar decomposition
//! (Higham 1986) where the matrix keeps all three dimensions, which costs far less; else as Horn (1987) finds it, as
//! the largest eigenvector of a symmetric 4 x 4 matrix, which stays defined where the matrix flattens or mirrors.

use glam::{DAffine3, DMat3, DMat4, DQuat, DVec3, DVec4};

use crate::model::Palette;
use crate::skin::dual_quaternion::DualQuat;

/// A stretch that differs from none by less than this is rounding: what some hundred products of rotations gather.
const RIGID: f64 = 1e-13;

/// Squares of what stands off the diagonal of a matrix of size 1 that can no longer turn its eigenvectors.
const NEGLIGIBLE: f64 = 1e-40;

/// A matrix whose determinant is more than this share of what its length allows is far from flat: its rotation is the
/// polar factor, well conditioned.
const FULL: f64 = 1e-3;

/// Eigenvalues nearer to the largest than this share of it leave the rotation open: among the rotations they allow,
/// the smallest is taken.
const TIE: f64 = 1e-9;

/// A matrix M as `rigid * stretch`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Rotation and translation.
    pub rigid: DualQuat,
    /// Scale and shear, in the axes and about the centre of the bind pose. Symmetric; a mirroring matrix has its
    /// mirror here, along the axis of its least scale.
    pub stretch: DAffine3,
}

/// Splits a matrix; `center` is the point about which it scales.
///
/// * det > 0: the polar decomposition, so a rotation times a scale along perpendicular axes comes apart as it was made.
/// * det < 0: the rotation is still a proper one; the axis of least scale (of equals, the one that leaves the smallest
///   rotation) is mirrored by the stretch.
/// * det = 0: the rotation of what is left of the space; where that leaves it open, the smallest such rotation.
pub fn split(matrix: &DAffine3, center: DVec3) -> Split {
    let rotation = nearest_rotation(&matrix.matrix3);
    let stretch = DMat3::from_quat(rotation).transpose() * matrix.matrix3;
    if is_identity(&stretch) {
        return Split { rigid: DualQuat::new(rotation, matrix.translation), stretch: DAffine3::IDENTITY };
    }
    // p -> c + S (p - c), then R and whatever translation takes c to where the matrix takes it.
    let moved = matrix.transform_point3(center) - rotation * center;
    let stretch = DAffine3 { matrix3: stretch, translation: center - stretch * center };
    Split { rigid: DualQuat::new(rotation, moved), stretch }
}

fn is_identity(stretch: &DMat3) -> bool {
    (*stretch - DMat3::IDENTITY).to_cols_array().iter().all(|x| x.abs() <= RIGID)
}

/// The rotation R that maximises the trace of `R^T m`, which is the one nearest to m.
pub fn nearest_rotation(m: &DMat3) -> DQuat {
    let largest = m.to_cols_array().iter().fold(0.0, |max: f64, x| max.max(x.abs()));
    if !(largest > 0.0 && largest.is_finite()) {
        return DQuat::IDENTITY;
    }
    // Dividing by the largest entry keeps squares within range, whatever the unit of length.
    let [x, y, z] = [m.x_axis, m.y_axis, m.z_axis].map(|column| column / largest);
    let rotation = polar_rotation(DMat3::from_cols(x, y, z)).unwrap_or_else(|| largest_eigenvector(x, y, z));
    if rotation.w < 0.0 { -rotation } else { rotation }
}

/// The polar factor of a matrix with a positive determinant that is far from flat; `None` for others. Newton's iteration
/// `X <- (X + X^-T) / 2` doubles the digits each time; a rotation stays itself, so there two steps do.
fn polar_rotation(m: DMat3) -> Option<DQuat> {
    let mut x = m;
    // Quadratic from a start this good; what were not done after 12 would go the other way.
    for _step in 0..12 {
        let cofactors = DMat3::from_cols(x.y_axis.cross(x.z_axis), x.z_axis.cross(x.x_axis), x.x_axis.cross(x.y_axis));
        let determinant = x.x_axis.dot(cofactors.x_axis);
        let square = (x.x_axis.length_squared() + x.y_axis.length_squared() + x.z_axis.length_squared()) / 3.0;
        // Of all matrices of this length a scaled rotation has the largest determinant.
        if determinant.is_nan() || determinant <= FULL * square * square.sqrt() {
            return None;
        }
        // The balance of X and its inverse: far from a rotation it saves the steps in which Newton only halves.
        let inverse_square =
            (cofactors.x_axis.length_squared() + cofactors.y_axis.length_squared() + cofactors.z_axis.length_squared())
                / (3.0 * determinant * determinant);
        let balance = (inverse_square / square).sqrt().sqrt();
        let next = x * (0.5 * balance) + cofactors * (0.5 / (balance * determinant));
        let change = next - x;
        x = next;
        // The next step would change the square of this: less than rounding.
        if change.to_cols_array().iter().all(|d| d.abs() < 1e-8) {
            return Some(DQuat::from_mat3(&x).normalize());
        }
    }
    None
}

/// The rotation of a matrix of these columns, none of them larger than 1, by the eigenvectors of Horn's form.
fn largest_eigenvector(x: DVec3, y: DVec3, z: DVec3) -> DQuat {
    let (xy, xz, yz) = (x.y + y.x, x.z + z.x, y.z + z.y);
    let form = DMat4::from_cols(
        DVec4::new(x.x - y.y - z.z, xy, xz, y.z - z.y),
        DVec4::new(xy, y.y - x.x - z.z, yz, z.x - x.z),
        DVec4::new(xz, yz, z.z - x.x - y.y, x.y - y.x),
        DVec4::new(y.z - z.y, z.x - x.z, x.y - y.x, x.x + y.y + z.z),
    );
    let (values, vectors) = symmetric_eigen(form);
    let top = values.iter().fold(f64::MIN, |max, &v| max.max(v));
    let size = values.iter().fold(0.0, |max: f64, v| max.max(v.abs()));
    let open: Vec<DVec4> = (0..4).filter(|&i| values[i] >= top - TIE * size).map(|i| vectors[i]).collect();
    let mut quaternion = open[0];
    if open.len() > 1 {
        // The identity is (0, 0, 0, 1): its shadow in the open space is the smallest rotation there.
        let shadow: DVec4 = open.iter().map(|v| *v * v.w).sum();
        if shadow.length_squared() > TIE {
            quaternion = shadow;
        }
    }
    DQuat::from_vec4(quaternion.normalize())
}

/// Eigenvalues and unit eigenvectors of a symmetric matrix by cyclic Jacobi rotations.
fn symmetric_eigen(matrix: DMat4) -> ([f64; 4], [DVec4; 4]) {
    let mut a = matrix.to_cols_array_2d();
    let mut v = DMat4::IDENTITY.to_cols_array_2d();
    // Convergence is quadratic: 6 sweeps do in practice, the bound is for NaN.
    for _sweep in 0..16 {
        let off: f64 = (0..4).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j] * a[i][j]).sum();
        if off <= NEGLIGIBLE {
            break;
        }
        for p in 0..3 {
            for q in p + 1..4 {
                if a[p][q] != 0.0 {
                    turn(&mut a, &mut v, p, q);
                }
            }
        }
    }
    (std::array::from_fn(|i| a[i][i]), v.map(DVec4::from_array))
}

/// One Jacobi rotation: makes `a[p][q]` zero. Rows of `v` become the eigenvectors.
fn turn(a: &mut [[f64; 4]; 4], v: &mut [[f64; 4]; 4], p: usize, q: usize) {
    let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    // Beyond 1e154 the square is infinite and t becomes 0 where it is not 1e-155: neither is of any weight.
    let t = 1.0f64.copysign(theta) / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for row in a.iter_mut() {
        (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
    }
    for k in 0..4 {
        (a[p][k], a[q][k]) = (c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]);
        (v[p][k], v[q][k]) = (c * v[p][k] - s * v[q][k], s * v[p][k] + c * v[q][k]);
    }
    // What rounding leaves there would keep the sweeps going.
    (a[p][q], a[q][p]) = (0.0, 0.0);
}

/// A palette ready for dual quaternion skinning.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitPalette {
    /// The rigid part of each joint's matrix.
    pub rigid: Vec<DualQuat>,
    /// What each joint does to the bind pose before that; `None` where no joint scales, shears or mirrors.
    pub stretch: Option<Vec<DAffine3>>,
}

impl SplitPalette {
    /// Splits every matrix of a palette about its joint's centre.
    pub fn new(palette: &Palette) -> Self {
        let splits: Vec<Split> = palette.matrices.iter().zip(&palette.centers).map(|(m, &c)| split(m, c)).collect();
        let stretches = splits.iter().any(|s| s.stretch != DAffine3::IDENTITY);
        Self {
            rigid: splits.iter().map(|s| s.rigid).collect(),
            stretch: stretches.then(|| splits.iter().map(|s| s.stretch).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding of a handful of products of 3 x 3 matrices with entries of this size.
    const CLOSE: f64 = 64.0 * f64::EPSILON;

    fn rotation() -> DQuat {
        DQuat::from_axis_angle(DVec3::new(-1., 0.3, 2.).normalize(), 2.2)
    }

    /// The split's two parts, put together again.
    fn joined(s: &Split) -> DAffine3 {
        let columns = [DVec3::X, DVec3::Y, DVec3::Z].map(|axis| s.rigid.rotate(axis));
        let shift = s.rigid.transform_point(DVec3::ZERO);
        DAffine3 { matrix3: DMat3::from_cols(columns[0], columns[1], columns[2]), translation: shift } * s.stretch
    }

    fn check(matrix: DMat3) -> Split {
        let affine = DAffine3 { matrix3: matrix, translation: DVec3::new(1., 2., 3.) };
        let s = split(&affine, DVec3::new(0.5, -1., 2.));
        assert!(joined(&s).abs_diff_eq(affine, CLOSE * 16.0), "{matrix} {s:?}");
        let m = s.stretch.matrix3;
        assert!(m.abs_diff_eq(m.transpose(), CLOSE * 16.0), "the stretch is symmetric: {m}");
        assert!((s.rigid.real.length() - 1.0).abs() < CLOSE);
        s
    }

    #[test]
    fn a_rotation_has_no_stretch() {
        for angle in [0.0, 1e-9, 1.0, std::f64::consts::PI, 3.5] {
            let turn = DQuat::from_axis_angle(DVec3::new(1., 2., 2.) / 3.0, angle);
            let s = check(DMat3::from_quat(turn));
            assert_eq!(s.stretch, DAffine3::IDENTITY);
            assert!(s.rigid.real.dot(turn).abs() > 1.0 - CLOSE);
        }
        assert_ne!(check(DMat3::from_diagonal(DVec3::new(1., 1., 1.0 + 1e-12))).stretch, DAffine3::IDENTITY);
    }

    #[test]
    fn both_ways_to_the_rotation_agree() {
        let turn = DMat3::from_quat(rotation());
        let tilt = DMat3::from_quat(DQuat::from_axis_angle(DVec3::new(2., 1., -1.).normalize(), 0.9));
        let mut compared = 0;
        for scale in [DVec3::ONE, DVec3::new(1., 0.4, 0.9), DVec3::new(1., 0.03, 1.), DVec3::new(0.01, 0.01, 1.)] {
            let m = turn * tilt * DMat3::from_diagonal(scale) * tilt.transpose();
            let eigen = largest_eigenvector(m.x_axis, m.y_axis, m.z_axis);
            // Rounding turns the rotation by its share of the sum of the two least scales.
            let close = CLOSE / (scale.y + scale.x.min(scale.z));
            assert!(DMat3::from_quat(eigen).abs_diff_eq(turn, close), "{scale}");
            if let Some(polar) = polar_rotation(m) {
                assert!(DMat3::from_quat(polar).abs_diff_eq(turn, close), "{scale}");
                compared += 1;
            }
        }
        assert_eq!(compared, 3, "the last is too flat for Newton's iteration");
        assert_eq!(polar_rotation(DMat3::from_diagonal(DVec3::new(-1., 1., 1.))), None, "a mirror has no rotation");
        assert_eq!(polar_rotation(DMat3::from_diagonal(DVec3::splat(f64::NAN))), None);
        assert!(polar_rotation(tilt).is_some_and(|q| !DMat3::from_quat(q).abs_diff_eq(turn, CLOSE)));
    }

    #[test]
    fn scale_shear_mirror_and_flat_come_apart() {
        let turn = DMat3::from_quat(rotation());
        let scaled = check(turn * DMat3::from_diagonal(DVec3::new(2., 0.5, 1.)));
        assert!(scaled.rigid.real.dot(rotation()).abs() > 1.0 - CLOSE);
        assert!(scaled.stretch.matrix3.abs_diff_eq(DMat3::from_diagonal(DVec3::new(2., 0.5, 1.)), CLOSE));
        check(turn * DMat3::from_cols(DVec3::X, DVec3::new(0.7, 1., 0.), DVec3::Z));
        // A mirror alone needs no rotation; a point reflection is a half turn and a mirror.
        assert!(check(DMat3::from_diagonal(DVec3::splat(-1.))).rigid.real.w.abs() < CLOSE);
        for mirror in [DVec3::new(-1., 1., 1.), DVec3::new(1., 1., -1.), DVec3::new(1., -0.5, 2.)] {
            let s = check(DMat3::from_diagonal(mirror));
            assert!(s.stretch.matrix3.abs_diff_eq(DMat3::from_diagonal(mirror), CLOSE), "{s:?}");
        }
        check(turn * DMat3::from_diagonal(DVec3::new(-3., 1., 2.)));
        // Flat: what is left keeps its rotation; from a line or a point on, the smallest rotation.
        let flat = check(turn * DMat3::from_diagonal(DVec3::new(1., 0., 2.)));
        assert!(flat.rigid.real.dot(rotation()).abs() > 1.0 - CLOSE);
        let line = check(DMat3::from_cols(DVec3::Y * 2.0, DVec3::ZERO, DVec3::ZERO));
        assert!(line.rigid.real.dot(DQuat::from_rotation_arc(DVec3::X, DVec3::Y)) > 1.0 - CLOSE);
        assert_eq!(check(DMat3::ZERO).rigid.real, DQuat::IDENTITY);
        check(turn * 1e-200);
    }
}
