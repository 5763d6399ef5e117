//! Transfer between meshes, and the filling of what has no match, against closed forms.

mod common;

use common::shapes::{self, Shape};
use glam::DVec3;
use skinbind::Error;
use skinbind::edit::inpaint;
use skinbind::edit::transfer::{Params, Transferred, transfer};
use skinbind::influence::Limits;
use skinbind::model::{Bone, Code, Influence, Mesh, Skeleton, Weights};
use skinbind::progress::Progress;

fn skeleton() -> Skeleton {
    let bone = |name: &str, x: f64| Bone {
        name: name.into(),
        head: DVec3::new(x, 0.0, 0.0),
        tail: DVec3::new(x, 1.0, 0.0),
        parent: None,
        deform: true,
    };
    Skeleton::new(vec![bone("left", -1.0), bone("right", 1.0), bone("top", 0.0)]).unwrap()
}

/// Weights of bones 0 and 1 that go over from one to the other along an axis.
fn blend(mesh: &Mesh, share: impl Fn(DVec3) -> f64) -> Weights {
    let mut weights = Weights::default();
    for &p in mesh.positions() {
        let w = share(p).clamp(0.0, 1.0);
        weights.push([Influence { joint: 0, weight: 1.0 - w }, Influence { joint: 1, weight: w }]);
    }
    weights
}

/// All influences are kept, nothing is smoothed.
fn exact() -> Params {
    Params { smoothing: 0, limits: Limits { max_influences: 16, threshold: 0.0 }, ..Params::default() }
}

fn run(source: &Mesh, weights: &Weights, target: &Mesh, params: &Params) -> Transferred {
    let done = transfer(source, weights, &skeleton(), target, params, Progress::NONE).unwrap();
    assert_eq!(done.weights.len(), target.positions().len());
    for row in done.weights.iter() {
        assert!(!row.is_empty() && (row.iter().map(|i| i.weight).sum::<f64>() - 1.0).abs() < 1e-12);
    }
    let all = done.matched_vertices + done.filled_vertices + done.far_vertices;
    assert_eq!(all, target.positions().len());
    done
}

fn worst(a: &Weights, share: impl Fn(usize) -> f64) -> f64 {
    (0..a.len()).map(|v| (a.weight(v, 1) - share(v)).abs()).fold(0.0, f64::max)
}

#[test]
fn the_same_mesh_takes_its_own_weights() {
    let mesh = shapes::capsule(0.3, 2.0, 8).mesh();
    let weights = blend(&mesh, |p| 0.5 * p.y);
    let done = run(&mesh, &weights, &mesh, &exact());
    assert_eq!(done.matched_vertices, mesh.positions().len());
    assert!(done.warnings.is_empty());
    // The closest point of a vertex is that vertex, its barycentric coordinates off by rounding.
    assert!(worst(&done.weights, |v| weights.weight(v, 1)) < 1e-12);
    let other = blend(&mesh, |p| 0.5 * p.y + 0.1);
    assert!(worst(&done.weights, |v| other.weight(v, 1)) > 0.05, "control");
}

#[test]
fn a_sleeve_takes_the_weights_below_it() {
    let body = shapes::capsule(0.3, 2.0, 24).mesh();
    let sleeve = shapes::capsule(0.33, 2.0, 17).keep(|c| c.y > 0.2 && c.y < 1.7).mesh();
    let done = run(&body, &blend(&body, |p| 0.5 * p.y), &sleeve, &exact());
    assert_eq!(done.far_vertices, 0);
    // Weights do not depend on the way round; along y the closest point is level with the vertex.
    assert!(worst(&done.weights, |v| 0.5 * sleeve.positions()[v].y.clamp(0.0, 2.0)) < 1e-3);
}

/// A flat strip of squares in the xy plane, n long.
fn strip(n: u32, wide: u32) -> Shape {
    let mut shape = Shape::default();
    for i in 0..=n {
        for j in 0..=wide {
            shape.points.push(DVec3::new(f64::from(i), f64::from(j), 0.0));
        }
    }
    let at = |i: u32, j: u32| i * (wide + 1) + j;
    for i in 0..n {
        for j in 0..wide {
            let [a, b, c, d] = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)];
            // Diagonals this way and that.
            if (i + j) % 3 == 0 {
                shape.faces.extend([[a, b, c], [a, c, d]]);
            } else {
                shape.faces.extend([[a, b, d], [b, c, d]]);
            }
        }
    }
    shape
}

#[test]
fn what_is_filled_between_two_ends_is_linear() {
    let n = 30;
    let mesh = strip(n, 4).mesh();
    let weld = mesh.weld();
    let share = |x: f64| x / f64::from(n);
    let full = blend(&mesh, |p| share(p.x));
    let holes = |keep: fn(f64, f64) -> bool| {
        let mut rows = Weights::default();
        for (v, p) in mesh.positions().iter().enumerate() {
            rows.push(if keep(p.x, 30.0) { full.of(v) } else { &[] }.iter().copied());
        }
        rows
    };
    // Two columns at each end give value and slope. A linear function has no Laplacian, so it is the minimum of both terms
    // under these conditions, up to the least edge weight of the diagonals (1e-6).
    let filled = inpaint(&mesh, &weld, &holes(|x, n| x < 1.5 || x > n - 1.5), Progress::NONE).unwrap();
    let off = worst(&filled, |v| share(mesh.positions()[v].x));
    assert!(off < 1e-4, "{off}");
    // One end alone gives its value and, by the second term, its slope: 1 at most, 0 at least.
    let filled = inpaint(&mesh, &weld, &holes(|x, _| x < 1.5), Progress::NONE).unwrap();
    assert!(worst(&filled, |v| share(mesh.positions()[v].x)) > 1e-3, "control");
    // The unit of length does not matter.
    let small = Mesh::new(mesh.positions().iter().map(|p| *p * 1e-3).collect(), mesh.triangles().to_vec()).unwrap();
    let again = inpaint(&small, &weld, &holes(|x, _| x < 1.5), Progress::NONE).unwrap();
    assert!(worst(&again, |v| filled.weight(v, 1)) < 1e-6);
    // Nothing to fill from.
    let none = holes(|_, _| false);
    assert!(matches!(inpaint(&mesh, &weld, &none, Progress::NONE), Err(Error::Check(_))));
}

#[test]
fn a_skirt_does_not_mix_the_legs() {
    let leg = |x: f64| shapes::capsule(0.2, 2.0, 12).map(move |p| p + DVec3::new(x, 0.0, 0.0));
    let body = leg(-0.3).and(&leg(0.3)).mesh();
    let weights = blend(&body, |p| if p.x > 0.0 { 1.0 } else { 0.0 });
    let skirt = shapes::capsule(1.0, 2.0, 10)
        .map(|p| DVec3::new(p.x * 0.55, p.y, p.z * 0.32))
        .keep(|c| c.y > 0.2 && c.y < 1.9)
        .mesh();
    let done = run(&body, &weights, &skirt, &Params { max_distance: 0.03, ..exact() });
    assert!(done.matched_vertices > 0 && done.filled_vertices > 0);
    // Vertices that no face is left of are parts of their own.
    let used: Vec<u32> = skirt.triangles().iter().flatten().copied().collect();
    for (v, p) in skirt.positions().iter().enumerate().filter(|(v, _)| used.contains(&(*v as u32))) {
        let (left, right) = (done.weights.weight(v, 0), done.weights.weight(v, 1));
        if p.x.abs() > 1e-9 {
            assert!((left - right) * p.x < 0.0, "{p}: {left} {right}");
        } else {
            assert!((left - right).abs() < 1e-4, "{p}: {left} {right}");
        }
    }
}

#[test]
fn far_parts_follow_as_a_whole_and_turned_ones_by_distance() {
    let body = shapes::capsule(0.3, 2.0, 12).mesh();
    let weights = blend(&body, |p| 0.5 * p.y);
    let holster = shapes::cuboid(DVec3::new(2.0, 1.4, -0.1), DVec3::new(2.2, 1.6, 0.1), 2);
    let sleeve = shapes::capsule(0.32, 2.0, 10).keep(|c| c.y > 0.2 && c.y < 1.7);
    let count = sleeve.points.len();
    let both = sleeve.clone().and(&holster).mesh();
    let done = run(&body, &weights, &both, &exact());
    let said: Vec<(Code, Option<usize>)> = done.warnings.iter().map(|w| (w.code, w.vertices)).collect();
    let unused = sleeve.mesh().components(&sleeve.mesh().weld()).len() - 1;
    assert!(said.contains(&(Code::Far, Some(holster.points.len()))), "{said:?}");
    assert!(done.warnings.iter().any(|w| w.message.contains(" far ")));
    assert!(done.far_vertices >= holster.points.len() && done.far_vertices <= holster.points.len() + unused);
    let first = done.weights.of(count).to_vec();
    for v in count..both.positions().len() {
        assert_eq!(done.weights.of(v), first);
    }
    // The nearest face of the box spans y from 1.4 to 1.6.
    assert!((0.69..0.81).contains(&done.weights.weight(count, 1)));

    // A fin faces along the body, nowhere away from it or towards it.
    let fin = strip(2, 4).map(|p| DVec3::new(0.32 + 0.02 * p.x, 0.6 + 0.1 * p.y, 0.0)).mesh();
    let turned = run(&body, &weights, &fin, &exact());
    assert!(turned.warnings.iter().any(|w| w.code == Code::Fallback), "{:?}", turned.warnings);
    let allowed = run(&body, &weights, &fin, &Params { max_angle: 100.0, ..exact() });
    assert!(!allowed.warnings.iter().any(|w| w.code == Code::Fallback));
    assert!(worst(&allowed.weights, |v| turned.weights.weight(v, 1)) < 1e-12);
}

#[test]
fn a_lining_takes_what_it_lies_on() {
    let body = shapes::capsule(0.3, 2.0, 8).mesh();
    let weights = blend(&body, |p| 0.5 * p.y);
    let sleeve = shapes::capsule(0.32, 2.0, 10).keep(|c| c.y > 0.2 && c.y < 1.7);
    let lining = run(&body, &weights, &sleeve.clone().flip(|_| true).mesh(), &exact());
    assert!(lining.warnings.is_empty(), "{:?}", lining.warnings);
    let outside = run(&body, &weights, &sleeve.mesh(), &exact());
    assert!(worst(&lining.weights, |v| outside.weights.weight(v, 1)) < 1e-12);
}

#[test]
fn a_trouser_leg_follows_its_own_leg_where_the_other_is_nearer() {
    let leg = |x: f64| shapes::capsule(0.2, 2.0, 12).map(move |p| p + DVec3::new(x, 0.0, 0.0));
    let body = leg(-0.3).and(&leg(0.3)).mesh();
    let weights = blend(&body, |p| if p.x > 0.0 { 1.0 } else { 0.0 });
    // Its inner side, at x = 0.03, is 0.07 from the right leg and 0.13 from the left one.
    let around_left = shapes::capsule(0.33, 2.0, 10).map(|p| p - DVec3::new(0.3, 0.0, 0.0));
    let trousers = around_left.keep(|c| c.y > 0.2 && c.y < 1.7).mesh();
    let used: Vec<u32> = trousers.triangles().iter().flatten().copied().collect();
    let of_right = |params: Params| {
        let done = run(&body, &weights, &trousers, &params);
        used.iter().map(|&v| done.weights.weight(v as usize, 1)).fold(0.0, f64::max)
    };
    assert_eq!(of_right(exact()), 0.0);
    assert!(of_right(Params { flipped: true, ..exact() }) > 0.9, "control");
}

#[test]
fn cap_threshold_and_faults() {
    let body = shapes::capsule(0.3, 2.0, 8).mesh();
    let weights = blend(&body, |p| 0.5 * p.y);
    let one = Params { limits: Limits { max_influences: 1, threshold: 0.0 }, ..Params::default() };
    let done = run(&body, &weights, &body, &one);
    assert_eq!(done.weights.most_influences(), 1);
    assert!((done.stats.largest_pruned_share - 0.5).abs() < 0.1);
    let ask = |weights: &Weights, params: &Params| {
        transfer(&body, weights, &skeleton(), &body, params, Progress::NONE).unwrap_err()
    };
    let mut bare = Weights::default();
    body.positions().iter().for_each(|_| bare.push([]));
    assert!(matches!(ask(&bare, &Params::default()), Error::Check(_)));
    assert!(matches!(ask(&Weights::default(), &Params::default()), Error::Length { .. }));
    for params in [
        Params { max_distance: -1.0, ..Params::default() },
        Params { max_distance: f64::NAN, ..Params::default() },
        Params { max_angle: 181.0, ..Params::default() },
        Params { smoothing: 1_000_000, ..Params::default() },
    ] {
        assert!(matches!(ask(&weights, &params), Error::Parameter { .. }), "{params:?}");
    }
}
