//! Collada 1.4.1 (Khronos' specification): geometry, a skin controller for each mesh, one tree of joints.

use std::collections::HashSet;
use std::fmt::{self, Write};

use glam::{DAffine3, DMat4, DVec3};

use super::xml::{escape, numbers};
use super::{Character, Piece, normals};
use crate::error::{Error, Result};
use crate::model::Skeleton;

/// The schema asks for a date; a fixed one keeps equal input giving equal files.
const DATE: &str = "2000-01-01T00:00:00Z";

pub(super) fn text(character: &Character, globals: &[DAffine3]) -> Result<String> {
    let mut out = String::new();
    write_document(&mut out, character, globals).map_err(|_| Error::format("Collada", "the text could not be made"))?;
    Ok(out)
}

fn write_document(out: &mut String, character: &Character, globals: &[DAffine3]) -> fmt::Result {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>")?;
    writeln!(out, "<COLLADA xmlns=\"http://www.collada.org/2005/11/COLLADASchema\" version=\"1.4.1\">")?;
    let tool = concat!("skinbind ", env!("CARGO_PKG_VERSION"));
    writeln!(out, "<asset><contributor><authoring_tool>{tool}</authoring_tool></contributor>")?;
    writeln!(out, "<created>{DATE}</created><modified>{DATE}</modified>")?;
    writeln!(out, "<unit name=\"unit\" meter=\"{}\"/><up_axis>Y_UP</up_axis></asset>", character.meters)?;
    writeln!(out, "<library_geometries>")?;
    for (number, piece) in character.pieces.iter().enumerate() {
        geometry(out, number, piece)?;
    }
    writeln!(out, "</library_geometries>\n<library_controllers>")?;
    let ids = ids(character.skeleton);
    for (number, piece) in character.pieces.iter().enumerate() {
        controller(out, number, piece, globals, &ids)?;
    }
    writeln!(out, "</library_controllers>\n<library_visual_scenes><visual_scene id=\"visual.scene\" name=\"scene\">")?;
    joints(out, character, &ids)?;
    let roots = (0..globals.len()).filter(|&j| character.skeleton.bones()[j].parent.is_none());
    let roots: String = roots.map(|j| format!("<skeleton>#{}</skeleton>", ids[j])).collect();
    for (number, piece) in character.pieces.iter().enumerate() {
        let name = escape(piece.name);
        writeln!(out, "<node id=\"node.{number}\" name=\"{name}\" type=\"NODE\">")?;
        writeln!(out, "<instance_controller url=\"#skin.{number}\">{roots}</instance_controller></node>")?;
    }
    writeln!(out, "</visual_scene></library_visual_scenes>")?;
    writeln!(out, "<scene><instance_visual_scene url=\"#visual.scene\"/></scene>\n</COLLADA>")
}

/// An array of numbers with the names of what each row holds.
fn source(out: &mut String, id: &str, values: &[f64], params: &[&str], kind: &str) -> fmt::Result {
    let stride = if kind == "float4x4" { 16 } else { params.len() };
    let (count, rows) = (values.len(), values.len() / stride);
    let list = numbers(values.iter().copied());
    writeln!(out, "<source id=\"{id}\"><float_array id=\"{id}_array\" count=\"{count}\">{list}</float_array>")?;
    accessor(out, id, rows, stride, params, kind)
}

fn accessor(out: &mut String, id: &str, rows: usize, stride: usize, params: &[&str], kind: &str) -> fmt::Result {
    let params: String = params.iter().map(|p| format!("<param name=\"{p}\" type=\"{kind}\"/>")).collect();
    write!(out, "<technique_common><accessor source=\"#{id}_array\" count=\"{rows}\" stride=\"{stride}\">{params}")?;
    writeln!(out, "</accessor></technique_common></source>")
}

fn geometry(out: &mut String, number: usize, piece: &Piece) -> fmt::Result {
    let id = format!("mesh.{number}");
    let flat = |list: &[DVec3]| list.iter().flat_map(DVec3::to_array).collect::<Vec<f64>>();
    writeln!(out, "<geometry id=\"{id}\" name=\"{}\"><mesh>", escape(piece.name))?;
    source(out, &format!("{id}_positions"), &flat(piece.mesh.positions()), &["X", "Y", "Z"], "float")?;
    source(out, &format!("{id}_normals"), &flat(&normals(piece.mesh)), &["X", "Y", "Z"], "float")?;
    writeln!(out, "<vertices id=\"{id}_vertices\"><input semantic=\"POSITION\" source=\"#{id}_positions\"/>")?;
    writeln!(out, "<input semantic=\"NORMAL\" source=\"#{id}_normals\"/></vertices>")?;
    writeln!(out, "<triangles count=\"{}\">", piece.mesh.triangles().len())?;
    writeln!(out, "<input semantic=\"VERTEX\" source=\"#{id}_vertices\" offset=\"0\"/>")?;
    out.push_str("<p>");
    for corner in piece.mesh.triangles().as_flattened() {
        write!(out, "{corner} ")?;
    }
    writeln!(out, "</p></triangles></mesh></geometry>")
}

fn controller(out: &mut String, number: usize, piece: &Piece, globals: &[DAffine3], ids: &[String]) -> fmt::Result {
    let id = format!("skin.{number}");
    let bones = globals.len();
    writeln!(out, "<controller id=\"{id}\" name=\"{}\"><skin source=\"#mesh.{number}\">", escape(piece.name))?;
    writeln!(out, "<bind_shape_matrix>{}</bind_shape_matrix>", rows(&DMat4::IDENTITY))?;
    let names = ids.join(" ");
    writeln!(
        out,
        "<source id=\"{id}_joints\"><Name_array id=\"{id}_joints_array\" count=\"{bones}\">{names}</Name_array>"
    )?;
    accessor(out, &format!("{id}_joints"), bones, 1, &["JOINT"], "Name")?;
    let inverse = globals.iter().flat_map(|g| DMat4::from(g.inverse()).transpose().to_cols_array());
    source(out, &format!("{id}_poses"), &inverse.collect::<Vec<f64>>(), &["TRANSFORM"], "float4x4")?;
    let weights: Vec<f64> = piece.weights.iter().flatten().map(|i| i.weight).collect();
    source(out, &format!("{id}_weights"), &weights, &["WEIGHT"], "float")?;
    writeln!(out, "<joints><input semantic=\"JOINT\" source=\"#{id}_joints\"/>")?;
    writeln!(out, "<input semantic=\"INV_BIND_MATRIX\" source=\"#{id}_poses\"/></joints>")?;
    writeln!(out, "<vertex_weights count=\"{}\">", piece.weights.len())?;
    writeln!(out, "<input semantic=\"JOINT\" source=\"#{id}_joints\" offset=\"0\"/>")?;
    writeln!(out, "<input semantic=\"WEIGHT\" source=\"#{id}_weights\" offset=\"1\"/>")?;
    out.push_str("<vcount>");
    for row in piece.weights.iter() {
        write!(out, "{} ", row.len())?;
    }
    out.push_str("</vcount>\n<v>");
    for (at, influence) in piece.weights.iter().flatten().enumerate() {
        write!(out, "{} {at} ", influence.joint)?;
    }
    writeln!(out, "</v></vertex_weights></skin></controller>")
}

/// For each bone an identifier near its name. It must hold no points and blanks; all others in the file have a point, so that
/// no bone can have theirs.
fn ids(skeleton: &Skeleton) -> Vec<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let mut taken = HashSet::new();
    let mut ids = Vec::with_capacity(skeleton.len());
    for (joint, bone) in skeleton.bones().iter().enumerate() {
        let mut id: String = bone.name.chars().map(plain).collect();
        if !id.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            id.insert(0, '_');
        }
        while taken.contains(&id) {
            id = format!("{id}_{joint}");
        }
        taken.insert(id.clone());
        ids.push(id);
    }
    ids
}

/// The tree of joints. Without recursion: chains may be long.
fn joints(out: &mut String, character: &Character, ids: &[String]) -> fmt::Result {
    let bones = character.skeleton.bones();
    let mut children = vec![Vec::new(); bones.len()];
    let mut stack = Vec::new();
    for (joint, bone) in bones.iter().enumerate().rev() {
        match bone.parent {
            Some(parent) => children[parent].push(joint),
            None => stack.push(Some(joint)),
        }
    }
    while let Some(next) = stack.pop() {
        let Some(joint) = next else {
            out.push_str("</node>\n");
            continue;
        };
        let (id, name) = (&ids[joint], escape(&bones[joint].name));
        writeln!(out, "<node id=\"{id}\" sid=\"{id}\" name=\"{name}\" type=\"JOINT\">")?;
        let local = DMat4::from(character.rest.locals[joint].to_affine());
        writeln!(out, "<matrix sid=\"transform\">{}</matrix>", rows(&local))?;
        stack.push(None);
        stack.extend(children[joint].iter().map(|&child| Some(child)));
    }
    Ok(())
}

/// A matrix row by row, as Collada has it.
fn rows(matrix: &DMat4) -> String {
    numbers(matrix.transpose().to_cols_array())
}
