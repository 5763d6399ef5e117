//! The node tree: parents, and world transforms in f64 (glTF 2.0, section 3.5).

use glam::{DMat4, DQuat, DVec3};
use serde_json::Value;

use super::Document;
use super::json::{indices, numbers};
use crate::error::{Error, Result};

/// How far the last row of a matrix may be from (0, 0, 0, 1): what exporters leave when they compute it in f32.
const AFFINE: f64 = 1e-5;

/// Every node's parent and world transform in the pose that the nodes hold.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub parent: Vec<Option<usize>>,
    pub children: Vec<Vec<usize>>,
    pub world: Vec<DMat4>,
    pub parents_first: Vec<usize>,
}

impl Scene {
    /// For each node the nearest node above it that `wanted` picks. One pass: chains may be long.
    pub fn nearest_above(&self, wanted: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
        let mut nearest = vec![None; self.parent.len()];
        for &n in &self.parents_first {
            nearest[n] = self.parent[n].and_then(|p| if wanted(p) { Some(p) } else { nearest[p] });
        }
        nearest
    }

    /// For each node the root it hangs on; a root's is itself.
    pub fn tops(&self) -> Vec<usize> {
        let above = self.nearest_above(|n| self.parent[n].is_none());
        above.into_iter().enumerate().map(|(n, top)| top.unwrap_or(n)).collect()
    }
}

impl Document {
    /// The node tree.
    ///
    /// # Errors
    /// A node that is not there, has two parents, is its own ancestor, or has a transform that is not affine and finite.
    pub(super) fn scene(&self) -> Result<Scene> {
        let nodes = self.list("nodes")?;
        let mut parent = vec![None; nodes.len()];
        let mut children = Vec::with_capacity(nodes.len());
        for (n, node) in nodes.iter().enumerate() {
            let below = indices(node, "children", nodes.len(), &self.node_place(n))?;
            for &child in &below {
                if let Some(other) = parent[child].replace(n) {
                    let what = format!("has two parents, node {other} and node {n}");
                    return Err(Error::format(self.node_place(child), what));
                }
            }
            children.push(below);
        }
        for (s, row) in self.list("scenes")?.iter().enumerate() {
            indices(row, "nodes", nodes.len(), &format!("scene {s}"))?;
        }
        let parents_first = self.parents_first(&parent, &children)?;
        let mut world = vec![DMat4::IDENTITY; nodes.len()];
        for &n in &parents_first {
            let place = self.node_place(n);
            let above = parent[n].map_or(DMat4::IDENTITY, |p| world[p]);
            world[n] = above * local_matrix(&nodes[n], &place)?;
            if !world[n].is_finite() {
                return Err(Error::format(place, "its world transform is too large for a number"));
            }
        }
        Ok(Scene { parent, children, world, parents_first })
    }

    /// All nodes, each after its parent.
    fn parents_first(&self, parent: &[Option<usize>], children: &[Vec<usize>]) -> Result<Vec<usize>> {
        let mut order: Vec<usize> = (0..parent.len()).filter(|&n| parent[n].is_none()).collect();
        let mut next = 0;
        while next < order.len() {
            order.extend(&children[order[next]]);
            next += 1;
        }
        if order.len() == parent.len() {
            return Ok(order);
        }
        // Each node has one parent at most, so what no root reaches hangs on a cycle.
        let mut reached = vec![false; parent.len()];
        order.iter().for_each(|&n| reached[n] = true);
        let lost = reached.iter().position(|r| !r).unwrap_or(0);
        Err(Error::format(self.node_place(lost), "the nodes above it form a cycle: one is its own ancestor"))
    }
}

/// A node's transform in its parent.
///
/// Rotations are used as they stand, not normalised, as viewers do; one of length 0 turns nothing.
pub(super) fn local_matrix(node: &Value, place: &str) -> Result<DMat4> {
    if !node.is_object() {
        return Err(Error::format(place, "not an object"));
    }
    if let Some(matrix) = numbers::<16>(node, "matrix", place)? {
        let matrix = DMat4::from_cols_array(&matrix);
        let last = matrix.row(3);
        let apart = (last - glam::DVec4::W).abs().max_element();
        if apart > AFFINE {
            return Err(Error::format(place, format!("its matrix is not affine: the last row is {last}")));
        }
        return Ok(affine(matrix));
    }
    let translation = numbers::<3>(node, "translation", place)?.unwrap_or([0.0; 3]);
    let scale = numbers::<3>(node, "scale", place)?.unwrap_or([1.0; 3]);
    let rotation = numbers::<4>(node, "rotation", place)?.unwrap_or([0.0, 0.0, 0.0, 1.0]);
    let turn = rotation_columns(DQuat::from_array(rotation));
    let [x, y, z] = [0, 1, 2].map(|i| (turn[i] * scale[i]).extend(0.0));
    Ok(DMat4::from_cols(x, y, z, DVec3::from_array(translation).extend(1.0)))
}

/// The matrix of a quaternion that need not be of unit length.
fn rotation_columns(q: DQuat) -> [DVec3; 3] {
    let (x, y, z, w) = (q.x, q.y, q.z, q.w);
    [
        DVec3::new(1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + z * w), 2.0 * (x * z - y * w)),
        DVec3::new(2.0 * (x * y - z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + x * w)),
        DVec3::new(2.0 * (x * z + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (x * x + y * y)),
    ]
}

/// The matrix with a last row of exactly (0, 0, 0, 1).
pub(super) fn affine(mut matrix: DMat4) -> DMat4 {
    for column in [&mut matrix.x_axis, &mut matrix.y_axis, &mut matrix.z_axis] {
        column.w = 0.0;
    }
    matrix.w_axis.w = 1.0;
    matrix
}
