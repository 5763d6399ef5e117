//! Weights from hand-made labels and from bones, against closed forms, the plain reference, and the rules of files.

use std::collections::HashMap;
use std::ops::ControlFlow;

use glam::{DVec3, UVec3};
use proptest::prelude::*;
use skinbind::Error;
use skinbind::crawl::Label;
use skinbind::geometry::bone_distance::BoneTree;
use skinbind::geometry::closest_point::{TriangleTree, closest_on_triangle};
use skinbind::influence::pack::{Packed, StoredWeight, pack};
use skinbind::influence::{
    Falloff, LabelSource, Limits, Stats, closest, envelope, fill_unreached, finish, from_labels, reference,
};
use skinbind::model::{Bone, Code, Grid, Influence, Mesh, Skeleton, Weights};
use skinbind::progress::{Progress, Stage};

/// Labels by voxel; voxels that are not in it have none.
#[derive(Default, Clone)]
struct Table(HashMap<UVec3, Vec<Label>>);

impl LabelSource for Table {
    fn at(&self, voxel: UVec3) -> impl Iterator<Item = Label> + '_ {
        self.0.get(&voxel).into_iter().flatten().copied()
    }
}

/// Deterministic numbers in [0, 1): a 64-bit linear congruential generator, high bits.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn point(&mut self) -> DVec3 {
        DVec3::new(self.next(), self.next(), self.next()) * 2.0 - 1.0
    }
}

fn skeleton(segments: &[(&str, DVec3, DVec3)]) -> Skeleton {
    let bone =
        |&(name, head, tail): &(&str, DVec3, DVec3)| Bone { name: name.into(), head, tail, parent: None, deform: true };
    Skeleton::new(segments.iter().map(bone).collect()).unwrap()
}

/// Bones named so that the byte order of names is that of the list.
fn random_skeleton(bones: usize, random: &mut Random) -> Skeleton {
    let names: Vec<String> = (0..bones).map(|i| format!("bone{i:04}")).collect();
    let segments: Vec<_> = names
        .iter()
        .map(|name| {
            let head = random.point();
            (name.as_str(), head, head + 0.3 * random.point())
        })
        .collect();
    skeleton(&segments)
}

/// A mesh of triangles over the points in their order; its box is [-1, 1]^3 if the points lie in it.
fn cloud(mut points: Vec<DVec3>) -> Mesh {
    points.extend([DVec3::NEG_ONE, DVec3::ONE, DVec3::new(-1.0, 1.0, 0.5)]);
    let triangles = (0..points.len() as u32 / 3).map(|t| [3 * t, 3 * t + 1, 3 * t + 2]).collect();
    Mesh::new(points, triangles).unwrap()
}

/// Random labels for a share of the voxels: up to `most` different bones each, sorted by distance.
fn random_labels(grid: &Grid, bones: usize, most: usize, solid: f64, random: &mut Random) -> Table {
    let mut table = Table::default();
    let dims = grid.dims();
    for (x, y, z) in (0..dims.x).flat_map(|x| (0..dims.y).flat_map(move |y| (0..dims.z).map(move |z| (x, y, z)))) {
        if random.next() > solid {
            continue;
        }
        let mut labels: Vec<Label> = Vec::new();
        for _ in 0..most {
            let bone = (random.next() * bones as f64) as u32;
            if labels.iter().all(|l| l.bone != bone) {
                labels.push(Label { bone, distance: 20.0 * random.next().powi(2) });
            }
        }
        labels.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        table.0.insert(UVec3::new(x, y, z), labels);
    }
    table
}

fn bind(
    mesh: &Mesh,
    grid: &Grid,
    table: &Table,
    skeleton: &Skeleton,
    falloff: &Falloff,
    limits: &Limits,
) -> (Weights, Stats) {
    from_labels(table, grid, mesh, &mesh.weld(), skeleton, 5, falloff, limits, Progress::NONE).unwrap()
}

/// The largest difference of two rows of influences, over all joints.
fn row_difference(a: &[Influence], b: &[Influence]) -> f64 {
    let weight = |row: &[Influence], joint| row.iter().filter(|i| i.joint == joint).map(|i| i.weight).sum::<f64>();
    a.iter().chain(b).map(|i| (weight(a, i.joint) - weight(b, i.joint)).abs()).fold(0.0, f64::max)
}

fn difference(a: &Weights, b: &Weights) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b.iter()).map(|(a, b)| row_difference(a, b)).fold(0.0, f64::max)
}

/// The same rows with one weight moved: what a comparison must notice.
fn broken(weights: &Weights, row: usize) -> Weights {
    let mut out = Weights::default();
    for (i, influences) in weights.iter().enumerate() {
        let factor = if i == row { 0.99 } else { 1.0 };
        out.push(influences.iter().map(|i| Influence { weight: i.weight * factor, ..*i }));
    }
    out
}

/// The sum is 1 within 2 n 2^-53: n for the weights, n for adding them up here.
fn adds_up(row: &[Influence]) -> bool {
    let sum: f64 = row.iter().map(|i| i.weight).sum();
    (sum - 1.0).abs() <= 2.0 * row.len() as f64 * f64::EPSILON / 2.0
}

const A: DVec3 = DVec3::ZERO;

#[test]
fn the_formula_holds_at_a_voxel_centre() {
    // The middle of the grid is a voxel centre: one corner has all the share, nothing is added to its distances.
    let mesh = cloud(vec![DVec3::ZERO, DVec3::X * 0.5, DVec3::Y * 0.5]);
    let grid = Grid::around(&mesh.bounds(), 16).unwrap();
    let bones = skeleton(&[("a", A, A), ("b", A, A)]);
    let (near, far) = (1.5, 4.0);
    let labels = vec![Label { bone: 1, distance: near }, Label { bone: 0, distance: far }];
    let table = Table([(grid.dims() / 2, labels)].into());
    for (smoothing, power) in [(0.1, 2.0), (0.0, 2.0), (1.0, 4.0), (0.3, 4.0), (0.2, 1.0), (0.5, 2.7)] {
        let falloff = Falloff { smoothing, power };
        let (weights, _) = bind(&mesh, &grid, &table, &bones, &falloff, &Limits { max_influences: 4, threshold: 0.0 });
        let term = |voxels: f64| {
            let l = voxels * (2.0 / 16.0) / 12f64.sqrt();
            (1.0 - smoothing) * l + smoothing * l * l
        };
        let expected = 1.0 / (1.0 + (term(near) / term(far)).powf(power));
        let row = weights.of(0);
        // A dozen roundings on the way.
        assert!((row[0].weight - expected).abs() < 1e-14, "{falloff:?}: {row:?}, expected {expected}");
        assert_eq!((row[0].joint, row[1].joint), (1, 0));
        assert!((row[0].weight - (expected + 1e-3)).abs() > 1e-14);
    }
}

#[test]
fn corners_that_are_not_reached_drop_out_and_a_missing_label_counts_as_zero() {
    // Half-way between two voxel centres along x: each has share 1/2 and adds half a voxel.
    let voxel = 2.0 / 16.0;
    let mesh = cloud(vec![DVec3::X * 0.5 * voxel, DVec3::X * 0.8, DVec3::Y * 0.8]);
    let grid = Grid::around(&mesh.bounds(), 16).unwrap();
    let bones = skeleton(&[("a", A, A), ("b", A, A)]);
    let middle = grid.dims() / 2;
    let (a, b) = (Label { bone: 0, distance: 2.0 }, Label { bone: 1, distance: 2.0 });
    let limits = Limits { max_influences: 4, threshold: 0.0 };
    let run = |table: &Table| bind(&mesh, &grid, table, &bones, &Falloff::default(), &limits).0;
    // Only one corner is solid: its labels count in full.
    let one = run(&Table([(middle, vec![a])].into()));
    assert_eq!(one.of(0), [Influence { joint: 0, weight: 1.0 }]);
    // The other corner lacks b: a has both halves, b one of them.
    let two = run(&Table([(middle, vec![a, b]), (middle + UVec3::X, vec![a])].into()));
    assert!((two.weight(0, 0) - 2.0 / 3.0).abs() < 1e-15 && (two.weight(0, 1) - 1.0 / 3.0).abs() < 1e-15);
    // Nothing reached: an empty row.
    assert!(run(&Table::default()).of(0).is_empty());
}

#[test]
fn a_reached_corner_without_share_serves_where_no_other_is_reached() {
    let mesh = cloud(vec![DVec3::ZERO, DVec3::X * 0.5, DVec3::Y * 0.5]);
    let grid = Grid::around(&mesh.bounds(), 16).unwrap();
    let bones = skeleton(&[("a", A, A), ("b", A, A)]);
    let label = |bone| vec![Label { bone, distance: 1.0 }];
    // The vertex is at the centre of the middle voxel, which is not reached: the next is 1 away, the other sqrt 2.
    let middle = grid.dims() / 2;
    let table = Table([(middle + UVec3::X, label(1)), (middle + UVec3::new(0, 1, 1), label(0))].into());
    let (weights, _) = bind(&mesh, &grid, &table, &bones, &Falloff::default(), &Limits::default());
    assert_eq!(weights.of(0), [Influence { joint: 1, weight: 1.0 }]);
}

#[test]
fn sampling_equals_the_reference() {
    let mut random = Random(1);
    let mesh = cloud((0..600).map(|_| random.point()).collect());
    let grid = Grid::around(&mesh.bounds(), 16).unwrap();
    let bones = random_skeleton(12, &mut random);
    let table = random_labels(&grid, 12, 5, 0.6, &mut random);
    let weld = mesh.weld();
    let diagonal = mesh.bounds().diagonal();
    for (smoothing, power) in [(0.1, 2.0), (0.1, 4.0), (0.0, 3.0), (1.0, 2.0), (0.4, 16.0)] {
        let falloff = Falloff { smoothing, power };
        // Neither cap nor threshold: no near-ties to flip.
        let limits = Limits { max_influences: 16, threshold: 0.0 };
        let (weights, stats) = bind(&mesh, &grid, &table, &bones, &falloff, &limits);
        let mut expected = Weights::default();
        let mut most = 0;
        for &v in &weld.first {
            let p = mesh.positions()[v as usize];
            let raw = reference::sampled(p, &table, &grid, bones.len(), diagonal, &falloff);
            most = most.max(raw.iter().filter(|w| **w > 0.0).count());
            expected.push(reference::finished(&raw, &limits, &bones));
        }
        // to_grid and from_middle differ by 2^-53 of 16 voxels; a share can change by as much, a weight by power times as
        // much relative to the smallest offset that matters (1e-4 diagonals is 1/300 voxel).
        let tolerance = 1e-14 * power * 300.0;
        assert!(difference(&weights, &expected) < tolerance, "{falloff:?}: {:e}", difference(&weights, &expected));
        assert!(difference(&broken(&weights, 7), &expected) > tolerance);
        assert_eq!((stats.max_influences_before_cap, stats.influences_considered), (most, 5));
        assert_eq!(stats.largest_pruned_share, 0.0);
        assert!(weights.iter().filter(|r| !r.is_empty()).all(adds_up));
    }
}

#[test]
fn mirrored_places_get_mirrored_weights_to_the_last_bit() {
    let mut random = Random(2);
    let points: Vec<DVec3> = (0..300).map(|_| random.point()).collect();
    let mirror = |p: &DVec3, axis: usize| {
        let mut p = *p;
        p[axis] = -p[axis];
        p
    };
    // The box must be its own mirror image.
    let corners = [DVec3::NEG_ONE, DVec3::ONE, DVec3::new(-1.0, 1.0, 1.0)];
    for axis in 0..3 {
        let flipped = points.iter().map(|p| mirror(p, axis));
        let all: Vec<DVec3> = points.iter().copied().chain(flipped).chain(corners).collect();
        let triangles = (0..all.len() as u32 / 3).map(|t| [3 * t, 3 * t + 1, 3 * t + 2]).collect();
        let mesh = Mesh::new(all, triangles).unwrap();
        let grid = Grid::around(&mesh.bounds(), 16).unwrap();
        let bones = random_skeleton(8, &mut random);
        let half = random_labels(&grid, 8, 5, 0.7, &mut random);
        let mut table = Table::default();
        for (voxel, labels) in &half.0 {
            let mut other = *voxel;
            other[axis] = grid.dims()[axis] - 1 - voxel[axis];
            let source = half.0.get(&(*voxel).min(other)).unwrap_or(labels);
            table.0.insert(*voxel, source.clone());
            table.0.insert(other, source.clone());
        }
        let (weights, _) = bind(&mesh, &grid, &table, &bones, &Falloff::default(), &Limits::default());
        let weights = weights.scatter(&mesh.weld().place_of);
        assert!((0..300).all(|v| weights.of(v) == weights.of(v + 300)), "axis {axis}");
        // Without the symmetry of the labels they differ.
        let (weights, _) = bind(&mesh, &grid, &half, &bones, &Falloff::default(), &Limits::default());
        let weights = weights.scatter(&mesh.weld().place_of);
        assert!((0..300).any(|v| weights.of(v) != weights.of(v + 300)));
    }
}

#[test]
fn the_unit_of_length_and_the_order_of_bones_change_nothing() {
    let mut random = Random(3);
    let points: Vec<DVec3> = (0..300).map(|_| random.point()).collect();
    let mesh = cloud(points.clone());
    let grid = Grid::around(&mesh.bounds(), 16).unwrap();
    let bones = random_skeleton(9, &mut random);
    let table = random_labels(&grid, 9, 5, 0.8, &mut random);
    let (weights, stats) = bind(&mesh, &grid, &table, &bones, &Falloff::default(), &Limits::default());
    assert!(stats.largest_pruned_share > 0.1 && stats.max_influences_before_cap > 4);
    let uses = vec![true; 9];
    let (straight, _) = envelope(&mesh, &mesh.weld(), &bones, &uses, &Limits::default(), Progress::NONE).unwrap();
    for scale in [1e-3, 1e3, 0.1] {
        let scaled: Vec<DVec3> = mesh.positions().iter().map(|p| *p * scale).collect();
        let scaled = Mesh::new(scaled, mesh.triangles().to_vec()).unwrap();
        let grid = Grid::around(&scaled.bounds(), 16).unwrap();
        let (other, _) = bind(&scaled, &grid, &table, &bones, &Falloff::default(), &Limits::default());
        assert!(difference(&weights, &other) < 1e-9, "{scale}: {:e}", difference(&weights, &other));
        let larger = bones.bones().iter().map(|b| Bone { head: b.head * scale, tail: b.tail * scale, ..b.clone() });
        let larger = Skeleton::new(larger.collect()).unwrap();
        let (other, _) = envelope(&scaled, &scaled.weld(), &larger, &uses, &Limits::default(), Progress::NONE).unwrap();
        assert!(difference(&straight, &other) < 1e-9);
    }
    // Reversed bones, with labels and skeleton to match: the same to the last bit, by bone name.
    let reversed = Skeleton::new(bones.bones().iter().rev().cloned().collect()).unwrap();
    let mut renumbered = table.clone();
    renumbered.0.values_mut().flatten().for_each(|l| l.bone = 8 - l.bone);
    let (other, _) = bind(&mesh, &grid, &renumbered, &reversed, &Falloff::default(), &Limits::default());
    for (a, b) in weights.iter().zip(other.iter()) {
        let back: Vec<Influence> = b.iter().map(|i| Influence { joint: 8 - i.joint, ..*i }).collect();
        assert_eq!(a, back);
    }
    assert_ne!(weights, other);
}

#[test]
fn far_bones_neither_vanish_nor_overflow() {
    let mesh = cloud(vec![DVec3::ZERO, DVec3::X * 0.5, DVec3::Y * 0.5]);
    let grid = Grid::around(&mesh.bounds(), 16).unwrap();
    let bones = skeleton(&[("a", A, A), ("b", A, A)]);
    let labels = vec![Label { bone: 0, distance: 1e40 }, Label { bone: 1, distance: 2e40 }];
    let table = Table([(grid.dims() / 2, labels)].into());
    // With smoothing 1 only the squared length counts: twice as far is 2^-2p of the weight.
    let falloff = Falloff { smoothing: 1.0, power: 16.0 };
    let limits = Limits { max_influences: 4, threshold: 0.0 };
    let (weights, _) = bind(&mesh, &grid, &table, &bones, &falloff, &limits);
    assert!((weights.weight(0, 1) / weights.weight(0, 0) * 2f64.powi(32) - 1.0).abs() < 1e-13);
}

#[test]
fn finish_caps_drops_and_normalises_in_this_order() {
    let bones = skeleton(&[("d", A, A), ("c", A, A), ("b", A, A), ("a", A, A), ("e", A, A)]);
    let raw = |weights: &[f64]| -> Vec<Influence> {
        weights.iter().enumerate().map(|(j, &weight)| Influence { joint: j as u32, weight }).collect()
    };
    let run = |weights: &[f64], max_influences, threshold| {
        let (mut row, mut stats) = (raw(weights), Stats::default());
        finish(&mut row, 5, &Limits { max_influences, threshold }, &bones, &mut stats);
        (row, stats)
    };
    // Ties go by name: a (3), b (2) before c (1) and d (0).
    let (row, stats) = run(&[2.0, 2.0, 2.0, 2.0, 0.0], 2, 0.0);
    assert_eq!(row, [Influence { joint: 3, weight: 0.5 }, Influence { joint: 2, weight: 0.5 }]);
    assert_eq!((stats.max_influences_before_cap, stats.largest_pruned_share), (4, 0.5));
    // So do weights that differ by rounding; a millionth more is more.
    let (row, _) = run(&[2.0 + 1e-14, 2.0, 2.0, 2.0 - 1e-14, 0.0], 2, 0.0);
    assert_eq!(row.iter().map(|i| i.joint).collect::<Vec<_>>(), [3, 2]);
    let (row, _) = run(&[2.0 + 2e-6, 2.0, 2.0, 2.0, 0.0], 2, 0.0);
    assert_eq!(row.iter().map(|i| i.joint).collect::<Vec<_>>(), [0, 3]);
    // 0.75 of 7.75 is below 0.1 of all, but not of the capped sum 7: the threshold looks at the latter.
    let (row, _) = run(&[4.0, 2.0, 0.75, 0.75, 0.25], 3, 0.1);
    assert_eq!(row.len(), 3);
    let (row, stats) = run(&[4.0, 2.0, 0.5, 1.0, 0.5], 3, 0.2);
    assert_eq!(row.iter().map(|i| i.joint).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(stats.largest_pruned_share, 0.25);
    // The strongest stays whatever the threshold; alone it is exactly 1.
    let (row, _) = run(&[0.1, 0.3, 0.2, 0.1, 0.3], 4, 0.99);
    assert_eq!(row, [Influence { joint: 1, weight: 1.0 }]);
    // Of four, three were considered: the share is out of their sum.
    let (mut row, mut stats) = (raw(&[4.0, 2.0, 2.0, 8.0]), Stats::default());
    finish(&mut row, 3, &Limits { max_influences: 2, threshold: 0.0 }, &bones, &mut stats);
    assert_eq!((row.len(), stats.max_influences_before_cap, stats.largest_pruned_share), (2, 3, 2.0 / 14.0));
    // Nothing positive: an empty row.
    assert!(run(&[0.0, -1.0, f64::NAN, 0.0, 0.0], 4, 0.01).0.is_empty());
}

proptest! {
    #[test]
    fn finished_rows_obey_the_rules(
        raw in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0f64, 1e-12..1e12f64], 1..40),
        max_influences in 1usize..=16,
        threshold in 0.0..0.5f64,
    ) {
        let bones = random_skeleton(40, &mut Random(4));
        let limits = Limits { max_influences, threshold };
        let mut row: Vec<_> =
            raw.iter().enumerate().map(|(j, &weight)| Influence { joint: j as u32, weight }).collect();
        let mut other: Vec<_> = row.iter().rev().copied().collect();
        let mut stats = Stats::default();
        finish(&mut row, 40, &limits, &bones, &mut stats);
        finish(&mut other, 40, &limits, &bones, &mut Stats::default());
        prop_assert_eq!(&row, &other);
        prop_assert_eq!(row.is_empty(), raw.iter().all(|w| *w == 0.0));
        prop_assert!(row.len() <= max_influences);
        prop_assert!(row.windows(2).all(|w| w[0].weight >= w[1].weight));
        prop_assert!(row.is_empty() || adds_up(&row));
        prop_assert!(row.len() != 1 || row[0].weight == 1.0);
        prop_assert!((0.0..1.0).contains(&stats.largest_pruned_share));
        // Same joints as the plain form unless a weight is within rounding of the threshold.
        let plain = reference::finished(&raw, &limits, &bones);
        let mut descending = raw.clone();
        descending.sort_by(|a, b| b.total_cmp(a));
        let capped: f64 = descending.iter().take(max_influences).sum();
        if raw.iter().all(|w| (w / capped - threshold).abs() > 1e-12) && !row.is_empty() {
            prop_assert!(row_difference(&row, &plain) < 1e-14);
            prop_assert_eq!(row.len(), plain.len());
        }
    }
}

#[test]
fn envelope_and_closest_equal_brute_force() {
    let mut random = Random(5);
    let mut points: Vec<DVec3> = (0..1500).map(|_| random.point()).collect();
    let bones = random_skeleton(163, &mut random);
    // On joints, too.
    points.extend(bones.bones().iter().map(|b| b.tail.clamp(DVec3::NEG_ONE, DVec3::ONE)));
    let mesh = cloud(points);
    let weld = mesh.weld();
    let diagonal = mesh.bounds().diagonal();
    let uses: Vec<bool> = (0..163).map(|b| b % 7 != 3).collect();
    let limits = Limits { max_influences: 16, threshold: 0.0 };
    let (weights, stats) = envelope(&mesh, &weld, &bones, &uses, &limits, Progress::NONE).unwrap();
    let (single, _) = closest(&mesh, &weld, &bones, &uses, Progress::NONE).unwrap();
    let mut expected = Weights::default();
    for &v in &weld.first {
        let p = mesh.positions()[v as usize];
        let raw = reference::envelope(p, &bones, &uses, diagonal);
        expected.push(reference::finished(&raw, &limits, &bones));
        let nearest = bones.bones().iter().zip(&uses).filter(|(_, used)| **used);
        let nearest =
            nearest.map(|(b, _)| reference::segment_distance(p, b.head, b.tail)).fold(f64::INFINITY, f64::min);
        let [only] = single.of(weld.place_of[v as usize] as usize) else { panic!("one influence") };
        let b = &bones.bones()[only.joint as usize];
        assert_eq!(only.weight, 1.0);
        assert!(reference::segment_distance(p, b.head, b.tail) <= nearest + 1e-15);
    }
    // Distances down to the floor (3e-4) are off by a few 2^-53 of the coordinates: relative 1e-12, times 4.
    assert!(difference(&weights, &expected) < 4e-12, "{:e}", difference(&weights, &expected));
    assert!(difference(&broken(&weights, 3), &expected) > 4e-12);
    assert_eq!(stats.influences_considered, uses.iter().filter(|u| **u).count());
    assert!(weights.iter().all(|row| adds_up(row) && row.iter().all(|i| uses[i.joint as usize])));
}

#[test]
fn the_bone_tree_finds_what_looking_at_each_bone_finds_whatever_the_hint() {
    let mut random = Random(6);
    let bones = random_skeleton(100, &mut random);
    let all = BoneTree::new(&bones, &[true; 100]);
    let alone: Vec<BoneTree> =
        (0..100).map(|b| BoneTree::new(&bones, &(0..100).map(|i| i == b).collect::<Vec<_>>())).collect();
    let mut near = Vec::new();
    for _ in 0..500 {
        let p = 1.5 * random.point();
        // A tree of one bone looks at that bone: no search.
        let each: Vec<f64> = alone
            .iter()
            .map(|tree| {
                tree.within(p, 1.0, 0.0, &mut 0, &mut near);
                near[0].squared
            })
            .collect();
        let nearest = each.iter().copied().fold(f64::INFINITY, f64::min);
        for (factor, mut hint) in [(1.0, 0), (4.0, 57), (4.0, 99)] {
            all.within(p, factor, 0.0, &mut hint, &mut near);
            let mut found: Vec<(u32, f64)> = near.iter().map(|n| (n.bone, n.squared)).collect();
            found.sort_by_key(|f| f.0);
            let expected: Vec<(u32, f64)> =
                (0..100).map(|b| (b, each[b as usize])).filter(|(_, squared)| *squared <= factor * nearest).collect();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn bones_that_share_a_joint_tie_there_and_the_name_decides() {
    let mut random = Random(10);
    for _ in 0..200 {
        let (down, joint, up) = (random.point(), 0.5 * random.point(), random.point());
        // Beyond the joint for both bones.
        let away = (joint - down).normalize() - (up - joint).normalize();
        let mesh = cloud(vec![joint + 0.01 * away, DVec3::X, DVec3::Y]);
        for (names, expected) in [(["b", "a"], 1), (["a", "b"], 0)] {
            let bones = skeleton(&[(names[0], down, joint), (names[1], joint, up)]);
            let (single, _) = closest(&mesh, &mesh.weld(), &bones, &[true; 2], Progress::NONE).unwrap();
            assert_eq!(single.of(0)[0].joint, expected);
        }
    }
}

#[test]
fn at_the_floor_envelope_weights_are_finite_and_equal() {
    let mesh = cloud(vec![DVec3::ZERO, DVec3::X, DVec3::Y]);
    let bones = skeleton(&[("a", A, DVec3::X), ("b", A, -DVec3::X), ("far", DVec3::Y, 2.0 * DVec3::Y)]);
    let (weights, _) = envelope(&mesh, &mesh.weld(), &bones, &[true; 3], &Limits::default(), Progress::NONE).unwrap();
    assert_eq!(weights.of(0), [Influence { joint: 0, weight: 0.5 }, Influence { joint: 1, weight: 0.5 }]);
}

#[test]
fn no_bone_to_use_and_bad_parameters_are_errors_that_name_them() {
    let mesh = cloud(vec![DVec3::ZERO, DVec3::X, DVec3::Y]);
    let weld = mesh.weld();
    let bones = skeleton(&[("a", A, A)]);
    let limits = Limits::default();
    let refused = envelope(&mesh, &weld, &bones, &[false], &limits, Progress::NONE);
    assert!(matches!(refused, Err(Error::NoBones(_))));
    let refused = closest(&mesh, &weld, &bones, &[true; 2], Progress::NONE);
    assert!(matches!(refused, Err(Error::Length { found: 2, expected: 1, .. })));
    for (max_influences, threshold) in [(0, 0.0), (17, 0.0), (4, 1.0), (4, -0.1), (4, f64::NAN)] {
        assert!(matches!(Limits { max_influences, threshold }.check(), Err(Error::Parameter { .. })));
    }
    for (smoothing, power) in [(-0.1, 2.0), (1.1, 2.0), (f64::NAN, 2.0), (0.1, 0.0), (0.1, 17.0), (0.1, f64::NAN)] {
        let falloff = Falloff { smoothing, power };
        assert!(matches!(falloff.check(), Err(Error::Parameter { .. })));
    }
    assert!(limits.check().is_ok() && Falloff::default().check().is_ok());
}

#[test]
fn the_work_can_be_cancelled_and_says_how_far_it_is() {
    let mut random = Random(7);
    let mesh = cloud((0..9000).map(|_| random.point()).collect());
    let bones = random_skeleton(5, &mut random);
    let stop = |stage: Stage, fraction: f64| {
        assert!(stage == Stage::Influence && fraction > 0.0 && fraction <= 1.0);
        if fraction > 0.5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let stopped = closest(&mesh, &mesh.weld(), &bones, &[true; 5], Progress::new(&stop));
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert!(closest(&mesh, &mesh.weld(), &bones, &[true; 5], Progress::NONE).is_ok());
}

/// A strip of two triangles with a bound row each end, an island above it, and a doubled vertex on the island.
fn strip_and_island() -> Mesh {
    let at = |x: f64, y: f64, z: f64| DVec3::new(x, y, z);
    let points = vec![
        at(0., 0., 0.),
        at(4., 0., 0.),
        at(4., 4., 0.),
        at(0., 4., 0.),
        at(1., 1., 2.),
        at(2., 1., 2.),
        at(1., 2., 2.),
        at(1., 1., 2.),
        at(9., 9., 9.),
    ];
    Mesh::new(points, vec![[0, 1, 2], [0, 2, 3], [4, 5, 6], [7, 5, 6]]).unwrap()
}

fn fill(mesh: &Mesh, bones: &Skeleton, rows: &[&[(u32, f64)]]) -> skinbind::influence::Filled {
    let weld = mesh.weld();
    let mut weights = Weights::default();
    for row in rows {
        weights.push(row.iter().map(|&(joint, weight)| Influence { joint, weight }));
    }
    let uses = vec![true; bones.len()];
    let limits = Limits { max_influences: 4, threshold: 0.0 };
    fill_unreached(mesh, &weld, &mesh.components(&weld), bones, &uses, weights, &limits, Progress::NONE).unwrap()
}

#[test]
fn unreached_parts_take_the_blend_of_the_nearest_bound_surface() {
    let mesh = strip_and_island();
    let bones = skeleton(&[("a", A, A), ("b", A, A), ("c", A, A)]);
    let (a, b, c): (&[_], &[_], &[_]) = (&[(0, 1.0)], &[(1, 1.0)], &[(2, 1.0)]);
    let filled = fill(&mesh, &bones, &[a, b, c, a, &[], &[], &[], &[]]);
    // Under (2, 1) the first triangle's shares are 1/2, 1/4, 1/4; all in quarters, so exact.
    assert_eq!(
        filled.weights.of(5),
        [0.5, 0.25, 0.25].iter().zip(0..).map(|(&weight, joint)| Influence { joint, weight }).collect::<Vec<_>>()
    );
    // Over the diagonal: 3/4 and 1/4.
    assert!((filled.weights.weight(4, 0) - 0.75).abs() < 1e-15 && (filled.weights.weight(4, 2) - 0.25).abs() < 1e-15);
    // The lone vertex beyond the corner takes that corner's.
    assert_eq!(filled.weights.of(7), [Influence { joint: 2, weight: 1.0 }]);
    assert_eq!(filled.unreached_vertices, 5);
    let [island, lone] = &filled.warnings[..] else { panic!("{:?}", filled.warnings) };
    assert_eq!((island.code, island.component, island.vertices), (Code::ComponentUnreached, Some(1), Some(4)));
    assert_eq!(
        island.message,
        "component 1 (4 vertices) is reached by no bone; it took the weights of the nearest bound surface"
    );
    assert_eq!((lone.component, lone.vertices), (Some(2), Some(1)));
}

#[test]
fn a_part_of_a_component_is_counted_as_such_and_whole_meshes_are_left_alone() {
    let mesh = strip_and_island();
    let bones = skeleton(&[("a", A, A), ("b", A, A)]);
    let a: &[_] = &[(0, 1.0)];
    let filled = fill(&mesh, &bones, &[a, a, a, &[], a, a, a, a]);
    assert_eq!((filled.unreached_vertices, filled.warnings.len()), (1, 1));
    assert!(filled.warnings[0].message.starts_with("component 0: 1 of its 4 vertices are reached by no bone"));
    let whole = fill(&mesh, &bones, &[a; 8]);
    assert!(whole.warnings.is_empty() && whole.unreached_vertices == 0);
}

#[test]
fn without_bound_triangles_points_serve_and_without_any_the_nearest_bone() {
    let mesh = strip_and_island();
    let bones = skeleton(&[("a", A, A), ("b", DVec3::splat(9.0), DVec3::splat(9.0))]);
    let filled = fill(&mesh, &bones, &[&[(0, 1.0)], &[], &[(1, 1.0)], &[], &[], &[], &[], &[]]);
    // (0, 4) is as far from (0, 0) as from (4, 4); the smaller coordinates win.
    let joints: Vec<u32> = filled.weights.iter().map(|row| row[0].joint).collect();
    assert_eq!(joints, [0, 0, 1, 0, 0, 0, 0, 1]);
    let filled = fill(&mesh, &bones, &[&[] as &[(u32, f64)]; 8]);
    let joints: Vec<u32> = filled.weights.iter().map(|row| row[0].joint).collect();
    assert_eq!(joints, [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(filled.unreached_vertices, 9);
    assert!(filled.warnings[0].message.contains("nearest bone"));
}

#[test]
fn the_triangle_tree_finds_what_looking_at_each_triangle_finds() {
    let mut random = Random(8);
    let mut triangles: Vec<[DVec3; 3]> = (0..20_000)
        .map(|_| {
            let a = random.point();
            [a, a + 0.1 * random.point(), a + 0.1 * random.point()]
        })
        .collect();
    // Without area: points, segments, needles.
    for i in 0..300 {
        let [a, b, _] = triangles[i];
        triangles.push([[a, a, a], [a, b, a], [a, b, a.lerp(b, 0.3)]][i % 3]);
    }
    let tree = TriangleTree::new(triangles.clone());
    for i in 0..200 {
        let p = if i % 4 == 0 { triangles[i][0] } else { 1.3 * random.point() };
        let found = tree.closest(p).unwrap();
        let best = triangles.iter().map(|&t| closest_on_triangle(p, t).1).fold(f64::INFINITY, f64::min);
        assert_eq!(found.squared, best);
        assert!((tree.position(found).distance_squared(p) - best).abs() < 1e-14);
        assert!((found.barycentric.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        assert!(found.barycentric.iter().all(|&s| s >= 0.0));
    }
    assert!(TriangleTree::new(Vec::new()).closest(DVec3::ZERO).is_none());
}

#[test]
fn the_closest_point_of_a_triangle_beats_all_its_others() {
    let mut random = Random(9);
    for i in 0..400 {
        let flat = if i % 5 == 0 { 1e-9 } else { 1.0 };
        let t = [random.point(), random.point(), random.point()].map(|p| p * DVec3::new(1.0, 1.0, flat));
        let p = 2.0 * random.point();
        let (_, squared) = closest_on_triangle(p, t);
        for _ in 0..300 {
            let (mut u, mut v) = (random.next(), random.next());
            if u + v > 1.0 {
                (u, v) = (1.0 - u, 1.0 - v);
            }
            let other = t[0] + u * (t[1] - t[0]) + v * (t[2] - t[0]);
            assert!(squared <= p.distance_squared(other) + 1e-14);
        }
    }
}

fn check_slots<T: StoredWeight>(packed: &Packed<T>, zero: T) -> std::result::Result<(), TestCaseError> {
    for v in 0..packed.len() {
        let (joints, weights) = packed.vertex(v);
        let used = weights.iter().filter(|w| **w != zero).count();
        prop_assert!(weights[used..].iter().all(|w| *w == zero) && joints[used..].iter().all(|j| *j == 0));
        let mut distinct = joints[..used].to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), used);
    }
    Ok(())
}

proptest! {
    #[test]
    fn packed_weights_obey_the_rules_of_the_format(
        rows in prop::collection::vec(prop::collection::vec((0u32..300, prop_oneof![0.0..1.0f64, Just(0.25), 1e-9..1e-3f64]), 0..16), 1..20),
    ) {
        let mut weights = Weights::default();
        for row in &rows {
            weights.push(row.iter().chain([&(299, 0.5)]).map(|&(joint, weight)| Influence { joint, weight }));
        }
        let floats = pack::<f32>(&weights).unwrap();
        let shorts = pack::<u16>(&weights).unwrap();
        let bytes = pack::<u8>(&weights).unwrap();
        check_slots(&floats, 0.0)?;
        check_slots(&shorts, 0)?;
        check_slots(&bytes, 0)?;
        prop_assert!(bytes.joints_u8(0).is_none());
        for v in 0..weights.len() {
            let (joints, stored) = floats.vertex(v);
            let used = stored.iter().filter(|w| **w > 0.0).count() as f32;
            prop_assert!((stored.iter().sum::<f32>() - 1.0).abs() <= 2e-7 * used);
            prop_assert!(stored.is_sorted_by(|a, b| a >= b));
            let total: f64 = weights.of(v).iter().map(|i| i.weight).sum();
            for (&joint, &w) in joints.iter().zip(stored).filter(|(_, w)| **w > 0.0) {
                prop_assert!((f64::from(w) - weights.weight(v, joint.into()) / total).abs() < 1e-7);
            }
            let (joints, stored) = shorts.vertex(v);
            prop_assert_eq!(stored.iter().map(|&w| u32::from(w)).sum::<u32>(), 65_535);
            prop_assert!(stored.is_sorted_by(|a, b| a >= b));
            for (&joint, &w) in joints.iter().zip(stored).filter(|(_, w)| **w > 0) {
                // Largest remainder is off by less than one step.
                prop_assert!((f64::from(w) - 65_535.0 * weights.weight(v, joint.into()) / total).abs() < 1.0);
            }
            let (_, stored) = bytes.vertex(v);
            prop_assert_eq!(stored.iter().map(|&w| u32::from(w)).sum::<u32>(), 255);
            prop_assert!(stored.is_sorted_by(|a, b| a >= b));
        }
    }
}

#[test]
fn packing_rounds_by_largest_remainder_and_frees_slots() {
    let mut weights = Weights::default();
    let third = 1.0 / 3.0;
    weights.push([(7, third), (9, third), (8, third)].map(|(joint, weight)| Influence { joint, weight }));
    weights.push([(3, 0.999), (2, 0.0005), (1, 0.0005)].map(|(joint, weight)| Influence { joint, weight }));
    weights.push([(1, 0.25), (2, 0.25), (1, 0.5)].map(|(joint, weight)| Influence { joint, weight }));
    let bytes = pack::<u8>(&weights).unwrap();
    assert_eq!(bytes.sets(), 1);
    assert_eq!(bytes.vertex(0), (&[7, 9, 8, 0][..], &[85, 85, 85, 0][..]));
    // 254.745 and twice 0.1275: the largest remainder is the first's, the others vanish.
    assert_eq!(bytes.vertex(1), (&[3, 0, 0, 0][..], &[255, 0, 0, 0][..]));
    // 63.75 is next to 191.25: one joint once.
    assert_eq!(bytes.vertex(2), (&[1, 2, 0, 0][..], &[191, 64, 0, 0][..]));
    assert_eq!(bytes.joints_u8(0).unwrap(), [[7, 9, 8, 0], [3, 0, 0, 0], [1, 2, 0, 0]]);
    assert_eq!(pack::<f32>(&weights).unwrap().weights(0)[2], [0.75, 0.25, 0.0, 0.0]);
    // Ties by slot: 255 / 2 leaves one over.
    let mut halves = Weights::default();
    halves.push([(5, 0.5), (4, 0.5)].map(|(joint, weight)| Influence { joint, weight }));
    assert_eq!(pack::<u8>(&halves).unwrap().vertex(0), (&[5, 4, 0, 0][..], &[128, 127, 0, 0][..]));
    // Five influences need a second set.
    let mut five = Weights::default();
    five.push((0..5).map(|joint| Influence { joint, weight: 0.2 }));
    let packed = pack::<u16>(&five).unwrap();
    assert_eq!(packed.sets(), 2);
    assert_eq!((packed.joints(1), packed.weights(1)), (vec![[4, 0, 0, 0]], vec![[13_107, 0, 0, 0]]));
    // What can not be stored is refused by name.
    let mut bare = halves.clone();
    bare.push([]);
    assert!(matches!(pack::<f32>(&bare), Err(Error::Check(what)) if what.contains("vertex 1")));
    let mut high = Weights::default();
    high.push([Influence { joint: 70_000, weight: 1.0 }]);
    assert!(matches!(pack::<f32>(&high), Err(Error::Limit { needed, .. }) if needed == "70000"));
}
