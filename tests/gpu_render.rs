//! Pictures whose triangles a device found, against those of the CPU.

#[path = "common/mod.rs"]
mod common;
#[path = "common/gpu.rs"]
mod gpu_tests;

use std::process::ExitCode;

use common::shapes::{Random, capsule, soup, sphere};
use glam::DVec3;
use gpu_tests::{changed, parts};
use skinbind::gpu::{Context, block_on, catch_blocking};
use skinbind::model::Mesh;
use skinbind::render::colour::CLAY;
use skinbind::render::gpu::{Rasterizer, WGSL};
use skinbind::render::{self, BoneMark, Image, Look, Paint, View};

/// Levels of 255 that count as another colour, and the share of pixels that may have one. Devices keep corners to 1/256 of a
/// sample, so an edge passes some of the samples along it on the other side: a pixel in a hundred along edges, and edges
/// between triangles of one surface change nearly nothing.
const LEVELS: u8 = 4;
const SHARE: f64 = 2e-3;

fn main() -> ExitCode {
    gpu_tests::run(&[
        ("pictures_are_those_of_the_cpu", pictures_are_those_of_the_cpu),
        ("crossing_triangles_too", crossing_triangles_too),
        ("broken_shaders_are_found", broken_shaders_are_found),
        ("faults_are_those_of_the_cpu", faults_are_those_of_the_cpu),
    ])
}

/// Two bodies, one partly before the other.
fn bodies() -> Mesh {
    sphere(1.0, 12).and(&capsule(0.4, 3.0, 10).map(|p| p + DVec3::new(0.7, 0.2, 1.1))).mesh()
}

fn paints(mesh: &Mesh) -> [Paint; 3] {
    let heat = mesh.positions().iter().map(|p| (p.y * 0.5 + 0.5).clamp(0.0, 1.0)).collect();
    let colours = mesh.positions().iter().map(|p| (p.normalize() * 0.5 + 0.5).to_array()).collect();
    [Paint::Plain(CLAY), Paint::Heat(heat), Paint::Vertices(colours)]
}

fn drawn(context: &Context, wgsl: &str, mesh: &Mesh, paint: &Paint, bones: &[BoneMark], look: &Look) -> Image {
    let make = || Ok(Rasterizer::from_wgsl(&context.device, &context.queue, wgsl));
    let raster = catch_blocking(&context.device, "test", make).expect("compiles");
    block_on(&context.device, raster.draw(mesh, paint, bones, look)).expect("draws")
}

/// The share of pixels that differ.
fn apart(a: &Image, b: &Image) -> f64 {
    assert_eq!((a.width, a.height), (b.width, b.height));
    let differ = |(a, b): &(&[u8; 3], &[u8; 3])| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > LEVELS);
    a.pixels.iter().zip(&b.pixels).filter(differ).count() as f64 / a.pixels.len() as f64
}

/// Sides that fill neither a row of the copy nor a strip, more than one strip, and less than one.
const LOOKS: [Look; 3] = [
    Look { width: 333, height: 417, view: View::ThreeQuarter, orthographic: false, flat: false },
    Look { width: 640, height: 256, view: View::Front, orthographic: true, flat: false },
    Look { width: 97, height: 601, view: View::Back, orthographic: false, flat: true },
];

fn pictures_are_those_of_the_cpu(context: &Context) {
    let mesh = bodies();
    let mark = BoneMark { head: DVec3::NEG_Y, tail: DVec3::Y, colour: [0.8, 0.2, 0.1] };
    for paint in &paints(&mesh) {
        for look in &LOOKS {
            let expected = render::draw(&mesh, paint, &[mark], look).expect("draws");
            let found = drawn(context, WGSL, &mesh, paint, &[mark], look);
            let off = apart(&found, &expected);
            assert!(off <= SHARE, "{look:?}: {off}");
            // The same from elsewhere is another picture.
            let elsewhere = Look { view: View::Side, ..*look };
            assert!(apart(&drawn(context, WGSL, &mesh, paint, &[mark], &elsewhere), &expected) > 10.0 * SHARE);
        }
    }
}

fn crossing_triangles_too(context: &Context) {
    // Large triangles that pass through each other: the z-buffer decides at every pixel.
    let mesh = soup(&mut Random(3), 300).mesh();
    let look = Look { width: 500, height: 500, ..Look::default() };
    let expected = render::draw(&mesh, &Paint::Plain(CLAY), &[], &look).expect("draws");
    let off = apart(&drawn(context, WGSL, &mesh, &Paint::Plain(CLAY), &[], &look), &expected);
    // Nearly all of this picture is edges.
    assert!(off <= 10.0 * SHARE, "{off}");
}

fn broken_shaders_are_found(context: &Context) {
    let mesh = bodies();
    let look = LOOKS[0];
    let paint = &paints(&mesh)[1];
    let expected = render::draw(&mesh, paint, &[], &look).expect("draws");
    for (from, to) in [
        ("at.y - params.top", "at.y + params.top"),
        ("params.scale.x - 1.0", "params.scale.x - 0.99"),
        ("vec4(x, y, at.z, 1.0)", "vec4(x, y, 0.9 - 0.9 * at.z, 1.0)"),
        ("first + vertex / 3u", "first + vertex / 4u"),
    ] {
        let text = changed(&[WGSL], from, to);
        let off = apart(&drawn(context, parts(&text)[0], &mesh, paint, &[], &look), &expected);
        assert!(off > SHARE, "{from} -> {to} went unnoticed: {off}");
    }
}

fn faults_are_those_of_the_cpu(context: &Context) {
    let mesh = bodies();
    let raster = Rasterizer::from_wgsl(&context.device, &context.queue, WGSL);
    for (paint, look) in [(Paint::Plain(CLAY), Look { width: 15, ..LOOKS[0] }), (Paint::Heat(vec![0.5; 3]), LOOKS[0])] {
        let expected = render::draw(&mesh, &paint, &[], &look).expect_err("a fault").to_string();
        let found = block_on(&context.device, raster.draw(&mesh, &paint, &[], &look)).expect_err("a fault").to_string();
        assert_eq!(found, expected);
    }
}
