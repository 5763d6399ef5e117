//! The equation of heat on a surface, `(L + diag g) w_b = diag(g) p_b`, as plain arrays that any solver or device can take.

use crate::heat::surface::graph::Graph;
use crate::heat::surface::sources::Sources;

const NONE: u32 = u32::MAX;
/// Least share of the places of a part that must see a bone.
const LEAST_SEEING: f64 = 0.5;

/// The equation to solve, over the places that some bone can heat. Plain numbers; nothing in it depends on the unit of length.
///
/// Unknown `i` is the heat at the welded place `place[i]`. Row i of the matrix has `source[i]` plus the sum of its
/// conductances on the diagonal and minus the conductance at each neighbour. The matrix is symmetric, and, as every
/// connected part has a source above 0, positive definite.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct System {
    /// The welded place of each unknown, ascending.
    pub place: Vec<u32>,
    /// The neighbours of unknown i are entries `first[i]..first[i + 1]` of `neighbor` and `conductance`.
    pub first: Vec<u32>,
    /// Unknowns joined to each unknown by an edge, ascending.
    pub neighbor: Vec<u32>,
    /// What flows along each of these edges for a difference of 1; above 0, the same both ways.
    pub conductance: Vec<f64>,
    /// `g`: what flows from the bones into each unknown for a difference of 1; 0 where no bone heats it.
    pub source: Vec<f64>,
    /// The bones that heat unknown i are `heaters[heater_first[i]..heater_first[i + 1]]`, in equal shares (`p`).
    pub heater_first: Vec<u32>,
    /// Indices of bones.
    pub heaters: Vec<u32>,
}

impl System {
    /// The equation of the parts of a surface that have sources, and for each place whether it is in one. `part` numbers the
    /// connected part of each place.
    ///
    /// A part without a source would make the matrix singular. One of which most places see no bone, as of clothes over a
    /// body, is left out as well: what it sees through its openings is not what should move it. But where there are no
    /// others, all that have a source are taken.
    pub fn new(graph: &Graph, sources: &Sources, part: &[u32]) -> (Self, Vec<bool>) {
        let heated = heated_parts(sources, part);
        let reached: Vec<bool> = part.iter().map(|&p| heated[p as usize]).collect();
        let mut unknown = vec![NONE; part.len()];
        let place: Vec<u32> = (0..part.len() as u32).filter(|&p| reached[p as usize]).collect();
        place.iter().enumerate().for_each(|(i, &p)| unknown[p as usize] = i as u32);
        let mut system = Self { first: vec![0], heater_first: vec![0], ..Self::default() };
        let edges = place.iter().map(|&p| graph.of(p).len()).sum();
        system.neighbor.reserve_exact(edges);
        system.conductance.reserve_exact(edges);
        for &p in &place {
            // A place's neighbours are in its part, so they are unknowns too.
            system.neighbor.extend(graph.of(p).iter().map(|e| unknown[e.0 as usize]));
            system.conductance.extend(graph.of(p).iter().map(|e| e.1));
            system.first.push(system.neighbor.len() as u32);
            system.source.push(sources.conductance[p as usize]);
            system.heaters.extend_from_slice(sources.of(p));
            system.heater_first.push(system.heaters.len() as u32);
        }
        (Self { place, ..system }, reached)
    }

    /// How many unknowns there are.
    pub fn len(&self) -> usize {
        self.place.len()
    }

    /// Whether no place is heated at all.
    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// The neighbours of an unknown with the conductances to them.
    pub fn edges(&self, i: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let range = self.first[i] as usize..self.first[i + 1] as usize;
        self.neighbor[range.clone()].iter().copied().zip(self.conductance[range].iter().copied())
    }

    /// The bones that heat an unknown, in equal shares.
    pub fn heaters_of(&self, i: usize) -> &[u32] {
        &self.heaters[self.heater_first[i] as usize..self.heater_first[i + 1] as usize]
    }

    /// The diagonal of the matrix at an unknown.
    pub fn diagonal(&self, i: usize) -> f64 {
        self.source[i] + self.edges(i).map(|e| e.1).sum::<f64>()
    }

    /// The right-hand side of every bone of a skeleton of so many: its unknowns, ascending, with `g p`. All else is 0.
    pub fn right_sides(&self, bones: usize) -> Vec<Vec<(u32, f64)>> {
        let mut sides = vec![Vec::new(); bones];
        for i in 0..self.len() {
            let heaters = self.heaters_of(i);
            for &bone in heaters {
                sides[bone as usize].push((i as u32, self.source[i] / heaters.len() as f64));
            }
        }
        sides
    }
}

/// Which parts are heated.
fn heated_parts(sources: &Sources, part: &[u32]) -> Vec<bool> {
    let mut seeing = vec![(0u32, 0u32); part.iter().max().map_or(0, |&m| m as usize + 1)];
    for (place, &part) in part.iter().enumerate() {
        let (sees, all) = &mut seeing[part as usize];
        *sees += u32::from(sources.conductance[place] > 0.0);
        *all += 1;
    }
    let most = |&(sees, all): &(u32, u32)| sees > 0 && f64::from(sees) >= LEAST_SEEING * f64::from(all);
    let enough = seeing.iter().any(most);
    seeing.iter().map(|s| if enough { most(s) } else { s.0 > 0 }).collect()
}
