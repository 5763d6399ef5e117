//! How long the voxels of a U-shaped tube take: the surface alone, and all of it, closed and with holes.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use skinbind::model::{Grid, Mesh};
use skinbind::progress::Progress;
use skinbind::voxelize::{Interior, surface_voxels, voxelize};

#[path = "../tests/common/mod.rs"]
mod common;

fn bench(c: &mut Criterion) {
    let whole = common::shapes::u_bend(0.4, 0.5, 2.0, 40);
    let mut random = common::shapes::Random(1);
    let mut holed = whole.clone();
    holed.faces.retain(|_| random.below(50) > 0);
    let mut group = c.benchmark_group("voxelize");
    group.sample_size(10);
    for resolution in [64, 128, 256, 512] {
        let mut run = |name: &str, mesh: &Mesh, all: bool| {
            let grid = Grid::around(&mesh.bounds(), resolution).expect("a grid");
            let weld = mesh.weld();
            group.bench_function(BenchmarkId::new(name, resolution), |b| {
                b.iter(|| {
                    if all {
                        black_box(voxelize(mesh, &weld, &grid, Interior::Auto, Progress::NONE).is_ok())
                    } else {
                        black_box(surface_voxels(mesh, &grid, Progress::NONE).is_ok())
                    }
                });
            });
        };
        run("surface", &whole.mesh(), false);
        run("closed", &whole.mesh(), true);
        if resolution <= 128 {
            run("2 % of faces missing", &holed.mesh(), true);
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
