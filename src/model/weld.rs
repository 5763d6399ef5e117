//! Coincident vertices taken together, and the connected parts of a mesh.

use glam::DVec3;

use crate::model::{Components, Mesh, Weld};

const NONE: u32 = u32::MAX;

impl Mesh {
    /// Takes vertices at bit-equal positions (-0 = 0) together, in time proportional to their number.
    pub fn weld(&self) -> Weld {
        let positions = self.positions();
        // Open addressing at a load of at most one half.
        let mask = (positions.len() * 2).next_power_of_two() - 1;
        let mut table = vec![NONE; mask + 1];
        let mut place_of = Vec::with_capacity(positions.len());
        let mut first: Vec<u32> = Vec::with_capacity(positions.len());
        for (vertex, &p) in positions.iter().enumerate() {
            let key = bits(p);
            let mut slot = hash(key) & mask;
            let place = loop {
                match table[slot] {
                    NONE => {
                        table[slot] = first.len() as u32;
                        first.push(vertex as u32);
                        break table[slot];
                    }
                    place if bits(positions[first[place as usize] as usize]) == key => break place,
                    _ => slot = (slot + 1) & mask,
                }
            };
            place_of.push(place);
        }
        Weld { place_of, first }
    }

    /// The parts of the mesh that are connected over edges. A vertex without a face is a part of its own.
    pub fn components(&self, weld: &Weld) -> Components {
        let mut parent: Vec<u32> = (0..weld.places() as u32).collect();
        for corners in self.triangles() {
            let [a, b, c] = corners.map(|v| weld.place_of[v as usize]);
            union(&mut parent, a, b);
            union(&mut parent, a, c);
        }
        let mut number = vec![NONE; weld.places()];
        let mut of_place = vec![0; weld.places()];
        let mut count = 0;
        for place in 0..weld.places() as u32 {
            let root = find(&mut parent, place) as usize;
            if number[root] == NONE {
                number[root] = count;
                count += 1;
            }
            of_place[place as usize] = number[root];
        }
        let mut vertices = vec![0; count as usize];
        for &place in &weld.place_of {
            vertices[of_place[place as usize] as usize] += 1;
        }
        Components { of_place, vertices }
    }
}

/// Adding 0 turns -0 into 0.
fn bits(p: DVec3) -> [u64; 3] {
    (p + DVec3::ZERO).to_array().map(f64::to_bits)
}

/// Multiply and fold: coordinates differ in their high bits as often as in their low ones.
fn hash(key: [u64; 3]) -> usize {
    let mut h = 0u64;
    for word in key {
        let wide = u128::from(h ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
        h = (wide >> 64) as u64 ^ wide as u64;
    }
    h as usize
}

fn find(parent: &mut [u32], mut at: u32) -> u32 {
    while parent[at as usize] != at {
        parent[at as usize] = parent[parent[at as usize] as usize];
        at = parent[at as usize];
    }
    at
}

/// The smaller index becomes the root.
fn union(parent: &mut [u32], a: u32, b: u32) {
    let (a, b) = (find(parent, a), find(parent, b));
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    parent[high as usize] = low;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh(points: &[[f64; 3]], triangles: &[[u32; 3]]) -> Mesh {
        Mesh::new(points.iter().map(|&p| DVec3::from_array(p)).collect(), triangles.to_vec()).unwrap()
    }

    #[test]
    fn coincident_vertices_share_a_place_and_minus_zero_is_zero() {
        let m = mesh(
            &[[0., 0., 0.], [1., 0., 0.], [0., 1., 0.], [-0., 0., 0.], [1., 0., 0.], [0., 1.0 + 1e-15, 0.]],
            &[[0, 1, 2], [3, 4, 5]],
        );
        let weld = m.weld();
        assert_eq!(weld.place_of, [0, 1, 2, 0, 1, 3]);
        assert_eq!(weld.first, [0, 1, 2, 5]);
    }

    #[test]
    fn components_are_connected_over_welded_places() {
        let m = mesh(
            &[
                [0., 0., 0.],
                [1., 0., 0.],
                [0., 1., 0.],
                [5., 0., 0.],
                [6., 0., 0.],
                [5., 1., 0.],
                [9., 9., 9.],
                [0., 0., 0.],
            ],
            &[[3, 4, 5], [0, 1, 2]],
        );
        let weld = m.weld();
        let parts = m.components(&weld);
        assert_eq!(parts.vertices, [4, 3, 1]);
        assert_eq!(parts.of_place, [0, 0, 0, 1, 1, 1, 2]);
    }
}
