//! Voxels of meshes: fast against reference, against closed forms, and by property.

mod common;

use std::ops::ControlFlow;

use common::shapes::{Random, Shape, capsule, cuboid, soup, sphere, u_bend};
use skinbind::Error;
use skinbind::glam::{DVec3, IVec3, UVec3};
use skinbind::model::{BitGrid, Code, Grid, LATTICE, Mesh};
use skinbind::progress::Progress;
use skinbind::voxelize::{Interior, Voxels, reference, surface_voxels, voxelize};

fn voxels_as(mesh: &Mesh, resolution: u32, interior: Interior) -> Voxels {
    let grid = Grid::around(&mesh.bounds(), resolution).unwrap();
    voxelize(mesh, &mesh.weld(), &grid, interior, Progress::NONE).unwrap()
}

fn voxels(shape: &Shape, resolution: u32) -> Voxels {
    voxels_as(&shape.mesh(), resolution, Interior::Auto)
}

fn has(voxels: &Voxels, code: Code) -> bool {
    voxels.warnings.iter().any(|w| w.code == code)
}

fn all_voxels(dims: UVec3) -> impl Iterator<Item = UVec3> {
    (0..dims.z).flat_map(move |z| (0..dims.y).flat_map(move |y| (0..dims.x).map(move |x| UVec3::new(x, y, z))))
}

/// How many voxels one has and the other has not.
fn differing(a: &BitGrid, b: &BitGrid) -> u32 {
    assert_eq!(a.dims(), b.dims());
    a.words().iter().zip(b.words()).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[test]
fn the_fast_surface_is_the_reference_on_random_triangles() {
    let mut random = Random(1);
    for (resolution, triangles, rounds) in [(16, 400, 6), (33, 60, 10), (64, 20, 10), (100, 2000, 1), (64, 1, 60)] {
        for round in 0..rounds {
            let mesh = soup(&mut random, triangles).mesh();
            let grid = Grid::around(&mesh.bounds(), resolution).unwrap();
            let fast = surface_voxels(&mesh, &grid, Progress::NONE).unwrap();
            let plain = reference::surface(&mesh, &grid);
            assert_eq!(differing(&fast, &plain), 0, "{triangles} triangles at {resolution}, round {round}");
            assert!(plain.count() > 0);
        }
    }
}

#[test]
fn the_fast_surface_is_the_reference_on_huge_triangles() {
    // Flat ones: the reference tests every voxel of a triangle's box.
    let corners = [[-1.0, -1.0, -0.003], [1.0, -0.4, 0.011], [0.3, 1.0, 0.0171]];
    for turn in 0..3 {
        let mut points: Vec<DVec3> =
            corners.iter().map(|c| DVec3::new(c[turn], c[(turn + 1) % 3], c[(turn + 2) % 3])).collect();
        // A needle within a slanted plane, and the box that makes the grid a cube where it does not cost much.
        points.extend([points[0] * 0.9, points[1] * 0.9, points[1] * 0.9 + DVec3::splat(1e-4)]);
        let mesh = Mesh::new(points, vec![[0, 1, 2], [3, 4, 5]]).unwrap();
        let grid = Grid::around(&mesh.bounds(), 512).unwrap();
        let fast = surface_voxels(&mesh, &grid, Progress::NONE).unwrap();
        let plain = reference::surface(&mesh, &grid);
        assert_eq!(differing(&fast, &plain), 0, "turn {turn}");
        assert!(plain.count() > 50_000);
    }
}

#[test]
fn moving_one_vertex_by_a_voxel_shows() {
    let mut random = Random(2);
    let mut shape = soup(&mut random, 30);
    let grid = Grid::around(&shape.mesh().bounds(), 64).unwrap();
    let before = reference::surface(&shape.mesh(), &grid);
    shape.points[5] *= 0.9;
    let after = surface_voxels(&shape.mesh(), &grid, Progress::NONE).unwrap();
    assert!(differing(&before, &after) > 0);
}

#[test]
fn contact_counts_and_a_step_less_does_not() {
    let voxel = IVec3::new(3, 4, 5);
    let corner = voxel * LATTICE + IVec3::splat(LATTICE);
    let touching = [corner, corner + IVec3::new(500, 0, 0), corner + IVec3::new(0, 500, 300)];
    assert!(reference::overlaps(touching, voxel));
    assert!(!reference::overlaps(touching.map(|c| c + IVec3::new(1, 0, 0)), voxel));
    // The edge through the corner, normal (1, 1, 0): only that diagonal axis separates.
    let diagonal = |d: i32| {
        let at = corner + IVec3::new(d, 0, 0);
        [at + IVec3::new(-200, 200, -100), at + IVec3::new(200, -200, -100), at + IVec3::new(300, 300, -100)]
    };
    assert!(reference::overlaps(diagonal(0), voxel));
    assert!(!reference::overlaps(diagonal(1), voxel));
    // A point, and a segment that are degenerate triangles.
    assert!(reference::overlaps([corner; 3], voxel));
    assert!(!reference::overlaps([corner + IVec3::new(0, 0, 1); 3], voxel));
    let segment = |d: i32| [corner + IVec3::new(200 + d, -200, 0), corner + IVec3::new(-200 + d, 200, 0)];
    assert!(reference::overlaps([segment(0)[0], segment(0)[1], segment(0)[1]], voxel));
    assert!(!reference::overlaps([segment(1)[0], segment(1)[1], segment(1)[0]], voxel));
}

#[test]
fn a_box_fills_the_voxels_it_touches() {
    // At an even resolution the longest sides end in the middle of voxels; the others as computed here.
    for (size, n) in [([8.0, 8.0, 8.0], 1), ([8.0, 5.0, 3.0], 3), ([1.0, 8.0, 0.6], 7)] {
        let size = DVec3::from_array(size);
        let v = voxels(&cuboid(size * -0.5, size * 0.5, n), 16);
        let h = v.grid.voxel();
        // A box centred on a voxel's centre with half extent e reaches floor(e + 1/2) voxels beyond it (closed contact).
        let count: u64 = size.to_array().map(|s| 2 * (s / 2.0 / h + 0.5).floor() as u64 + 1).iter().product();
        assert_eq!(v.solid.count(), count, "{size}");
        assert_eq!(v.interior, Interior::Flood);
        assert!(v.warnings.is_empty(), "{:?}", v.warnings);
        // Without the surface it is a hollow box: negative control.
        assert!(v.surface.count() < count || size.min_element() / h < 2.0);
        let w = voxels_as(&cuboid(size * -0.5, size * 0.5, n).mesh(), 16, Interior::Winding);
        assert_eq!(differing(&v.solid, &w.solid), 0);
    }
}

#[test]
fn the_volume_of_a_sphere_and_a_capsule_converges() {
    let ball = 4.0 / 3.0 * std::f64::consts::PI;
    let shapes = [
        (sphere(1.0, 64), ball, 4.0 * std::f64::consts::PI),
        (capsule(1.0, 3.0, 48), ball + 3.0 * std::f64::consts::PI, 10.0 * std::f64::consts::PI),
    ];
    for (shape, volume, area) in shapes {
        for resolution in [32, 64, 128] {
            let v = voxels(&shape, resolution);
            let h = v.grid.voxel();
            let excess = v.solid.count() as f64 * h.powi(3) - volume;
            // Half the mean width of a voxel (3/4 of a cube's edge along a random direction: 1.5 h), over the whole area.
            // The curved part adds second order; the flat facets take less than the 2 % allowed.
            let expected = 0.75 * h * area;
            assert!(excess > 0.8 * expected && excess < 1.25 * expected, "{resolution}: {excess} for {expected}");
            assert!(v.warnings.is_empty(), "{:?}", v.warnings);
        }
    }
}

#[test]
fn the_inside_of_a_sphere_is_its_centres() {
    let shape = sphere(1.0, 40);
    for interior in [Interior::Flood, Interior::Winding] {
        let v = voxels_as(&shape.mesh(), 48, interior);
        for voxel in all_voxels(v.grid.dims()).filter(|&p| !v.surface.get(p)) {
            let inside = v.grid.to_world(voxel.as_dvec3() + 0.5).length() < 1.0;
            assert_eq!(v.solid.get(voxel), inside, "{voxel} by {interior:?}");
        }
    }
}

#[test]
fn one_empty_layer_keeps_boxes_apart_and_none_does_not() {
    // 32 voxels long: sides in the middle of voxels, so that the gap of two voxels has one empty layer in its middle.
    let two = |gap: f64| {
        let left = cuboid(DVec3::new(-16.0, -3.0, -3.0), DVec3::new(-gap / 2.0, 3.0, 3.0), 4);
        let right = cuboid(DVec3::new(gap / 2.0, -3.0, -3.0), DVec3::new(16.0, 3.0, 3.0), 4);
        voxels(&left.and(&right), 32)
    };
    for (gap, empty) in [(2.0, true), (1.01, true), (1.0, false), (0.4, false)] {
        let v = two(gap);
        let middle = v.grid.dims() / 2;
        assert_eq!(!v.solid.get(middle), empty, "gap {gap}");
        assert_eq!(has(&v, Code::PartsTouch), !empty, "gap {gap}: {:?}", v.warnings);
    }
}

#[test]
fn an_open_sphere_has_nearly_the_inside_of_the_closed_one() {
    let closed = voxels(&sphere(1.0, 32), 64);
    for top in [0.95, 0.85] {
        let shape = sphere(1.0, 32).keep(|c| c.y < top);
        let open = voxels(&shape, 64);
        assert_eq!(open.interior, Interior::Winding);
        assert!(has(&open, Code::SurfaceOpen));
        let (grid, inner) = (open.grid, open.solid.count() as f64);
        // The winding number is 1/2 on a dome over the hole: at most the cap and as much below the rim is in doubt.
        let cap = std::f64::consts::PI * (1.0 - top).powi(2) * (2.0 + top) / 3.0;
        let missing = closed.solid.count() as f64 - inner;
        assert!(missing * grid.voxel().powi(3) < 2.0 * cap + 0.02, "{missing} voxels missing at {top}");
        assert!(open.solid.get(grid.voxel_of(DVec3::ZERO)));
        // The flood leaks in: negative control.
        let flood = voxels_as(&shape.mesh(), 64, Interior::Flood);
        assert!(!flood.solid.get(grid.voxel_of(DVec3::ZERO)));
        assert!(has(&flood, Code::SurfaceOpen));
    }
}

#[test]
fn flipped_faces_change_nothing() {
    let shape = capsule(1.0, 2.0, 12);
    for resolution in [32, 50] {
        for interior in [Interior::Auto, Interior::Winding] {
            let plain = voxels_as(&shape.mesh(), resolution, interior).solid;
            let all = voxels_as(&shape.clone().flip(|_| true).mesh(), resolution, interior).solid;
            let one = voxels_as(&shape.clone().flip(|n| n == 100).mesh(), resolution, interior).solid;
            let third = voxels_as(&shape.clone().flip(|n| n % 3 == 0).mesh(), resolution, interior).solid;
            for other in [all, one, third] {
                assert_eq!(differing(&plain, &other), 0, "{interior:?}");
            }
        }
        // Also with a hole.
        let open = shape.clone().keep(|c| c.y < 2.8);
        let plain = voxels_as(&open.mesh(), resolution, Interior::Auto).solid;
        let turned = voxels_as(&open.flip(|n| n != 7).mesh(), resolution, Interior::Auto).solid;
        assert_eq!(differing(&plain, &turned), 0);
    }
}

#[test]
fn a_separate_triangle_soup_of_a_sphere_is_solid() {
    // No two triangles share a vertex, even after welding; some of them are missing.
    let whole = sphere(1.0, 24);
    let mut soup = Shape::default();
    let mut random = Random(3);
    for f in whole.faces.iter().filter(|_| random.below(50) > 0) {
        let base = soup.points.len() as u32;
        let mut noise = Random(base.into());
        soup.points.extend(f.map(|v| whole.points[v as usize] + noise.in_cube() * 1e-4));
        soup.faces.push([base, base + 1, base + 2]);
    }
    for shape in [soup.clone(), soup.flip(|_| true)] {
        let v = voxels(&shape, 48);
        for voxel in all_voxels(v.grid.dims()).filter(|&p| !v.surface.get(p)) {
            let r = v.grid.to_world(voxel.as_dvec3() + 0.5).length();
            // A missing face is 0.13 wide: the winding number is right further away than about its half.
            if (r - 1.0).abs() > 0.1 {
                assert_eq!(v.solid.get(voxel), r < 1.0, "{voxel}");
            }
        }
    }
}

#[test]
fn sheets_beside_a_closed_body_enclose_nothing() {
    let body = capsule(0.3, 2.0, 12);
    // An open tube around the body, three times as wide: the winding number is 0.7 in its middle.
    let skirt = capsule(0.9, 2.0, 12).keep(|c| c.y > 0.1 && c.y < 1.9);
    let both = voxels(&body.clone().and(&skirt), 64);
    assert_eq!(both.interior, Interior::Winding);
    let at = |p: DVec3| both.solid.get(both.grid.voxel_of(p));
    assert!(at(DVec3::new(0.0, 0.5, 0.0)) && at(DVec3::new(0.0, 2.2, 0.0)) && at(DVec3::new(0.9, 1.0, 0.0)));
    assert!(!at(DVec3::new(0.6, 1.0, 0.0)), "the space between body and tube");
    // Without the body the tube stands for what is in it.
    let alone = voxels(&skirt, 64);
    assert!(alone.solid.get(alone.grid.voxel_of(DVec3::new(0.6, 1.0, 0.0))));
}

#[test]
fn a_fin_and_a_closed_part_within_change_nothing_inside() {
    let body = capsule(1.0, 2.0, 16);
    let mut fin = body.clone();
    let middle = fin.points.len() as u32;
    fin.points.push(DVec3::new(0.0, 1.0, 0.0));
    let first = fin.faces[200];
    fin.faces.push([first[0], first[1], middle]);
    let plain = voxels(&body, 64);
    let with_fin = voxels(&fin, 64);
    assert_eq!(with_fin.interior, Interior::Winding);
    assert_eq!(differing(&plain.solid, &with_fin.solid), 0);
    let eye = sphere(0.3, 8).map(|p| p + DVec3::Y);
    for interior in [Interior::Auto, Interior::Winding] {
        let with_eye = voxels_as(&body.clone().and(&eye).mesh(), 64, interior);
        assert_eq!(differing(&plain.solid, &with_eye.solid), 0, "{interior:?}");
    }
}

#[test]
fn degenerate_triangles_are_counted_and_keep_the_surface_closed() {
    let mut shape = sphere(1.0, 16);
    let f = shape.faces[50];
    let middle = (shape.points[f[0] as usize] + shape.points[f[1] as usize]) * 0.5;
    shape.points.push(middle);
    let m = shape.points.len() as u32 - 1;
    shape.faces.extend([[f[0], f[0], f[1]], [f[0], m, f[1]], [f[2], f[2], f[2]]]);
    let v = voxels(&shape, 32);
    assert_eq!(v.interior, Interior::Flood);
    let warning = v.warnings.iter().find(|w| w.code == Code::DegenerateFaces).expect("a warning");
    assert!(warning.message.starts_with("3 of "), "{}", warning.message);
    assert_eq!(differing(&v.solid, &voxels(&sphere(1.0, 16), 32).solid), 0);
}

#[test]
fn scaled_and_turned_meshes_have_the_same_voxels() {
    let shape = u_bend(0.4, 0.5, 1.7, 10).map(|p| p + DVec3::new(0.1, -0.2, 0.3));
    let plain = voxels(&shape, 61);
    for scale in [1e-3, 1e3, 0.1, 3.7, 1e-12, 1e12] {
        let scaled = voxels(&shape.clone().map(|p| p * scale), 61);
        assert_eq!(differing(&plain.surface, &scaled.surface), 0, "{scale}");
        assert_eq!(differing(&plain.solid, &scaled.solid), 0, "{scale}");
    }
    // A quarter turn about z: (x, y, z) -> (-y, x, z).
    let turned = voxels(&shape.clone().map(|p| DVec3::new(-p.y, p.x, p.z)), 61);
    let d = plain.grid.dims();
    for v in all_voxels(d) {
        assert_eq!(plain.solid.get(v), turned.solid.get(UVec3::new(d.y - 1 - v.y, v.x, v.z)), "{v}");
    }
}

#[test]
fn the_order_of_triangles_and_the_number_of_threads_change_nothing() {
    let shape = u_bend(0.4, 0.3, 1.5, 16).keep(|c| c.y > -1.4);
    let plain = voxels(&shape, 100);
    let mut reversed = shape.clone();
    reversed.faces.reverse();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
    let other = pool.install(|| voxels(&reversed, 100));
    assert_eq!(differing(&plain.surface, &other.surface), 0);
    assert_eq!(differing(&plain.solid, &other.solid), 0);
}

#[test]
fn every_corner_lies_in_a_surface_voxel_and_the_outermost_layer_is_empty() {
    let mut random = Random(5);
    for resolution in [16, 37, 64] {
        let shape = soup(&mut random, 300);
        let v = voxels(&shape, resolution);
        for &p in shape.faces.iter().flatten() {
            let voxel = v.grid.voxel_of(shape.points[p as usize]);
            assert!(v.surface.get(voxel), "{voxel}");
        }
        let last = v.grid.dims() - UVec3::ONE;
        for voxel in all_voxels(v.grid.dims()).filter(|&p| p.min_element() == 0 || p.cmpeq(last).any()) {
            assert!(!v.solid.get(voxel), "{voxel}");
        }
    }
}

#[test]
fn plain_shapes_have_no_parts_that_touch_and_narrow_ones_do() {
    let wide = [sphere(1.0, 20), capsule(0.5, 2.0, 12), u_bend(0.4, 0.6, 2.0, 12), cuboid(-DVec3::ONE, DVec3::ONE, 5)];
    for (n, shape) in wide.into_iter().enumerate() {
        for resolution in [16, 32, 64, 128] {
            for turned in [shape.clone(), shape.clone().flip(|_| true), shape.clone().flip(|n| n == 30)] {
                let v = voxels(&turned, resolution);
                assert!(!has(&v, Code::PartsTouch), "shape {n} at {resolution}: {:?}", v.warnings);
            }
        }
    }
    // Legs 1/50 of the length apart, about twenty times as long.
    let narrow = u_bend(0.4, 0.05, 2.0, 12);
    for (resolution, touch) in [(32, true), (48, true), (128, false)] {
        for shape in [narrow.clone(), narrow.clone().flip(|_| true)] {
            let v = voxels(&shape, resolution);
            assert_eq!(has(&v, Code::PartsTouch), touch, "at {resolution}: {:?}", v.warnings);
        }
    }
}

#[test]
fn the_wrong_grid_or_weld_is_an_error() {
    let mesh = sphere(1.0, 8).mesh();
    let small = sphere(0.5, 4).mesh();
    let grid = Grid::around(&small.bounds(), 32).unwrap();
    let result = voxelize(&mesh, &mesh.weld(), &grid, Interior::Auto, Progress::NONE);
    assert!(matches!(result, Err(Error::Parameter { name: "grid", .. })));
    let result = voxelize(&small, &mesh.weld(), &grid, Interior::Auto, Progress::NONE);
    assert!(matches!(result, Err(Error::Length { what: "weld", .. })));
}

#[test]
fn it_stops_where_the_callback_says_so() {
    let mesh = sphere(1.0, 16).keep(|c| c.y < 0.9).mesh();
    let grid = Grid::around(&mesh.bounds(), 32).unwrap();
    let count = std::sync::atomic::AtomicUsize::new(0);
    let run = |after: usize| {
        count.store(0, std::sync::atomic::Ordering::Relaxed);
        let callback = |_, fraction: f64| {
            assert!((0.0..=1.0).contains(&fraction));
            let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if n < after { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        voxelize(&mesh, &mesh.weld(), &grid, Interior::Auto, Progress::new(&callback))
    };
    for after in [0, 1, 3, 6] {
        assert!(matches!(run(after), Err(Error::Cancelled)), "after {after}");
    }
    assert!(run(usize::MAX).is_ok());
}
