//! Skinning on the device: a caller's vertices moved to many poses by one recorded pass, written to a caller's buffer.
//!
//! [`SkinKernels`] is compiled once for a [`SkinFormat`], [`SkinKernels::bind`] ties it to buffers once, and a frame is
//! [`Palettes::write`] for each pose that changed and [`SkinJob::record`]. Nothing is submitted, and a frame makes no
//! buffers and no bindings.

mod influences;
mod job;
mod palettes;

use wgpu::Device;

use crate::error::{Error, Result};
use crate::gpu::{Kernel, Module, catch};
use crate::influence::gpu::JointFormat;

pub use influences::{InfluenceWords, MAX_SETS, influence_words};
pub use job::{Place, SkinJob, SkinParams, Source, Stream, Target};
pub use palettes::Palettes;

/// The parts of the shader.
pub const WGSL: [&str; 2] =
    [include_str!("../../../shaders/common/dispatch.wgsl"), include_str!("../../../shaders/skin.wgsl")];

/// Invocations of a workgroup.
const WORKGROUP: u32 = 64;

/// Invocations that keep a large GPU busy. With more work than that an invocation moves its vertex to several poses, so
/// that what the vertex costs to load is shared by them.
const BUSY: u64 = 1 << 17;

/// How the joints' motions are blended; see [`crate::skin::Method`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Blend {
    #[default]
    Linear,
    DualQuaternion,
    /// Both, by a share of dual quaternion a vertex.
    Mixed,
}

impl Blend {
    fn entry(self) -> &'static str {
        match self {
            Blend::Linear => "linear",
            Blend::DualQuaternion => "dual_quaternion",
            Blend::Mixed => "mixed",
        }
    }
}

/// How weights stand in their buffer. Whatever the format, the weights of a vertex are divided by their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightFormat {
    /// Four bytes each: vertex format `Float32x4`.
    #[default]
    F32,
    /// Two bytes each: vertex format `Unorm16x4`.
    Unorm16,
    /// One byte each: vertex format `Unorm8x4`.
    Unorm8,
}

impl WeightFormat {
    fn bits(self) -> u32 {
        match self {
            WeightFormat::F32 => 32,
            WeightFormat::Unorm16 => 16,
            WeightFormat::Unorm8 => 8,
        }
    }

    /// Words of four weights.
    pub fn words(self) -> u32 {
        self.bits() / 8
    }
}

fn joint_bits(format: JointFormat) -> u32 {
    match format {
        JointFormat::U32 => 32,
        JointFormat::U16 => 16,
    }
}

/// What a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkinFormat {
    pub blend: Blend,
    /// Sets of four influences a vertex: 1 or 2.
    pub sets: u32,
    pub joints: JointFormat,
    pub weights: WeightFormat,
    /// Whether normals and tangents are moved too.
    pub normals: bool,
    pub tangents: bool,
}

impl Default for SkinFormat {
    /// Positions and normals by linear blend, four influences a vertex in 16 + 16 bytes, as the weights of
    /// [`crate::influence::gpu`] stand.
    fn default() -> Self {
        Self {
            blend: Blend::Linear,
            sets: 1,
            joints: JointFormat::U32,
            weights: WeightFormat::F32,
            normals: true,
            tangents: false,
        }
    }
}

impl SkinFormat {
    /// Words that the joints of a vertex take.
    pub fn joint_words(&self) -> u32 {
        self.sets * joint_bits(self.joints) / 8
    }

    /// Words that the weights of a vertex take.
    pub fn weight_words(&self) -> u32 {
        self.sets * self.weights.words()
    }

    /// Bytes that a vertex reads from buffers and writes to them when it is moved to one pose, palettes not counted.
    pub fn vertex_bytes(&self) -> [u64; 2] {
        let surface = 3 + 3 * u64::from(self.normals) + 4 * u64::from(self.tangents);
        let share = u64::from(self.blend == Blend::Mixed);
        let influences = u64::from(self.joint_words() + self.weight_words());
        [4 * (surface + influences + share), 4 * surface]
    }
}

/// The kernel for a format.
#[derive(Debug)]
pub struct SkinKernels {
    kernel: Kernel,
    format: SkinFormat,
    poses_each: Option<u32>,
    max_binding: u64,
}

impl SkinKernels {
    /// Compiles the kernel.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a number of sets other than 1 and 2, [`Error::Device`] where the device does not take it.
    pub async fn new(device: &Device, format: SkinFormat) -> Result<Self> {
        catch(device, "compiling the skinning", || Self::from_wgsl(device, format, &WGSL)).await
    }

    /// The same from the parts of a shader: for tests, which change them. Faults go to the device's error scope.
    ///
    /// # Errors
    /// [`Error::Parameter`], as above.
    pub fn from_wgsl(device: &Device, format: SkinFormat, wgsl: &[&str]) -> Result<Self> {
        if !(1..=MAX_SETS).contains(&format.sets) {
            let value = format.sets.to_string();
            return Err(Error::Parameter { name: "sets of four influences", value, allowed: "it must be 1 or 2" });
        }
        let constants = [
            ("SETS", f64::from(format.sets)),
            ("JOINT_BITS", f64::from(joint_bits(format.joints))),
            ("WEIGHT_BITS", f64::from(format.weights.bits())),
            ("NORMALS", f64::from(format.normals)),
            ("TANGENTS", f64::from(format.tangents)),
        ];
        let kernel = Module::new(device, "skin", wgsl).kernel(device, format.blend.entry(), WORKGROUP, &constants);
        let limits = device.limits();
        let max_binding = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        Ok(Self { kernel, format, poses_each: None, max_binding })
    }

    /// The most poses that an invocation moves its vertex to, at least 1. If not told, as many as leave a large GPU
    /// busy: all of them for a mesh of more than some hundred thousand vertices.
    pub fn with_poses_each(mut self, poses: u32) -> Self {
        self.poses_each = Some(poses.max(1));
        self
    }

    fn poses_each(&self, vertices: u32, poses: u32) -> u32 {
        let shared = u64::from(vertices) * u64::from(poses) / BUSY;
        self.poses_each.unwrap_or(shared.clamp(1, u64::from(poses)) as u32)
    }

    /// The most bytes to bind at once, for tests: more is worked on window by window.
    pub fn with_max_binding(mut self, bytes: u64) -> Self {
        self.max_binding = self.max_binding.min(bytes);
        self
    }

    /// What the kernel is compiled for.
    pub fn format(&self) -> SkinFormat {
        self.format
    }
}
