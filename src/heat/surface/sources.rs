//! Which bones heat which places of a surface, and how strongly: `h = c / d^2` of the nearest bone that the place sees.

use glam::DVec3;
use rayon::prelude::*;

use crate::geometry::bone_distance::{BoneNear, BoneTree};
use crate::geometry::segment;
use crate::heat::surface::visibility::Blockers;
use crate::model::{Code, Mesh, Skeleton, Warning, Weld};

/// Bones up to this factor further than the nearest share a place.
const TIE: f64 = 1.0 + 1e-4;
/// Shortest distance to a bone that counts, in bounding-box diagonals.
const SHORTEST: f64 = 1e-5;
/// Points of a bone that are asked whether they are inside.
const SAMPLES: u32 = 21;
/// Places a task.
const CHUNK: usize = 1024;

/// The sources of all places.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sources {
    /// For each place, what flows from its bones for a difference of 1; 0 where it sees none.
    pub conductance: Vec<f64>,
    starts: Vec<u32>,
    bones: Vec<u32>,
}

impl Sources {
    /// The bones that heat a place, in equal shares, by name.
    pub fn of(&self, place: u32) -> &[u32] {
        &self.bones[self.starts[place as usize] as usize..self.starts[place as usize + 1] as usize]
    }
}

/// Finds the sources of all places of a welded mesh. `mass` says how much each place counts.
pub fn sources(
    mesh: &Mesh,
    weld: &Weld,
    blockers: &Blockers,
    skeleton: &Skeleton,
    use_bone: &[bool],
    mass: &[f64],
    strength: f64,
) -> Sources {
    let tree = BoneTree::new(skeleton, use_bone);
    let diagonal = mesh.bounds().diagonal();
    let shortest = (SHORTEST * diagonal).powi(2);
    let chunks: Vec<(Vec<f64>, Vec<u32>, Vec<u32>)> = (0..weld.places().div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let (mut conductance, mut ends, mut bones) = (Vec::new(), Vec::new(), Vec::new());
            let (mut hint, mut near) = (0, Vec::new());
            for place in chunk * CHUNK..((chunk + 1) * CHUNK).min(weld.places()) {
                let p = mesh.positions()[weld.first[place] as usize];
                let before = bones.len();
                let squared = nearest_seen(&tree, skeleton, blockers, place as u32, p, shortest, &mut hint, &mut near, &mut bones);
                bones[before..].sort_unstable_by_key(|&b| skeleton.rank(b as usize));
                let seen = bones.len() > before;
                conductance.push(if seen { mass[place] * strength / squared.max(shortest) } else { 0.0 });
                ends.push(bones.len() as u32);
            }
            (conductance, ends, bones)
        })
        .collect();
    let mut all = Sources { starts: vec![0], ..Sources::default() };
    for (conductance, ends, bones) in chunks {
        let before = all.bones.len() as u32;
        all.conductance.extend(conductance);
        all.starts.extend(ends.into_iter().map(|end| before + end));
        all.bones.extend(bones);
    }
    all
}

#[expect(clippy::too_many_arguments)]
fn nearest_seen(
    tree: &BoneTree,
    skeleton: &Skeleton,
    blockers: &Blockers,
    place: u32,
    p: DVec3,
    shortest: f64,
    hint: &mut usize,
    near: &mut Vec<BoneNear>,
    bones: &mut Vec<u32>,
) -> f64 {
    let rule: u32 = std::env::var("RULE").map_or(0, |v| v.parse().unwrap());
    let mut factor = TIE * TIE;
    let seen = |n: &BoneNear| {
        let bone = &skeleton.bones()[n.bone as usize];
        !blockers.hide(place, p, segment::closest_point(p, bone.head, bone.tail))
    };
    loop {
        tree.within(p, factor, shortest, hint, near);
        near.sort_unstable_by(|a, b| a.squared.total_cmp(&b.squared));
        if rule == 2 {
            let least = near[0].squared;
            bones.extend(near.iter().map(|n| n.bone));
            return least;
        }
        if rule == 0 {
            let least = near[0].squared;
            bones.extend(near.iter().filter(|n| seen(n)).map(|n| n.bone));
            return least;
        }
        let mut least = None;
        for n in near.iter() {
            if least.is_some_and(|l: f64| n.squared > l.max(shortest) * TIE * TIE) {
                return least.unwrap();
            }
            if seen(n) {
                least = Some(least.unwrap_or(n.squared));
                bones.push(n.bone);
            }
        }
        if let Some(l) = least {
            if factor >= 1e300 || near.last().unwrap().squared >= l * TIE * TIE || near.len() == tree.len() { return l; }
            // may miss ties
            return l;
        }
        if near.len() == tree.len() {
            return 0.0;
        }
        factor *= 4.0;
    }
}

/// Which of the bones that may have weights are inside: at their head or at half of their samples. Where none is, all
/// are used. Warns of those that are not.
pub fn inside(blockers: &Blockers, skeleton: &Skeleton, use_bone: &[bool]) -> (Vec<bool>, Vec<Warning>) {
    let inside: Vec<bool> = skeleton
        .bones()
        .par_iter()
        .zip(use_bone)
        .map(|(bone, &used)| {
            let at = |i: u32| bone.head.lerp(bone.tail, f64::from(i) / f64::from(SAMPLES - 1));
            let inside = || (0..SAMPLES).filter(|&i| blockers.enclose(at(i))).count() as u32;
            used && (blockers.enclose(bone.head) || 2 * inside() >= SAMPLES)
        })
        .collect();
    let none = !inside.contains(&true);
    let remedy = if none { "it heats what it sees, as no bone is inside" } else { "it heats nothing" };
    let outside = skeleton.bones().iter().enumerate().filter(|(i, _)| use_bone[*i] && !inside[*i]);
    let warnings = outside
        .map(|(_, bone)| {
            let message = format!("bone \"{}\" is outside the mesh; {remedy}", bone.name);
            Warning::new(Code::BoneOutside, message).bone(bone.name.clone())
        })
        .collect();
    (if none { use_bone.to_vec() } else { inside }, warnings)
}
