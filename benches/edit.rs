//! Time of a dab on meshes of up to a million vertices, and of a transfer between two layers.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use glam::DVec3;
use skinbind::edit::Locks;
use skinbind::edit::paint::{Brush, Mode, Painter};
use skinbind::edit::transfer::{Params, transfer};
use skinbind::model::{Bone, Influence, Mesh, Skeleton, Weights};
use skinbind::progress::Progress;

/// A wavy sheet of n x n vertices in the unit square, at a height.
fn sheet(n: u32, height: f64) -> Mesh {
    let at = |i: u32| f64::from(i) / f64::from(n - 1);
    let wave = |x: f64, y: f64| height + 0.02 * (9.0 * x).sin() * (7.0 * y).cos();
    let points = (0..n * n).map(|k| DVec3::new(at(k % n), at(k / n), wave(at(k % n), at(k / n)))).collect();
    let corner = |k: u32| k / (n - 1) * n + k % (n - 1);
    let squares = (0..(n - 1) * (n - 1)).map(corner);
    Mesh::new(points, squares.flat_map(|k| [[k, k + 1, k + n + 1], [k, k + n + 1, k + n]]).collect()).unwrap()
}

/// Four bones that take turns along x.
fn weights(mesh: &Mesh) -> Weights {
    let mut weights = Weights::default();
    for p in mesh.positions() {
        let raw = [0.0, 0.33, 0.67, 1.0].map(|x| (-20.0 * (p.x - x) * (p.x - x)).exp());
        let total: f64 = raw.iter().sum();
        weights.push((0..).zip(raw).map(|(joint, w)| Influence { joint, weight: w / total }));
    }
    weights
}

fn dabs(c: &mut Criterion) {
    let mut group = c.benchmark_group("dab");
    for n in [100, 1000] {
        let mesh = sheet(n, 0.0);
        let mut painter = Painter::new(&mesh, &weights(&mesh), 4, Locks::NONE).unwrap();
        for (name, mode) in [("add", Mode::Add), ("smooth", Mode::Smooth)] {
            // About a thousand vertices under the brush, whatever the mesh.
            let radius = (1000.0 / std::f64::consts::PI).sqrt() / f64::from(n);
            let brush = Brush { mode, joint: 1, radius, strength: 0.1, normalize: true };
            let center = mesh.positions()[mesh.positions().len() / 2 + n as usize / 2];
            let touched = painter.dab(center, &brush).unwrap().vertices().len();
            group.throughput(Throughput::Elements(touched as u64));
            group.bench_function(BenchmarkId::new(name, n * n), |b| {
                b.iter(|| black_box(painter.dab(center, &brush).unwrap()));
            });
        }
    }
    group.finish();
}

fn transfers(c: &mut Criterion) {
    let bone = |i: u32| Bone {
        name: format!("bone{i}"),
        head: DVec3::X * f64::from(i),
        tail: DVec3::X * f64::from(i + 1),
        parent: None,
        deform: true,
    };
    let skeleton = Skeleton::new((0..4).map(bone).collect()).unwrap();
    let source = sheet(200, 0.0);
    let weights = weights(&source);
    let mut group = c.benchmark_group("transfer");
    group.sample_size(10);
    for (name, distance) in [("all matched", 0.05), ("half filled", 0.0095)] {
        let target = sheet(150, 0.01);
        let target = match name {
            "all matched" => target,
            // One half lies closer than the limit, the other is lifted off.
            _ => {
                let lifted = target.positions().iter().map(|p| *p + DVec3::Z * 0.2 * (p.x - 0.5)).collect();
                Mesh::new(lifted, target.triangles().to_vec()).unwrap()
            }
        };
        let params = Params { max_distance: distance, ..Params::default() };
        group.bench_function(name, |b| {
            b.iter(|| transfer(&source, &weights, &skeleton, &target, &params, Progress::NONE).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, dabs, transfers);
criterion_main!(benches);
