//! Writes a mesh as an old skin poses it: where a skin is not in its bind pose, the rest shape is no longer an affine map of
//! the stored positions, so positions, normals, tangents and morph targets get new, world-space accessors.

use glam::{DMat3, DVec3};
use serde_json::Value;

use super::Document;
use super::build::{Column, VERTEX_DATA};
use super::json::{index, list, member};
use super::mesh_in::{COORDINATES, Part};
use super::rest::{VertexMatrices, normal_matrix};
use crate::error::{Error, Result};

/// What an attribute is, and so how a matrix acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Position,
    Normal,
    Tangent,
}

const KINDS: [(&str, Kind); 3] = [("POSITION", Kind::Position), ("NORMAL", Kind::Normal), ("TANGENT", Kind::Tangent)];

impl Document {
    /// Gives `primitive`, a copy of the part's, accessors of its own for what the skin moves.
    pub(super) fn write_posed(&mut self, part: &Part, matrices: &VertexMatrices, primitive: &mut Value) -> Result<()> {
        let positions = self.part_positions(part)?;
        let posed: Vec<DVec3> =
            positions.iter().enumerate().map(|(v, &p)| matrices.at(v).transform_point3(p)).collect();
        for (vertex, p) in posed.iter().enumerate() {
            for (axis, value) in ['x', 'y', 'z'].into_iter().zip(p.to_array()) {
                if !(value as f32).is_finite() {
                    return Err(Error::Coordinate { vertex: part.vertices.start + vertex, axis, value });
                }
            }
        }
        primitive["attributes"]["POSITION"] = self.push_positions(&posed)?.into();
        if member(&primitive["attributes"], "NORMAL").is_some() {
            let normals = self.attribute(part, "NORMAL", 3, &COORDINATES, |e| DVec3::from_slice(e))?;
            let posed: Vec<DVec3> = normals.iter().enumerate().map(|(v, &n)| matrices.normal(v, n)).collect();
            primitive["attributes"]["NORMAL"] = self.push_vec3s(&posed)?.into();
        }
        if member(&primitive["attributes"], "TANGENT").is_some() {
            primitive["attributes"]["TANGENT"] = self.push_tangents(part, matrices)?.into();
        }
        let targets = list(primitive, "targets", &part.place())?.len();
        for target in 0..targets {
            for (name, kind) in KINDS {
                let row = &primitive["targets"][target];
                if let Some(number) = index(row, name, &part.place())? {
                    let moved = self.posed_deltas(part, matrices, number, kind)?;
                    let number =
                        if kind == Kind::Position { self.push_positions(&moved)? } else { self.push_vec3s(&moved)? };
                    primitive["targets"][target][name] = number.into();
                }
            }
        }
        Ok(())
    }

    /// Tangents keep their handedness, except where the matrix mirrors.
    fn push_tangents(&mut self, part: &Part, matrices: &VertexMatrices) -> Result<usize> {
        let tangents = self.attribute(part, "TANGENT", 4, &COORDINATES, |e| [e[0], e[1], e[2], e[3]])?;
        let moved = tangents.iter().enumerate().map(|(v, &[x, y, z, w])| {
            let m = DMat3::from_mat4(matrices.at(v));
            let t = (m * DVec3::new(x, y, z)).normalize_or(DVec3::X).as_vec3();
            [t.x, t.y, t.z, (w * m.determinant().signum()) as f32]
        });
        let moved: Vec<[f32; 4]> = moved.collect();
        self.push_column(&Column {
            bytes: bytemuck::cast_slice(&moved),
            component: 5126,
            kind: "VEC4",
            count: moved.len(),
            target: Some(VERTEX_DATA),
        })
    }

    /// Morph deltas turn with the vertex; those of normals are scaled as the normal itself is when it is made unit again.
    fn posed_deltas(&self, part: &Part, matrices: &VertexMatrices, number: usize, kind: Kind) -> Result<Vec<DVec3>> {
        let accessor = self.accessor(number, &part.place())?;
        accessor.expect(3, &COORDINATES, "a morph target")?;
        part.check_count(accessor.count, "a morph target")?;
        let deltas = accessor.read(|e| DVec3::from_slice(e))?;
        let base = match kind {
            Kind::Position => None,
            Kind::Normal => index(&self.primitive(part)["attributes"], "NORMAL", &part.place())?
                .map(|_| self.attribute(part, "NORMAL", 3, &COORDINATES, |e| DVec3::from_slice(e)))
                .transpose()?,
            Kind::Tangent => index(&self.primitive(part)["attributes"], "TANGENT", &part.place())?
                .map(|_| self.attribute(part, "TANGENT", 4, &COORDINATES, |e| DVec3::from_slice(e)))
                .transpose()?,
        };
        let moved = deltas.into_iter().enumerate().map(|(v, delta)| {
            let m = DMat3::from_mat4(matrices.at(v));
            let m = if kind == Kind::Normal { normal_matrix(m) } else { m };
            let length = base.as_ref().map_or(1.0, |base| (m * base[v]).length());
            if length > 0.0 { m * delta / length } else { DVec3::ZERO }
        });
        Ok(moved.collect())
    }
}
