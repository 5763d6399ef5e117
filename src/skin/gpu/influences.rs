//! Weights of the CPU as the words that the skinning kernel and vertex fetch read.

use crate::error::{Error, Result};
use crate::influence::gpu::JointFormat;
use crate::influence::pack::{Packed, StoredWeight, pack};
use crate::model::Weights;
use crate::skin::gpu::WeightFormat;

/// Most sets of four influences a vertex.
pub const MAX_SETS: u32 = 2;

/// Joints and weights of all vertices, one after the other, in little-endian words as buffers hold them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfluenceWords {
    /// Sets of four influences a vertex: 1 or 2.
    pub sets: u32,
    pub joints: Vec<u32>,
    pub weights: Vec<u32>,
}

/// Packs weights by the rules of [`crate::influence::pack`]: the weights of a vertex in descending order, whole numbers
/// adding up exactly.
///
/// # Errors
/// Those of [`pack`], and [`Error::Limit`] for a vertex of more than eight influences.
pub fn influence_words(weights: &Weights, joints: JointFormat, format: WeightFormat) -> Result<InfluenceWords> {
    match format {
        WeightFormat::F32 => words(&pack::<f32>(weights)?, joints, |four: [f32; 4]| four.map(f32::to_bits).to_vec()),
        WeightFormat::Unorm16 => words(&pack::<u16>(weights)?, joints, |four| pairs(four).to_vec()),
        WeightFormat::Unorm8 => words(&pack::<u8>(weights)?, joints, |four| vec![u32::from_le_bytes(four)]),
    }
}

fn words<T: StoredWeight>(
    packed: &Packed<T>,
    joint_format: JointFormat,
    weight_words: impl Fn([T; 4]) -> Vec<u32>,
) -> Result<InfluenceWords> {
    let sets = packed.sets() as u32;
    if sets > MAX_SETS {
        return Err(Error::Limit {
            what: "influences a vertex on the GPU".into(),
            needed: format!("{} sets of four", packed.sets()),
            limit: format!("{MAX_SETS} sets of four"),
            advice: "cap them at 8 when binding".into(),
        });
    }
    let (mut joints, mut weights) = (Vec::new(), Vec::new());
    for vertex in 0..packed.len() {
        let (of_joints, of_weights) = packed.vertex(vertex);
        for four in of_joints.as_chunks::<4>().0 {
            match joint_format {
                JointFormat::U32 => joints.extend(four.map(u32::from)),
                JointFormat::U16 => joints.extend(pairs(*four)),
            }
        }
        weights.extend(of_weights.as_chunks::<4>().0.iter().flat_map(|four| weight_words(*four)));
    }
    Ok(InfluenceWords { sets, joints, weights })
}

fn pairs([a, b, c, d]: [u16; 4]) -> [u32; 2] {
    [u32::from(a) | u32::from(b) << 16, u32::from(c) | u32::from(d) << 16]
}
