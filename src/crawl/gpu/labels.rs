//! The labels of all solid voxels, on the device and read back.

use bytemuck::Pod;
use glam::UVec3;
use wgpu::{Buffer, CommandEncoder, Device};

use super::chunks::Window;
use super::{Counters, NO_LABEL, STEPS};
use crate::crawl::Label;
use crate::error::Result;
use crate::gpu::Readback;
#[cfg(not(target_arch = "wasm32"))]
use crate::gpu::block_on;
use crate::voxelize::gpu::{ABSENT, Brick, EDGE, GpuBricks};

/// Labels on the device.
///
/// `per_voxel` labels for each solid voxel, nearest first: the bone's rank and its distance in steps of 2^-16 voxel, or twice
/// 0xffffffff where there are no more. They lie in one buffer, or in several where a binding would not hold them all.
#[derive(Debug)]
pub struct GpuLabels {
    pub(super) buffers: Vec<Buffer>,
    /// What windows with one buffer bind as the second.
    pub(super) nothing: Buffer,
    pub(super) windows: Vec<Window>,
    pub(super) per_voxel: usize,
    pub(super) voxels: u32,
    pub(super) bones: Vec<u32>,
    pub(super) counters: Counters,
}

impl GpuLabels {
    /// The buffers, each with the labels of whole layers of bricks, one after the other.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The windows in which dispatches work: one if there is one buffer.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// The two buffers that a window sees, `labels` and `more_labels` of the shaders.
    ///
    /// # Panics
    /// If there is no such window.
    pub fn seen(&self, window: usize) -> [&Buffer; 2] {
        [&self.buffers[window], self.buffers.get(window + 1).unwrap_or(&self.nothing)]
    }

    /// How many labels a voxel may have at most.
    pub fn per_voxel(&self) -> usize {
        self.per_voxel
    }

    /// The bone of each rank.
    pub fn bones(&self) -> &[u32] {
        &self.bones
    }

    /// What it took to find them.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Records a read-back of all labels of these bricks.
    pub fn record_readback(&self, device: &Device, encoder: &mut CommandEncoder, bricks: &GpuBricks) -> LabelReadback {
        let mut whole = |buffer: &Buffer, bytes: u64| Readback::record(device, encoder, buffer, 0, bytes);
        let totals = bricks.totals();
        let list = whole(bricks.list(), u64::from(totals.bricks) * size_of::<Brick>() as u64);
        let slots = whole(bricks.slots(), bricks.slots().size());
        let labels = match self.voxels {
            0 => Vec::new(),
            _ => self.buffers.iter().map(|buffer| whole(buffer, buffer.size())).collect(),
        };
        let (extent, per_voxel, bones) = (bricks.extent(), self.per_voxel, self.bones.clone());
        LabelReadback { device: device.clone(), list, slots, labels, extent, per_voxel, bones }
    }
}

/// Labels on their way from the device.
#[derive(Debug)]
pub struct LabelReadback {
    device: Device,
    list: Readback,
    slots: Readback,
    labels: Vec<Readback>,
    extent: UVec3,
    per_voxel: usize,
    bones: Vec<u32>,
}

impl LabelReadback {
    /// The labels; see [`Readback::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn read(self) -> Result<HostLabels> {
        let list: Vec<Brick> = read_or_empty(self.list).await?;
        let slots: Vec<u32> = self.slots.read().await?;
        let mut labels: Vec<[u32; 2]> = Vec::new();
        for part in self.labels {
            labels.extend(part.read::<[u32; 2]>().await?);
        }
        let (extent, per_voxel, bones) = (self.extent, self.per_voxel, self.bones);
        Ok(HostLabels { extent, slots, list, labels, per_voxel, bones })
    }

    /// [`LabelReadback::read`], waiting for the device.
    ///
    /// # Errors
    /// As there.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read_blocking(self) -> Result<HostLabels> {
        block_on(&self.device.clone(), self.read())
    }
}

/// Nothing can be mapped of a buffer without bytes.
async fn read_or_empty<T: Pod>(readback: Readback) -> Result<Vec<T>> {
    if readback.is_empty() { Ok(Vec::new()) } else { readback.read().await }
}

/// Labels that came back from the device.
#[derive(Debug, Clone, PartialEq)]
pub struct HostLabels {
    extent: UVec3,
    slots: Vec<u32>,
    list: Vec<Brick>,
    labels: Vec<[u32; 2]>,
    per_voxel: usize,
    bones: Vec<u32>,
}

impl HostLabels {
    /// The labels of a voxel, nearest first, ties by bone name; none where it is not solid or no bone reaches it.
    pub fn at(&self, voxel: UVec3) -> impl Iterator<Item = Label> + '_ {
        self.raw(voxel).map(|[rank, steps]| Label {
            bone: self.bones[rank as usize],
            distance: f64::from(steps) / f64::from(STEPS),
        })
    }

    /// The same as rank and distance in steps of 2^-16 voxel.
    pub fn raw(&self, voxel: UVec3) -> impl Iterator<Item = [u32; 2]> + '_ {
        self.index(voxel)
            .into_iter()
            .flat_map(|index| &self.labels[index * self.per_voxel..(index + 1) * self.per_voxel])
            .copied()
            .take_while(|label| *label != NO_LABEL)
    }

    /// How many labels a voxel may have at most.
    pub fn per_voxel(&self) -> usize {
        self.per_voxel
    }

    /// How many voxels there are.
    pub fn voxels(&self) -> usize {
        self.labels.len() / self.per_voxel
    }

    fn index(&self, voxel: UVec3) -> Option<usize> {
        let (place, cell) = (voxel / EDGE, voxel % EDGE);
        if place.cmpge(self.extent).any() {
            return None;
        }
        let slot = self.slots[(place.x + self.extent.x * (place.y + self.extent.y * place.z)) as usize];
        if slot == ABSENT {
            return None;
        }
        let brick = &self.list[slot as usize];
        let mask = u64::from(brick.mask[0]) | u64::from(brick.mask[1]) << 32;
        let bit = cell.x + EDGE * (cell.y + EDGE * cell.z);
        let below = (mask & ((1 << bit) - 1)).count_ones();
        (mask >> bit & 1 == 1).then_some((brick.first_voxel + below) as usize)
    }
}
