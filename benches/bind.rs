//! Time of a whole bind without files, by resolution and number of bones.
//!
//! `SKINBIND_BENCH=STEM` binds STEM.obj to STEM.json instead of the shape made here.

use std::hint::black_box;
use std::path::Path;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use glam::DVec3;
use skinbind::bind::{Method, Params, bind};
use skinbind::io::{obj, skeleton_json};
use skinbind::model::{Bone, Mesh, Skeleton};
use skinbind::progress::Progress;

#[allow(dead_code)]
#[path = "../tests/common/shapes.rs"]
mod shapes;

/// The files asked for, or a bent tube with 163 bones along it.
fn input() -> (Mesh, Skeleton) {
    if let Ok(stem) = std::env::var("SKINBIND_BENCH") {
        let with = |extension| Path::new(&stem).with_extension(extension);
        return (obj::read(with("obj")).unwrap(), skeleton_json::read(with("json")).unwrap());
    }
    let mesh = shapes::u_bend(0.15, 0.3, 1.5, 24).mesh();
    let bounds = mesh.bounds();
    let (low, high) = (bounds.min + 0.15, bounds.max - 0.15);
    let at = |i: usize| {
        let t = i as f64 / 163.0 * 3.0;
        let (x, y) = match t {
            t if t < 1.0 => (low.x, low.y.lerp(high.y, t)),
            t if t < 2.0 => (low.x.lerp(high.x, t - 1.0), high.y),
            t => (high.x, high.y.lerp(low.y, t - 2.0)),
        };
        DVec3::new(x, y, 0.0)
    };
    let bone = |i| Bone { name: format!("bone{i}"), head: at(i), tail: at(i + 1), parent: None, deform: true };
    (mesh, Skeleton::new((0..163).map(bone).collect()).unwrap())
}

trait Lerp {
    fn lerp(self, to: f64, t: f64) -> f64;
}

impl Lerp for f64 {
    fn lerp(self, to: f64, t: f64) -> f64 {
        self + (to - self) * t
    }
}

/// The first bones; parents among them stay.
fn first(skeleton: &Skeleton, count: usize) -> Skeleton {
    let keep = |bone: &Bone| Bone { parent: bone.parent.filter(|&p| p < count), ..bone.clone() };
    Skeleton::new(skeleton.bones().iter().take(count).map(keep).collect()).unwrap()
}

fn whole(c: &mut Criterion) {
    let (mesh, skeleton) = input();
    let few = first(&skeleton, 24);
    let mut group = c.benchmark_group("bind");
    group.sample_size(10);
    let mut run = |method: Method, resolution: u32, skeleton: &Skeleton| {
        let params = Params { method, resolution: Some(resolution), ..Params::default() };
        let name = format!("{} {} bones", method.name(), skeleton.len());
        group.bench_function(BenchmarkId::new(name, resolution), |b| {
            b.iter(|| black_box(bind(&mesh, skeleton, &params, Progress::NONE)).unwrap());
        });
    };
    for resolution in [64, 128, 256, 512] {
        run(Method::Geodesic, resolution, &skeleton);
    }
    run(Method::Geodesic, 256, &few);
    for resolution in [128, 192, 256] {
        run(Method::VoxelHeat, resolution, &skeleton);
    }
    group.finish();
}

criterion_group!(benches, whole);
criterion_main!(benches);
