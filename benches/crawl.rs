//! Time of the crawl through a bent limb, by resolution and number of bones.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use glam::{DVec3, UVec3};
use skinbind::crawl::{Neighbors, crawl};
use skinbind::model::{BitGrid, Bone, Bounds, Grid, Skeleton};
use skinbind::progress::Progress;
use skinbind::voxelize::{Interior, Voxels};

/// Two arms of a tube, joined at one end, filling the unit cube.
fn limb(resolution: u32) -> Voxels {
    let grid = Grid::around(&Bounds { min: DVec3::ZERO, max: DVec3::ONE }, resolution).unwrap();
    let mut solid = BitGrid::new(grid.dims());
    let d = grid.dims();
    for (z, y, x) in (0..d.z).flat_map(|z| (0..d.y).flat_map(move |y| (0..d.x).map(move |x| (z, y, x)))) {
        let p = grid.to_world(UVec3::new(x, y, z).as_dvec3() + 0.5);
        let arm = |at: f64| (p.x - at).hypot(p.z - 0.5) < 0.15 && p.y > 0.1 && p.y < 1.0;
        let joint = (p.y - 0.2).hypot(p.z - 0.5) < 0.15 && p.x > 0.2 && p.x < 0.8;
        if arm(0.2) || arm(0.8) || joint {
            solid.set(UVec3::new(x, y, z));
        }
    }
    Voxels { grid, surface: BitGrid::new(d), solid, interior: Interior::Flood, reason: "made", warnings: Vec::new() }
}

/// A chain of bones down one arm, across, and up the other.
fn chain(count: usize) -> Skeleton {
    let at = |i: usize| {
        let t = 2.2 * i as f64 / count as f64;
        let (x, y) = match t {
            t if t < 0.8 => (0.2, 1.0 - t),
            t if t < 1.4 => (t - 0.6, 0.2),
            t => (0.8, t - 1.2),
        };
        DVec3::new(x, y, 0.5)
    };
    let bone = |i| Bone { name: format!("bone{i}"), head: at(i), tail: at(i + 1), parent: None, deform: true };
    Skeleton::new((0..count).map(bone).collect()).unwrap()
}

fn by_resolution(c: &mut Criterion) {
    let mut group = c.benchmark_group("crawl");
    group.sample_size(10);
    for (resolution, bones) in [(64, 163), (128, 163), (256, 24), (256, 163)] {
        let voxels = limb(resolution);
        let skeleton = chain(bones);
        let used = vec![true; bones];
        group.throughput(Throughput::Elements(voxels.solid.count() * 5));
        group.bench_function(BenchmarkId::new(format!("{bones} bones"), resolution), |b| {
            b.iter(|| {
                black_box(crawl(&voxels, &skeleton, &used, 5, Neighbors::TwentySix, Progress::NONE)).unwrap();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, by_resolution);
criterion_main!(benches);
