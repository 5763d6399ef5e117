//! Nested dissection of a graph whose vertices lie in space (George, "Nested Dissection of a Regular Finite Element Mesh",
//! 1973): an order of elimination that keeps a sparse factor sparse, as a tree of pieces that can be worked on at once.

use std::sync::atomic::{AtomicU32, Ordering};

use glam::DVec3;

/// No parent.
pub const NONE: u32 = u32::MAX;
/// Above so many vertices both halves are cut at the same time.
const PARALLEL: usize = 4096;

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

#[derive(Clone, Copy)]
struct Vertex {
    at: [f32; 3],
    number: u32,
}

/// Cuts a graph until pieces have at most `leaf` vertices. The neighbours of vertex v are
/// `neighbors[first[v]..first[v + 1]]`; neighbours should be near each other in space.
pub fn dissect(first: &[u32], neighbors: &[u32], positions: &[DVec3], leaf: usize) -> Dissection {
    let number = |(i, p): (usize, &DVec3)| Vertex { at: p.as_vec3().to_array(), number: i as u32 };
    let mut vertices: Vec<Vertex> = positions.iter().enumerate().map(number).collect();
    let side = (0..vertices.len()).map(|_| AtomicU32::new(0)).collect();
    let graph = Graph { first, neighbors, side, leaf };
    let pieces = if vertices.is_empty() { Vec::new() } else { graph.cut(&mut vertices, 0, 1) };
    Dissection { order: vertices.iter().map(|v| v.number).collect(), pieces }
}

struct Graph<'a> {
    first: &'a [u32],
    neighbors: &'a [u32],
    /// In which half of the last cut through it each vertex was: twice the number of the cut, plus 0 or 1.
    side: Vec<AtomicU32>,
    leaf: usize,
}

impl Graph<'_> {
    /// Orders these vertices, whose first gets position `start`, and returns their pieces: parents count from the first.
    fn cut(&self, vertices: &mut [Vertex], start: u32, number: u32) -> Vec<Piece> {
        let end = start + vertices.len() as u32;
        if vertices.len() <= self.leaf {
            return vec![Piece { start, end, parent: NONE }];
        }
        let half = halve(vertices);
        for (i, v) in vertices.iter().enumerate() {
            self.side[v.number as usize].store(2 * number + u32::from(i >= half), Ordering::Relaxed);
        }
        // The vertices of one half that have neighbours in the other; those of the half that has fewer of them.
        let border = |half: &[Vertex], other: u32| half.iter().filter(|v| self.borders(v.number, other)).count();
        let (low, high) = vertices.split_at(half);
        let from_low = border(low, 2 * number + 1) < border(high, 2 * number);
        // The separator goes to the end.
        let (first, second) = if from_low {
            vertices.rotate_left(half);
            (vertices.len() - half, 2 * number + 1)
        } else {
            (half, 2 * number)
        };
        let apart = first + partition(&mut vertices[first..], |v| !self.borders(v.number, second));
        let (near, rest) = vertices.split_at_mut(first);
        let far = &mut rest[..apart - first];
        let (middle, separator) = (start + first as u32, start + apart as u32);
        let left = |near: &mut [Vertex]| self.cut(near, start, 2 * number);
        let right = |far: &mut [Vertex]| {
            if far.is_empty() { Vec::new() } else { self.cut(far, middle, 2 * number + 1) }
        };
        let (mut pieces, right) =
            if apart > PARALLEL { rayon::join(|| left(near), || right(far)) } else { (left(near), right(far)) };
        let shift = pieces.len() as u32;
        let shifted = |p: Piece| Piece { parent: if p.parent == NONE { NONE } else { p.parent + shift }, ..p };
        pieces.extend(right.into_iter().map(shifted));
        if separator < end {
            let last = pieces.len() as u32;
            pieces.iter_mut().filter(|p| p.parent == NONE).for_each(|p| p.parent = last);
            pieces.push(Piece { start: separator, end, parent: NONE });
        }
        pieces
    }

    /// Whether a vertex has a neighbour on a side.
    fn borders(&self, vertex: u32, side: u32) -> bool {
        let range = self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize;
        self.neighbors[range].iter().any(|&n| self.side[n as usize].load(Ordering::Relaxed) == side)
    }
}

/// Sorts the lower half along the longest side of the box around the vertices to the front; returns how many they are.
fn halve(vertices: &mut [Vertex]) -> usize {
    let (mut low, mut high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
    for v in vertices.iter() {
        for axis in 0..3 {
            low[axis] = low[axis].min(v.at[axis]);
            high[axis] = high[axis].max(v.at[axis]);
        }
    }
    let side = |axis: usize| high[axis] - low[axis];
    let axis = (0..3).fold(0, |best, axis| if side(axis) > side(best) { axis } else { best });
    let half = vertices.len() / 2;
    vertices.select_nth_unstable_by(half, |a, b| a.at[axis].total_cmp(&b.at[axis]).then(a.number.cmp(&b.number)));
    half
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
