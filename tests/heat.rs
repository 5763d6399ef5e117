//! Heat in the solid: the fast solver against the full one, the source rule on shapes whose answer is known, and what
//! must not matter.

mod common;

use std::ops::ControlFlow;

use common::figure::{bone, difference, figure, figure_bones, limb};
use common::shapes::{Random, cuboid, sphere, u_bend};
use glam::DVec3;
use skinbind::bind::{Bound, Method, Params, bind};
use skinbind::heat::cpu::Heats;
use skinbind::heat::levels::{Level, levels};
use skinbind::heat::sources::{middle, score};
use skinbind::heat::{Distance, Parameters, Problem, TOLERANCE, cpu, nearby_order, reference, voxel_heat};
use skinbind::model::{Bone, Code, Grid, Mesh, Skeleton};
use skinbind::progress::{Progress, Stage};
use skinbind::voxelize::{Interior, Voxels, voxelize};
use skinbind::{Error, glam};

fn voxels(mesh: &Mesh, resolution: u32) -> Voxels {
    let grid = Grid::around(&mesh.bounds(), resolution).unwrap();
    voxelize(mesh, &mesh.weld(), &grid, Interior::Flood, Progress::NONE).unwrap()
}

/// The equation of the figure, and its levels.
fn problem(resolution: u32) -> (Skeleton, Problem, Vec<Level>) {
    let skeleton = Skeleton::new(figure_bones()).unwrap();
    let use_bone = vec![true; skeleton.len()];
    let voxels = voxels(&figure().mesh(), resolution);
    let problem = Problem::new(&voxels, &skeleton, &use_bone, &Parameters::default(), Progress::NONE).unwrap();
    let levels = levels(&problem.solid, skeleton.len(), &problem.bone_of(), &problem.conductance);
    (skeleton, problem, levels)
}

fn solve(skeleton: &Skeleton, problem: &Problem, levels: &[Level], tolerance: f64) -> Heats {
    let everywhere = vec![true; problem.solid.len()];
    cpu::heat(levels, &nearby_order(skeleton), &everywhere, tolerance, Progress::NONE).unwrap()
}

fn heat(heats: &Heats, voxel: usize, bone: u32) -> f64 {
    heats.of(voxel as u32).iter().find(|h| h.bone == bone).map_or(0.0, |h| h.heat)
}

/// The largest difference to the full solution of every bone, itself solved to a residual of 1e-11. That bounds its
/// error: |error| <= |residual| / (smallest g), and g is at least 0.75 / 64^2 here, so it is below 1e-11 x |right side|
/// x 5500 < 1e-6.5.
fn worst_error(heats: &Heats, skeleton: &Skeleton, problem: &Problem, levels: &[Level]) -> f64 {
    let bone_of = problem.bone_of();
    let mut worst = 0f64;
    for bone in 0..skeleton.len() as u32 {
        let truth = reference::heat_of_bone(&levels[0].neighbors, &problem.conductance, |v| bone_of[v] == bone, 1e-11);
        for (voxel, truth) in truth.iter().enumerate() {
            worst = worst.max((heat(heats, voxel, bone) - truth).abs());
        }
    }
    worst
}

#[test]
fn the_fast_solver_is_within_its_tolerance_of_the_full_one() {
    for resolution in [32, 64] {
        let (skeleton, problem, levels) = problem(resolution);
        assert!(levels.len() > 2, "nothing to nest");
        for tolerance in [TOLERANCE, 1e-6] {
            let heats = solve(&skeleton, &problem, &levels, tolerance);
            let worst = worst_error(&heats, &skeleton, &problem, &levels);
            assert!(worst <= tolerance, "resolution {resolution}: {worst:e} is beyond {tolerance:e}");
        }
        // Negative control: a loose solution is not within the tight tolerance.
        let loose = solve(&skeleton, &problem, &levels, 0.03);
        assert!(worst_error(&loose, &skeleton, &problem, &levels) > TOLERANCE);
    }
}

#[test]
fn the_heats_of_a_voxel_add_up_to_one() {
    let (skeleton, problem, levels) = problem(48);
    let heats = solve(&skeleton, &problem, &levels, 1e-6);
    // Each of the bones may be off by the tolerance.
    let allowed = 1e-6 * skeleton.len() as f64;
    for voxel in 0..problem.solid.len() as u32 {
        let sum: f64 = heats.of(voxel).iter().map(|h| h.heat).sum();
        assert!((sum - 1.0).abs() <= allowed, "voxel {voxel}: {sum}");
    }
    assert!(heats.residual > 0.0 && heats.residual < 1e-3, "{}", heats.residual);
}

#[test]
fn owners_are_the_best_of_all_sources() {
    let (_, problem, _) = problem(64);
    let mut differ = 0;
    for voxel in 0..problem.solid.len() as u32 {
        let p = middle(&problem.solid, voxel);
        let least = problem.sources.iter().map(|s| score(s, p)).fold(f64::INFINITY, f64::min);
        // Scores to the fourth power that are equal within 4e-9 tie; the first of them wins.
        let first = problem.sources.iter().position(|s| score(s, p) <= least * (1.0 + 4e-9)).unwrap();
        assert_eq!(problem.owner[voxel as usize], first as u32, "voxel {voxel}");
        differ += usize::from(first != 0);
    }
    assert!(differ > 0);
}

/// Weights of a bone at the vertices, with no influence cut.
fn bound(mesh: &Mesh, bones: Vec<Bone>, resolution: u32) -> (Skeleton, Bound) {
    let skeleton = Skeleton::new(bones).unwrap();
    let mut params = Params { method: Method::VoxelHeat, resolution: Some(resolution), ..Params::default() };
    params.limits.max_influences = 16;
    params.limits.threshold = 0.0;
    let bound = bind(mesh, &skeleton, &params, Progress::NONE).unwrap();
    (skeleton, bound)
}

#[test]
fn scale_and_order_of_bones_do_not_matter() {
    let plain = bound(&figure().mesh(), figure_bones(), 48);
    for scale in [1e-3, 0.37, 1e3] {
        let bones = figure_bones().into_iter().map(|b| Bone { head: b.head * scale, tail: b.tail * scale, ..b });
        let scaled = bound(&figure().map(|p| p * scale).mesh(), bones.collect(), 48);
        assert!(difference(&plain, &scaled) <= 1e-9, "scale {scale}");
    }
    let mut reversed = figure_bones();
    let last = reversed.len() - 1;
    reversed.reverse();
    reversed.iter_mut().for_each(|b| b.parent = b.parent.map(|p| last - p));
    assert!(difference(&plain, &bound(&figure().mesh(), reversed, 48)) <= 1e-9);
    // Negative control: a bone a hundredth of its length away is another problem.
    let mut moved = figure_bones();
    moved[1].tail.y += 0.005;
    assert!(difference(&plain, &bound(&figure().mesh(), moved, 48)) > 1e-6);
}

#[test]
fn coincident_vertices_have_identical_weights() {
    let mesh = figure().mesh();
    let corners: Vec<DVec3> = mesh.triangles().iter().flat_map(|&t| mesh.corners(t)).collect();
    let triangles = (0..mesh.triangles().len() as u32).map(|t| [3 * t, 3 * t + 1, 3 * t + 2]).collect();
    let soup = Mesh::new(corners, triangles).unwrap();
    let (_, clean) = bound(&mesh, figure_bones(), 48);
    let (_, torn) = bound(&soup, figure_bones(), 48);
    for (t, triangle) in mesh.triangles().iter().enumerate() {
        for (c, &v) in triangle.iter().enumerate() {
            assert_eq!(torn.weights.of(3 * t + c), clean.weights.of(v as usize));
        }
    }
    assert_ne!(clean.weights.of(0), clean.weights.of(mesh.positions().len() - 1));
}

#[test]
fn the_middle_third_of_a_cylinder_has_its_share() {
    // Height 2, radius 0.3, three bones in line. By symmetry the ring in the middle belongs to the middle bone most,
    // and the ring a third up, at the joint, to the two bones there alike.
    let tube = limb(0.3, [0., 0., 0.], [0., 2., 0.]);
    let third = 2.0 / 3.0;
    let bones = (0..3).map(|i| {
        let y = f64::from(i) * third;
        bone(["a", "b", "c"][i as usize], [0., y, 0.], [0., y + third, 0.], (i as usize).checked_sub(1))
    });
    let mesh =
        tube.and(&cuboid(DVec3::new(-0.01, third - 0.01, -0.01), DVec3::new(0.01, third + 0.01, 0.01), 2)).mesh();
    let (_, bound) = bound(&mesh, bones.collect(), 64);
    let shares = |y: f64| {
        let ring = |p: &DVec3| (p.y - y).abs() < 0.09 && p.x.hypot(p.z) > 0.29;
        let (v, _) = mesh.positions().iter().enumerate().find(|(_, p)| ring(p)).expect("a ring there");
        [0, 1, 2].map(|b| bound.weights.weight(v, b))
    };
    let middle = shares(1.0);
    assert!(middle[1] > 0.5 && (middle[0] - middle[2]).abs() < 0.05, "{middle:?}");
    let inside = mesh.positions().iter().position(|p| p.x == 0.0 && p.z.abs() < 1e-9 && (p.y - third).abs() < 0.011);
    let joint = [0, 1, 2].map(|b| bound.weights.weight(inside.expect("the small box' middle"), b));
    assert!((joint[0] - joint[1]).abs() < 0.1 && joint[2] < 0.05, "{joint:?}");
}

#[test]
fn bones_outside_are_left_out_and_named() {
    let mut bones = figure_bones();
    bones.push(bone("prop", [3., 1., 0.], [4., 1., 0.], Some(0)));
    let with = bound(&figure().mesh(), bones, 48);
    let without = bound(&figure().mesh(), figure_bones(), 48);
    assert_eq!(difference(&without, &with), 0.0);
    let named = |bound: &Bound| {
        let of = |w: &&skinbind::model::Warning| w.code == Code::BoneOutside;
        bound.report.warnings.iter().filter(of).filter_map(|w| w.bone.clone()).collect::<Vec<_>>()
    };
    assert_eq!(named(&with.1), ["prop"]);
    assert!(named(&without.1).is_empty());
}

#[test]
fn where_all_bones_are_outside_each_starts_at_its_nearest_voxel() {
    let mesh = cuboid(DVec3::new(-1., -0.2, -0.2), DVec3::new(1., 0.2, 0.2), 8).mesh();
    let bones =
        vec![bone("left", [-1.5, 2., 0.], [-1.5, 3., 0.], None), bone("right", [1.5, 2., 0.], [1.5, 3., 0.], None)];
    let (_, bound) = bound(&mesh, bones, 32);
    for (v, p) in mesh.positions().iter().enumerate() {
        let [left, right] = [0, 1].map(|b| bound.weights.weight(v, b));
        assert!((left + right - 1.0).abs() < 1e-12);
        assert!(p.x.abs() < 0.2 || (left > right) == (p.x < 0.0), "{p}: {left}, {right}");
    }
    assert_eq!(bound.report.warnings.iter().filter(|w| w.code == Code::BoneOutside).count(), 2);
}

#[test]
fn parts_without_a_bone_get_no_heat() {
    let island = sphere(0.1, 8).map(|p| p + DVec3::new(0.8, 1.8, 0.0));
    let mesh = figure().and(&island).mesh();
    let skeleton = Skeleton::new(figure_bones()).unwrap();
    let voxels = voxels(&mesh, 48);
    let heated = voxel_heat(
        &voxels,
        &skeleton,
        &vec![true; skeleton.len()],
        mesh.positions(),
        &Parameters::default(),
        Progress::NONE,
    )
    .unwrap();
    let mut scratch = heated.scratch();
    let body = figure().points.len();
    for (v, &p) in mesh.positions().iter().enumerate() {
        let mut raw = Vec::new();
        heated.raw_weights(p, &mut scratch, &mut raw);
        assert_eq!(raw.is_empty(), v >= body, "vertex {v}");
    }
    // The bind fills them and says so.
    let (_, bound) = bound(&mesh, figure_bones(), 48);
    assert!((0..bound.weights.len()).all(|v| !bound.weights.of(v).is_empty()));
    assert!(bound.report.warnings.iter().any(|w| w.code == Code::ComponentUnreached));
}

#[test]
fn the_way_through_the_body_counts_where_it_is_a_detour() {
    // Legs at x = -0.3 and 0.3, joined at y = 0 only, 0.2 apart. The right bone ends 1.4 above the right tip, which is 0.6
    // from the left bone through the open and 2.9 through the body.
    let mesh = u_bend(0.2, 0.2, 2.0, 6).mesh();
    let bones = || {
        vec![bone("left", [-0.3, -1.9, 0.], [-0.3, 0., 0.], None), bone("right", [0.3, -0.6, 0.], [0.3, 0., 0.], None)]
    };
    let tip = mesh.positions().iter().position(|p| p.x > 0.0 && p.y < -2.15).unwrap();
    let of_right = |distance: Distance| {
        let heat = Parameters { distance, ..Parameters::default() };
        let params = Params { method: Method::VoxelHeat, resolution: Some(48), heat, ..Params::default() };
        let bound = bind(&mesh, &Skeleton::new(bones()).unwrap(), &params, Progress::NONE).unwrap();
        bound.weights.weight(tip, 1)
    };
    assert!(of_right(Distance::Crawl) > 0.99);
    assert!(of_right(Distance::Straight) < 0.5, "control");
    // Where little is in the way few voxels choose another source.
    let figure = figure().mesh();
    let skeleton = Skeleton::new(figure_bones()).unwrap();
    let upright = |distance: Distance| {
        let parameters = Parameters { distance, ..Parameters::default() };
        let voxels = voxels(&figure, 32);
        Problem::new(&voxels, &skeleton, &vec![true; skeleton.len()], &parameters, Progress::NONE).unwrap()
    };
    let [straight, crawl] = [Distance::Straight, Distance::Crawl].map(upright);
    let differing = straight.owner.iter().zip(&crawl.owner).filter(|(a, b)| a != b).count();
    assert!(differing * 50 < straight.owner.len(), "{differing} of {}", straight.owner.len());
}

#[test]
fn one_bone_and_a_bone_without_length() {
    let mesh = limb(0.2, [0., 0., 0.], [0., 1., 0.]).mesh();
    let (_, one) = bound(&mesh, vec![bone("only", [0., 0., 0.], [0., 1., 0.], None)], 32);
    assert!(one.weights.iter().all(|row| row.len() == 1 && row[0].weight == 1.0));
    let bones =
        vec![bone("long", [0., 0., 0.], [0., 0.5, 0.], None), bone("point", [0., 1., 0.], [0., 1., 0.], Some(0))];
    let (_, two) = bound(&mesh, bones, 32);
    let top = mesh.positions().iter().position(|p| p.y > 1.19).unwrap();
    assert!(two.weights.weight(top, 1) > 0.9);
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
                bone(&format!("b{i}"), place(head), place(tail), parent)
            })
            .collect();
        let (_, bound) = bound(&mesh, bones, 24);
        for v in 0..bound.weights.len() {
            let sum: f64 = bound.weights.of(v).iter().map(|i| i.weight).sum();
            assert!((sum - 1.0).abs() < 1e-12 && bound.weights.of(v).iter().all(|i| i.weight > 0.0));
        }
    }
}

#[test]
fn a_caller_can_stop_it_and_bad_parameters_are_named() {
    let mesh = figure().mesh();
    let skeleton = Skeleton::new(figure_bones()).unwrap();
    let voxels = voxels(&mesh, 32);
    let use_bone = vec![true; skeleton.len()];
    let run = |use_bone: &[bool], parameters: &Parameters, progress: Progress| {
        voxel_heat(&voxels, &skeleton, use_bone, mesh.positions(), parameters, progress).map(|h| h.residual)
    };
    let stop = |stage: Stage, fraction: f64| {
        if stage == Stage::Heat && fraction > 0.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let parameters = Parameters::default();
    assert!(matches!(run(&use_bone, &parameters, Progress::new(&stop)), Err(Error::Cancelled)));
    assert!(run(&use_bone, &parameters, Progress::NONE).is_ok());
    let short = run(&use_bone[1..], &parameters, Progress::NONE);
    assert!(matches!(short, Err(Error::Length { found: 10, expected: 11, .. })));
    for tolerance in [0.0, 1.0, f64::NAN, f64::INFINITY] {
        let bad = Parameters { tolerance, ..parameters };
        assert!(matches!(run(&use_bone, &bad, Progress::NONE), Err(Error::Parameter { name: "tolerance", .. })));
    }
}
