//! A device for programs that have none, and errors of the device as errors of this crate.

use std::sync::{Arc, Mutex};

use wgpu::{Adapter, AdapterInfo, Device, DeviceType, ErrorFilter, Queue};

use crate::error::{Error, Result};
use crate::gpu::limits::limits_of;

/// Which adapter to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The fastest kind of hardware there is: discrete, then integrated, then virtual. Never a software adapter, which
    /// is slower than this crate's CPU path.
    Auto,
    /// Hardware as for `Auto`, and a software adapter where there is none; [`Context::is_software`] tells.
    Gpu,
    /// The best adapter whose name holds this text, upper or lower case; a software adapter too.
    Name(String),
}

impl From<&str> for Selector {
    /// `auto`, `gpu`, or a part of an adapter's name.
    fn from(text: &str) -> Self {
        match text {
            "auto" => Selector::Auto,
            "gpu" => Selector::Gpu,
            name => Selector::Name(name.to_string()),
        }
    }
}

impl Selector {
    fn text(&self) -> &str {
        match self {
            Selector::Auto => "auto",
            Selector::Gpu => "gpu",
            Selector::Name(name) => name,
        }
    }

    fn accepts(&self, info: &AdapterInfo) -> bool {
        match self {
            Selector::Auto => info.device_type != DeviceType::Cpu,
            Selector::Gpu => true,
            Selector::Name(name) => info.name.to_lowercase().contains(&name.to_lowercase()),
        }
    }
}

/// A device and its queue, opened without a window.
#[derive(Debug)]
pub struct Context {
    pub device: Device,
    pub queue: Queue,
    info: AdapterInfo,
    /// The first thing that went wrong outside of [`catch`], device loss above all.
    fault: Arc<Mutex<Option<String>>>,
}

impl Context {
    /// Opens the adapter that the selector names, with [`crate::gpu::required_limits`] or better and no features but
    /// timestamps, where there are any.
    ///
    /// # Errors
    /// [`Error::Device`] where no adapter fits or it cannot be opened, [`Error::Limit`] where it has less than the
    /// required limits.
    pub async fn headless(selector: &Selector) -> Result<Self> {
        Self::headless_within(selector, u64::MAX, u64::MAX).await
    }

    /// [`Context::headless`], but with bindings and buffers of at most so many bytes even where the adapter has more, which
    /// may be less than the required limits: what does not fit is [`Error::Limit`] then.
    ///
    /// # Errors
    /// As there.
    pub async fn headless_within(selector: &Selector, binding: u64, buffer: u64) -> Result<Self> {
        let failed = |what: String| Error::Device { name: selector.text().to_string(), what };
        let mut adapters = all_adapters().await;
        adapters.retain(|adapter| selector.accepts(&adapter.get_info()));
        let Some(adapter) = adapters.into_iter().min_by_key(|adapter| rank(&adapter.get_info())) else {
            return Err(failed("no such adapter; `skinbind devices` lists those there are".to_string()));
        };
        let info = adapter.get_info();
        let limits = limits_of(&info.name, &adapter.limits())?;
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                label: Some("skinbind"),
                required_features: adapter.features() & wgpu::Features::TIMESTAMP_QUERY,
                required_limits: wgpu::Limits {
                    max_storage_buffer_binding_size: limits.max_storage_buffer_binding_size.min(binding),
                    max_buffer_size: limits.max_buffer_size.min(buffer),
                    ..limits
                },
                ..Default::default()
            })
            .await
            .map_err(|error| Error::Device { name: info.name.clone(), what: error.to_string() })?;
        let fault = Arc::new(Mutex::new(None));
        let lost = fault.clone();
        device.set_device_lost_callback(move |reason, text| {
            note(&lost, format!("the device was lost ({reason:?}): {text}"));
        });
        let uncaptured = fault.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| note(&uncaptured, error.to_string())));
        Ok(Self { device, queue, info, fault })
    }

    /// [`Context::headless`], waiting for the answer.
    ///
    /// # Errors
    /// As there.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn headless_blocking(selector: &Selector) -> Result<Self> {
        pollster::block_on(Self::headless(selector))
    }

    /// What the driver says about the adapter.
    pub fn info(&self) -> &AdapterInfo {
        &self.info
    }

    /// Whether the adapter runs on the CPU: right results, but slower than this crate's own CPU path.
    pub fn is_software(&self) -> bool {
        self.info.device_type == DeviceType::Cpu
    }

    /// Whether the device is still there and no error went by outside of [`catch`].
    ///
    /// # Errors
    /// [`Error::Device`] with the first thing that went wrong.
    pub fn check(&self) -> Result<()> {
        // The driver's news arrive when the device is polled. That fails only where there is something to wait for.
        let _ = self.device.poll(wgpu::PollType::Poll);
        match &*self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            Some(what) => Err(Error::Device { name: self.info.name.clone(), what: what.clone() }),
            None => Ok(()),
        }
    }
}

/// Keeps the first fault: later ones mostly follow from it.
fn note(fault: &Mutex<Option<String>>, what: String) {
    fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(what);
}

/// All adapters of all backends that this build knows.
pub(crate) async fn all_adapters() -> Vec<Adapter> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
    instance.enumerate_adapters(wgpu::Backends::all()).await
}

/// Fastest kinds first.
pub(crate) fn rank(info: &AdapterInfo) -> u8 {
    match info.device_type {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    }
}

/// Runs work that creates or submits things on a device, and turns the device's errors into this crate's.
///
/// `what` names the work in the error. The scopes are closed when `work` returns, before the first await, so the
/// future may be awaited later.
///
/// # Errors
/// Those of `work`, and [`Error::Device`] where the device ran out of memory, found a fault or was lost.
pub async fn catch<T>(device: &Device, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let memory = device.push_error_scope(ErrorFilter::OutOfMemory);
    let internal = device.push_error_scope(ErrorFilter::Internal);
    let validation = device.push_error_scope(ErrorFilter::Validation);
    let result = work();
    // Inner scopes first.
    let (validation, internal, memory) = (validation.pop(), internal.pop(), memory.pop());
    let failed = |text: String| Error::Device { name: device.adapter_info().name, what: format!("{what}: {text}") };
    if memory.await.is_some() {
        return Err(failed("out of memory; take a lower resolution, or --device cpu".to_string()));
    }
    if let Some(error) = internal.await.or(validation.await) {
        return Err(failed(error.to_string()));
    }
    result
}

/// [`catch`], waiting for the answer.
///
/// # Errors
/// As there.
#[cfg(not(target_arch = "wasm32"))]
pub fn catch_blocking<T>(device: &Device, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    pollster::block_on(catch(device, what, work))
}
