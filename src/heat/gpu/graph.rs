//! The systems that the GPU solves: a weighted graph, and parts of it with four bones each.

use crate::error::{Error, Result};
use crate::heat::solid::NONE;

/// Bones solved side by side in a part: the four components of a vector of the shader.
pub const LANES: usize = crate::heat::multigrid::LANES;
/// A value for each of the bones of a part, as the device has it.
pub(super) type Short = [f32; LANES];
/// The same in f64.
pub type Lanes = crate::heat::multigrid::Lanes;

/// How the rows of a graph hang together.
#[derive(Debug, Clone, Copy)]
pub enum Links<'a> {
    /// Voxels: the neighbours over the six faces, [`NONE`] where there is none. Each link conducts 1.
    Faces(&'a [[u32; 6]]),
    /// Any graph: the neighbours of row r and the conductance to each of them are those from `first[r]` up to
    /// `first[r + 1]`. Both rows of a link must list it, with the same conductance.
    Weighted { first: &'a [u32], neighbor: &'a [u32], conductance: &'a [f64] },
}

/// A weighted graph, each row of which is tied to its sources: the system `(L + diag ground) x = right`.
#[derive(Debug, Clone, Copy)]
pub struct Graph<'a> {
    pub links: Links<'a>,
    /// The conductance between each row and its sources, not negative. Every connected part needs a row above 0.
    pub ground: &'a [f64],
}

/// The links of a part, by the part's own numbers.
#[derive(Debug, Clone)]
pub(super) enum PartLinks {
    Faces(Vec<[u32; 6]>),
    /// `ends[r]` is where the links of row r end.
    Weighted {
        ends: Vec<u32>,
        neighbor: Vec<u32>,
        conductance: Vec<f64>,
    },
}

/// Some rows of a graph with the right sides of up to four bones; beyond these rows heat is 0.
///
/// What is solved for is the way from a start to the solution: its rounding is relative to what is still missing and not to
/// the heat itself.
#[derive(Debug, Clone)]
pub struct Part {
    pub(super) rows: Vec<u32>,
    pub(super) start: Vec<Short>,
    /// What the start leaves over of the right sides.
    pub(super) right: Vec<Lanes>,
    /// Of each row what it loses other than over links, and 1 / diagonal.
    pub(super) losses: Vec<[f64; 2]>,
    pub(super) links: PartLinks,
}

impl<'a> Graph<'a> {
    /// The graph of voxels with these neighbours and conductances to their sources.
    pub fn of_voxels(neighbors: &'a [[u32; 6]], ground: &'a [f64]) -> Self {
        Self { links: Links::Faces(neighbors), ground }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ground.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ground.is_empty()
    }

    /// Entries of all links, of voxels six a row.
    pub fn links(&self) -> usize {
        match self.links {
            Links::Faces(neighbors) => 6 * neighbors.len(),
            Links::Weighted { neighbor, .. } => neighbor.len(),
        }
    }

    /// Checks that lists have their lengths, links lead to rows, and conductances are finite and not negative.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        let wrong = |value: String, allowed| Err(Error::Parameter { name: "graph", value, allowed });
        let rows = self.len();
        if let Some(row) = self.ground.iter().position(|g| !g.is_finite() || *g < 0.0) {
            let value = format!("{} at row {row}", self.ground[row]);
            return wrong(value, "conductances must be finite and not negative");
        }
        match self.links {
            Links::Faces(neighbors) => {
                if neighbors.len() != rows {
                    return wrong(format!("{} rows of neighbours", neighbors.len()), "there must be one for each row");
                }
                if let Some(n) = neighbors.iter().flatten().find(|&&n| n != NONE && n as usize >= rows) {
                    return wrong(format!("a link to row {n} of {rows}"), "links must lead to rows that are there");
                }
            }
            Links::Weighted { first, neighbor, conductance } => {
                let ends = first.last().map(|&end| end as usize);
                let in_order = first.len() == rows + 1 && first[0] == 0 && first.is_sorted();
                if !in_order || ends != Some(neighbor.len()) || conductance.len() != neighbor.len() {
                    return wrong(format!("{} starts of rows", first.len()), "they must divide up all links");
                }
                if let Some(n) = neighbor.iter().find(|&&n| n as usize >= rows) {
                    return wrong(format!("a link to row {n} of {rows}"), "links must lead to rows that are there");
                }
                if let Some(c) = conductance.iter().find(|c| !c.is_finite() || **c < 0.0) {
                    return wrong(c.to_string(), "conductances must be finite and not negative");
                }
            }
        }
        Ok(())
    }

    fn for_links(&self, row: u32, mut then: impl FnMut(u32, f64)) {
        match self.links {
            Links::Faces(neighbors) => {
                neighbors[row as usize].iter().filter(|&&n| n != NONE).for_each(|&n| then(n, 1.0));
            }
            Links::Weighted { first, neighbor, conductance } => {
                let links = first[row as usize] as usize..first[row as usize + 1] as usize;
                links.for_each(|link| then(neighbor[link], conductance[link]));
            }
        }
    }

    /// The diagonal of the matrix in a row: all its conductances.
    pub fn diagonal(&self, row: u32) -> f64 {
        let mut sum = self.ground[row as usize];
        self.for_links(row, |_, c| sum += c);
        sum
    }

    /// All rows, from zero. `right` gives the right sides of a row.
    pub fn whole(&self, right: impl Fn(u32) -> Lanes) -> Part {
        let rows = self.len() as u32;
        self.part(&mut Vec::new(), (0..rows).collect(), vec![[0.0; LANES]; rows as usize], right)
    }

    /// These rows, from a start. `right` gives the right sides of a row. `number` is scratch, to be kept from part to part
    /// of the same graph.
    pub fn part(&self, number: &mut Vec<u32>, rows: Vec<u32>, start: Vec<Short>, right: impl Fn(u32) -> Lanes) -> Part {
        number.resize(self.len(), NONE);
        for (i, &row) in rows.iter().enumerate() {
            number[row as usize] = i as u32;
        }
        let part = self.numbered(number, &rows, &start, right);
        for &row in &rows {
            number[row as usize] = NONE;
        }
        Part { rows, start, ..part }
    }

    fn numbered(&self, number: &[u32], rows: &[u32], start: &[Short], right: impl Fn(u32) -> Lanes) -> Part {
        let mut losses = Vec::with_capacity(rows.len());
        let mut rest = Vec::with_capacity(rows.len());
        let mut faces = Vec::new();
        let (mut ends, mut to, mut conducts) = (Vec::new(), Vec::new(), Vec::new());
        for (&row, own) in rows.iter().zip(start) {
            let own = own.map(f64::from);
            let ground = self.ground[row as usize];
            let (mut diagonal, mut loss, mut left) = (ground, ground, right(row));
            self.for_links(row, |other, c| {
                diagonal += c;
                let place = number[other as usize];
                let outside = place == NONE;
                loss += if outside { c } else { 0.0 };
                for l in 0..LANES {
                    let there = if outside { 0.0 } else { f64::from(start[place as usize][l]) };
                    left[l] += c * (there - own[l]);
                }
                if !outside && matches!(self.links, Links::Weighted { .. }) {
                    to.push(place);
                    conducts.push(c);
                }
            });
            match self.links {
                Links::Faces(neighbors) => {
                    faces.push(neighbors[row as usize].map(|n| if n == NONE { NONE } else { number[n as usize] }));
                }
                Links::Weighted { .. } => ends.push(to.len() as u32),
            }
            for l in 0..LANES {
                left[l] -= ground * own[l];
            }
            rest.push(left);
            // A row that conducts nowhere has nothing to be solved.
            losses.push([loss, if diagonal > 0.0 { 1.0 / diagonal } else { 0.0 }]);
        }
        let links = match self.links {
            Links::Faces(_) => PartLinks::Faces(faces),
            Links::Weighted { .. } => PartLinks::Weighted { ends, neighbor: to, conductance: conducts },
        };
        Part { rows: Vec::new(), start: Vec::new(), right: rest, losses, links }
    }
}

impl Part {
    /// The same part with these heats to start from: what is left over of the right sides is summed up in f64, so that rounding
    /// on the device becomes relative to what is still missing now.
    pub fn restarted(mut self, heats: &[Lanes]) -> Self {
        let start: Vec<Short> = heats.iter().map(|h| h.map(|h| h as f32)).collect();
        let moved = |row: usize, l: usize| f64::from(start[row][l]) - f64::from(self.start[row][l]);
        let moved: Vec<Lanes> = (0..start.len()).map(|row| std::array::from_fn(|l| moved(row, l))).collect();
        for (row, right) in self.right.iter_mut().enumerate() {
            let mut flow =
                |other: usize, c: f64| (0..LANES).for_each(|l| right[l] += c * (moved[other][l] - moved[row][l]));
            match &self.links {
                PartLinks::Faces(faces) => {
                    faces[row].iter().filter(|&&n| n != NONE).for_each(|&n| flow(n as usize, 1.0));
                }
                PartLinks::Weighted { ends, neighbor, conductance } => {
                    let first = row.checked_sub(1).map_or(0, |before| ends[before]) as usize;
                    (first..ends[row] as usize).for_each(|link| flow(neighbor[link] as usize, conductance[link]));
                }
            }
            (0..LANES).for_each(|l| right[l] -= self.losses[row][0] * moved[row][l]);
        }
        self.start = start;
        self
    }

    /// The graph's numbers of its rows.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Entries of its links, of voxels six a row.
    pub fn links(&self) -> usize {
        match &self.links {
            PartLinks::Faces(faces) => 6 * faces.len(),
            PartLinks::Weighted { neighbor, .. } => neighbor.len(),
        }
    }

    pub(super) fn is_of_voxels(&self) -> bool {
        matches!(self.links, PartLinks::Faces(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: ([u32; 4], [u32; 4], [f64; 4]) = ([0, 1, 3, 4], [1, 0, 2, 1], [2.0, 2.0, 0.5, 0.5]);

    fn path(ground: &[f64]) -> Graph<'_> {
        let (first, neighbor, conductance) = (&PATH.0, &PATH.1, &PATH.2);
        Graph { links: Links::Weighted { first, neighbor, conductance }, ground }
    }

    #[test]
    fn rows_beyond_a_part_are_losses() {
        let ground = [1.0, 0.0, 4.0];
        let graph = path(&ground);
        assert_eq!((graph.check().is_ok(), graph.diagonal(1), graph.links()), (true, 2.5, 4));
        let mut number = Vec::new();
        let part = graph.part(&mut number, vec![1, 2], vec![[1.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0]], |_| [3.0; 4]);
        assert!(number.iter().all(|&n| n == NONE));
        assert_eq!(part.losses, [[2.0, 0.4], [4.0, 1.0 / 4.5]]);
        // 3 - 2.5 x 1 + 0.5 x 0.5, and 3 - 4.5 x 0.5 + 0.5 x 1.
        assert_eq!(part.right[0], [0.75, 3.0, 3.0, 3.0]);
        assert_eq!(part.right[1], [1.25, 3.0, 3.0, 3.0]);
        // Started anew it is the same as started there in the first place.
        let there = [[0.5, 1.0, 0.0, 0.0], [0.25, 0.0, 2.0, 0.0]];
        let anew = part.clone().restarted(&there);
        let first = graph.part(&mut number, vec![1, 2], there.map(|h| h.map(|h| h as f32)).to_vec(), |_| [3.0; 4]);
        assert_eq!((&anew.right, &anew.start), (&first.right, &first.start));
        assert_ne!(anew.right, part.right);
        let PartLinks::Weighted { ends, neighbor, conductance } = &part.links else { panic!("weighted") };
        assert_eq!((&ends[..], &neighbor[..], &conductance[..]), (&[1, 2][..], &[1, 0][..], &[0.5, 0.5][..]));
    }

    #[test]
    fn broken_graphs_are_named() {
        let named = |graph: Graph, what: &str| {
            let error = graph.check().expect_err(what).to_string();
            assert!(error.contains(what), "{error}");
        };
        named(path(&[1.0, f64::NAN, 0.0]), "row 1");
        named(path(&[1.0, -1.0, 0.0]), "row 1");
        named(path(&[1.0, 0.0]), "starts of rows");
        let ground = [1.0; 3];
        let (first, neighbor, conductance) = (&PATH.0[..], &PATH.1[..], &PATH.2[..]);
        let with = |first, neighbor, conductance| Graph {
            links: Links::Weighted { first, neighbor, conductance },
            ground: &ground,
        };
        named(with(&[0, 1, 3, 3], neighbor, conductance), "starts of rows");
        named(with(&[0, 3, 1, 4], neighbor, conductance), "starts of rows");
        named(with(first, &[1, 0, 3, 1], conductance), "row 3");
        named(with(first, neighbor, &[1.0, 1.0, f64::INFINITY, 1.0]), "inf");
        named(Graph::of_voxels(&[[NONE; 6]; 2], &ground), "2 rows");
        named(Graph::of_voxels(&[[7, NONE, NONE, NONE, NONE, NONE]; 3], &ground), "row 7");
    }
}
