//! Nested dissection of a graph whose vertices lie in space (George, "Nested Dissection of a Regular Finite Element Mesh",
//! 1973): an order of elimination that keeps a sparse factor sparse, as a tree of pieces that can be worked on at once.
//!
//! Each cut is the best of those across the longest side of the box around the vertices, and those that a flood from one end
//! comes by (George and Liu, "An Automatic Nested Dissection Algorithm for Irregular Finite Element Problems", 1978): the
//! first are short across patches, the second find wrists, necks and shoulders.

use std::sync::atomic::{AtomicU32, Ordering};

use glam::DVec3;

use crate::model::Bounds;

/// No parent.
pub const NONE: u32 = u32::MAX;
/// Above so many vertices both halves are cut at the same time.
const PARALLEL: usize = 4096;
/// Up to so many vertices no flood is tried.
const SMALL: usize = 100;
/// Steps along the longest side of the box around all vertices.
const STEPS: f64 = (1 << 20) as f64;
/// Most slices that vertices are sorted into.
const MOST_SLICES: usize = 2048;
/// Least share of the vertices on either side of a cut.
const LEAST_SHARE: f64 = 0.2;

/// Vertices that are eliminated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The first of its positions in the order of elimination, and the one after the last.
    pub start: u32,
    pub end: u32,
    /// The piece that separates this one, with what hangs on it, from a sibling; [`NONE`] for a root.
    pub parent: u32,
}

/// An order of elimination, cut into pieces.
#[derive(Debug, Clone, PartialEq)]
pub struct Dissection {
    /// The vertex at each position.
    pub order: Vec<u32>,
    /// Children come before their parents, and all below a piece right before it. No two pieces of which neither is below
    /// the other have neighbours in each other.
    pub pieces: Vec<Piece>,
}

#[derive(Debug, Clone, Copy)]
struct Vertex {
    /// In steps of the longest side of the box around all vertices / [`STEPS`].
    at: [i32; 3],
    number: u32,
}

/// Cuts a graph until pieces have at most `leaf` vertices. The neighbours of vertex v are
/// `neighbors[first[v]..first[v + 1]]`; neighbours should be near each other in space.
pub fn dissect(first: &[u32], neighbors: &[u32], positions: &[DVec3], leaf: usize) -> Dissection {
    let mut vertices = on_lattice(positions);
    let position = (0..vertices.len() as u32).map(AtomicU32::new).collect();
    let graph = Graph { first, neighbors, position, leaf };
    let pieces = if vertices.is_empty() { Vec::new() } else { graph.cut(&mut vertices, 0) };
    Dissection { order: vertices.iter().map(|v| v.number).collect(), pieces }
}

/// Rounded, so that the last bits of coordinates (the unit of length) decide nothing.
fn on_lattice(positions: &[DVec3]) -> Vec<Vertex> {
    let nothing = Bounds { min: DVec3::ZERO, max: DVec3::ZERO };
    let bounds = Bounds::of(positions.iter().copied()).unwrap_or(nothing);
    let steps = STEPS / bounds.extent().max_element().max(f64::MIN_POSITIVE);
    let at = |p: &DVec3| ((*p - bounds.min) * steps).round().as_ivec3().to_array();
    positions.iter().enumerate().map(|(i, p)| Vertex { at: at(p), number: i as u32 }).collect()
}

struct Graph<'a> {
    first: &'a [u32],
    neighbors: &'a [u32],
    /// The position of each vertex at the moment. Vertices that are cut apart from each other are in separate ranges, so
    /// each is read and written by one thread only.
    position: Vec<AtomicU32>,
    leaf: usize,
}

/// A way to cut vertices in an order: how many come before the cut, and whether the separator is taken from those.
#[derive(Clone, Copy)]
struct Cut {
    before: usize,
    from_before: bool,
    score: f64,
}

impl Graph<'_> {
    /// Orders these vertices, whose first gets position `start`, and returns their pieces: parents count from the first.
    fn cut(&self, vertices: &mut [Vertex], start: u32) -> Vec<Piece> {
        let end = start + vertices.len() as u32;
        if vertices.len() <= self.leaf {
            self.place(vertices, start);
            return vec![Piece { start, end, parent: NONE }];
        }
        let cut = self.best_cut(vertices, start);
        let (low, high) = (start, start + cut.before as u32);
        let first = if cut.from_before {
            let far = vertices.len() - cut.before;
            partition(vertices, |v| self.position(v.number) >= high);
            far + partition(&mut vertices[far..], |v| !self.borders(v.number, high..end))
        } else {
            cut.before + partition(&mut vertices[cut.before..], |v| !self.borders(v.number, low..high))
        };
        let split = if cut.from_before { vertices.len() - cut.before } else { cut.before };
        self.place(vertices, start);
        let (near, rest) = vertices.split_at_mut(split);
        let far = &mut rest[..first - split];
        let below = |part: &mut [Vertex], at: usize| {
            if part.is_empty() { Vec::new() } else { self.cut(part, start + at as u32) }
        };
        let (mut pieces, right) = if first > PARALLEL {
            rayon::join(|| below(near, 0), || below(far, split))
        } else {
            (below(near, 0), below(far, split))
        };
        let shift = pieces.len() as u32;
        let shifted = |p: Piece| Piece { parent: if p.parent == NONE { NONE } else { p.parent + shift }, ..p };
        pieces.extend(right.into_iter().map(shifted));
        let separator = start + first as u32;
        if separator < end {
            let last = pieces.len() as u32;
            pieces.iter_mut().filter(|p| p.parent == NONE).for_each(|p| p.parent = last);
            pieces.push(Piece { start: separator, end, parent: NONE });
        }
        pieces
    }

    /// Brings the vertices into the order of the best cut.
    fn best_cut(&self, vertices: &mut [Vertex], start: u32) -> Cut {
        sort_along_longest(vertices);
        self.place(vertices, start);
        let straight = self.measure(vertices, start);
        if vertices.len() <= SMALL {
            return straight;
        }
        let flooded = self.flood(vertices, start);
        self.place(&flooded, start);
        let flood = self.measure(&flooded, start);
        if flood.score < straight.score {
            vertices.copy_from_slice(&flooded);
            return flood;
        }
        self.place(vertices, start);
        straight
    }

    /// The best place to cut vertices in the order they are in: where the separator is small and the sides are of like size.
    fn measure(&self, vertices: &[Vertex], start: u32) -> Cut {
        let n = vertices.len();
        // How the separator grows from each place to the next, taken from the vertices behind it and from those before.
        let mut growth = vec![[0i32; 2]; n + 2];
        for (i, v) in vertices.iter().enumerate() {
            let (mut least, mut most) = (i, i);
            for at in self.around(v.number, start, n) {
                least = least.min(at);
                most = most.max(at);
            }
            // Behind the cut, with a neighbour before it.
            growth[least + 1][0] += 1;
            growth[i + 1][0] -= 1;
            // Before the cut, with a neighbour behind it.
            growth[i + 1][1] += 1;
            growth[most + 1][1] -= 1;
        }
        let least = ((n as f64 * LEAST_SHARE) as usize).max(1);
        let mut best = Cut { before: n / 2, from_before: false, score: f64::INFINITY };
        let mut sizes = [0; 2];
        for (before, growth) in growth.iter().enumerate().take(n - least + 1) {
            sizes[0] += growth[0];
            sizes[1] += growth[1];
            if before < least {
                continue;
            }
            for (size, from_before) in [(sizes[0], false), (sizes[1], true)] {
                // The work grows with the square or cube of a separator, and by the depth of the tree below it.
                let share = before.min(n - before) as f64 / n as f64;
                let score = (f64::from(size) + 0.5) / share.sqrt();
                if score < best.score {
                    best = Cut { before, from_before, score };
                }
            }
        }
        best
    }

    /// The vertices in the order in which a flood from the first one reaches them.
    fn flood(&self, vertices: &[Vertex], start: u32) -> Vec<Vertex> {
        let mut order: Vec<Vertex> = Vec::with_capacity(vertices.len());
        let mut seen = vec![false; vertices.len()];
        let mut next = 0;
        for (i, &v) in vertices.iter().enumerate() {
            if std::mem::replace(&mut seen[i], true) {
                continue;
            }
            order.push(v);
            while next < order.len() {
                for at in self.around(order[next].number, start, vertices.len()) {
                    if !std::mem::replace(&mut seen[at], true) {
                        order.push(vertices[at]);
                    }
                }
                next += 1;
            }
        }
        order
    }

    /// The neighbours of a vertex among the `n` that begin at position `start`, counted from there.
    fn around(&self, vertex: u32, start: u32, n: usize) -> impl Iterator<Item = usize> + '_ {
        let range = self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize;
        self.neighbors[range]
            .iter()
            .map(move |&v| self.position(v).wrapping_sub(start) as usize)
            .filter(move |&at| at < n)
    }

    /// Whether a vertex has a neighbour in a range of positions.
    fn borders(&self, vertex: u32, range: std::ops::Range<u32>) -> bool {
        self.around(vertex, range.start, range.len()).next().is_some()
    }

    fn position(&self, vertex: u32) -> u32 {
        self.position[vertex as usize].load(Ordering::Relaxed)
    }

    fn place(&self, vertices: &[Vertex], start: u32) {
        vertices.iter().zip(start..).for_each(|(v, at)| self.position[v.number as usize].store(at, Ordering::Relaxed));
    }
}

/// Sorts vertices along the longest side of the box around them; of many only into so many slices.
fn sort_along_longest(vertices: &mut [Vertex]) {
    let (mut low, mut high) = ([i32::MAX; 3], [i32::MIN; 3]);
    for v in vertices.iter() {
        for axis in 0..3 {
            low[axis] = low[axis].min(v.at[axis]);
            high[axis] = high[axis].max(v.at[axis]);
        }
    }
    let side = |axis: usize| high[axis] - low[axis];
    let axis = (0..3).fold(0, |best, axis| if side(axis) > side(best) { axis } else { best });
    if vertices.len() <= SMALL {
        vertices.sort_unstable_by(|a, b| (a.at[axis], a.number).cmp(&(b.at[axis], b.number)));
        return;
    }
    let slices = (vertices.len() / 4).min(MOST_SLICES);
    let slice = |v: &Vertex| (v.at[axis] - low[axis]) as usize * slices / (side(axis) as usize + 1);
    let mut next = vec![0u32; slices + 1];
    vertices.iter().for_each(|v| next[slice(v) + 1] += 1);
    for i in 0..slices {
        next[i + 1] += next[i];
    }
    let unsorted = vertices.to_vec();
    for v in unsorted {
        let at = &mut next[slice(&v)];
        vertices[*at as usize] = v;
        *at += 1;
    }
}

/// Moves what `goes_first` to the front, each part in its order; returns how many those are.
fn partition(vertices: &mut [Vertex], goes_first: impl Fn(&Vertex) -> bool) -> usize {
    let mut rest = Vec::new();
    let mut count = 0;
    for i in 0..vertices.len() {
        if goes_first(&vertices[i]) {
            vertices[count] = vertices[i];
            count += 1;
        } else {
            rest.push(vertices[i]);
        }
    }
    vertices[count..].copy_from_slice(&rest);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An n x n grid with diagonals, and as many vertices apart from it that have no neighbours.
    fn grid(n: u32) -> (Vec<u32>, Vec<u32>, Vec<DVec3>) {
        let (mut first, mut neighbors, mut positions) = (vec![0], Vec::new(), Vec::new());
        for v in 0..n * n {
            let (x, y) = (i64::from(v % n), i64::from(v / n));
            for (dx, dy) in [(-1, -1), (0, -1), (-1, 0), (1, 0), (0, 1), (1, 1)] {
                let (x, y) = (x + dx, y + dy);
                if (0..i64::from(n)).contains(&x) && (0..i64::from(n)).contains(&y) {
                    neighbors.push((y * i64::from(n) + x) as u32);
                }
            }
            first.push(neighbors.len() as u32);
            positions.push(DVec3::new(x as f64, y as f64, 0.0));
        }
        for i in 0..n {
            first.push(neighbors.len() as u32);
            positions.push(DVec3::new(f64::from(i), 0.0, f64::from(n)));
        }
        (first, neighbors, positions)
    }

    #[test]
    fn pieces_part_the_graph() {
        let (first, neighbors, positions) = grid(60);
        let Dissection { order, pieces } = dissect(&first, &neighbors, &positions, 12);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(i, &v)| i as u32 == v));
        let mut piece_of = vec![NONE; order.len()];
        let mut next = 0;
        for (k, piece) in pieces.iter().enumerate() {
            assert!(piece.start == next && piece.end > next && (piece.parent == NONE || piece.parent > k as u32));
            next = piece.end;
            order[piece.start as usize..piece.end as usize].iter().for_each(|&v| piece_of[v as usize] = k as u32);
        }
        assert_eq!(next as usize, order.len());
        let above = |mut piece: u32, other: u32| {
            while piece < other {
                piece = pieces[piece as usize].parent;
            }
            piece == other
        };
        let apart = |piece_of: &[u32]| {
            let edges = (0..order.len())
                .flat_map(|v| neighbors[first[v] as usize..first[v + 1] as usize].iter().map(move |&w| (v, w)));
            edges.map(|(v, w)| (piece_of[v], piece_of[w as usize])).all(|(p, q)| above(p.min(q), p.max(q)))
        };
        assert!(apart(&piece_of));
        // Separators of a square of 3600 are 60 long or a little more; much less than all of it.
        assert!(pieces.iter().all(|p| p.end - p.start < 100));
        // Control: a vertex in another piece is noticed.
        let last = piece_of[order[order.len() - 1] as usize];
        let inner = (0..3600).find(|&v| piece_of[v] == last).unwrap();
        piece_of[inner] = 0;
        assert!(!apart(&piece_of));
    }

    #[test]
    fn scale_changes_nothing() {
        let (first, neighbors, positions) = grid(30);
        let one = dissect(&first, &neighbors, &positions, 8);
        let other: Vec<DVec3> = positions.iter().map(|&p| p * 1e-3 + DVec3::splat(0.7)).collect();
        assert_eq!(one, dissect(&first, &neighbors, &other, 8));
        assert_eq!(dissect(&[0], &[], &[], 8), Dissection { order: Vec::new(), pieces: Vec::new() });
    }
}
