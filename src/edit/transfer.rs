//! Transfers weights from a bound mesh to another: closest points where they are near and face the same way, the rest filled
//! (Abdrashitov, Raichstat, Monsen and Hill, "Robust Skin Weights Transfer via Weight Inpainting", SIGGRAPH Asia 2023).

use glam::DVec3;
use rayon::prelude::*;
use serde::Serialize;

use crate::edit::inpaint::inpaint_on;
use crate::edit::rows::{add, place_rows, to_one};
use crate::edit::smooth::{check_length, smooth_row};
use crate::error::{Error, Result};
use crate::geometry::closest_point::{SurfacePoint, TriangleTree};
use crate::geometry::mesh_graph::{Laplacian, place_normals};
use crate::influence::{Limits, Stats, weigh_places};
use crate::model::{Code, Components, Influence, Mesh, Skeleton, Warning, Weights, Weld};
use crate::progress::{Progress, Stage};

/// Most components with a warning of their own; the rest share one.
const MOST_NAMED: usize = 10;
/// How far one smoothing step moves towards the mean of the neighbours.
const SMOOTHING: f64 = 0.2;

/// What may be matched, and what is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// A point is matched to the source up to this distance, in bounding-box diagonals of the target. Default 0.05.
    pub max_distance: f64,
    /// A point is matched where the two normals differ by at most so many degrees, 0 to 180. Default 30.
    pub max_angle: f64,
    /// Whether a normal may always point the opposite way too. Default false: only where no point of the source within
    /// `max_distance` faces the right way, as on the lining of a shoe.
    pub flipped: bool,
    /// Smoothing steps over what was filled and its neighbours. Default 10.
    pub smoothing: usize,
    /// Cap and threshold of the result. Default 4 and 0.01.
    pub limits: Limits,
}

impl Default for Params {
    fn default() -> Self {
        Self { max_distance: 0.05, max_angle: 30.0, flipped: false, smoothing: 10, limits: Limits::default() }
    }
}

impl Params {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        if !(self.max_distance >= 0.0 && self.max_distance.is_finite()) {
            let value = self.max_distance.to_string();
            return Err(Error::Parameter { name: "max distance", value, allowed: "it must be at least 0" });
        }
        if !(0.0..=180.0).contains(&self.max_angle) {
            let value = self.max_angle.to_string();
            return Err(Error::Parameter { name: "max angle", value, allowed: "it must be from 0 to 180 degrees" });
        }
        if self.smoothing > 1000 {
            let value = self.smoothing.to_string();
            return Err(Error::Parameter { name: "smoothing", value, allowed: "it must be at most 1000 steps" });
        }
        self.limits.check()
    }
}

/// Weights of the target, and where they came from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transferred {
    /// One row a vertex of the target; none is empty.
    #[serde(skip)]
    pub weights: Weights,
    /// Vertices that took the weights of the closest point of the source.
    pub matched_vertices: usize,
    /// Vertices that were filled from matched ones of their component.
    pub filled_vertices: usize,
    /// Vertices of components that are far from the source.
    pub far_vertices: usize,
    #[serde(flatten)]
    pub stats: Stats,
    pub warnings: Vec<Warning>,
}

/// Computes weights for `target` from those of `source`; both lie in one space. Coincident vertices get the same weights.
///
/// A place of the target is matched to the closest point of the bound part of the source, where `params` allow it. Places
/// without a match are filled ([`crate::edit::inpaint`]) from those of their component that have one. In a component without any, the
/// normals do not count; where all of it is too far, all of it takes the weights of one point of the source: that which is
/// closest to the component. The last two are warned about.
///
/// # Errors
/// [`Error::Length`] where there is not one row a vertex of the source, [`Error::Check`] where none of its faces has
/// weights at all its corners, [`Error::Parameter`], [`Error::Limit`], [`Error::Cancelled`].
pub fn transfer(
    source: &Mesh,
    weights: &Weights,
    skeleton: &Skeleton,
    target: &Mesh,
    params: &Params,
    progress: Progress,
) -> Result<Transferred> {
    params.check()?;
    check_length(source, weights)?;
    let source = Source::new(source, weights)?;
    progress.at(Stage::Prepare, 0.5)?;
    let weld = target.weld();
    let components = target.components(&weld);
    let matches = source.matches(target, &weld, params, progress)?;
    let (chosen, mut warnings) = choose(&matches, &weld, &components);
    let mut rows = Weights::with_capacity(weld.places(), 4 * weld.places());
    for (place, how) in chosen.iter().enumerate() {
        match *how {
            How::Matched => rows.push(matches.points[place].row.iter().copied()),
            How::Far(at) => rows.push(matches.points[at].row.iter().copied()),
            How::Filled => rows.push([]),
        }
    }
    if chosen.contains(&How::Filled) {
        let laplacian = Laplacian::new(target, &weld);
        rows = inpaint_on(target, &weld, &laplacian, &rows, progress)?;
        rows = smooth_filled(&laplacian, &rows, &chosen, params.smoothing);
    }
    let (rows, stats) = weigh_places(
        rows.len(),
        skeleton.len(),
        &params.limits,
        skeleton,
        progress,
        || (),
        |(), place, raw| {
            raw.extend_from_slice(rows.of(place));
        },
    )?;
    let count = |which: fn(&How) -> bool| weld.place_of.iter().filter(|&&p| which(&chosen[p as usize])).count();
    warnings.sort_by_key(|w| w.component.is_none());
    Ok(Transferred {
        weights: rows.scatter(&weld.place_of),
        matched_vertices: count(|h| *h == How::Matched),
        filled_vertices: count(|h| *h == How::Filled),
        far_vertices: count(|h| matches!(h, How::Far(_))),
        stats,
        warnings,
    })
}

/// The bound surface that weights are taken from.
struct Source {
    tree: TriangleTree,
    places: Vec<[u32; 3]>,
    normals: Vec<DVec3>,
    rows: Weights,
}

/// The closest point of the source to a place.
struct Point {
    row: Vec<Influence>,
    distance: f64,
    /// Whether its normal allows a match.
    agrees: bool,
}

struct Matches {
    points: Vec<Point>,
    /// Up to this distance a point may be matched.
    reach: f64,
}

impl Source {
    fn new(mesh: &Mesh, weights: &Weights) -> Result<Self> {
        let weld = mesh.weld();
        let rows = place_rows(weights, &weld);
        let places = mesh.triangles().iter().map(|t| t.map(|v| weld.place_of[v as usize]));
        let bound = |t: &[u32; 3]| t.iter().all(|&p| !rows.of(p as usize).is_empty());
        let places: Vec<[u32; 3]> = places.filter(bound).collect();
        if places.is_empty() {
            return Err(Error::Check("no face of the source has weights at all of its corners".into()));
        }
        let at = |p: u32| mesh.positions()[weld.first[p as usize] as usize];
        let tree = TriangleTree::new(places.iter().map(|t| t.map(at)).collect());
        Ok(Self { tree, normals: place_normals(mesh, &weld), places, rows })
    }

    fn matches(&self, target: &Mesh, weld: &Weld, params: &Params, progress: Progress) -> Result<Matches> {
        let normals = place_normals(target, weld);
        let reach = params.max_distance * target.bounds().diagonal();
        let allowed = Allowed { cosine: params.max_angle.to_radians().cos(), flipped: params.flipped, reach };
        let points = weld
            .first
            .par_iter()
            .enumerate()
            .map(|(place, &vertex)| {
                if place % 4096 == 0 {
                    progress.at(Stage::Prepare, 0.5)?;
                }
                Ok(self.point(target.positions()[vertex as usize], normals[place], &allowed))
            })
            .collect::<Result<_>>()?;
        Ok(Matches { points, reach })
    }

    /// The closest point to `p`, and whether it may be matched to a place of this normal.
    fn point(&self, p: DVec3, normal: DVec3, allowed: &Allowed) -> Point {
        let Some(at) = self.tree.closest(p) else {
            return Point { row: Vec::new(), distance: f64::INFINITY, agrees: false };
        };
        let (mut row, distance) = (Vec::new(), at.squared.sqrt());
        for (place, share) in self.places[at.triangle as usize].into_iter().zip(at.barycentric) {
            self.rows.of(place as usize).iter().for_each(|i| add(&mut row, i.joint, share * i.weight));
        }
        to_one(&mut row);
        let cosine = |at: SurfacePoint| {
            let facing = self.normal(at);
            // Where either has no direction there is nothing to disagree about.
            if normal == DVec3::ZERO || facing == DVec3::ZERO { 1.0 } else { normal.dot(facing) }
        };
        // A lining faces what it lies on. So does the outer side of a trouser leg that the other leg is nearer to, but the
        // leg that it belongs to is within reach and faces its way.
        let one_sided = || {
            let reach = allowed.reach * allowed.reach;
            self.tree.closest_where(p, reach, |other| cosine(other) >= allowed.cosine).is_none()
        };
        let agrees = cosine(at) >= allowed.cosine
            || (-cosine(at) >= allowed.cosine && (allowed.flipped || (distance <= allowed.reach && one_sided())));
        Point { row, distance, agrees }
    }

    /// The unit normal at a point of the source, blended from those of its triangle's corners; 0 where they cancel.
    fn normal(&self, at: SurfacePoint) -> DVec3 {
        let corners = self.places[at.triangle as usize].into_iter().zip(at.barycentric);
        corners.map(|(place, share)| self.normals[place as usize] * share).sum::<DVec3>().normalize_or_zero()
    }
}

/// What may be matched.
struct Allowed {
    /// Least cosine between the two normals.
    cosine: f64,
    flipped: bool,
    /// Largest distance.
    reach: f64,
}

/// Where a place of the target takes its weights from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Matched,
    Filled,
    /// From the point that this place of its component is closest to.
    Far(usize),
}

fn choose(matches: &Matches, weld: &Weld, components: &Components) -> (Vec<How>, Vec<Warning>) {
    let points = &matches.points;
    let near = |place: usize| points[place].distance <= matches.reach;
    let mut nearest: Vec<Option<usize>> = vec![None; components.len()];
    let mut agreed = vec![false; components.len()];
    for (place, &component) in components.of_place.iter().enumerate() {
        let known = &mut nearest[component as usize];
        if known.is_none_or(|k| points[place].distance < points[k].distance) {
            *known = Some(place);
        }
        agreed[component as usize] |= near(place) && points[place].agrees;
    }
    let how = |(place, &component): (usize, &u32)| {
        let closest = nearest[component as usize].unwrap_or(place);
        match (near(place), near(closest)) {
            (_, false) => How::Far(closest),
            (true, _) if points[place].agrees || !agreed[component as usize] => How::Matched,
            _ => How::Filled,
        }
    };
    let chosen = components.of_place.iter().enumerate().map(how).collect();
    (chosen, warnings(matches, weld, components, &nearest, &agreed))
}

fn warnings(
    matches: &Matches,
    weld: &Weld,
    components: &Components,
    nearest: &[Option<usize>],
    agreed: &[bool],
) -> Vec<Warning> {
    let (mut far, mut turned) = (Vec::new(), Vec::new());
    for (component, closest) in nearest.iter().enumerate() {
        let Some(closest) = *closest else { continue };
        let count = components.vertices[component];
        let distance = matches.points[closest].distance;
        if distance > matches.reach {
            let (vertex, reach) = (weld.first[closest], matches.reach);
            let what = format!(
                "component {component} ({count} vertices) is far from the source: {distance:.4} at its nearest vertex \
                 ({vertex}), {reach:.4} are allowed; all of it follows the nearest point of the source"
            );
            far.push(Warning::new(Code::Far, what).component(component).vertices(count));
        } else if !agreed[component] {
            let what = format!(
                "component {component} ({count} vertices) faces away from the source everywhere; it was matched by \
                 distance alone"
            );
            turned.push(Warning::new(Code::Fallback, what).component(component).vertices(count));
        }
    }
    let mut all = summed_up(far, Code::Far, "are far from the source");
    all.extend(summed_up(turned, Code::Fallback, "face away from the source and were matched by distance alone"));
    all
}

/// The first warnings, and one for all the others together.
fn summed_up(mut each: Vec<Warning>, code: Code, what: &str) -> Vec<Warning> {
    if each.len() > MOST_NAMED {
        let rest = each.split_off(MOST_NAMED);
        let vertices = rest.iter().filter_map(|w| w.vertices).sum();
        let message = format!("{} more components ({vertices} vertices) {what}", rest.len());
        each.push(Warning::new(code, message).vertices(vertices));
    }
    each
}

/// Evens out the seam between what was matched and what was filled: filled places and their neighbours. Neighbours count
/// by their cotangent weights, so that the diagonals of quads do not show.
fn smooth_filled(laplacian: &Laplacian, rows: &Weights, chosen: &[How], steps: usize) -> Weights {
    let filled = |p: u32| chosen[p as usize] == How::Filled;
    let moves = |&p: &u32| filled(p) || laplacian.of(p).iter().any(|e| filled(e.0));
    let near: Vec<u32> = (0..rows.len() as u32).filter(moves).collect();
    let mut number = vec![None; rows.len()];
    near.iter().enumerate().for_each(|(i, &p)| number[p as usize] = Some(i));
    let mut moved: Vec<Vec<Influence>> = near.iter().map(|&p| rows.of(p as usize).to_vec()).collect();
    for _ in 0..steps {
        let now = |p: u32| number[p as usize].map_or(rows.of(p as usize), |i| moved[i].as_slice());
        let step = |&p: &u32| {
            let neighbors = laplacian.of(p).iter().map(|&(n, weight)| (now(n), weight));
            smooth_row(now(p), neighbors, SMOOTHING)
        };
        moved = near.par_iter().map(step).collect();
    }
    let mut all = Weights::with_capacity(rows.len(), 4 * rows.len());
    for (place, row) in rows.iter().enumerate() {
        all.push(number[place].map_or(row, |i| moved[i].as_slice()).iter().copied());
    }
    all
}
