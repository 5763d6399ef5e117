//! Mirrors weights across a plane: vertices by position, bones by their names (".L" and ".R" and the like), then by position.

use std::collections::HashMap;

use glam::DVec3;

use crate::edit::rows::{Locks, add, edit_rows, place_rows, to_one};
use crate::edit::smooth::check_length;
use crate::error::{Error, Result};
use crate::geometry::closest_point::{SurfacePoint, TriangleTree};
use crate::model::{Influence, Mesh, Skeleton, Weights, Weld};

/// A coordinate axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    X = 0,
    Y = 1,
    Z = 2,
}

/// A plane, and which side of it is the model of the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mirror {
    /// The axis that the plane is perpendicular to.
    pub axis: Axis,
    /// Where the plane cuts the axis. Default 0.
    pub at: f64,
    /// Copies the side of the larger coordinates to the other; else the other way round. Default true.
    pub from_positive: bool,
    /// Distance up to which two points are the same and a point is on the plane, in bounding-box diagonals. Default 1e-5.
    pub tolerance: f64,
}

impl Mirror {
    /// Across the plane through the origin that is perpendicular to `axis`, from the positive side to the negative.
    pub fn across(axis: Axis) -> Self {
        Self { axis, at: 0.0, from_positive: true, tolerance: 1e-5 }
    }

    fn reflect(&self, mut p: DVec3) -> DVec3 {
        p[self.axis as usize] = 2.0 * self.at - p[self.axis as usize];
        p
    }

    /// Distance from the plane, positive on the side that is copied.
    fn side(&self, p: DVec3) -> f64 {
        let above = p[self.axis as usize] - self.at;
        if self.from_positive { above } else { -above }
    }
}

/// Pairs of words in bone names, each of them in lower case, capitalised and in capitals.
const WORDS: (&str, &str) = ("left", "right");
/// What parts a single letter for a side from the rest of a name.
const MARKS: [char; 4] = ['.', '_', '-', ' '];

/// The name of the bone on the other side: `.L` and `.R`, `_l` and `_r` (after a mark, or before one at the start of the
/// name; a number may follow, as in `hand.L.001`), `Left` and `Right` anywhere. `None` for names without a side.
pub fn opposite_name(name: &str) -> Option<String> {
    swap_word(name).or_else(|| swap_letter(name))
}

fn swap_word(name: &str) -> Option<String> {
    let styles: [fn(&str) -> String; 3] =
        [|w| w.to_owned(), |w| w[..1].to_ascii_uppercase() + &w[1..], |w| w.to_ascii_uppercase()];
    for style in styles {
        let (left, right) = (style(WORDS.0), style(WORDS.1));
        for (one, other) in [(&left, &right), (&right, &left)] {
            let found = name.match_indices(one.as_str()).find(|(at, _)| is_word(name, *at, one.len()));
            if let Some((at, _)) = found {
                return Some(format!("{}{other}{}", &name[..at], &name[at + one.len()..]));
            }
        }
    }
    None
}

/// Whether the letters around allow that a word of its own starts here: "bright" has no side, "upperRightArm" has one.
fn is_word(name: &str, at: usize, length: usize) -> bool {
    let capital = name[at..].starts_with(char::is_uppercase);
    let before = name[..at].chars().next_back();
    let after = name[at + length..].chars().next();
    let starts = before.is_none_or(|c| !c.is_alphabetic() || (capital && c.is_lowercase()));
    starts && after.is_none_or(|c| !c.is_lowercase())
}

fn swap_letter(name: &str) -> Option<String> {
    let letters: Vec<(usize, char)> = name.char_indices().collect();
    let mark = |i: Option<usize>| i.and_then(|i| letters.get(i)).is_some_and(|(_, c)| MARKS.contains(c));
    // Last first: sides stand at the end more often than at the start.
    for (i, &(at, letter)) in letters.iter().enumerate().rev() {
        let other = match letter {
            'L' => 'R',
            'R' => 'L',
            'l' => 'r',
            'r' => 'l',
            _ => continue,
        };
        let last = i + 1 == letters.len();
        let alone = (mark(i.checked_sub(1)) && (last || mark(Some(i + 1)))) || (i == 0 && mark(Some(1)));
        if alone {
            return Some(format!("{}{other}{}", &name[..at], &name[at + 1..]));
        }
    }
    None
}

/// For each bone its mirror image: the bone of the opposite name; else the one whose head and tail are the mirror images of
/// its own, itself included; else itself. Twice mirrored, every bone is itself again.
pub fn mirror_bones(skeleton: &Skeleton, by: &Mirror) -> Vec<u32> {
    let bones = skeleton.bones();
    let names: HashMap<&str, u32> = bones.iter().enumerate().map(|(i, b)| (b.name.as_str(), i as u32)).collect();
    let ends: Vec<DVec3> = bones.iter().flat_map(|b| [b.head, b.tail]).collect();
    let size = crate::model::Bounds::of(ends).map_or(0.0, |b| b.diagonal());
    // Joints are placed less exactly than vertices.
    let near = 1e-3 * size;
    let by_place = |bone: usize| {
        let (head, tail) = (by.reflect(bones[bone].head), by.reflect(bones[bone].tail));
        let apart = |other: usize| bones[other].head.distance(head).max(bones[other].tail.distance(tail));
        // Of bones at one place a bone is its own mirror image.
        let nearest = (0..bones.len())
            .min_by(|&a, &b| apart(a).total_cmp(&apart(b)).then((a != bone).cmp(&(b != bone))).then(a.cmp(&b)));
        nearest.filter(|&other| apart(other) <= near)
    };
    let by_name = |bone: usize| opposite_name(&bones[bone].name).and_then(|name| names.get(name.as_str()).copied());
    let found: Vec<u32> =
        (0..bones.len()).map(|b| by_name(b).unwrap_or_else(|| by_place(b).unwrap_or(b) as u32)).collect();
    // Mirrored twice, a bone must be itself again.
    (0..bones.len() as u32)
        .map(|b| if found[found[b as usize] as usize] == b { found[b as usize] } else { b })
        .collect()
}

/// Mirrors the weights of one side onto the other. A vertex there takes those of the point of the model's side that is
/// nearest to its mirror image: of a vertex within the tolerance, else a blend over the triangle, so the two sides need not
/// have the same vertices. Vertices on the plane take the mean of their weights and those weights mirrored. Coincident
/// vertices count as one. Mirroring again changes nothing.
///
/// # Errors
/// [`Error::Length`] where there is not one row a vertex; [`Error::Parameter`] where the side to copy has no vertices or
/// the plane or the tolerance is not a number.
pub fn mirror(mesh: &Mesh, weights: &Weights, skeleton: &Skeleton, by: &Mirror, locks: &Locks) -> Result<Weights> {
    check_length(mesh, weights)?;
    if !by.at.is_finite() || !(0.0..1.0).contains(&by.tolerance) {
        let value = format!("{}, tolerance {}", by.at, by.tolerance);
        let allowed = "its place must be a finite number and its tolerance at least 0 and below 1";
        return Err(Error::Parameter { name: "mirror plane", value, allowed });
    }
    let weld = mesh.weld();
    let near = by.tolerance * mesh.bounds().diagonal();
    let side = |place: u32| by.side(mesh.positions()[weld.first[place as usize] as usize]);
    if !(0..weld.places() as u32).any(|p| side(p) > near) {
        let value = ["x", "y", "z"][by.axis as usize].to_owned();
        return Err(Error::Parameter { name: "mirror", value, allowed: "the side to copy must have vertices" });
    }
    let bones = mirror_bones(skeleton, by);
    let swapped = |row: &[Influence]| -> Vec<Influence> {
        let mut to = Vec::with_capacity(row.len());
        row.iter().for_each(|i| add(&mut to, bones[i.joint as usize], i.weight));
        to
    };
    let places = on_plane_symmetric(&place_rows(weights, &weld), &|p| side(p).abs() <= near, &swapped);
    let model = Model::new(mesh, &weld, &|place| side(place) >= -near, near);
    let edit = |vertex: usize, _: &[Influence], free: &mut Vec<Influence>, _: &mut _| {
        let place = weld.place_of[vertex];
        if side(place) > near {
            return;
        }
        *free = if side(place) < -near {
            swapped(&model.row(by.reflect(mesh.positions()[vertex]), &places))
        } else {
            places.of(place as usize).to_vec()
        };
    };
    Ok(edit_rows(weights, locks, edit).0)
}

/// The rows of places, those on the plane made equal to their own mirror image.
fn on_plane_symmetric(
    rows: &Weights,
    on_plane: &dyn Fn(u32) -> bool,
    swapped: &dyn Fn(&[Influence]) -> Vec<Influence>,
) -> Weights {
    let mut all = Weights::with_capacity(rows.len(), 4 * rows.len());
    for (place, row) in rows.iter().enumerate() {
        let mut row = row.to_vec();
        if on_plane(place as u32) {
            swapped(&row.clone()).into_iter().for_each(|i| add(&mut row, i.joint, i.weight));
            to_one(&mut row);
        }
        all.push(row);
    }
    all
}

/// The surface of the side that is copied.
struct Model {
    tree: TriangleTree,
    /// For each triangle of the tree its places; a place of no triangle is one of three equal corners.
    places: Vec<[u32; 3]>,
    corners: Vec<[DVec3; 3]>,
    near: f64,
}

impl Model {
    fn new(mesh: &Mesh, weld: &Weld, inside: &dyn Fn(u32) -> bool, near: f64) -> Self {
        let places = mesh.triangles().iter().map(|t| t.map(|v| weld.place_of[v as usize]));
        let mut places: Vec<[u32; 3]> = places.filter(|t| t.iter().all(|&p| inside(p))).collect();
        let mut used = vec![false; weld.places()];
        places.iter().flatten().for_each(|&p| used[p as usize] = true);
        places.extend((0..weld.places() as u32).filter(|&p| inside(p) && !used[p as usize]).map(|p| [p; 3]));
        let at = |p: u32| mesh.positions()[weld.first[p as usize] as usize];
        let corners: Vec<[DVec3; 3]> = places.iter().map(|t| t.map(at)).collect();
        Self { tree: TriangleTree::new(corners.clone()), places, corners, near }
    }

    /// The weights at the point nearest to `p`.
    fn row(&self, p: DVec3, rows: &Weights) -> Vec<Influence> {
        let Some(SurfacePoint { triangle, barycentric, .. }) = self.tree.closest(p) else { return Vec::new() };
        let places = self.places[triangle as usize];
        let corners = self.corners[triangle as usize];
        if let Some(k) = (0..3).find(|&k| corners[k].distance(p) <= self.near) {
            return rows.of(places[k] as usize).to_vec();
        }
        let mut row = Vec::new();
        for (place, share) in places.into_iter().zip(barycentric) {
            rows.of(place as usize).iter().for_each(|i| add(&mut row, i.joint, share * i.weight));
        }
        row
    }
}
