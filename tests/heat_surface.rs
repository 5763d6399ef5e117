//! Heat on the surface: the fast path against elimination with a full matrix and against closed forms, and what must not
//! matter.

mod common;

use std::f64::consts::TAU;
use std::ops::ControlFlow;

use common::figure::{bone, difference, figure, figure_bones, limb};
use common::shapes::{Random, Shape, sphere, u_bend};
use glam::DVec3;
use skinbind::bind::{Bound, Method, Params, bind};
use skinbind::heat::surface::historical::{STOP, Stop, sweep, weights};
use skinbind::heat::surface::solve::{Solved, solve};
use skinbind::heat::surface::sources::{REACH, TIE, sources};
use skinbind::heat::surface::visibility::Blockers;
use skinbind::heat::surface::{Conduction, Parameters, Problem, STRENGTH, reference, surface_heat};
use skinbind::heat::{TOLERANCE, nearby_order};
use skinbind::model::{Bone, Code, Mesh, Skeleton};
use skinbind::progress::{Progress, Stage};
use skinbind::{Error, glam};

const CONDUCTIONS: [Conduction; 2] = [Conduction::Cotangents, Conduction::Lengths];

fn problem(mesh: &Mesh, skeleton: &Skeleton, conduction: Conduction, strength: f64) -> Problem {
    let weld = mesh.weld();
    let components = mesh.components(&weld);
    Problem::new(mesh, &weld, &components, skeleton, &vec![true; skeleton.len()], conduction, strength)
}

/// A bent tube of about a thousand places with a chain of bones along its axis, some of them off it.
fn bent() -> (Mesh, Skeleton) {
    let mesh = u_bend(0.15, 0.3, 1.0, 8).mesh();
    let bounds = mesh.bounds();
    let (low, high) = (bounds.min + 0.15, bounds.max - 0.15);
    let at = |i: usize| {
        let (x, share) = if i <= 6 { (low.x, i as f64 / 6.0) } else { (high.x, (12 - i) as f64 / 6.0) };
        DVec3::new(x, low.y + (0.1 - low.y) * share, 0.0) + DVec3::new(0.013, 0.007, 0.011) * (i % 3) as f64
    };
    let bones = (0..12).map(|i| bone(&format!("b{i:02}"), at(i).into(), at(i + 1).into(), i.checked_sub(1)));
    (mesh, Skeleton::new(bones.collect()).unwrap())
}

fn solved(mesh: &Mesh, skeleton: &Skeleton, problem: &Problem, cold: f64) -> Solved {
    let weld = mesh.weld();
    let at = |&place: &u32| mesh.positions()[weld.first[place as usize] as usize];
    let positions: Vec<DVec3> = problem.system.place.iter().map(at).collect();
    solve(&problem.system, &positions, skeleton.len(), &nearby_order(skeleton), cold, Progress::NONE).unwrap()
}

/// Heats by bone and unknown; 0 for those not listed.
fn table(solved: &Solved, bones: usize, unknowns: usize) -> Vec<Vec<f64>> {
    let mut table = vec![vec![0.0; unknowns]; bones];
    for &(unknown, heat) in solved.groups.iter().flatten() {
        table[heat.bone as usize][unknown as usize] = heat.heat;
    }
    table
}

fn worst(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    pairs.fold(0.0, |worst: f64, (a, b)| worst.max((a - b).abs()))
}

#[test]
fn the_fast_path_is_within_its_tolerance_of_elimination_with_a_full_matrix() {
    let (mesh, skeleton) = bent();
    for conduction in CONDUCTIONS {
        let problem = problem(&mesh, &skeleton, conduction, STRENGTH);
        let n = problem.system.len();
        assert!(n > 800 && problem.reached.iter().all(|&r| r));
        let truth = reference::heats(&problem.system, skeleton.len());
        // Half of the tolerance for what is left out of a solve, half for what is not listed.
        let off = |tolerance: f64| {
            worst(&table(&solved(&mesh, &skeleton, &problem, 0.5 * tolerance), skeleton.len(), n), &truth)
        };
        for tolerance in [TOLERANCE, 1e-6, 1e-9] {
            assert!(off(tolerance) <= tolerance, "{conduction:?}: {:e} is beyond {tolerance:e}", off(tolerance));
        }
        // Negative control: a loose solve is not within the tight tolerance.
        assert!(off(0.05) > TOLERANCE, "{:e}", off(0.05));
        // The heats of all bones add up to 1, and none is below 0.
        for i in 0..n {
            let sum: f64 = truth.iter().map(|heat| heat[i]).sum();
            assert!((sum - 1.0).abs() < 1e-9 && truth.iter().all(|heat| heat[i] > -1e-12));
        }
    }
}

#[test]
fn the_residual_says_how_exact_a_solve_is() {
    let (_, skeleton) = bent();
    let mesh = u_bend(0.15, 0.3, 1.0, 24).mesh();
    let problem = problem(&mesh, &skeleton, Conduction::Lengths, STRENGTH);
    assert!(problem.system.len() > 8000);
    let residual = |cold| solved(&mesh, &skeleton, &problem, cold).residual;
    // All that is left with nothing left out is rounding: 2^-53 times a few dozen terms, some a thousand times larger than
    // the right-hand side.
    assert!(residual(1e-18) < 1e-11, "{:e}", residual(1e-18));
    assert!(residual(1e-2) > 1e-5);
}

/// An open tube about the y axis, `rings` rings of `around` places `step` apart, with diagonals all one way.
fn tube(radius: f64, step: f64, rings: u32, around: u32) -> Shape {
    let point = |i: u32| {
        let (sin, cos) = (TAU * f64::from(i % around) / f64::from(around)).sin_cos();
        DVec3::new(radius * cos, step * f64::from(i / around), radius * sin)
    };
    let quad = |i: u32| {
        let next = i / around * around + (i + 1) % around;
        [[i, i + around, next], [next, i + around, next + around]]
    };
    Shape {
        points: (0..rings * around).map(point).collect(),
        faces: (0..(rings - 1) * around).flat_map(quad).collect(),
    }
}

#[test]
fn two_bones_in_a_tube_have_the_closed_form() {
    // By symmetry all places of a ring are alike: C (w[k-1] - 2 w[k] + w[k+1]) = g (w[k] - p[k]), p being 1 before the
    // joint and 0 beyond it. So w[k] = q^(k+1) / (1 + q) beyond, where q + 1/q = 2 + g/C and q < 1.
    let (radius, step, rings, around) = (0.3, 0.1, 120, 8);
    let mesh = tube(radius, step, rings, around).mesh();
    let (joint, end) = (step * (f64::from(rings) / 2.0 - 0.5), step * f64::from(rings - 1));
    let bones =
        vec![bone("a", [0., 0., 0.], [0., joint, 0.], None), bone("b", [0., joint, 0.], [0., end, 0.], Some(0))];
    let skeleton = Skeleton::new(bones).unwrap();
    let chord = 2.0 * radius * (TAU / 2.0 / f64::from(around)).sin();
    for conduction in CONDUCTIONS {
        let (conductance, source) = match conduction {
            // Along the axis, and along a diagonal.
            Conduction::Lengths => (step.powi(-2) + (step * step + chord * chord).recip(), STRENGTH / radius.powi(2)),
            // Opposite to a step is an angle of tangent step / chord, in two triangles; opposite to a diagonal a right angle,
            // whose cotangent of 0 is lifted to 1e-6.
            Conduction::Cotangents => (chord / step + 1e-6, chord * step * STRENGTH / radius.powi(2)),
        };
        let half = 1.0 + 0.5 * source / conductance;
        let q = half - (half * half - 1.0).sqrt();
        let problem = problem(&mesh, &skeleton, conduction, STRENGTH);
        let heats = table(&solved(&mesh, &skeleton, &problem, 1e-12), 2, problem.system.len());
        // Both ends of the tube are q^60 away; what the first ring conducts is half of an inner one's in neither form.
        assert!(q.powi(40) < 1e-8, "{q}");
        for k in 0..20 {
            for i in 0..around {
                let place = ((rings / 2 + k) * around + i) as usize;
                let expected = q.powi(k as i32 + 1) / (1.0 + q);
                assert!(
                    (heats[0][place] - expected).abs() < 1e-8,
                    "{conduction:?}, ring {k}: {} {expected}",
                    heats[0][place]
                );
            }
        }
        // Negative control: a strength a hundredth larger has another q.
        let other = self::problem(&mesh, &skeleton, conduction, STRENGTH * 1.01);
        let other = table(&solved(&mesh, &skeleton, &other, 1e-12), 2, other.system.len());
        assert!(worst(&heats, &other) > 1e-4);
    }
}

#[test]
fn sources_are_those_of_a_search_over_all_bones_and_triangles() {
    let mesh = figure().mesh();
    // Off the axes of the limbs: ways that run exactly through edges are for the tests of visibility.
    let shift = DVec3::new(0.0123, 0.0071, 0.0057);
    let bones = figure_bones().into_iter().map(|b| Bone { head: b.head + shift, tail: b.tail + shift, ..b });
    let skeleton = Skeleton::new(bones.collect()).unwrap();
    let weld = mesh.weld();
    let blockers = Blockers::new(&mesh, &weld);
    let mass = vec![1.0; weld.places()];
    let found = sources(&mesh, &weld, &blockers, &skeleton, &vec![true; skeleton.len()], &mass, STRENGTH);
    let (mut further, mut none) = (0, 0);
    for place in (0..weld.places()).step_by(5) {
        let p = mesh.positions()[weld.first[place] as usize];
        let sees = |b: usize| {
            let bone = &skeleton.bones()[b];
            let to = skinbind::geometry::segment::closest_point(p, bone.head, bone.tail);
            let margin = 1e-5 * mesh.bounds().diagonal() / p.distance(to);
            !reference::hidden(&mesh, p, to, margin)
        };
        let expected = reference::nearest_seen(&skeleton, p, TIE, REACH, sees);
        let mut of = found.of(place as u32).to_vec();
        of.sort_unstable();
        let (bones, distance) = expected.clone().unwrap_or((Vec::new(), f64::INFINITY));
        assert_eq!(of, bones, "place {place}");
        let conductance = STRENGTH / distance.powi(2);
        assert!((found.conductance[place] - conductance).abs() <= 1e-9 * conductance, "place {place}");
        none += usize::from(expected.is_none());
        let all = reference::nearest_seen(&skeleton, p, TIE, REACH, |_| true);
        further += usize::from(expected.is_some() && all != expected);
    }
    // All three kinds of places were there.
    assert!(further > 10 && none > 0 && none < weld.places() / 20, "{further} {none}");
}

/// Weights with nothing cut.
fn bound(mesh: &Mesh, bones: Vec<Bone>) -> (Skeleton, Bound) {
    let skeleton = Skeleton::new(bones).unwrap();
    let mut params = Params { method: Method::Heat, ..Params::default() };
    params.limits.max_influences = 16;
    params.limits.threshold = 0.0;
    let bound = bind(mesh, &skeleton, &params, Progress::NONE).unwrap();
    (skeleton, bound)
}

#[test]
fn scale_and_order_of_bones_do_not_matter() {
    let plain = bound(&figure().mesh(), figure_bones());
    for scale in [1e-3, 0.37, 1e3] {
        let bones = figure_bones().into_iter().map(|b| Bone { head: b.head * scale, tail: b.tail * scale, ..b });
        let scaled = bound(&figure().map(|p| p * scale).mesh(), bones.collect());
        let off = difference(&plain, &scaled);
        assert!(off <= 1e-9, "scale {scale}: {off:e}");
    }
    let mut reversed = figure_bones();
    let last = reversed.len() - 1;
    reversed.reverse();
    reversed.iter_mut().for_each(|b| b.parent = b.parent.map(|p| last - p));
    assert!(difference(&plain, &bound(&figure().mesh(), reversed)) <= 1e-9);
    // Negative control: a bone a hundredth of its length away is another problem.
    let mut moved = figure_bones();
    moved[1].tail.y += 0.005;
    assert!(difference(&plain, &bound(&figure().mesh(), moved)) > 1e-6);
}

#[test]
fn a_soup_is_bound_like_the_mesh_it_came_from() {
    let mesh = figure().mesh();
    let corners: Vec<DVec3> = mesh.triangles().iter().flat_map(|&t| mesh.corners(t)).collect();
    let triangles = (0..mesh.triangles().len() as u32).map(|t| [3 * t, 3 * t + 1, 3 * t + 2]).collect();
    let soup = Mesh::new(corners, triangles).unwrap();
    let (_, clean) = bound(&mesh, figure_bones());
    let (skeleton, torn) = bound(&soup, figure_bones());
    let mut first = vec![None; mesh.positions().len()];
    for (t, triangle) in mesh.triangles().iter().enumerate() {
        for (c, &v) in triangle.iter().enumerate() {
            // All corners at one place are exactly alike.
            let row = torn.weights.of(3 * t + c);
            assert_eq!(*first[v as usize].get_or_insert(row), row);
            // Places have other numbers, so another cut may be left out: up to the tolerance from each.
            for joint in 0..skeleton.len() as u32 {
                let off = (torn.weights.weight(3 * t + c, joint) - clean.weights.weight(v as usize, joint)).abs();
                assert!(off <= 4.0 * TOLERANCE, "{off:e}");
            }
        }
    }
    assert_ne!(clean.weights.of(0), clean.weights.of(mesh.positions().len() - 1));
}

#[test]
fn a_part_that_sees_no_bone_takes_the_weights_of_the_nearest_bound_surface() {
    let bones =
        || vec![bone("low", [0., 0., 0.], [0., 1., 0.], None), bone("high", [0., 1., 0.], [0., 2., 0.], Some(0))];
    let (arm, sleeve) = (limb(0.2, [0., 0., 0.], [0., 2., 0.]), limb(0.25, [0., 0., 0.], [0., 2., 0.]));
    let inner = arm.points.len();
    let mesh = arm.and(&sleeve).and(&sphere(0.1, 6).map(|p| p + DVec3::new(3.0, 1.8, 0.0))).mesh();
    let skeleton = Skeleton::new(bones()).unwrap();
    let reached = problem(&mesh, &skeleton, Conduction::Lengths, STRENGTH).reached;
    let weld = mesh.weld();
    // The sleeve is hidden from the bones by the arm; of the ball by the side only one half sees them.
    assert!(reached[..weld.place_of[inner] as usize].iter().all(|&r| r));
    let outer = weld.place_of[inner] as usize..weld.place_of[inner + sleeve.points.len() - 1] as usize;
    assert!(reached[outer].iter().all(|&r| !r));
    let (_, bound) = bound(&mesh, bones());
    assert!(bound.report.unreached_vertices >= sleeve.points.len());
    assert!(bound.report.warnings.iter().any(|w| w.code == Code::ComponentUnreached));
    for v in 0..inner {
        let off = (bound.weights.weight(v, 0) - bound.weights.weight(v + inner, 0)).abs();
        assert!(off < 0.05, "vertex {v}: {off}");
    }
    // Alone, it sees them.
    assert!(problem(&sleeve.mesh(), &skeleton, Conduction::Lengths, STRENGTH).reached.iter().all(|&r| r));
}

#[test]
fn bones_outside_are_left_out_and_named() {
    let mut bones = figure_bones();
    bones.push(bone("prop", [3., 1., 0.], [4., 1., 0.], Some(0)));
    let with = bound(&figure().mesh(), bones);
    let without = bound(&figure().mesh(), figure_bones());
    assert_eq!(difference(&without, &with), 0.0);
    let named = |bound: &Bound| {
        let of = |w: &&skinbind::model::Warning| w.code == Code::BoneOutside;
        bound.report.warnings.iter().filter(of).filter_map(|w| w.bone.clone()).collect::<Vec<_>>()
    };
    assert_eq!(named(&with.1), ["prop"]);
    assert!(named(&without.1).is_empty());
    // Where all are outside, all are used.
    let (_, far) = bound(&figure().mesh(), vec![bone("left", [3., 1., 0.], [3., 2., 0.], None)]);
    assert!(far.weights.iter().all(|row| row.len() == 1 && row[0].weight == 1.0));
    assert_eq!(named(&far), ["left"]);
}

#[test]
fn the_historical_iteration_stops_far_from_the_solution() {
    // A long tube with weak sources: heat has a long way to go, and a sweep carries it one edge.
    let mesh = tube(0.3, 0.05, 100, 12).mesh();
    let bones =
        vec![bone("a", [0., 0., 0.], [0., 2.475, 0.], None), bone("b", [0., 2.475, 0.], [0., 4.95, 0.], Some(0))];
    let skeleton = Skeleton::new(bones).unwrap();
    let problem = problem(&mesh, &skeleton, Conduction::Lengths, 0.02);
    let exact = table(&solved(&mesh, &skeleton, &problem, 1e-12), 2, problem.system.len());
    let off = |stop: Stop| {
        let swept = sweep(&problem.system, 0, stop);
        (swept.heat.iter().zip(&exact[0]).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs())), swept.sweeps)
    };
    let (stopped, sweeps) = off(STOP);
    assert!(stopped > 0.05 && sweeps == STOP.sweeps, "{stopped} after {sweeps} sweeps");
    // Control: it is the stop, not the sweeps: without it they arrive.
    let (arrived, _) = off(Stop { change: 1e-12, sweeps: 1_000_000 });
    assert!(arrived < 1e-7, "{arrived:e}");
    let rows = weights(&problem.system, 2, STOP);
    assert!(rows.iter().all(|row| (row.iter().map(|i| i.weight).sum::<f64>() - 1.0).abs() < 1e-12));
    assert!(rows.iter().any(|row| row.len() == 1) && rows.iter().any(|row| row.len() == 2));
}

#[test]
fn random_skeletons_leave_nothing_bare() {
    let mut random = Random(7);
    let mesh = figure().mesh();
    for _ in 0..6 {
        let count = 1 + random.below(40) as usize;
        let bones = (0..count)
            .map(|i| {
                let (head, tail) = (random.in_cube(), random.in_cube());
                let place = |p: DVec3| (p * DVec3::new(1.0, 1.2, 0.3) + DVec3::Y).to_array();
                let parent = (i > 0).then(|| random.below(i as u64) as usize);
                // Every fifth has no length.
                bone(&format!("b{i}"), place(head), place(if i % 5 == 4 { head } else { tail }), parent)
            })
            .collect();
        let (_, bound) = bound(&mesh, bones);
        for v in 0..bound.weights.len() {
            let sum: f64 = bound.weights.of(v).iter().map(|i| i.weight).sum();
            assert!((sum - 1.0).abs() < 1e-12 && bound.weights.of(v).iter().all(|i| i.weight > 0.0));
        }
    }
    // A soup of random triangles, many without area.
    let soup = common::shapes::soup(&mut random, 300).mesh();
    let (_, bound) = bound(&soup, figure_bones());
    assert!(bound.weights.iter().all(|row| !row.is_empty() && row.iter().all(|i| i.weight.is_finite())));
    assert!(bound.report.warnings.iter().any(|w| w.code == Code::DegenerateFaces));
}

#[test]
fn a_caller_can_stop_it_and_bad_parameters_are_named() {
    let mesh = figure().mesh();
    let skeleton = Skeleton::new(figure_bones()).unwrap();
    let (weld, use_bone) = (mesh.weld(), vec![true; skeleton.len()]);
    let components = mesh.components(&weld);
    let run = |use_bone: &[bool], parameters: &Parameters, progress: Progress| {
        surface_heat(&mesh, &weld, &components, &skeleton, use_bone, parameters, progress).map(|h| h.residual)
    };
    let stop = |stage: Stage, fraction: f64| {
        if stage == Stage::Heat && fraction > 0.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let parameters = Parameters::default();
    assert!(matches!(run(&use_bone, &parameters, Progress::new(&stop)), Err(Error::Cancelled)));
    assert!(run(&use_bone, &parameters, Progress::NONE).is_ok());
    let short = run(&use_bone[1..], &parameters, Progress::NONE);
    assert!(matches!(short, Err(Error::Length { found: 10, expected: 11, .. })));
    for tolerance in [0.0, 1.0, f64::NAN] {
        let bad = Parameters { tolerance, ..parameters };
        assert!(matches!(run(&use_bone, &bad, Progress::NONE), Err(Error::Parameter { name: "tolerance", .. })));
    }
    let bad = Parameters { strength: -1.0, ..parameters };
    assert!(matches!(run(&use_bone, &bad, Progress::NONE), Err(Error::Parameter { name: "strength", .. })));
}
