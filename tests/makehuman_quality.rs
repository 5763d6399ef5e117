//! Automatic weights of the MakeHuman body against hand-made ones, by how far posed vertices are off. The data are not part of
//! this project: `SKINBIND_FIXTURES` names the folder that holds `fixtures/makehuman`; without it these tests are ignored.
//! `cargo test --test makehuman_quality -- --nocapture` prints the figures of docs/heat.md.

use std::f64::consts::TAU;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use glam::{DAffine3, DQuat, DVec3};
use libtest_mimic::{Arguments, Failed, Trial};
use skinbind::bind::{Method, Params, bind};
use skinbind::glam;
use skinbind::io::makehuman::{Base, Rig, reference, weights};
use skinbind::io::weights_file;
use skinbind::model::{Mesh, Skeleton, Weights};
use skinbind::progress::Progress;

/// One bone turns by this in a joint pose, all by the other in a full pose.
const ANGLES: [f64; 2] = [TAU / 6.0, TAU / 18.0];
const FULL_POSES: u32 = 4;
/// A vertex moves in a pose if the hand-made weights move it by more than this share of the body's height.
const MOVING: f64 = 1e-3;

fn main() -> ExitCode {
    let folder = std::env::var_os("SKINBIND_FIXTURES").map(|f| PathBuf::from(f).join("fixtures/makehuman"));
    if folder.is_none() {
        println!("SKINBIND_FIXTURES is not set: the tests with the real body are ignored");
    }
    let missing = folder.is_none();
    let folder = folder.unwrap_or_default();
    let trial = |name: &str, run: fn(&Path) -> Result<(), Failed>| {
        let folder = folder.clone();
        Trial::test(name, move || run(&folder)).with_ignored_flag(missing)
    };
    let trials = vec![
        trial("default_rig", |folder| quality(folder, "default.mhskel", Some("default_weights.mhw"), 0.45)),
        trial("game_rig", |folder| quality(folder, "rig.game_engine.json", Some("weights.game_engine.json"), 0.29)),
        trial("motion_capture_rig", |folder| quality(folder, "cmu_mb.mhskel", None, 0.35)),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Binds with voxel heat at its defaults and asks for a posed error of at most `most` percent of the height. A rig without
/// weights of its own takes the default rig's through its references.
fn quality(folder: &Path, rig: &str, own: Option<&str>, most: f64) -> Result<(), Failed> {
    let rigs = folder.join("rigs");
    let base = Base::read(folder.join("base.obj"))?;
    let rig = Rig::read(rigs.join(rig), &base)?;
    let load = |file: &str, rig: &Rig| -> Result<Weights, Failed> {
        Ok(weights::load(weights_file::read(rigs.join(file))?, &rig.skeleton, base.vertices())?.0)
    };
    let hand_made = match own {
        Some(file) => load(file, &rig)?,
        None => {
            let master = Rig::read(rigs.join("default.mhskel"), &base)?;
            reference::derive(&load("default_weights.mhw", &master)?, &master, &rig)?.0
        }
    };
    let body = base.body(&[])?;
    let hand_made = body.weights(&hand_made);
    let params = Params { method: Method::VoxelHeat, ..Params::default() };
    let ours = bind(&body.mesh, &rig.skeleton, &params, Progress::NONE)?.weights;
    let poses = Poses::new(&body.mesh, &rig.skeleton, &hand_made);
    let (heat, itself) = (poses.error(&ours, &hand_made), poses.error(&hand_made, &hand_made));
    let straight =
        bind(&body.mesh, &rig.skeleton, &Params { method: Method::Envelope, ..Params::default() }, Progress::NONE)?;
    let envelope = poses.error(&straight.weights, &hand_made);
    println!("{} bones: posed error {heat:.3}; by straight distance {envelope:.3}", rig.skeleton.len());
    assert_eq!(itself, 0.0);
    assert!(heat <= most, "{heat} is above {most}");
    // Control: another method's weights are worse.
    assert!(envelope > 1.2 * heat, "{envelope}");
    Ok(())
}

/// Poses that a rig alone decides, so that every method is measured by the same: each bone that an artist weighted turned at
/// its head about two axes across it, what hangs on it following; and all of them turned a little at once.
struct Poses<'a> {
    mesh: &'a Mesh,
    height: f64,
    /// For each posed bone which bones follow it.
    followers: Vec<(usize, Vec<bool>)>,
    frames: Vec<[DVec3; 3]>,
    full: Vec<Vec<DAffine3>>,
}

impl<'a> Poses<'a> {
    fn new(mesh: &'a Mesh, skeleton: &Skeleton, hand_made: &Weights) -> Self {
        let bones = skeleton.bones();
        let mut posed = vec![false; bones.len()];
        hand_made.iter().flatten().for_each(|i| posed[i.joint as usize] = true);
        let follows = |mut bone: usize, of: usize| loop {
            match bones[bone].parent {
                _ if bone == of => return true,
                Some(parent) => bone = parent,
                None => return false,
            }
        };
        let all = |bone: usize| (bone, (0..bones.len()).map(|b| follows(b, bone)).collect());
        let followers = (0..bones.len()).filter(|&b| posed[b]).map(all).collect();
        let frames: Vec<[DVec3; 3]> = bones.iter().map(|b| across(b.head, b.tail)).collect();
        let full = (0..FULL_POSES).map(|pose| full_pose(skeleton, &frames, &posed, pose)).collect();
        let bounds = mesh.bounds();
        Self { mesh, height: bounds.extent().y, followers, frames, full }
    }

    /// Root mean square over all vertices and poses that move them, in percent of the height.
    fn error(&self, weights: &Weights, hand_made: &Weights) -> f64 {
        let least = MOVING * self.height;
        let (mut sum, mut moving) = (0.0, 0usize);
        let positions = self.mesh.positions();
        for (bone, follows) in &self.followers {
            let [head, axes @ ..] = self.frames[*bone];
            let share = |weights: &Weights, v: usize| -> f64 {
                weights.of(v).iter().filter(|i| follows[i.joint as usize]).map(|i| i.weight).sum()
            };
            for (v, &p) in positions.iter().enumerate() {
                let (ours, theirs) = (share(weights, v), share(hand_made, v));
                for axis in axes {
                    let across = (p - head).reject_from_normalized(axis).length();
                    let reach = 2.0 * (ANGLES[0] / 2.0).sin() * across;
                    sum += ((ours - theirs) * reach).powi(2);
                    moving += usize::from(theirs * reach > least);
                }
            }
        }
        for pose in &self.full {
            for (v, &p) in positions.iter().enumerate() {
                let to = |weights: &Weights| -> DVec3 {
                    weights.of(v).iter().map(|i| pose[i.joint as usize].transform_point3(p) * i.weight).sum()
                };
                let theirs = to(hand_made);
                sum += to(weights).distance_squared(theirs);
                moving += usize::from(theirs.distance(p) > least);
            }
        }
        100.0 / self.height * (sum / moving as f64).sqrt()
    }
}

/// A bone's head and two unit vectors across it.
fn across(head: DVec3, tail: DVec3) -> [DVec3; 3] {
    let along = (tail - head).try_normalize().unwrap_or(DVec3::Y);
    let first = along.cross(if along.z.abs() < 0.9 { DVec3::Z } else { DVec3::X }).normalize();
    [head, first, along.cross(first)]
}

/// Every posed bone turned about an axis across it that follows from its name.
fn full_pose(skeleton: &Skeleton, frames: &[[DVec3; 3]], posed: &[bool], pose: u32) -> Vec<DAffine3> {
    let bones = skeleton.bones();
    let local = |b: usize| {
        let [head, first, second] = frames[b];
        let turn = TAU * f64::from(crc32(format!("{}/{pose}", bones[b].name).as_bytes())) / 2f64.powi(32);
        let axis = first * turn.cos() + second * turn.sin();
        let angle = if posed[b] { ANGLES[1] } else { 0.0 };
        DAffine3::from_translation(head)
            * DAffine3::from_quat(DQuat::from_axis_angle(axis.normalize(), angle))
            * DAffine3::from_translation(-head)
    };
    let global = |mut b: usize| {
        let mut chain = local(b);
        while let Some(parent) = bones[b].parent {
            chain = local(parent) * chain;
            b = parent;
        }
        chain
    };
    (0..bones.len()).map(global).collect()
}

/// CRC-32 (polynomial 0xEDB88320, reflected): a number that follows from a name.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        let bit = |c: u32, _| if c & 1 == 1 { 0xEDB8_8320 ^ (c >> 1) } else { c >> 1 };
        (0..8).fold(crc ^ u32::from(*byte), bit)
    };
    !bytes.iter().fold(!0, step)
}
