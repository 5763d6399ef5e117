//! Heat on the GPU against closed forms, a direct solution in f64 and the CPU path, within the bound that the job itself gives.

#[path = "common/mod.rs"]
mod common;
#[path = "common/gpu.rs"]
mod gpu_tests;

use std::ops::ControlFlow;
use std::process::ExitCode;

use common::shapes::{Random, Shape, capsule, u_bend};
use glam::{DVec3, UVec3};
use gpu_tests::{changed, parts};
use skinbind::Error;
use skinbind::bind::{Bound, Method, Params, bind, bind_on_gpu};
use skinbind::bind_gpu::GpuKernels;
use skinbind::gpu::{Context, block_on};
use skinbind::heat::gpu::{Acceleration, Counters, Graph, HeatKernels, Lanes, Links, Part, Steps, WGSL};
use skinbind::heat::levels::levels;
use skinbind::heat::solid::{NONE, Solid};
use skinbind::heat::{Parameters, Problem, reference, voxel_heat};
use skinbind::model::{BitGrid, Bone, Grid, Mesh, Skeleton};
use skinbind::progress::{Progress, Stage};
use skinbind::voxelize::{Interior, Voxels, voxelize};

/// Most that a heat may be off where the tolerance is not the subject of the test.
const TOLERANCE: f64 = 1e-4;

fn main() -> ExitCode {
    gpu_tests::run(&[
        ("a_rod_has_the_closed_form", a_rod_has_the_closed_form),
        ("random_solids_equal_f64", random_solids_equal_f64),
        ("random_graphs_equal_f64", random_graphs_equal_f64),
        ("steps_are_those_of_f64", steps_are_those_of_f64),
        ("chebyshev_equals_plain_jacobi_in_fewer_sweeps", chebyshev_equals_plain_jacobi_in_fewer_sweeps),
        ("whole_bind_equals_the_cpu", whole_bind_equals_the_cpu),
        ("scale_and_order_of_bones_do_not_matter", scale_and_order_of_bones_do_not_matter),
        ("it_reports_and_stops", it_reports_and_stops),
        ("any_tolerance_is_reached_or_said", any_tolerance_is_reached_or_said),
        ("a_graph_without_sources_is_said", a_graph_without_sources_is_said),
        ("wrong_order_of_calls_is_refused", wrong_order_of_calls_is_refused),
        ("a_broken_shader_is_found", a_broken_shader_is_found),
    ])
}

fn kernels(context: &Context) -> HeatKernels {
    HeatKernels::from_wgsl(&context.device, &WGSL)
}

fn steps(context: &Context, kernels: &HeatKernels, graph: &Graph) -> skinbind::Result<Steps> {
    let (device, queue) = (&context.device, &context.queue);
    block_on(device, kernels.steps(device, queue, graph, None, &|_| Ok(()))).map(|(steps, _)| steps)
}

fn solve(
    context: &Context,
    kernels: &HeatKernels,
    graph: &Graph,
    parts: &[Part],
    tolerance: f64,
    acceleration: Acceleration,
) -> skinbind::Result<(Vec<Vec<Lanes>>, Counters)> {
    let (device, queue) = (&context.device, &context.queue);
    let steps = steps(context, kernels, graph)?;
    block_on(device, kernels.run(device, queue, parts, steps, tolerance, acceleration, &|_| Ok(())))
}

fn chebyshev(context: &Context, graph: &Graph, part: Part) -> (Vec<Lanes>, Counters) {
    let solved = solve(context, &kernels(context), graph, &[part], TOLERANCE, Acceleration::Chebyshev);
    let (mut heats, counters) = solved.expect("solves");
    assert!(counters.error_bound <= TOLERANCE / 2.0);
    (heats.remove(0), counters)
}

/// A graph that owns its lists, and the bone that heats each row.
struct Owned {
    first: Vec<u32>,
    neighbor: Vec<u32>,
    conductance: Vec<f64>,
    ground: Vec<f64>,
    bone_of: Vec<usize>,
}

impl Owned {
    fn graph(&self) -> Graph<'_> {
        let (first, neighbor, conductance) = (&self.first, &self.neighbor, &self.conductance);
        Graph { links: Links::Weighted { first, neighbor, conductance }, ground: &self.ground }
    }

    fn right(&self, row: u32) -> [f64; 4] {
        let row = row as usize;
        std::array::from_fn(|l| if self.bone_of[row] == l { self.ground[row] } else { 0.0 })
    }

    /// The heat of a bone by Gaussian elimination, which for such a matrix needs no pivots.
    fn direct(&self, bone: usize) -> Vec<f64> {
        let n = self.ground.len();
        let mut a = vec![vec![0.0; n + 1]; n];
        for (i, row) in a.iter_mut().enumerate() {
            row[i] = self.graph().diagonal(i as u32);
            row[n] = self.right(i as u32)[bone];
            for link in self.first[i] as usize..self.first[i + 1] as usize {
                row[self.neighbor[link] as usize] -= self.conductance[link];
            }
        }
        for k in 0..n {
            let pivot = a[k].clone();
            for row in a.iter_mut().skip(k + 1).filter(|row| row[k] != 0.0) {
                let factor = row[k] / pivot[k];
                row[k..].iter_mut().zip(&pivot[k..]).for_each(|(x, p)| *x -= factor * p);
            }
        }
        for k in (0..n).rev() {
            let known: f64 = (k + 1..n).map(|j| a[k][j] * a[j][n]).sum();
            a[k][n] = (a[k][n] - known) / a[k][k];
        }
        a.into_iter().map(|row| row[n]).collect()
    }
}

/// A surface-like graph: rows in a ring-shaped strip with shortcuts, conductances over four orders of magnitude, some rows
/// with strong sources, many with none.
fn random_graph(random: &mut Random, rows: usize) -> Owned {
    let mut links = vec![Vec::new(); rows];
    let mut join = |a: usize, b: usize, c: f64| {
        if a != b && links[a].iter().all(|&(other, _)| other != b as u32) {
            links[a].push((b as u32, c));
            links[b].push((a as u32, c));
        }
    };
    for i in 0..rows {
        for far in [1, 7, 8] {
            join(i, (i + far) % rows, 10f64.powf(2.0 - 4.0 * random.unit()));
        }
    }
    let ground = (0..rows).map(|i| if i % 5 == 0 { 10f64.powf(4.0 * random.unit() - 2.0) } else { 0.0 }).collect();
    let mut owned = Owned {
        first: vec![0],
        neighbor: Vec::new(),
        conductance: Vec::new(),
        ground,
        bone_of: (0..rows).map(|i| i * 4 / rows).collect(),
    };
    for row in links {
        owned.neighbor.extend(row.iter().map(|(n, _)| n));
        owned.conductance.extend(row.iter().map(|(_, c)| c));
        owned.first.push(owned.neighbor.len() as u32);
    }
    owned
}

/// A random solid, each connected part with a source, and the bone that heats each voxel.
struct Voxelled {
    neighbors: Vec<[u32; 6]>,
    ground: Vec<f64>,
    bone_of: Vec<usize>,
}

impl Voxelled {
    fn random(random: &mut Random, size: UVec3, density: f64) -> Self {
        let mut bits = BitGrid::new(size);
        for i in 0..size.element_product() {
            if random.unit() < density {
                bits.set(UVec3::new(i % size.x, i / size.x % size.y, i / size.x / size.y));
            }
        }
        let solid = Solid::new(bits);
        let neighbors: Vec<_> = (0..solid.len() as u32).map(|v| solid.neighbors(v)).collect();
        let ground = (0..solid.len()).map(|_| 0.75 / (1.0 + 9.0 * random.unit()).powi(2)).collect();
        let bone_of = (0..solid.len()).map(|v| (solid.coordinates(v as u32).x * 4 / size.x) as usize).collect();
        Self { neighbors, ground, bone_of }
    }

    fn graph(&self) -> Graph<'_> {
        Graph::of_voxels(&self.neighbors, &self.ground)
    }

    fn right(&self, row: u32) -> [f64; 4] {
        let row = row as usize;
        std::array::from_fn(|l| if self.bone_of[row] == l { self.ground[row] } else { 0.0 })
    }

    fn truth(&self, bone: usize) -> Vec<f64> {
        reference::heat_of_bone(&self.neighbors, &self.ground, |v| self.bone_of[v] == bone, 1e-12)
    }
}

fn worst(found: &[Lanes], truth: impl Fn(usize) -> Vec<f64>) -> f64 {
    let of = |l: usize| found.iter().zip(truth(l)).map(|(f, t)| (f[l] - t).abs()).fold(0.0, f64::max);
    (0..4).map(of).fold(0.0, f64::max)
}

/// Sources at the two ends only: heat falls linearly along the rod.
fn a_rod_has_the_closed_form(context: &Context) {
    let (n, g, h) = (40usize, 0.7, 2.0);
    let neighbors: Vec<[u32; 6]> = (0..n as u32)
        .map(|i| {
            let right = if i + 1 < n as u32 { i + 1 } else { NONE };
            [i.checked_sub(1).unwrap_or(NONE), right, NONE, NONE, NONE, NONE]
        })
        .collect();
    let mut ground = vec![0.0; n];
    (ground[0], ground[n - 1]) = (g, h);
    let graph = Graph::of_voxels(&neighbors, &ground);
    let (found, _) = chebyshev(context, &graph, graph.whole(|row| [if row == 0 { g } else { 0.0 }, 0.0, 0.0, 0.0]));
    let off = |h: f64| {
        let flow = 1.0 / (1.0 / g + (n - 1) as f64 + 1.0 / h);
        let expected = |i: usize| 1.0 - flow / g - flow * i as f64;
        (0..n).map(|i| (found[i][0] - expected(i)).abs()).fold(0.0, f64::max)
    };
    assert!(off(h) <= TOLERANCE, "{}", off(h));
    assert!(found.iter().all(|f| f[1] == 0.0));
    // Negative control: another conductance at the other end.
    assert!(off(2.2) > TOLERANCE);
}

fn random_solids_equal_f64(context: &Context) {
    for seed in 0..8 {
        let mut random = Random(seed);
        let size = UVec3::new(6 + random.below(14) as u32, 4 + random.below(10) as u32, 3 + random.below(9) as u32);
        let mut solid = Voxelled::random(&mut random, size, [0.15, 0.4, 0.7, 1.0][seed as usize % 4]);
        let (found, _) = chebyshev(context, &solid.graph(), solid.graph().whole(|row| solid.right(row)));
        let off = worst(&found, |l| solid.truth(l));
        assert!(off <= TOLERANCE, "seed {seed}: {off}");
        // Negative control: one voxel's source is another bone.
        solid.bone_of[0] = 3 - solid.bone_of[0];
        assert!(worst(&found, |l| solid.truth(l)) > TOLERANCE, "seed {seed}");
    }
}

fn random_graphs_equal_f64(context: &Context) {
    for seed in 20..26 {
        let mut random = Random(seed);
        let mut graph = random_graph(&mut random, 60 + 40 * (seed as usize % 4));
        let (found, _) = chebyshev(context, &graph.graph(), graph.graph().whole(|row| graph.right(row)));
        let off = worst(&found, |l| graph.direct(l));
        assert!(off <= TOLERANCE, "seed {seed}: {off}");
        // Two parts of the same graph at once: the whole, and the rows of its first half with nothing beyond.
        let half: Vec<u32> = (0..graph.ground.len() as u32 / 2).collect();
        let start = vec![[0.25; 4]; half.len()];
        let parts = [
            graph.graph().whole(|row| graph.right(row)),
            graph.graph().part(&mut Vec::new(), half, start, |row| graph.right(row)),
        ];
        let solved = solve(context, &kernels(context), &graph.graph(), &parts, TOLERANCE, Acceleration::Chebyshev);
        let heats = solved.expect("solves").0;
        assert!(worst(&heats[0], |l| graph.direct(l)) <= TOLERANCE);
        let n = graph.ground.len();
        let ground = graph.ground.clone();
        // Beyond the half all heat is 0: as if those rows had all the ground in the world.
        graph.ground[n / 2..].fill(1e12);
        graph.bone_of[n / 2..].fill(4);
        assert!(worst(&heats[1], |l| graph.direct(l)) <= TOLERANCE);
        graph.ground = ground;
        assert!(worst(&heats[1], |l| graph.direct(l)) > TOLERANCE);
    }
}

/// The bound of the steps is above the true ones, and not by much.
fn steps_are_those_of_f64(context: &Context) {
    let mut random = Random(40);
    for density in [0.3, 0.8] {
        let solid = Voxelled::random(&mut random, UVec3::new(14, 11, 9), density);
        let found = steps(context, &kernels(context), &solid.graph()).expect("steps").count();
        // A z = diagonal, by as many Jacobi sweeps as it takes.
        let mut z = vec![0.0f64; solid.ground.len()];
        for _ in 0..20_000 {
            z = (0..z.len())
                .map(|i| {
                    let around = solid.neighbors[i].iter().filter(|&&n| n != NONE).map(|&n| z[n as usize]).sum::<f64>();
                    1.0 + around / solid.graph().diagonal(i as u32)
                })
                .collect();
        }
        let truth = z.iter().copied().fold(0.0, f64::max);
        assert!(found >= truth && found < truth * 2.0, "{found}, not {truth}");
    }
}

fn chebyshev_equals_plain_jacobi_in_fewer_sweeps(context: &Context) {
    let mut random = Random(50);
    let solid = Voxelled::random(&mut random, UVec3::new(20, 16, 12), 0.8);
    let graph = random_graph(&mut random, 120);
    let (a, b) = (solid.graph(), graph.graph());
    for (graph, part) in [(a, a.whole(|row| solid.right(row))), (b, b.whole(|row| graph.right(row)))] {
        let with = |acceleration| {
            let (mut heats, counters) =
                solve(context, &kernels(context), &graph, std::slice::from_ref(&part), TOLERANCE, acceleration)
                    .expect("solves");
            (heats.remove(0), counters.sweeps)
        };
        let ((fast, few), (plain, many)) = (with(Acceleration::Chebyshev), with(Acceleration::Plain));
        // Each is within half of the tolerance of the truth.
        let flat = |heats: &[Lanes]| heats.as_flattened().to_vec();
        let off = flat(&fast).iter().zip(flat(&plain)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off <= TOLERANCE, "{off}");
        assert!(2 * few < many, "{few} and {many} sweeps");
    }
}

fn bone(name: &str, head: [f64; 3], tail: [f64; 3], parent: Option<usize>) -> Bone {
    Bone { name: name.into(), head: head.into(), tail: tail.into(), parent, deform: true }
}

/// A trunk with two limbs.
fn body() -> Shape {
    let limb = |x: f64| capsule(0.12, 0.8, 6).map(move |p| DVec3::new(x + p.x + 0.3 * p.y * x, 0.1 - p.y, p.z));
    capsule(0.3, 1.0, 8).and(&limb(0.2)).and(&limb(-0.2))
}

fn bones() -> Vec<Bone> {
    let mut bones = vec![
        bone("hips", [0., 0.05, 0.], [0., 0.4, 0.], None),
        bone("spine", [0., 0.4, 0.], [0., 0.8, 0.01], Some(0)),
        bone("head", [0., 0.8, 0.01], [0., 1.25, 0.], Some(1)),
    ];
    for (side, x) in [("l", 0.2), ("r", -0.2)] {
        let at = bones.len();
        bones.push(bone(&format!("thigh_{side}"), [x, 0.05, 0.], [x * 1.12, -0.3, 0.], Some(0)));
        bones.push(bone(&format!("shin_{side}"), [x * 1.12, -0.3, 0.], [x * 1.24, -0.72, 0.], Some(at)));
    }
    bones
}

fn uncut(tolerance: f64) -> Params {
    let mut params = Params { method: Method::VoxelHeat, resolution: Some(48), ..Params::default() };
    (params.limits.max_influences, params.limits.threshold) = (16, 0.0);
    params.heat.tolerance = tolerance;
    params
}

fn bound(context: &Context, mesh: &Mesh, skeleton: &Skeleton, params: &Params) -> skinbind::Result<Bound> {
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

/// The largest difference of a weight, bones taken by name.
fn difference(a: (&Skeleton, &Bound), b: (&Skeleton, &Bound)) -> f64 {
    let mut worst = 0f64;
    for (joint, bone) in a.0.bones().iter().enumerate() {
        let other = b.0.find(&bone.name).unwrap() as u32;
        for v in 0..a.1.weights.len() {
            worst = worst.max((a.1.weights.weight(v, joint as u32) - b.1.weights.weight(v, other)).abs());
        }
    }
    worst
}

/// All heats against the reference in f64, solved to a residual of 1e-11, and all weights before the cap against the CPU's.
fn whole_bind_equals_the_cpu(context: &Context) {
    let skeleton = Skeleton::new(bones()).unwrap();
    for shape in [body(), u_bend(0.3, 0.2, 1.0, 8)] {
        let mesh = shape.mesh();
        let grid = Grid::around(&mesh.bounds(), 48).unwrap();
        let voxels = voxelize(&mesh, &mesh.weld(), &grid, Interior::Flood, Progress::NONE).unwrap();
        let use_bone = vec![true; skeleton.len()];
        let off = heats_off(context, &voxels, &skeleton, &mesh, 1.0);
        assert!(off <= TOLERANCE, "{off}");
        // Negative control: bones that heat a hundredth less.
        assert!(heats_off(context, &voxels, &skeleton, &mesh, 0.99) > TOLERANCE);
        // Shares of the heats, to the power 1.4, and divided by their sum: 1.4 of an error, twice.
        let params = uncut(TOLERANCE / 4.0);
        let expected = bind(&mesh, &skeleton, &uncut(1e-6), Progress::NONE).unwrap();
        let found = bound(context, &mesh, &skeleton, &params).unwrap();
        assert_eq!((&found.report.device, use_bone.len()), (&context.info().name, skeleton.len()));
        assert_eq!(found.report.warnings, expected.report.warnings);
        assert_eq!(found.report.solid_voxels, expected.report.solid_voxels);
        let off = difference((&skeleton, &found), (&skeleton, &expected));
        assert!(off <= TOLERANCE, "{off}");
        let loose = bound(context, &mesh, &skeleton, &uncut(0.02)).unwrap();
        assert!(difference((&skeleton, &loose), (&skeleton, &expected)) > TOLERANCE);
    }
}

/// The largest error of a raw weight at the vertices without sharpening, where sources are `strength` times as strong for
/// the reference.
fn heats_off(context: &Context, voxels: &Voxels, skeleton: &Skeleton, mesh: &Mesh, strength: f64) -> f64 {
    let use_bone = vec![true; skeleton.len()];
    let parameters = Parameters { sharpness: 1.0, tolerance: TOLERANCE / 2.0, ..Parameters::default() };
    let exact = Parameters { tolerance: 1e-7, strength: parameters.strength * strength, ..parameters };
    let kernels = kernels(context);
    let (device, queue, places) = (&context.device, &context.queue, mesh.positions());
    let run = kernels.voxel_heat(device, queue, voxels, skeleton, &use_bone, places, &parameters, Progress::NONE);
    let (found, figures) = block_on(device, run).expect("solves");
    assert!(figures.most.error_bound <= parameters.tolerance && figures.rows > 0 && figures.steps > 1.0);
    let expected = voxel_heat(voxels, skeleton, &use_bone, places, &exact, Progress::NONE).unwrap();
    let (mut a, mut b) = (found.scratch(), expected.scratch());
    let mut worst = 0f64;
    for &p in places {
        let (mut raw, mut truth) = (Vec::new(), Vec::new());
        found.raw_weights(p, &mut a, &mut raw);
        expected.raw_weights(p, &mut b, &mut truth);
        let of =
            |row: &[skinbind::model::Influence], joint| row.iter().find(|i| i.joint == joint).map_or(0.0, |i| i.weight);
        for joint in 0..skeleton.len() as u32 {
            worst = worst.max((of(&raw, joint) - of(&truth, joint)).abs());
        }
    }
    // The CPU's own exact solution is itself held to the reference over all of the solid.
    if strength == 1.0 {
        let problem = Problem::new(voxels, skeleton, &use_bone, &parameters, Progress::NONE).unwrap();
        let bone_of = problem.bone_of();
        let neighbors = &levels(&problem.solid, skeleton.len(), &bone_of, &problem.conductance)[0].neighbors;
        let graph = Graph::of_voxels(neighbors, &problem.conductance);
        let lanes = |row: u32| {
            let (bone, g) = (bone_of[row as usize], problem.conductance[row as usize]);
            std::array::from_fn(|l| if bone as usize == l { g } else { 0.0 })
        };
        let (heats, _) = chebyshev(context, &graph, graph.whole(lanes));
        let truth =
            |l: usize| reference::heat_of_bone(neighbors, &problem.conductance, |v| bone_of[v] as usize == l, 1e-11);
        worst = worst.max(self::worst(&heats, truth));
    }
    worst
}

fn scale_and_order_of_bones_do_not_matter(context: &Context) {
    let skeleton = Skeleton::new(bones()).unwrap();
    let params = uncut(TOLERANCE);
    let plain = bound(context, &body().mesh(), &skeleton, &params).unwrap();
    for scale in [1e-3, 1e3] {
        let scaled = bones().into_iter().map(|b| Bone { head: b.head * scale, tail: b.tail * scale, ..b });
        let scaled = Skeleton::new(scaled.collect()).unwrap();
        let mesh = body().map(|p| p * scale).mesh();
        let found = bound(context, &mesh, &scaled, &params).unwrap();
        assert!(difference((&skeleton, &plain), (&scaled, &found)) <= 1e-9, "scale {scale}");
    }
    let mut reversed = bones();
    let last = reversed.len() - 1;
    reversed.reverse();
    reversed.iter_mut().for_each(|b| b.parent = b.parent.map(|p| last - p));
    let reversed = Skeleton::new(reversed).unwrap();
    let found = bound(context, &body().mesh(), &reversed, &params).unwrap();
    assert!(difference((&skeleton, &plain), (&reversed, &found)) <= 1e-9);
    let mut moved = bones();
    moved[1].tail.y += 0.005;
    let moved = Skeleton::new(moved).unwrap();
    let found = bound(context, &body().mesh(), &moved, &params).unwrap();
    assert!(difference((&skeleton, &plain), (&moved, &found)) > 1e-6);
}

fn it_reports_and_stops(context: &Context) {
    let (mesh, skeleton) = (body().mesh(), Skeleton::new(bones()).unwrap());
    let seen = std::sync::Mutex::new(0.0);
    let run = |stop_after: f64| {
        *seen.lock().unwrap() = 0.0;
        let update = |stage, fraction: f64| {
            assert!((0.0..=1.0).contains(&fraction), "{stage:?} {fraction}");
            if stage == Stage::Heat {
                *seen.lock().unwrap() = fraction;
                if fraction > stop_after {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        };
        with_progress(context, &mesh, &skeleton, &uncut(TOLERANCE), Progress::new(&update))
    };
    assert!(run(2.0).is_ok());
    assert_eq!(*seen.lock().unwrap(), 1.0);
    for stop_after in [-1.0, 0.0, 0.5] {
        assert!(matches!(run(stop_after), Err(Error::Cancelled)), "{stop_after}");
    }
}

fn any_tolerance_is_reached_or_said(context: &Context) {
    let mut random = Random(60);
    let solid = Voxelled::random(&mut random, UVec3::new(12, 12, 12), 1.0);
    let part = solid.graph().whole(|row| solid.right(row));
    let run = |tolerance| {
        solve(
            context,
            &kernels(context),
            &solid.graph(),
            std::slice::from_ref(&part),
            tolerance,
            Acceleration::Chebyshev,
        )
    };
    let off = |tolerance| worst(&run(tolerance).expect("solves").0[0], |l| solid.truth(l));
    // The reference itself is good to some 1e-12 x steps.
    for tolerance in [1e-4, 1e-6, 1e-9] {
        assert!(off(tolerance) <= tolerance, "{tolerance:e}: {:e}", off(tolerance));
    }
    assert!(off(1e-2) > 1e-9);
    let error = run(1e-30).expect_err("beyond f64");
    assert!(matches!(&error, Error::Limit { needed, .. } if needed.contains("1e-30")), "{error}");
    assert!(error.to_string().contains("--device cpu"), "{error}");
}

fn a_graph_without_sources_is_said(context: &Context) {
    let mut random = Random(61);
    let mut graph = random_graph(&mut random, 40);
    assert!(steps(context, &kernels(context), &graph.graph()).is_ok());
    graph.ground.fill(0.0);
    let error = steps(context, &kernels(context), &graph.graph()).expect_err("nothing heats");
    assert!(matches!(&error, Error::Limit { what, .. } if what.contains("source")), "{error}");
    graph.neighbor[3] = 999;
    assert!(matches!(steps(context, &kernels(context), &graph.graph()), Err(Error::Parameter { .. })));
}

fn wrong_order_of_calls_is_refused(context: &Context) {
    let mut random = Random(62);
    let solid = Voxelled::random(&mut random, UVec3::new(6, 5, 4), 1.0);
    let graph = random_graph(&mut random, 40);
    let kernels = kernels(context);
    let job = || kernels.start_steps(&context.device, &solid.graph(), None).expect("starts");
    assert!(matches!(job().finish_steps(), Err(Error::Check(_))));
    let mut encoder = context.device.create_command_encoder(&Default::default());
    assert!(matches!(job().record_readback(&mut encoder), Err(Error::Check(_))));
    let parts = [solid.graph().whole(|row| solid.right(row)), graph.graph().whole(|row| graph.right(row))];
    let steps = steps(context, &kernels, &solid.graph()).expect("steps");
    let started = kernels.start(&context.device, &parts, steps, TOLERANCE, Acceleration::Plain);
    assert!(matches!(started, Err(Error::Parameter { name: "parts", .. })));
    // Nothing to solve is solved.
    assert!(
        solve(context, &kernels, &solid.graph(), &[], TOLERANCE, Acceleration::Chebyshev).expect("solves").0.is_empty()
    );
}

/// Whether a shader's heats, as it comes to rest by its own account, are off the truth (or it never comes to rest). The
/// steps are those of the whole shader, so that a fault cannot hide behind steps that are too many.
fn is_off(context: &Context, wgsl: &[&str], graph: &Graph, part: &Part, truth: &dyn Fn(usize) -> Vec<f64>) -> bool {
    let steps = steps(context, &kernels(context), graph).expect("steps");
    let broken = HeatKernels::from_wgsl(&context.device, wgsl);
    let (device, queue, parts) = (&context.device, &context.queue, [part.clone()]);
    let run = broken.run(device, queue, &parts, steps, TOLERANCE, Acceleration::Chebyshev, &|_| Ok(()));
    let run = block_on(device, run).map(|(mut heats, _)| heats.remove(0));
    match run {
        Ok(heats) => {
            let off = worst(&heats, truth);
            off.is_nan() || off > TOLERANCE
        }
        // Given up.
        Err(Error::Limit { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

fn a_broken_shader_is_found(context: &Context) {
    let mut random = Random(70);
    let solid = Voxelled::random(&mut random, UVec3::new(13, 11, 9), 0.7);
    let graph = random_graph(&mut random, 100);
    let (a, b) = (solid.graph(), graph.graph());
    let (in_solid, in_graph) = (a.whole(|row| solid.right(row)), b.whole(|row| graph.right(row)));
    let differs = |wgsl: &[&str]| {
        is_off(context, wgsl, &a, &in_solid, &|l| solid.truth(l))
            || is_off(context, wgsl, &b, &in_graph, &|l| graph.direct(l))
    };
    assert!(!differs(&WGSL));
    for (from, to) in [
        ("side < 6u", "side < 5u"),
        ("heat[neighbor] - own", "heat[neighbor] + own"),
        ("right[row] - loss", "right[row] + loss"),
        ("side * params.rows + row", "side * params.rows + row - side"),
        ("link < first[row + 1u]", "link + 1u < first[row + 1u]"),
        ("conductance[link] * (", "conductance[link + 1u] * ("),
        ("(heat[row] - before) + step", "(heat[row] - before) + 1.01 * step + 1e-4"),
        ("local < 3u", "local < 0u"),
        ("max(step.z, step.w)", "max(step.z, 1.0)"),
        ("before + params.weight", "before + 1.5 * params.weight"),
    ] {
        let text = changed(&WGSL, from, to);
        assert!(differs(&parts(&text)), "{from} -> {to} went unnoticed");
    }
}
