//! `skinbind inspect`: what is in a file, before one binds it or after.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use skinbind::Result;
use skinbind::geometry::topology::{Topology, topology};
use skinbind::model::{Mesh, Warning, Weights};

use super::{input, screen};

const EXAMPLES: &str = "\
Examples:
  skinbind inspect body.obj
  skinbind inspect rigged.glb --json";

/// Most joints that the table lists; JSON lists all.
const LISTED_JOINTS: usize = 100;

/// Show what is in a file: size, parts, holes, joints, weights.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .glb, .gltf or .obj file.
    file: PathBuf,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    file: PathBuf,
    mesh: MeshReport,
    /// Only where the mesh is skinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    skin: Option<SkinReport>,
    /// How many of each kind of object a glTF file lists.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    contents: BTreeMap<&'static str, usize>,
    warnings: Vec<Warning>,
}

#[derive(Serialize)]
struct MeshReport {
    vertices: usize,
    /// Different positions.
    places: usize,
    triangles: usize,
    components: usize,
    watertight: bool,
    #[serde(flatten)]
    topology: Topology,
    min: [f64; 3],
    max: [f64; 3],
}

#[derive(Serialize)]
struct SkinReport {
    joints: usize,
    /// Joints that move at least one vertex.
    joints_used: usize,
    max_influences: usize,
    mean_influences: f64,
    vertices_without_weight: usize,
    /// Over the vertices that have weights.
    min_weight_sum: f64,
    max_weight_sum: f64,
    per_joint: Vec<JointReport>,
}

#[derive(Serialize)]
struct JointReport {
    name: String,
    vertices: usize,
    max_weight: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let found = input::mesh(&args.file, true)?;
    let mut report = Report {
        file: args.file.clone(),
        mesh: describe_mesh(&found.mesh),
        skin: None,
        contents: BTreeMap::new(),
        warnings: found.warnings,
    };
    if let Some(document) = &found.document {
        let weights = document.weights().map_err(|e| e.in_file(&args.file))?;
        report.skin = weights.map(|(joints, weights)| describe_skin(joints, &weights));
        for kind in ["nodes", "meshes", "skins", "animations", "materials", "images"] {
            let count = document.json()[kind].as_array().map_or(0, Vec::len);
            report.contents.insert(kind, count);
        }
    }
    if args.json {
        return screen::print_json(&report);
    }
    screen::warn(&report.warnings);
    screen::print(&text(&args.file, &report))
}

fn describe_mesh(mesh: &Mesh) -> MeshReport {
    let weld = mesh.weld();
    let topology = topology(mesh, &weld);
    let bounds = mesh.bounds();
    MeshReport {
        vertices: mesh.positions().len(),
        places: weld.places(),
        triangles: mesh.triangles().len(),
        components: mesh.components(&weld).len(),
        watertight: topology.is_watertight(),
        topology,
        min: bounds.min.to_array(),
        max: bounds.max.to_array(),
    }
}

fn describe_skin(joints: Vec<String>, weights: &Weights) -> SkinReport {
    let mut per_joint: Vec<JointReport> =
        joints.into_iter().map(|name| JointReport { name, vertices: 0, max_weight: 0.0 }).collect();
    let (mut entries, mut bare, mut most) = (0, 0, 0);
    let (mut least_sum, mut most_sum) = (f64::INFINITY, f64::NEG_INFINITY);
    for row in weights.iter() {
        let used = row.iter().filter(|i| i.weight != 0.0);
        let (count, sum) = used.clone().fold((0, 0.0), |(n, sum), i| (n + 1, sum + i.weight));
        for influence in used {
            let joint = &mut per_joint[influence.joint as usize];
            joint.vertices += 1;
            joint.max_weight = joint.max_weight.max(influence.weight);
        }
        entries += count;
        most = most.max(count);
        if count == 0 {
            bare += 1;
        } else {
            least_sum = least_sum.min(sum);
            most_sum = most_sum.max(sum);
        }
    }
    let none = entries == 0;
    SkinReport {
        joints: per_joint.len(),
        joints_used: per_joint.iter().filter(|j| j.vertices > 0).count(),
        max_influences: most,
        mean_influences: entries as f64 / weights.len().max(1) as f64,
        vertices_without_weight: bare,
        min_weight_sum: if none { 0.0 } else { least_sum },
        max_weight_sum: if none { 0.0 } else { most_sum },
        per_joint,
    }
}

fn text(file: &Path, report: &Report) -> String {
    let mesh = &report.mesh;
    let topology = &mesh.topology;
    let point = |p: [f64; 3]| p.map(|x| format!("{x:.6}")).join("  ");
    let rows = [
        ("vertices", mesh.vertices.to_string()),
        ("different places", mesh.places.to_string()),
        ("triangles", mesh.triangles.to_string()),
        ("components", mesh.components.to_string()),
        ("watertight", if mesh.watertight { "yes" } else { "no" }.to_owned()),
        ("holes", topology.holes.to_string()),
        ("boundary edges", topology.boundary_edges.to_string()),
        ("non-manifold edges", topology.non_manifold_edges.to_string()),
        ("flipped edges", topology.flipped_edges.to_string()),
        ("degenerate faces", topology.degenerate_faces.to_string()),
        ("least x y z", point(mesh.min)),
        ("most x y z", point(mesh.max)),
    ];
    let mut text = screen::table(&format!("{}\n\nmesh", file.display()), &rows);
    if let Some(skin) = &report.skin {
        text += &skin_text(skin);
    }
    if !report.contents.is_empty() {
        let rows: Vec<_> = report.contents.iter().map(|(&kind, count)| (kind, count.to_string())).collect();
        text += &screen::table("\nfile", &rows);
    }
    text
}

fn skin_text(skin: &SkinReport) -> String {
    let rows = [
        ("joints", skin.joints.to_string()),
        ("joints in use", skin.joints_used.to_string()),
        ("most influences", skin.max_influences.to_string()),
        ("mean influences", format!("{:.2}", skin.mean_influences)),
        ("bare vertices", skin.vertices_without_weight.to_string()),
        ("weight sums", format!("{:.8} to {:.8}", skin.min_weight_sum, skin.max_weight_sum)),
    ];
    let mut text = screen::table("\nskin", &rows) + "\n";
    let joints: Vec<Vec<String>> = skin
        .per_joint
        .iter()
        .take(LISTED_JOINTS)
        .map(|j| vec![j.name.clone(), j.vertices.to_string(), format!("{:.4}", j.max_weight)])
        .collect();
    text += &screen::columns(&["joint", "vertices", "largest weight"], &joints);
    if skin.per_joint.len() > LISTED_JOINTS {
        text += &format!("  ... and {} more; --json lists all\n", skin.per_joint.len() - LISTED_JOINTS);
    }
    text
}
