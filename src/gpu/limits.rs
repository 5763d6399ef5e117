//! What devices can hold: the limits that this crate works within, and those that adapters have.

use glam::UVec3;
use serde::Serialize;
use wgpu::Limits;

use crate::error::{Error, Result};
use crate::gpu::context::{all_adapters, rank};
use crate::model::MIN_RESOLUTION;

/// Most workgroups along one dimension of a dispatch, on every device.
pub const MAX_WORKGROUPS: u32 = 65_535;

/// The limits that every kernel of this crate works within: wgpu's defaults (128 MiB a binding, 256 MiB a buffer, 8
/// storage buffers a stage, 256 invocations and 16 KiB a workgroup), which browsers guarantee. No feature is required.
pub fn required_limits() -> Limits {
    Limits::defaults()
}

/// The limits to ask an adapter for: the required ones, and larger buffers and bindings where the adapter has them.
///
/// # Errors
/// [`Error::Limit`] with the first required limit that the adapter does not reach.
pub fn limits_of(name: &str, adapter: &Limits) -> Result<Limits> {
    let required = required_limits();
    let mut missing = None;
    required.check_limits_with_fail_fn(adapter, true, |limit, needed, allowed| {
        missing.get_or_insert((limit, needed, allowed));
    });
    if let Some((limit, needed, allowed)) = missing {
        return Err(Error::Limit {
            what: format!("device \"{name}\": {limit}"),
            needed: needed.to_string(),
            limit: allowed.to_string(),
            advice: "take another device, or --device cpu".to_string(),
        });
    }
    Ok(Limits {
        max_buffer_size: adapter.max_buffer_size,
        max_storage_buffer_binding_size: adapter.max_storage_buffer_binding_size,
        ..required
    })
}

/// The error for what does not fit into a buffer or binding of the device, with the largest resolution that would.
///
/// `dims` are the voxels along each axis of the grid whose contents take `needed` bytes, growing with its volume.
pub(crate) fn too_large(device: &str, what: String, needed: u64, limit: u64, dims: UVec3) -> Error {
    Error::Limit {
        what,
        needed: format!("{needed} bytes in one binding"),
        limit: format!("{limit} bytes on \"{device}\""),
        advice: advice(dims, (limit as f64 / needed as f64).cbrt()),
    }
}

/// What to do where a grid must shrink by this factor along each axis.
pub(crate) fn advice(dims: UVec3, factor: f64) -> String {
    // A grid has two free layers and a middle voxel beyond its resolution. A hundredth is for rows that are rounded up.
    let shrink = factor.min(1.0) * 0.99;
    let fits = (f64::from(dims.max_element().saturating_sub(3)) * shrink) as u32;
    if fits < MIN_RESOLUTION {
        "take --device cpu".to_string()
    } else {
        format!("take a resolution of {fits} or less, or --device cpu")
    }
}

/// An adapter and what it allows.
#[derive(Debug, Clone, Serialize)]
pub struct AdapterReport {
    pub name: String,
    /// vulkan, metal, dx12 or webgpu.
    pub backend: String,
    /// discrete, integrated, virtual, software or other.
    pub kind: &'static str,
    pub driver: String,
    /// Whether it runs on the CPU: right results, but slower than the CPU path.
    pub software: bool,
    /// Largest buffer and largest part of one that a kernel sees at once, in bytes.
    pub buffer_bytes: u64,
    pub binding_bytes: u64,
    /// Why it cannot be used, if so.
    pub unusable: Option<String>,
}

/// All adapters, those that [`crate::gpu::Selector::Gpu`] prefers first.
pub async fn adapters() -> Vec<AdapterReport> {
    let mut found = all_adapters().await;
    found.sort_by_key(|adapter| rank(&adapter.get_info()));
    found
        .iter()
        .map(|adapter| {
            let (info, limits) = (adapter.get_info(), adapter.limits());
            AdapterReport {
                backend: info.backend.to_string(),
                kind: match info.device_type {
                    wgpu::DeviceType::DiscreteGpu => "discrete",
                    wgpu::DeviceType::IntegratedGpu => "integrated",
                    wgpu::DeviceType::VirtualGpu => "virtual",
                    wgpu::DeviceType::Cpu => "software",
                    wgpu::DeviceType::Other => "other",
                },
                driver: format!("{} {}", info.driver, info.driver_info).trim().to_string(),
                software: info.device_type == wgpu::DeviceType::Cpu,
                buffer_bytes: limits.max_buffer_size,
                binding_bytes: limits.max_storage_buffer_binding_size,
                unusable: limits_of(&info.name, &limits).err().map(|error| error.to_string()),
                name: info.name,
            }
        })
        .collect()
}
