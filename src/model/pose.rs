//! Poses: a transform for each joint, and the palette of matrices that moves the vertices with them.

use glam::{DAffine3, DMat3, DQuat, DVec3};

use crate::error::{Error, Result};
use crate::model::Skeleton;

/// How far from perpendicular (as a cosine) the columns of a matrix may be before it counts as sheared: matrices from
/// files are 32-bit numbers, whose rounding (6e-8) a few products enlarge.
const PERPENDICULAR: f64 = 1e-5;

/// A joint's place in its parent: scale first, then rotation, then translation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transform {
    pub translation: DVec3,
    /// Of unit length.
    pub rotation: DQuat,
    pub scale: DVec3,
}

impl Default for Transform {
    fn default() -> Self {
        Self::IDENTITY
    }
}

impl Transform {
    /// Moves nothing.
    pub const IDENTITY: Self = Self { translation: DVec3::ZERO, rotation: DQuat::IDENTITY, scale: DVec3::ONE };

    /// A shift without rotation or scale.
    pub fn from_translation(translation: DVec3) -> Self {
        Self { translation, ..Self::IDENTITY }
    }

    /// A rotation about the origin.
    pub fn from_rotation(rotation: DQuat) -> Self {
        Self { rotation, ..Self::IDENTITY }
    }

    /// The matrix of this transform.
    pub fn to_affine(&self) -> DAffine3 {
        let turn = DMat3::from_quat(self.rotation);
        DAffine3 {
            matrix3: DMat3::from_cols(
                turn.x_axis * self.scale.x,
                turn.y_axis * self.scale.y,
                turn.z_axis * self.scale.z,
            ),
            translation: self.translation,
        }
    }

    /// The transform of a matrix; `None` where the matrix shears (its columns are not perpendicular), which no
    /// translation, rotation and scale can express, or is not finite.
    ///
    /// A mirroring matrix gets a negative scale along x. Axes that are scaled to nothing keep scale 0; the rotation is
    /// then the one that the other axes leave open, completed to a right-handed frame.
    pub fn from_affine(matrix: &DAffine3) -> Option<Self> {
        if !matrix.is_finite() {
            return None;
        }
        let mut columns = [matrix.matrix3.x_axis, matrix.matrix3.y_axis, matrix.matrix3.z_axis];
        let mut scale = DVec3::from_array(columns.map(DVec3::length));
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            if columns[a].dot(columns[b]).abs() > PERPENDICULAR * scale[a] * scale[b] {
                return None;
            }
        }
        if matrix.matrix3.determinant() < 0.0 {
            scale.x = -scale.x;
        }
        for (column, s) in columns.iter_mut().zip(scale.to_array()) {
            *column = if s == 0.0 { DVec3::ZERO } else { *column / s };
        }
        let rotation = DQuat::from_mat3(&complete_frame(columns)).normalize();
        Some(Self { translation: matrix.translation, rotation, scale })
    }
}

/// A right-handed orthonormal frame whose columns are the given unit vectors; zero ones are filled in.
fn complete_frame(columns: [DVec3; 3]) -> DMat3 {
    let known: Vec<usize> = (0..3).filter(|&i| columns[i] != DVec3::ZERO).collect();
    let mut frame = columns;
    match known[..] {
        [] => return DMat3::IDENTITY,
        [i] => {
            let (b, c) = columns[i].any_orthonormal_pair();
            frame[(i + 1) % 3] = b;
            frame[(i + 2) % 3] = columns[i].cross(b);
            debug_assert!(frame[(i + 2) % 3].dot(c).abs() > 0.5);
        }
        [i, j] => {
            let missing = 3 - i - j;
            frame[missing] = frame[(missing + 1) % 3].cross(frame[(missing + 2) % 3]);
        }
        _ => {}
    }
    DMat3::from_cols(frame[0], frame[1], frame[2])
}

/// What moves the vertices of a mesh into a pose.
#[derive(Debug, Clone, PartialEq)]
pub struct Palette {
    /// One matrix a joint, from the bind pose straight to the pose: global transform times inverse bind matrix.
    pub matrices: Vec<DAffine3>,
    /// Where each joint stands in the bind pose: the point that dual quaternion skinning scales about.
    pub centers: Vec<DVec3>,
}

impl Palette {
    /// A palette of bare matrices, with the origin as every joint's centre of scale (which matters only where
    /// matrices scale or shear and dual quaternions blend them).
    pub fn new(matrices: Vec<DAffine3>) -> Self {
        Self { centers: vec![DVec3::ZERO; matrices.len()], matrices }
    }

    /// How many joints there are.
    pub fn len(&self) -> usize {
        self.matrices.len()
    }

    /// Whether there are no joints.
    pub fn is_empty(&self) -> bool {
        self.matrices.is_empty()
    }
}

/// One local transform a joint: the bones of a skeleton in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Pose {
    pub locals: Vec<Transform>,
}

impl Pose {
    /// The rest pose of a skeleton whose bones give heads only: translations, every joint's axes those of the world.
    pub fn rest(skeleton: &Skeleton) -> Self {
        let bones = skeleton.bones();
        let local = |bone: &crate::model::Bone| bone.head - bone.parent.map_or(DVec3::ZERO, |p| bones[p].head);
        Self { locals: bones.iter().map(|bone| Transform::from_translation(local(bone))).collect() }
    }

    /// The pose in which joints have these matrices in world space.
    ///
    /// # Errors
    /// [`Error::Joints`] where there is not one matrix a joint; [`Error::Format`], naming the bone, where a matrix
    /// relative to the parent's shears, or where a parent's matrix has no inverse.
    pub fn from_globals(skeleton: &Skeleton, globals: &[DAffine3]) -> Result<Self> {
        check_joints("global matrices", globals.len(), skeleton)?;
        let mut locals = Vec::with_capacity(globals.len());
        for (bone, global) in skeleton.bones().iter().zip(globals) {
            let fault = |what: &str| Error::format(format!("bone \"{}\"", bone.name), what);
            let local = match bone.parent {
                None => *global,
                Some(parent) => {
                    let up = inverse(&globals[parent]).ok_or_else(|| fault("its parent's matrix has no inverse"))?;
                    up * *global
                }
            };
            locals.push(Transform::from_affine(&local).ok_or_else(|| fault("its matrix shears or is not finite"))?);
        }
        Ok(Self { locals })
    }

    /// The matrices of the joints in world space.
    ///
    /// # Errors
    /// [`Error::Joints`] where the pose has not one transform a joint.
    pub fn globals(&self, skeleton: &Skeleton) -> Result<Vec<DAffine3>> {
        check_joints("the pose's transforms", self.locals.len(), skeleton)?;
        let mut globals = vec![DAffine3::IDENTITY; self.locals.len()];
        for joint in skeleton.parents_first() {
            let local = self.locals[joint].to_affine();
            globals[joint] = match skeleton.bones()[joint].parent {
                Some(parent) => globals[parent] * local,
                None => local,
            };
        }
        Ok(globals)
    }

    /// The inverse bind matrices of a skeleton whose bind pose is this one.
    ///
    /// # Errors
    /// As [`Pose::globals`], and [`Error::Format`] naming a bone whose matrix has no inverse.
    pub fn inverse_bind(&self, skeleton: &Skeleton) -> Result<Vec<DAffine3>> {
        let named = self.globals(skeleton)?.into_iter().zip(skeleton.bones());
        named
            .map(|(global, bone)| {
                inverse(&global).ok_or_else(|| {
                    Error::format(format!("bone \"{}\"", bone.name), "its bind matrix has no inverse (zero scale?)")
                })
            })
            .collect()
    }

    /// The palette that moves a mesh bound with these inverse bind matrices into this pose.
    ///
    /// # Errors
    /// [`Error::Joints`] where pose or inverse bind matrices have not one entry a joint.
    pub fn palette(&self, skeleton: &Skeleton, inverse_bind: &[DAffine3]) -> Result<Palette> {
        check_joints("inverse bind matrices", inverse_bind.len(), skeleton)?;
        let globals = self.globals(skeleton)?;
        let matrices = globals.iter().zip(inverse_bind).map(|(global, inverse)| *global * *inverse).collect();
        // A matrix that cannot be turned round has no joint position; the origin serves, as in `Palette::new`.
        let center = |m: &DAffine3| inverse(m).map_or(DVec3::ZERO, |bind| bind.translation);
        Ok(Palette { matrices, centers: inverse_bind.iter().map(center).collect() })
    }
}

fn check_joints(what: &'static str, found: usize, skeleton: &Skeleton) -> Result<()> {
    if found == skeleton.len() {
        return Ok(());
    }
    Err(Error::Joints { what, found, expected: skeleton.len() })
}

/// The inverse, where there is one. The determinant is compared with the product of the columns' lengths, so that a
/// small unit of length does not make a matrix singular.
fn inverse(matrix: &DAffine3) -> Option<DAffine3> {
    let m = &matrix.matrix3;
    let size = m.x_axis.length() * m.y_axis.length() * m.z_axis.length();
    let regular = matrix.is_finite() && m.determinant().abs() > 1e-12 * size;
    regular.then(|| matrix.inverse()).filter(DAffine3::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bone;

    fn bone(name: &str, head: [f64; 3], parent: Option<usize>) -> Bone {
        let head = DVec3::from_array(head);
        Bone { name: name.into(), head, tail: head + DVec3::Y, parent, deform: true }
    }

    fn arm() -> Skeleton {
        // The child stands before its parent.
        Skeleton::new(vec![bone("hand", [3., 1., 0.], Some(1)), bone("arm", [1., 1., 0.], None)]).unwrap()
    }

    #[test]
    fn the_rest_pose_moves_nothing_and_a_turned_parent_takes_its_child_along() {
        let skeleton = arm();
        let rest = Pose::rest(&skeleton);
        let inverse_bind = rest.inverse_bind(&skeleton).unwrap();
        let still = rest.palette(&skeleton, &inverse_bind).unwrap();
        assert!(still.matrices.iter().all(|m| *m == DAffine3::IDENTITY));
        assert_eq!(still.centers, [DVec3::new(3., 1., 0.), DVec3::new(1., 1., 0.)]);

        let mut pose = rest.clone();
        pose.locals[1].rotation = DQuat::from_rotation_z(std::f64::consts::FRAC_PI_2);
        let turned = pose.palette(&skeleton, &inverse_bind).unwrap();
        // The tip at (4, 1, 0) goes a quarter round the arm's joint (1, 1, 0): to (1, 4, 0), whichever joint moves it.
        for m in &turned.matrices {
            assert!(m.transform_point3(DVec3::new(4., 1., 0.)).distance(DVec3::new(1., 4., 0.)) < 1e-15 * 8.0);
        }
        pose.locals[1].rotation = DQuat::from_rotation_z(1.5);
        let other = pose.palette(&skeleton, &inverse_bind).unwrap();
        assert!(other.matrices[0].transform_point3(DVec3::new(4., 1., 0.)).distance(DVec3::new(1., 4., 0.)) > 0.1);
    }

    #[test]
    fn transforms_go_to_matrices_and_back() {
        let rotation = DQuat::from_axis_angle(DVec3::new(1., 2., -1.).normalize(), 2.5);
        for scale in [DVec3::ONE, DVec3::new(0.5, 3., 1e-4), DVec3::new(-2., 1., 1.)] {
            let t = Transform { translation: DVec3::new(1., 2., 3.), rotation, scale };
            let back = Transform::from_affine(&t.to_affine()).unwrap();
            assert!(back.to_affine().abs_diff_eq(t.to_affine(), 1e-14), "{back:?}");
            assert!(back.scale.abs_diff_eq(scale, 1e-14));
        }
        // Axes scaled to nothing: the matrix comes back, whichever axes they are.
        for scale in [DVec3::X, DVec3::new(0., 2., 0.), DVec3::new(1., 0., 3.), DVec3::ZERO] {
            let t = Transform { translation: DVec3::ONE, rotation, scale };
            let back = Transform::from_affine(&t.to_affine()).unwrap();
            assert!(back.to_affine().abs_diff_eq(t.to_affine(), 1e-14), "{back:?}");
            assert!((back.rotation.length() - 1.0).abs() < 1e-14);
        }
        let shear = DAffine3::from_mat3(DMat3::from_cols(DVec3::X, DVec3::new(0.3, 1., 0.), DVec3::Z));
        assert_eq!(Transform::from_affine(&shear), None);
        assert_eq!(Transform::from_affine(&DAffine3::from_translation(DVec3::NAN)), None);
    }

    #[test]
    fn a_pose_comes_back_from_its_world_matrices() {
        let skeleton = arm();
        let mut pose = Pose::rest(&skeleton);
        pose.locals[1].rotation = DQuat::from_rotation_x(0.7);
        pose.locals[0].rotation = DQuat::from_rotation_y(-1.2);
        pose.locals[1].scale = DVec3::splat(1.5);
        let globals = pose.globals(&skeleton).unwrap();
        let back = Pose::from_globals(&skeleton, &globals).unwrap();
        for (a, b) in back.locals.iter().zip(&pose.locals) {
            assert!(a.to_affine().abs_diff_eq(b.to_affine(), 1e-14));
        }
        assert!(matches!(Pose::from_globals(&skeleton, &globals[..1]), Err(Error::Joints { found: 1, .. })));
        let flat = [DAffine3::IDENTITY, DAffine3::from_scale(DVec3::new(1., 1., 0.))];
        assert!(
            matches!(Pose::from_globals(&skeleton, &flat), Err(Error::Format { place, .. }) if place.contains("hand"))
        );
    }
}
