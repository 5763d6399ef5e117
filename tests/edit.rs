//! Edits of weights row by row, on the mesh and across a plane: closed forms and properties.

mod common;

use common::shapes::{self, Random, Shape};
use glam::DVec3;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use skinbind::edit::{self, Axis, Bare, Locks, Mirror, Smooth, opposite_name};
use skinbind::model::{Bone, Influence, Mesh, Skeleton, Weights};

const NAMES: [&str; 6] = ["spine", "arm.L", "arm.R", "leg_l", "leg_r", "head"];

/// Bones on the middle plane, and pairs beside it.
fn skeleton() -> Skeleton {
    let bone = |name: &str| {
        let side = if name.ends_with(['L', 'l']) { 1.0 } else { -1.0 };
        let x = if name.contains(['.', '_']) { side } else { 0.0 };
        let height = if name.starts_with("arm") { 1.0 } else { -1.0 };
        Bone {
            name: name.into(),
            head: DVec3::new(0.3 * x, height, 0.0),
            tail: DVec3::new(0.9 * x, height, 0.0),
            parent: (name != "spine").then_some(0),
            deform: true,
        }
    };
    Skeleton::new(NAMES.map(bone).to_vec()).unwrap()
}

fn weights(rows: &[&[(u32, f64)]]) -> Weights {
    let mut weights = Weights::default();
    rows.iter().for_each(|row| weights.push(row.iter().map(|&(joint, weight)| Influence { joint, weight })));
    weights
}

/// One to six influences a vertex, sums 1.
fn random_weights(vertices: usize, random: &mut Random) -> Weights {
    let mut raw = Weights::default();
    for _ in 0..vertices {
        let mut row = Vec::new();
        for joint in 0..6 {
            if random.below(2) == 0 {
                row.push(Influence { joint, weight: random.unit() + 1e-3 });
            }
        }
        let one = [Influence { joint: random.below(6) as u32, weight: 1.0 }];
        if row.is_empty() {
            row.extend(one);
        }
        raw.push(row);
    }
    edit::normalize(&raw, &Locks::NONE)
}

/// The largest difference of a weight, over all vertices and bones.
fn apart(a: &Weights, b: &Weights) -> f64 {
    assert_eq!(a.len(), b.len());
    let of = |v: usize, j: u32| (a.weight(v, j) - b.weight(v, j)).abs();
    (0..a.len()).flat_map(|v| (0..6).map(move |j| of(v, j))).fold(0.0, f64::max)
}

/// How far the sum of a vertex' weights is from 1 at most. Sums of up to seven shares are off by some 2^-53 each.
fn off_one(weights: &Weights) -> f64 {
    weights.iter().map(|row| (row.iter().map(|i| i.weight).sum::<f64>() - 1.0).abs()).fold(0.0, f64::max)
}

/// A ball, cut through the middle by a ring of vertices, its vertices split apart in places.
fn ball() -> Mesh {
    shapes::sphere(1.0, 8).mesh()
}

#[test]
fn limit_keeps_the_strongest_and_reports_the_cut() {
    let skeleton = skeleton();
    let before = weights(&[&[(0, 0.5), (1, 0.3), (2, 0.2)], &[(3, 1.0)]]);
    let (after, stats) = edit::limit(&before, 2, &skeleton, &Locks::NONE).unwrap();
    assert!(apart(&after, &weights(&[&[(0, 0.625), (1, 0.375)], &[(3, 1.0)]])) < 1e-15);
    assert!((stats.largest_pruned_share - 0.2).abs() < 1e-15);
    // "arm.L" comes before "arm.R".
    let tie = weights(&[&[(2, 0.5), (1, 0.5)]]);
    assert_eq!(edit::limit(&tie, 1, &skeleton, &Locks::NONE).unwrap().0, weights(&[&[(1, 1.0)]]));
    // A locked bone is kept however weak, and the strongest other beside it.
    let mut locks = Locks::default();
    locks.set_bone(2, true);
    let (after, _) = edit::limit(&before, 1, &skeleton, &locks).unwrap();
    assert!(apart(&after, &weights(&[&[(2, 0.2), (0, 0.8)], &[(3, 1.0)]])) < 1e-15);
    assert!(edit::limit(&before, 0, &skeleton, &locks).is_err());
    assert!(edit::limit(&before, 17, &skeleton, &locks).is_err());
}

#[test]
fn threshold_drops_the_faint_but_never_all() {
    let skeleton = skeleton();
    let before = weights(&[&[(0, 0.7), (1, 0.25), (2, 0.05)], &[(0, 0.5), (1, 0.5)]]);
    let (after, stats) = edit::threshold(&before, 0.1, &skeleton, &Locks::NONE).unwrap();
    assert!(apart(&after, &weights(&[&[(0, 0.7 / 0.95), (1, 0.25 / 0.95)], &[(0, 0.5), (1, 0.5)]])) < 1e-15);
    assert!((stats.largest_pruned_share - 0.05).abs() < 1e-15);
    assert_eq!(edit::threshold(&before, 0.9, &skeleton, &Locks::NONE).unwrap().0.most_influences(), 1);
    // The locked 0.7 leaves 0.3: of the others 0.05 is still below 0.1, 0.25 is not.
    let mut locks = Locks::default();
    locks.set_bone(0, true);
    let (after, _) = edit::threshold(&before, 0.1, &skeleton, &locks).unwrap();
    assert!(apart(&after, &weights(&[&[(0, 0.7), (1, 0.3)], &[(0, 0.5), (1, 0.5)]])) < 1e-15);
    assert!(edit::threshold(&before, 1.0, &skeleton, &locks).is_err());
}

#[test]
fn doubles_are_merged_and_bare_vertices_filled() {
    let merged = edit::merge_doubles(&weights(&[&[(1, 0.25), (0, 0.25), (1, 0.5)]]));
    assert_eq!(merged, weights(&[&[(1, 0.75), (0, 0.25)]]));

    let points = [0.0, 1.0, 2.0, 3.0].map(|x| [DVec3::new(x, 0.0, 0.0), DVec3::new(x, 1.0, 0.0)]).concat();
    let mesh = Mesh::new(points, vec![[0, 2, 1], [1, 2, 3], [2, 4, 3], [3, 4, 5], [4, 6, 5], [5, 6, 7]]).unwrap();
    let left: &[(u32, f64)] = &[(1, 0.5), (3, 0.5)];
    let right: &[(u32, f64)] = &[(2, 1.0)];
    let before = weights(&[left, left, left, left, &[], &[], right, right]);
    let skeleton = skeleton();
    let (root, count) = edit::fill_bare(&mesh, &before, &skeleton, Bare::Root).unwrap();
    let spine: &[(u32, f64)] = &[(0, 1.0)];
    assert_eq!((root, count), (weights(&[left, left, left, left, spine, spine, right, right]), 2));
    let (near, count) = edit::fill_bare(&mesh, &before, &skeleton, Bare::Nearest).unwrap();
    assert_eq!(count, 2);
    // Only the left has triangles that are bound at all corners.
    assert!(apart(&near, &weights(&[left, left, left, left, left, left, right, right])) < 1e-15);
    assert!(edit::fill_bare(&mesh, &weights(&[left]), &skeleton, Bare::Root).is_err());
}

#[test]
fn smoothing_takes_the_mean_of_the_neighbours_over_seams_too() {
    // A square of two triangles that do not share vertices: 0 = 3 and 2 = 4.
    let at = |x: f64, y: f64| DVec3::new(x, y, 0.0);
    let points = vec![at(0.0, 0.0), at(1.0, 0.0), at(1.0, 1.0), at(0.0, 0.0), at(1.0, 1.0), at(0.0, 1.0)];
    let mesh = Mesh::new(points, vec![[0, 1, 2], [3, 4, 5]]).unwrap();
    let (a, b): (&[_], &[_]) = (&[(0, 1.0)], &[(1, 1.0)]);
    let before = weights(&[a, b, b, a, b, b]);
    let by = Smooth { steps: 1, strength: 0.25 };
    let after = edit::smooth(&mesh, &before, &by, &Locks::NONE).unwrap();
    // Place 0 has three neighbours of bone 1; place 1 has the neighbours 0 and 2; place 2 has 0, 1 and 3.
    let corner: &[(u32, f64)] = &[(0, 0.75), (1, 0.25)];
    let side: &[(u32, f64)] = &[(0, 0.125), (1, 0.875)];
    let far: &[(u32, f64)] = &[(0, 0.25 / 3.0), (1, 1.0 - 0.25 / 3.0)];
    assert!(apart(&after, &weights(&[corner, side, far, corner, far, side])) < 1e-15);
    let mut locks = Locks::default();
    locks.set_vertex(0, true);
    let locked = edit::smooth(&mesh, &before, &by, &locks).unwrap();
    assert_eq!(locked.of(0), before.of(0));
    assert_eq!(locked.of(1), after.of(1));
    // Evenly spread weights stay.
    let half: &[(u32, f64)] = &[(0, 0.5), (1, 0.5)];
    let even = weights(&[half; 6]);
    assert!(
        apart(&edit::smooth(&mesh, &even, &Smooth { steps: 50, strength: 1.0 }, &Locks::NONE).unwrap(), &even) < 1e-13
    );
}

#[test]
fn names_have_opposites() {
    let pairs = [
        ("arm.L", "arm.R"),
        ("arm_l", "arm_r"),
        ("hand.L.001", "hand.R.001"),
        ("L_arm", "R_arm"),
        ("LeftArm", "RightArm"),
        ("mixamorig:LeftHand", "mixamorig:RightHand"),
        ("upperLeftArm2", "upperRightArm2"),
        ("thigh_left", "thigh_right"),
        ("LEFT-EYE", "RIGHT-EYE"),
        ("finger1-1.L", "finger1-1.R"),
        ("Bip01 L Foot", "Bip01 R Foot"),
    ];
    for (a, b) in pairs {
        assert_eq!(opposite_name(a).as_deref(), Some(b));
        assert_eq!(opposite_name(b).as_deref(), Some(a));
    }
    for name in ["spine", "bright", "leftover", "Lr", "l", "", "arm.Lower", "heel", "pole"] {
        assert_eq!(opposite_name(name), None, "{name}");
    }
}

/// Weights that depend on the side: mirrored ones differ.
fn lopsided(mesh: &Mesh) -> Weights {
    let mut rows = Weights::default();
    for p in mesh.positions() {
        let l = 0.5 + 0.5 * p.x;
        let up = 0.3 + 0.2 * p.y;
        let row = [(0, 0.2), (1, l * up), (2, (1.0 - l) * up * 0.5), (3, 0.1 + l * l)];
        rows.push(row.map(|(joint, weight)| Influence { joint, weight }));
    }
    edit::normalize(&rows, &Locks::NONE)
}

/// The largest difference between a vertex and the mirror image of its partner, where it has one.
fn asymmetry(mesh: &Mesh, weights: &Weights) -> f64 {
    let swap = [0, 2, 1, 4, 3, 5];
    let mut worst: f64 = 0.0;
    for (v, p) in mesh.positions().iter().enumerate() {
        let q = DVec3::new(-p.x, p.y, p.z);
        for (u, _) in mesh.positions().iter().enumerate().filter(|(_, o)| o.distance(q) < 1e-9) {
            for joint in 0..6 {
                worst = worst.max((weights.weight(v, joint) - weights.weight(u, swap[joint as usize])).abs());
            }
        }
    }
    worst
}

#[test]
fn mirrored_weights_are_symmetric_and_the_model_stays() {
    let mesh = ball();
    let before = lopsided(&mesh);
    assert!(asymmetry(&mesh, &before) > 0.1);
    for (from_positive, kept) in [(true, 1.0), (false, -1.0)] {
        let by = Mirror { from_positive, ..Mirror::across(Axis::X) };
        let after = edit::mirror(&mesh, &before, &skeleton(), &by, &Locks::NONE).unwrap();
        assert!(asymmetry(&mesh, &after) < 1e-15, "{}", asymmetry(&mesh, &after));
        assert!(off_one(&after) < 1e-12);
        for (v, p) in mesh.positions().iter().enumerate().filter(|(_, p)| p.x * kept > 1e-3) {
            for joint in 0..6 {
                assert!((after.weight(v, joint) - before.weight(v, joint)).abs() < 1e-15, "{p}");
            }
        }
    }
}

#[test]
fn mirrors_between_unequal_sides() {
    // The right half is much finer than the left one.
    let half = |n: u32, side: f64| -> Shape { shapes::sphere(1.0, n).keep(move |c| c.x * side > 0.0) };
    let mesh = half(12, 1.0).and(&half(40, -1.0)).mesh();
    let before = lopsided(&mesh);
    let after = edit::mirror(&mesh, &before, &skeleton(), &Mirror::across(Axis::X), &Locks::NONE).unwrap();
    let again = edit::mirror(&mesh, &after, &skeleton(), &Mirror::across(Axis::X), &Locks::NONE).unwrap();
    assert!(apart(&after, &again) < 1e-12, "{}", apart(&after, &again));
    // Against the closed form at the mirrored point. Weights have slopes below 1 and the triangles are up to 0.26 long,
    // the blend over them is off by at most their second derivative (below 2) times 0.26^2 / 8.
    let truth = lopsided(
        &Mesh::new(mesh.positions().iter().map(|p| DVec3::new(-p.x, p.y, p.z)).collect(), mesh.triangles().to_vec())
            .unwrap(),
    );
    let swap = [0, 2, 1, 4, 3, 5];
    for (v, p) in mesh.positions().iter().enumerate().filter(|(_, p)| p.x < -0.3) {
        for joint in 0..6 {
            let off = (after.weight(v, swap[joint as usize]) - truth.weight(v, joint)).abs();
            assert!(off < 0.02, "{p} {joint}: {off}");
        }
    }
    assert!(
        edit::mirror(&mesh, &before, &skeleton(), &Mirror { at: 5.0, ..Mirror::across(Axis::X) }, &Locks::NONE)
            .is_err()
    );
}

/// Random locks: some vertices, perhaps a bone on the middle plane.
fn locks(vertices: usize, random: &mut Random) -> Locks {
    let mut locks = Locks::default();
    (0..vertices / 4).for_each(|_| locks.set_vertex(random.below(vertices as u64) as usize, true));
    locks.set_bone(0, random.below(2) == 0);
    locks.set_bone(5, random.below(2) == 0);
    locks
}

fn assert_kept(before: &Weights, after: &Weights, locks: &Locks) -> Result<(), TestCaseError> {
    prop_assert!(off_one(after) < 1e-12, "sum off by {}", off_one(after));
    for v in 0..before.len() {
        if locks.vertex(v) {
            prop_assert_eq!(before.of(v), after.of(v), "vertex {}", v);
        }
        for joint in (0..6).filter(|&j| locks.bone(j)) {
            prop_assert_eq!(before.weight(v, joint), after.weight(v, joint), "vertex {}, bone {}", v, joint);
        }
        prop_assert!(after.of(v).iter().all(|i| i.weight > 0.0 && i.weight <= 1.0));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(6), cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sums_stay_1_and_locked_stays_locked(seed: u64, most in 1usize..7, least in 0.0f64..0.9) {
        let (mesh, skeleton, random) = (ball(), skeleton(), &mut Random(seed | 1));
        let before = random_weights(mesh.positions().len(), random);
        let locks = locks(before.len(), random);
        assert_kept(&before, &edit::normalize(&before, &locks), &locks)?;
        let (limited, _) = edit::limit(&before, most, &skeleton, &locks).unwrap();
        assert_kept(&before, &limited, &locks)?;
        let allowed = |v: usize| most.max(limited.of(v).iter().filter(|i| locks.bone(i.joint)).count() + 1);
        prop_assert!((0..limited.len()).all(|v| locks.vertex(v) || limited.of(v).len() <= allowed(v)));
        assert_kept(&before, &edit::threshold(&before, least, &skeleton, &locks).unwrap().0, &locks)?;
        assert_kept(&before, &edit::smooth(&mesh, &before, &Smooth { steps: 3, strength: least }, &locks).unwrap(), &locks)?;
        let by = Mirror::across(Axis::X);
        assert_kept(&before, &edit::mirror(&mesh, &before, &skeleton, &by, &locks).unwrap(), &locks)?;
    }

    #[test]
    fn twice_is_once(seed: u64, most in 1usize..7) {
        let (mesh, skeleton, random) = (ball(), skeleton(), &mut Random(seed | 1));
        let before = random_weights(mesh.positions().len(), random);
        let mut locks = Locks::default();
        (0..20).for_each(|_| locks.set_vertex(random.below(before.len() as u64) as usize, true));
        let mirrored = |w: &Weights| edit::mirror(&mesh, w, &skeleton, &Mirror::across(Axis::X), &locks).unwrap();
        let once = mirrored(&before);
        prop_assert!(apart(&once, &before) > 0.1);
        prop_assert!(apart(&mirrored(&once), &once) < 1e-12);
        let limited = |w: &Weights| edit::limit(w, most, &skeleton, &locks).unwrap().0;
        prop_assert!(apart(&limited(&limited(&before)), &limited(&before)) < 1e-12);
    }
}
