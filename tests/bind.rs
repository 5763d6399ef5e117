//! The whole bind by distance, from mesh and skeleton to weights: shapes whose answer is known, and what must not matter.

mod common;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use common::shapes::{Shape, capsule, cuboid, sphere, u_bend};
use glam::DVec3;
use skinbind::bind::{Bound, Method, Params, bind};
use skinbind::crawl::Neighbors;
use skinbind::influence::{Falloff, Limits};
use skinbind::model::{Bone, Code, Mesh, Skeleton, Weights};
use skinbind::progress::{Progress, Stage};
use skinbind::{Error, glam};

fn bone(name: &str, head: [f64; 3], tail: [f64; 3], parent: Option<usize>) -> Bone {
    Bone { name: name.into(), head: head.into(), tail: tail.into(), parent, deform: true }
}

fn at(resolution: u32) -> Params {
    Params { method: Method::Geodesic, resolution: Some(resolution), ..Params::default() }
}

fn bound(mesh: &Mesh, bones: Vec<Bone>, params: &Params) -> Bound {
    bind(mesh, &Skeleton::new(bones).unwrap(), params, Progress::NONE).unwrap()
}

/// The largest difference of any weight, bones by name.
fn difference(a: (&Weights, &[Bone]), b: (&Weights, &[Bone])) -> f64 {
    assert_eq!(a.0.len(), b.0.len());
    let joint = |bones: &[Bone], name: &str| bones.iter().position(|b| b.name == name).unwrap() as u32;
    let pairs = a.1.iter().map(|bone| (joint(a.1, &bone.name), joint(b.1, &bone.name)));
    let gap = |v: usize, (i, j): (u32, u32)| (a.0.weight(v, i) - b.0.weight(v, j)).abs();
    pairs.flat_map(|pair| (0..a.0.len()).map(move |v| gap(v, pair))).fold(0.0, f64::max)
}

/// A body of two limbs at an angle and a head, with a bone each and one between.
fn figure() -> Shape {
    capsule(0.3, 2.0, 6)
        .and(&capsule(0.2, 1.2, 5).map(|p| DVec3::new(p.y, p.x + 1.6, p.z + 0.013)))
        .and(&sphere(0.4, 6).map(|p| p + DVec3::new(0.017, 2.5, 0.011)))
}

fn figure_bones() -> Vec<Bone> {
    vec![
        bone("trunk", [0.0, 0.1, 0.0], [0.0, 1.1, 0.0], None),
        bone("chest", [0.0, 1.1, 0.0], [0.02, 2.0, 0.01], Some(0)),
        bone("arm", [0.2, 1.6, 0.0], [1.2, 1.61, 0.02], Some(1)),
        bone("head", [0.0, 2.1, 0.0], [0.01, 2.8, 0.0], Some(1)),
    ]
}

/// Height 2, radius 0.3, 9 rings of 16 vertices and the two caps' middles.
fn cylinder() -> Mesh {
    let ring = |r: u32| (0..16).map(move |i| (f64::from(i) / 16.0 * std::f64::consts::TAU, f64::from(r) / 4.0));
    let mut points: Vec<DVec3> =
        (0..9).flat_map(ring).map(|(a, y)| DVec3::new(0.3 * a.cos(), y, 0.3 * a.sin())).collect();
    points.extend([DVec3::ZERO, DVec3::new(0.0, 2.0, 0.0)]);
    let mut triangles = Vec::new();
    for i in 0..16u32 {
        let next = (i + 1) % 16;
        for r in 0..8 {
            let [a, b, c, d] = [16 * r + i, 16 * r + next, 16 * r + 16 + next, 16 * r + 16 + i];
            triangles.extend([[a, c, b], [a, d, c]]);
        }
        triangles.extend([[144, i, next], [145, 128 + next, 128 + i]]);
    }
    Mesh::new(points, triangles).unwrap()
}

#[test]
fn the_middle_of_a_cylinder_is_not_starved() {
    let third = 2.0 / 3.0;
    let bones = (0..3usize).map(|i| {
        let y = i as f64 * third;
        bone(["low", "middle", "high"][i], [0.0, y, 0.0], [0.0, y + third, 0.0], i.checked_sub(1))
    });
    let mesh = cylinder();
    let bound = bound(&mesh, bones.collect(), &Params::default());
    // Each third has a third of the axis; what it has of the surface lies between 28 and 38 % for any falloff of use.
    let share = (0..144).map(|v| bound.weights.weight(v, 1)).sum::<f64>() / 144.0;
    assert!((0.28..=0.38).contains(&share), "{share}");
    // Negative control: without its neighbours' reach it would have all of the middle ring and no more.
    assert!(bound.weights.weight(64, 1) < 1.0 && bound.weights.weight(0, 1) < 0.28);
}

#[test]
fn a_layer_of_empty_voxels_keeps_two_boxes_apart() {
    // One unit is a voxel: 32 long, and the gap is three voxels, of which one is certainly empty.
    let two = |gap: f64| {
        let low = cuboid(DVec3::ZERO, DVec3::new(10.0, 32.0, 10.0), 4);
        low.and(&cuboid(DVec3::new(10.0 + gap, 0.0, 0.0), DVec3::new(20.0 + gap, 32.0, 10.0), 4)).mesh()
    };
    let bones = |gap: f64| {
        let right = 15.0 + gap;
        vec![bone("left", [5., 4., 5.], [5., 28., 5.], None), bone("right", [right, 4., 5.], [right, 28., 5.], None)]
    };
    let leaked = |gap: f64| {
        let bound = bound(&two(gap), bones(gap), &at(32));
        let half = bound.weights.len() / 2;
        let across = |v: usize| bound.weights.weight(v, u32::from(v < half));
        (0..bound.weights.len()).map(across).fold(0.0, f64::max)
    };
    assert_eq!(leaked(3.0), 0.0);
    // Negative control: a gap that no voxel fits into leaks.
    assert!(leaked(0.5) > 0.1);
}

#[test]
fn the_tips_of_a_bend_stay_apart() {
    let other_leg = |gap: f64| {
        let mesh = u_bend(0.15, gap, 1.5, 8).mesh();
        let b = mesh.bounds();
        let (left, right, top) = (b.min.x + 0.15, b.max.x - 0.15, b.max.y - 0.15);
        let bones = vec![
            bone("left", [left, b.min.y + 0.2, 0.0], [left, top - 0.3, 0.0], None),
            bone("right", [right, b.min.y + 0.2, 0.0], [right, top - 0.3, 0.0], None),
        ];
        let bound = bound(&mesh, bones, &at(64));
        let tip = |p: &DVec3| p.y < b.min.y + 0.3 && p.x < 0.5 * (left + right);
        let tips = mesh.positions().iter().enumerate().filter(|(_, p)| tip(p));
        tips.map(|(v, _)| bound.weights.weight(v, 1)).fold(0.0, f64::max)
    };
    assert!(other_leg(0.2) < 0.03, "{}", other_leg(0.2));
    // Negative control: legs that no voxel fits between pull at each other.
    assert!(other_leg(0.005) > 0.1, "{}", other_leg(0.005));
}

#[test]
fn scale_and_the_orders_of_bones_and_vertices_change_nothing() {
    let (mesh, bones) = (figure().mesh(), figure_bones());
    let plain = bound(&mesh, bones.clone(), &at(64)).weights;
    for scale in [1e-3, 1e3] {
        let scaled: Vec<Bone> =
            bones.iter().map(|b| Bone { head: b.head * scale, tail: b.tail * scale, ..b.clone() }).collect();
        let other = bound(&figure().map(|p| p * scale).mesh(), scaled, &at(64)).weights;
        // Rounding of the coordinates, 2^-53, over at most some thousand operations.
        assert!(difference((&plain, &bones), (&other, &bones)) <= 1e-9, "scale {scale}");
    }
    let mut reversed: Vec<Bone> = bones.iter().rev().cloned().collect();
    reversed.iter_mut().for_each(|b| b.parent = b.parent.map(|p| bones.len() - 1 - p));
    let other = bound(&mesh, reversed.clone(), &at(64)).weights;
    assert!(difference((&plain, &bones), (&other, &reversed)) <= 1e-9);

    let last = mesh.positions().len() as u32 - 1;
    let positions = mesh.positions().iter().rev().copied().collect();
    let triangles = mesh.triangles().iter().rev().map(|t| t.map(|v| last - v)).collect();
    let other = bound(&Mesh::new(positions, triangles).unwrap(), bones.clone(), &at(64)).weights;
    let back = other.scatter(&(0..=last).rev().collect::<Vec<_>>());
    assert!(difference((&plain, &bones), (&back, &bones)) <= 1e-9);
    // Negative control: a bone moved by a hundredth is noticed.
    let mut moved = bones.clone();
    moved[2].tail.y += 0.01;
    assert!(difference((&plain, &bones), (&bound(&mesh, moved, &at(64)).weights, &bones)) > 1e-6);
}

#[test]
fn a_quarter_turn_changes_nothing() {
    let bones = figure_bones();
    let plain = bound(&figure().mesh(), bones.clone(), &at(64)).weights;
    let turns: [fn(DVec3) -> DVec3; 3] =
        [|p| DVec3::new(-p.y, p.x, p.z), |p| DVec3::new(p.z, p.y, -p.x), |p| DVec3::new(p.y, p.z, p.x)];
    for (n, turn) in turns.into_iter().enumerate() {
        let turned: Vec<Bone> =
            bones.iter().map(|b| Bone { head: turn(b.head), tail: turn(b.tail), ..b.clone() }).collect();
        let other = bound(&figure().map(turn).mesh(), turned, &at(64)).weights;
        // Sums along other axes round otherwise.
        assert!(difference((&plain, &bones), (&other, &bones)) <= 1e-6, "turn {n}");
    }
}

#[test]
fn every_vertex_has_weights_that_add_up_to_one() {
    let island = sphere(0.1, 4).map(|p| p + DVec3::new(3.0, 0.0, 0.0));
    let mesh = figure().and(&island).mesh();
    for method in [Method::Geodesic, Method::VoxelHeat, Method::Envelope, Method::Closest] {
        for neighbors in [Neighbors::Six, Neighbors::TwentySix] {
            for max_influences in [1, 4, 16] {
                let limits = Limits { max_influences, threshold: 0.01 };
                let params = Params { method, neighbors, limits, ..at(40) };
                let bound = bound(&mesh, figure_bones(), &params);
                for (v, row) in bound.weights.iter().enumerate() {
                    let sum: f64 = row.iter().map(|i| i.weight).sum();
                    assert!((sum - 1.0).abs() <= 16.0 * f64::EPSILON, "{method:?} vertex {v}: {sum}");
                    assert!(row.len() <= max_influences && row.windows(2).all(|w| w[0].weight >= w[1].weight));
                }
                let named = bound.report.warnings.iter().any(|w| w.code == Code::ComponentUnreached);
                assert!(named, "{method:?}: the island is not named");
            }
        }
    }
}

#[test]
fn excluded_bones_and_helpers_get_nothing() {
    let mut bones = figure_bones();
    bones[3].deform = false;
    let params = Params { exclude: vec!["arm".into()], ..at(40) };
    let bound = bound(&figure().mesh(), bones, &params);
    assert!(bound.weights.iter().flatten().all(|i| i.joint < 2));
    let unknown = Params { exclude: vec!["tail".into()], ..at(40) };
    let skeleton = Skeleton::new(figure_bones()).unwrap();
    let error = bind(&figure().mesh(), &skeleton, &unknown, Progress::NONE).unwrap_err();
    assert!(error.to_string().contains("\"tail\""), "{error}");
}

#[test]
fn bad_parameters_are_named() {
    let (mesh, skeleton) = (figure().mesh(), Skeleton::new(figure_bones()).unwrap());
    let bad = [
        ("resolution", at(15)),
        ("resolution", at(1025)),
        ("smoothing", Params { falloff: Falloff { smoothing: 1.5, power: 2.0 }, ..at(32) }),
        ("falloff power", Params { falloff: Falloff { smoothing: 0.1, power: f64::NAN }, ..at(32) }),
        ("max influences", Params { limits: Limits { max_influences: 0, threshold: 0.0 }, ..at(32) }),
        ("threshold", Params { limits: Limits { max_influences: 4, threshold: 1.0 }, ..at(32) }),
    ];
    for (expected, params) in bad {
        match bind(&mesh, &skeleton, &params, Progress::NONE) {
            Err(Error::Parameter { name, .. }) => assert_eq!(name, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
    assert!(bind(&mesh, &skeleton, &at(32), Progress::NONE).is_ok());
}

#[test]
fn it_reports_its_stages_and_stops_in_each() {
    let (mesh, skeleton) = (figure().mesh(), Skeleton::new(figure_bones()).unwrap());
    for stage in [Stage::Prepare, Stage::Voxelize, Stage::Interior, Stage::Crawl, Stage::Influence] {
        let seen = AtomicBool::new(false);
        let stop = |at: Stage, _: f64| {
            if at == stage {
                seen.store(true, Ordering::Relaxed);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let result = bind(&mesh, &skeleton, &at(64), Progress::new(&stop));
        assert!(matches!(result, Err(Error::Cancelled)) && seen.into_inner(), "{stage:?}");
    }
    let bound = bind(&mesh, &skeleton, &at(64), Progress::NONE).unwrap();
    assert_eq!((bound.report.resolution, bound.report.bones), (64, 4));
    assert!(bound.report.solid_voxels > 1000 && bound.report.stats.influences_considered >= 5);
    assert!(bound.report.seconds.of("crawl").is_some() && bound.report.seconds.of("total").is_some());
}
