//! The crawl on the GPU against its definition in the same whole numbers, bit for bit, and against f64 within rounding.

#[path = "common/mod.rs"]
mod common;
#[path = "common/gpu.rs"]
mod gpu_tests;

use std::process::ExitCode;

use common::scenes::{Fixed, bones, center, filled, first_difference, scene, shape, skeleton, voxels};
use common::shapes::Random;
use glam::{DVec3, UVec3};
use gpu_tests::{changed, gather, parts};
use skinbind::Error;
use skinbind::crawl::gpu::{Counters, CrawlKernels, HostLabels, Seeds, WGSL};
use skinbind::crawl::{Label, Neighbors, reference};
use skinbind::gpu::{Context, block_on, catch_blocking};
use skinbind::model::{Bone, Skeleton};
use skinbind::progress::Progress;
use skinbind::voxelize::Voxels;

const STEPS: Fixed = Fixed { bits: 16 };
/// Rounds after which a broken shader is given up. No scene here needs a tenth of them.
const MOST_ROUNDS: usize = 4000;

fn main() -> ExitCode {
    gpu_tests::run(&[
        ("every_shape_bit_for_bit", every_shape_bit_for_bit),
        ("random_scenes_bit_for_bit", random_scenes_bit_for_bit),
        ("many_labels_of_many_bones", many_labels_of_many_bones),
        ("windows_change_nothing", windows_change_nothing),
        ("broken_windows_are_found", broken_windows_are_found),
        ("a_serpentine_across_bricks", a_serpentine_across_bricks),
        ("as_many_rounds_a_record_as_one_likes", as_many_rounds_a_record_as_one_likes),
        ("agrees_with_f64_within_rounding", agrees_with_f64_within_rounding),
        ("a_full_box_has_the_closed_form", a_full_box_has_the_closed_form),
        ("islands_stay_unreached", islands_stay_unreached),
        ("too_far_is_said", too_far_is_said),
        ("a_broken_crawl_is_found", a_broken_crawl_is_found),
        ("wrong_order_of_calls_is_refused", wrong_order_of_calls_is_refused),
    ])
}

fn seeds(v: &Voxels, s: &Skeleton, labels: usize) -> skinbind::Result<Seeds> {
    Seeds::find(&v.grid, &v.solid, s, &vec![true; s.len()], labels, Progress::NONE)
}

/// The labels that the GPU finds, `rounds` rounds a record, and what it took; none where it does not come to rest.
fn labels_with(
    context: &Context,
    kernels: &CrawlKernels,
    v: &Voxels,
    seeds: &Seeds,
    neighbors: Neighbors,
    rounds: usize,
) -> skinbind::Result<Option<(HostLabels, Counters)>> {
    labels_within(context, kernels, v, seeds, neighbors, rounds, MOST_ROUNDS)
}

/// The same with at most so many rounds.
fn labels_within(
    context: &Context,
    kernels: &CrawlKernels,
    v: &Voxels,
    seeds: &Seeds,
    neighbors: Neighbors,
    rounds: usize,
    most: usize,
) -> skinbind::Result<Option<(HostLabels, Counters)>> {
    let (device, queue) = (&context.device, &context.queue);
    let bricks = gather(context, &v.solid);
    catch_blocking(device, "test", || {
        let mut job = kernels.start(device, &bricks, seeds, neighbors)?;
        for _ in 0..most / rounds {
            let mut encoder = device.create_command_encoder(&Default::default());
            job.record(kernels, &mut encoder, rounds)?;
            queue.submit([encoder.finish()]);
            if !job.status_blocking()? {
                assert!((0.0..1.0).contains(&job.fraction()));
                continue;
            }
            let counters = job.counters();
            assert_eq!((job.fraction(), counters.waiting), (1.0, 0));
            let labels = job.finish()?;
            let mut encoder = device.create_command_encoder(&Default::default());
            let labels = labels.record_readback(device, &mut encoder, &bricks);
            queue.submit([encoder.finish()]);
            return Ok(Some((labels.read_blocking()?, counters)));
        }
        Ok(None)
    })
}

fn run(context: &Context, kernels: &CrawlKernels, v: &Voxels, s: &Skeleton, neighbors: Neighbors) -> HostLabels {
    let seeds = seeds(v, s, kernels.labels()).expect("seeds");
    labels_with(context, kernels, v, &seeds, neighbors, 12).expect("crawls").expect("comes to rest").0
}

fn kernels(context: &Context, labels: usize) -> CrawlKernels {
    CrawlKernels::from_wgsl(&context.device, labels, &WGSL).expect("kernels")
}

fn equals_definition(context: &Context, kernels: &CrawlKernels, v: &Voxels, s: &Skeleton, neighbors: Neighbors) {
    let found = run(context, kernels, v, s, neighbors);
    let expected = STEPS.labels(v, s, kernels.labels(), neighbors);
    let (bones, labels) = (s.len(), kernels.labels());
    assert_eq!(first_difference(v, |v| found.at(v), &expected), None, "{neighbors:?}, {labels} labels, {bones} bones");
}

fn every_shape_bit_for_bit(context: &Context) {
    let mut random = Random(1);
    for labels in [2, 5] {
        let kernels = kernels(context, labels);
        for kind in 0..30 {
            let size = [UVec3::new(16, 13, 11), UVec3::new(20, 7, 17)][kind % 2];
            let v = shape(kind, size, &mut random);
            let s = bones(&mut random, &v.grid, [5, 9, 24][kind % 3]);
            for neighbors in [Neighbors::TwentySix, Neighbors::Six] {
                equals_definition(context, &kernels, &v, &s, neighbors);
            }
        }
    }
}

fn random_scenes_bit_for_bit(context: &Context) {
    let kernels = kernels(context, 4);
    for seed in 100..140 {
        let mut random = Random(seed);
        let side = |random: &mut Random| 1 + random.below(22) as u32;
        let size = UVec3::new(16 + random.below(12) as u32, side(&mut random), side(&mut random));
        let v = shape(random.below(30) as usize, size, &mut random);
        let count = 4 + random.below(12) as usize;
        let s = bones(&mut random, &v.grid, count);
        equals_definition(context, &kernels, &v, &s, Neighbors::TwentySix);
    }
}

/// All the labels that there can be, and one alone.
fn many_labels_of_many_bones(context: &Context) {
    let mut random = Random(3);
    let v = shape(3, UVec3::new(18, 14, 12), &mut random);
    for labels in [9, 10, 17] {
        let s = bones(&mut random, &v.grid, 40);
        equals_definition(context, &kernels(context, labels), &v, &s, Neighbors::TwentySix);
    }
    let s = bones(&mut random, &v.grid, 1);
    let found = {
        let seeds = seeds(&v, &s, 5).expect("seeds");
        assert_eq!(seeds.per_voxel(), 1);
        labels_with(context, &kernels(context, 1), &v, &seeds, Neighbors::Six, 12).expect("crawls").expect("rests").0
    };
    assert_eq!(first_difference(&v, |v| found.at(v), &STEPS.labels(&v, &s, 1, Neighbors::Six)), None);
}

/// One way of hundreds of voxels that winds within bricks and from brick to brick.
fn serpentine() -> (Voxels, Skeleton) {
    let v = scene(UVec3::new(33, 29, 5), |v| v.y % 2 == 0 || v.x == if v.y % 4 == 1 { 0 } else { 35 });
    let s = skeleton(&[(center(&v.grid, UVec3::ONE), center(&v.grid, UVec3::ONE)), (DVec3::ZERO, DVec3::X)]);
    (v, s)
}

fn a_serpentine_across_bricks(context: &Context) {
    let (v, s) = serpentine();
    let kernels = kernels(context, 2);
    for neighbors in [Neighbors::Six, Neighbors::TwentySix] {
        equals_definition(context, &kernels, &v, &s, neighbors);
    }
}

/// Long along z, so that there are many layers of bricks: full, empty in between, and winding.
fn long_scenes(random: &mut Random) -> Vec<(Voxels, Skeleton)> {
    let size = UVec3::new(12, 9, 44);
    let mut scenes: Vec<Voxels> = [3, 11, 22, 28].map(|kind| shape(kind, size, random)).into();
    // Labels go to and fro along z, over the borders of all windows, and over a gap where there is nothing in some layers.
    scenes.push(scene(size, |v| v.x % 2 == 0 || v.z == if v.x % 4 == 1 { 1 } else { 43 }));
    scenes.push(scene(size, |v| v.z < 13 || v.z > 33 || v.x + v.y == 6));
    scenes
        .into_iter()
        .map(|v| {
            let s = bones(random, &v.grid, 9);
            (v, s)
        })
        .collect()
}

/// Bytes of the labels in one binding that make windows of few layers, for four labels a voxel; and how many windows there are.
const SMALL_BINDINGS: [(u64, usize); 3] = [(50 << 10, 5), (75 << 10, 3), (160 << 10, 1)];

fn windows_change_nothing(context: &Context) {
    let mut random = Random(21);
    let scenes = long_scenes(&mut random);
    for (binding, most) in SMALL_BINDINGS {
        let kernels = kernels(context, 4).with_binding(binding);
        let mut windows = 0;
        for (v, s) in &scenes {
            for neighbors in [Neighbors::TwentySix, Neighbors::Six] {
                equals_definition(context, &kernels, v, s, neighbors);
            }
            let bricks = gather(context, &v.solid);
            let seeds = seeds(v, s, 4).expect("seeds");
            let labels = block_on(&context.device, async {
                let (device, queue) = (&context.device, &context.queue);
                kernels.run(device, queue, &bricks, &seeds, Neighbors::TwentySix, Progress::NONE).await
            })
            .expect("crawls");
            assert!(labels.buffers().iter().all(|buffer| buffer.size() <= binding));
            windows = windows.max(labels.windows().len());
        }
        assert_eq!(windows, most, "{binding} bytes");
    }
    // Not even two layers.
    let (v, s) = &scenes[0];
    let kernels = kernels(context, 4).with_binding(8 << 10);
    let error = labels_with(context, &kernels, v, &seeds(v, s, 4).expect("seeds"), Neighbors::Six, 12);
    let error = error.expect_err("too thick").to_string();
    assert!(error.contains("eight slices") && error.contains("limit is 8192 bytes"), "{error}");
}

fn broken_windows_are_found(context: &Context) {
    let mut random = Random(22);
    let scenes = long_scenes(&mut random);
    let expected: Vec<_> = scenes.iter().map(|(v, s)| STEPS.labels(v, s, 4, Neighbors::TwentySix)).collect();
    let differs = |wgsl: &[&str]| {
        let kernels = CrawlKernels::from_wgsl(&context.device, 4, wgsl).expect("compiles").with_binding(50 << 10);
        scenes.iter().zip(&expected).any(|((v, s), expected)| {
            let seeds = seeds(v, s, 4).expect("seeds");
            match labels_within(context, &kernels, v, &seeds, Neighbors::TwentySix, 20, 200).expect("crawls") {
                Some((found, _)) => first_difference(v, |v| found.at(v), expected).is_some(),
                None => true,
            }
        })
    };
    assert!(!differs(&WGSL));
    for (from, to) in [
        ("|| !is_in_window(place.z)", ""),
        ("first += 8u", "first += 0u"),
        ("first -= 8u", "first -= 0u"),
        (
            "return more_labels[(voxel - params.window.second_voxel)",
            "return more_labels[(voxel - params.window.first_voxel)",
        ),
        ("LABELS + j] = label;\n    } else {", "LABELS + j] = label;\n    } else if j > 0u {"),
        ("return labels[(voxel - params.window.first_voxel)", "return labels[voxel"),
    ] {
        let text = changed(&WGSL, from, to);
        assert!(differs(&parts(&text)), "{from} -> {to} went unnoticed");
    }
}

fn as_many_rounds_a_record_as_one_likes(context: &Context) {
    let (v, s) = serpentine();
    let kernels = kernels(context, 2);
    let seeds = seeds(&v, &s, 2).expect("seeds");
    let with = |rounds| {
        let (labels, counters) =
            labels_with(context, &kernels, &v, &seeds, Neighbors::Six, rounds).expect("crawls").expect("comes to rest");
        assert!(counters.visits >= counters.changes && counters.changes > 0);
        labels
    };
    let expected = with(1);
    for rounds in [2, 7, MOST_ROUNDS] {
        assert_eq!(with(rounds), expected, "{rounds} rounds a record");
    }
}

/// Each of n steps is off by at most 2^-17 voxel, the start by 2^-17 + 2^-33. Sorted distances of the same bones move no
/// more than the distances do.
fn agrees_with_f64_within_rounding(context: &Context) {
    let mut random = Random(9);
    let kernels = kernels(context, 5);
    for kind in [2, 3, 7, 12, 17, 22, 27] {
        let v = shape(kind, UVec3::new(18, 12, 12), &mut random);
        let s = bones(&mut random, &v.grid, 12);
        let found = run(context, &kernels, &v, &s, Neighbors::TwentySix);
        let expected = reference::labels(&v.grid, &v.solid, &s, &vec![true; s.len()], 5, Neighbors::TwentySix);
        let longest = STEPS.longest(&v, &s, Neighbors::TwentySix);
        let bound = f64::from(longest + 1) * 2f64.powi(-17) + 2f64.powi(-33);
        let off = |scale: f64| {
            let mut worst = 0.0f64;
            for (voxel, expected) in reference::voxels(v.grid.dims()).zip(&expected) {
                let found: Vec<Label> = found.at(voxel).collect();
                assert_eq!(found.len(), expected.len(), "{voxel}");
                for (f, e) in found.iter().zip(expected) {
                    worst = worst.max((f.distance * scale - e.distance).abs());
                }
            }
            worst
        };
        assert!(off(1.0) <= bound, "shape {kind}: {} > {bound}", off(1.0));
        assert!(off(1.001) > bound, "the bound would pass a wrong length");
    }
}

fn a_full_box_has_the_closed_form(context: &Context) {
    let v = scene(UVec3::new(21, 21, 21), |_| true);
    let from = UVec3::new(4, 10, 7);
    let s = skeleton(&[(center(&v.grid, from), center(&v.grid, from)); 2]);
    let kernels = kernels(context, 2);
    let wrong = |neighbors, length: &dyn Fn([u32; 3]) -> u32| {
        let found = run(context, &kernels, &v, &s, neighbors);
        reference::voxels(v.grid.dims()).find(|&voxel| {
            let mut d = voxel.as_ivec3().wrapping_sub(from.as_ivec3()).abs().as_uvec3().to_array();
            d.sort_unstable();
            // Two bones at one place: the one whose name comes first is first.
            let expected = [[0, length(d)], [1, length(d)]];
            !found.raw(voxel).eq(expected)
        })
    };
    let chamfer = |[a, b, c]: [u32; 3]| a * 113_512 + (b - a) * 92_682 + (c - b) * 65_536;
    assert_eq!(wrong(Neighbors::TwentySix, &chamfer), None);
    assert_eq!(wrong(Neighbors::Six, &|[a, b, c]| (a + b + c) * 65_536), None);
    assert!(wrong(Neighbors::Six, &chamfer).is_some());
}

fn islands_stay_unreached(context: &Context) {
    let v = scene(UVec3::new(16, 4, 4), |v| v.x < 6 || v.x > 9);
    let p = center(&v.grid, UVec3::new(2, 2, 2));
    let found = run(context, &kernels(context, 2), &v, &skeleton(&[(p, p), (p, p)]), Neighbors::TwentySix);
    for (voxel, labels) in [([5, 2, 2], 2), ([12, 2, 2], 0), ([7, 2, 2], 0), ([1000; 3], 0)] {
        assert_eq!(found.at(UVec3::from_array(voxel)).count(), labels, "{voxel:?}");
    }
    // Nothing solid at all.
    let empty = voxels(v.grid, filled(&v.grid, |_| false));
    let found = run(context, &kernels(context, 2), &empty, &skeleton(&[(p, p), (p, p)]), Neighbors::TwentySix);
    assert_eq!((found.voxels(), found.at(UVec3::ONE).count()), (0, 0));
}

/// Bones beyond what 32 bits hold, at their start and on their way.
fn too_far_is_said(context: &Context) {
    let v = scene(UVec3::new(60, 5, 5), |_| true);
    let at = |x: f64| Bone { name: "far".into(), head: DVec3::X * x, tail: DVec3::X * x, parent: None, deform: true };
    let mut inside = at(0.0);
    inside.name = "near".into();
    let skeleton = |x: f64| Skeleton::new(vec![at(x), inside.clone()]).expect("skeleton");
    let error = seeds(&v, &skeleton(70_000.0), 2).expect_err("too far to start");
    assert!(matches!(&error, Error::Limit { what, .. } if what.contains("\"far\"")), "{error}");
    let kernels = kernels(context, 2);
    let crawl = |x: f64| {
        let seeds = seeds(&v, &skeleton(x), 2).expect("seeds");
        labels_with(context, &kernels, &v, &seeds, Neighbors::Six, 12)
    };
    let error = crawl(65_550.0).expect_err("too far on its way");
    assert!(matches!(&error, Error::Limit { limit, .. } if limit.contains("65534")), "{error}");
    assert!(crawl(65_400.0).expect("crawls").is_some());
}

fn wrong_order_of_calls_is_refused(context: &Context) {
    let (v, s) = serpentine();
    let bricks = gather(context, &v.solid);
    let seeds = seeds(&v, &s, 2).expect("seeds");
    let start = |labels| kernels(context, labels).start(&context.device, &bricks, &seeds, Neighbors::Six);
    assert!(matches!(start(3), Err(Error::Parameter { name: "labels", .. })));
    assert!(matches!(start(2).expect("starts").finish(), Err(Error::Check(_))));
    assert!(CrawlKernels::from_wgsl(&context.device, 18, &WGSL).is_err());
}

fn a_broken_crawl_is_found(context: &Context) {
    // A solid with ties, ways around and more than one brick, by chance and by design.
    let mut random = Random(12);
    let mut scenes: Vec<(Voxels, Skeleton)> = [3, 17, 22, 28]
        .map(|kind| {
            let v = shape(kind, UVec3::new(19, 14, 13), &mut random);
            let s = bones(&mut random, &v.grid, 14);
            (v, s)
        })
        .into();
    // A bar that labels can only go along in one direction: nothing else wakes the next brick.
    let bar = scene(UVec3::new(30, 3, 3), |_| true);
    let start = center(&bar.grid, UVec3::new(1, 2, 2));
    scenes.push((bar, skeleton(&[(start, start); 3])));
    let expected: Vec<_> = scenes.iter().map(|(v, s)| STEPS.labels(v, s, 3, Neighbors::TwentySix)).collect();
    let differs = |wgsl: &[&str]| {
        let kernels = CrawlKernels::from_wgsl(&context.device, 3, wgsl).expect("compiles");
        scenes.iter().zip(&expected).any(|((v, s), expected)| {
            let seeds = seeds(v, s, 3).expect("seeds");
            match labels_with(context, &kernels, v, &seeds, Neighbors::TwentySix, 40).expect("crawls") {
                Some((found, _)) => first_difference(v, |v| found.at(v), expected).is_some(),
                None => true,
            }
        })
    };
    assert!(!differs(&WGSL));
    for (from, to) in [
        ("a.y == b.y && a.x < b.x", "a.y == b.y && a.x > b.x"),
        ("65536u, 92682u", "65536u, 92681u"),
        ("113512u", "113511u"),
        ("0x88888888u, 0xf000f000u", "0u, 0xf000f000u"),
        ("vec2(0u, mask.y & 0xffff0000u)", "vec2(0u)"),
        ("p % 4u, vec3(1u, 4u, 16u)", "p % 4u, vec3(1u, 4u, 15u)"),
        ("select(vec2(0u), mask, is_seeded != 0u)", "vec2(0u)"),
        ("other > vec3(3)", "other > vec3(2)"),
        ("dot(offset, vec3(1, 6, 36))", "dot(offset, vec3(1, 6, 35))"),
        ("has_changed = false;\n        if is_solid", "has_changed = false;\n        if false"),
    ] {
        let text = changed(&WGSL, from, to);
        assert!(differs(&parts(&text)), "{from} -> {to} went unnoticed");
    }
}
