//! Painting weights: dabs of a round brush, strokes of many dabs, and what undoes them.

use glam::DVec3;

use crate::edit::rows::{Locks, Members, add};
use crate::edit::smooth::check_length;
use crate::error::{Error, Result};
use crate::geometry::box_tree::BoxTree;
use crate::geometry::mesh_graph::MeshGraph;
use crate::model::{Influence, Mesh, Weights, Weld};

/// Other bones with less than this together count as none: they are not scaled up.
const NONE_LEFT: f64 = 1e-9;

/// What a dab does to the weight w of its bone, f being the brush's falloff at the vertex.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// `w + f (1 - w)`.
    Add,
    /// `w - f w`.
    Subtract,
    /// `w + f (v - w)` for this v from 0 to 1.
    Set(f64),
    /// `w + f (m - w)`, m the mean of the neighbours, all as they were before the dab.
    Smooth,
}

/// A round brush.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Brush {
    pub mode: Mode,
    /// The bone that is painted.
    pub joint: u32,
    /// Its radius r, in the mesh's unit of length. At the distance d from its centre it acts with
    /// `f = (1 - d^2 / r^2)^2 strength`, and not at all from r on.
    pub radius: f64,
    /// 0 to 1.
    pub strength: f64,
    /// Whether the other bones that are not locked are scaled so that all weights of a vertex add up to 1.
    pub normalize: bool,
}

/// The rows of vertices as they were before a dab or stroke. Handing them to [`Painter::undo`] brings them back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    before: Vec<(u32, Vec<Influence>)>,
}

impl Changes {
    /// The vertices that were touched, each once.
    pub fn vertices(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.before.iter().map(|(vertex, _)| *vertex)
    }
}

/// Weights that are being painted, with what finds the vertices under a brush: a dab costs what it touches, however large
/// the mesh.
#[derive(Debug, Clone)]
pub struct Painter {
    positions: Vec<DVec3>,
    tree: BoxTree,
    weld: Weld,
    members: Members,
    graph: MeshGraph,
    bones: usize,
    rows: Vec<Vec<Influence>>,
    /// For each vertex the last stroke that touched it.
    touched: Vec<u64>,
    strokes: u64,
    /// What no dab changes. May be changed between dabs.
    pub locks: Locks,
}

impl Painter {
    /// Weights of a mesh for a skeleton of so many bones. Doubles are taken together.
    ///
    /// # Errors
    /// [`Error::Length`] where there is not one row a vertex; [`Error::Influence`] for a joint that is not there and for a
    /// weight that is negative or not finite.
    pub fn new(mesh: &Mesh, weights: &Weights, bones: usize, locks: Locks) -> Result<Self> {
        check_length(mesh, weights)?;
        let mut rows = Vec::with_capacity(weights.len());
        for (vertex, row) in weights.iter().enumerate() {
            let mut merged = Vec::with_capacity(row.len());
            for i in row {
                let fault = |what: String| Error::Influence { vertex, joint: i.joint, what };
                if i.joint as usize >= bones {
                    return Err(fault(format!("there are {bones} joints")));
                }
                if !(i.weight >= 0.0 && i.weight.is_finite()) {
                    return Err(fault(format!("the weight is {}", i.weight)));
                }
                add(&mut merged, i.joint, i.weight);
            }
            rows.push(merged);
        }
        let positions = mesh.positions().to_vec();
        let boxes: Vec<(DVec3, DVec3)> = positions.iter().map(|&p| (p, p)).collect();
        let weld = mesh.weld();
        Ok(Self {
            tree: BoxTree::new(&boxes),
            graph: MeshGraph::new(mesh, &weld),
            members: Members::new(&weld),
            weld,
            touched: vec![0; positions.len()],
            positions,
            bones,
            rows,
            strokes: 0,
            locks,
        })
    }

    /// The weights as they are now.
    pub fn weights(&self) -> Weights {
        let mut weights = Weights::with_capacity(self.rows.len(), 4 * self.rows.len());
        self.rows.iter().for_each(|row| weights.push(row.iter().copied()));
        weights
    }

    /// The influences of a vertex as they are now.
    pub fn of(&self, vertex: usize) -> &[Influence] {
        &self.rows[vertex]
    }

    /// One dab at a point. A locked bone is not painted.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a brush out of its ranges or a point that is not finite.
    pub fn dab(&mut self, center: DVec3, brush: &Brush) -> Result<Changes> {
        self.stroke(&[center], brush)
    }

    /// A dab at each of the points, one after the other; what was there before all of them is returned.
    ///
    /// # Errors
    /// As [`Painter::dab`]; nothing is painted then.
    pub fn stroke(&mut self, centers: &[DVec3], brush: &Brush) -> Result<Changes> {
        self.check(centers, brush)?;
        self.strokes += 1;
        let mut changes = Changes::default();
        if self.locks.bone(brush.joint) {
            return Ok(changes);
        }
        let mut targets = Vec::new();
        for &center in centers {
            self.find_targets(center, brush, &mut targets);
            for &(vertex, weight) in &targets {
                let row = &mut self.rows[vertex as usize];
                if std::mem::replace(&mut self.touched[vertex as usize], self.strokes) != self.strokes {
                    changes.before.push((vertex, row.clone()));
                }
                put(row, brush.joint, weight, brush.normalize, &self.locks);
            }
        }
        Ok(changes)
    }

    /// Brings back what a dab or stroke changed; what is returned undoes that. Strokes are undone last first.
    pub fn undo(&mut self, mut changes: Changes) -> Changes {
        for (vertex, row) in &mut changes.before {
            std::mem::swap(row, &mut self.rows[*vertex as usize]);
        }
        changes
    }

    /// The vertices under the brush with the weights that the bone is to have there.
    fn find_targets(&self, center: DVec3, brush: &Brush, targets: &mut Vec<(u32, f64)>) {
        targets.clear();
        let reach = brush.radius * brush.radius;
        self.tree.search(center, reach, |vertex, reach| {
            let squared = self.positions[vertex as usize].distance_squared(center);
            if squared < reach && !self.locks.vertex(vertex as usize) {
                let fade = 1.0 - squared / reach;
                let falloff = fade * fade * brush.strength;
                let now = weight(&self.rows[vertex as usize], brush.joint);
                let goal = match brush.mode {
                    Mode::Add => Some(1.0),
                    Mode::Subtract => Some(0.0),
                    Mode::Set(value) => Some(value),
                    Mode::Smooth => self.mean_around(vertex, brush.joint),
                };
                targets.extend(goal.map(|goal| (vertex, now + falloff * (goal - now))));
            }
            reach
        });
    }

    /// The mean weight of the neighbouring places; `None` where there are none.
    fn mean_around(&self, vertex: u32, joint: u32) -> Option<f64> {
        let neighbors = self.graph.of(self.weld.place_of[vertex as usize]);
        let at = |place: u32| {
            let vertices = self.members.of(place);
            vertices.iter().map(|&v| weight(&self.rows[v as usize], joint)).sum::<f64>() / vertices.len() as f64
        };
        (!neighbors.is_empty()).then(|| neighbors.iter().map(|&n| at(n)).sum::<f64>() / neighbors.len() as f64)
    }

    fn check(&self, centers: &[DVec3], brush: &Brush) -> Result<()> {
        let fault = |name, value: String, allowed| Err(Error::Parameter { name, value, allowed });
        if brush.joint as usize >= self.bones {
            return fault("painted joint", brush.joint.to_string(), "the skeleton has fewer");
        }
        if !(brush.radius > 0.0 && brush.radius.is_finite()) {
            return fault("brush radius", brush.radius.to_string(), "it must be above 0");
        }
        if !(0.0..=1.0).contains(&brush.strength) {
            return fault("brush strength", brush.strength.to_string(), "it must be from 0 to 1");
        }
        if let Mode::Set(value) = brush.mode
            && !(0.0..=1.0).contains(&value)
        {
            return fault("painted weight", value.to_string(), "it must be from 0 to 1");
        }
        match centers.iter().find(|c| !c.is_finite()) {
            Some(center) => fault("brush center", center.to_string(), "it must be finite"),
            None => Ok(()),
        }
    }
}

fn weight(row: &[Influence], joint: u32) -> f64 {
    row.iter().find(|i| i.joint == joint).map_or(0.0, |i| i.weight)
}

/// Gives a bone a weight; with `normalize` the other bones share what it and the locked ones leave of 1.
fn put(row: &mut Vec<Influence>, joint: u32, weight: f64, normalize: bool, locks: &Locks) {
    let mut weight = weight.clamp(0.0, 1.0);
    row.retain(|i| i.joint != joint);
    if normalize {
        let is_locked = |i: &Influence| locks.bone(i.joint);
        let locked: f64 = row.iter().filter(|i| is_locked(i)).map(|i| i.weight).sum();
        let left = (1.0 - locked).max(0.0);
        weight = weight.min(left);
        let others: f64 = row.iter().filter(|i| !is_locked(i)).map(|i| i.weight).sum();
        if others > NONE_LEFT {
            // From what is left, not from the old sum: rounding can not pile up over many dabs.
            let scale = (left - weight).max(0.0) / others;
            row.iter_mut().filter(|i| !is_locked(i)).for_each(|i| i.weight *= scale);
        } else {
            weight = left;
            row.retain(is_locked);
        }
    }
    row.push(Influence { joint, weight });
    row.retain(|i| i.weight > 0.0);
}
