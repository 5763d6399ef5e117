//! Weights of a rig from those of another, the master: each bone takes the weights of all the master's bones that it refers to.

use serde::Serialize;

use super::rig::Rig;
use super::weights::{self, Rules, names};
use crate::error::{Error, Result};
use crate::model::{Code, Influence, Warning, Weights};

/// What the derivation met.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Report {
    /// What the rules for weights did.
    #[serde(flatten)]
    pub rules: weights::Report,
    /// References to bones that the master lacks: (bone, reference).
    pub unknown_references: Vec<(String, String)>,
    /// Bones of the master that no bone refers to but that have weight: (bone, the bone that took their weight).
    pub inherited: Vec<(String, String)>,
}

/// Derives weights. A bone takes the weights of all its `weights_references`, and then the rules for weights files apply.
///
/// Some bones of the master may be referred to by none (a game rig has no jaw). Their weight goes to what refers to their
/// nearest ancestor, so that the jaw follows the head; left alone it would be lost, and what hangs on it alone would fall to the
/// root.
///
/// # Errors
/// [`Error::Check`] where no reference is a bone of the master.
pub fn derive(weights: &Weights, master: &Rig, rig: &Rig) -> Result<(Weights, Report)> {
    let mut report = Report::default();
    let mut takers = vec![Vec::new(); master.skeleton.len()];
    for (bone, references) in rig.weights_references.iter().enumerate() {
        for reference in references {
            match master.skeleton.find(reference) {
                Some(source) if !takers[source].contains(&(bone as u32)) => takers[source].push(bone as u32),
                Some(_) => {}
                // A bone that names none stands for itself, and need not be in the master.
                None if *reference == rig.skeleton.bones()[bone].name => {}
                None => {
                    let name = rig.skeleton.bones()[bone].name.clone();
                    report.unknown_references.push((name, reference.clone()));
                }
            }
        }
    }
    if takers.iter().all(Vec::is_empty) {
        let what = format!("no bone of \"{}\" refers to a bone of \"{}\"", rig.name, master.name);
        return Err(Error::Check(what));
    }
    let mut weighted = vec![false; takers.len()];
    weights.iter().flatten().for_each(|i| weighted[i.joint as usize] = true);
    for bone in master.skeleton.parents_first() {
        let Some(parent) = master.skeleton.bones()[bone].parent else { continue };
        if takers[bone].is_empty() {
            takers[bone] = takers[parent].clone();
            if let (true, Some(&taker)) = (weighted[bone], takers[bone].first()) {
                let name = |rig: &Rig, bone: usize| rig.skeleton.bones()[bone].name.clone();
                report.inherited.push((name(master, bone), name(rig, taker as usize)));
            }
        }
    }
    let mut rules = Rules::new(&rig.skeleton);
    for row in weights.iter() {
        let shared = |i: &Influence| {
            let weight = i.weight;
            takers[i.joint as usize].iter().map(move |&joint| Influence { joint, weight })
        };
        rules.push(row.iter().flat_map(shared));
    }
    let (derived, rules) = rules.finish();
    report.rules = rules;
    Ok((derived, report))
}

impl Report {
    /// What the user should know, for weights from this source.
    pub fn warnings(&self, source: &str, root: &str) -> Vec<Warning> {
        let mut warnings = self.rules.warnings(source, root);
        if !self.unknown_references.is_empty() {
            let listed = names(self.unknown_references.iter().map(|(bone, r)| format!("\"{r}\" (of \"{bone}\")")));
            let text = format!("{source}: the master rig has no bone for the references {listed}.");
            warnings.push(Warning::new(Code::FileIgnored, text));
        }
        if !self.inherited.is_empty() {
            let listed = names(self.inherited.iter().map(|(bone, to)| format!("\"{bone}\" to \"{to}\"")));
            let text = format!(
                "{source}: no bone refers to some of the master's; their weight went with their parent's: {listed}."
            );
            warnings.push(Warning::new(Code::Fallback, text));
        }
        warnings
    }
}
