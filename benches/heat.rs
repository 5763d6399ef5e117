//! Times of heat in the solid on a made body with 163 bones: sources, levels, and all of it, at 128 and 192 voxels
//! along the body; and of heat on its surface.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use glam::DVec3;
use skinbind::heat::levels::levels;
use skinbind::heat::{Parameters, Problem, surface, voxel_heat};
use skinbind::model::{Bone, Grid, Mesh, Skeleton};
use skinbind::progress::Progress;
use skinbind::voxelize::{Interior, Voxels, voxelize};

const BONES: usize = 163;

/// A slender closed surface of `around` x `along` vertices, 16 long, row after row as modelling programs store them,
/// with both ends drawn together.
fn body(around: u32, along: u32) -> Mesh {
    let point = |i: u32, j: u32| {
        let (turn, t) = (f64::from(i) / f64::from(around), f64::from(j) / f64::from(along - 1));
        let radius = 1.2 * (t * std::f64::consts::PI).sin().max(0.0).sqrt();
        let (sin, cos) = (turn * std::f64::consts::TAU).sin_cos();
        DVec3::new(radius * cos, 16.0 * t, radius * sin)
    };
    let positions = (0..along).flat_map(|j| (0..around).map(move |i| point(i, j))).collect();
    let quad = |i: u32, j: u32| {
        let (a, b) = (j * around + i, j * around + (i + 1) % around);
        [[a, a + around, b], [b, a + around, b + around]]
    };
    let triangles = (0..along - 1).flat_map(|j| (0..around).flat_map(move |i| quad(i, j))).collect();
    Mesh::new(positions, triangles).unwrap()
}

/// A chain of bones on a spiral through the body.
fn spiral() -> Skeleton {
    let at = |i: usize| {
        let t = 0.02 + 0.96 * i as f64 / BONES as f64;
        let (sin, cos) = (t * 30.0).sin_cos();
        DVec3::new(0.4 * cos, 16.0 * t, 0.4 * sin)
    };
    let bone = |i: usize| Bone {
        name: format!("bone{i:03}"),
        head: at(i),
        tail: at(i + 1),
        parent: i.checked_sub(1),
        deform: true,
    };
    Skeleton::new((0..BONES).map(bone).collect()).unwrap()
}

fn voxels(mesh: &Mesh, resolution: u32) -> Voxels {
    let grid = Grid::around(&mesh.bounds(), resolution).unwrap();
    voxelize(mesh, &mesh.weld(), &grid, Interior::Flood, Progress::NONE).unwrap()
}

fn problem(voxels: &Voxels, skeleton: &Skeleton, use_bone: &[bool]) -> Problem {
    Problem::new(voxels, skeleton, use_bone, &Parameters::default(), Progress::NONE).unwrap()
}

fn heat(c: &mut Criterion) {
    let mesh = body(100, 134);
    let skeleton = spiral();
    let use_bone = vec![true; BONES];
    let mut group = c.benchmark_group("heat");
    group.sample_size(10);
    for resolution in [128, 192] {
        let voxels = voxels(&mesh, resolution);
        let name = |what| BenchmarkId::new(what, format!("{resolution}, {} solid", voxels.solid.count()));
        group.bench_function(name("sources"), |b| {
            b.iter(|| black_box(problem(&voxels, &skeleton, &use_bone)));
        });
        let problem = problem(&voxels, &skeleton, &use_bone);
        let bone_of = problem.bone_of();
        group.bench_function(name("levels"), |b| {
            b.iter(|| black_box(levels(&problem.solid, BONES, &bone_of, &problem.conductance)));
        });
        group.bench_function(name("all"), |b| {
            b.iter(|| {
                let heated =
                    voxel_heat(&voxels, &skeleton, &use_bone, mesh.positions(), &Parameters::default(), Progress::NONE);
                black_box(heated.unwrap())
            });
        });
    }
    group.finish();
}

/// Heat on the surface: the equation, and all of it, by the number of vertices.
fn surface(c: &mut Criterion) {
    let skeleton = spiral();
    let use_bone = vec![true; BONES];
    let mut group = c.benchmark_group("surface heat");
    group.sample_size(10);
    for (around, along) in [(100, 134), (400, 536)] {
        let mesh = body(around, along);
        let weld = mesh.weld();
        let components = mesh.components(&weld);
        let parameters = surface::Parameters::default();
        group.bench_function(BenchmarkId::new("equation", weld.places()), |b| {
            let (conduction, strength) = (parameters.conduction, parameters.strength);
            b.iter(|| {
                black_box(surface::Problem::new(&mesh, &weld, &components, &skeleton, &use_bone, conduction, strength))
            });
        });
        group.bench_function(BenchmarkId::new("all", weld.places()), |b| {
            b.iter(|| {
                let heated =
                    surface::surface_heat(&mesh, &weld, &components, &skeleton, &use_bone, &parameters, Progress::NONE);
                black_box(heated.unwrap())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, heat, surface);
criterion_main!(benches);
