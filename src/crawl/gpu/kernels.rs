//! The kernels of the crawl, compiled for one number of labels a voxel.

use bytemuck::{Pod, Zeroable};
use wgpu::Device;

use super::chunks::Window;
use crate::crawl::{MAX_LABELS, MIN_LABELS};
use crate::error::{Error, Result};
use crate::gpu::{Kernel, Module, catch};

/// The text of the shader, part by part; in front of it stands the number of labels, [`label_count`].
pub const WGSL: [&str; 3] = [
    include_str!("../../../shaders/common/dispatch.wgsl"),
    include_str!("../../../shaders/common/labels.wgsl"),
    include_str!("../../../shaders/crawl.wgsl"),
];

/// Invocations of a workgroup: one a voxel of a brick.
const WORKGROUP: u32 = 64;

/// `CrawlParams` of the shader.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct CrawlParams {
    pub window: Window,
    pub extent: [u32; 3],
    pub bricks: u32,
    pub most_axes: u32,
    pub queue: u32,
    pub ring: u32,
    pub batch: u32,
    pub seeded: u32,
    pub flags: u32,
    pub padding: [u32; 2],
}

/// The first part of the shader: private arrays need a constant size, so the text has the number of labels a voxel.
pub fn label_count(labels: usize) -> String {
    format!("const LABELS: u32 = {labels}u;\n")
}

/// The kernels for a number of labels a voxel.
#[derive(Debug)]
pub struct CrawlKernels {
    pub(super) labels: usize,
    /// Most bytes of labels in one binding, where the device allows more.
    pub(super) binding: u64,
    pub(super) empty_labels: Kernel,
    pub(super) seed: Kernel,
    pub(super) prepare: Kernel,
    pub(super) relax: Kernel,
}

impl CrawlKernels {
    /// Compiles them for up to `labels` labels a voxel, 1 to 17.
    ///
    /// # Errors
    /// [`Error::Parameter`], and [`Error::Device`] where the device does not take them.
    pub async fn new(device: &Device, labels: usize) -> Result<Self> {
        catch(device, "compiling the crawl", || Self::from_wgsl(device, labels, &WGSL)).await
    }

    /// Compiles them from another text, for tests that break the shader on purpose.
    #[doc(hidden)]
    pub fn from_wgsl(device: &Device, labels: usize, wgsl: &[&str]) -> Result<Self> {
        // One where only one bone takes part; otherwise what the CPU path takes too.
        if labels != 1 && !(MIN_LABELS..=MAX_LABELS).contains(&labels) {
            let allowed = "it must be from 1 to 17";
            return Err(Error::Parameter { name: "labels", value: labels.to_string(), allowed });
        }
        let count = label_count(labels);
        let parts: Vec<&str> = std::iter::once(count.as_str()).chain(wgsl.iter().copied()).collect();
        let module = Module::new(device, "crawl", &parts);
        let kernel = |entry| module.kernel(device, entry, WORKGROUP, &[]);
        let [empty_labels, seed, prepare, relax] = ["empty_labels", "seed", "prepare", "relax"].map(kernel);
        Ok(Self { labels, binding: u64::MAX, empty_labels, seed, prepare, relax })
    }

    /// The same with at most so many bytes of labels in one binding, for tests of windows.
    #[doc(hidden)]
    pub fn with_binding(self, binding: u64) -> Self {
        Self { binding, ..self }
    }

    /// Labels a voxel.
    pub fn labels(&self) -> usize {
        self.labels
    }
}
