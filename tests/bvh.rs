//! BVH files: channel orders, several roots, interpolation, names, axes, and files with faults.

use std::f64::consts::FRAC_PI_2;

use glam::{DQuat, DVec3};
use skinbind::Error;
use skinbind::io::bvh::{Bvh, plain_name};
use skinbind::model::{Bone, Pose, Skeleton};

const TWO_ROOTS: &str = "\u{feff}HIERARCHY\r\nROOT Hip Bone_2\r\n{\r\n OFFSET 0 1 0\r\n CHANNELS 6 Zposition Xposition Yposition \
     Zrotation Xrotation Yrotation\r\n JOINT Lower-Leg\r\n {\r\n OFFSET 0 -1e0 0\r\n CHANNELS 1 Xrotation\r\n End Site\r\n \
     {\r\n OFFSET 0 -2 0\r\n }\r\n }\r\n}\r\nROOT prop\r\n{\r\n\tOFFSET 5 0 0\r\n\tCHANNELS 3 Xrotation Yrotation \
     Zrotation\r\n}\r\nMOTION\r\nFrames: 2\r\nFrame Time: 0.5\r\n3 1 2 90 90 0 10 0 0 0\r\n7 1 2 90 90 0 50 0 0 90\r\n";

#[test]
fn channels_count_in_their_own_order_and_frames_are_interpolated() {
    let bvh = Bvh::parse(TWO_ROOTS).unwrap();
    assert_eq!(bvh.joints.iter().map(|j| j.parent).collect::<Vec<_>>(), [None, Some(0), None]);
    assert_eq!(bvh.joints[0].name, "Hip Bone_2");
    assert_eq!(bvh.joints[1].end, Some(DVec3::new(0., -2., 0.)));
    assert_eq!((bvh.frames(), bvh.end()), (2, 0.5));
    let half = bvh.sample(0.25);
    assert_eq!(half[0].position, Some(DVec3::new(1., 2., 5.)));
    assert_eq!(bvh.root_motion(0.5), DVec3::new(0., 0., 4.));
    let expected = DQuat::from_rotation_z(FRAC_PI_2) * DQuat::from_rotation_x(FRAC_PI_2);
    let other_order = DQuat::from_rotation_x(FRAC_PI_2) * DQuat::from_rotation_z(FRAC_PI_2);
    assert!(half[0].rotation.dot(expected).abs() > 1.0 - 1e-15);
    assert!(half[0].rotation.dot(other_order).abs() < 0.9);
    assert!(half[1].rotation.dot(DQuat::from_rotation_x(30f64.to_radians())).abs() > 1.0 - 1e-15);
    assert!(half[2].rotation.dot(DQuat::from_rotation_z(45f64.to_radians())).abs() > 1.0 - 1e-15);
    for outside in [-3.0, f64::NAN] {
        assert_eq!(bvh.sample(outside), bvh.sample(0.0));
    }
    assert_eq!(bvh.sample(1e300), bvh.sample(0.5));
}

#[test]
fn names_are_matched_by_the_rule() {
    for (name, plain) in [
        ("UpperArm.L", "upperarm.l"),
        ("Lower-Leg R_01", "lower_leg_r"),
        ("toe3-1.R", "toe3_1.r"),
        ("bone12", "bone12"),
        ("spine_2_3", "spine_2"),
        ("_7", "_7"),
        ("a_", "a_"),
    ] {
        assert_eq!(plain_name(name), plain);
    }
}

fn bone(name: &str, head: [f64; 3], parent: Option<usize>) -> Bone {
    let head = DVec3::from_array(head);
    Bone { name: name.into(), head, tail: head + DVec3::Y, parent, deform: true }
}

#[test]
fn a_skeleton_is_posed_about_world_axes_whatever_its_rest_rotations() {
    let skeleton =
        Skeleton::new(vec![bone("lower_leg", [0., 0., 0.], Some(1)), bone("hip bone", [0., 1., 0.], None)]).unwrap();
    let bvh = Bvh::parse(TWO_ROOTS).unwrap();
    assert_eq!(bvh.bones_of_joints(&skeleton), [Some(1), Some(0), None]);
    let plain = Pose::rest(&skeleton);
    let mut rolled = plain.clone();
    let roll = DQuat::from_rotation_y(0.8);
    rolled.locals[1].rotation = roll;
    rolled.locals[0].rotation = DQuat::from_rotation_x(-0.3);
    rolled.locals[0].translation = roll.conjugate() * plain.locals[0].translation;
    let palette = |rest: &Pose| {
        let inverse_bind = rest.inverse_bind(&skeleton).unwrap();
        bvh.pose(0.1, &skeleton, rest).unwrap().palette(&skeleton, &inverse_bind).unwrap()
    };
    for (a, b) in palette(&plain).matrices.iter().zip(&palette(&rolled).matrices) {
        assert!(a.abs_diff_eq(*b, 1e-14), "{a:?} {b:?}");
        assert!(!a.abs_diff_eq(glam::DAffine3::IDENTITY, 0.1));
    }
}

#[test]
fn the_axes_are_found_from_the_bones() {
    // The skeleton is y up, the file z up: file (x, y, z) is world (x, z, -y).
    let skeleton = Skeleton::new(vec![
        bone("root", [0., 1., 0.], None),
        bone("head", [0.1, 3., 0.2], Some(0)),
        bone("nose", [0.1, 3., 1.], Some(1)),
    ])
    .unwrap();
    let text = "HIERARCHY ROOT root { OFFSET 0 0 1 CHANNELS 3 Xrotation Yrotation Zrotation JOINT head { OFFSET .1 -.2 2 \
         CHANNELS 0 JOINT nose { OFFSET 0 -.8 0 CHANNELS 0 } } } MOTION Frames: 1 Frame Time: 0.04 0 0 90";
    let bvh = Bvh::parse(text).unwrap();
    let axes = bvh.axes_for(&skeleton);
    assert!((axes * DVec3::Z).distance(DVec3::Y) < 1e-15 && (axes * DVec3::Y).distance(DVec3::NEG_Z) < 1e-15);
    let turned = bvh.with_axes(axes);
    assert_eq!(turned.axes_for(&skeleton), DQuat::IDENTITY);
    // A turn about the file's z is one about the world's y.
    assert!(turned.sample(0.0)[0].rotation.dot(DQuat::from_rotation_y(FRAC_PI_2)) > 1.0 - 1e-15);
}

#[test]
fn bad_files_name_the_line() {
    let good =
        "HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n}\nMOTION\nFrames: 2\nFrame Time: 0.1\n1\n2\n";
    assert!(Bvh::parse(good).is_ok());
    for (from, to, line, word) in [
        ("HIERARCHY", "HIERARCH", 1, "HIERARCH"),
        ("ROOT a", "JOINT a", 2, "JOINT"),
        ("ROOT a", "ROOT ", 3, "no name"),
        ("OFFSET 0 0 0", "OFFSET 0 nan 0", 4, "nan"),
        ("OFFSET 0 0 0", "OFFSET 0 0", 5, "CHANNELS"),
        ("CHANNELS 1", "CHANNELS 99999999999", 5, "99999999999"),
        ("CHANNELS 1", "CHANNELS -1", 5, "-1"),
        ("Xrotation", "Wrotation", 5, "Wrotation"),
        ("CHANNELS 1", "CHANNELS 2 Xrotation", 5, "twice"),
        ("}\nMOTION", "MOTION", 6, "MOTION"),
        ("Frames: 2", "Frames: 0", 8, "no frames"),
        ("Frames: 2", "Frames: 18446744073709551615", 11, "frame 3"),
        ("Frames: 2", "Frames: 1", 11, "after the last"),
        ("Time: 0.1", "Time: 0", 9, "more than 0"),
        ("1\n2\n", "1\nx\n", 11, "in frame 2 of 2"),
        ("MOTION\nFrames: 2\nFrame Time: 0.1\n1\n2\n", "", 6, "ends"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good);
        match Bvh::parse(&text) {
            Err(Error::Line { line: at, what }) => {
                assert!(at == line && what.contains(word), "{from} -> {to}: line {at}: {what}");
            }
            other => panic!("{from} -> {to}: {other:?}"),
        }
    }
    let deep = format!("HIERARCHY {}", "ROOT a { ".replace("ROOT", "JOINT").repeat(5000).replacen("JOINT", "ROOT", 1));
    assert!(matches!(Bvh::parse(&deep), Err(Error::Line { what, .. }) if what.contains("deep")));
    let mut state = 1u64;
    for at in 0..TWO_ROOTS.len() {
        let mut bytes = TWO_ROOTS.as_bytes().to_vec();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes[at] = b" 019-.{}eX"[(state >> 33) as usize % 10];
        // Either way is right; what must not happen is a panic, here or when sampled.
        if let Ok(bvh) = Bvh::parse(&String::from_utf8_lossy(&bytes)) {
            assert_eq!(bvh.sample(0.3).len(), bvh.joints.len());
        }
    }
    for cut in 0..TWO_ROOTS.trim_end().len() - 2 {
        if TWO_ROOTS.is_char_boundary(cut) {
            assert!(Bvh::parse(&TWO_ROOTS[..cut]).is_err(), "cut at {cut}");
        }
    }
}
