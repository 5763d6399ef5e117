//! Which bone heats which voxel, and how strongly: steps 1, 5 and 6 of the source rule, and the rule as a whole.

use glam::DVec3;
use rayon::prelude::*;

use super::links::link;
use super::radius::{Radii, median, radii, radii_with};
use super::segment::{Segment, is_in, voxel_at};
use super::solid::Solid;
use super::trim::{Limb, cut_at_head, cut_at_tail, is_joined, trimmed};
use crate::model::{BitGrid, Code, Grid, Skeleton, Warning};

/// Points of a bone that are looked at to see whether it runs through the solid.
pub const SAMPLES: usize = 21;
/// How much further away a link counts than a bone does.
pub const LINK_PENALTY: f64 = 3.0;
/// How many of its radii the last bone of a chain reaches beyond its thickness before that counts against it, as a factor
/// of distance: it has all that lies around and beyond its joint, however far that stands out (a chin, fingers that share a
/// bone).
pub const LAST_BONE: f64 = 0.4;
/// Two scores that differ by less than this share are equal, and the bone's name decides: mirrored bodies have exact
/// ties on their plane of symmetry, which rounding must not turn over.
pub const TIE: f64 = 1e-9;
/// Bone ends are rounded to this fraction of a voxel, so that noise in the last bit of f64 (from another unit of
/// length) ends before the first decision, and a scaled character has the same weights.
const STEP: f64 = 1.0 / 1_048_576.0;
/// Where that rounding turns over, as a fraction of a step: halves, thirds and tenths of a voxel never come near it.
const TURNOVER: f64 = 0.414_213_562_373_095_05;
/// Bones further away than so many voxels are taken to end there.
const FARTHEST: f64 = 268_435_456.0;
/// Side of the smallest box of voxels for which candidates are sorted out together.
const BOX: u32 = 4;
/// Side of the boxes that are handled in parallel.
const LARGE_BOX: u32 = 32;

/// Something that heats: a bone, or a link that belongs to a bone.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The bone's index in the skeleton.
    pub bone: u32,
    /// From end to end, in grid coordinates.
    pub whole: Segment,
    /// The part, as fractions, that counts when the nearest source is chosen.
    pub from: f64,
    pub to: f64,
    pub radii: Radii,
    pub link: bool,
    /// By what a distance is multiplied before it is compared with the radius.
    pub beyond: f64,
}

/// The sources of a skeleton in a solid.
pub struct Sources {
    /// Sorted by bone name; a bone before its links, links by the name of the child. The order decides ties.
    pub all: Vec<Source>,
    /// Bones that give none, or only where they are nearest.
    pub warnings: Vec<Warning>,
}

/// A bone end in grid coordinates.
pub fn on_grid(grid: &Grid, p: DVec3) -> DVec3 {
    let steps = grid.to_middle(p) / STEP;
    let rounded = (steps.abs() + DVec3::splat(TURNOVER)).floor().copysign(steps) * STEP;
    rounded.clamp(DVec3::splat(-FARTHEST), DVec3::splat(FARTHEST)) + grid.dims().as_dvec3() * 0.5
}

/// Step 1: whether a bone gives a source. It does where its head is in the solid, or at least half of its samples are.
pub fn runs_through(solid: &Solid, bone: &Segment) -> bool {
    is_in(solid, bone.a) || 2 * bone.samples(SAMPLES).filter(|&(_, p)| is_in(solid, p)).count() >= SAMPLES
}

/// Steps 1 to 4 for all bones with `use_bone`.
pub fn sources(solid: &Solid, surface: &BitGrid, grid: &Grid, skeleton: &Skeleton, use_bone: &[bool]) -> Sources {
    let bones = skeleton.bones();
    let segments: Vec<Segment> =
        bones.iter().map(|b| Segment { a: on_grid(grid, b.head), b: on_grid(grid, b.tail) }).collect();
    let mut used: Vec<usize> = (0..bones.len()).filter(|&b| use_bone[b]).collect();
    used.sort_unstable_by_key(|&b| skeleton.rank(b));
    let (inside, outside): (Vec<usize>, Vec<usize>) = used.iter().partition(|&&b| runs_through(solid, &segments[b]));
    if inside.is_empty() {
        return from_outside(solid, surface, skeleton, &segments, &used);
    }
    let warnings = outside.iter().map(|&b| left_out(&bones[b].name)).collect();
    let of_inside: Vec<Segment> = inside.iter().map(|&b| segments[b]).collect();
    let radii = radii(solid, surface, &of_inside);
    let limbs: Vec<Limb> = of_inside.into_iter().zip(radii).map(|(segment, radii)| Limb { segment, radii }).collect();
    let parents = parents_among(skeleton, &inside);
    Sources { all: assemble(solid, surface, &inside, &limbs, &parents), warnings }
}

/// For each of these bones the position in the list of its nearest ancestor in the list.
fn parents_among(skeleton: &Skeleton, list: &[usize]) -> Vec<Option<usize>> {
    let mut position = vec![None; skeleton.len()];
    for (at, &bone) in list.iter().enumerate() {
        position[bone] = Some(at);
    }
    let parent = |&bone: &usize| {
        let mut up = skeleton.bones()[bone].parent;
        while let Some(ancestor) = up {
            if position[ancestor].is_some() {
                return position[ancestor];
            }
            up = skeleton.bones()[ancestor].parent;
        }
        None
    };
    list.iter().map(parent).collect()
}

/// Bones with their cuts, and their links.
fn assemble(
    solid: &Solid,
    surface: &BitGrid,
    bones: &[usize],
    limbs: &[Limb],
    parents: &[Option<usize>],
) -> Vec<Source> {
    let mut children = vec![Vec::new(); bones.len()];
    for (child, parent) in parents.iter().enumerate() {
        if let Some(parent) = *parent {
            children[parent].push(child);
        }
    }
    let mut typical: Vec<f64> = limbs.iter().flat_map(|l| l.radii.0).collect();
    let typical = median(&mut typical).unwrap_or(1.0);
    let mut all = Vec::new();
    for (at, limb) in limbs.iter().enumerate() {
        let head = parents[at].map_or(0.0, |p| cut_at_head(limb, &limbs[p]));
        let tail = cut_at_tail(limb, onward(at, limbs, &children).into_iter().map(|next| &limbs[next]));
        let (from, to) = trimmed(head, tail);
        let bone = bones[at] as u32;
        let beyond = match parents[at] {
            Some(parent) if children[at].is_empty() => last_bone(limb, &limbs[parent]),
            _ => 1.0,
        };
        all.push(Source { bone, whole: limb.segment, from, to, radii: limb.radii, link: false, beyond });
        let links: Vec<Segment> =
            children[at].iter().filter_map(|&c| link(solid, &limb.segment, &limbs[c].segment)).collect();
        let link_radii = radii_with(solid, surface, &links, typical);
        all.extend(links.into_iter().zip(link_radii).map(|(whole, radii)| Source {
            bone,
            whole,
            from: 0.0,
            to: 1.0,
            radii,
            link: true,
            beyond: 1.0,
        }));
    }
    all
}

/// [`LAST_BONE`] for a bone in line with its parent, 1 for one across it (a breast, an eye), by the cosine between.
fn last_bone(bone: &Limb, parent: &Limb) -> f64 {
    let along = |limb: &Limb| (limb.segment.b - limb.segment.a).normalize_or_zero();
    1.0 - (1.0 - LAST_BONE) * along(bone).dot(along(parent)).clamp(0.0, 1.0)
}

/// The descendants that are joined to a bone's tail, directly or by others.
fn onward(bone: usize, limbs: &[Limb], children: &[Vec<usize>]) -> Vec<usize> {
    let joined = |at: usize| children[at].iter().copied().filter(move |&c| is_joined(&limbs[at], &limbs[c]));
    let mut found: Vec<usize> = joined(bone).collect();
    let mut next = 0;
    while next < found.len() {
        found.extend(joined(found[next]));
        next += 1;
    }
    found
}

/// Where no bone runs through the solid, each is a point in the middle of the solid voxel nearest to it.
fn from_outside(
    solid: &Solid,
    surface: &BitGrid,
    skeleton: &Skeleton,
    segments: &[Segment],
    used: &[usize],
) -> Sources {
    let mut found = Sources { all: Vec::new(), warnings: Vec::new() };
    for &bone in used {
        let Some(voxel) = nearest_voxel(solid, &segments[bone]) else { continue };
        let middle = middle(solid, voxel);
        let whole = Segment { a: middle, b: middle };
        let radii = radii(solid, surface, &[whole])[0];
        found.all.push(Source { bone: bone as u32, whole, from: 0.0, to: 1.0, radii, link: false, beyond: 1.0 });
        let name = &skeleton.bones()[bone].name;
        found.warnings.push(
            Warning::new(
                Code::BoneOutside,
                format!(
                    "no bone runs through the mesh; bone \"{name}\" starts at the nearest solid voxel, {:.1} voxels away",
                    segments[bone].distance(middle)
                ),
            )
            .bone(name),
        );
    }
    found
}

fn left_out(name: &str) -> Warning {
    let message = format!(
        "bone \"{name}\" lies outside the mesh (its head and more than half of its length), so it moves no vertex; move it inside, or choose method geodesic, which starts it at the nearest voxel"
    );
    Warning::new(Code::BoneOutside, message).bone(name)
}

/// The solid voxel whose middle is nearest to a segment, the first in order of rows of those within rounding of it.
fn nearest_voxel(solid: &Solid, segment: &Segment) -> Option<u32> {
    let distances: Vec<f64> = (0..solid.len() as u32).map(|v| segment.distance(middle(solid, v))).collect();
    let nearest = distances.iter().copied().min_by(f64::total_cmp)?;
    let close = (0..solid.len() as u32).filter(|&v| distances[v as usize] <= nearest * (1.0 + TIE));
    close.min_by_key(|&v| {
        let c = solid.coordinates(v);
        (c.z, c.y, c.x)
    })
}

/// The middle of a voxel, in grid coordinates.
pub fn middle(solid: &Solid, voxel: u32) -> DVec3 {
    solid.coordinates(voxel).as_dvec3() + DVec3::splat(0.5)
}

/// The solid voxels that a source runs through, at steps of half a voxel.
pub fn crossed<'a>(solid: &'a Solid, source: &Source) -> impl Iterator<Item = u32> + 'a {
    // A bone may be longer than any grid: a few thousand points on each grid length are enough.
    let count = ((source.whole.length() * 2.0).ceil().min(65_536.0)) as usize + 2;
    let whole = source.whole;
    (0..count).filter_map(move |i| voxel_at(solid, whole.at(i as f64 / (count - 1) as f64)))
}

/// Step 5: how badly a source suits a voxel whose middle is `p`, to the fourth power (which has the same order as the
/// score itself and needs no root): `(lambda d)^4 / r max(1, beta d / r)^4`.
pub fn score(source: &Source, p: DVec3) -> f64 {
    let t = source.whole.closest(p).clamp(source.from, source.to);
    score_at(source, source.whole.at(t).distance_squared(p), source.radii.at(t))
}

pub(super) fn score_at(source: &Source, distance_squared: f64, radius: f64) -> f64 {
    let lambda: f64 = if source.link { LINK_PENALTY } else { 1.0 };
    let beyond = (distance_squared * (source.beyond / radius).powi(2)).max(1.0);
    lambda.powi(4) * distance_squared * distance_squared / radius * beyond * beyond
}

/// The least and the largest score that voxels with their middle within `reach` of `p` can have.
fn score_range(source: &Source, p: DVec3, reach: f64) -> (f64, f64) {
    let t = source.whole.closest(p).clamp(source.from, source.to);
    let d = source.whole.at(t).distance(p);
    let (thin, thick) = source.radii.range();
    let (near, far) = ((d - reach).max(0.0), d + reach);
    (score_at(source, near * near, thick), score_at(source, far * far, thin))
}

/// Step 5: for each voxel the number of its source.
pub fn owners(solid: &Solid, sources: &[Source]) -> Vec<u32> {
    let boxes: Vec<[u32; 3]> = corners([0; 3], solid.bits().dims().to_array(), LARGE_BOX).collect();
    let everything: Vec<u32> = (0..sources.len() as u32).collect();
    let found: Vec<Vec<(u32, u32)>> = boxes
        .into_par_iter()
        .map(|corner| {
            let mut found = Vec::new();
            if is_free(solid, corner, LARGE_BOX) {
                return found;
            }
            own_box(solid, sources, &everything, corner, LARGE_BOX, &mut found);
            found
        })
        .collect();
    let mut owner = vec![0; solid.len()];
    for (voxel, source) in found.into_iter().flatten() {
        owner[voxel as usize] = source;
    }
    owner
}

/// Lower corners of boxes of this side that fill a box.
fn corners(from: [u32; 3], to: [u32; 3], side: u32) -> impl Iterator<Item = [u32; 3]> {
    let axis = move |i: usize| (from[i]..to[i]).step_by(side as usize);
    axis(2).flat_map(move |z| axis(1).flat_map(move |y| axis(0).map(move |x| [x, y, z])))
}

/// Whether a box (at a multiple of its side, which divides 64) has no solid voxel.
fn is_free(solid: &Solid, [x, y, z]: [u32; 3], side: u32) -> bool {
    let bits = solid.bits();
    let dims = bits.dims();
    let mask = ((1u64 << side) - 1) << (x % 64);
    (z..(z + side).min(dims.z))
        .all(|z| (y..(y + side).min(dims.y)).all(|y| bits.row(y, z)[(x / 64) as usize] & mask == 0))
}

/// Sorts out the sources that are best nowhere in a box, then halves the box.
fn own_box(
    solid: &Solid,
    sources: &[Source],
    candidates: &[u32],
    corner: [u32; 3],
    side: u32,
    found: &mut Vec<(u32, u32)>,
) {
    let half = f64::from(side) * 0.5;
    let middle = DVec3::from_array(corner.map(f64::from)) + DVec3::splat(half);
    let reach = (half - 0.5) * 3f64.sqrt();
    let ranges: Vec<(f64, f64)> =
        candidates.iter().map(|&s| score_range(&sources[s as usize], middle, reach)).collect();
    let limit = within_tie(ranges.iter().map(|r| r.1).fold(f64::INFINITY, f64::min));
    let left: Vec<u32> =
        candidates.iter().zip(&ranges).filter(|(_, range)| range.0 <= limit).map(|(&s, _)| s).collect();
    let dims = solid.bits().dims().to_array();
    let end = [0, 1, 2].map(|i| (corner[i] + side).min(dims[i]));
    if side > BOX {
        for corner in corners(corner, end, side / 2) {
            if !is_free(solid, corner, side / 2) {
                own_box(solid, sources, &left, corner, side / 2, found);
            }
        }
        return;
    }
    let mut scores = Vec::with_capacity(left.len());
    for [x, y, z] in corners(corner, end, 1) {
        if let Some(voxel) = solid.at(glam::IVec3::new(x as i32, y as i32, z as i32)) {
            let p = DVec3::new(f64::from(x), f64::from(y), f64::from(z)) + DVec3::splat(0.5);
            found.push((voxel, best(sources, &left, p, &mut scores)));
        }
    }
}

/// The first of the candidates whose score is the least within rounding. `scores` is scratch.
fn best(sources: &[Source], candidates: &[u32], p: DVec3, scores: &mut Vec<f64>) -> u32 {
    scores.clear();
    scores.extend(candidates.iter().map(|&s| score(&sources[s as usize], p)));
    let limit = within_tie(scores.iter().copied().fold(f64::INFINITY, f64::min));
    let first = scores.iter().position(|&s| s <= limit).expect("the least is within its own limit");
    candidates[first]
}

/// The largest fourth power of a score that ties with this one.
pub(super) fn within_tie(least: f64) -> f64 {
    least * (1.0 + 4.0 * TIE)
}

/// Step 6: the distance of each voxel from the source that owns it, in voxels, to the whole source, trimmed or not.
pub fn distances(solid: &Solid, sources: &[Source], owner: &[u32]) -> Vec<f64> {
    let distance =
        |(voxel, &source): (usize, &u32)| sources[source as usize].whole.distance(middle(solid, voxel as u32));
    owner.par_iter().enumerate().map(distance).collect()
}

/// Step 6: the heat conductance between a source and a voxel that it owns: `strength / max(d, 1/2)^2`, `d` in voxels.
pub fn conductance(strength: f64, distance: f64) -> f64 {
    let d = distance.max(0.5);
    strength / (d * d)
}
