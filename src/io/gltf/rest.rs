//! Where a node's mesh lies in the world at rest: by the node's transform, or as an old skin poses it.

use glam::{DMat3, DMat4, DVec3};

use super::Document;
use super::json::index;
use super::mesh_in::Part;
use super::scene::Scene;
use super::skin_in::PartInfluences;
use crate::error::Result;
use crate::model::Bounds;

/// A skin whose matrices move no corner of the mesh' box further apart than this share of the box' diagonal is a mere
/// placement: inverse bind matrices are stored in f32, and their rounding alone reaches a few 1e-7 of the size.
const SAME: f64 = 4e-6;

/// How a node's mesh is brought into the world.
#[derive(Debug, Clone)]
pub(super) enum Placement {
    /// By one matrix: the node's own, or that of a skin in its bind pose.
    Affine(DMat4),
    /// By a skin that is not in its bind pose: each vertex by its joints. Primitives without influences by `world`.
    Posed { palette: Vec<DMat4>, world: DMat4 },
}

/// The matrix of each vertex of a primitive.
#[derive(Debug)]
pub(super) enum VertexMatrices<'a> {
    One(DMat4),
    Each { palette: &'a [DMat4], influences: PartInfluences },
}

impl VertexMatrices<'_> {
    /// Linear blend of the joints' matrices. A vertex without weights goes with joint 0, which empty slots name.
    pub fn at(&self, vertex: usize) -> DMat4 {
        match self {
            Self::One(m) => *m,
            Self::Each { palette, influences } => {
                let (mut sum, mut total) = (DMat4::ZERO, 0.0);
                for (joint, weight) in influences.of(vertex) {
                    sum += palette[joint] * weight;
                    total += weight;
                }
                if total > 0.0 { sum * (1.0 / total) } else { palette[0] }
            }
        }
    }

    /// A normal under that matrix, of unit length where it has any.
    pub fn normal(&self, vertex: usize, normal: DVec3) -> DVec3 {
        (normal_matrix(DMat3::from_mat4(self.at(vertex))) * normal).normalize_or_zero()
    }
}

/// The cofactors: the inverse transpose times the determinant, which exists for flat matrices too and keeps the side of
/// mirrored ones once its sign is taken out.
pub(super) fn normal_matrix(m: DMat3) -> DMat3 {
    let cofactors = DMat3::from_cols(m.y_axis.cross(m.z_axis), m.z_axis.cross(m.x_axis), m.x_axis.cross(m.y_axis));
    if m.determinant() < 0.0 { -cofactors } else { cofactors }
}

impl Document {
    /// Where the parts of one node lie.
    pub(super) fn placement(&self, scene: &Scene, group: &[Part]) -> Result<Placement> {
        let node = group[0].node;
        let world = scene.world[node];
        let place = self.node_place(node);
        let Some(skin) = index(&self.list("nodes")?[node], "skin", &place)? else {
            return Ok(Placement::Affine(world));
        };
        let skin = self.skin(skin, &place)?;
        let palette: Vec<DMat4> =
            skin.joints.iter().zip(&skin.inverse_bind).map(|(&j, inverse)| scene.world[j] * *inverse).collect();
        let mut used = vec![false; palette.len()];
        let mut without = false;
        let mut boxes = Vec::new();
        for part in group {
            boxes.extend(Bounds::of(self.part_positions(part)?));
            match self.part_influences(part, palette.len())? {
                None => without = true,
                Some(influences) => {
                    (0..part.vertices.len()).flat_map(|v| influences.of(v)).for_each(|(joint, _)| used[joint] = true);
                }
            }
        }
        let mut matrices = used.iter().zip(&palette).filter(|(used, _)| **used).map(|(_, m)| *m).collect::<Vec<_>>();
        if without {
            matrices.push(world);
        }
        let bounds = Bounds::of(boxes.iter().flat_map(|b| [b.min, b.max]));
        match (matrices.first(), bounds) {
            (Some(&first), Some(bounds)) if matrices.iter().all(|m| agree(&first, m, &bounds)) => {
                Ok(Placement::Affine(first))
            }
            _ => Ok(Placement::Posed { palette, world }),
        }
    }

    /// The matrices of a part under its node's placement.
    pub(super) fn vertex_matrices<'a>(&self, placement: &'a Placement, part: &Part) -> Result<VertexMatrices<'a>> {
        Ok(match placement {
            Placement::Affine(m) => VertexMatrices::One(*m),
            Placement::Posed { palette, world } => match self.part_influences(part, palette.len())? {
                Some(influences) => VertexMatrices::Each { palette, influences },
                None => VertexMatrices::One(*world),
            },
        })
    }
}

fn agree(a: &DMat4, b: &DMat4, bounds: &Bounds) -> bool {
    let corner = |i: usize| {
        let pick = |axis: usize| if i >> axis & 1 == 0 { bounds.min[axis] } else { bounds.max[axis] };
        DVec3::new(pick(0), pick(1), pick(2))
    };
    let images = |m: &DMat4| (0..8).map(corner).map(|p| m.transform_point3(p)).collect::<Vec<_>>();
    let (a, b) = (images(a), images(b));
    let size = Bounds::of(a.iter().copied()).map_or(0.0, |b| b.diagonal());
    a.iter().zip(&b).all(|(a, b)| a.distance(*b) <= SAME * size)
}
