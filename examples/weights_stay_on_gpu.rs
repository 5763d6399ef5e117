//! The weights never leave the device: a kernel of the application's moves the vertices by the buffers as they are.
//!
//! `cargo run --example weights_stay_on_gpu` bends a capsule and prints how far its ends moved.

use glam::{DVec3, Mat4, Vec3, Vec4};
use skinbind::bind_gpu::GpuKernels;
use skinbind::crawl::Neighbors;
use skinbind::crawl::gpu::Seeds;
use skinbind::gpu::{Context, Module, Readback, block_on, storage_with};
use skinbind::influence::gpu::Surface;
use skinbind::influence::{Falloff, Limits};
use skinbind::model::{Bone, Grid, Mesh, Skeleton};
use skinbind::progress::Progress;
use skinbind::voxelize::Interior;
use skinbind::{glam, wgpu};

/// Linear blend skinning with four influences a vertex. A vertex shader would take joints and weights as the vertex formats
/// `Uint32x4` and `Float32x4` from the same buffers.
const SKIN: &str = "
override WORKGROUP: u32;
@group(0) @binding(0) var<storage, read> joints: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> weights: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bones: array<mat4x4<f32>>;
@group(0) @binding(3) var<storage, read_write> points: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP)
fn skin(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= arrayLength(&points) {
        return;
    }
    var moved = vec4(0.0);
    for (var k = 0u; k < 4u; k++) {
        moved += weights[id.x][k] * (bones[joints[id.x][k]] * points[id.x]);
    }
    points[id.x] = moved;
}
";

fn main() -> skinbind::Result<()> {
    let context = Context::headless_blocking(&"gpu".into())?;
    let (device, queue) = (&context.device, &context.queue);
    println!("on {}", context.info().name);
    let mesh = tube()?;
    let bone = |name: &str, from: f64, to: f64, parent| Bone {
        name: name.into(),
        head: DVec3::Y * from,
        tail: DVec3::Y * to,
        parent,
        deform: true,
    };
    let skeleton = Skeleton::new(vec![bone("lower", 0.1, 1.0, None), bone("upper", 1.0, 1.9, Some(0))])?;

    let weights = block_on(device, async {
        let mut kernels = GpuKernels::new(device, queue).await?;
        let (weld, grid) = (mesh.weld(), Grid::around(&mesh.bounds(), 48)?);
        let (on_gpu, voxels) =
            kernels.voxelize.voxelize(device, queue, &mesh, &weld, &grid, Interior::Auto, Progress::NONE).await?;
        let bricks = kernels.voxelize.gather(device, queue, &on_gpu.solid).await?;
        let labels = Limits::default().max_influences + 1;
        let seeds = Seeds::find(&grid, &voxels.solid, &skeleton, &[true; 2], labels, Progress::NONE)?;
        let (crawl, influence) = kernels.for_labels(seeds.per_voxel()).await?;
        let labels = crawl.run(device, queue, &bricks, &seeds, Neighbors::default(), Progress::NONE).await?;
        let surface = Surface { grid: &grid, positions: mesh.positions(), diagonal: mesh.bounds().diagonal() };
        let (falloff, limits) = (Falloff::default(), Limits::default());
        influence.run(device, queue, &bricks, &labels, surface, &falloff, &limits, Progress::NONE).await
    })?;

    // The upper half bends by a quarter turn.
    let joint = Vec3::Y;
    let bend = Mat4::from_translation(joint) * Mat4::from_rotation_z(1.57) * Mat4::from_translation(-joint);
    let bones = storage_with(device, "bones", &[Mat4::IDENTITY, bend].map(|m| m.to_cols_array()));
    let points: Vec<[f32; 4]> = mesh.positions().iter().map(|p| p.as_vec3().extend(1.0).to_array()).collect();
    let points = storage_with(device, "points", &points);
    let skin = Module::new(device, "skin", &[SKIN]).kernel(device, "skin", 64, &[]);
    let buffers: [&wgpu::Buffer; 4] = [weights.joints(), weights.weights(), &bones, &points];
    let entries: Vec<_> = (0..).zip(buffers).map(|(k, buffer)| (k, buffer.as_entire_binding())).collect();
    let bind = skin.bind(device, &entries);
    let mut encoder = device.create_command_encoder(&Default::default());
    skin.dispatch(&mut encoder.begin_compute_pass(&Default::default()), &bind, mesh.positions().len() as u64)?;
    let moved = Readback::record(device, &mut encoder, &points, 0, points.size());
    queue.submit([encoder.finish()]);
    let moved: Vec<[f32; 4]> = moved.read_blocking()?;
    context.check()?;

    let far = |vertex: usize| Vec4::from_array(moved[vertex]).truncate().distance(mesh.positions()[vertex].as_vec3());
    let (bottom, top) = (far(0), far(moved.len() - 1));
    println!("the lower end moved by {bottom:.3}, the upper one by {top:.3}");
    assert!(bottom < 0.1 && top > 1.2);
    Ok(())
}

/// A tube of radius 0.2 and length 2 along y, closed by a point at each end.
fn tube() -> skinbind::Result<Mesh> {
    let (around, rings) = (24u32, 40u32);
    let mut points = vec![DVec3::ZERO];
    for ring in 0..=rings {
        for k in 0..around {
            let (sin, cos) = (std::f64::consts::TAU * f64::from(k) / f64::from(around)).sin_cos();
            points.push(DVec3::new(0.2 * cos, 2.0 * f64::from(ring) / f64::from(rings), 0.2 * sin));
        }
    }
    points.push(DVec3::Y * 2.0);
    let at = |ring: u32, k: u32| 1 + ring * around + k % around;
    let mut triangles = Vec::new();
    for k in 0..around {
        triangles.push([0, at(0, k), at(0, k + 1)]);
        triangles.push([points.len() as u32 - 1, at(rings, k + 1), at(rings, k)]);
        for ring in 0..rings {
            let [a, b, c, d] = [at(ring, k), at(ring + 1, k), at(ring + 1, k + 1), at(ring, k + 1)];
            triangles.extend([[a, b, c], [a, c, d]]);
        }
    }
    Mesh::new(points, triangles)
}
