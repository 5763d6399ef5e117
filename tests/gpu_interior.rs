//! The flood and the bricks on the GPU against plain loops on the host, bit for bit.

#[path = "common/mod.rs"]
mod common;
#[path = "common/gpu.rs"]
mod gpu_tests;

use std::ops::ControlFlow;
use std::process::ExitCode;

use common::shapes::{Random, sphere};
use glam::{IVec3, UVec3};
use gpu_tests::{changed, parts, whole};
use skinbind::Error;
use skinbind::gpu::{BitBuffer, Context, Readback, block_on, catch_blocking};
use skinbind::model::{BitGrid, Grid};
use skinbind::progress::{Progress, Stage};
use skinbind::voxelize::gpu::{
    ABSENT, BRICKS_WGSL, Brick, BrickKernels, BrickTotals, EDGE, INTERIOR_WGSL, Inside, InteriorKernels,
    VoxelizeKernels,
};
use skinbind::voxelize::{Interior, voxelize};

fn main() -> ExitCode {
    gpu_tests::run(&[
        ("flood_of_nothing", |c| flood_equals_reference(c, &BitGrid::new(UVec3::new(33, 7, 5)))),
        ("flood_around_nested_shells", |c| flood_equals_reference(c, &shells(UVec3::new(64, 40, 51)))),
        ("flood_of_a_serpentine", |c| flood_equals_reference(c, &serpentine(UVec3::new(65, 33, 20)))),
        ("flood_of_random_walls", flood_of_random_walls),
        ("flood_in_slabs", flood_in_slabs),
        ("flood_with_surplus_rounds", flood_with_surplus_rounds),
        ("a_broken_flood_is_found", a_broken_flood_is_found),
        ("an_unfinished_flood_is_refused", an_unfinished_flood_is_refused),
        ("surface_joins_an_inside", surface_joins_an_inside),
        ("bricks_of_random_voxels", bricks_of_random_voxels),
        ("bricks_of_nothing_and_of_everything", bricks_of_nothing_and_of_everything),
        ("bricks_of_many_blocks", bricks_of_many_blocks),
        ("bricks_in_slabs", bricks_in_slabs),
        ("broken_bricks_are_found", broken_bricks_are_found),
        ("a_mesh_all_the_way_to_bricks", a_mesh_all_the_way_to_bricks),
        ("a_cancelled_voxelization_stops", a_cancelled_voxelization_stops),
    ])
}

fn voxels(dims: UVec3) -> impl Iterator<Item = UVec3> {
    (0..dims.z).flat_map(move |z| (0..dims.y).flat_map(move |y| (0..dims.x).map(move |x| UVec3::new(x, y, z))))
}

fn bits(dims: UVec3, mut is_set: impl FnMut(UVec3) -> bool) -> BitGrid {
    let mut bits = BitGrid::new(dims);
    voxels(dims).filter(|v| is_set(*v)).for_each(|v| bits.set(v));
    bits
}

/// Hollow boxes, one in another.
fn shells(dims: UVec3) -> BitGrid {
    let middle = dims / 2;
    bits(dims, |v| {
        let from_middle = v.as_ivec3().wrapping_sub(middle.as_ivec3()).abs();
        [(30, 18, 24), (20, 10, 12), (7, 4, 5)].iter().any(|&(x, y, z)| {
            let half = IVec3::new(x, y, z);
            from_middle.cmple(half).all() && from_middle.cmpeq(half).any()
        })
    })
}

/// Walls across the grid along z, open at alternate ends, in a closed box with one door; beyond the last wall a sealed room.
fn serpentine(dims: UVec3) -> BitGrid {
    let last = dims - 1;
    bits(dims, |v| {
        let shell = v.cmpeq(UVec3::ZERO).any() || v.cmpeq(last).any();
        let wall = v.z % 2 == 0 && if v.z % 4 == 0 { v.x > 1 || v.y > 1 } else { v.x < last.x - 1 || v.y < last.y - 1 };
        let sealed = v.z == last.z / 2 * 2 - 4;
        (shell && v != UVec3::new(1, 1, 0)) || wall || sealed
    })
}

fn random_walls(dims: UVec3, seed: u64, percent: u64) -> BitGrid {
    let mut random = Random(seed);
    bits(dims, |_| random.below(100) < percent)
}

/// All that cannot be reached from beyond the grid over faces of voxels that are not surface.
fn reference_solid(surface: &BitGrid) -> BitGrid {
    let dims = surface.dims();
    let mut outside = BitGrid::new(dims);
    let border = |v: &UVec3| v.cmpeq(UVec3::ZERO).any() || v.cmpeq(dims - 1).any();
    let mut open: Vec<UVec3> = voxels(dims).filter(border).collect();
    while let Some(v) = open.pop() {
        if surface.get(v) || outside.get(v) {
            continue;
        }
        outside.set(v);
        for step in [IVec3::X, IVec3::Y, IVec3::Z, -IVec3::X, -IVec3::Y, -IVec3::Z] {
            let next = v.as_ivec3() + step;
            if next.cmpge(IVec3::ZERO).all() && next.cmplt(dims.as_ivec3()).all() {
                open.push(next.as_uvec3());
            }
        }
    }
    bits(dims, |v| !outside.get(v))
}

/// The solid and the number of records of `rounds` rounds that it took; none where the flood does not end.
fn flooded(
    context: &Context,
    wgsl: &[&str],
    surface: &BitGrid,
    max_binding: u64,
    rounds: usize,
) -> Option<(BitGrid, usize)> {
    let (device, queue) = (&context.device, &context.queue);
    catch_blocking(device, "test", || {
        let kernels = InteriorKernels::from_wgsl(device, wgsl);
        let mut job = kernels.flood(device, BitBuffer::upload(device, queue, "surface", surface, max_binding)?)?;
        let mut records = 0;
        loop {
            let mut encoder = device.create_command_encoder(&Default::default());
            job.record(&kernels, &mut encoder, rounds)?;
            queue.submit([encoder.finish()]);
            records += 1;
            if job.status_blocking()? {
                break;
            }
            if records * rounds > 500 {
                return Ok(None);
            }
        }
        let mut encoder = device.create_command_encoder(&Default::default());
        let (_, solid) = job.finish(&kernels, &mut encoder)?;
        let solid = solid.record_readback(&mut encoder);
        queue.submit([encoder.finish()]);
        Ok(Some((solid.read_blocking()?, records)))
    })
    .expect("floods")
}

fn flood(context: &Context, wgsl: &[&str], surface: &BitGrid, max_binding: u64, rounds: usize) -> (BitGrid, usize) {
    flooded(context, wgsl, surface, max_binding, rounds).expect("ends")
}

fn flood_equals_reference(context: &Context, surface: &BitGrid) {
    let (solid, _) = flood(context, &INTERIOR_WGSL, surface, whole(context), 4);
    assert_eq!(solid, reference_solid(surface));
}

/// About as many walls as let the flood through by long ways.
fn flood_of_random_walls(context: &Context) {
    for (seed, percent) in [(1, 10), (2, 60), (3, 66), (4, 70)] {
        flood_equals_reference(context, &random_walls(UVec3::new(63, 31, 45), seed, percent));
    }
}

fn flood_in_slabs(context: &Context) {
    let surface = serpentine(UVec3::new(64, 32, 61));
    let expected = reference_solid(&surface);
    // A slice takes 256 bytes, so slabs of 4 slices and a halo fit from 9 slices a binding on.
    for slices in [9, 13, 20, 61] {
        let (solid, _) = flood(context, &INTERIOR_WGSL, &surface, slices * 256, 4);
        assert!(solid == expected, "{slices} slices a binding");
    }
}

fn flood_with_surplus_rounds(context: &Context) {
    let surface = shells(UVec3::new(64, 40, 51));
    let (solid, records) = flood(context, &INTERIOR_WGSL, &surface, whole(context), 20);
    assert_eq!((solid == reference_solid(&surface), records), (true, 1));
    let (solid, records) = flood(context, &INTERIOR_WGSL, &serpentine(UVec3::new(65, 33, 20)), whole(context), 1);
    assert!(records > 5, "a maze in {records} rounds");
    assert_eq!(solid, reference_solid(&serpentine(UVec3::new(65, 33, 20))));
}

fn a_broken_flood_is_found(context: &Context) {
    let surfaces = [serpentine(UVec3::new(65, 33, 20)), random_walls(UVec3::new(63, 31, 45), 3, 66)];
    for (from, to) in [
        ("(free + seeds) ^ free) & free", "(free + seeds) ^ free)"),
        ("carry = filled >> 31u", "carry = filled & 1u"),
        ("let free = ~surface[at];", "let free = ~(surface[at] & 0xfffffffeu);"),
        ("flow(start + i * stride, carry)", "flow(start + i * stride, 0u)"),
        ("start + (i - 1u) * stride", "start + i * stride"),
        ("flow(start + (i - 1u) * stride, carry)", "flow(start + (i - 1u) * stride, 0u)"),
        ("index % words, words, params.rows", "index % words, words, params.rows - 1u"),
        ("slice_words, params.slices, below", "slice_words, params.slices - 1u, below"),
        ("outside[at] = ~outside[at]", "outside[at] = outside[at]"),
        ("has_changed = true", "has_changed = false"),
    ] {
        let text = changed(&INTERIOR_WGSL, from, to);
        let noticed = surfaces.iter().any(|surface| {
            let found = flooded(context, &parts(&text), surface, whole(context), 40);
            found.is_none_or(|(solid, _)| solid != reference_solid(surface))
        });
        assert!(noticed, "{from} -> {to} went unnoticed");
    }
}

fn an_unfinished_flood_is_refused(context: &Context) {
    let (device, queue) = (&context.device, &context.queue);
    let kernels = InteriorKernels::new(device);
    let surface = serpentine(UVec3::new(65, 33, 20));
    let surface = BitBuffer::upload(device, queue, "surface", &surface, whole(context)).expect("fits");
    let mut job = kernels.flood(device, surface).expect("fits");
    let mut encoder = device.create_command_encoder(&Default::default());
    job.record(&kernels, &mut encoder, 2).expect("records");
    queue.submit([encoder.finish()]);
    assert!(!job.status_blocking().expect("status"));
    let mut encoder = device.create_command_encoder(&Default::default());
    let error = job.finish(&kernels, &mut encoder).expect_err("refuses");
    assert!(error.to_string().contains("record more rounds"), "{error}");
}

fn surface_joins_an_inside(context: &Context) {
    let (device, queue) = (&context.device, &context.queue);
    let dims = UVec3::new(64, 32, 40);
    let (surface, inside) = (random_walls(dims, 5, 20), random_walls(dims, 6, 20));
    let expected = bits(dims, |v| surface.get(v) || inside.get(v));
    for slices in [9, 40] {
        let solid = catch_blocking(device, "test", || {
            let kernels = InteriorKernels::new(device);
            let upload = |bits| BitBuffer::upload(device, queue, "bits", bits, slices * 256);
            let mut encoder = device.create_command_encoder(&Default::default());
            let solid = kernels.join(device, &mut encoder, &upload(&surface)?, upload(&inside)?)?;
            let solid = solid.record_readback(&mut encoder);
            queue.submit([encoder.finish()]);
            solid.read_blocking()
        });
        assert!(solid.expect("joins") == expected, "{slices} slices a binding");
    }
    assert!(expected != inside && expected != surface);
}

type Bricks = (BrickTotals, Vec<Brick>, Vec<u32>);

fn bricks(context: &Context, wgsl: &[&str], solid: &BitGrid, max_binding: u64) -> Bricks {
    let (device, queue) = (&context.device, &context.queue);
    catch_blocking(device, "test", || {
        let kernels = BrickKernels::from_wgsl(device, wgsl);
        let solid = BitBuffer::upload(device, queue, "solid", solid, max_binding)?;
        let mut encoder = device.create_command_encoder(&Default::default());
        let mut job = kernels.count(device, &mut encoder, &solid)?;
        queue.submit([encoder.finish()]);
        let totals = job.totals_blocking()?;
        let mut encoder = device.create_command_encoder(&Default::default());
        let found = job.write(&kernels, &mut encoder, &solid, totals)?;
        let list = Readback::record(device, &mut encoder, found.list(), 0, found.list().size());
        let slots = Readback::record(device, &mut encoder, found.slots(), 0, found.slots().size());
        queue.submit([encoder.finish()]);
        let mut list = list.read_blocking()?;
        list.truncate(totals.bricks as usize);
        Ok((totals, list, slots.read_blocking()?))
    })
    .expect("gathers")
}

fn reference_bricks(solid: &BitGrid) -> Bricks {
    let extent = (solid.dims() + (EDGE - 1)) / EDGE;
    let (mut list, mut slots, mut voxels_before) = (Vec::<Brick>::new(), Vec::new(), 0);
    for brick in voxels(extent) {
        let mut mask = 0u64;
        for cell in 0..64 {
            let voxel = brick * EDGE + UVec3::new(cell % 4, cell / 4 % 4, cell / 16);
            if voxel.cmplt(solid.dims()).all() && solid.get(voxel) {
                mask |= 1 << cell;
            }
        }
        slots.push(if mask == 0 { ABSENT } else { list.len() as u32 });
        if mask != 0 {
            let place = brick.x | brick.y << 10 | brick.z << 20;
            list.push(Brick { place, first_voxel: voxels_before, mask: [mask as u32, (mask >> 32) as u32] });
            voxels_before += mask.count_ones();
        }
    }
    (BrickTotals { bricks: list.len() as u32, voxels: voxels_before }, list, slots)
}

fn sparse(dims: UVec3, seed: u64) -> BitGrid {
    let mut random = Random(seed);
    bits(dims, |v| (v.x / 8 + v.y / 8 + v.z / 8) % 3 == 0 && random.below(20) == 0)
}

fn bricks_of_random_voxels(context: &Context) {
    // More than one block of 1024 places, and more than one that is not full.
    for (dims, seed) in [(UVec3::new(61, 62, 63), 1), (UVec3::new(130, 21, 9), 2), (UVec3::new(3, 5, 130), 3)] {
        let solid = sparse(dims, seed);
        assert!(bricks(context, &BRICKS_WGSL, &solid, whole(context)) == reference_bricks(&solid), "{dims}");
    }
}

fn bricks_of_nothing_and_of_everything(context: &Context) {
    let dims = UVec3::new(66, 30, 34);
    let nothing = BitGrid::new(dims);
    assert_eq!(bricks(context, &BRICKS_WGSL, &nothing, whole(context)), reference_bricks(&nothing));
    let everything = bits(dims, |_| true);
    let found = bricks(context, &BRICKS_WGSL, &everything, whole(context));
    assert_eq!(found.0.voxels, dims.element_product());
    assert!(found == reference_bricks(&everything));
}

fn bricks_in_slabs(context: &Context) {
    let solid = sparse(UVec3::new(64, 32, 63), 4);
    let expected = reference_bricks(&solid);
    for slices in [4, 9, 32] {
        assert!(bricks(context, &BRICKS_WGSL, &solid, slices * 256) == expected, "{slices} slices a binding");
    }
}

/// More places than one workgroup sums up at once: 256 blocks of 1024.
fn scattered() -> BitGrid {
    let (mut random, dims) = (Random(9), UVec3::new(256, 256, 260));
    let mut solid = BitGrid::new(dims);
    for _ in 0..2000 {
        solid.set(UVec3::from_array(dims.to_array().map(|d| random.below(d.into()) as u32)));
    }
    solid
}

fn bricks_of_many_blocks(context: &Context) {
    let solid = scattered();
    assert!(bricks(context, &BRICKS_WGSL, &solid, whole(context)) == reference_bricks(&solid));
}

fn broken_bricks_are_found(context: &Context) {
    let solid = scattered();
    let expected = bricks(context, &BRICKS_WGSL, &solid, whole(context));
    for (from, to) in [
        ("brick.x % 8u * 4u", "brick.x % 8u * 3u"),
        ("if local >= reach", "if local > reach"),
        ("before += sums[WORKGROUP - 1u]", "before += sums[WORKGROUP - 2u]"),
        ("+ sum - total;", "+ sum;"),
        ("at += own;", "at += vec2(own.x, 0u);"),
        ("y < params.dims.y && z", "y < params.dims.y - 1u && z"),
        ("min(voxels, 1u)", "1u"),
    ] {
        let text = changed(&BRICKS_WGSL, from, to);
        assert!(bricks(context, &parts(&text), &solid, whole(context)) != expected, "{from} -> {to} went unnoticed");
    }
}

/// The whole chain on the device, nothing but totals and a flag read back between the steps.
fn a_mesh_all_the_way_to_bricks(context: &Context) {
    let (device, queue) = (&context.device, &context.queue);
    let mesh = sphere(1.0, 20).mesh();
    let grid = Grid::around(&mesh.bounds(), 40).expect("grid");
    let run = async |inside: Inside<'_>| {
        let kernels = VoxelizeKernels::new(device).await?;
        let voxels = kernels.solid(device, queue, &mesh, &grid, inside, Progress::NONE).await?;
        let bricks = kernels.gather(device, queue, &voxels.solid).await?;
        let mut encoder = device.create_command_encoder(&Default::default());
        let surface = voxels.surface.record_readback(&mut encoder);
        let solid = voxels.solid.record_readback(&mut encoder);
        queue.submit([encoder.finish()]);
        Ok((surface.read().await?, solid.read().await?, bricks.totals()))
    };
    let (surface, solid, totals) = block_on(device, run(Inside::Flood)).expect("runs");
    let expected = voxelize(&mesh, &mesh.weld(), &grid, Interior::Flood, Progress::NONE).expect("voxelizes");
    assert!(surface == expected.surface && solid == expected.solid);
    assert_eq!(totals, reference_bricks(&solid).0);
    // The same with an inside that comes from the host, without its surface.
    let inside = bits(grid.dims(), |v| solid.get(v) && !surface.get(v));
    assert!(block_on(device, run(Inside::Known(&inside))).expect("runs") == (surface, expected.solid, totals));
    let other = BitGrid::new(UVec3::splat(9));
    let error = block_on(device, run(Inside::Known(&other))).expect_err("refuses");
    assert!(error.to_string().contains("inside is of [9, 9, 9] voxels"), "{error}");
    // The voxels that a sphere of radius 20 voxels touches or holds: between the spheres smaller and larger by a voxel's diagonal.
    let ball = |radius: f64| 4.0 / 3.0 * std::f64::consts::PI * radius.powi(3);
    let count = solid.count() as f64;
    assert!(count > ball(20.0 * 0.99) && count < ball(20.0 + 3f64.sqrt()), "{count}");
}

fn a_cancelled_voxelization_stops(context: &Context) {
    let (device, queue) = (&context.device, &context.queue);
    let mesh = sphere(1.0, 8).mesh();
    let grid = Grid::around(&mesh.bounds(), 16).expect("grid");
    for stop in [Stage::Voxelize, Stage::Interior] {
        let callback = |stage, _| if stage == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let result = block_on(device, async {
            let kernels = VoxelizeKernels::new(device).await?;
            kernels.solid(device, queue, &mesh, &grid, Inside::Flood, Progress::new(&callback)).await
        });
        assert!(matches!(result, Err(Error::Cancelled)), "{stop:?}");
    }
}
