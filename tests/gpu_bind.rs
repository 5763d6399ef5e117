//! A whole bind on the GPU against the CPU's: the same report, and weights within 1e-5 where no cap chooses.

#[path = "common/mod.rs"]
mod common;
#[path = "common/gpu.rs"]
mod gpu_tests;

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Mutex;

use common::shapes::{Random, Shape, capsule, cuboid, soup, sphere, u_bend};
use glam::DVec3;
use skinbind::Error;
use skinbind::bind::{Bound, Method, Params, bind, bind_on_gpu};
use skinbind::bind_gpu::{GpuKernels, bind_where_it_fits};
use skinbind::crawl::Neighbors;
use skinbind::gpu::{Context, Selector, block_on};
use skinbind::influence::{Falloff, Limits};
use skinbind::model::{Bone, Mesh, Skeleton, Weights};
use skinbind::progress::{Progress, Stage};
use skinbind::voxelize::Interior;

/// Weights that differ by rounding alone: 1e-5 for f32, and for distances in steps of 2^-16 voxel instead of 2^-32: a step
/// is off by at most 2.8e-6 of its length, the start by 2^-17 voxel, a weight by power / 4 times the relative error of a
/// distance, which is 2 / 4 x (2.8e-6 + 7.6e-6 / d) at the default power. Distances that matter are half a voxel and more.
const BOUND: f64 = 2e-5;

fn main() -> ExitCode {
    gpu_tests::run(&[
        ("closed_shapes_bind_as_on_the_cpu", closed_shapes_bind_as_on_the_cpu),
        ("open_and_broken_shapes_too", open_and_broken_shapes_too),
        ("random_meshes_too", random_meshes_too),
        ("what_no_bone_reaches_is_filled", what_no_bone_reaches_is_filled),
        ("the_default_cap_gives_rows_of_the_same_kind", the_default_cap_gives_rows_of_the_same_kind),
        ("methods_without_voxels_work_too", methods_without_voxels_work_too),
        ("it_reports_and_stops", it_reports_and_stops),
        ("what_does_not_fit_is_said", what_does_not_fit_is_said),
        ("small_bindings_change_nothing", small_bindings_change_nothing),
        ("the_cpu_binds_what_does_not_fit", the_cpu_binds_what_does_not_fit),
    ])
}

fn on_gpu(context: &Context, mesh: &Mesh, skeleton: &Skeleton, params: &Params) -> skinbind::Result<Bound> {
    with_progress(context, mesh, skeleton, params, Progress::NONE)
}

fn with_progress(
    context: &Context,
    mesh: &Mesh,
    skeleton: &Skeleton,
    params: &Params,
    progress: Progress,
) -> skinbind::Result<Bound> {
    block_on(&context.device, async {
        let mut kernels = GpuKernels::new(&context.device, &context.queue).await?;
        bind_on_gpu(&mut kernels, mesh, skeleton, params, progress).await
    })
}

/// Bones at random in the mesh' box, few enough that all are kept.
fn bones(random: &mut Random, mesh: &Mesh, count: usize) -> Skeleton {
    let bounds = mesh.bounds();
    let mut point = || bounds.center() + bounds.extent() * 0.45 * random.in_cube();
    let bone =
        |i: usize, head, tail| Bone { name: format!("b{}", (i * 7) % 11), head, tail, parent: None, deform: true };
    Skeleton::new((0..count).map(|i| bone(i, point(), point())).collect()).expect("skeleton")
}

/// All bones are kept at every vertex, so that nothing depends on which of two equal ones is.
fn uncut() -> Params {
    let limits = Limits { max_influences: 8, threshold: 0.0 };
    Params { method: Method::Geodesic, resolution: Some(40), limits, ..Params::default() }
}

fn difference(a: &Weights, b: &Weights, bones: usize) -> f64 {
    assert_eq!(a.len(), b.len());
    let off = |v: usize, j: u32| (a.weight(v, j) - b.weight(v, j)).abs();
    (0..a.len()).flat_map(|v| (0..bones as u32).map(move |j| off(v, j))).fold(0.0, f64::max)
}

fn binds_as_on_the_cpu(context: &Context, name: &str, mesh: &Mesh, skeleton: &Skeleton, params: &Params) {
    let expected = bind(mesh, skeleton, params, Progress::NONE).expect("binds");
    let found = on_gpu(context, mesh, skeleton, params).expect("binds");
    assert_eq!(found.report.device, context.info().name);
    let seconds: Vec<_> = found.report.seconds.0.iter().map(|(stage, _)| *stage).collect();
    assert_eq!(seconds, ["prepare", "voxelize", "crawl", "influence", "total"]);
    // All but what must differ.
    let mut same = found.report.clone();
    (same.device, same.seconds) = (expected.report.device.clone(), expected.report.seconds.clone());
    let cut = (same.stats.largest_pruned_share - expected.report.stats.largest_pruned_share).abs();
    assert!(cut < BOUND, "{name}: {cut}");
    same.stats.largest_pruned_share = expected.report.stats.largest_pruned_share;
    assert_eq!(same, expected.report, "{name}");
    let worst = difference(&found.weights, &expected.weights, skeleton.len());
    assert!(worst <= BOUND, "{name}: {worst}");
    // The comparison notices another falloff.
    let other = Params { falloff: Falloff { power: params.falloff.power * 1.001, ..params.falloff }, ..params.clone() };
    let other = bind(mesh, skeleton, &other, Progress::NONE).expect("binds");
    assert!(difference(&found.weights, &other.weights, skeleton.len()) > BOUND, "{name}");
}

fn closed_shapes_bind_as_on_the_cpu(context: &Context) {
    let mut random = Random(5);
    for (name, shape) in [
        ("box", cuboid(DVec3::ZERO, DVec3::new(1.0, 0.7, 0.4), 6)),
        ("sphere", sphere(1.0, 16)),
        ("capsule", capsule(0.3, 2.0, 8)),
        ("u-bend", u_bend(0.3, 0.2, 1.5, 8)),
    ] {
        let mesh = shape.mesh();
        let skeleton = bones(&mut random, &mesh, 5);
        binds_as_on_the_cpu(context, name, &mesh, &skeleton, &uncut());
        binds_as_on_the_cpu(context, name, &mesh, &skeleton, &Params { neighbors: Neighbors::Six, ..uncut() });
    }
}

fn open_and_broken_shapes_too(context: &Context) {
    let mut random = Random(6);
    for (name, shape) in [
        ("an open sphere", sphere(1.0, 16).keep(|p| p.y < 0.8)),
        ("an inside out capsule", capsule(0.3, 2.0, 8).flip(|_| true)),
        ("loose triangles", soup(&mut random, 60)),
    ] {
        let mesh = shape.mesh();
        let skeleton = bones(&mut random, &mesh, 4);
        for interior in [Interior::Auto, Interior::Flood] {
            binds_as_on_the_cpu(context, name, &mesh, &skeleton, &Params { interior, ..uncut() });
        }
    }
}

/// Spheres, boxes and capsules of random sizes beside and in each other.
fn random_meshes_too(context: &Context) {
    for seed in 0..6 {
        let mut random = Random(seed);
        let mut shape = Shape::default();
        for _ in 0..3 {
            let (size, at) = (0.2 + random.unit(), random.in_cube());
            let part = match random.below(3) {
                0 => sphere(size, 8),
                1 => capsule(0.4 * size, size, 4),
                _ => cuboid(DVec3::ZERO, DVec3::splat(size), 2),
            };
            shape = shape.and(&part.map(|p| p + at));
        }
        let mesh = shape.mesh();
        let skeleton = bones(&mut random, &mesh, 6);
        let params = Params { resolution: Some(24 + seed as u32 * 5), ..uncut() };
        binds_as_on_the_cpu(context, &format!("seed {seed}"), &mesh, &skeleton, &params);
    }
}

fn what_no_bone_reaches_is_filled(context: &Context) {
    let far = sphere(0.5, 8).map(|p| p + DVec3::X * 4.0);
    let mesh = sphere(1.0, 8).and(&far).mesh();
    let bone = |name: &str, x: f64| Bone {
        name: name.into(),
        head: DVec3::new(x, -0.2, 0.0),
        tail: DVec3::new(x, 0.2, 0.1),
        parent: None,
        deform: true,
    };
    let skeleton = Skeleton::new(vec![bone("right", 0.3), bone("left", -0.4)]).expect("skeleton");
    binds_as_on_the_cpu(context, "an island", &mesh, &skeleton, &uncut());
    let found = on_gpu(context, &mesh, &skeleton, &uncut()).expect("binds");
    assert_eq!(found.report.unreached_vertices, far.points.len());
    assert!(found.weights.iter().all(|row| !row.is_empty()));
}

/// With many bones and few influences, near-ties may go either way; the shape of the result may not.
fn the_default_cap_gives_rows_of_the_same_kind(context: &Context) {
    let mesh = capsule(0.3, 2.0, 10).mesh();
    let skeleton = bones(&mut Random(8), &mesh, 11);
    let params = Params { method: Method::Geodesic, resolution: Some(48), ..Params::default() };
    let (found, expected) = (
        on_gpu(context, &mesh, &skeleton, &params).expect("binds"),
        bind(&mesh, &skeleton, &params, Progress::NONE).expect("binds"),
    );
    let mut off: Vec<f64> = (0..found.weights.len())
        .map(|v| {
            let sum: f64 = found.weights.of(v).iter().map(|i| i.weight).sum();
            assert!((sum - 1.0).abs() < 1e-12);
            let off = |j: u32| (found.weights.weight(v, j) - expected.weights.weight(v, j)).abs();
            (0..11).map(off).fold(0.0, f64::max)
        })
        .collect();
    off.sort_by(f64::total_cmp);
    // The cap makes errors larger by 1 / (share that is kept), here at most 4.
    assert!(off[off.len() * 99 / 100] <= 4.0 * BOUND, "99 of 100 vertices: {}", off[off.len() * 99 / 100]);
    assert_eq!(found.report.stats.max_influences_before_cap, expected.report.stats.max_influences_before_cap);
}

fn methods_without_voxels_work_too(context: &Context) {
    let mesh = capsule(0.3, 2.0, 6).mesh();
    let skeleton = bones(&mut Random(2), &mesh, 3);
    for method in [Method::Heat, Method::Envelope, Method::Closest] {
        let params = Params { method, ..Params::default() };
        let found = on_gpu(context, &mesh, &skeleton, &params).expect("binds");
        assert_eq!(found.weights, bind(&mesh, &skeleton, &params, Progress::NONE).expect("binds").weights);
        assert_eq!(found.report.device, "cpu");
    }
}

fn it_reports_and_stops(context: &Context) {
    let mesh = u_bend(0.3, 0.2, 1.5, 8).mesh();
    let skeleton = bones(&mut Random(3), &mesh, 5);
    let (seen, params) = (Mutex::new(Vec::new()), uncut());
    let run = |stop_at: Option<Stage>| {
        seen.lock().expect("no panic").clear();
        let update = |stage, fraction: f64| {
            assert!((0.0..=1.0).contains(&fraction), "{stage:?} {fraction}");
            seen.lock().expect("no panic").push(stage);
            if stop_at == Some(stage) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        with_progress(context, &mesh, &skeleton, &params, Progress::new(&update))
    };
    assert!(run(None).is_ok());
    let mut stages = seen.lock().expect("no panic").clone();
    assert!(stages.is_sorted(), "{stages:?}");
    stages.dedup();
    assert_eq!(stages, [Stage::Prepare, Stage::Voxelize, Stage::Interior, Stage::Crawl, Stage::Influence]);
    for stage in stages {
        assert!(matches!(run(Some(stage)), Err(Error::Cancelled)), "{stage:?}");
        assert_eq!(seen.lock().expect("no panic").last(), Some(&stage));
    }
}

fn what_does_not_fit_is_said(context: &Context) {
    let mesh = sphere(1.0, 8).mesh();
    let mut skeleton = bones(&mut Random(3), &mesh, 2).bones().to_vec();
    (skeleton[0].head, skeleton[0].tail) = (DVec3::X * 1e6, DVec3::X * 1e6);
    let skeleton = Skeleton::new(skeleton).expect("skeleton");
    let error = on_gpu(context, &mesh, &skeleton, &uncut()).expect_err("too far");
    assert!(matches!(&error, Error::Limit { .. }) && error.to_string().contains("--device cpu"), "{error}");
}

/// The same adapter with less memory.
fn within(context: &Context, binding: u64, buffer: u64) -> Context {
    let selector = Selector::Name(context.info().name.clone());
    block_on(&context.device, Context::headless_within(&selector, binding, buffer)).expect("opens once more")
}

/// A bar along z, so that there are many layers of bricks.
fn bar() -> (Mesh, Skeleton) {
    let mesh = cuboid(DVec3::ZERO, DVec3::new(0.8, 0.6, 3.0), 12).mesh();
    let skeleton = bones(&mut Random(12), &mesh, 5);
    (mesh, skeleton)
}

/// A device whose bindings hold only a part of the labels gives the same weights, to the last bit.
fn small_bindings_change_nothing(context: &Context) {
    let (mesh, skeleton) = bar();
    let params = Params { resolution: Some(64), ..uncut() };
    let expected = on_gpu(context, &mesh, &skeleton, &params).expect("binds");
    // As many labels as there are bones.
    let label_bytes = expected.report.solid_voxels * 5 * 8;
    let small = within(context, 128 << 10, 1 << 20);
    assert!(label_bytes > 4 * (128 << 10), "{label_bytes}");
    let found = on_gpu(&small, &mesh, &skeleton, &params).expect("binds");
    small.check().expect("no errors");
    assert!(found.weights == expected.weights);
    assert_eq!(found.report.stats, expected.report.stats);
    let other = Params { falloff: Falloff { power: 2.001, ..params.falloff }, ..params };
    assert!(on_gpu(&small, &mesh, &skeleton, &other).expect("binds").weights != expected.weights);
}

fn the_cpu_binds_what_does_not_fit(context: &Context) {
    let (mesh, skeleton) = bar();
    let params = Params { resolution: Some(64), ..uncut() };
    let expected = bind(&mesh, &skeleton, &params, Progress::NONE).expect("binds");
    let where_it_fits = |context: &Context| {
        block_on(&context.device, async {
            let mut kernels = GpuKernels::new(&context.device, &context.queue).await?;
            bind_where_it_fits(&mut kernels, &mesh, &skeleton, &params, Progress::NONE).await
        })
        .expect("binds")
    };
    // Too small for labels; for the grid of bricks; for bits.
    for (binding, buffer) in [(48 << 10, 1 << 20), (4 << 10, 1 << 20), (1 << 20, 4 << 10)] {
        let small = within(context, binding, buffer);
        let error = on_gpu(&small, &mesh, &skeleton, &params).expect_err("does not fit").to_string();
        let limit = [binding, buffer].map(|bytes: u64| format!("{bytes} bytes"));
        assert!(limit.iter().any(|limit| error.contains(limit)) && error.contains("resolution of"), "{error}");
        let (found, limit) = where_it_fits(&small);
        assert_eq!((found.report.device.as_str(), limit.expect("a notice").to_string()), ("cpu", error));
        assert!(found.weights == expected.weights);
        small.check().expect("no errors");
    }
    // What fits stays on the device, and what is wrong is not tried again elsewhere.
    let (found, limit) = where_it_fits(context);
    assert_eq!((found.report.device.as_str(), limit.is_none()), (context.info().name.as_str(), true));
    let wrong = Params { resolution: Some(1), ..params.clone() };
    let error = block_on(&context.device, async {
        let mut kernels = GpuKernels::new(&context.device, &context.queue).await?;
        bind_where_it_fits(&mut kernels, &mesh, &skeleton, &wrong, Progress::NONE).await
    });
    assert!(matches!(error, Err(Error::Parameter { .. })));
}
