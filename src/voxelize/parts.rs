//! Which triangles have a say in where the inside is, and which way round: the parts of an open surface, turned outwards.

use glam::{DVec3, IVec3};
use rayon::prelude::*;

use super::closed::{distinct, holes};
use crate::model::{Bounds, Components, Grid, LATTICE, Mesh, Weld};

/// A part whose holes, each closed by a fan of triangles, have more than this share of its area is a sheet (a cape, hair,
/// a skirt) and not a body with holes (open sleeves and necks are 5 to 15 %; a tube four times as long as wide 12 %).
const SHEET_HOLES: f64 = 0.25;
/// A body is a part that is closed but for holes and at least this long, against the diagonal of the mesh. Where there is
/// one, sheets enclose nothing. Where there is none, the character may be made of sheets, and all parts have a say.
const BODY_SHARE: f64 = 0.5;
/// Below this ratio of enclosed volume to area^1.5 (0.094 for a sphere) the sign of the volume is no sign of anything.
const FLAT_VOLUME: f64 = 1e-3;

/// The triangles that enclose something, outward, on the lattice of a grid.
pub struct Hull {
    pub triangles: Vec<[IVec3; 3]>,
}

impl Hull {
    /// Chooses and turns the triangles of a mesh with these open edges.
    pub fn new(mesh: &Mesh, weld: &Weld, grid: &Grid, open_edges: &[[u32; 2]]) -> Self {
        let components = mesh.components(weld);
        let sheet = sheets(mesh, weld, &components, open_edges);
        let place = |t: [u32; 3]| t.map(|v| weld.place_of[v as usize]);
        let mut faces: Vec<[u32; 3]> = mesh
            .triangles()
            .iter()
            .map(|&t| place(t))
            .filter(|p| distinct(p) && !sheet[components.of_place[p[0] as usize] as usize])
            .collect();
        let at = |p: u32| mesh.positions()[weld.first[p as usize] as usize];
        let middle = mesh.bounds().center();
        turn_outwards(&mut faces, &|p| (at(p) - middle) / grid.voxel());
        let mut triangles: Vec<[IVec3; 3]> = faces.into_iter().map(|f| f.map(|p| grid.lattice(at(p)))).collect();
        // In an order of their own, so that the rounding of sums does not depend on the order in the mesh.
        for t in &mut triangles {
            let least = (0..3).min_by_key(|&i| t[i].to_array()).unwrap_or(0);
            t.rotate_left(least);
        }
        triangles.par_sort_unstable_by_key(|t| t.map(|c| c.to_array()));
        Self { triangles }
    }

    /// The triangles in grid coordinates.
    pub fn in_voxels(&self) -> Vec<[DVec3; 3]> {
        self.triangles.iter().map(|t| t.map(|p| p.as_dvec3() / f64::from(LATTICE))).collect()
    }
}

/// Which components are sheets that enclose nothing.
fn sheets(mesh: &Mesh, weld: &Weld, components: &Components, open_edges: &[[u32; 2]]) -> Vec<bool> {
    let at = |p: u32| mesh.positions()[weld.first[p as usize] as usize];
    let component = |p: u32| components.of_place[p as usize] as usize;
    let mut area = vec![0.0; components.len()];
    for &t in mesh.triangles() {
        let [a, b, c] = mesh.corners(t);
        area[component(weld.place_of[t[0] as usize])] += (b - a).cross(c - a).length();
    }
    let (hole_of, count) = holes(open_edges);
    let mut centers = vec![(DVec3::ZERO, 0.0); count];
    for (&[a, b], &hole) in open_edges.iter().zip(&hole_of) {
        centers[hole].0 += at(a) + at(b);
        centers[hole].1 += 2.0;
    }
    let mut missing = vec![0.0; components.len()];
    for (&[a, b], &hole) in open_edges.iter().zip(&hole_of) {
        let center = centers[hole].0 / centers[hole].1;
        missing[component(a)] += (at(a) - center).cross(at(b) - center).length();
    }
    let mut bounds: Vec<Option<Bounds>> = vec![None; components.len()];
    for p in 0..weld.places() as u32 {
        let b = bounds[component(p)].get_or_insert(Bounds { min: at(p), max: at(p) });
        *b = Bounds { min: b.min.min(at(p)), max: b.max.max(at(p)) };
    }
    let sheet: Vec<bool> = area.iter().zip(&missing).map(|(a, m)| *m > SHEET_HOLES * a || *a == 0.0).collect();
    let least = BODY_SHARE * mesh.bounds().diagonal();
    let body = bounds.iter().zip(&sheet).any(|(b, &s)| !s && b.is_some_and(|b| b.diagonal() >= least));
    if body { sheet } else { vec![false; components.len()] }
}

/// Turns faces so that neighbours over two-sided edges agree, and each patch of such faces outwards.
fn turn_outwards(faces: &mut [[u32; 3]], at: &dyn Fn(u32) -> DVec3) {
    let neighbors = neighbors(faces);
    let mut patch_of = vec![usize::MAX; faces.len()];
    let mut patches: Vec<Patch> = Vec::new();
    for start in 0..faces.len() {
        if patch_of[start] != usize::MAX {
            continue;
        }
        let mut patch = Patch { origin: at(faces[start][0]), ..Patch::default() };
        let mut todo = vec![(start, false)];
        patch_of[start] = patches.len();
        while let Some((f, turned)) = todo.pop() {
            if turned {
                faces[f].swap(1, 2);
            }
            patch.add(faces[f].map(at), turned);
            for side in 0..3 {
                let (from, to) = (faces[f][side], faces[f][(side + 1) % 3]);
                // Sides are stored by the edge's places, not by their place in the face, which may have been turned.
                for &other in &neighbors[f] {
                    let other = other as usize;
                    if other == NO_FACE as usize || patch_of[other] != usize::MAX {
                        continue;
                    }
                    if let Some(same) = runs(faces[other], from, to) {
                        patch_of[other] = patches.len();
                        todo.push((other, same));
                    }
                }
            }
        }
        patches.push(patch);
    }
    let outward = outward(&patches);
    for (face, patch) in faces.iter_mut().zip(patch_of) {
        if !outward[patch] {
            face.swap(1, 2);
        }
    }
}

/// Faces connected over two-sided edges, with all of them turned alike.
#[derive(Default)]
struct Patch {
    origin: DVec3,
    /// Six times the signed volume about `origin` and about the middle of the mesh, and twice the area.
    volume: f64,
    about_middle: f64,
    area: f64,
    /// Twice the area of faces turned, less that of those left as they were.
    turned: f64,
}

impl Patch {
    fn add(&mut self, [a, b, c]: [DVec3; 3], turned: bool) {
        let n = (b - a).cross(c - a);
        self.volume += (a - self.origin).dot(n);
        self.about_middle += a.dot(n);
        self.area += n.length();
        self.turned += if turned { n.length() } else { -n.length() };
    }

    fn encloses(&self) -> bool {
        self.volume.abs() / 6.0 > FLAT_VOLUME * (self.area / 2.0).powf(1.5)
    }

    /// 1 where most of its faces are the way round they were given.
    fn given(&self) -> f64 {
        if self.turned > 0.0 { -1.0 } else { 1.0 }
    }
}

/// Whether each patch is outward as it is. Those that enclose something show it themselves; for the others (single
/// faces, strips) most of the faces as they were given decide, all inside out together where that makes a better whole.
fn outward(patches: &[Patch]) -> Vec<bool> {
    let flat_sum: f64 = patches.iter().filter(|p| !p.encloses()).map(|p| p.about_middle * p.given()).sum();
    let given_is_outward = if flat_sum < 0.0 { -1.0 } else { 1.0 };
    let sign = |p: &Patch| if p.encloses() { p.volume } else { p.given() * given_is_outward };
    patches.iter().map(|p| sign(p) > 0.0).collect()
}

/// Whether the edge runs in this direction along the face (`Some(true)`), against it, or is none of its edges.
fn runs(face: [u32; 3], from: u32, to: u32) -> Option<bool> {
    (0..3).find_map(|i| match (face[i], face[(i + 1) % 3]) {
        (a, b) if (a, b) == (from, to) => Some(true),
        (a, b) if (a, b) == (to, from) => Some(false),
        _ => None,
    })
}

const NO_FACE: u32 = u32::MAX;

/// For each face the up to three faces that share an edge with it and with no third.
fn neighbors(faces: &[[u32; 3]]) -> Vec<[u32; 3]> {
    let mut sides: Vec<(u64, u32)> = Vec::with_capacity(3 * faces.len());
    for (f, face) in faces.iter().enumerate() {
        for side in 0..3 {
            let (a, b) = (face[side], face[(side + 1) % 3]);
            sides.push((u64::from(a.min(b)) << 32 | u64::from(a.max(b)), 3 * f as u32 + side as u32));
        }
    }
    sides.par_sort_unstable();
    let mut neighbors = vec![[NO_FACE; 3]; faces.len()];
    for pair in sides.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() == 2) {
        let (s, t) = (pair[0].1, pair[1].1);
        neighbors[(s / 3) as usize][(s % 3) as usize] = t / 3;
        neighbors[(t / 3) as usize][(t % 3) as usize] = s / 3;
    }
    neighbors
}
