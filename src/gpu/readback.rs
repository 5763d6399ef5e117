//! Reading buffers back: a copy into a mappable buffer, recorded like any other work, and its contents when they are there.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytemuck::Pod;
use wgpu::{Buffer, BufferUsages, CommandEncoder, Device, Queue};

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
        let mapped = Signal::default();
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
        block_on(&device, self.read())
    }

    /// Whether there are no bytes to read.
    pub fn is_empty(&self) -> bool {
        self.staging.size() == 0
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    fn failed(&self, what: String) -> Error {
        Error::Device { name: self.device.adapter_info().name, what }
    }
}

/// Waits until the device has done all that was submitted to the queue so far. On native targets someone must poll the
/// device meanwhile, as [`block_on`] does.
pub async fn finished(queue: &Queue) {
    let signal = Signal::default();
    let done = signal.clone();
    queue.on_submitted_work_done(move || done.set(true));
    signal.await;
}

/// Runs a future that waits for nothing but this device, polling both in turn: the blocking twin of everything async here.
///
/// # Errors
/// Those of the future, and [`Error::Device`] where the device cannot be waited for.
#[cfg(not(target_arch = "wasm32"))]
pub fn block_on<T>(device: &Device, future: impl Future<Output = Result<T>>) -> Result<T> {
    let mut future = std::pin::pin!(future);
    loop {
        // The future asks the device for something, the wait fulfils it.
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
        if let Err(error) = device.poll(wgpu::PollType::wait_indefinitely()) {
            return Err(Error::Device { name: device.adapter_info().name, what: error.to_string() });
        }
    }
}

/// A future of whether something succeeded, set from a callback of wgpu.
#[derive(Clone, Default)]
struct Signal(Arc<Mutex<(Option<bool>, Option<Waker>)>>);

impl Signal {
    fn set(&self, ok: bool) {
        let mut state = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        state.0 = Some(ok);
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }
}

impl Future for Signal {
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
