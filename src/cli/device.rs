//! `--device auto|cpu|gpu|NAME`: where a bind is computed, and what is said about it.

use skinbind::bind::{self, Bound, Params};
#[cfg(feature = "gpu")]
use skinbind::bind_gpu::{GpuKernels, bind_where_it_fits};
use skinbind::model::{Mesh, Skeleton};
use skinbind::progress::Progress;
use skinbind::{Error, Result};

#[cfg(feature = "gpu")]
use super::screen;

/// Where to compute.
pub enum Device {
    Cpu,
    #[cfg(feature = "gpu")]
    Gpu {
        context: Box<skinbind::gpu::Context>,
        /// Whether the CPU may do what the device cannot hold.
        may_fall_back: bool,
    },
}

impl Device {
    /// The device of this name. `auto` is a hardware GPU, or the CPU where there is none; `gpu` takes a software adapter
    /// too; any other text is a part of an adapter's name. Unless `quiet`, what is not as one might think is said on stderr.
    /// Drivers are not asked where there is nothing to ask for: loading them takes longer than a small bind.
    ///
    /// # Errors
    /// [`Error::Device`] where there is no such device, with those there are.
    pub fn open(name: &str, has_gpu_stages: bool, quiet: bool) -> Result<Self> {
        match name {
            "cpu" => Ok(Device::Cpu),
            "auto" if !has_gpu_stages => Ok(Device::Cpu),
            _ => Self::open_adapter(name, quiet),
        }
    }

    #[cfg(not(feature = "gpu"))]
    fn open_adapter(name: &str, _quiet: bool) -> Result<Self> {
        match name {
            "auto" => Ok(Device::Cpu),
            _ => Err(Error::Device {
                name: name.to_owned(),
                what: "this program was built without GPU support; there are auto and cpu".into(),
            }),
        }
    }

    #[cfg(feature = "gpu")]
    fn open_adapter(name: &str, quiet: bool) -> Result<Self> {
        use skinbind::gpu::{Context, Selector};
        let selector = Selector::from(name);
        let note = |text: &str| {
            if !quiet {
                screen::say(&format!("note: {text}"));
            }
        };
        if selector == Selector::Auto && !may_have_hardware() {
            note("no hardware GPU; computing on the CPU");
            return Ok(Device::Cpu);
        }
        match Context::headless_blocking(&selector) {
            Ok(context) => {
                if context.is_software() {
                    let name = &context.info().name;
                    note(&format!("\"{name}\" is a software adapter: right results, but slower than --device cpu"));
                }
                let may_fall_back = selector == Selector::Auto;
                Ok(Device::Gpu { context: Box::new(context), may_fall_back })
            }
            Err(error) if selector == Selector::Auto => {
                match error {
                    Error::Device { .. } => note("no hardware GPU; computing on the CPU"),
                    error => note(&format!("{error}; computing on the CPU")),
                }
                Ok(Device::Cpu)
            }
            Err(Error::Device { name, what }) if listed().iter().all(|adapter| *adapter != name) => {
                let there: Vec<String> = listed().iter().map(|adapter| format!("\"{adapter}\"")).collect();
                let what = what.split(';').next().unwrap_or_default();
                let there =
                    if there.is_empty() { "only cpu".to_owned() } else { format!("cpu and {}", there.join(", ")) };
                Err(Error::Device { name, what: format!("{what}; there is {there}") })
            }
            Err(error) => Err(error),
        }
    }

    /// Binds there.
    ///
    /// # Errors
    /// Those of [`bind::bind`], [`Error::Device`], and [`Error::Limit`] where the device does not hold it and was named.
    #[cfg_attr(not(feature = "gpu"), expect(unused_variables, reason = "only GPUs give notice"))]
    pub fn bind(
        &self,
        mesh: &Mesh,
        skeleton: &Skeleton,
        params: &Params,
        quiet: bool,
        progress: Progress,
    ) -> Result<Bound> {
        match self {
            Device::Cpu => bind::bind(mesh, skeleton, params, progress),
            #[cfg(feature = "gpu")]
            Device::Gpu { context, may_fall_back } => {
                let (bound, limit) = skinbind::gpu::block_on(&context.device, async {
                    let mut kernels = GpuKernels::new(&context.device, &context.queue).await?;
                    if *may_fall_back {
                        bind_where_it_fits(&mut kernels, mesh, skeleton, params, progress).await
                    } else {
                        let bound = bind::bind_on_gpu(&mut kernels, mesh, skeleton, params, progress).await?;
                        Ok((bound, None))
                    }
                })?;
                context.check()?;
                if let Some(limit) = limit.filter(|_| !quiet) {
                    screen::say(&format!("note: {limit}; computed on the CPU"));
                } else if !quiet && bound.report.device == "cpu" {
                    screen::say("note: this method has no GPU stage; computed on the CPU");
                }
                Ok(bound)
            }
        }
    }
}

/// Whether the system may have a GPU: on Linux the drivers of all of them have files here.
#[cfg(feature = "gpu")]
fn may_have_hardware() -> bool {
    const FILES: [&str; 5] = ["/dev/dri", "/dev/nvidiactl", "/dev/dxg", "/dev/kgsl-3d0", "/dev/mali0"];
    !cfg!(target_os = "linux") || FILES.iter().any(|file| std::path::Path::new(file).exists())
}

/// The names of all adapters.
#[cfg(feature = "gpu")]
fn listed() -> Vec<String> {
    pollster::block_on(skinbind::gpu::adapters()).into_iter().map(|adapter| adapter.name).collect()
}
