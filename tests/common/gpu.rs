//! Tests that need a GPU adapter: without one they show as ignored, and as failed where SKINBIND_REQUIRE_GPU is 1.
//! SKINBIND_DEVICE names the adapter; software adapters count.

// Each test file is a program of its own and uses a part of these.
#![allow(dead_code)]

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use skinbind::gpu::{BitBuffer, Context, Selector, catch_blocking};
use skinbind::model::BitGrid;
use skinbind::voxelize::gpu::{BrickKernels, GpuBricks};

/// A test on a device.
pub type Test = fn(&Context);

/// Runs the tests, all on one device.
pub fn run(tests: &[(&str, Test)]) -> ExitCode {
    let arguments = Arguments::from_args();
    let selector = Selector::from(std::env::var("SKINBIND_DEVICE").as_deref().unwrap_or("gpu"));
    let required = std::env::var("SKINBIND_REQUIRE_GPU").is_ok_and(|value| value == "1");
    let context = Context::headless_blocking(&selector).map(Arc::new);
    match &context {
        Ok(context) => eprintln!("device: {} ({})", context.info().name, context.info().driver_info),
        Err(error) => eprintln!("no device: {error}"),
    }
    let context = context.map_err(|error| error.to_string());
    let trials = tests
        .iter()
        .map(|&(name, test)| {
            let (context, ignored) = (context.clone(), context.is_err() && !required);
            Trial::test(name, move || {
                let context = context.map_err(Failed::from)?;
                test(&context);
                context.check().map_err(|error| Failed::from(error.to_string()))
            })
            .with_ignored_flag(ignored)
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The most bytes that the device binds at once.
pub fn whole(context: &Context) -> u64 {
    context.device.limits().max_storage_buffer_binding_size
}

/// Solid voxels as bricks on the device.
pub fn gather(context: &Context, solid: &BitGrid) -> GpuBricks {
    let (device, queue) = (&context.device, &context.queue);
    catch_blocking(device, "test", || {
        let kernels = BrickKernels::new(device);
        let bits = BitBuffer::upload(device, queue, "solid", solid, whole(context))?;
        let mut encoder = device.create_command_encoder(&Default::default());
        let mut job = kernels.count(device, &mut encoder, &bits)?;
        queue.submit([encoder.finish()]);
        let totals = job.totals_blocking()?;
        let mut encoder = device.create_command_encoder(&Default::default());
        let bricks = job.write(&kernels, &mut encoder, &bits, totals)?;
        queue.submit([encoder.finish()]);
        Ok(bricks)
    })
    .expect("bricks")
}

/// The parts of a shader with one piece of text changed where it first stands in a part, to see whether a test notices.
pub fn changed(wgsl: &[&str], from: &str, to: &str) -> Vec<String> {
    let text: Vec<String> = wgsl.iter().map(|part| part.replacen(from, to, 1)).collect();
    assert!(parts(&text) != wgsl, "the shader does not contain {from:?}");
    text
}

/// The parts as the kernels take them.
pub fn parts(text: &[String]) -> Vec<&str> {
    text.iter().map(String::as_str).collect()
}
