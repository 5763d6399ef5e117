//! MD5 mesh, version 10: id Tech 4's model format (as id Software's published exporter and engine have it).
//!
//! z points up and triangles run clockwise there, so the character is turned and its triangles are reversed. A vertex has no
//! position of its own: it is the weighted sum of points that its joints carry.

use std::f64::consts::FRAC_PI_2;
use std::fmt::{self, Write};

use glam::{DAffine3, DQuat};

use super::xml::numbers;
use super::{Character, Piece};
use crate::error::{Error, Result};

pub(super) fn text(character: &Character, globals: &[DAffine3]) -> Result<String> {
    let bones = character.skeleton.bones();
    // Names stand in quotes, and there is no way to write a quote.
    let expressible = |name: &str| !name.contains(|c: char| c == '"' || c.is_control());
    let names = bones.iter().map(|b| b.name.as_str()).chain(character.pieces.iter().map(|p| p.name));
    if let Some(bad) = names.into_iter().find(|name| !expressible(name)) {
        return Err(Error::format(format!("name {bad:?}"), "MD5 can not express quotes or line breaks; rename it"));
    }
    let up = DAffine3::from_quat(DQuat::from_rotation_x(FRAC_PI_2));
    let turned: Vec<DAffine3> = globals.iter().map(|g| up * *g).collect();
    let mut out = String::new();
    write_model(&mut out, character, &turned, &up).map_err(|_| Error::format("MD5", "the text could not be made"))?;
    Ok(out)
}

fn write_model(out: &mut String, character: &Character, globals: &[DAffine3], up: &DAffine3) -> fmt::Result {
    let bones = character.skeleton.bones();
    writeln!(out, "MD5Version 10\ncommandline \"skinbind {}\"\n", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "numJoints {}\nnumMeshes {}\n\njoints {{", bones.len(), character.pieces.len())?;
    // Readers expect parents before their children.
    let order = character.skeleton.parents_first();
    let mut number = vec![0; bones.len()];
    order.iter().enumerate().for_each(|(n, &joint)| number[joint] = n);
    for &joint in &order {
        let parent = bones[joint].parent.map_or("-1".into(), |p| number[p].to_string());
        let place = numbers(globals[joint].translation.to_array());
        let q = DQuat::from_mat3(&globals[joint].matrix3).normalize();
        // The real part is left out: readers take the root of what is missing to 1, with a minus.
        let q = if q.w > 0.0 { -q } else { q };
        writeln!(out, "\t\"{}\"\t{parent} ( {place} ) ( {} )", bones[joint].name, numbers([q.x, q.y, q.z]))?;
    }
    writeln!(out, "}}")?;
    let inverse: Vec<DAffine3> = globals.iter().map(|g| g.inverse() * *up).collect();
    for piece in character.pieces {
        write_mesh(out, piece, &number, &inverse)?;
    }
    Ok(())
}

/// `inverse` takes points of the mesh to the joints' own space.
fn write_mesh(out: &mut String, piece: &Piece, number: &[usize], inverse: &[DAffine3]) -> fmt::Result {
    writeln!(out, "\nmesh {{\n\tshader \"{}\"\n\n\tnumverts {}", piece.name, piece.weights.len())?;
    let mut start = 0;
    for (vertex, row) in piece.weights.iter().enumerate() {
        writeln!(out, "\tvert {vertex} ( 0 0 ) {start} {}", row.len())?;
        start += row.len();
    }
    writeln!(out, "\n\tnumtris {}", piece.mesh.triangles().len())?;
    for (number, [a, b, c]) in piece.mesh.triangles().iter().enumerate() {
        writeln!(out, "\ttri {number} {a} {c} {b}")?;
    }
    writeln!(out, "\n\tnumweights {start}")?;
    let mut weight = 0;
    for (row, &p) in piece.weights.iter().zip(piece.mesh.positions()) {
        for i in row {
            let joint = i.joint as usize;
            let point = numbers(inverse[joint].transform_point3(p).to_array());
            writeln!(out, "\tweight {weight} {} {} ( {point} )", number[joint], i.weight as f32)?;
            weight += 1;
        }
    }
    writeln!(out, "}}")
}
