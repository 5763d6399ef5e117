//! Ogre's mesh and skeleton as XML, the input of its converter (the layouts as in Ogre's `ogremeshxml.dtd` and
//! `ogreskeletonxml.dtd`).

use std::fmt::{self, Write};
use std::path::Path;

use super::xml::escape;
use super::{Character, Piece, normals};
use crate::error::{Error, Result};

/// The most bones of an Ogre skeleton.
const MOST_BONES: usize = 256;
/// A turn by less than this is none: it has no axis.
const NO_TURN: f64 = 1e-12;

/// The skeleton's name beside a mesh file: that of `body.mesh.xml` is `body.skeleton`, and its file has `.xml` after it.
pub(super) fn skeleton_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The extension is ASCII, in any case.
    let stem = name.get(..name.len().saturating_sub(".mesh.xml".len())).unwrap_or_default();
    format!("{stem}.skeleton")
}

/// The mesh file and the skeleton file.
pub(super) fn texts(character: &Character, skeleton_name: &str) -> Result<Vec<String>> {
    let bones = character.skeleton.len();
    if bones > MOST_BONES {
        return Err(Error::Limit {
            what: "bones of an Ogre skeleton".into(),
            needed: bones.to_string(),
            limit: MOST_BONES.to_string(),
            advice: "use a rig of fewer bones".into(),
        });
    }
    let (mut mesh, mut skeleton) = (String::new(), String::new());
    write_mesh(&mut mesh, character, skeleton_name)
        .and_then(|()| write_skeleton(&mut skeleton, character))
        .map_err(|_| Error::format("Ogre XML", "the text could not be made"))?;
    Ok(vec![mesh, skeleton])
}

fn write_mesh(out: &mut String, character: &Character, skeleton_name: &str) -> fmt::Result {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<mesh>\n<submeshes>")?;
    for piece in character.pieces {
        submesh(out, piece)?;
    }
    writeln!(out, "</submeshes>\n<skeletonlink name=\"{}\"/>\n<submeshnames>", escape(skeleton_name))?;
    for (index, piece) in character.pieces.iter().enumerate() {
        writeln!(out, "<submeshname name=\"{}\" index=\"{index}\"/>", escape(piece.name))?;
    }
    writeln!(out, "</submeshnames>\n</mesh>")
}

fn submesh(out: &mut String, piece: &Piece) -> fmt::Result {
    let (mesh, name) = (piece.mesh, escape(piece.name));
    let wide = mesh.positions().len() > usize::from(u16::MAX);
    write!(out, "<submesh material=\"{name}\" usesharedvertices=\"false\" use32bitindexes=\"{wide}\"")?;
    writeln!(out, " operationtype=\"triangle_list\">\n<faces count=\"{}\">", mesh.triangles().len())?;
    for [a, b, c] in mesh.triangles() {
        writeln!(out, "<face v1=\"{a}\" v2=\"{b}\" v3=\"{c}\"/>")?;
    }
    writeln!(out, "</faces>\n<geometry vertexcount=\"{}\">", mesh.positions().len())?;
    writeln!(out, "<vertexbuffer positions=\"true\" normals=\"true\">")?;
    for (p, n) in mesh.positions().iter().zip(normals(mesh)) {
        let (p, n) = (p.as_vec3(), n.as_vec3());
        write!(out, "<vertex><position x=\"{}\" y=\"{}\" z=\"{}\"/>", p.x, p.y, p.z)?;
        writeln!(out, "<normal x=\"{}\" y=\"{}\" z=\"{}\"/></vertex>", n.x, n.y, n.z)?;
    }
    writeln!(out, "</vertexbuffer>\n</geometry>\n<boneassignments>")?;
    for (vertex, row) in piece.weights.iter().enumerate() {
        for i in row {
            let weight = i.weight as f32;
            writeln!(
                out,
                "<vertexboneassignment vertexindex=\"{vertex}\" boneindex=\"{}\" weight=\"{weight}\"/>",
                i.joint
            )?;
        }
    }
    writeln!(out, "</boneassignments>\n</submesh>")
}

fn write_skeleton(out: &mut String, character: &Character) -> fmt::Result {
    let bones = character.skeleton.bones();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<skeleton>\n<bones>")?;
    for (id, (bone, local)) in bones.iter().zip(&character.rest.locals).enumerate() {
        let p = local.translation.as_vec3();
        let (axis, angle) = local.rotation.to_axis_angle();
        let (axis, angle) = if angle.abs() < NO_TURN { (glam::DVec3::X, 0.0) } else { (axis, angle) };
        let axis = axis.as_vec3();
        writeln!(out, "<bone id=\"{id}\" name=\"{}\">", escape(&bone.name))?;
        writeln!(out, "<position x=\"{}\" y=\"{}\" z=\"{}\"/>", p.x, p.y, p.z)?;
        writeln!(
            out,
            "<rotation angle=\"{}\"><axis x=\"{}\" y=\"{}\" z=\"{}\"/></rotation>",
            angle as f32, axis.x, axis.y, axis.z
        )?;
        writeln!(out, "</bone>")?;
    }
    writeln!(out, "</bones>\n<bonehierarchy>")?;
    for bone in bones {
        if let Some(parent) = bone.parent {
            writeln!(out, "<boneparent bone=\"{}\" parent=\"{}\"/>", escape(&bone.name), escape(&bones[parent].name))?;
        }
    }
    writeln!(out, "</bonehierarchy>\n</skeleton>")
}
