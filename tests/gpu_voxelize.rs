//! Voxelization on the GPU against plain integer arithmetic on the host, bit for bit.

#[path = "common/mod.rs"]
mod common;
#[path = "common/gpu.rs"]
mod gpu_tests;

use std::process::ExitCode;

use common::shapes::{Random, cuboid, soup, sphere};
use glam::{DVec3, IVec3};
use gpu_tests::{changed, parts, whole};
use skinbind::gpu::{Context, Module, Readback, catch_blocking, storage, storage_with};
use skinbind::model::{BitGrid, Grid, LATTICE, Mesh};
use skinbind::voxelize::gpu::{SURFACE_WGSL, SurfaceKernels};
use skinbind::voxelize::reference;

fn main() -> ExitCode {
    gpu_tests::run(&[
        ("contact_is_exact_on_the_largest_grid", contact_is_exact_on_the_largest_grid),
        ("a_broken_contact_rule_is_found", a_broken_contact_rule_is_found),
        ("surface_of_a_box", |c| surface_equals_reference(c, &brick_wall(), 40)),
        ("surface_of_a_sphere", |c| surface_equals_reference(c, &sphere(1.0, 24).mesh(), 48)),
        ("surface_of_a_soup", |c| surface_equals_reference(c, &loose(2), 64)),
        ("surface_of_a_soup_on_voxel_corners", |c| surface_equals_reference(c, &loose(3), RESOLUTION)),
        ("surface_of_many_soups", surface_of_many_soups),
        ("surface_of_one_flat_triangle_at_1024", surface_of_one_flat_triangle_at_1024),
        ("surface_in_slabs", surface_in_slabs),
        ("surface_in_many_records", surface_in_many_records),
        ("a_broken_surface_shader_is_found", a_broken_surface_shader_is_found),
        ("a_mesh_outside_the_grid_is_refused", a_mesh_outside_the_grid_is_refused),
    ])
}

/// Loose and degenerate triangles, half of them with corners on faces, edges and corners of voxels at `RESOLUTION`.
fn loose(seed: u64) -> Mesh {
    soup(&mut Random(seed), 150).mesh()
}

/// The soup's coarse lattice of sixteenths lies on faces of voxels here, since the grid's middle is the middle of a voxel.
const RESOLUTION: u32 = 48;

fn brick_wall() -> Mesh {
    cuboid(DVec3::ZERO, DVec3::new(1.0, 0.7, 0.4), 3).mesh()
}

/// The voxels that the GPU finds, recorded `steps` steps an encoder.
fn surface(context: &Context, wgsl: &[&str], mesh: &Mesh, grid: &Grid, max_binding: u64, steps: usize) -> BitGrid {
    let device = &context.device;
    catch_blocking(device, "test", || {
        let kernels = SurfaceKernels::from_wgsl(device, wgsl);
        let mut job = kernels.start(device, mesh, grid, max_binding)?;
        while !job.is_done() {
            let mut encoder = device.create_command_encoder(&Default::default());
            job.record(&kernels, &mut encoder, steps)?;
            context.queue.submit([encoder.finish()]);
        }
        assert_eq!(job.fraction(), 1.0);
        let mut encoder = device.create_command_encoder(&Default::default());
        let bits = job.bits().record_readback(&mut encoder);
        context.queue.submit([encoder.finish()]);
        bits.read_blocking()
    })
    .expect("voxelizes")
}

fn surface_equals_reference(context: &Context, mesh: &Mesh, resolution: u32) {
    let grid = Grid::around(&mesh.bounds(), resolution).expect("grid");
    let expected = reference::surface(mesh, &grid);
    let found = surface(context, &SURFACE_WGSL, mesh, &grid, whole(context), usize::MAX);
    assert_eq!((found.count(), found == expected), (expected.count(), true));
    assert!(expected.count() > 0);
}

/// Different grids and triangles each time; every second resolution is odd, so that the grid's faces lie differently.
fn surface_of_many_soups(context: &Context) {
    for seed in 100..120 {
        let mesh = soup(&mut Random(seed), 20).mesh();
        surface_equals_reference(context, &mesh, 16 + (seed % 20) as u32);
    }
}

/// Lattice coordinates as large as they get along x and y, in a grid of few slices.
fn surface_of_one_flat_triangle_at_1024(context: &Context) {
    let p = [DVec3::new(0.0, 0.0, 0.0), DVec3::new(1024.0, 1000.0, 1.0), DVec3::new(900.0, 1024.0, 2.0)];
    surface_equals_reference(context, &Mesh::new(p.to_vec(), vec![[0, 1, 2]]).expect("mesh"), 1024);
}

fn surface_in_slabs(context: &Context) {
    let mesh = loose(5);
    let grid = Grid::around(&mesh.bounds(), 64).expect("grid");
    let slice = u64::from(grid.dims().x.div_ceil(64) * 8 * grid.dims().y);
    let expected = surface(context, &SURFACE_WGSL, &mesh, &grid, whole(context), usize::MAX);
    for slices in [32, 40, 65] {
        let bits = surface(context, &SURFACE_WGSL, &mesh, &grid, slices * slice, usize::MAX);
        assert_eq!(bits, expected, "{slices} slices a binding");
    }
}

/// More items than one step holds, and one step an encoder.
fn surface_in_many_records(context: &Context) {
    let corner = |x: f64, y: f64, z: f64| DVec3::new(x, y, z) * 48.0;
    let points = vec![corner(0.0, 0.0, 0.1), corner(1.0, 0.2, 0.9), corner(0.3, 1.0, 1.0)];
    // At 48 voxels the triangle has some 2 x 13 x 12 tiles: 6000 copies are more than 2^20 items.
    let mesh = Mesh::new(points, vec![[0, 1, 2]; 6000]).expect("mesh");
    let grid = Grid::around(&mesh.bounds(), 48).expect("grid");
    let one = Mesh::new(mesh.positions().to_vec(), vec![[0, 1, 2]]).expect("mesh");
    let found = surface(context, &SURFACE_WGSL, &mesh, &grid, whole(context), 1);
    assert_eq!(found, reference::surface(&one, &grid));
}

fn a_mesh_outside_the_grid_is_refused(context: &Context) {
    let mesh = brick_wall();
    let grid = Grid::around(&mesh.bounds(), 32).expect("grid");
    let larger =
        Mesh::new(mesh.positions().iter().map(|p| p * 1.2).collect(), mesh.triangles().to_vec()).expect("mesh");
    let kernels = SurfaceKernels::new(&context.device);
    let error = kernels.start(&context.device, &larger, &grid, whole(context)).expect_err("refuses");
    assert!(error.to_string().contains("(0-based)"), "{error}");
}

fn a_broken_surface_shader_is_found(context: &Context) {
    let mesh = loose(2);
    let grid = Grid::around(&mesh.bounds(), RESOLUTION).expect("grid");
    let expected = surface(context, &SURFACE_WGSL, &mesh, &grid, whole(context), usize::MAX);
    for (from, to) in [
        ("+ e.c >= vec3(0)", "+ e.c > vec3(0)"),
        ("(low_sum >> LOW_BITS) >= 0", "(low_sum >> LOW_BITS) > 0"),
        (">> vec3(STEP_BITS)) - 1, slab_low", ">> vec3(STEP_BITS)), slab_low"),
        ("rank / tiles.x % tiles.y", "rank / tiles.x % tiles.z"),
        ("first_items[middle] <= item", "first_items[middle] < item"),
        ("(u32(x) & 31u)", "(u32(x) & 15u)"),
    ] {
        let text = changed(&SURFACE_WGSL, from, to);
        let found = surface(context, &parts(&text), &mesh, &grid, whole(context), usize::MAX);
        assert_ne!(found, expected, "{from} -> {to} went unnoticed");
    }
}

/// Asks the rule itself: for each case nine corner coordinates and a voxel.
const CONTACT_TEST: &str = "
@group(0) @binding(0) var<storage, read> cases: array<i32>;
@group(0) @binding(1) var<storage, read_write> answers: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn answer(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = flat_index(workgroup, workgroups, local);
    if index >= arrayLength(&answers) {
        return;
    }
    var p: array<vec3<i32>, 4>;
    for (var k = 0u; k < 4u; k++) {
        let at = 12u * index + 3u * k;
        p[k] = vec3(cases[at], cases[at + 1u], cases[at + 2u]);
    }
    let origin = p[0] >> vec3(STEP_BITS);
    let shift = origin << vec3(STEP_BITS);
    let contact = contact_of(p[0] - shift, p[1] - shift, p[2] - shift);
    answers[index] = select(0u, 1u, touches(contact, p[3] - origin, p[3] - origin));
}
";

/// Triangles across the largest grid, degenerate ones among them, with voxels that they nearly or just about touch.
fn contact_cases() -> Vec<[IVec3; 4]> {
    let (mut random, end) = (Random(11), 1027 * LATTICE);
    let mut cases = Vec::new();
    while cases.len() < 60_000 {
        // A third on corners of voxels, where exact contact is common; a third in the grid's corners, where values are largest.
        let kind = random.below(3);
        let mut point = || {
            let p = IVec3::from_array([0; 3].map(|_: i32| match kind {
                0 => random.below(end as u64 + 1) as i32,
                1 => random.below(1028) as i32 * LATTICE,
                _ => random.below(2) as i32 * (end - 300) + random.below(300) as i32,
            }));
            p.min(IVec3::splat(end))
        };
        let (a, mut b, mut c) = (point(), point(), point());
        match random.below(8) {
            0 => c = a,
            1 => b = a,
            2 => (b.z, c.z) = (a.z, a.z),
            3 => (b.x, c.y) = (a.x, a.y),
            4 => (b, c) = (a + (b - a) / 256, a + (c - a) / 256),
            _ => {}
        }
        // A voxel about a point of the triangle, or of its boundary.
        let (u, v) = (random.unit(), if random.below(2) == 0 { 0.0 } else { random.unit() });
        let (u, v) = if u + v > 1.0 { (1.0 - u, 1.0 - v) } else { (u, v) };
        let on = a.as_dvec3() + (b - a).as_dvec3() * u + (c - a).as_dvec3() * v;
        let off = IVec3::from_array([0; 3].map(|_: i32| random.below(3) as i32 - 1));
        let voxel = ((on / f64::from(LATTICE)).floor().as_ivec3() + off).clamp(IVec3::ZERO, IVec3::splat(1026));
        // The rule is asked for voxels that the bounding box touches.
        let (low, high) = (voxel * LATTICE, (voxel + 1) * LATTICE);
        if a.min(b).min(c).cmple(high).all() && a.max(b).max(c).cmpge(low).all() {
            cases.push([a, b, c, voxel]);
        }
    }
    cases
}

fn contact_answers(context: &Context, contact: &str, cases: &[[IVec3; 4]]) -> Vec<u32> {
    let device = &context.device;
    catch_blocking(device, "test", || {
        let module = Module::new(device, "contact test", &[SURFACE_WGSL[0], contact, CONTACT_TEST]);
        let kernel = module.kernel(device, "answer", 64, &[]);
        let answers = storage(device, "answers", cases.len() as u64 * 4);
        let cases_buffer = storage_with(device, "cases", cases);
        let bind = kernel.bind(device, &[(0, cases_buffer.as_entire_binding()), (1, answers.as_entire_binding())]);
        let mut encoder = device.create_command_encoder(&Default::default());
        kernel.dispatch(&mut encoder.begin_compute_pass(&Default::default()), &bind, cases.len() as u64)?;
        let answers = Readback::record(device, &mut encoder, &answers, 0, answers.size());
        context.queue.submit([encoder.finish()]);
        answers.read_blocking()
    })
    .expect("runs")
}

fn expected_answers(cases: &[[IVec3; 4]]) -> Vec<u32> {
    cases.iter().map(|[a, b, c, voxel]| u32::from(reference::overlaps([*a, *b, *c], *voxel))).collect()
}

fn contact_is_exact_on_the_largest_grid(context: &Context) {
    let cases = contact_cases();
    let expected = expected_answers(&cases);
    let touching = expected.iter().filter(|&&answer| answer == 1).count();
    // Both answers must be common, or the comparison says little.
    assert!((cases.len() / 5..cases.len() * 4 / 5).contains(&touching), "{touching} of {} touch", cases.len());
    let found = contact_answers(context, SURFACE_WGSL[1], &cases);
    let wrong = (0..cases.len()).find(|&i| found[i] != expected[i]);
    assert_eq!(wrong.map(|i| (cases[i], expected[i])), None);
}

fn a_broken_contact_rule_is_found(context: &Context) {
    let cases = contact_cases();
    let expected = expected_answers(&cases);
    for (from, to) in [
        ("LOW_MASK: i32 = 0x7ffff", "LOW_MASK: i32 = 0x3ffff"),
        ("<< vec3(10u)) + n_low", "<< vec3(9u)) + n_low"),
        ("high.x < 0", "high.x > 0"),
        ("e.v = side * (u.yzx - u)", "e.v = side * (u.zxy - u)"),
        ("(-part >> vec3(STEP_BITS))", "(part >> vec3(STEP_BITS))"),
        ("plane_touches(t.front, first, end) &&", ""),
        ("plane_touches(t.back, first, end)", "true"),
        ("&& edges_touch(t.zx, first.zx, end.zx)", ""),
        ("(low_sum >> LOW_BITS) >= 0", "(low_sum >> LOW_BITS) > 0"),
    ] {
        let text = changed(&[SURFACE_WGSL[1]], from, to);
        assert_ne!(contact_answers(context, &text[0], &cases), expected, "{from} -> {to} went unnoticed");
    }
}
