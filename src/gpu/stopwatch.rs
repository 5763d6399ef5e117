//! How long recorded work takes by the device's own clock, where it has one (timestamp queries).

use wgpu::{CommandEncoder, ComputePassDescriptor, ComputePassTimestampWrites, Device, Features, Queue};

use crate::error::Result;
use crate::gpu::readback::Readback;

/// Two marks around recorded work.
#[derive(Debug)]
pub struct Stopwatch {
    device: Device,
    marks: wgpu::QuerySet,
    seconds_a_tick: f64,
}

impl Stopwatch {
    /// None where the device was not opened with `TIMESTAMP_QUERY`.
    pub fn new(device: &Device, queue: &Queue) -> Option<Self> {
        if !device.features().contains(Features::TIMESTAMP_QUERY) {
            return None;
        }
        let marks = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("stopwatch"),
            ty: wgpu::QueryType::Timestamp,
            count: 2,
        });
        let seconds_a_tick = f64::from(queue.get_timestamp_period()) * 1e-9;
        Some(Self { device: device.clone(), marks, seconds_a_tick })
    }

    /// Records the first mark.
    pub fn start(&self, encoder: &mut CommandEncoder) {
        self.mark(encoder, 0);
    }

    /// Records the second mark, and the read-back of both. The next [`Stopwatch::start`] must be submitted after it.
    pub fn stop(&self, encoder: &mut CommandEncoder) -> Lap {
        self.mark(encoder, 1);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("marks"),
            size: 16,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        encoder.resolve_query_set(&self.marks, 0..2, &buffer, 0);
        Lap { marks: Readback::record(&self.device, encoder, &buffer, 0, 16), seconds_a_tick: self.seconds_a_tick }
    }

    /// A pass without work: marks between passes would take a feature that browsers lack.
    fn mark(&self, encoder: &mut CommandEncoder, index: u32) {
        encoder.begin_compute_pass(&ComputePassDescriptor {
            label: Some("mark"),
            timestamp_writes: Some(ComputePassTimestampWrites {
                query_set: &self.marks,
                beginning_of_pass_write_index: None,
                end_of_pass_write_index: Some(index),
            }),
        });
    }
}

/// A time on its way from the device.
#[derive(Debug)]
pub struct Lap {
    marks: Readback,
    seconds_a_tick: f64,
}

impl Lap {
    /// Seconds between the marks; see [`Readback::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn seconds(self) -> Result<f64> {
        let marks: Vec<u64> = self.marks.read().await?;
        Ok(marks[1].saturating_sub(marks[0]) as f64 * self.seconds_a_tick)
    }
}
