//! Times of the influence stage on a made body: from labels, envelope and closest, at 13 k and 853 k vertices, 163 bones.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use glam::{DVec3, UVec3};
use skinbind::crawl::Label;
use skinbind::geometry::bone_distance::BoneTree;
use skinbind::influence::{Falloff, LabelSource, Limits, closest, envelope, from_labels};
use skinbind::model::{Bone, Grid, Mesh, Skeleton};
use skinbind::progress::Progress;

const BONES: usize = 163;
const LABELS: usize = 5;
const RESOLUTION: u32 = 64;

/// A slender closed surface of `around` x `along` vertices, 16 long, row after row as modelling programs store them.
fn body(around: u32, along: u32) -> Mesh {
    let point = |i: u32, j: u32| {
        let (turn, t) = (f64::from(i) / f64::from(around), (f64::from(j) + 0.5) / f64::from(along));
        let radius = 1.2 * (t * std::f64::consts::PI).sin().sqrt() + 0.2 * (t * 40.0).sin();
        let (sin, cos) = (turn * std::f64::consts::TAU).sin_cos();
        DVec3::new(radius * cos, 16.0 * t, radius * sin)
    };
    let positions = (0..along).flat_map(|j| (0..around).map(move |i| point(i, j))).collect();
    let quad = |i: u32, j: u32| {
        let (a, b) = (j * around + i, j * around + (i + 1) % around);
        [[a, b, a + around], [b, b + around, a + around]]
    };
    let triangles = (0..along - 1).flat_map(|j| (0..around).flat_map(move |i| quad(i, j))).collect();
    Mesh::new(positions, triangles).unwrap()
}

/// Bones on a spiral through the body.
fn spiral() -> Skeleton {
    let at = |i: usize| {
        let t = i as f64 / BONES as f64;
        let (sin, cos) = (t * 200.0).sin_cos();
        DVec3::new(0.7 * cos, 16.0 * t, 0.7 * sin)
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

/// For each voxel the nearest bones in a straight line: as many labels as the crawl hands over.
struct Table {
    dims: UVec3,
    labels: Vec<[Label; LABELS]>,
}

impl Table {
    fn new(grid: &Grid, skeleton: &Skeleton) -> Self {
        let dims = grid.dims();
        let each: Vec<BoneTree> =
            (0..BONES).map(|b| BoneTree::new(skeleton, &(0..BONES).map(|i| i == b).collect::<Vec<_>>())).collect();
        let mut near = Vec::new();
        let mut labels = Vec::new();
        for (z, y, x) in (0..dims.z).flat_map(|z| (0..dims.y).flat_map(move |y| (0..dims.x).map(move |x| (z, y, x)))) {
            let p = grid.to_world(UVec3::new(x, y, z).as_dvec3() + 0.5);
            let mut all: Vec<Label> = (0..BONES)
                .map(|b| {
                    each[b].within(p, 1.0, 0.0, &mut 0, &mut near);
                    Label { bone: b as u32, distance: near[0].squared.sqrt() / grid.voxel() }
                })
                .collect();
            all.sort_by(|a, b| a.distance.total_cmp(&b.distance));
            labels.push(std::array::from_fn(|i| all[i]));
        }
        Self { dims, labels }
    }
}

impl LabelSource for Table {
    fn at(&self, v: UVec3) -> impl Iterator<Item = Label> + '_ {
        self.labels[((v.z * self.dims.y + v.y) * self.dims.x + v.x) as usize].iter().copied()
    }
}

fn influence(c: &mut Criterion) {
    let mut group = c.benchmark_group("influence");
    group.sample_size(10);
    let skeleton = spiral();
    let uses = vec![true; BONES];
    for (name, around, along) in [("13k", 60, 223), ("853k", 480, 1784)] {
        let mesh = body(around, along);
        let weld = mesh.weld();
        let grid = Grid::around(&mesh.bounds(), RESOLUTION).unwrap();
        let table = Table::new(&grid, &skeleton);
        let limits = Limits::default();
        for power in [2.0, 4.0, 3.3] {
            let falloff = Falloff { power, ..Falloff::default() };
            group.bench_function(BenchmarkId::new(format!("labels-power-{power}"), name), |b| {
                b.iter(|| {
                    from_labels(&table, &grid, &mesh, &weld, &skeleton, LABELS, &falloff, &limits, Progress::NONE)
                });
            });
        }
        group.bench_function(BenchmarkId::new("envelope", name), |b| {
            b.iter(|| envelope(black_box(&mesh), &weld, &skeleton, &uses, &limits, Progress::NONE));
        });
        group.bench_function(BenchmarkId::new("closest", name), |b| {
            b.iter(|| closest(black_box(&mesh), &weld, &skeleton, &uses, Progress::NONE));
        });
    }
    group.finish();
}

criterion_group!(benches, influence);
criterion_main!(benches);
