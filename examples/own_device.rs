//! A program with a device of its own records every stage into its own encoders and reads the weights back at the end.
//!
//! `cargo run --example own_device` prints the weights of the ends of a bar with two bones.

use glam::DVec3;
use skinbind::crawl::Neighbors;
use skinbind::crawl::gpu::{CrawlKernels, Seeds};
use skinbind::gpu::required_limits;
use skinbind::influence::gpu::{InfluenceKernels, JointFormat, Surface};
use skinbind::influence::{Falloff, Limits};
use skinbind::model::{Bone, Grid, Mesh, Skeleton};
use skinbind::progress::Progress;
use skinbind::voxelize::gpu::VoxelizeKernels;
use skinbind::{glam, wgpu};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mesh, skeleton) = bar()?;

    // What an application has anyway.
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))?;
    let (device, queue) = pollster::block_on(
        adapter.request_device(&wgpu::DeviceDescriptor { required_limits: required_limits(), ..Default::default() }),
    )?;
    println!("on {}", adapter.get_info().name);

    // Once a device.
    let labels = 1 + Limits::default().max_influences.min(skeleton.len() - 1);
    let voxelize = pollster::block_on(VoxelizeKernels::new(&device))?;
    let crawl = pollster::block_on(CrawlKernels::new(&device, labels))?;
    let influence = pollster::block_on(InfluenceKernels::new(&device, labels))?;

    // The solid voxels. `record` does bounded work: an application calls it once a frame, with as many steps as it can
    // spare, and goes on drawing.
    let grid = Grid::around(&mesh.bounds(), 48)?;
    let binding = device.limits().max_storage_buffer_binding_size;
    let mut surface = voxelize.surface.start(&device, &mesh, &grid, binding)?;
    while !surface.is_done() {
        submit(&device, &queue, |encoder| surface.record(&voxelize.surface, encoder, 1))?;
    }
    let mut flood = voxelize.interior.flood(&device, surface.into_bits())?;
    while {
        submit(&device, &queue, |encoder| flood.record(&voxelize.interior, encoder, 4))?;
        !flood.status_blocking()?
    } {}
    let (_, solid) = submit(&device, &queue, |encoder| flood.finish(&voxelize.interior, encoder))?;
    let mut count = submit(&device, &queue, |encoder| voxelize.bricks.count(&device, encoder, &solid))?;
    let totals = count.totals_blocking()?;
    let bricks = submit(&device, &queue, |encoder| count.write(&voxelize.bricks, encoder, &solid, totals))?;

    // The host puts the bones into the voxels, for which it needs their bits.
    let bits = submit(&device, &queue, |encoder| Ok(solid.record_readback(encoder)))?.read_blocking()?;
    let use_bone = vec![true; skeleton.len()];
    let seeds = Seeds::find(&grid, &bits, &skeleton, &use_bone, labels, Progress::NONE)?;
    let mut spread = crawl.start(&device, &bricks, &seeds, Neighbors::default())?;
    while {
        submit(&device, &queue, |encoder| spread.record(&crawl, encoder, 8))?;
        !spread.status_blocking()?
    } {}
    let distances = spread.finish()?;

    let all = Surface { grid: &grid, positions: mesh.positions(), diagonal: mesh.bounds().diagonal() };
    let (falloff, limits) = (Falloff::default(), Limits::default());
    let mut weigh = influence.start(&device, &bricks, &distances, all, &falloff, &limits, JointFormat::U32)?;
    while !weigh.is_done() {
        submit(&device, &queue, |encoder| weigh.record(&influence, encoder, 1))?;
    }
    let weights = weigh.finish()?;
    let readback = submit(&device, &queue, |encoder| Ok(weights.record_readback(&device, encoder)))?;
    let (weights, _) = readback.read_blocking()?;

    for vertex in [0, mesh.positions().len() - 1] {
        println!("vertex {vertex} at {}:", mesh.positions()[vertex]);
        for influence in weights.of(vertex) {
            println!("  {:5} {:.3}", skeleton.bones()[influence.joint as usize].name, influence.weight);
        }
    }
    let strongest = |vertex: usize| weights.of(vertex).first().map(|influence| influence.joint);
    assert_eq!([strongest(0), strongest(mesh.positions().len() - 1)], [Some(0), Some(1)]);
    Ok(())
}

/// Records into an encoder of the application's, which may hold other work too, and submits it.
fn submit<T>(
    device: &wgpu::Device,
    queue: &wgpu::Queue,
    record: impl FnOnce(&mut wgpu::CommandEncoder) -> skinbind::Result<T>,
) -> skinbind::Result<T> {
    let mut encoder = device.create_command_encoder(&Default::default());
    let result = record(&mut encoder)?;
    queue.submit([encoder.finish()]);
    Ok(result)
}

/// A bar along y, and a bone in each half.
fn bar() -> skinbind::Result<(Mesh, Skeleton)> {
    let at = |corner: u32| {
        let side = |bit: u32, size: f64| if corner >> bit & 1 == 1 { size } else { 0.0 };
        DVec3::new(side(0, 0.2), side(2, 1.0), side(1, 0.2))
    };
    let quads = [[0, 2, 6, 4], [1, 5, 7, 3], [0, 4, 5, 1], [2, 3, 7, 6], [0, 1, 3, 2], [4, 6, 7, 5]];
    let triangles = quads.iter().flat_map(|&[a, b, c, d]| [[a, b, c], [a, c, d]]).collect();
    let mesh = Mesh::new((0..8).map(at).collect(), triangles)?;
    let bone = |name: &str, from: f64, to: f64, parent| {
        let point = |y| DVec3::new(0.1, y, 0.1);
        Bone { name: name.into(), head: point(from), tail: point(to), parent, deform: true }
    };
    Ok((mesh, Skeleton::new(vec![bone("lower", 0.05, 0.5, None), bone("upper", 0.5, 0.95, Some(0))])?))
}
