//! Weights as MakeHuman means them: a file's sums need not be 1, bones may be unknown, vertices may be bare; the rules here
//! make of them weights that add up to 1.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::io::weights_file::WeightsFile;
use crate::model::{Code, Influence, Skeleton, Warning, Weights};

/// Weights up to this are dropped.
pub const LEAST: f64 = 1e-4;
/// A sum this far from 1 is reported.
const OFF: f64 = 1e-3;
/// A sum this near 1 is 1: what rounding leaves of it at up to a few thousand influences. Without this, loading weights again
/// would change their last bits.
const ROUNDING: f64 = 1e-12;
/// MPFB's files list vertices to be hidden as groups that begin so; they are no bones.
const MASK: &str = "mhmask-";
/// Longer lists of names are cut.
const MOST_NAMES: usize = 12;

/// What the rules did.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Report {
    pub vertices: usize,
    /// Pairs of bone and vertex that have weight in the end.
    pub influences: usize,
    /// Entries that stood more than once for a bone and vertex and were added up.
    pub doubles_merged: usize,
    /// Vertices whose weights added up to something else than 1, by more than 0.001, and not to 0.
    pub sums_off: usize,
    pub smallest_sum: f64,
    pub largest_sum: f64,
    /// Weights that were dropped because they were at most 0.0001.
    pub faint_dropped: usize,
    /// Vertices without weight, which the root bone took.
    pub sent_to_root: usize,
    /// The most bones that one vertex has.
    pub most_influences: usize,
    /// Bones that have weight.
    pub weighted_bones: usize,
    /// Groups of the file that the rig has no bone for, with how many entries each.
    pub unknown_bones: Vec<(String, usize)>,
    /// Groups of vertices to be hidden, which are no bones.
    pub masks: Vec<String>,
}

/// Weights from a file for a rig: entries of bones that the rig lacks are left out, then each vertex is settled by the rules
/// that the module states. The joints of the result are bones of the skeleton.
///
/// # Errors
/// [`Error::Format`] naming the bone and the vertex where that is not below `vertices`.
pub fn load(mut file: WeightsFile, skeleton: &Skeleton, vertices: usize) -> Result<(Weights, Report)> {
    let mut rules = Rules::new(skeleton);
    let entries = |list: &[(String, Vec<(u32, f64)>)]| list.iter().map(|(_, l)| l.len()).sum::<usize>();
    file.bones.retain(|(name, _)| {
        let mask = name.starts_with(MASK) && skeleton.find(name).is_none();
        if mask {
            rules.report.masks.push(name.clone());
        }
        !mask
    });
    let by_bone = file.weights(Some(vertices))?;
    let merged: usize = by_bone.iter().map(<[_]>::len).sum();
    rules.report.doubles_merged = entries(&file.bones) - merged;
    let joint_of: Vec<Option<usize>> = file.bones.iter().map(|(name, _)| skeleton.find(name)).collect();
    for ((name, list), joint) in file.bones.iter().zip(&joint_of) {
        if joint.is_none() && !list.is_empty() {
            rules.report.unknown_bones.push((name.clone(), list.len()));
        }
    }
    for row in by_bone.iter() {
        let known = row.iter().filter_map(|i| {
            let joint = joint_of[i.joint as usize]?;
            Some(Influence { joint: joint as u32, weight: i.weight })
        });
        rules.push(known);
    }
    Ok(rules.finish())
}

/// Settles vertices one after the other: doubles are added up, the weights are divided by their sum, those up to 0.0001 are
/// dropped, the rest is divided by its sum again, and a vertex without weight goes to the root bone.
pub(super) struct Rules {
    pub report: Report,
    weights: Weights,
    row: Vec<Influence>,
    root: u32,
    has_weight: Vec<bool>,
}

impl Rules {
    pub fn new(skeleton: &Skeleton) -> Self {
        let root = skeleton.bones().iter().position(|b| b.parent.is_none()).unwrap_or(0) as u32;
        let report = Report { smallest_sum: f64::INFINITY, ..Report::default() };
        let has_weight = vec![false; skeleton.len()];
        Self { report, weights: Weights::default(), row: Vec::new(), root, has_weight }
    }

    /// Adds the next vertex.
    pub fn push(&mut self, influences: impl IntoIterator<Item = Influence>) {
        self.row.clear();
        self.row.extend(influences);
        let sum: f64 = self.row.iter().map(|i| i.weight).sum();
        self.row.sort_by_key(|i| i.joint);
        self.row.dedup_by(|later, kept| {
            let same = later.joint == kept.joint;
            kept.weight += if same { later.weight } else { 0.0 };
            same
        });
        if sum > 0.0 {
            self.note_sum(sum);
            divide(&mut self.row, sum);
            let before = self.row.iter().filter(|i| i.weight > 0.0).count();
            self.row.retain(|i| i.weight > LEAST);
            self.report.faint_dropped += before - self.row.len();
            let rest = self.row.iter().map(|i| i.weight).sum();
            divide(&mut self.row, rest);
        } else {
            self.row.clear();
        }
        if self.row.is_empty() {
            self.report.sent_to_root += 1;
            self.row.push(Influence { joint: self.root, weight: 1.0 });
        }
        self.row.iter().for_each(|i| self.has_weight[i.joint as usize] = true);
        self.weights.push(self.row.iter().copied());
    }

    fn note_sum(&mut self, sum: f64) {
        let report = &mut self.report;
        report.sums_off += usize::from((sum - 1.0).abs() > OFF);
        report.smallest_sum = report.smallest_sum.min(sum);
        report.largest_sum = report.largest_sum.max(sum);
    }

    pub fn finish(mut self) -> (Weights, Report) {
        let report = &mut self.report;
        report.vertices = self.weights.len();
        report.influences = self.weights.iter().map(<[_]>::len).sum();
        report.most_influences = self.weights.most_influences();
        report.weighted_bones = self.has_weight.iter().filter(|has| **has).count();
        if report.smallest_sum == f64::INFINITY {
            report.smallest_sum = 0.0;
        }
        (self.weights, self.report)
    }
}

fn divide(row: &mut [Influence], sum: f64) {
    if (sum - 1.0).abs() > ROUNDING {
        row.iter_mut().for_each(|i| i.weight /= sum);
    }
}

/// At most `most` bones a vertex: of more, those of largest weight are kept, of equal ones those of higher bone index, and made
/// to add up to 1 again. Also the largest share that a vertex lost.
///
/// # Errors
/// [`Error::Parameter`] where `most` is 0.
pub fn reduce(weights: &Weights, most: usize) -> Result<(Weights, f64)> {
    if most == 0 {
        return Err(Error::Parameter { name: "max-influences", value: "0".into(), allowed: "it must be at least 1" });
    }
    let mut out = Weights::with_capacity(weights.len(), weights.len() * most);
    let mut largest_lost: f64 = 0.0;
    for row in weights.iter() {
        if row.len() <= most {
            out.push(row.iter().copied());
            continue;
        }
        let mut row = row.to_vec();
        let whole: f64 = row.iter().map(|i| i.weight).sum();
        row.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(b.joint.cmp(&a.joint)));
        row.truncate(most);
        let kept: f64 = row.iter().map(|i| i.weight).sum();
        largest_lost = largest_lost.max(1.0 - kept / whole);
        divide(&mut row, kept);
        row.sort_by_key(|i| i.joint);
        out.push(row);
    }
    Ok((out, largest_lost))
}

impl Report {
    /// What the user should know, for weights from this source ("shoes01.mhw").
    pub fn warnings(&self, source: &str, root: &str) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let unknown = &self.unknown_bones;
        if !unknown.is_empty() {
            let listed = names(unknown.iter().map(|(name, entries)| format!("\"{name}\" ({entries} entries)")));
            let text = format!("{source}: the rig has no bone for {listed}; their entries were left out.");
            let warning = Warning::new(Code::FileIgnored, text);
            warnings.push(if let [(name, _)] = &unknown[..] { warning.bone(name) } else { warning });
        }
        if self.sent_to_root > 0 {
            let text = format!(
                "{source}: {} vertices have no weight; the root bone \"{root}\" takes them.",
                self.sent_to_root
            );
            warnings.push(Warning::new(Code::ComponentUnreached, text).bone(root).vertices(self.sent_to_root));
        }
        warnings
    }
}

/// Names for a message, the first dozen of them.
pub(super) fn names(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(MOST_NAMES);
    let listed = all.take(MOST_NAMES).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{listed} and {more} more") } else { listed }
}
