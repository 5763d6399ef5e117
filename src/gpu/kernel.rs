//! Compute kernels: WGSL put together by concatenation, workgroup sizes by override constants, folded dispatches.

use std::borrow::Cow;

use wgpu::{BindGroup, BindGroupEntry, BindingResource, ComputePass, ComputePipeline, Device, ShaderModule};

use crate::error::{Error, Result};
use crate::gpu::limits::MAX_WORKGROUPS;

/// A shader, compiled as far as that goes without an entry point.
#[derive(Debug)]
pub struct Module {
    label: String,
    module: ShaderModule,
}

impl Module {
    /// Compiles the parts, one after the other, as one WGSL text.
    ///
    /// A fault in the text goes to the device's error scope: call it inside [`crate::gpu::catch`].
    pub fn new(device: &Device, label: &str, wgsl: &[&str]) -> Self {
        let text: String = wgsl.concat();
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(label),
            source: wgpu::ShaderSource::Wgsl(Cow::Owned(text)),
        });
        Self { label: label.to_string(), module }
    }

    /// The kernel of one entry point. `workgroup` is handed to the shader as the override constant `WORKGROUP` and
    /// must be the number of invocations of its workgroups; `constants` are further override constants.
    pub fn kernel(&self, device: &Device, entry: &str, workgroup: u32, constants: &[(&str, f64)]) -> Kernel {
        let label = format!("{} {entry}", self.label);
        let mut all = vec![("WORKGROUP", f64::from(workgroup))];
        all.extend_from_slice(constants);
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&label),
            layout: None,
            module: &self.module,
            entry_point: Some(entry),
            compilation_options: wgpu::PipelineCompilationOptions { constants: &all, ..Default::default() },
            cache: None,
        });
        Kernel { label, pipeline, workgroup }
    }
}

/// A compute pipeline whose invocations are numbered by `flat_index` of `shaders/common/dispatch.wgsl`.
#[derive(Debug)]
pub struct Kernel {
    label: String,
    pipeline: ComputePipeline,
    workgroup: u32,
}

impl Kernel {
    /// A bind group of the buffers, by binding number.
    pub fn bind(&self, device: &Device, entries: &[(u32, BindingResource)]) -> BindGroup {
        let entries: Vec<_> = entries
            .iter()
            .map(|(binding, resource)| BindGroupEntry { binding: *binding, resource: resource.clone() })
            .collect();
        device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&self.label),
            layout: &self.pipeline.get_bind_group_layout(0),
            entries: &entries,
        })
    }

    /// Records a dispatch of at least this many invocations, folded so that it stays below the limit on workgroups.
    /// Surplus invocations find their number too high and return.
    ///
    /// # Errors
    /// [`Error::Limit`] for more than one dispatch can hold.
    pub fn dispatch(&self, pass: &mut ComputePass, bind: &BindGroup, invocations: u64) -> Result<()> {
        self.dispatch_groups(pass, bind, invocations.div_ceil(u64::from(self.workgroup)))
    }

    /// Records a dispatch of at least this many workgroups, folded.
    ///
    /// # Errors
    /// As for [`Kernel::dispatch`].
    pub fn dispatch_groups(&self, pass: &mut ComputePass, bind: &BindGroup, groups: u64) -> Result<()> {
        let [x, y] = fold(groups).ok_or_else(|| Error::Limit {
            what: format!("{}: workgroups of one dispatch", self.label),
            needed: groups.to_string(),
            limit: u64::from(MAX_WORKGROUPS).pow(2).to_string(),
            advice: "take a lower resolution".to_string(),
        })?;
        if x > 0 {
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, bind, &[]);
            pass.dispatch_workgroups(x, y, 1);
        }
        Ok(())
    }

    /// Records a dispatch whose numbers of workgroups along x, y and z the device finds at the start of a buffer. The
    /// buffer must not be bound for writing in the same dispatch, and no number may be above 65,535: such a dispatch does nothing.
    pub fn dispatch_indirect(&self, pass: &mut ComputePass, bind: &BindGroup, groups: &wgpu::Buffer) {
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, bind, &[]);
        pass.dispatch_workgroups_indirect(groups, 0);
    }
}

/// Workgroups along x and y, both at most 65,535, whose product is at least `groups` and hardly more; none where
/// there are too many.
pub fn fold(groups: u64) -> Option<[u32; 2]> {
    let rows = groups.div_ceil(u64::from(MAX_WORKGROUPS)).max(1);
    let columns = groups.div_ceil(rows);
    (rows <= u64::from(MAX_WORKGROUPS)).then_some([columns as u32, rows as u32])
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn folding_covers_all_groups_within_the_limit() {
        for groups in [0, 1, 65_534, 65_535, 65_536, 131_071, 4_000_000, 65_535 * 65_535] {
            let [x, y] = fold(groups).expect("fits");
            let product = u64::from(x) * u64::from(y);
            assert!(x <= 65_535 && y <= 65_535, "{groups}: {x} x {y}");
            // At most one workgroup a row is surplus.
            assert!(product >= groups && product < groups + u64::from(y).max(1), "{groups}: {x} x {y}");
        }
        assert_eq!(fold(65_535 * 65_535 + 1), None);
    }
}
