//! Pictures: what is in them, where and in which colour, and the program's `render` and `demo`.

mod common;

use common::shapes::{Random, Shape, capsule, cuboid, soup, sphere};
use skinbind::Error;
use skinbind::glam::DVec3;
use skinbind::model::Mesh;
use skinbind::render::colour::{self, heat, to_srgb8};
use skinbind::render::{BoneMark, Image, Look, Paint, View, draw, project};

const RED: Paint = Paint::Plain([1.0, 0.0, 0.0]);
const VIEWS: [View; 4] = [View::Front, View::Side, View::Back, View::ThreeQuarter];

fn look(view: View) -> Look {
    Look { width: 240, height: 200, view, orthographic: true, flat: true }
}

fn count(image: &Image, colour: [u8; 3]) -> f64 {
    image.pixels.iter().filter(|&&p| p == colour).count() as f64
}

/// The largest difference of a channel.
fn apart(a: [u8; 3], b: [u8; 3]) -> i32 {
    a.iter().zip(b).map(|(&a, b)| (i32::from(a) - i32::from(b)).abs()).max().unwrap()
}

#[test]
fn a_sphere_fills_the_disc_it_must() {
    let mesh = sphere(3.0, 48).mesh();
    for view in VIEWS {
        let image = draw(&mesh, &RED, &[], &look(view)).unwrap();
        // A margin of 5 % of the shorter side, 200, all round leaves a disc 180 wide. Pixels on its rim, 180 pi of them, are
        // mixed with the background, and a polygon of 96 corners lacks 0.1 %.
        let disc = std::f64::consts::PI * 90.0 * 90.0;
        let red = count(&image, [255, 0, 0]);
        assert!((disc - 180.0 * std::f64::consts::PI - 0.002 * disc..disc).contains(&red), "{view:?}: {red} of {disc}");
    }
    let other = draw(&capsule(1.0, 2.0, 8).mesh(), &RED, &[], &look(View::Front)).unwrap();
    assert!(count(&other, [255, 0, 0]) < 20000.0, "control: a capsule is slimmer");
}

#[test]
fn every_mesh_is_framed_exactly() {
    let mut random = Random(5);
    for n in 0..6 {
        let mesh =
            soup(&mut random, 40).map(|p| p * DVec3::new(1.0, 0.1 + f64::from(n), 3.0) + DVec3::splat(7.0)).mesh();
        for (view, orthographic) in VIEWS.into_iter().flat_map(|v| [(v, true), (v, false)]) {
            let look = Look { orthographic, ..look(view) };
            let places = project(&mesh, &RED, &look, mesh.positions()).unwrap();
            let room = |[x, y]: [f64; 2]| x.min(y).min(240.0 - x).min(200.0 - y);
            let least = places.into_iter().map(room).fold(f64::INFINITY, f64::min);
            // 5 % of 200; a dozen roundings of numbers below 1e3, divided by a distance.
            assert!((least - 10.0).abs() < 1e-9, "{view:?}, orthographic {orthographic}: {least}");
        }
    }
}

#[test]
fn pictures_are_the_same_on_any_number_of_threads_and_in_any_order_of_triangles() {
    let shape = sphere(1.0, 12).and(&cuboid(DVec3::new(-0.2, -2.0, 0.3), DVec3::new(1.5, 0.5, 2.0), 3));
    let (mesh, mut turned) = (shape.mesh(), shape);
    turned.faces.reverse();
    let look = Look { width: 301, height: 177, ..Look::default() };
    let first = draw(&mesh, &Paint::Plain(colour::CLAY), &[], &look).unwrap();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| draw(&mesh, &Paint::Plain(colour::CLAY), &[], &look)).unwrap(), first);
    }
    let other = draw(&turned.mesh(), &Paint::Plain(colour::CLAY), &[], &look).unwrap();
    let differ = first.pixels.iter().zip(&other.pixels).filter(|(a, b)| apart(**a, **b) > 2).count();
    // Samples exactly on an edge may go to either of its triangles.
    assert!(differ < first.pixels.len() / 200, "{differ}");
    let moved = draw(&mesh, &Paint::Plain(colour::CLAY), &[], &Look { view: View::Back, ..look }).unwrap();
    assert!(first.pixels.iter().zip(&moved.pixels).filter(|(a, b)| apart(**a, **b) > 2).count() > 5000, "control");
}

#[test]
fn the_nearer_surface_is_seen() {
    let wall = |z: f64| Shape {
        points: vec![DVec3::new(-1., -1., z), DVec3::new(1., -1., z), DVec3::new(1., 1., z), DVec3::new(-1., 1., z)],
        faces: vec![[0, 1, 2], [0, 2, 3]],
    };
    let (green, blue) = ([0.0, 1.0, 0.0], [0.0, 0.0, 1.0]);
    let middle = |shape: Shape, colours: [[f64; 3]; 2], view| {
        let paint = Paint::Vertices((0..8).map(|v| colours[v / 4]).collect());
        draw(&shape.mesh(), &paint, &[], &look(view)).unwrap().at(120, 100)
    };
    for view in [View::Front, View::Back] {
        let near = if view == View::Front { [0, 255, 0] } else { [0, 0, 255] };
        assert_eq!(middle(wall(1.0).and(&wall(-1.0)), [green, blue], view), near);
        assert_eq!(middle(wall(-1.0).and(&wall(1.0)), [blue, green], view), near);
    }
}

/// A box whose front is a grid of 8 x 8 squares, and weights that rise along x.
fn ramp() -> (Mesh, Vec<f64>) {
    let mesh = cuboid(DVec3::ZERO, DVec3::new(1.0, 1.0, 0.5), 8).mesh();
    let weights = mesh.positions().iter().map(|p| p.x).collect();
    (mesh, weights)
}

#[test]
fn heat_maps_have_the_colours_of_the_scale_at_the_vertices() {
    let (mesh, weights) = ramp();
    let (look, paint) = (look(View::Front), Paint::Heat(weights.clone()));
    let image = draw(&mesh, &paint, &[], &look).unwrap();
    let places = project(&mesh, &paint, &look, mesh.positions()).unwrap();
    let mut seen = 0;
    for (v, [x, y]) in places.into_iter().enumerate() {
        let p = mesh.positions()[v];
        if p.z < 0.5 || [p.x, p.y].iter().any(|c| *c <= 0.0 || *c >= 1.0) {
            continue;
        }
        let pixel = image.at(x as u32, y as u32);
        // The square is about 150 pixels wide, and a channel goes through its 255 levels within a fifth of the scale at the
        // fastest: 8 levels a pixel, of which a pixel's middle is off by half at most, and the rounding.
        assert!(apart(pixel, to_srgb8(heat(weights[v]))) <= 5, "vertex {v}: {pixel:?}");
        assert!(apart(pixel, to_srgb8(heat(1.0 - weights[v]))) > 30 || p.x == 0.5, "control");
        seen += 1;
    }
    assert_eq!(seen, 49);
    // The bar on the right: from the end of the scale to its start.
    let column = (0..240).rev().find(|&x| apart(image.at(x, 100), to_srgb8(heat(0.5))) <= 3).expect("the bar");
    let at = |y: u32| image.at(column - 2, y);
    assert!(apart(at(46), to_srgb8(heat(0.98))) <= 8 && apart(at(153), to_srgb8(heat(0.02))) <= 8);
}

#[test]
fn light_comes_from_the_upper_left_and_changes_no_flat_colour() {
    let mesh = sphere(1.0, 24).mesh();
    let image = draw(&mesh, &Paint::Plain(colour::CLAY), &[], &Look { flat: false, ..look(View::Front) }).unwrap();
    let sum = |x, y| image.at(x, y).iter().map(|&c| i32::from(c)).sum::<i32>();
    assert!(sum(90, 60) > sum(150, 150) + 120, "{} {}", sum(90, 60), sum(150, 150));
    let flat = draw(&mesh, &Paint::Plain(colour::CLAY), &[], &look(View::Front)).unwrap();
    assert_eq!(flat.at(90, 60), to_srgb8(colour::CLAY));
    assert_eq!(flat.at(150, 150), flat.at(90, 60));
}

#[test]
fn bones_lie_over_the_surface_and_nowhere_else() {
    let (mesh, _) = ramp();
    let look = look(View::Front);
    let mark = BoneMark { head: DVec3::splat(0.25), tail: DVec3::new(0.75, 0.75, 0.25), colour: [0.0, 1.0, 0.0] };
    let (bare, with) = (draw(&mesh, &RED, &[], &look).unwrap(), draw(&mesh, &RED, &[mark], &look).unwrap());
    let ends = project(&mesh, &RED, &look, &[mark.head, mark.tail]).unwrap();
    let ends: Vec<DVec3> = ends.into_iter().map(|[x, y]| DVec3::new(x, y, 0.0)).collect();
    let mut changed = 0;
    for (i, (a, b)) in bare.pixels.iter().zip(&with.pixels).enumerate() {
        let p = DVec3::new((i % 240) as f64 + 0.5, (i / 240) as f64 + 0.5, 0.0);
        let along = ((p - ends[0]).dot(ends[1] - ends[0]) / (ends[1] - ends[0]).length_squared()).clamp(0.0, 1.0);
        let far = p.distance(ends[0].lerp(ends[1], along));
        changed += usize::from(a != b);
        assert!(a == b || far < 8.0, "a pixel {far} from the bone changed");
    }
    // The bone is some 100 pixels long.
    assert!(changed > 200, "{changed}");
}

#[test]
fn odd_meshes_are_drawn_and_impossible_ones_refused() {
    let triangle = |points: [[f64; 3]; 3]| Mesh::new(points.map(DVec3::from_array).to_vec(), vec![[0, 1, 2]]).unwrap();
    for (size, shift) in [(1e-30, 0.0), (3e38, 0.0), (1.0, 1e12)] {
        let mesh = triangle([[0., 0., 0.], [1., 0., 0.], [0., 1., 0.5]].map(|p| p.map(|x| x * size + shift)));
        for orthographic in [true, false] {
            let image = draw(&mesh, &RED, &[], &Look { orthographic, ..look(View::Front) }).unwrap();
            assert!(count(&image, [255, 0, 0]) > 1000.0, "size {size}, {shift} from the origin");
        }
    }
    // A line, along the view and across it: nothing to see, and no fault.
    for direction in [DVec3::Z, DVec3::X] {
        let mesh = triangle([0.0, 1.0, 2.0].map(|t| (direction * t).to_array()));
        for orthographic in [true, false] {
            draw(&mesh, &RED, &[], &Look { orthographic, ..look(View::Front) }).unwrap();
        }
    }
    let point = triangle([[1.0; 3]; 3]);
    assert!(matches!(draw(&point, &RED, &[], &look(View::Front)), Err(Error::NoExtent)));
    let mesh = sphere(1.0, 4).mesh();
    for (width, height) in [(0, 100), (100, 15), (4097, 100)] {
        let refused = draw(&mesh, &RED, &[], &Look { width, height, ..Look::default() });
        assert!(matches!(refused, Err(Error::Parameter { .. })));
    }
    let refused = draw(&mesh, &Paint::Heat(vec![0.5]), &[], &Look::default());
    assert!(matches!(refused, Err(Error::Length { found: 1, .. })));
}

#[cfg(feature = "cli")]
mod program {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Output};

    use skinbind::io::gltf::Document;

    fn run(folder: &Path, arguments: &str) -> Output {
        let arguments = arguments.split(' ');
        Command::new(env!("CARGO_BIN_EXE_skinbind")).args(arguments).current_dir(folder).output().unwrap()
    }

    fn ok(folder: &Path, arguments: &str) {
        let done = run(folder, arguments);
        assert!(done.status.success(), "{arguments}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn read(path: &Path) -> Image {
        let mut reader = png::Decoder::new(std::io::BufReader::new(fs::File::open(path).unwrap())).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
        let pixels = bytes.chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect();
        Image { width: info.width, height: info.height, pixels }
    }

    /// Pixels that are no grey of the background.
    fn coloured(image: &Image) -> usize {
        image.pixels.iter().filter(|p| p.iter().any(|c| *c != p[0])).count()
    }

    #[test]
    fn the_demo_and_what_render_makes_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        ok(path, "demo --folder d");
        for name in ["character.png", "weights.png", "weights-upper_arm.L.png"] {
            let image = read(&path.join("d").join(name));
            let share = coloured(&image) as f64 / image.pixels.len() as f64;
            assert!((0.1..0.5).contains(&share), "{name}: {share}");
        }
        let base = "render d/character.glb --size 240x200 -q";
        for (name, more) in [
            ("a.png", "--animation wave --time 0.5"),
            ("same.png", "--animation wave --time 0.5"),
            ("later.png", "--animation wave --time 1.1"),
            ("first.png", "--time 0.5"),
            ("other.png", "--animation walk --time 0.5"),
            ("dual.png", "--animation wave --time 0.5 --method dual-quaternion"),
            ("rest.png", "--view front"),
            ("bones.png", "--view front --bones"),
            ("skeleton.png", "--view front --skeleton"),
        ] {
            ok(path, &format!("{base} {more} -o {name}"));
        }
        let bytes = |name: &str| fs::read(path.join(name)).unwrap();
        assert_eq!(bytes("a.png"), bytes("same.png"));
        assert_eq!(bytes("a.png"), bytes("first.png"));
        for other in ["later.png", "other.png", "dual.png", "rest.png"] {
            assert_ne!(bytes("a.png"), bytes(other), "{other}");
        }
        assert_ne!(bytes("rest.png"), bytes("bones.png"));
        assert_ne!(bytes("rest.png"), bytes("skeleton.png"));
        heat_map_shows_the_weights(path);
    }

    fn heat_map_shows_the_weights(path: &Path) {
        ok(path, "render d/character.glb --bone forearm.R --flat --view front --size 900x900 -q -o heat.png");
        let image = read(&path.join("heat.png"));
        let document = Document::read(&path.join("d/character.glb")).unwrap();
        let (mesh, _) = document.mesh(true).unwrap();
        let (names, weights) = document.weights().unwrap().unwrap();
        let bone = names.iter().position(|n| n == "forearm.R").unwrap() as u32;
        let values: Vec<f64> = (0..weights.len()).map(|v| weights.weight(v, bone)).collect();
        let look = Look { view: View::Front, flat: true, ..Look::default() };
        let places = project(&mesh, &Paint::Heat(values.clone()), &look, mesh.positions()).unwrap();
        // Vertices in the middle of the arm's front, which nothing hides: their colour is that of their weight.
        let (mut full, mut none) = (0, 0);
        for (v, [x, y]) in places.into_iter().enumerate() {
            let (p, n) = (mesh.positions()[v], mesh.normals().unwrap()[v]);
            if n.z < 0.95 || p.y < 1.2 || p.y > 1.45 {
                continue;
            }
            let pixel = image.at(x as u32, y as u32);
            if values[v] > 0.8 {
                full += 1;
                // An edge is some five pixels long, and along it the weight changes by a few hundredths at most.
                assert!(apart(pixel, to_srgb8(heat(values[v]))) <= 12, "vertex {v}: {pixel:?}");
                assert!(apart(pixel, to_srgb8(heat(values[v] - 0.3))) > 30, "control");
            } else if p.x > 0.2 {
                none += 1;
                assert!(apart(pixel, to_srgb8(heat(0.0))) <= 1, "vertex {v}: {pixel:?}");
            }
        }
        assert!(full > 5 && none > 50, "{full} {none}");
    }

    #[test]
    fn an_obj_file_is_drawn_and_faults_have_their_codes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("in.obj"), "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
            .unwrap();
        fs::write(path.join("in.point.obj"), "v 0 0 0\nf 1 1 1\n").unwrap();
        ok(path, "render in.obj --size 64x48 -o t.png");
        let image = read(&path.join("t.png"));
        assert!((image.width, image.height) == (64, 48) && coloured(&image) > 200);
        for (code, arguments, says) in [
            (2, "render in.obj -o a.jpg", ".png"),
            (2, "render in.obj --size 9x9 -o a.png", "16 to 4096"),
            (2, "render in.obj --time inf -o a.png", "time"),
            (2, "render in.obj --bone a --bones -o a.png", "--bones"),
            (3, "render in.obj --bones -o a.png", "rigged"),
            (3, "render in.obj --time 1 -o a.png", "rigged"),
            (3, "render in.point.obj -o a.png", "no extent"),
            (3, "render absent.glb -o a.png", "absent.glb"),
            (4, "render in.obj -o t.png", "--force"),
            (4, "render in.obj -o nowhere/a.png", "nowhere"),
        ] {
            let done = run(path, arguments);
            let said = String::from_utf8(done.stderr).unwrap();
            assert_eq!(done.status.code(), Some(code), "{arguments}: {said}");
            assert!(said.contains(says), "{arguments}: {said}");
            assert!(!path.join("a.png").exists());
        }
        ok(path, "render in.obj --size 64x48 --force -o t.png");
    }
}
