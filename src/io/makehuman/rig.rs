//! Rigs: MakeHuman's `.mhskel` and MPFB's `rig.*.json`. Both place joints by vertices of the base mesh, so that a rig fits
//! whatever shape the body was given.

use std::collections::HashMap;
use std::f64::consts::FRAC_PI_2;
use std::path::Path;

use glam::{DQuat, DVec3};
use serde_json::{Map, Value};

use super::base::Base;
use super::rest;
use crate::error::{Error, Result};
use crate::io::skeleton_json::json_fault;
use crate::model::{Bone, Pose, Skeleton, Transform};

/// A rig placed in a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Rig {
    pub name: String,
    /// Breadth-first from the roots, children in the file's order: the numbering of MakeHuman.
    pub skeleton: Skeleton,
    /// How each bone's own axes lie in the world at rest: y along the bone.
    pub axes: Vec<DQuat>,
    /// For each bone those of the master rig that its poses come from, in the file's order. A bone that names none takes its
    /// own name.
    pub pose_references: Vec<Vec<String>>,
    /// The same for its weights.
    pub weights_references: Vec<Vec<String>>,
    /// The weights file that the rig names as its own.
    pub weights_file: Option<String>,
}

impl Rig {
    /// Reads a rig and places its joints in the base mesh.
    ///
    /// # Errors
    /// All under the file's name: [`Error::Read`], [`Error::Line`] where it is not JSON, [`Error::Format`] naming the bone or the
    /// joint at fault, and those of [`Skeleton::new`].
    pub fn read(path: impl AsRef<Path>, base: &Base) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::Read(e).in_file(path))?;
        Self::parse(&bytes, base).map_err(|e| e.in_file(path))
    }

    /// Reads the text of a rig; errors as [`Rig::read`].
    pub fn parse(text: &[u8], base: &Base) -> Result<Self> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let root: Value = serde_json::from_slice(text).map_err(json_fault)?;
        let fault = |what: &str| Error::format("rig", what);
        let root = root.as_object().ok_or_else(|| fault("it is not an object with bones"))?;
        // MPFB's older files are the bones alone.
        let bones = match root.get("bones") {
            Some(bones) => bones.as_object().ok_or_else(|| fault("\"bones\" is not an object"))?,
            None => root,
        };
        let places = Places { root, middles: base.group_middles(), positions: base.mesh.positions() };
        let names = breadth_first(bones)?;
        let index: HashMap<&str, usize> = names.iter().enumerate().map(|(i, &n)| (n, i)).collect();
        let (mut list, mut axes, mut poses, mut weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for &name in &names {
            let entry = &bones[name];
            let (head, tail) = (places.end(entry, "head", name)?, places.end(entry, "tail", name)?);
            let parent = parent_of(entry, name)?.map(|p| index[p]);
            list.push(Bone { name: name.into(), head, tail, parent, deform: true });
            axes.push(places.axes(entry, name, tail - head)?);
            let pose = references(entry, "reference", name)?;
            let weight = references(entry, "weights_reference", name)?;
            let own = || vec![name.to_owned()];
            weights.push(weight.or_else(|| pose.clone()).unwrap_or_else(own));
            poses.push(pose.unwrap_or_else(own));
        }
        Ok(Self {
            name: root.get("name").and_then(Value::as_str).unwrap_or_default().into(),
            skeleton: Skeleton::new(list)?,
            axes,
            pose_references: poses,
            weights_references: weights,
            weights_file: root.get("weights_file").and_then(Value::as_str).map(Into::into),
        })
    }

    /// The rest pose: each joint at its bone's head, turned into its bone's axes.
    pub fn rest(&self) -> Pose {
        let bones = self.skeleton.bones();
        let local = |(bone, &axes): (&Bone, &DQuat)| {
            let (from, up) =
                bone.parent.map_or((DVec3::ZERO, DQuat::IDENTITY), |p| (bones[p].head, self.axes[p].conjugate()));
            Transform { translation: up * (bone.head - from), rotation: (up * axes).normalize(), scale: DVec3::ONE }
        };
        Pose { locals: bones.iter().zip(&self.axes).map(local).collect() }
    }

    /// The bone that nothing is above, the first of several.
    pub fn root(&self) -> &str {
        let root = self.skeleton.bones().iter().find(|b| b.parent.is_none());
        root.map_or("", |b| &b.name)
    }
}

fn bone_fault(bone: &str, what: impl Into<String>) -> Error {
    Error::format(format!("bone \"{bone}\""), what)
}

/// MPFB writes no parent as an empty text, MakeHuman as null.
fn parent_of<'a>(entry: &'a Value, bone: &str) -> Result<Option<&'a str>> {
    match entry.get("parent") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.as_str()).filter(|n| !n.is_empty())),
        Some(_) => Err(bone_fault(bone, "its parent is not the name of a bone")),
    }
}

/// The names of the bones level by level. Bones on a cycle, which no root reaches, come last, for [`Skeleton::new`] to name.
fn breadth_first(bones: &Map<String, Value>) -> Result<Vec<&str>> {
    let mut children: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut order = Vec::with_capacity(bones.len());
    for (name, entry) in bones {
        if !entry.is_object() {
            return Err(bone_fault(name, "it is not an object with head, tail and parent"));
        }
        match parent_of(entry, name)? {
            None => order.push(name.as_str()),
            Some(parent) if bones.contains_key(parent) => children.entry(parent).or_default().push(name),
            Some(parent) => return Err(Error::UnknownParent { bone: name.clone(), parent: parent.into() }),
        }
    }
    let mut next = 0;
    while next < order.len() {
        order.extend(children.remove(order[next]).unwrap_or_default());
        next += 1;
    }
    let reached: std::collections::HashSet<&str> = order.iter().copied().collect();
    order.extend(bones.keys().map(String::as_str).filter(|name| !reached.contains(name)));
    Ok(order)
}

/// The names under a key: one, or a list; `None` where there are none.
fn references(entry: &Value, key: &str, bone: &str) -> Result<Option<Vec<String>>> {
    let fault = || bone_fault(bone, format!("its {key} is not a list of names"));
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(vec![name.clone()])),
        Some(Value::Array(list)) => {
            let names: Option<Vec<String>> = list.iter().map(|n| n.as_str().map(Into::into)).collect();
            names.ok_or_else(fault).map(|names| Some(names).filter(|n| !n.is_empty()))
        }
        Some(_) => Err(fault()),
    }
}

/// Where joints lie.
struct Places<'a> {
    root: &'a Map<String, Value>,
    middles: HashMap<&'a str, DVec3>,
    positions: &'a [DVec3],
}

impl Places<'_> {
    /// The head or tail of a bone: the name of a joint (MakeHuman) or a rule (MPFB).
    fn end(&self, entry: &Value, end: &str, bone: &str) -> Result<DVec3> {
        match entry.get(end) {
            Some(Value::String(joint)) => self.joint(joint, bone),
            Some(Value::Object(rule)) => self.rule(rule, end, bone),
            _ => Err(bone_fault(bone, format!("it has no {end}"))),
        }
    }

    /// The mean of a joint's vertices.
    fn joint(&self, joint: &str, bone: &str) -> Result<DVec3> {
        let vertices = self.root.get("joints").and_then(|j| j.get(joint));
        let list = vertices.ok_or_else(|| bone_fault(bone, format!("its joint \"{joint}\" is not in the file")))?;
        self.mean(list, &format!("joint \"{joint}\""))
    }

    fn rule(&self, rule: &Map<String, Value>, end: &str, bone: &str) -> Result<DVec3> {
        let place = format!("bone \"{bone}\", {end}");
        let list = rule.get("vertex_indices").unwrap_or(&Value::Null);
        match rule.get("strategy").and_then(Value::as_str) {
            Some("CUBE") => {
                let name = rule.get("cube_name").and_then(Value::as_str).unwrap_or_default();
                let middle = self.middles.get(name).copied();
                middle.ok_or_else(|| Error::format(place, format!("the base mesh has no group \"{name}\"")))
            }
            Some("MEAN") => self.mean(list, &place),
            Some("VERTEX") => self.vertex(rule.get("vertex_index").unwrap_or(&Value::Null), &place),
            Some("XYZ") => {
                let three = list.as_array().filter(|l| l.len() == 3);
                let three = three.ok_or_else(|| Error::format(&place, "its vertex_indices are not three numbers"))?;
                let axis = |i: usize| self.vertex(&three[i], &place).map(|p| p[i]);
                Ok(DVec3::new(axis(0)?, axis(1)?, axis(2)?))
            }
            other => {
                let known = "known are CUBE, MEAN, VERTEX and XYZ";
                Err(Error::format(place, format!("strategy \"{}\"; {known}", other.unwrap_or("(missing)"))))
            }
        }
    }

    fn mean(&self, list: &Value, place: &str) -> Result<DVec3> {
        let list = list.as_array().filter(|l| !l.is_empty());
        let list = list.ok_or_else(|| Error::format(place, "it has no list of vertices"))?;
        let sum = list.iter().try_fold(DVec3::ZERO, |sum, v| Ok::<_, Error>(sum + self.vertex(v, place)?))?;
        Ok(sum / list.len() as f64)
    }

    fn vertex(&self, number: &Value, place: &str) -> Result<DVec3> {
        let known = number.as_u64().and_then(|v| self.positions.get(usize::try_from(v).ok()?));
        known.copied().ok_or_else(|| {
            let count = self.positions.len();
            Error::format(
                place,
                format!("vertex {number} (0-based) is not in the base mesh, which has {count} vertices"),
            )
        })
    }

    /// From the bone's rotation plane or planes, else from its roll, else from no plane.
    fn axes(&self, entry: &Value, name: &str, bone: DVec3) -> Result<DQuat> {
        if let Some(planes) = references(entry, "rotation_plane", name)? {
            let normals = planes.iter().map(|plane| self.plane(plane, name)).collect::<Result<Vec<DVec3>>>()?;
            return Ok(rest::from_normal(bone, normals.into_iter().sum()));
        }
        let Some(roll) = entry.get("roll").filter(|r| !r.is_null()) else {
            return Ok(rest::from_normal(bone, DVec3::ZERO));
        };
        let roll = roll.as_f64().filter(|r| r.is_finite());
        let roll = roll.ok_or_else(|| bone_fault(name, "its roll is not a number"))?;
        if entry["head"].is_object() {
            // MPFB's rolls are about bones in Blender's axes, where z points up.
            let up = DQuat::from_rotation_x(-FRAC_PI_2);
            return Ok((up * rest::from_roll(up.conjugate() * bone, roll)).normalize());
        }
        Ok(rest::from_roll(bone, roll))
    }

    fn plane(&self, plane: &str, bone: &str) -> Result<DVec3> {
        let joints = self.root.get("planes").and_then(|p| p.get(plane)).and_then(Value::as_array);
        let names: Vec<&str> = joints.into_iter().flatten().filter_map(Value::as_str).collect();
        let [a, b, c] = names[..] else {
            return Err(bone_fault(bone, format!("its rotation plane \"{plane}\" is not three joints of the file")));
        };
        Ok(rest::plane_normal([self.joint(a, bone)?, self.joint(b, bone)?, self.joint(c, bone)?]))
    }
}
