//! The gpu floor: choosing devices, errors instead of panics, folded dispatches, slabs, read-back.

#[path = "common/gpu.rs"]
mod gpu_tests;

use std::process::ExitCode;

use glam::UVec3;
use skinbind::Error;
use skinbind::gpu::{
    BitBuffer, Context, Module, Readback, Selector, adapters, block_on, catch_blocking, finished, required_limits,
    storage,
};
use skinbind::wgpu;

fn main() -> ExitCode {
    gpu_tests::run(&[
        ("the_selector_decides", the_selector_decides),
        ("adapters_are_reported", adapters_are_reported),
        ("device_errors_are_caught", device_errors_are_caught),
        ("shader_faults_are_caught", shader_faults_are_caught),
        ("errors_that_nobody_caught_are_kept", errors_that_nobody_caught_are_kept),
        ("a_lost_device_is_an_error", a_lost_device_is_an_error),
        ("folded_dispatches_number_all_invocations", folded_dispatches_number_all_invocations),
        ("a_read_back_can_be_awaited", a_read_back_can_be_awaited),
        ("slabs_cover_the_grid", slabs_cover_the_grid),
        ("too_large_a_grid_is_refused", too_large_a_grid_is_refused),
    ])
}

fn another(context: &Context) -> Context {
    Context::headless_blocking(&Selector::Name(context.info().name.clone())).expect("opens once more")
}

fn the_selector_decides(context: &Context) {
    let name = context.info().name.to_uppercase();
    assert_eq!(
        Context::headless_blocking(&Selector::from(name.as_str())).expect("found").info().name,
        context.info().name
    );
    let error = Context::headless_blocking(&"no such adapter".into()).expect_err("refuses");
    assert!(matches!(&error, Error::Device { name, .. } if name == "no such adapter"), "{error}");
    // Auto never takes a software adapter.
    match Context::headless_blocking(&Selector::Auto) {
        Ok(auto) => assert!(!auto.is_software()),
        Err(error) => {
            assert!(matches!(error, Error::Device { .. }), "{error}");
            assert!(context.is_software());
        }
    }
}

fn adapters_are_reported(context: &Context) {
    let reports = block_on(&context.device, async { Ok(adapters().await) }).expect("no errors");
    let own = reports.iter().find(|report| report.name == context.info().name).expect("the device in use");
    assert_eq!((own.unusable.as_deref(), own.software), (None, context.is_software()));
    assert!(own.binding_bytes >= required_limits().max_storage_buffer_binding_size);
    assert_eq!(context.device.limits().max_storage_buffer_binding_size, own.binding_bytes);
    // What is not about the size of buffers stays at the limits that every device has.
    assert_eq!(context.device.limits().max_storage_buffers_per_shader_stage, 8);
    assert_eq!(context.device.limits().max_compute_workgroup_storage_size, 16 << 10);
}

fn device_errors_are_caught(context: &Context) {
    let device = &context.device;
    let too_large = device.limits().max_buffer_size + 4;
    let error =
        catch_blocking(device, "a large buffer", || Ok(storage(device, "large", too_large))).expect_err("fails");
    assert!(error.to_string().contains("a large buffer: Validation Error"), "{error}");
    let error = catch_blocking(device, "work", || Err::<(), _>(Error::NoFaces)).expect_err("fails");
    assert!(matches!(error, Error::NoFaces));
    catch_blocking(device, "a small buffer", || Ok(storage(device, "small", 4))).expect("works");
}

fn shader_faults_are_caught(context: &Context) {
    let fault = "@compute @workgroup_size(1) fn main() { undefined(); }";
    let error = catch_blocking(&context.device, "a shader", || Ok(Module::new(&context.device, "faulty", &[fault])));
    assert!(error.expect_err("fails").to_string().contains("undefined"));
}

fn errors_that_nobody_caught_are_kept(context: &Context) {
    let own = another(context);
    own.check().expect("nothing yet");
    storage(&own.device, "large", own.device.limits().max_buffer_size + 4);
    assert!(matches!(own.check().expect_err("kept"), Error::Device { .. }));
}

fn a_lost_device_is_an_error(context: &Context) {
    let own = another(context);
    let buffer = storage(&own.device, "buffer", 16);
    let mut encoder = own.device.create_command_encoder(&Default::default());
    let reading = Readback::record(&own.device, &mut encoder, &buffer, 0, 16);
    own.device.destroy();
    own.queue.submit([encoder.finish()]);
    assert!(matches!(reading.read_blocking::<u32>().expect_err("lost"), Error::Device { .. }));
    assert!(matches!(own.check().expect_err("lost"), Error::Device { .. }));
}

const NUMBERS: [&str; 2] = [
    include_str!("../shaders/common/dispatch.wgsl"),
    "@group(0) @binding(0) var<storage, read_write> seen: array<u32>;
    @compute @workgroup_size(WORKGROUP)
    fn number(
        @builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32,
    ) {
        let index = flat_index(workgroup, workgroups, local);
        if index < arrayLength(&seen) {
            seen[index] += index + 1u;
        }
    }",
];

/// What each invocation of 70,000 workgroups of 2 writes under its number.
fn numbers(context: &Context, wgsl: &[&str]) -> Vec<u32> {
    let device = &context.device;
    catch_blocking(device, "numbers", || {
        let kernel = Module::new(device, "numbers", wgsl).kernel(device, "number", 2, &[]);
        let seen = storage(device, "seen", 140_000 * 4);
        let bind = kernel.bind(device, &[(0, seen.as_entire_binding())]);
        let mut encoder = device.create_command_encoder(&Default::default());
        kernel.dispatch(&mut encoder.begin_compute_pass(&Default::default()), &bind, 139_999)?;
        let seen = Readback::record(device, &mut encoder, &seen, 0, seen.size());
        context.queue.submit([encoder.finish()]);
        seen.read_blocking()
    })
    .expect("runs")
}

fn folded_dispatches_number_all_invocations(context: &Context) {
    let expected: Vec<u32> = (1..=140_000).collect();
    assert!(numbers(context, &NUMBERS) == expected);
    // Without the fold most numbers are missing.
    let broken = NUMBERS[0].replace("workgroup.y * workgroups.x + ", "");
    assert_ne!(broken, NUMBERS[0]);
    assert!(numbers(context, &[&broken, NUMBERS[1]]) != expected);
}

fn a_read_back_can_be_awaited(context: &Context) {
    let (device, queue) = (&context.device, &context.queue);
    let buffer = storage(device, "buffer", 16);
    queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&[1u32, 2, 3, 4]));
    let mut encoder = device.create_command_encoder(&Default::default());
    let part = Readback::record(device, &mut encoder, &buffer, 4, 8);
    queue.submit([encoder.finish()]);
    let read = block_on(device, async {
        finished(queue).await;
        part.read::<u32>().await
    })
    .expect("reads");
    assert_eq!(read, [2, 3]);
}

fn slabs_cover_the_grid(context: &Context) {
    let alignment = u64::from(context.device.limits().min_storage_buffer_offset_alignment);
    for (dims, slices) in [((64, 32, 63), 12), ((65, 3, 200), 99), ((10, 7, 300), 150), ((64, 32, 63), 63)] {
        let dims = UVec3::from(dims);
        let slice = BitBuffer::bytes(dims.with_z(1));
        let bits = BitBuffer::new(&context.device, "bits", dims, slices * slice).expect("fits");
        for halo in [0, 1] {
            let slabs = bits.slabs(halo).expect("fits");
            assert_eq!(slabs.len() == 1, slices >= u64::from(dims.z));
            let mut next = 0;
            for slab in slabs {
                let (end, bound_end) = (slab.first + slab.slices, slab.bound_first + slab.bound_slices);
                assert!(slab.first == next && slab.slices > 0 && slab.first % 4 == 0, "{slab:?}");
                assert!(u64::from(slab.bound_slices) <= slices && bound_end <= dims.z, "{slab:?}");
                assert_eq!(u64::from(slab.bound_first) * slice % alignment, 0, "{slab:?}");
                // The neighbours that the halo asks for, where there are any.
                assert!(slab.bound_first <= slab.first.saturating_sub(halo), "{slab:?}");
                assert!(bound_end >= (end + halo).min(dims.z), "{slab:?}");
                next = end;
            }
            assert_eq!(next, dims.z);
        }
    }
}

fn too_large_a_grid_is_refused(context: &Context) {
    let side = 1 << 12;
    let limit = context.device.limits().max_buffer_size;
    let depth = (limit / (side * side / 8)) as u32 + 1;
    let dims = UVec3::new(side as u32, side as u32, depth);
    let error = BitBuffer::new(&context.device, "bits", dims, limit).expect_err("refuses");
    assert!(matches!(error, Error::Limit { .. }) && error.to_string().contains(&limit.to_string()), "{error}");
    let fits = error.to_string().split("a resolution of ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    let fits: u32 = fits.expect("a resolution");
    // That resolution fits, and not by much.
    let scaled = |resolution: f64| (dims.as_dvec3() * (resolution / f64::from(dims.max_element() - 3))).as_uvec3() + 3;
    let bytes = |resolution: u32| BitBuffer::bytes(scaled(resolution.into()));
    assert!(bytes(fits) <= limit && bytes(fits + fits / 20) > limit, "{fits}: {} bytes of {limit}", bytes(fits));
    // A binding that holds not even the slices of one step.
    let bits = BitBuffer::new(&context.device, "bits", UVec3::splat(64), 1024).expect("fits");
    assert!(matches!(bits.slabs(0).expect_err("refuses"), Error::Limit { .. }));
    assert_eq!(wgpu::Limits::defaults().max_buffer_size, required_limits().max_buffer_size);
}
