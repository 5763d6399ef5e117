//! Weights on the GPU against the formulas in f64, on the same labels: all of them before the cap, and the rules of the cap.

#[path = "common/mod.rs"]
mod common;
#[path = "common/gpu.rs"]
mod gpu_tests;

use std::process::ExitCode;

use common::scenes::{bones, center, scene, shape, skeleton};
use common::shapes::Random;
use glam::{DVec3, UVec3};
use gpu_tests::{changed, gather, parts};
use skinbind::crawl::gpu::{CrawlKernels, GpuLabels, HostLabels, Seeds};
use skinbind::crawl::{Neighbors, reference::voxels};
use skinbind::gpu::{Context, Readback, block_on, catch_blocking};
use skinbind::influence::gpu::{InfluenceJob, InfluenceKernels, JointFormat, Surface, WGSL};
use skinbind::influence::{Falloff, Limits, Stats, reference};
use skinbind::model::{Skeleton, Weights};
use skinbind::progress::Progress;
use skinbind::voxelize::Voxels;
use skinbind::voxelize::gpu::GpuBricks;

/// Weights add up to 1, and the relative error of each is at most twice that of a raw one, so a weight w moves by at most
/// 2 w (1 - w) <= 1/2 of it. A raw weight is a ratio of lengths to a power: at most 4 roundings of 2^-24 for each of two
/// terms, 2.5 units in the last place (2^-23) of a division, times the power: 13 x 2^-24 x power. For powers up to 16:
/// 1.24e-5, half of which is 6.2e-6. Sums over eight corners add 8 x 2^-24. A power that is not whole is pow, which WGSL
/// makes exp2(y log2 x) with log2 good to 2^-21: y ln 2 2^-21 = 5.3e-6 at most on top.
const BOUND: f64 = 1e-5;

fn main() -> ExitCode {
    gpu_tests::run(&[
        ("all_weights_equal_the_formula_in_f64", all_weights_equal_the_formula_in_f64),
        ("many_labels_too", many_labels_too),
        ("cap_threshold_and_sum_obey_the_rules", cap_threshold_and_sum_obey_the_rules),
        ("a_reached_corner_without_share_serves", a_reached_corner_without_share_serves),
        ("positions_that_nothing_reaches_stay_empty", positions_that_nothing_reaches_stay_empty),
        ("windows_change_nothing", windows_change_nothing),
        ("steps_and_formats_change_nothing", steps_and_formats_change_nothing),
        ("broken_weights_are_found", broken_weights_are_found),
    ])
}

/// Labels of a scene on the device and back from it.
struct Scene {
    v: Voxels,
    skeleton: Skeleton,
    bricks: GpuBricks,
    labels: GpuLabels,
    host: HostLabels,
    positions: Vec<DVec3>,
}

impl Scene {
    fn new(context: &Context, v: Voxels, skeleton: Skeleton, labels: usize, positions: Vec<DVec3>) -> Self {
        Self::within(context, v, skeleton, labels, positions, u64::MAX)
    }

    /// With so many bytes of labels in one binding.
    fn within(
        context: &Context,
        v: Voxels,
        skeleton: Skeleton,
        labels: usize,
        positions: Vec<DVec3>,
        binding: u64,
    ) -> Self {
        let (device, queue) = (&context.device, &context.queue);
        let used = vec![true; skeleton.len()];
        let seeds = Seeds::find(&v.grid, &v.solid, &skeleton, &used, labels, Progress::NONE).expect("seeds");
        let bricks = gather(context, &v.solid);
        let labels = block_on(device, async {
            let kernels = CrawlKernels::new(device, seeds.per_voxel()).await?.with_binding(binding);
            kernels.run(device, queue, &bricks, &seeds, Neighbors::TwentySix, Progress::NONE).await
        })
        .expect("crawls");
        let mut encoder = device.create_command_encoder(&Default::default());
        let host = labels.record_readback(device, &mut encoder, &bricks);
        queue.submit([encoder.finish()]);
        let host = host.read_blocking().expect("labels");
        Self { v, skeleton, bricks, labels, host, positions }
    }

    fn random(context: &Context, kind: usize, labels: usize, count: usize) -> Self {
        let mut random = Random(40 + kind as u64);
        let v = shape(kind, UVec3::new(18, 14, 13), &mut random);
        let skeleton = bones(&mut random, &v.grid, count);
        // In solid voxels, some of them right at centres and between them.
        let solid: Vec<UVec3> = voxels(v.grid.dims()).filter(|&at| v.solid.get(at)).collect();
        let positions = (0..600)
            .map(|i| {
                let at = solid[random.below(solid.len() as u64) as usize];
                let off = match i % 4 {
                    0 => (random.in_cube() * 2.0).round() * 0.5,
                    1 => DVec3::X * (random.unit() - 0.5),
                    _ => random.in_cube() * 0.5,
                };
                v.grid.to_world(at.as_dvec3() + 0.5 + off * 0.999)
            })
            .collect();
        Self::new(context, v, skeleton, labels, positions)
    }

    fn diagonal(&self) -> f64 {
        self.v.grid.dims().as_dvec3().length() * self.v.grid.voxel()
    }

    fn surface(&self) -> Surface<'_> {
        Surface { grid: &self.v.grid, positions: &self.positions, diagonal: self.diagonal() }
    }

    fn run(
        &self,
        context: &Context,
        kernels: &InfluenceKernels,
        start: impl FnOnce() -> skinbind::Result<InfluenceJob>,
    ) -> (Weights, Stats) {
        let (device, queue) = (&context.device, &context.queue);
        catch_blocking(device, "test", || {
            let mut job = start()?;
            while !job.is_done() {
                let mut encoder = device.create_command_encoder(&Default::default());
                assert_eq!(job.record(kernels, &mut encoder, 1)?, 1);
                queue.submit([encoder.finish()]);
            }
            assert_eq!(job.fraction(), 1.0);
            block_on(device, job.finish()?.read(device, queue))
        })
        .expect("weighs")
    }

    fn uncut(&self, context: &Context, wgsl: &[&str], falloff: &Falloff) -> Weights {
        let kernels = InfluenceKernels::from_wgsl(&context.device, self.labels.per_voxel(), wgsl);
        let start = || kernels.start_uncut(&context.device, &self.bricks, &self.labels, self.surface(), falloff);
        self.run(context, &kernels, start).0
    }

    fn cut(&self, context: &Context, falloff: &Falloff, limits: &Limits) -> (Weights, Stats) {
        let kernels = InfluenceKernels::from_wgsl(&context.device, self.labels.per_voxel(), &WGSL);
        let (device, surface) = (&context.device, self.surface());
        self.run(context, &kernels, || {
            kernels.start(device, &self.bricks, &self.labels, surface, falloff, limits, JointFormat::U32)
        })
    }

    /// The raw weights of a position in f64, one a bone, adding up to 1.
    fn raw(&self, position: DVec3, falloff: &Falloff) -> Vec<f64> {
        let bones = self.skeleton.len();
        let raw = reference::sampled(position, &self.host, &self.v.grid, bones, self.diagonal(), falloff);
        let total: f64 = raw.iter().sum();
        // Where nothing reaches all are 0, and stay so.
        raw.iter().map(|weight| if total > 0.0 { weight / total } else { 0.0 }).collect()
    }

    /// The largest difference of all weights before the cap.
    fn worst(&self, found: &Weights, falloff: &Falloff) -> f64 {
        assert_eq!(found.len(), self.positions.len());
        let mut worst = 0.0f64;
        for (vertex, position) in self.positions.iter().enumerate() {
            for (bone, expected) in self.raw(*position, falloff).into_iter().enumerate() {
                let off = (found.weight(vertex, bone as u32) - expected).abs();
                assert!(off.is_finite(), "position {vertex}, bone {bone}");
                worst = worst.max(off);
            }
        }
        worst
    }
}

const FALLOFFS: [Falloff; 6] = [
    Falloff { smoothing: 0.1, power: 2.0 },
    Falloff { smoothing: 0.0, power: 1.0 },
    Falloff { smoothing: 1.0, power: 4.0 },
    Falloff { smoothing: 0.3, power: 2.5 },
    Falloff { smoothing: 0.7, power: 0.5 },
    Falloff { smoothing: 0.0, power: 16.0 },
];

fn all_weights_equal_the_formula_in_f64(context: &Context) {
    for kind in [3, 8, 17, 22, 28] {
        let scene = Scene::random(context, kind, 5, 12);
        for falloff in &FALLOFFS {
            let worst = scene.worst(&scene.uncut(context, &WGSL, falloff), falloff);
            assert!(worst <= BOUND, "shape {kind}, {falloff:?}: {worst}");
            assert!(worst > 0.0, "shape {kind}: f32 cannot be exact");
        }
    }
}

fn many_labels_too(context: &Context) {
    let scene = Scene::random(context, 3, 17, 60);
    let falloff = Falloff::default();
    let worst = scene.worst(&scene.uncut(context, &WGSL, &falloff), &falloff);
    assert!(worst <= BOUND, "{worst}");
}

/// Where no two influences are so near that rounding may choose between them, the results are those of f64. What is cut
/// off makes errors larger by 1 / (share that is kept).
fn cap_threshold_and_sum_obey_the_rules(context: &Context) {
    let scene = Scene::random(context, 22, 5, 12);
    let falloff = Falloff::default();
    for limits in
        [Limits::default(), Limits { max_influences: 2, threshold: 0.2 }, Limits { max_influences: 1, threshold: 0.0 }]
    {
        let (found, stats) = scene.cut(context, &falloff, &limits);
        assert_eq!(stats.influences_considered, limits.max_influences + 1);
        let mut undecided = 0;
        for (vertex, position) in scene.positions.iter().enumerate() {
            let raw = scene.raw(*position, &falloff);
            let row = found.of(vertex);
            let sum: f64 = row.iter().map(|i| i.weight).sum();
            assert!((sum - 1.0).abs() < 1e-12 && row.len() <= limits.max_influences, "{row:?}");
            assert!(row.windows(2).all(|w| w[0].weight >= w[1].weight), "{row:?}");
            let mut sorted = raw.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let capped: f64 = sorted.iter().take(limits.max_influences).sum();
            let near = |a: f64, b: f64| (a - b).abs() <= 2.0 * BOUND;
            let tie = near(sorted[limits.max_influences - 1], sorted[limits.max_influences]);
            if tie || sorted.iter().any(|&w| near(w, limits.threshold * capped)) && limits.threshold > 0.0 {
                undecided += 1;
                continue;
            }
            let expected = reference::finished(&raw, &limits, &scene.skeleton);
            assert_eq!(row.len(), expected.len(), "{row:?}, {expected:?}");
            for influence in &expected {
                let off = (found.weight(vertex, influence.joint) - influence.weight).abs();
                assert!(off <= 2.0 * BOUND / capped, "{row:?}, {expected:?}");
            }
        }
        assert!(undecided < scene.positions.len() / 10, "{undecided} near-ties leave too little to compare");
        assert!(stats.largest_pruned_share > 0.0 && stats.largest_pruned_share < 1.0);
        assert!((2..=limits.max_influences + 1).contains(&stats.max_influences_before_cap));
    }
}

/// A position in the plane of a layer that no bone reaches, one layer away from one that is reached.
fn a_reached_corner_without_share_serves(context: &Context) {
    let v = scene(UVec3::new(17, 5, 5), |v| v.x != 8);
    let p = center(&v.grid, UVec3::new(3, 3, 3));
    let at = |x: f64, y: f64| v.grid.to_world(DVec3::new(x, y, 3.5));
    // Right at the centre of an empty voxel: the corners on the high side, solid but not reached, have no share, nor has the
    // low side; then between two such.
    let positions = vec![at(7.5, 3.5), at(7.5, 3.75), at(7.75, 3.5)];
    let scene = Scene::new(context, v, skeleton(&[(p, p), (p + DVec3::X, p)]), 2, positions);
    let falloff = Falloff::default();
    assert!(scene.worst(&scene.uncut(context, &WGSL, &falloff), &falloff) <= BOUND);
}

fn positions_that_nothing_reaches_stay_empty(context: &Context) {
    let v = scene(UVec3::new(17, 5, 5), |v| v.x < 6 || v.x > 10);
    let p = center(&v.grid, UVec3::new(3, 3, 3));
    let positions = [3.5, 14.5, -500.0, 3.25].map(|x| v.grid.to_world(DVec3::new(x, 3.5, 3.5))).to_vec();
    let scene = Scene::new(context, v, skeleton(&[(p, p), (p + DVec3::X, p)]), 2, positions);
    let (found, _) = scene.cut(context, &Falloff::default(), &Limits::default());
    assert_eq!(found.iter().map(<[_]>::len).collect::<Vec<_>>(), [2, 0, 0, 2]);
}

fn windows_change_nothing(context: &Context) {
    let mut random = Random(31);
    let v = shape(22, UVec3::new(12, 9, 44), &mut random);
    let skeleton = bones(&mut random, &v.grid, 9);
    let solid: Vec<UVec3> = voxels(v.grid.dims()).filter(|&at| v.solid.get(at)).collect();
    // Right on the borders of layers, and beyond the grid, too.
    let beyond = [-1e3, 0.25, 50.0, 1e3].map(|z| v.grid.to_world(DVec3::new(6.0, 4.0, z)));
    let at = |i: usize, off: DVec3| v.grid.to_world(solid[i * 7 % solid.len()].as_dvec3() + 0.5 + off);
    let inside = (0..900).map(|i| at(i, if i % 3 == 0 { DVec3::ZERO } else { random.in_cube() * 0.5 }));
    let positions: Vec<DVec3> = beyond.into_iter().chain(inside).collect();
    let scene = |binding| Scene::within(context, v.clone(), skeleton.clone(), 5, positions.clone(), binding);
    let (whole, falloff) = (scene(u64::MAX), Falloff::default());
    assert_eq!(whole.labels.windows().len(), 1);
    let expected = whole.uncut(context, &WGSL, &falloff);
    assert!(whole.worst(&expected, &falloff) <= BOUND);
    for (binding, windows) in [(64 << 10, 5), (96 << 10, 3)] {
        let split = scene(binding);
        assert_eq!((split.labels.windows().len(), &split.host), (windows, &whole.host));
        assert!(split.uncut(context, &WGSL, &falloff) == expected, "{windows} windows");
        assert_eq!(split.cut(context, &falloff, &Limits::default()), whole.cut(context, &falloff, &Limits::default()));
        for (from, to) in [
            ("position.low_z >> 2u", "position.low_z >> 3u"),
            ("0, i32(params.extent.z) - 1", "-1, i32(params.extent.z) - 1"),
            (
                "return more_labels[(voxel - params.window.second_voxel)",
                "return more_labels[(voxel - params.window.first_voxel)",
            ),
            ("labels[(voxel - params.window.first_voxel)", "labels[voxel"),
        ] {
            let text = changed(&WGSL, from, to);
            assert!(split.uncut(context, &parts(&text), &falloff) != expected, "{from} -> {to} went unnoticed");
        }
    }
}

fn steps_and_formats_change_nothing(context: &Context) {
    let scene = Scene::random(context, 8, 5, 9);
    let (device, queue) = (&context.device, &context.queue);
    let (falloff, limits) = (Falloff::default(), Limits { max_influences: 3, threshold: 0.01 });
    let expected = scene.cut(context, &falloff, &limits);
    for step in [64, 320, 599] {
        let kernels = InfluenceKernels::from_wgsl(device, 5, &WGSL).with_step(step);
        let start = || {
            kernels.start(device, &scene.bricks, &scene.labels, scene.surface(), &falloff, &limits, JointFormat::U16)
        };
        assert_eq!(scene.run(context, &kernels, start), expected, "{step} positions a step");
    }
    // As a renderer sees them: four places a position, two bytes a joint.
    let (joints, weights) = catch_blocking(device, "test", || {
        let kernels = InfluenceKernels::from_wgsl(device, 5, &WGSL);
        let mut job = kernels.start(
            device,
            &scene.bricks,
            &scene.labels,
            scene.surface(),
            &falloff,
            &limits,
            JointFormat::U16,
        )?;
        let mut encoder = device.create_command_encoder(&Default::default());
        job.record(&kernels, &mut encoder, usize::MAX)?;
        let found = job.finish()?;
        assert_eq!((found.places(), found.len(), found.joints().size()), (4, 600, 600 * 8));
        let mut whole =
            |buffer: &skinbind::wgpu::Buffer| Readback::record(device, &mut encoder, buffer, 0, buffer.size());
        let (joints, weights) = (whole(found.joints()), whole(found.weights()));
        queue.submit([encoder.finish()]);
        Ok((joints.read_blocking::<[u16; 4]>()?, weights.read_blocking::<[f32; 4]>()?))
    })
    .expect("weighs");
    for (vertex, row) in expected.0.iter().enumerate() {
        let sum: f32 = weights[vertex].iter().sum();
        let whole = if row.is_empty() { 0.0 } else { 1.0 };
        assert!((sum - whole).abs() < 4.0 * f32::EPSILON, "{:?}", weights[vertex]);
        for place in 0..4 {
            let (joint, weight) = row.get(place).map_or((0, 0.0), |i| (i.joint, i.weight));
            assert_eq!(u32::from(joints[vertex][place]), joint);
            assert!((f64::from(weights[vertex][place]) - weight).abs() < 4.0 * f64::from(f32::EPSILON));
        }
    }
}

fn broken_weights_are_found(context: &Context) {
    let scene = Scene::random(context, 22, 5, 12);
    let falloff = Falloff { smoothing: 0.3, power: 3.0 };
    assert!(scene.worst(&scene.uncut(context, &WGSL, &falloff), &falloff) <= BOUND);
    for (from, to) in [
        ("params.smoothing * l)", "params.smoothing * l * l)"),
        ("1.0 / 65536.0", "1.0 / 65500.0"),
        ("result *= square", "result *= square * square"),
        ("raw[i] += weight", "raw[i] = weight"),
        ("sqrt(dot(away, away))", "dot(away, away)"),
        ("from_high, from_low, side == vec3(1u)", "from_low, from_high, side == vec3(1u)"),
        ("share.x * share.y * share.z", "share.x * share.y"),
        ("label_at(voxels[c], j)", "label_at(voxels[c], 0u)"),
        ("JOINT_OF + ranks[i]", "JOINT_OF + (ranks[i] ^ 1u)"),
    ] {
        let text = changed(&WGSL, from, to);
        let off = scene.worst(&scene.uncut(context, &parts(&text), &falloff), &falloff);
        assert!(off > BOUND, "{from} -> {to} went unnoticed: {off}");
    }
}
