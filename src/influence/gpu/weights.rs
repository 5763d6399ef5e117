//! Weights on the device, and read back.

use wgpu::{Buffer, CommandEncoder, Device, Queue};

use super::{Cut, FIGURES, JointFormat};
use crate::error::Result;
#[cfg(not(target_arch = "wasm32"))]
use crate::gpu::block_on;
use crate::gpu::{Readback, catch};
use crate::influence::Stats;
use crate::model::{Influence, Weights};

/// Weights on the device.
#[derive(Debug)]
pub struct GpuWeights {
    pub(super) joints: Buffer,
    pub(super) weights: Buffer,
    pub(super) figures: Buffer,
    pub(super) count: usize,
    pub(super) places: usize,
    pub(super) cut: Cut,
}

impl GpuWeights {
    /// The joints of each position, [`GpuWeights::places`] each, in the format that was asked for; 0 in empty places. Can be
    /// bound as storage and as a vertex buffer.
    pub fn joints(&self) -> &Buffer {
        &self.joints
    }

    /// The weights of each position, f32, strongest first, adding up to 1; 0 in empty places, which is all of them where no
    /// bone reaches. Can be bound as storage and as a vertex buffer.
    pub fn weights(&self) -> &Buffer {
        &self.weights
    }

    /// Places of a position, a multiple of 4.
    pub fn places(&self) -> usize {
        self.places
    }

    /// How many positions there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How the joints stand in their buffer.
    pub fn format(&self) -> JointFormat {
        self.cut.format
    }

    /// Reads all weights back: [`GpuWeights::record_readback`], submitted by itself.
    ///
    /// # Errors
    /// [`crate::Error::Device`].
    pub async fn read(&self, device: &Device, queue: &Queue) -> Result<(Weights, Stats)> {
        let record = || {
            let mut encoder = device.create_command_encoder(&Default::default());
            let readback = self.record_readback(device, &mut encoder);
            queue.submit([encoder.finish()]);
            Ok(readback)
        };
        catch(device, "reading weights back", record).await?.read().await
    }

    /// Records a read-back of all weights.
    pub fn record_readback(&self, device: &Device, encoder: &mut CommandEncoder) -> WeightsReadback {
        let mut part = |buffer: &Buffer, bytes: u64| Readback::record(device, encoder, buffer, 0, bytes);
        WeightsReadback {
            device: device.clone(),
            joints: part(&self.joints, self.joints.size()),
            weights: part(&self.weights, self.weights.size()),
            figures: part(&self.figures, 4 * FIGURES as u64),
            count: self.count,
            places: self.places,
            cut: self.cut,
        }
    }
}

/// Weights on their way from the device.
#[derive(Debug)]
pub struct WeightsReadback {
    device: Device,
    joints: Readback,
    weights: Readback,
    figures: Readback,
    count: usize,
    places: usize,
    cut: Cut,
}

impl WeightsReadback {
    /// The weights of all positions, in f64 and adding up to 1 in it; a row is empty where no bone reaches.
    ///
    /// # Errors
    /// As for [`Readback::read`].
    pub async fn read(self) -> Result<(Weights, Stats)> {
        let weights: Vec<f32> = self.weights.read().await?;
        let joints: Vec<u32> = match self.cut.format {
            JointFormat::U32 => self.joints.read().await?,
            JointFormat::U16 => self.joints.read::<u16>().await?.into_iter().map(u32::from).collect(),
        };
        let figures: Vec<u32> = self.figures.read().await?;
        let mut rows = Weights::with_capacity(self.count, weights.len());
        for position in 0..self.count {
            let range = position * self.places..(position + 1) * self.places;
            let row = weights[range.clone()].iter().zip(&joints[range]).filter(|(weight, _)| **weight > 0.0);
            let total: f64 = row.clone().map(|(weight, _)| f64::from(*weight)).sum();
            rows.push(row.map(|(&weight, &joint)| Influence { joint, weight: f64::from(weight) / total }));
        }
        let stats = Stats {
            influences_considered: self.cut.considered,
            max_influences_before_cap: figures[0] as usize,
            largest_pruned_share: f32::from_bits(figures[1]).into(),
        };
        Ok((rows, stats))
    }

    /// [`WeightsReadback::read`], waiting for the device.
    ///
    /// # Errors
    /// As there.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read_blocking(self) -> Result<(Weights, Stats)> {
        block_on(&self.device.clone(), self.read())
    }
}
