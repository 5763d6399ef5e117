//! Which bones heat which places of a surface, and how strongly: `h = c / d^2` of the nearest bone that the place sees.

use glam::DVec3;
use rayon::prelude::*;

use crate::geometry::bone_distance::{BoneNear, BoneTree};
use crate::geometry::segment;
use crate::heat::surface::visibility::Blockers;
use crate::model::{Code, Mesh, Skeleton, Warning, Weld};

/// Bones up to this factor further than the nearest share a place.
pub const TIE: f64 = 1.0 + 1e-4;
/// How many times further than the nearest bone one may be that heats a place which does not see those nearer. Lowest posed
/// error over three hand-weighted rigs, of none (as published), 1.5, 2, 3, 4, 100.
pub const REACH: f64 = 2.0;
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
    let search = Search { tree: &tree, skeleton, blockers, shortest };
    let chunks: Vec<(Vec<f64>, Vec<u32>, Vec<u32>)> = (0..weld.places().div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let (mut conductance, mut ends, mut bones) = (Vec::new(), Vec::new(), Vec::new());
            let (mut hint, mut near) = (0, Vec::new());
            for (place, mass) in mass.iter().enumerate().skip(chunk * CHUNK).take(CHUNK) {
                let p = mesh.positions()[weld.first[place] as usize];
                let before = bones.len();
                let squared = search.nearest_seen(place as u32, p, &mut hint, &mut near, &mut bones);
                bones[before..].sort_unstable_by_key(|&b| skeleton.rank(b as usize));
                conductance.push(mass * strength / squared.max(shortest));
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

/// What is asked for each place.
struct Search<'a> {
    tree: &'a BoneTree,
    skeleton: &'a Skeleton,
    blockers: &'a Blockers,
    /// Squared distance up to which a bone counts as at the place.
    shortest: f64,
}

impl Search<'_> {
    /// Adds the bones that heat a place, at `p`, to `bones`: of those it sees the nearest, and those about as near. Returns
    /// their squared distance. `near` is scratch, `hint` the tree's.
    fn nearest_seen(
        &self,
        place: u32,
        p: DVec3,
        hint: &mut usize,
        near: &mut Vec<BoneNear>,
        bones: &mut Vec<u32>,
    ) -> f64 {
        let before = bones.len();
        // Most places see the nearest; the others look further.
        for reach in [TIE, REACH] {
            bones.truncate(before);
            let mut least = f64::INFINITY;
            self.tree.within(p, reach * reach, self.shortest, hint, near);
            near.sort_unstable_by(|a, b| a.squared.total_cmp(&b.squared).then(a.bone.cmp(&b.bone)));
            for n in near.iter() {
                if n.squared > least.max(self.shortest) * TIE * TIE {
                    break;
                }
                if self.sees(place, p, n.bone) {
                    least = least.min(n.squared);
                    bones.push(n.bone);
                }
            }
            if bones.len() > before {
                return least;
            }
        }
        f64::INFINITY
    }

    fn sees(&self, place: u32, p: DVec3, bone: u32) -> bool {
        let bone = &self.skeleton.bones()[bone as usize];
        !self.blockers.hide(place, p, segment::closest_point(p, bone.head, bone.tail))
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
            let samples = || (0..SAMPLES).filter(|&i| blockers.enclose(at(i))).count() as u32;
            used && (blockers.enclose(bone.head) || 2 * samples() >= SAMPLES)
        })
        .collect();
    let none = !inside.contains(&true);
    let remedy = if none {
        "as no bone is inside, it heats what it sees"
    } else {
        "it moves no vertex; move it inside, or choose method geodesic"
    };
    let outside = skeleton.bones().iter().enumerate().filter(|(i, _)| use_bone[*i] && !inside[*i]);
    let warnings = outside
        .map(|(_, bone)| {
            let message = format!(
                "bone \"{}\" lies outside the mesh (its head and more than half of its length); {remedy}",
                bone.name
            );
            Warning::new(Code::BoneOutside, message).bone(bone.name.clone())
        })
        .collect();
    (if none { use_bone.to_vec() } else { inside }, warnings)
}
