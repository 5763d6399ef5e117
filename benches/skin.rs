//! Skinning in f64 on one core, with a copy of the same bytes beside it as the limit: `cargo bench --bench skin`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use glam::{DAffine3, DQuat, DVec3};
use skinbind::model::{Influence, Palette, Weights};
use skinbind::skin::{Method, Posed, SkinInput, Surface, vector_unit};

const JOINTS: usize = 163;

/// Vertices along a body whose joints follow each other, `influences` neighbouring joints each.
fn case(vertices: usize, influences: usize, scale: bool) -> (Weights, Palette, Vec<DVec3>) {
    let mut weights = Weights::with_capacity(vertices, vertices * influences);
    let mut positions = Vec::with_capacity(vertices);
    for v in 0..vertices {
        let joint = |i: usize| ((v * JOINTS / vertices + i * (v % 3)) % JOINTS) as u32;
        weights.push((0..influences).map(|i| Influence { joint: joint(i), weight: 1.0 / (i + 2) as f64 }));
        let t = v as f64;
        positions.push(DVec3::new((t * 0.7).sin(), (t * 0.3).cos(), t / vertices as f64));
    }
    let matrix = |j: usize| {
        let t = j as f64;
        let turn = DQuat::from_axis_angle(DVec3::new(t.sin(), t.cos(), 1.0).normalize(), t * 0.1);
        let size = if scale { 1.1 } else { 1.0 };
        DAffine3::from_scale_rotation_translation(DVec3::splat(size), turn, DVec3::new(t, 1.0, -t))
    };
    (weights, Palette::new((0..JOINTS).map(matrix).collect()), positions)
}

fn skin(c: &mut Criterion) {
    // One core: the speeds of docs/skin.md are per core.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread");
    for vertices in [20_000, 1_000_000] {
        let mut group = c.benchmark_group(format!("skin {vertices} vertices ({})", vector_unit()));
        group.throughput(Throughput::Elements(vertices as u64)).sample_size(20);
        for (name, influences, method, scale) in [
            ("linear, 4 influences", 4, Method::Linear, false),
            ("linear, 8 influences", 8, Method::Linear, false),
            ("dual quaternion, 4 influences", 4, Method::DualQuaternion, false),
            ("dual quaternion with scale, 4 influences", 4, Method::DualQuaternion, true),
        ] {
            let (weights, palette, positions) = case(vertices, influences, scale);
            let best = SkinInput::new(&weights, JOINTS).expect("valid weights");
            let surface = Surface::points(&positions);
            let mut posed = Posed::like(surface);
            for (code, input) in [("best", best.clone()), ("portable", best.portable())] {
                group.bench_function(BenchmarkId::new(name, code), |b| {
                    b.iter(|| pool.install(|| input.skin(&palette, method, surface, &mut posed).expect("valid input")));
                });
            }
        }
        // Four influences read 64 bytes (position 24, weights and joints 40) and write 24: 88 go over the bus, as they do
        // when 44 are copied.
        let from = vec![1u64; vertices * 44 / 8];
        let mut to = from.clone();
        group.bench_function("copy of the same bytes", |b| {
            b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from)));
        });
        group.finish();
    }
}

criterion_group!(benches, skin);
criterion_main!(benches);
