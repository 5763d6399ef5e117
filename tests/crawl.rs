//! The crawl against its definition: bit for bit with the same integers, within derived bounds with f64, and in closed form.

#[path = "common/mod.rs"]
mod common;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::scenes::{
    Fixed, bones, center, filled, first_difference, grid, random_point, scene, shape, skeleton, voxels,
};
use common::shapes::Random;
use glam::{DVec3, UVec3};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use skinbind::crawl::seeds::{crossed, touches};
use skinbind::crawl::{Label, Labels, Neighbors, crawl, reference};
use skinbind::model::{Bone, Code, Skeleton};
use skinbind::progress::{Progress, Stage};
use skinbind::voxelize::Voxels;

const UNIT: f64 = 4_294_967_296.0;
const EXACT: Fixed = Fixed { bits: 32 };

fn run(v: &Voxels, s: &Skeleton, labels: usize, neighbors: Neighbors) -> Labels {
    crawl(v, s, &vec![true; s.len()], labels, neighbors, Progress::NONE).unwrap().0
}

// ---------------------------------------------------------------- against the oracles

#[test]
fn every_shape_bit_for_bit() {
    let mut random = Random(1);
    for kind in 0..30 {
        for neighbors in [Neighbors::TwentySix, Neighbors::Six] {
            let size = [UVec3::new(16, 13, 11), UVec3::new(20, 7, 17)][kind % 2];
            let v = shape(kind, size, &mut random);
            let s = bones(&mut random, &v.grid, [1, 3, 9, 24][kind % 4]);
            let labels = 2 + kind % 8;
            let expected = EXACT.labels(&v, &s, labels, neighbors);
            let found = run(&v, &s, labels, neighbors);
            let difference = first_difference(&v, |v| found.at(v), &expected);
            assert_eq!(difference, None, "shape {kind}, {neighbors:?}, {labels} labels, {} bones", s.len());
        }
    }
}

#[test]
fn the_comparison_notices_one_wrong_label() {
    let mut random = Random(5);
    let v = shape(3, UVec3::new(16, 9, 9), &mut random);
    let s = bones(&mut random, &v.grid, 6);
    let found = run(&v, &s, 4, Neighbors::TwentySix);
    let mut expected = EXACT.labels(&v, &s, 4, Neighbors::TwentySix);
    assert_eq!(first_difference(&v, |v| found.at(v), &expected), None);
    let at = expected.iter().position(|l| l.len() == 4).unwrap();
    expected[at][3].distance += 1.0 / UNIT;
    assert!(first_difference(&v, |v| found.at(v), &expected).is_some());
    expected[at][3].distance -= 1.0 / UNIT;
    expected[at].swap(0, 1);
    assert!(first_difference(&v, |v| found.at(v), &expected).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, rng_seed: RngSeed::Fixed(2026), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_scene_bit_for_bit(seed: u64, kind in 0usize..30, labels in 2usize..10, count in 1usize..14, six: bool,
                             x in 16u32..27, y in 1u32..14, z in 1u32..14) {
        let mut random = Random(seed);
        let v = shape(kind, UVec3::new(x, y, z), &mut random);
        let s = bones(&mut random, &v.grid, count);
        let neighbors = if six { Neighbors::Six } else { Neighbors::TwentySix };
        let found = run(&v, &s, labels, neighbors);
        prop_assert_eq!(first_difference(&v, |v| found.at(v), &EXACT.labels(&v, &s, labels, neighbors)), None);
    }

    #[test]
    fn walked_voxels_are_the_ones_that_touch(seed: u64, snap in 0u32..3) {
        let mut random = Random(seed);
        let dims = UVec3::new(13, 9, 17);
        let step = [1, 64, 256][snap as usize];
        let mut end = || {
            let p = DVec3::new(random.unit() * 23.0 - 5.0, random.unit() * 19.0 - 5.0, random.unit() * 27.0 - 5.0);
            (p * 256.0).as_ivec3() / step * step
        };
        let (p, q) = (end(), end());
        let mut walked = Vec::new();
        crossed(p, q, dims, |v| walked.push(v));
        walked.sort_by_key(|v| (v.z, v.y, v.x));
        let expected: Vec<UVec3> = reference::voxels(dims).filter(|&v| touches(p, q, v)).collect();
        prop_assert_eq!(walked, expected);
    }
}

/// Fixed point against f64: each of n steps is off by at most 2^-33, the start by 2^-33, and the f64 sum by n ulps of the
/// distance, here below 2^-45 each. Sorted distances of the same bones move no more than the distances do.
#[test]
fn agrees_with_f64_within_rounding() {
    let mut random = Random(9);
    for kind in [2, 3, 7, 12, 17, 22, 27] {
        let v = shape(kind, UVec3::new(18, 12, 12), &mut random);
        let s = bones(&mut random, &v.grid, 12);
        let used: Vec<bool> = (0..s.len()).map(|b| b % 5 != 3).collect();
        let (found, _) = crawl(&v, &s, &used, 5, Neighbors::TwentySix, Progress::NONE).unwrap();
        let expected = reference::labels(&v.grid, &v.solid, &s, &used, 5, Neighbors::TwentySix);
        let longest = EXACT.longest(&v, &s, Neighbors::TwentySix);
        let bound = f64::from(longest + 1) * (0.5 / UNIT + 0.5f64.powi(45));
        let off = |scale: f64| {
            let mut worst = 0.0f64;
            for (voxel, expected) in reference::voxels(v.grid.dims()).zip(&expected) {
                let found: Vec<Label> = found.at(voxel).collect();
                assert_eq!(found.len(), expected.len(), "{voxel}");
                for (f, e) in found.iter().zip(expected) {
                    assert!(used[f.bone as usize]);
                    worst = worst.max((f.distance * scale - e.distance).abs());
                }
            }
            worst
        };
        assert!(off(1.0) <= bound, "shape {kind}: {} > {bound}", off(1.0));
        assert!(off(1.0 + 1e-6) > bound, "the bound would pass a wrong length");
    }
}

/// Several regions, one and many threads: the same labels.
#[test]
fn threads_change_nothing() {
    let v = scene(UVec3::new(48, 40, 32), |v| (v.x / 9 + v.y / 7 + v.z / 5) % 5 != 0 || v.x % 9 == 4);
    let s = bones(&mut Random(3), &v.grid, 12);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&v, &s, 5, Neighbors::TwentySix))
    };
    let one = with(1);
    for threads in [2, 3, 7] {
        let many = with(threads);
        for voxel in reference::voxels(v.grid.dims()) {
            assert!(one.at(voxel).eq(many.at(voxel)), "{threads} threads: {voxel}");
        }
    }
    let expected = EXACT.labels(&v, &s, 5, Neighbors::TwentySix);
    assert_eq!(first_difference(&v, |v| one.at(v), &expected), None);
}

// ---------------------------------------------------------------- closed forms

#[test]
fn full_box_has_the_closed_form() {
    let v = scene(UVec3::new(21, 21, 21), |_| true);
    let from = UVec3::new(4, 10, 7);
    let s = skeleton(&[(center(&v.grid, from), center(&v.grid, from))]);
    let wrong = |neighbors, expected: &dyn Fn([i32; 3]) -> f64| {
        let found = run(&v, &s, 2, neighbors);
        reference::voxels(v.grid.dims()).find(|&voxel| {
            let mut d = (voxel.as_ivec3() - from.as_ivec3()).abs().to_array();
            d.sort_unstable();
            let found = found.at(voxel).next().unwrap().distance;
            // At most 23 steps of 2^-33 each.
            (found - expected(d)).abs() > 23.0 * 0.5 / UNIT
        })
    };
    let chamfer = |[a, b, c]: [i32; 3]| f64::from(a) * 3f64.sqrt() + f64::from(b - a) * 2f64.sqrt() + f64::from(c - b);
    assert_eq!(wrong(Neighbors::TwentySix, &chamfer), None);
    assert_eq!(wrong(Neighbors::Six, &|[a, b, c]| f64::from(a + b + c)), None);
    assert!(wrong(Neighbors::Six, &chamfer).is_some());
}

#[test]
fn a_u_bend_is_as_long_as_its_arms() {
    // Two arms, a gap of one voxel, joined at the far end: from tip to tip is down one arm and up the other.
    let v = scene(UVec3::new(31, 3, 1), |v| v.z == 1 && (v.y == 1 || v.y == 3 || v.y == 2 && v.x == 30));
    let tip = center(&v.grid, UVec3::new(0, 1, 1));
    let s = skeleton(&[(tip, tip)]);
    let far = |n| run(&v, &s, 2, n).at(UVec3::new(0, 3, 1)).next().unwrap().distance;
    assert_eq!(far(Neighbors::Six), 62.0);
    assert!((far(Neighbors::TwentySix) - (58.0 + 2.0 * 2f64.sqrt())).abs() < 61.0 * 0.5 / UNIT);
}

#[test]
fn ties_go_by_name() {
    let v = scene(UVec3::new(17, 5, 5), |_| true);
    let (l, r) = (center(&v.grid, UVec3::new(3, 3, 3)), center(&v.grid, UVec3::new(15, 3, 3)));
    for names in [["b", "a"], ["a", "b"]] {
        let bone = |i: usize, p| Bone { name: names[i].into(), head: p, tail: p, parent: None, deform: true };
        let s = Skeleton::new(vec![bone(0, l), bone(1, r)]).unwrap();
        let found: Vec<Label> = run(&v, &s, 2, Neighbors::TwentySix).at(UVec3::new(9, 3, 3)).collect();
        assert_eq!(found[0].distance, found[1].distance);
        assert_eq!(s.bones()[found[0].bone as usize].name, "a");
        let off: Vec<Label> = run(&v, &s, 2, Neighbors::TwentySix).at(UVec3::new(8, 3, 3)).collect();
        assert_eq!(off[0].bone, 0);
    }
}

#[test]
fn islands_stay_unreached() {
    let v = scene(UVec3::new(16, 4, 4), |v| v.x < 6 || v.x > 9);
    let p = center(&v.grid, UVec3::new(2, 2, 2));
    let found = run(&v, &skeleton(&[(p, p)]), 2, Neighbors::TwentySix);
    assert_eq!(found.at(UVec3::new(5, 2, 2)).count(), 1);
    assert_eq!(found.at(UVec3::new(12, 2, 2)).count(), 0);
    assert_eq!(found.at(UVec3::new(7, 2, 2)).count(), 0);
    assert_eq!(found.at(UVec3::splat(1000)).count(), 0);
}

/// A way longer than 2^16 voxels, the most that packed keys hold.
#[test]
fn a_long_maze_is_not_cut_off() {
    let v = scene(UVec3::new(101, 101, 101), |v| {
        let level = v.y % 2 == 0 && (v.z % 2 == 0 || v.x == if v.z % 4 == 1 { 0 } else { 102 });
        let stair = v.y % 2 == 1 && v.x == 0 && v.z == if v.y % 4 == 1 { 102 } else { 0 };
        level || stair
    });
    let last = UVec3::new(0, 102, 102);
    let from = UVec3::ZERO;
    let s = skeleton(&[(center(&v.grid, from), center(&v.grid, from))]);
    let found = run(&v, &s, 2, Neighbors::Six).at(last).next().unwrap().distance;
    let steps = EXACT.distances(&v, &s.bones()[0], Neighbors::Six)[reference::place(v.grid.dims(), last)].unwrap().0
        as f64
        / UNIT;
    assert_eq!(found, steps);
    assert!(found > 65_536.0, "{found} fits the packed keys and tests nothing");
}

// ---------------------------------------------------------------- bones outside, and limits

#[test]
fn a_bone_outside_is_named_and_starts_nearby() {
    let v = scene(UVec3::new(16, 16, 16), |v| v.x < 9);
    let edge = center(&v.grid, UVec3::new(8, 9, 9));
    let prop = edge + DVec3::X * 6.0;
    let bone = |name: &str, p: DVec3| Bone { name: name.into(), head: p, tail: p, parent: None, deform: true };
    let s =
        Skeleton::new(vec![bone("in", edge), bone("prop", prop), bone("far", edge * DVec3::ZERO + DVec3::X * 1.6e7)]);
    let s = s.unwrap();
    let (found, warnings) = crawl(&v, &s, &[true; 3], 3, Neighbors::TwentySix, Progress::NONE).unwrap();
    assert_eq!(warnings.len(), 2);
    assert!(warnings.iter().all(|w| w.code == Code::BoneOutside));
    assert_eq!(
        warnings[0].message,
        "bone \"prop\" lies outside the mesh; it starts at the nearest solid voxel, 6 away"
    );
    assert_eq!(warnings[0].bone.as_deref(), Some("prop"));
    let at: Vec<Label> = found.at(UVec3::new(5, 9, 9)).collect();
    assert_eq!(at[..2], [Label { bone: 0, distance: 3.0 }, Label { bone: 1, distance: 9.0 }]);
    assert_eq!((at[2].bone, at[2].distance), (2, 1.6e7 - edge.x + 3.0));
    // Not among the bones that take part: no label, no warning.
    let (found, warnings) = crawl(&v, &s, &[true, false, false], 3, Neighbors::Six, Progress::NONE).unwrap();
    assert_eq!((warnings.len(), found.at(UVec3::new(5, 9, 9)).count()), (0, 1));
}

#[test]
fn however_far_a_bone_is_it_starts_somewhere() {
    let v = scene(UVec3::new(16, 12, 12), |v| v.x % 3 != 1);
    let far = DVec3::X * 3e38;
    let inside = DVec3::new(0.1, 0.2, 0.3);
    // A point, a segment that stays out, one that comes in, and one right through along y.
    let s = skeleton(&[(far, far), (far, far + DVec3::Y * 1e38), (inside, far), (DVec3::Y * -1e37, DVec3::Y * 1e37)]);
    let (found, warnings) = crawl(&v, &s, &[true; 4], 4, Neighbors::TwentySix, Progress::NONE).unwrap();
    let named: Vec<_> = warnings.iter().map(|w| w.bone.clone().unwrap()).collect();
    assert_eq!(named, ["m0", "z1"]);
    assert!(warnings[0].message.ends_with("3e38 away"), "{}", warnings[0].message);
    let all: Vec<Label> =
        reference::voxels(v.grid.dims()).flat_map(|voxel| found.at(voxel).collect::<Vec<_>>()).collect();
    let nearest = |bone| all.iter().filter(|l| l.bone == bone).map(|l| l.distance).fold(f64::INFINITY, f64::min);
    assert_eq!([nearest(0), nearest(1)], [2f64.powi(31); 2]);
    assert!(nearest(2) < 1.0 && nearest(3) < 1.0);
}

#[test]
fn starts_are_the_same_at_any_scale_and_mirrored() {
    let size = UVec3::new(24, 20, 9);
    let mut random = Random(21);
    let (g, keep) = (grid(size, 1.0), |v: UVec3| !(v.x.abs_diff(13) + v.y * 3 + v.z).is_multiple_of(5));
    let plain = bones(&mut random, &g, 20);
    let expected = run(&voxels(g, filled(&g, keep)), &plain, 4, Neighbors::TwentySix);
    for (scale, mirror) in [(1e-3, false), (1e3, false), (1.0, true), (1e3, true)] {
        let g = grid(size, scale);
        let flip = DVec3::new(if mirror { -1.0 } else { 1.0 }, 1.0, 1.0) * scale;
        let moved: Vec<Bone> =
            plain.bones().iter().map(|b| Bone { head: b.head * flip, tail: b.tail * flip, ..b.clone() }).collect();
        let image = |v: UVec3| if mirror { UVec3::new(g.dims().x - 1 - v.x, v.y, v.z) } else { v };
        let v = voxels(g, filled(&g, |v| keep(image(v))));
        let found = run(&v, &Skeleton::new(moved).unwrap(), 4, Neighbors::TwentySix);
        for voxel in reference::voxels(g.dims()) {
            let (a, b): (Vec<_>, Vec<_>) = (found.at(voxel).collect(), expected.at(image(voxel)).collect());
            assert_eq!(a.len(), b.len(), "{voxel}");
            for (a, b) in a.iter().zip(&b) {
                // A start may round the other way; another start would be off by far more.
                assert!(
                    (a.distance - b.distance).abs() <= 1.0 / UNIT,
                    "scale {scale} mirror {mirror} {voxel}: {a:?} {b:?}"
                );
            }
        }
    }
}

#[test]
fn as_many_bones_as_files_can_name() {
    let v = scene(UVec3::new(40, 40, 40), |v| (v.x + v.y + v.z) % 3 != 0);
    let mut random = Random(8);
    let ends: Vec<(DVec3, DVec3)> = (0..65_535)
        .map(|_| (random_point(&mut random, &v.grid, 1.0), random_point(&mut random, &v.grid, 1.0)))
        .collect();
    let s = skeleton(&ends);
    let found = run(&v, &s, 17, Neighbors::TwentySix);
    for voxel in reference::voxels(v.grid.dims()).filter(|&v2| v.solid.get(v2)) {
        let at: Vec<Label> = found.at(voxel).collect();
        assert_eq!(at.len(), 17, "{voxel}");
        let key = |l: &Label| ((l.distance * UNIT) as u64, s.rank(l.bone as usize));
        assert!(at.windows(2).all(|w| key(&w[0]) < key(&w[1])), "{voxel}");
    }
}

#[test]
fn nothing_to_do_is_done() {
    let empty = scene(UVec3::splat(16), |_| false);
    let s = skeleton(&[(DVec3::ZERO, DVec3::X)]);
    assert_eq!(run(&empty, &s, 5, Neighbors::TwentySix).at(UVec3::splat(4)).count(), 0);
    let full = scene(UVec3::splat(16), |_| true);
    let (none, _) = crawl(&full, &s, &[false], 5, Neighbors::TwentySix, Progress::NONE).unwrap();
    assert_eq!(none.at(UVec3::splat(4)).count(), 0);
    let message =
        |labels, used: &[bool]| crawl(&full, &s, used, labels, Neighbors::Six, Progress::NONE).unwrap_err().to_string();
    assert_eq!(message(1, &[true]), "labels is 1; it must be from 2 to 17");
    assert_eq!(message(18, &[true]), "labels is 18; it must be from 2 to 17");
    assert_eq!(message(5, &[true, true]), "use of bones: 2 entries for 1 vertices");
}

#[test]
fn it_reports_and_stops() {
    let v = scene(UVec3::splat(20), |_| true);
    let s = skeleton(&[(DVec3::ZERO, DVec3::X)]);
    let calls = AtomicUsize::new(0);
    let stop = |stage: Stage, fraction: f64| {
        assert_eq!(stage, Stage::Crawl);
        assert!((0.0..=1.0).contains(&fraction));
        if calls.fetch_add(1, Ordering::Relaxed) < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let stopped = crawl(&v, &s, &[true], 5, Neighbors::TwentySix, Progress::new(&stop));
    assert!(matches!(stopped, Err(skinbind::Error::Cancelled)));
    assert_eq!(calls.load(Ordering::Relaxed), 6);
}
