//! Heat on the surface: every bone heats the places that see it, and a place's heat of a bone is the bone's weight.
//!
//! Bone heat as published (Baran and Popovic, "Automatic Rigging and Animation of 3D Characters", 2007):
//! `(L + diag(A h)) w_b = diag(A h) p_b`, solved exactly for all bones with one sparse factorisation. `docs/heat.md` has
//! the equation and how each parameter was chosen.

pub mod graph;
pub mod historical;
pub mod reference;
pub mod solve;
pub mod sources;
pub mod system;
pub mod visibility;

use glam::DVec3;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::geometry::topology::is_degenerate;
use crate::heat::cpu::{Heat, by_unknown};
use crate::heat::{nearby_order, sample};
use crate::model::{Code, Components, Influence, Mesh, Skeleton, Warning, Weld};
use crate::progress::{Progress, Stage};
use graph::Graph;
use system::System;
use visibility::Blockers;

/// How strongly a bone heats, against how well the surface conducts. Lowest posed error over three hand-weighted rigs.
pub const STRENGTH: f64 = 4.0;
/// The power that sharpens the normalised heats: none, as no power lowers the posed error on all three rigs.
pub const SHARPNESS: f64 = 1.0;
/// What counts as cold, as a share of the tolerance: once where a solve stops, once where heats are listed.
const COLD: f64 = 0.5;

/// How heat flows along the edges of a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conduction {
    /// By the cotangents of the angles opposite to an edge, none below 0; sources count by the area around a place. Does
    /// not depend on how finely the surface is divided.
    Cotangents,
    /// By the inverse of an edge's squared length; all sources count alike.
    #[default]
    Lengths,
}

/// Parameters of heat on the surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    pub conduction: Conduction,
    /// `c` in `h = c / d^2`, from 0.001 to 1000. Larger: weights follow the nearest bone more closely.
    pub strength: f64,
    /// The power to which normalised heats are raised, from 1 (plain) to 4.
    pub sharpness: f64,
    /// Most that a heat may be off the exact solution, from 1e-9 to 0.1.
    pub tolerance: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        let tolerance = crate::heat::TOLERANCE;
        Self { conduction: Conduction::default(), strength: STRENGTH, sharpness: SHARPNESS, tolerance }
    }
}

impl Parameters {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        crate::heat::Parameters {
            strength: self.strength,
            sharpness: self.sharpness,
            tolerance: self.tolerance,
            ..Default::default()
        }
        .check()
    }
}

/// The equation of a mesh and a skeleton.
pub struct Problem {
    pub system: System,
    /// Whether each welded place is in the system: in a connected part of the surface that has a source.
    pub reached: Vec<bool>,
    pub warnings: Vec<Warning>,
}

impl Problem {
    /// Finds what conducts, what each place sees, and which parts have a source.
    pub fn new(
        mesh: &Mesh,
        weld: &Weld,
        components: &Components,
        skeleton: &Skeleton,
        use_bone: &[bool],
        conduction: Conduction,
        strength: f64,
    ) -> Self {
        let (graph, blockers) = rayon::join(|| Graph::new(mesh, weld, conduction), || Blockers::new(mesh, weld));
        let (use_bone, mut warnings) = sources::inside(&blockers, skeleton, use_bone);
        warnings.extend(degenerate(mesh));
        let sources = sources::sources(mesh, weld, &blockers, skeleton, &use_bone, graph.mass(), strength);
        let (system, reached) = System::new(&graph, &sources, &components.of_place);
        Self { system, reached, warnings }
    }
}

/// Warns of triangles without area.
fn degenerate(mesh: &Mesh) -> Option<Warning> {
    let flat = mesh.triangles().par_iter().filter(|t| is_degenerate(mesh.corners(**t))).count();
    let all = mesh.triangles().len();
    let message = format!(
        "{flat} of {all} triangles are degenerate (no area to speak of); their edges conduct, they hide nothing"
    );
    (flat > 0).then(|| Warning::new(Code::DegenerateFaces, message))
}

/// Heat on the surface, ready to be asked for the raw weights of places.
pub struct Heated {
    /// For each place its first heat.
    first: Vec<u32>,
    heats: Vec<Heat>,
    sharpness: f64,
    /// The largest residual over the diagonal of its row: the most that one more sweep would change a heat.
    pub residual: f64,
    pub warnings: Vec<Warning>,
}

impl Heated {
    /// Puts the raw weights of a welded place into `raw` (which is empty): every bone that reaches it, sharpened, not cut.
    /// None where the place is in a part of the surface that sees no bone.
    pub fn raw_weights(&self, place: usize, raw: &mut Vec<Influence>) {
        let heats = &self.heats[self.first[place] as usize..self.first[place + 1] as usize];
        raw.extend(heats.iter().map(|h| Influence { joint: h.bone, weight: h.heat }));
        sample::sharpen(raw, self.sharpness);
    }
}

/// Heat of all bones on a surface. Bones without `use_bone` take no part.
///
/// # Errors
/// [`Error::Parameter`] for a parameter outside its range, [`Error::Length`] where `use_bone` has not one entry a bone,
/// [`Error::Limit`] for a mesh too large to factorise, and [`Error::Cancelled`].
pub fn surface_heat(
    mesh: &Mesh,
    weld: &Weld,
    components: &Components,
    skeleton: &Skeleton,
    use_bone: &[bool],
    parameters: &Parameters,
    progress: Progress,
) -> Result<Heated> {
    parameters.check()?;
    if use_bone.len() != skeleton.len() {
        return Err(Error::Length { what: "bones to use", found: use_bone.len(), expected: skeleton.len() });
    }
    progress.at(Stage::Heat, 0.0)?;
    let problem = Problem::new(mesh, weld, components, skeleton, use_bone, parameters.conduction, parameters.strength);
    let system = &problem.system;
    let at = |&place: &u32| mesh.positions()[weld.first[place as usize] as usize];
    let positions: Vec<DVec3> = system.place.iter().map(at).collect();
    let cold = COLD * parameters.tolerance;
    let solved = solve::solve(system, &positions, skeleton.len(), &nearby_order(skeleton), cold, progress)?;
    let placed = |(unknown, heat): (u32, Heat)| (system.place[unknown as usize], heat);
    let groups: Vec<Vec<(u32, Heat)>> =
        solved.groups.into_iter().map(|group| group.into_iter().map(placed).collect()).collect();
    let (heats, first) = by_unknown(weld.places(), groups.iter().map(Vec::as_slice));
    let residual = solved.residual;
    Ok(Heated { first, heats, sharpness: parameters.sharpness, residual, warnings: problem.warnings })
}
