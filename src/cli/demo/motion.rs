//! The demo's two animations, each a loop of rotations about the world's axes at rest.

use std::f64::consts::TAU;

use glam::{DQuat, EulerRot};
use skinbind::io::gltf::RotationTrack;
use skinbind::model::Skeleton;

/// Keys a second; between them viewers interpolate.
const RATE: f64 = 20.0;

/// An animation.
pub struct Motion {
    pub name: &'static str,
    pub tracks: Vec<RotationTrack>,
}

/// How a bone turns: degrees about x, y and z at a phase of 0 to 1 of the loop.
type Turn = fn(f64) -> [f64; 3];

/// All animations of the demo's skeleton.
pub fn all(skeleton: &Skeleton) -> Vec<Motion> {
    vec![
        Motion { name: "wave", tracks: tracks(skeleton, 3.0, &WAVE) },
        Motion { name: "walk", tracks: tracks(skeleton, 1.2, &WALK) },
    ]
}

/// The left arm waves, the right one hangs, the body sways.
const WAVE: [(&str, Turn); 15] = [
    ("spine", |t| [0.0, 0.0, 2.0 * wave(t)]),
    ("chest", |t| [0.0, 4.0 * wave(t), 2.0 * wave(t)]),
    ("head", |t| [4.0 * wave(2.0 * t), 8.0 * wave(t + 0.1), -5.0]),
    ("clavicle.L", |_| [0.0, 0.0, 12.0]),
    ("upper_arm.L", |t| [0.0, -15.0, 38.0 + 4.0 * wave(2.0 * t)]),
    ("forearm.L", |t| [0.0, -10.0, 42.0 + 24.0 * wave(3.0 * t)]),
    ("hand.L", |t| [0.0, 0.0, 14.0 * wave(3.0 * t - 0.12)]),
    ("clavicle.R", |_| [0.0, 0.0, 6.0]),
    ("upper_arm.R", |t| [0.0, 0.0, 62.0 + 2.0 * wave(t)]),
    ("forearm.R", |_| [0.0, 18.0, 8.0]),
    ("index_1.R", |_| [0.0, 0.0, 25.0]),
    ("middle_1.R", |_| [0.0, 0.0, 30.0]),
    ("little_1.R", |_| [0.0, 0.0, 35.0]),
    ("index_2.R", |_| [0.0, 0.0, 25.0]),
    ("middle_2.R", |_| [0.0, 0.0, 28.0]),
];

/// On the spot: legs and arms swing against each other.
const WALK: [(&str, Turn); 15] = [
    ("hips", |t| [0.0, 6.0 * wave(t), 2.0 * wave(t + 0.25)]),
    ("spine", |t| [3.0, -5.0 * wave(t), -2.0 * wave(t + 0.25)]),
    ("chest", |t| [0.0, -6.0 * wave(t), 0.0]),
    ("head", |t| [0.0, 5.0 * wave(t), 0.0]),
    ("thigh.L", |t| [-4.0 - 26.0 * wave(t), 0.0, 0.0]),
    ("thigh.R", |t| [-4.0 + 26.0 * wave(t), 0.0, 0.0]),
    ("shin.L", |t| [8.0 + 34.0 * wave(t + 0.22).max(0.0), 0.0, 0.0]),
    ("shin.R", |t| [8.0 + 34.0 * wave(t + 0.72).max(0.0), 0.0, 0.0]),
    ("foot.L", |t| [-4.0 + 12.0 * wave(t + 0.6), 0.0, 0.0]),
    ("foot.R", |t| [-4.0 + 12.0 * wave(t + 0.1), 0.0, 0.0]),
    ("upper_arm.L", |t| [22.0 * wave(t), 0.0, -68.0]),
    ("upper_arm.R", |t| [-22.0 * wave(t), 0.0, 68.0]),
    ("forearm.L", |t| [0.0, -22.0 - 10.0 * wave(t), 0.0]),
    ("forearm.R", |t| [0.0, 22.0 - 10.0 * wave(t), 0.0]),
    ("neck", |_| [-2.0, 0.0, 0.0]),
];

fn wave(phase: f64) -> f64 {
    (TAU * phase).sin()
}

fn tracks(skeleton: &Skeleton, seconds: f64, turns: &[(&str, Turn)]) -> Vec<RotationTrack> {
    let keys = (seconds * RATE).round() as usize;
    let track = |&(bone, turn): &(&str, Turn)| {
        let phases = (0..=keys).map(|k| k as f64 / keys as f64);
        Some(RotationTrack {
            joint: skeleton.find(bone)?,
            times: phases.clone().map(|t| t * seconds).collect(),
            // Swing about x last, so that arms that hang swing to and fro.
            rotations: phases.map(|t| rotation(turn(t))).collect(),
        })
    };
    turns.iter().filter_map(track).collect()
}

fn rotation(degrees: [f64; 3]) -> DQuat {
    let [x, y, z] = degrees.map(f64::to_radians);
    DQuat::from_euler(EulerRot::XYZ, x, y, z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bone_that_moves_is_there_and_loops_close() {
        let motions = all(&super::super::rig::skeleton().unwrap());
        assert_eq!(motions.iter().map(|m| m.tracks.len()).collect::<Vec<_>>(), [WAVE.len(), WALK.len()]);
        for track in motions.iter().flat_map(|m| &m.tracks) {
            let (first, last) = (track.rotations[0], track.rotations[track.rotations.len() - 1]);
            // Sines of whole turns are off by a few 1e-16 times the number of turns.
            assert!(first.angle_between(last) < 1e-6);
        }
    }
}
