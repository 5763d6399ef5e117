//! Reading buffers back: a copy into a mappable buffer, recorded like any other work, and its contents when they are there.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytemuck::Pod;
use wgpu::{Buffer, BufferUsages, CommandEncoder, Device};

use crate::error::{Error, Result};

/// Bytes on their way from the device.
#[derive(Debug)]
pub struct Readback {
    device: Device,
    staging: Buffer,
}

impl Readback {
    /// Records the copy of `size` bytes at `offset` of a buffer that has the usage `COPY_SRC`. Both must be multiples of 4.
    pub fn record(device: &Device, encoder: &mut CommandEncoder, source: &Buffer, offset: u64, size: u64) -> Self {
        let staging = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("read-back"),
            size,
            usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        encoder.copy_buffer_to_buffer(source, offset, &staging, 0, size);
        Self { device: device.clone(), staging }
    }

    /// The values, once the encoder was submitted and the device has come that far. On native targets someone must
    /// poll the device meanwhile; a browser does so by itself.
    ///
    /// # Errors
    /// [`Error::Device`] where the device was lost.
    pub async fn read<T: Pod>(self) -> Result<Vec<T>> {
        let mapped = Mapped::default();
        let done = mapped.clone();
        self.staging.map_async(wgpu::MapMode::Read, .., move |result| done.set(result.is_ok()));
        if !mapped.await {
            return Err(self.failed("the read-back failed; the device was lost or is out of memory".to_string()));
        }
        let view = self.staging.get_mapped_range(..).map_err(|error| self.failed(error.to_string()))?;
        Ok(bytemuck::pod_collect_to_vec(&view[..]))
    }

    /// [`Readback::read`], waiting for the device.
    ///
    /// # Errors
    /// As there.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read_blocking<T: Pod>(self) -> Result<Vec<T>> {
        let device = self.device.clone();
        let mut reading = std::pin::pin!(self.read());
        // The first poll asks for the mapping, the wait fulfils it.
        if let Poll::Ready(result) = reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
        crate::gpu::wait(&device)?;
        pollster::block_on(reading)
    }

    fn failed(&self, what: String) -> Error {
        Error::Device { name: self.device.adapter_info().name, what }
    }
}

/// A future of whether a mapping succeeded, set from wgpu's callback.
#[derive(Clone, Default)]
struct Mapped(Arc<Mutex<(Option<bool>, Option<Waker>)>>);

impl Mapped {
    fn set(&self, ok: bool) {
        let mut state = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        state.0 = Some(ok);
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }
}

impl Future for Mapped {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, context: &mut Context) -> Poll<bool> {
        let mut state = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match state.0 {
            Some(ok) => Poll::Ready(ok),
            None => {
                state.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
