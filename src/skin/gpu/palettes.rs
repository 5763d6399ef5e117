//! Palettes on the device: matrices as three rows, or dual quaternions with the stretches before them, all made in f64.

use glam::{DAffine3, DQuat};
use wgpu::{Buffer, Device, Queue};

use crate::error::{Error, Result};
use crate::gpu::storage;
use crate::model::Palette;
use crate::skin::gpu::Blend;
use crate::skin::split::split;

/// Four floats: what palettes are made of.
type Vector = [f32; 4];

/// Vectors of a matrix and of a dual quaternion.
const ROWS: u32 = 3;
const HALVES: u32 = 2;

/// The palettes of several poses in one buffer.
///
/// For linear blend a pose is three rows of four floats a joint, `(x, y, z, translation)` each, joint after joint: a
/// program that animates on the device may write [`Palettes::buffer`] itself. With dual quaternions the first vector of a pose
/// says whether any joint stretches; then come, for a mix, the rows; then two vectors a joint (real part, dual part; the
/// scalar last); then the rows of the stretches.
#[derive(Debug)]
pub struct Palettes {
    buffer: Buffer,
    blend: Blend,
    joints: u32,
    poses: u32,
    /// A pose in the making.
    vectors: Vec<Vector>,
}

impl Palettes {
    /// Room for so many poses. Until they are written, linear palettes take every vertex to the origin.
    ///
    /// # Errors
    /// [`Error::Limit`] where a buffer of the device does not hold them, [`Error::Parameter`] for no joints or no poses.
    pub fn new(device: &Device, blend: Blend, joints: u32, poses: u32) -> Result<Self> {
        for (name, value) in [("joints of a palette", joints), ("poses", poses)] {
            if value == 0 {
                return Err(Error::Parameter { name, value: "0".into(), allowed: "it must be at least 1" });
            }
        }
        let vectors = pose_vectors(blend, u64::from(joints));
        let (bytes, limit) =
            (vectors.saturating_mul(u64::from(poses) * size_of::<Vector>() as u64), device.limits().max_buffer_size);
        if bytes > limit {
            return Err(Error::Limit {
                what: format!("palettes of {poses} poses of {joints} joints"),
                needed: format!("{bytes} bytes"),
                limit: format!("{limit} bytes on \"{}\"", device.adapter_info().name),
                advice: "take fewer poses at a time".into(),
            });
        }
        let buffer = storage(device, "palettes", bytes);
        Ok(Self { buffer, blend, joints, poses, vectors: Vec::with_capacity(vectors as usize) })
    }

    /// Writes the palette of a pose, for what is submitted to the queue from now on.
    ///
    /// # Errors
    /// [`Error::Joints`] for a palette of another number of joints, [`Error::Parameter`] for a pose that is not there,
    /// [`Error::Format`] with the joint whose matrix is not made of finite 32-bit numbers.
    pub fn write(&mut self, queue: &Queue, pose: u32, palette: &Palette) -> Result<()> {
        let expected = self.joints as usize;
        for (what, found) in [("the palette", palette.len()), ("centres of the palette", palette.centers.len())] {
            if found != expected {
                return Err(Error::Joints { what, found, expected });
            }
        }
        if pose >= self.poses {
            let value = pose.to_string();
            return Err(Error::Parameter { name: "pose", value, allowed: "it must be below the number of poses" });
        }
        let fits = |m: &DAffine3| m.to_cols_array().iter().all(|x| (*x as f32).is_finite());
        if let Some(joint) = palette.matrices.iter().position(|m| !fits(m)) {
            let place = format!("joint {joint} (0-based)");
            return Err(Error::format(place, "its matrix is not made of finite 32-bit numbers"));
        }
        self.encode(palette);
        let bytes: &[u8] = bytemuck::cast_slice(&self.vectors);
        queue.write_buffer(&self.buffer, u64::from(pose) * bytes.len() as u64, bytes);
        Ok(())
    }

    fn encode(&mut self, palette: &Palette) {
        let (blend, joints) = (self.blend, self.joints as usize);
        self.vectors.clear();
        if blend == Blend::Linear {
            self.vectors.extend(palette.matrices.iter().flat_map(rows));
            return;
        }
        self.vectors.push([0.0; 4]);
        if blend == Blend::Mixed {
            self.vectors.extend(palette.matrices.iter().flat_map(rows));
        }
        let rigid = self.vectors.len();
        let stretch = rigid + HALVES as usize * joints;
        self.vectors.resize(stretch + ROWS as usize * joints, [0.0; 4]);
        for (joint, (matrix, &center)) in palette.matrices.iter().zip(&palette.centers).enumerate() {
            let parts = split(matrix, center);
            self.vectors[rigid + 2 * joint] = quaternion(parts.rigid.real);
            self.vectors[rigid + 2 * joint + 1] = quaternion(parts.rigid.dual);
            self.vectors[stretch + 3 * joint..][..3].copy_from_slice(&rows(&parts.stretch));
            if parts.stretch != DAffine3::IDENTITY {
                self.vectors[0][0] = 1.0;
            }
        }
    }

    /// The vectors of all poses.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// How many poses there are.
    pub fn poses(&self) -> u32 {
        self.poses
    }

    /// How many joints a pose has.
    pub fn joints(&self) -> u32 {
        self.joints
    }

    pub(super) fn blend(&self) -> Blend {
        self.blend
    }

    /// Vectors of a pose, those before its dual quaternions, and those before its stretches.
    pub(super) fn layout(&self) -> [u32; 3] {
        let rigid = 1 + if self.blend == Blend::Mixed { ROWS * self.joints } else { 0 };
        [pose_vectors(self.blend, u64::from(self.joints)) as u32, rigid, rigid + HALVES * self.joints]
    }
}

fn pose_vectors(blend: Blend, joints: u64) -> u64 {
    let (rows, halves) = (u64::from(ROWS), u64::from(HALVES));
    match blend {
        Blend::Linear => rows * joints,
        Blend::DualQuaternion => 1 + (halves + rows) * joints,
        Blend::Mixed => 1 + (rows + halves + rows) * joints,
    }
}

fn rows(m: &DAffine3) -> [Vector; 3] {
    [0, 1, 2]
        .map(|i| [m.matrix3.x_axis[i], m.matrix3.y_axis[i], m.matrix3.z_axis[i], m.translation[i]].map(|x| x as f32))
}

fn quaternion(q: DQuat) -> Vector {
    q.to_array().map(|x| x as f32)
}
