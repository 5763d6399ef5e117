//! Bone heat as older tools iterate it, to compare with: Gauss-Seidel sweeps (Seidel 1874) from a guess, stopped long before
//! they arrive. Not used by any method.

use crate::heat::surface::system::System;
use crate::model::{Influence, Weights};

/// When to stop sweeping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stop {
    /// When no heat changes by as much as this in a sweep.
    pub change: f64,
    /// After so many sweeps at the latest.
    pub sweeps: usize,
}

/// Where older tools stop.
pub const STOP: Stop = Stop { change: 1e-5, sweeps: 200 };
/// Weights that older tools drop.
pub const DROP: f64 = 0.01;

/// What the sweeps of a bone came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Swept {
    /// By unknown.
    pub heat: Vec<f64>,
    pub sweeps: usize,
    /// The largest change of a heat in the last sweep.
    pub change: f64,
}

/// Sweeps over the heats of one bone, starting from 1 (or the bone's share) where it is the nearest and 0 elsewhere. For edge
/// weights as older tools have them make the system with [`crate::heat::surface::Conduction::Lengths`].
pub fn sweep(system: &System, bone: u32, stop: Stop) -> Swept {
    let share = |i: usize| {
        let heaters = system.heaters_of(i);
        if heaters.contains(&bone) { 1.0 / heaters.len() as f64 } else { 0.0 }
    };
    let diagonal: Vec<f64> = (0..system.len()).map(|i| system.diagonal(i)).collect();
    let mut swept = Swept { heat: (0..system.len()).map(share).collect(), sweeps: 0, change: f64::INFINITY };
    while swept.change >= stop.change && swept.sweeps < stop.sweeps {
        swept.change = 0.0;
        for (i, diagonal) in diagonal.iter().enumerate() {
            let inflow: f64 = system.edges(i).map(|(j, conductance)| conductance * swept.heat[j as usize]).sum();
            let heat = (inflow + system.source[i] * share(i)) / diagonal;
            swept.change = swept.change.max((heat - swept.heat[i]).abs());
            swept.heat[i] = heat;
        }
        swept.sweeps += 1;
    }
    swept
}

/// The weights that older tools make of it, by unknown: all bones of so many swept, those below [`DROP`] dropped, the rest
/// divided by their sum. Where all are dropped the row is empty.
pub fn weights(system: &System, bones: usize, stop: Stop) -> Weights {
    let swept: Vec<Swept> = (0..bones as u32).map(|bone| sweep(system, bone, stop)).collect();
    let mut weights = Weights::with_capacity(system.len(), system.len());
    for i in 0..system.len() {
        let heats = swept.iter().map(|s| s.heat[i]).enumerate().filter(|(_, heat)| *heat >= DROP);
        let sum: f64 = heats.clone().map(|h| h.1).sum();
        weights.push(heats.map(|(bone, heat)| Influence { joint: bone as u32, weight: heat / sum }));
    }
    weights
}
