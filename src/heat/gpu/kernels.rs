//! The kernels of heat.

use bytemuck::{Pod, Zeroable};
use wgpu::Device;

use super::job::Acceleration;
use crate::error::Result;
use crate::gpu::{Kernel, Module, catch};

/// The text of the shader, part by part.
pub const WGSL: [&str; 2] =
    [include_str!("../../../shaders/common/dispatch.wgsl"), include_str!("../../../shaders/heat.wgsl")];

const WORKGROUP: u32 = 64;

/// `SweepParams` of the shader.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct SweepParams {
    pub rows: u32,
    pub weight: f32,
    pub rounding: f32,
}

/// The kernels, for voxels and for any graph.
#[derive(Debug)]
pub struct HeatKernels {
    pub(super) sweep: [Kernel; 2],
    pub(super) check: [Kernel; 2],
    /// How [`HeatKernels::voxel_heat`] sweeps.
    pub(super) acceleration: Acceleration,
}

impl HeatKernels {
    /// Compiles them.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the device does not take them.
    pub async fn new(device: &Device) -> Result<Self> {
        catch(device, "compiling heat", || Ok(Self::from_wgsl(device, &WGSL))).await
    }

    /// Compiles them from another text, for tests that break the shader on purpose.
    #[doc(hidden)]
    pub fn from_wgsl(device: &Device, wgsl: &[&str]) -> Self {
        let module = Module::new(device, "heat", wgsl);
        let kernel = |entry| module.kernel(device, entry, WORKGROUP, &[]);
        let sweep = ["sweep_voxels", "sweep_rows"].map(kernel);
        let check = ["check_voxels", "check_rows"].map(kernel);
        Self { sweep, check, acceleration: Acceleration::default() }
    }

    /// The same, with sweeps of [`HeatKernels::voxel_heat`] that go on in another way.
    pub fn with_acceleration(self, acceleration: Acceleration) -> Self {
        Self { acceleration, ..self }
    }
}
