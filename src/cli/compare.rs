//! `skinbind compare`: how far apart two sets of weights are, bone by bone of the same name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use skinbind::model::{Influence, Weights};
use skinbind::{Error, Result};

use super::input::{self, Kind, NamedWeights};
use super::screen;

const EXAMPLES: &str = "\
Examples:
  skinbind compare by-hand.glb bound.glb
  skinbind compare old.mhw new.mhw --tolerance 1e-6";

/// How many of the worst vertices and bones are listed.
const WORST: usize = 10;

/// Compare two sets of weights of one mesh.
///
/// Each vertex' weights are first scaled to add up to 1. Its difference is half the sum of the absolute differences over all
/// bones: 0 for equal weights, 1 for no bone in common or no weights on one side only.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A rigged .glb or .gltf, or weights as .mhw or .json.
    a: PathBuf,
    /// Another one, with the same vertices.
    b: PathBuf,
    /// Fail with exit code 6 where the worst vertex differs by more than this.
    #[arg(long, value_name = "T", value_parser = tolerance)]
    tolerance: Option<f64>,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    vertices: usize,
    bones_in_both: usize,
    only_in_a: Vec<String>,
    only_in_b: Vec<String>,
    mean_difference: f64,
    median_difference: f64,
    /// 95 of 100 vertices differ by no more.
    percentile_95: f64,
    max_difference: f64,
    /// Share of the vertices whose strongest bone is the same.
    dominant_agreement: f64,
    bare_in_a: usize,
    bare_in_b: usize,
    worst_vertices: Vec<WorstVertex>,
    worst_bones: Vec<WorstBone>,
}

#[derive(Debug, Serialize)]
struct WorstVertex {
    vertex: usize,
    difference: f64,
    dominant_in_a: Option<String>,
    dominant_in_b: Option<String>,
}

#[derive(Debug, Serialize)]
struct WorstBone {
    bone: String,
    /// Mean over all vertices of the absolute difference of this bone's weight.
    mean_difference: f64,
    max_difference: f64,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(t) if (0.0..=1.0).contains(&t) => Ok(t),
        _ => Err("it must be a number from 0 to 1".into()),
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let (a, b) = read(&args.a, &args.b)?;
    let report = compare(&a, &b).ok_or_else(|| {
        Error::format("bones", format!("none of them is in {} too", args.b.display())).in_file(&args.a)
    })?;
    if args.json {
        screen::print_json(&report)?;
    } else {
        screen::print(&text(&report))?;
    }
    match args.tolerance {
        Some(most) if report.max_difference > most => Err(Error::Check(format!(
            "{} and {}: vertex {} (0-based) differs by {:.6}, more than {most}",
            args.a.display(),
            args.b.display(),
            report.worst_vertices[0].vertex,
            report.max_difference,
        ))),
        _ => Ok(()),
    }
}

/// Reads both; a glTF file tells how many vertices there are, a weights file does not.
fn read(a: &Path, b: &Path) -> Result<(NamedWeights, NamedWeights)> {
    let is_list = |path| input::kind(path) == Some(Kind::Json);
    let (first, second) = if is_list(a) && !is_list(b) {
        let second = input::weights(b, None)?;
        (input::weights(a, Some(second.weights.len()))?, second)
    } else {
        let first = input::weights(a, None)?;
        let known = (!is_list(a)).then_some(first.weights.len());
        let second = input::weights(b, known)?;
        (first, second)
    };
    let (in_a, in_b) = (first.weights.len(), second.weights.len());
    if in_a != in_b {
        let what = format!("there are {in_a}, but {in_b} in {}", b.display());
        return Err(Error::format("vertices", what).in_file(a));
    }
    Ok((first, second))
}

/// The names of both, each once, and for each side the number of its bones in that list.
fn join_names(a: &[String], b: &[String]) -> (Vec<String>, [Vec<u32>; 2]) {
    let mut names: Vec<String> = Vec::new();
    let mut number = HashMap::new();
    let maps = [a, b].map(|side| {
        let numbers = side.iter().map(|name| {
            *number.entry(name.clone()).or_insert_with(|| {
                names.push(name.clone());
                names.len() as u32 - 1
            })
        });
        numbers.collect::<Vec<u32>>()
    });
    (names, maps)
}

/// `None` where no bone is in both.
fn compare(a: &NamedWeights, b: &NamedWeights) -> Option<Report> {
    let (names, maps) = join_names(&a.bones, &b.bones);
    let only = |side: &NamedWeights, other: &NamedWeights| -> Vec<String> {
        side.bones.iter().filter(|n| !other.bones.contains(n)).cloned().collect()
    };
    let (only_in_a, only_in_b) = (only(a, b), only(b, a));
    if only_in_a.len() == a.bones.len() {
        return None;
    }
    let vertices = a.weights.len();
    let mut rows = [vec![0.0; names.len()], vec![0.0; names.len()]];
    let mut of_bone = vec![(0.0, 0.0f64); names.len()];
    let mut differences = Vec::with_capacity(vertices);
    let (mut agree, mut bare) = (0, [0, 0]);
    for v in 0..vertices {
        let full = [(0, &a.weights), (1, &b.weights)].map(|(s, w)| spread(w, v, &maps[s], &mut rows[s]));
        bare[0] += usize::from(!full[0]);
        bare[1] += usize::from(!full[1]);
        let mut sum = 0.0;
        for (bone, (x, y)) in rows[0].iter().zip(&rows[1]).enumerate() {
            let apart = (x - y).abs();
            sum += apart;
            of_bone[bone].0 += apart;
            of_bone[bone].1 = of_bone[bone].1.max(apart);
        }
        differences.push(if full[0] == full[1] { sum / 2.0 } else { 1.0 });
        agree += usize::from(strongest(&rows[0], &names) == strongest(&rows[1], &names));
    }
    let mut order: Vec<usize> = (0..vertices).collect();
    order.sort_by(|&x, &y| differences[y].total_cmp(&differences[x]).then(x.cmp(&y)));
    let at = |share: f64| order.get(((1.0 - share) * vertices as f64) as usize).map_or(0.0, |&v| differences[v]);
    let mut dominant = |side: usize, weights: &Weights, v: usize| {
        spread(weights, v, &maps[side], &mut rows[side]);
        strongest(&rows[side], &names).map(str::to_owned)
    };
    let worst_vertices = order.iter().take(WORST).take_while(|&&v| differences[v] > 0.0).map(|&v| WorstVertex {
        vertex: v,
        difference: differences[v],
        dominant_in_a: dominant(0, &a.weights, v),
        dominant_in_b: dominant(1, &b.weights, v),
    });
    let worst_vertices = worst_vertices.collect();
    let count = vertices.max(1) as f64;
    Some(Report {
        vertices,
        bones_in_both: names.len() - only_in_a.len() - only_in_b.len(),
        only_in_a,
        only_in_b,
        mean_difference: differences.iter().sum::<f64>() / count,
        median_difference: at(0.5),
        percentile_95: at(0.95),
        max_difference: at(1.0),
        dominant_agreement: if vertices == 0 { 1.0 } else { agree as f64 / count },
        bare_in_a: bare[0],
        bare_in_b: bare[1],
        worst_vertices,
        worst_bones: worst_bones(&names, &of_bone, count),
    })
}

fn worst_bones(names: &[String], of_bone: &[(f64, f64)], vertices: f64) -> Vec<WorstBone> {
    let mut bones: Vec<WorstBone> = names
        .iter()
        .zip(of_bone)
        .filter(|(_, (_, max))| *max > 0.0)
        .map(|(bone, (sum, max))| WorstBone {
            bone: bone.clone(),
            mean_difference: sum / vertices,
            max_difference: *max,
        })
        .collect();
    bones.sort_by(|x, y| y.mean_difference.total_cmp(&x.mean_difference).then(x.bone.cmp(&y.bone)));
    bones.truncate(WORST);
    bones
}

/// Puts a vertex' weights, scaled to a sum of 1, into a full row; false where there are none.
fn spread(weights: &Weights, vertex: usize, map: &[u32], row: &mut [f64]) -> bool {
    row.fill(0.0);
    let influences = weights.of(vertex);
    let sum: f64 = influences.iter().map(|i| i.weight).sum();
    if sum > 0.0 {
        for &Influence { joint, weight } in influences {
            row[map[joint as usize] as usize] += weight / sum;
        }
    }
    sum > 0.0
}

/// The strongest bone of a row; ties go to the name that sorts first. `None` without weights.
fn strongest<'a>(row: &[f64], names: &'a [String]) -> Option<&'a str> {
    let best = (0..row.len()).max_by(|&x, &y| row[x].total_cmp(&row[y]).then_with(|| names[y].cmp(&names[x])))?;
    (row[best] > 0.0).then_some(names[best].as_str())
}

fn text(report: &Report) -> String {
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let mut text = screen::table(
        "weights",
        &[
            ("vertices", report.vertices.to_string()),
            ("bones in both", report.bones_in_both.to_string()),
            ("only in A", list(&report.only_in_a)),
            ("only in B", list(&report.only_in_b)),
            ("bare in A, in B", format!("{}, {}", report.bare_in_a, report.bare_in_b)),
            ("mean difference", format!("{:.6}", report.mean_difference)),
            ("median", format!("{:.6}", report.median_difference)),
            ("95 of 100 below", format!("{:.6}", report.percentile_95)),
            ("largest", format!("{:.6}", report.max_difference)),
            ("same strongest bone", format!("{:.2} %", 100.0 * report.dominant_agreement)),
        ],
    );
    if !report.worst_vertices.is_empty() {
        let name = |n: &Option<String>| n.clone().unwrap_or_else(|| "(none)".into());
        let rows: Vec<Vec<String>> = report
            .worst_vertices
            .iter()
            .map(|w| {
                let difference = format!("{:.6}", w.difference);
                vec![w.vertex.to_string(), difference, name(&w.dominant_in_a), name(&w.dominant_in_b)]
            })
            .collect();
        text += &("\nworst vertices\n".to_owned() + &screen::columns(&["vertex", "difference", "A", "B"], &rows));
        let rows: Vec<Vec<String>> = report
            .worst_bones
            .iter()
            .map(|w| vec![w.bone.clone(), format!("{:.6}", w.mean_difference), format!("{:.6}", w.max_difference)])
            .collect();
        text += &("\nworst bones\n".to_owned() + &screen::columns(&["bone", "mean", "largest"], &rows));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(bones: &[&str], rows: &[&[(u32, f64)]]) -> NamedWeights {
        let mut weights = Weights::default();
        for row in rows {
            weights.push(row.iter().map(|&(joint, weight)| Influence { joint, weight }));
        }
        NamedWeights { bones: bones.iter().map(|&b| b.to_owned()).collect(), weights }
    }

    #[test]
    fn bones_are_matched_by_name_and_sums_do_not_matter() {
        let a = weights(&["x", "y"], &[&[(0, 0.25), (1, 0.75)], &[(0, 1.0)]]);
        let b = weights(&["y", "x"], &[&[(0, 1.5), (1, 0.5)], &[(1, 0.5)]]);
        let same = compare(&a, &b).unwrap();
        assert_eq!((same.max_difference, same.dominant_agreement, same.bones_in_both), (0.0, 1.0, 2));
        assert!(same.worst_vertices.is_empty() && same.worst_bones.is_empty());
    }

    #[test]
    fn differences_are_half_the_sum_over_all_bones() {
        let a = weights(&["x", "y"], &[&[(0, 1.0)], &[(0, 0.5), (1, 0.5)], &[], &[(0, 1.0)]]);
        let b = weights(&["x", "z"], &[&[(0, 1.0)], &[(0, 0.25), (1, 0.75)], &[], &[]]);
        let report = compare(&a, &b).unwrap();
        assert_eq!(report.mean_difference, (0.0 + 0.75 + 0.0 + 1.0) / 4.0);
        assert_eq!((report.bare_in_a, report.bare_in_b), (1, 2));
        // Vertex 1 ties between x and y in A: x, the first name; z in B.
        assert_eq!(report.dominant_agreement, 0.5);
        assert_eq!(report.worst_vertices[0].vertex, 3);
        assert_eq!(report.worst_vertices[1].dominant_in_b.as_deref(), Some("z"));
        assert_eq!((report.only_in_a[0].as_str(), report.only_in_b[0].as_str()), ("y", "z"));
        assert_eq!(report.worst_bones[0].bone, "x");
        assert_eq!(report.worst_bones[0].mean_difference, (0.25 + 1.0) / 4.0);
    }

    #[test]
    fn no_bone_in_common_is_no_comparison() {
        assert!(compare(&weights(&["x"], &[&[(0, 1.0)]]), &weights(&["y"], &[&[(0, 1.0)]])).is_none());
    }
}
