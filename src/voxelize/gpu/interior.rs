//! The inside on the GPU: a flood from outside over voxel faces by sweeps along the axes, words of 32 voxels at a time,
//! or the bits of an inside that the CPU found. See `shaders/interior.wgsl`.

use bytemuck::{Pod, Zeroable};
use wgpu::{BindGroup, Buffer, CommandEncoder, Device};

use crate::error::{Error, Result};
#[cfg(not(target_arch = "wasm32"))]
use crate::gpu::block_on;
use crate::gpu::{BitBuffer, Kernel, Module, Readback, Slab, storage, storage_with, uniforms};

/// The text of the shader, part by part.
pub const WGSL: [&str; 2] =
    [include_str!("../../../shaders/common/dispatch.wgsl"), include_str!("../../../shaders/interior.wgsl")];

/// `FloodParams` of the shader.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct FloodParams {
    pub words_per_row: u32,
    pub rows: u32,
    pub first: u32,
    pub slices: u32,
    pub bound_slices: u32,
}

impl FloodParams {
    fn new(bits: &BitBuffer, slab: &Slab) -> Self {
        Self {
            words_per_row: bits.words_per_row(),
            rows: bits.dims().y,
            first: slab.first - slab.bound_first,
            slices: slab.slices,
            bound_slices: slab.bound_slices,
        }
    }
}

/// The kernels that find the inside.
#[derive(Debug)]
pub struct InteriorKernels {
    sweeps: [Kernel; 3],
    from_outside: Kernel,
    from_inside: Kernel,
}

impl InteriorKernels {
    /// Compiles them; faults go to the device's error scope.
    pub fn new(device: &Device) -> Self {
        Self::from_wgsl(device, &WGSL)
    }

    /// Compiles them from another text, for tests that break the shader on purpose.
    #[doc(hidden)]
    pub fn from_wgsl(device: &Device, wgsl: &[&str]) -> Self {
        let module = Module::new(device, "interior", wgsl);
        let kernel = |entry| module.kernel(device, entry, 64, &[]);
        Self {
            sweeps: ["sweep_x", "sweep_y", "sweep_z"].map(kernel),
            from_outside: kernel("solid_from_outside"),
            from_inside: kernel("solid_from_inside"),
        }
    }

    /// Begins a flood around the surface.
    ///
    /// # Errors
    /// [`Error::Limit`] where a second grid of bits does not fit the device.
    pub fn flood(&self, device: &Device, surface: BitBuffer) -> Result<FloodJob> {
        let outside = BitBuffer::new(device, "outside voxels", surface.dims(), surface.max_binding())?;
        let before = storage(device, "changed before", 4);
        let changed = storage_with(device, "changed", &[1u32]);
        let slabs = surface.slabs(1)?;
        let params: Vec<_> = slabs.iter().map(|slab| FloodParams::new(&surface, slab)).collect();
        let uniforms = uniforms(device, &params);
        let mut sweeps = Vec::new();
        for (k, (slab, params)) in slabs.iter().zip(&params).enumerate() {
            let runs =
                [params.rows * params.slices, params.words_per_row * params.slices, params.words_per_row * params.rows];
            for (axis, kernel) in self.sweeps.iter().enumerate() {
                let entries = [
                    (0, uniforms.at(k)),
                    (1, surface.binding(slab)),
                    (2, outside.binding(slab)),
                    (3, before.as_entire_binding()),
                    (4, changed.as_entire_binding()),
                ];
                sweeps.push(Sweep { axis, bind: kernel.bind(device, &entries), invocations: runs[axis].into() });
            }
        }
        let device = device.clone();
        Ok(FloodJob { device, surface, outside, before, changed, sweeps, pending: None, done: false })
    }

    /// Records that the surface joins an inside found elsewhere, such as by winding numbers on the CPU; the bits that
    /// come back are the solid.
    ///
    /// # Errors
    /// [`Error::Parameter`] where the two grids differ.
    pub fn join(
        &self,
        device: &Device,
        encoder: &mut CommandEncoder,
        surface: &BitBuffer,
        inside: BitBuffer,
    ) -> Result<BitBuffer> {
        if surface.dims() != inside.dims() {
            return Err(Error::Parameter {
                name: "inside",
                value: format!("of {} voxels", inside.dims()),
                allowed: "it must have the grid of the surface",
            });
        }
        for slab in inside.slabs(0)? {
            let uniforms = uniforms(device, &[FloodParams::new(&inside, &slab)]);
            let entries = [(0, uniforms.at(0)), (1, surface.binding(&slab)), (2, inside.binding(&slab))];
            record_words(device, encoder, &self.from_inside, &inside, &slab, &entries)?;
        }
        Ok(inside)
    }
}

/// Records a kernel over all words of a slab.
fn record_words(
    device: &Device,
    encoder: &mut CommandEncoder,
    kernel: &Kernel,
    bits: &BitBuffer,
    slab: &Slab,
    entries: &[(u32, wgpu::BindingResource)],
) -> Result<()> {
    let words = u64::from(bits.words_per_row()) * u64::from(bits.dims().y) * u64::from(slab.slices);
    let bind = kernel.bind(device, entries);
    kernel.dispatch(&mut encoder.begin_compute_pass(&Default::default()), &bind, words)
}

/// One sweep of a round: along an axis, both ways, in a slab.
#[derive(Debug)]
struct Sweep {
    axis: usize,
    bind: BindGroup,
    invocations: u64,
}

/// A flood, round by round: sweeps along x, y and z. It ends with a round that changes nothing; rounds recorded beyond
/// that cost next to nothing.
#[derive(Debug)]
pub struct FloodJob {
    device: Device,
    surface: BitBuffer,
    outside: BitBuffer,
    before: Buffer,
    changed: Buffer,
    sweeps: Vec<Sweep>,
    pending: Option<Readback>,
    done: bool,
}

impl FloodJob {
    /// Records this many rounds. A round reads both grids of bits six times: some 10 ms for 1024 voxels cubed on a
    /// mid-range GPU. Bodies take 2 rounds, narrow gaps and mazes about as many as their ways have turns.
    ///
    /// # Errors
    /// [`Error::Limit`] where a dispatch cannot hold the grid; see [`Kernel::dispatch`].
    pub fn record(&mut self, kernels: &InteriorKernels, encoder: &mut CommandEncoder, rounds: usize) -> Result<()> {
        for _ in 0..rounds {
            encoder.copy_buffer_to_buffer(&self.changed, 0, &self.before, 0, 4);
            encoder.clear_buffer(&self.changed, 0, None);
            let mut pass = encoder
                .begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("flood"), timestamp_writes: None });
            for sweep in &self.sweeps {
                kernels.sweeps[sweep.axis].dispatch(&mut pass, &sweep.bind, sweep.invocations)?;
            }
        }
        self.pending = Some(Readback::record(&self.device, encoder, &self.changed, 0, 4));
        Ok(())
    }

    /// Whether the flood has come to its end, as of the last [`FloodJob::record`], which must have been submitted.
    ///
    /// # Errors
    /// As for [`Readback::read`].
    pub async fn status(&mut self) -> Result<bool> {
        if let Some(changed) = self.pending.take() {
            self.done = changed.read::<u32>().await? == [0];
        }
        Ok(self.done)
    }

    /// [`FloodJob::status`], waiting for the device.
    ///
    /// # Errors
    /// As there.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn status_blocking(&mut self) -> Result<bool> {
        block_on(&self.device.clone(), self.status())
    }

    /// Records the solid: all that the flood did not reach, and with it the surface. Comes back with the surface and
    /// the solid.
    ///
    /// # Errors
    /// [`Error::Check`] where [`FloodJob::status`] has not said that the flood has come to its end.
    pub fn finish(self, kernels: &InteriorKernels, encoder: &mut CommandEncoder) -> Result<(BitBuffer, BitBuffer)> {
        if !self.done {
            return Err(Error::Check("the flood has not come to its end; record more rounds".to_string()));
        }
        for slab in self.outside.slabs(0)? {
            let uniforms = uniforms(&self.device, &[FloodParams::new(&self.outside, &slab)]);
            let entries = [(0, uniforms.at(0)), (2, self.outside.binding(&slab))];
            record_words(&self.device, encoder, &kernels.from_outside, &self.outside, &slab, &entries)?;
        }
        Ok((self.surface, self.outside))
    }
}
