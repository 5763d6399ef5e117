//! Nothing is left bare: places that no bone reaches take the weights of the nearest bound surface point.

use glam::DVec3;

use crate::error::Result;
use crate::geometry::closest_point::TriangleTree;
use crate::influence::unreached::unreached_warnings;
use crate::influence::{Limits, closest, weigh_places};
use crate::model::{Components, Influence, Mesh, Skeleton, Warning, Weights, Weld};
use crate::progress::Progress;

/// Weights without bare places, and what was done about those that were bare.
#[derive(Debug, Clone, PartialEq)]
pub struct Filled {
    /// For each welded place its influences; none is empty.
    pub weights: Weights,
    /// One for each connected component that had bare places.
    pub warnings: Vec<Warning>,
    /// How many vertices (not places) were bare.
    pub unreached_vertices: usize,
}

/// Gives each place with an empty row the weights of the nearest bound surface point: the blend, by barycentric
/// coordinates, of the corners of the closest triangle whose corners are all bound; of the closest bound place where no
/// triangle is. Where nothing at all is bound, each place goes to its nearest bone with `use_bone` (one entry a bone).
///
/// `weights` has one row a place of `weld`; `components` are those of the mesh.
///
/// # Errors
/// [`crate::Error::Parameter`], [`crate::Error::Cancelled`], and those of [`closest`] where nothing is bound.
#[expect(clippy::too_many_arguments, reason = "each is a thing of its own that only the binding knows")]
pub fn fill_unreached(
    mesh: &Mesh,
    weld: &Weld,
    components: &Components,
    skeleton: &Skeleton,
    use_bone: &[bool],
    weights: Weights,
    limits: &Limits,
    progress: Progress,
) -> Result<Filled> {
    let bound: Vec<bool> = weights.iter().map(|row| !row.is_empty()).collect();
    if bound.iter().all(|&b| b) {
        return Ok(Filled { weights, warnings: Vec::new(), unreached_vertices: 0 });
    }
    let (weights, source) = if bound.contains(&true) {
        let surface = BoundSurface::new(mesh, weld, &bound);
        let filled = surface.fill(mesh, weld, &bound, &weights, limits, skeleton, progress)?;
        (filled, "took the weights of the nearest bound surface")
    } else {
        (closest(mesh, weld, skeleton, use_bone, progress)?.0, "went to the nearest bone in a straight line")
    };
    let mut bare = vec![0; components.len()];
    for &place in weld.place_of.iter().filter(|&&p| !bound[p as usize]) {
        bare[components.of_place[place as usize] as usize] += 1;
    }
    let warnings = unreached_warnings(&bare, &components.vertices, source);
    Ok(Filled { weights, warnings, unreached_vertices: bare.iter().sum() })
}

/// The part of the surface that has weights.
struct BoundSurface {
    tree: TriangleTree,
    /// For each triangle of the tree its places; a lone place is a triangle of three equal ones.
    places: Vec<[u32; 3]>,
}

impl BoundSurface {
    fn new(mesh: &Mesh, weld: &Weld, bound: &[bool]) -> Self {
        let corners = mesh.triangles().iter().map(|t| t.map(|v| weld.place_of[v as usize]));
        let mut places: Vec<[u32; 3]> = corners.filter(|t| t.iter().all(|&p| bound[p as usize])).collect();
        if places.is_empty() {
            places = (0..bound.len() as u32).filter(|&p| bound[p as usize]).map(|p| [p; 3]).collect();
        }
        let triangles = places.iter().map(|t| t.map(|p| position(mesh, weld, p as usize))).collect();
        Self { tree: TriangleTree::new(triangles), places }
    }

    #[expect(clippy::too_many_arguments, reason = "hands on what `fill_unreached` was given")]
    fn fill(
        &self,
        mesh: &Mesh,
        weld: &Weld,
        bound: &[bool],
        weights: &Weights,
        limits: &Limits,
        skeleton: &Skeleton,
        progress: Progress,
    ) -> Result<Weights> {
        let bare: Vec<usize> = (0..bound.len()).filter(|&p| !bound[p]).collect();
        let (rows, _) = weigh_places(
            bare.len(),
            skeleton.len(),
            limits,
            skeleton,
            progress,
            || (),
            |(), i, raw| {
                self.blend(position(mesh, weld, bare[i]), weights, raw);
            },
        )?;
        let mut next = rows.iter();
        let mut all = Weights::with_capacity(weights.len(), weights.len() * limits.max_influences.min(4));
        for row in weights.iter() {
            let row = if row.is_empty() { next.next().unwrap_or_default() } else { row };
            all.push(row.iter().copied());
        }
        Ok(all)
    }

    /// Adds the weights of the surface point closest to `p` to `raw`.
    fn blend(&self, p: DVec3, weights: &Weights, raw: &mut Vec<Influence>) {
        let Some(at) = self.tree.closest(p) else { return };
        for (place, share) in self.places[at.triangle as usize].into_iter().zip(at.barycentric) {
            for influence in weights.of(place as usize) {
                let weight = share * influence.weight;
                match raw.iter_mut().find(|r| r.joint == influence.joint) {
                    Some(known) => known.weight += weight,
                    None => raw.push(Influence { joint: influence.joint, weight }),
                }
            }
        }
    }
}

fn position(mesh: &Mesh, weld: &Weld, place: usize) -> DVec3 {
    mesh.positions()[weld.first[place] as usize]
}
