//! Skinning against closed forms, the fast path against the reference, and poses of real characters.

use glam::{DAffine3, DMat3, DQuat, DVec3, DVec4};
use skinbind::Error;
use skinbind::model::{Influence, Palette, Weights};
use skinbind::skin::{Method, Posed, SkinInput, Surface, reference};
use std::f64::consts::PI;

/// A small generator of numbers in [0, 1), so that every run sees the same ones (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn vector(&mut self) -> DVec3 {
        DVec3::new(self.next(), self.next(), self.next()) * 2.0 - 1.0
    }

    fn rotation(&mut self, most: f64) -> DQuat {
        DQuat::from_axis_angle(self.vector().normalize(), self.next() * most)
    }
}

fn weights(rows: &[&[(u32, f64)]]) -> Weights {
    let mut w = Weights::default();
    for row in rows {
        w.push(row.iter().map(|&(joint, weight)| Influence { joint, weight }));
    }
    w
}

/// The same pose by the reference, the fast path and the fast path without its vector unit; asserts that they agree.
fn skin_all(weights: &Weights, palette: &Palette, method: Method, surface: Surface) -> Posed {
    let expected = reference::skin(weights, palette, method, surface).unwrap();
    let input = SkinInput::new(weights, palette.len()).unwrap();
    for input in [input.clone(), input.portable()] {
        let mut posed = Posed::default();
        input.skin(palette, method, surface, &mut posed).unwrap();
        let worst = difference(&posed, &expected, surface);
        assert!(worst <= TOLERANCE, "{method:?}: {worst:e} from the reference");
    }
    expected
}

/// Both paths sum a dozen products a coordinate in different orders; the quaternions' length and its inverse add some
/// more. Relative to the size of what is summed, not of what is left of it.
const TOLERANCE: f64 = 1e-14;

/// The largest difference, positions relative to the largest coordinate of the bind pose or the posed surface.
fn difference(a: &Posed, b: &Posed, rest: Surface) -> f64 {
    let size = rest.positions.iter().chain(&b.positions).fold(1e-300, |m: f64, p| m.max(p.abs().max_element()));
    let mut worst = 0.0;
    let mut take = |d: f64| worst = if d.is_nan() { f64::INFINITY } else { f64::max(worst, d) };
    assert_eq!(a.positions.len(), b.positions.len());
    a.positions.iter().zip(&b.positions).for_each(|(a, b)| take((*a - *b).abs().max_element() / size));
    assert_eq!(a.normals.as_ref().map(Vec::len), b.normals.as_ref().map(Vec::len));
    let normals = a.normals.iter().flatten().zip(b.normals.iter().flatten());
    normals.for_each(|(a, b)| take((*a - *b).abs().max_element()));
    assert_eq!(a.tangents.as_ref().map(Vec::len), b.tangents.as_ref().map(Vec::len));
    let tangents = a.tangents.iter().flatten().zip(b.tangents.iter().flatten());
    tangents.for_each(|(a, b)| take((*a - *b).abs().max_element()));
    worst
}

fn points(weights: &Weights, palette: &Palette, method: Method, positions: &[DVec3]) -> Vec<DVec3> {
    skin_all(weights, palette, method, Surface::points(positions)).positions
}

const METHODS: [Method; 2] = [Method::Linear, Method::DualQuaternion];

#[test]
fn one_bone_is_a_rigid_motion() {
    let rotation = DQuat::from_axis_angle(DVec3::new(1., 2., -3.).normalize(), 2.0);
    let motion = DAffine3::from_rotation_translation(rotation, DVec3::new(4., -2., 1.));
    let palette = Palette::new(vec![DAffine3::IDENTITY, motion]);
    let positions = [DVec3::new(1., 2., 3.), DVec3::new(-5., 0.1, 0.)];
    let normals = [DVec3::Z, DVec3::new(3., 4., 0.)];
    let tangents = [DVec4::new(1., 0., 0., -1.), DVec4::new(0., 0., 1., 1.)];
    let surface = Surface { positions: &positions, normals: Some(&normals), tangents: Some(&tangents) };
    let w = weights(&[&[(1, 0.3)], &[(1, 7.0)]]);
    for method in [Method::Linear, Method::DualQuaternion, Method::Mixed(&[0.25, 1.0])] {
        let posed = skin_all(&w, &palette, method, surface);
        for v in 0..2 {
            // 16 roundings of numbers below 8.
            assert!(posed.positions[v].distance(motion.transform_point3(positions[v])) < 16.0 * 8.0 * f64::EPSILON);
            let normal = posed.normals.as_ref().unwrap()[v];
            assert!(normal.distance(rotation * normals[v].normalize()) < 16.0 * f64::EPSILON);
            let tangent = posed.tangents.as_ref().unwrap()[v];
            assert!(tangent.truncate().distance(rotation * tangents[v].truncate()) < 16.0 * f64::EPSILON);
            assert_eq!(tangent.w, tangents[v].w);
        }
        let wrong = Palette::new(vec![motion, DAffine3::IDENTITY]);
        let posed = skin_all(&w, &wrong, method, surface);
        assert!(posed.positions[0].distance(motion.transform_point3(positions[0])) > 1.0);
    }
}

#[test]
fn half_a_half_turn_collapses_linearly_and_keeps_its_radius_as_dual_quaternions() {
    // Twist about x; the quaternions (0,0,0,1) and (1,0,0,0) have a dot product of exactly 0, (0,0,0,1) and the half
    // turn by its angle one of 6e-17: neither may lose a term.
    let exact = DAffine3::from_mat3(DMat3::from_diagonal(DVec3::new(1., -1., -1.)));
    let by_angle = DAffine3::from_rotation_x(PI);
    let ring: Vec<DVec3> =
        (0..8).map(|i| DQuat::from_rotation_x(f64::from(i) * 0.7) * DVec3::new(0.4, 1.5, 0.)).collect();
    for (twist, rows) in
        [(exact, [(0, 0.5), (1, 0.5)]), (by_angle, [(0, 0.5), (1, 0.5)]), (exact, [(1, 0.5), (0, 0.5)])]
    {
        let palette = Palette::new(vec![DAffine3::IDENTITY, twist]);
        let w = weights(&vec![&rows[..]; ring.len()]);
        for p in points(&w, &palette, Method::Linear, &ring) {
            assert!((p - DVec3::new(0.4, 0., 0.)).length() < 1.5 * 4.0 * f64::EPSILON, "{p}");
        }
        for (p, rest) in points(&w, &palette, Method::DualQuaternion, &ring).iter().zip(&ring) {
            assert!(
                (p.y.hypot(p.z) - 1.5).abs() < 16.0 * f64::EPSILON && (p.x - 0.4).abs() < 16.0 * f64::EPSILON,
                "{p}"
            );
            // A quarter turn, to one side or the other.
            let (a, b) = (DQuat::from_rotation_x(PI / 2.) * *rest, DQuat::from_rotation_x(-PI / 2.) * *rest);
            assert!(p.distance(a).min(p.distance(b)) < 32.0 * f64::EPSILON, "{p} {a}");
        }
        // Had the term been lost, the ring would not have moved.
        assert!(points(&w, &palette, Method::DualQuaternion, &ring)[0].distance(ring[0]) > 1.0);
        let halfway: Vec<DVec3> = points(&w, &palette, Method::Mixed(&[0.5; 8]), &ring);
        assert!((halfway[0].y.hypot(halfway[0].z) - 0.75).abs() < 16.0 * f64::EPSILON);
    }
}

#[test]
fn the_shortest_way_is_taken_whatever_the_quaternions_signs() {
    // 350 degrees are 10 the other way: half of them is -5, not 175.
    let palette = Palette::new(vec![DAffine3::IDENTITY, DAffine3::from_rotation_z(350f64.to_radians())]);
    let w = weights(&[&[(0, 0.5), (1, 0.5)], &[(1, 0.5), (0, 0.5)]]);
    let expected = DQuat::from_rotation_z((-5f64).to_radians()) * DVec3::X;
    for p in points(&w, &palette, Method::DualQuaternion, &[DVec3::X; 2]) {
        assert!(p.distance(expected) < 16.0 * f64::EPSILON, "{p}");
    }
    // The pivot is the strongest, wherever it stands: joints at 0, 120 and 240 degrees about one axis. From 0 the other
    // two lie on opposite sides and cancel out; from 120 they do too.
    let third = |k: f64| DAffine3::from_rotation_z(k * 120f64.to_radians());
    let palette = Palette::new(vec![third(0.), third(1.), third(2.)]);
    let w = weights(&[&[(1, 0.25), (2, 0.25), (0, 0.5)], &[(0, 0.25), (2, 0.25), (1, 0.5)]]);
    let posed = points(&w, &palette, Method::DualQuaternion, &[DVec3::X; 2]);
    assert!(posed[0].distance(DVec3::X) < 16.0 * f64::EPSILON, "{}", posed[0]);
    assert!(posed[1].distance(DQuat::from_rotation_z(2.0 * PI / 3.0) * DVec3::X) < 16.0 * f64::EPSILON, "{}", posed[1]);
}

#[test]
fn mirror_zero_scale_and_shear_behave_as_documented() {
    let positions = [DVec3::new(1., 2., 3.)];
    let normals = [DVec3::new(2., 0., 1.).normalize()];
    let tangents = [DVec4::new(0., 1., 0., 1.)];
    let surface = Surface { positions: &positions, normals: Some(&normals), tangents: Some(&tangents) };
    let turn = DMat3::from_quat(DQuat::from_rotation_y(0.8));
    let shear = DMat3::from_cols(DVec3::X, DVec3::new(0.6, 1., 0.), DVec3::Z);
    let mirror = DMat3::from_diagonal(DVec3::new(-1., 1., 1.));
    let stretch = DMat3::from_diagonal(DVec3::new(2., 3., 0.5));
    for m in [shear, mirror, stretch, turn * shear, turn * mirror, turn * stretch * shear] {
        let matrix = DAffine3 { matrix3: m, translation: DVec3::new(0.5, -1., 2.) };
        let center = DVec3::new(0.2, 0.3, 0.4);
        let palette = Palette { matrices: vec![matrix], centers: vec![center] };
        for method in METHODS {
            // One bone moves as its matrix says, whatever the matrix; normals by the inverse transpose, so that they
            // point outwards on a mirrored surface too; a tangent's handedness stays.
            let posed = skin_all(&weights(&[&[(0, 1.0)]]), &palette, method, surface);
            assert!(posed.positions[0].distance(matrix.transform_point3(positions[0])) < 1e-14 * 8.0);
            let normal = (m.inverse().transpose() * normals[0]).normalize();
            assert!(posed.normals.unwrap()[0].distance(normal) < 1e-14, "{m} {method:?}");
            let tangent = posed.tangents.unwrap()[0];
            assert!(tangent.truncate().distance((m * DVec3::Y).normalize()) < 1e-14);
            assert_eq!(tangent.w, 1.0);
        }
        // Control: the plain matrix is not the right one for normals.
        let plain = (m * normals[0]).normalize();
        let right = (m.inverse().transpose() * normals[0]).normalize();
        assert!(m == mirror || m == turn * mirror || plain.distance(right) > 0.01);
    }
    // Flattened: the point lies in the plane and the normal is the plane's; shrunk to a point: the normal stays.
    let flat = Palette::new(vec![DAffine3::from_scale(DVec3::new(1., 1., 0.))]);
    let point = Palette::new(vec![DAffine3::from_scale(DVec3::ZERO)]);
    for method in METHODS {
        let posed = skin_all(&weights(&[&[(0, 1.0)]]), &flat, method, surface);
        assert!(posed.positions[0].distance(DVec3::new(1., 2., 0.)) < 1e-15);
        assert!(posed.normals.unwrap()[0].distance(DVec3::Z) < 1e-15);
        let posed = skin_all(&weights(&[&[(0, 1.0)]]), &point, method, surface);
        assert_eq!(posed.positions[0], DVec3::ZERO);
        assert_eq!(posed.normals.unwrap()[0], normals[0]);
        assert_eq!(posed.tangents.unwrap()[0], tangents[0]);
    }
}

#[test]
fn scale_is_blended_about_the_joints_center_and_rotation_kept_apart() {
    // Joint 1 at (2, 0, 0) scales by 3 and turns by 90 degrees about z; half of it scales by 2 and turns by 45.
    let center = DVec3::new(2., 0., 0.);
    let scaled = DAffine3::from_translation(center)
        * DAffine3::from_scale_rotation_translation(DVec3::splat(3.), DQuat::from_rotation_z(PI / 2.), DVec3::ZERO)
        * DAffine3::from_translation(-center);
    let palette = Palette { matrices: vec![DAffine3::IDENTITY, scaled], centers: vec![DVec3::ZERO, center] };
    let w = weights(&[&[(0, 1.0), (1, 1.0)]]);
    let posed = points(&w, &palette, Method::DualQuaternion, &[DVec3::new(3., 0., 0.)]);
    let expected = center + DQuat::from_rotation_z(PI / 4.) * DVec3::new(2., 0., 0.);
    assert!(posed[0].distance(expected) < 1e-14, "{}", posed[0]);
    let off_center = Palette::new(palette.matrices);
    assert!(points(&w, &off_center, Method::DualQuaternion, &[DVec3::new(3., 0., 0.)])[0].distance(expected) > 0.1);
}

#[test]
fn rounded_weights_under_identity_matrices_move_nothing() {
    // Weights that add up to 1 only to seven digits, in numbers from 1 to 40 influences. The sum is right to one
    // rounding, the division is one, n products with 1 are exact and their sum takes n - 1, the last product one more:
    // n + 2 roundings, and one for the order of the fast path. 2^-53 each.
    let mut random = Random(3);
    for n in 1..=40usize {
        let mut w = Weights::default();
        let positions: Vec<DVec3> = (0..64).map(|_| random.vector() * 1e3).collect();
        for _ in &positions {
            let raw: Vec<f64> = (0..n).map(|_| random.next() + 1e-3).collect();
            let sum: f64 = raw.iter().sum();
            let rounded = |(joint, w): (usize, &f64)| Influence {
                joint: joint as u32,
                weight: (w / sum * 1e7).round() / 1e7 + 1e-9,
            };
            w.push(raw.iter().enumerate().map(rounded));
        }
        let palette = Palette::new(vec![DAffine3::IDENTITY; n]);
        let bound = (n + 3) as f64 * 2f64.powi(-53);
        for method in METHODS {
            let expected = reference::skin(&w, &palette, method, Surface::points(&positions)).unwrap();
            let input = SkinInput::new(&w, n).unwrap();
            for input in [input.clone(), input.portable()] {
                let mut posed = Posed::default();
                input.skin(&palette, method, Surface::points(&positions), &mut posed).unwrap();
                for (posed, p) in posed.positions.iter().chain(&expected.positions).zip(positions.iter().cycle()) {
                    let moved = (*posed - *p).abs() / p.length();
                    assert!(moved.max_element() <= bound, "{n} influences, {method:?}: {moved}");
                }
            }
        }
        // Control: without the division the same weights move vertices a billion times further.
        let sum: f64 = w.of(0).iter().map(|i| i.weight).sum();
        assert!(
            n == 1
                || (sum - 1.0).abs() > 1e3 * bound
                || (0..64).any(|v| { (w.of(v).iter().map(|i| i.weight).sum::<f64>() - 1.0).abs() > 1e3 * bound })
        );
    }
}

/// Vertices with 0 to `most` influences, palettes with rotation, translation and (if asked) scale, shear and mirrors.
fn random_case(
    seed: u64,
    vertices: usize,
    joints: usize,
    most: usize,
    rigid: bool,
) -> (Weights, Palette, Vec<DVec3>, Vec<DVec3>, Vec<DVec4>) {
    let mut random = Random(seed);
    let mut w = Weights::default();
    for v in 0..vertices {
        let n = (random.next() * (most + 1) as f64) as usize;
        let first = (random.next() * joints as f64) as usize;
        w.push((0..n).map(|i| Influence {
            joint: ((first + i * 3) % joints) as u32,
            weight: random.next() * f64::from(u32::from(v % 7 > 0)),
        }));
    }
    let matrix = |random: &mut Random| {
        let mut m = DAffine3::from_rotation_translation(random.rotation(2.0 * PI), random.vector());
        if !rigid {
            let shear = DMat3::from_cols(DVec3::X, DVec3::new(random.next(), 1., 0.), DVec3::Z);
            m.matrix3 *= shear * DMat3::from_diagonal(random.vector() + DVec3::new(1.5, 1.5, 0.5));
        }
        m
    };
    let matrices = (0..joints).map(|_| matrix(&mut random)).collect();
    let centers = (0..joints).map(|_| random.vector()).collect();
    let mut list = || -> Vec<DVec3> { (0..vertices).map(|_| random.vector()).collect() };
    let (positions, normals, tangents) = (list(), list(), list());
    let tangents = tangents.iter().enumerate().map(|(i, t)| t.extend(if i % 2 == 0 { 1. } else { -1. })).collect();
    (w, Palette { matrices, centers }, positions, normals, tangents)
}

#[test]
fn the_fast_path_gives_what_the_reference_gives() {
    for (seed, vertices, joints, most, rigid) in [
        (1, 5000, 60, 4, true),
        (2, 4099, 60, 4, false),
        (3, 2500, 30, 9, true),
        (4, 3001, 30, 17, false),
        (5, 1, 1, 1, true),
        (6, 33, 5, 2, false),
    ] {
        let (w, palette, positions, normals, tangents) = random_case(seed, vertices, joints, most, rigid);
        let mut random = Random(seed + 100);
        let shares: Vec<f64> = (0..vertices).map(|_| random.next()).collect();
        for method in [Method::Linear, Method::DualQuaternion, Method::Mixed(&shares)] {
            let bare = Surface::points(&positions);
            for surface in [
                bare,
                Surface { normals: Some(&normals), ..bare },
                Surface { normals: Some(&normals), tangents: Some(&tangents), ..bare },
            ] {
                let posed = skin_all(&w, &palette, method, surface);
                // A vertex without weights stays where it is, to the bit.
                for v in (0..vertices).filter(|&v| w.of(v).iter().all(|i| i.weight == 0.0)) {
                    assert_eq!(posed.positions[v], positions[v]);
                }
            }
            // Control: a single matrix off by 1e-12 shows.
            let mut other = palette.clone();
            other.matrices.iter_mut().for_each(|m| m.translation.x += 1e-12);
            let expected = reference::skin(&w, &palette, method, bare).unwrap();
            let off = reference::skin(&w, &other, method, bare).unwrap();
            assert!(
                w.iter().all(|i| i.iter().all(|i| i.weight == 0.0)) || difference(&off, &expected, bare) > TOLERANCE
            );
        }
    }
}

#[test]
fn a_posed_surface_can_be_used_again_for_another() {
    let (w, palette, positions, normals, _) = random_case(9, 300, 8, 4, true);
    let input = SkinInput::new(&w, 8).unwrap();
    let surface = Surface { normals: Some(&normals), ..Surface::points(&positions) };
    let mut posed = Posed::like(Surface::points(&positions[..10]));
    input.skin(&palette, Method::Linear, surface, &mut posed).unwrap();
    assert_eq!(posed.normals.as_ref().map(Vec::len), Some(300));
    input.skin(&palette, Method::Linear, Surface::points(&positions), &mut posed).unwrap();
    assert_eq!((posed.positions.len(), posed.normals), (300, None));
}

#[test]
fn faulty_input_is_named() {
    let palette = Palette::new(vec![DAffine3::IDENTITY; 2]);
    let one = [DVec3::ONE];
    let make = |row: &[(u32, f64)]| SkinInput::new(&weights(&[&[], row]), 2).map(|_| ()).unwrap_err().to_string();
    assert!(make(&[(0, 1.0), (2, 1.0)]).contains("vertex 1 (0-based), joint 2 (0-based): there are 2 joints"));
    assert!(make(&[(0, -0.5)]).contains("its weight is -0.5"));
    assert!(make(&[(1, f64::NAN)]).contains("NaN"));
    assert!(make(&[(1, 1.7e308), (0, 1.7e308)]).contains("infinity"));
    assert!(matches!(SkinInput::new(&weights(&[]), 70_000), Err(Error::Limit { .. })));
    let w = weights(&[&[(0, 1.0)]]);
    let input = SkinInput::new(&w, 2).unwrap();
    let mut posed = Posed::default();
    let mut run = |palette: &Palette, method, surface| {
        let fast = input.skin(palette, method, surface, &mut posed);
        let slow = reference::skin(&w, palette, method, surface);
        let (fast, slow) = (fast.unwrap_err(), slow.map(|_| ()).unwrap_err());
        assert_eq!(fast.to_string(), slow.to_string());
        fast
    };
    assert!(matches!(run(&palette, Method::Linear, Surface::points(&[])), Error::Length { what: "positions", .. }));
    let surface = Surface { normals: Some(&[]), ..Surface::points(&one) };
    assert!(matches!(run(&palette, Method::Linear, surface), Error::Length { what: "normals", .. }));
    let surface = Surface::points(&one);
    assert!(matches!(run(&palette, Method::Mixed(&[]), surface), Error::Length { .. }));
    assert!(run(&palette, Method::Mixed(&[1.5]), surface).to_string().contains("1.5 at vertex 0"));
    let broken = Palette::new(vec![DAffine3::IDENTITY, DAffine3::from_translation(DVec3::NAN)]);
    assert!(run(&broken, Method::Linear, surface).to_string().contains("joint 1"));
    let short = Palette::new(vec![DAffine3::IDENTITY]);
    assert!(matches!(input.skin(&short, Method::Linear, surface, &mut Posed::default()), Err(Error::Joints { .. })));
}
