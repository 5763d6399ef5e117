//! Animations of a file (glTF 2.0, section 3.11 and appendix C): what moves its nodes, sampled at any time by
//! [`Animation`].

use glam::{DAffine3, DQuat, DVec3};
use serde_json::Value;

use super::Document;
use super::accessor::Component;
use super::json::{index, list, member, need_index, numbers, text};
use crate::error::{Error, Result};
use crate::model::{Animation, Code, Interpolation, JointTracks, Key, Track, Transform, Warning};

/// However small the file, an animation may have this many numbers.
const FREE: usize = 1 << 22;
/// Channels may share their data; together they may have at most so many numbers for each byte of the file.
const PER_BYTE: usize = 4;

impl Document {
    /// The names of the animations; one without a name is called `animation_N`, with N its number from 0.
    ///
    /// # Errors
    /// [`Error::Format`] for a name that is no text.
    pub fn animation_names(&self) -> Result<Vec<String>> {
        let name = |(number, row): (usize, &Value)| {
            let name = text(row, "name", &format!("animation {number}"))?;
            Ok(name.map_or_else(|| format!("animation_{number}"), str::to_owned))
        };
        self.list("animations")?.iter().enumerate().map(name).collect()
    }

    /// The animation of this number: one entry of tracks a node of the file, in the order of `nodes`. What it does
    /// besides (morph targets, pointers to other values) is left out, with a warning.
    ///
    /// # Errors
    /// [`Error::Format`] naming animation and channel: keys that are none (see [`Track::new`]), a node that is moved
    /// twice or by a matrix that no translation, rotation and scale can express, data that does not fit;
    /// [`Error::Limit`] where many channels share so much data that the file would multiply.
    pub fn animation(&self, number: usize) -> Result<(Animation, Vec<Warning>)> {
        let row = self.entry("animations", number, "the animation asked for")?;
        let name = self.animation_names()?.swap_remove(number);
        let place = format!("animation {number} (\"{name}\")");
        let nodes = self.list("nodes")?.len();
        let samplers = list(row, "samplers", &place)?;
        let mut joints = vec![JointTracks::default(); nodes];
        let (mut left_out, mut size) = (0, 0);
        for (c, channel) in list(row, "channels", &place)?.iter().enumerate() {
            let place = format!("{place}, channel {c}");
            let target = member(channel, "target").ok_or_else(|| Error::format(&place, "target is missing"))?;
            let path = text(target, "path", &place)?.unwrap_or("(missing)");
            let Some(node) = index(target, "node", &place)?.filter(|_| is_transform(path)) else {
                left_out += 1;
                continue;
            };
            self.entry("nodes", node, &place)?;
            self.rest_transform(node)?;
            let sampler = need_index(channel, "sampler", &place)?;
            let sampler = samplers.get(sampler).ok_or_else(|| {
                Error::format(&place, format!("names sampler {sampler}, but there are {}", samplers.len()))
            })?;
            let sampler = Sampler::new(sampler, &place)?;
            let tracks = &mut joints[node];
            let taken = match path {
                "rotation" => tracks.rotation.replace(self.track(&sampler, &mut size, &place, &ROTATION)?).is_some(),
                "translation" => {
                    tracks.translation.replace(self.track(&sampler, &mut size, &place, &VECTOR)?).is_some()
                }
                _ => tracks.scale.replace(self.track(&sampler, &mut size, &place, &VECTOR)?).is_some(),
            };
            if taken {
                let what = format!("the {path} of {} is animated by an earlier channel too", self.node_place(node));
                return Err(Error::format(place, what));
            }
        }
        let mut warnings = Vec::new();
        if left_out > 0 {
            let what = format!("Animation \"{name}\": {left_out} channels that move no node are left out.");
            warnings.push(Warning::new(Code::FileIgnored, what));
        }
        Ok((Animation { name, joints }, warnings))
    }

    /// Reads the keys of a channel.
    fn track<V: Key>(&self, sampler: &Sampler, size: &mut usize, place: &str, stored: &Stored<V>) -> Result<Track<V>> {
        let Stored { width, allowed, make } = *stored;
        let here = |e: Error| match e {
            Error::Format { place: part, what } => Error::format(place, format!("{part}: {what}")),
            other => other,
        };
        let times = self.accessor(sampler.input, place)?;
        times.expect(1, &[Component::F32], "the times of an animation").map_err(here)?;
        let values = self.accessor(sampler.output, place)?;
        values.expect(width, allowed, "what the channel moves").map_err(here)?;
        *size = size.saturating_add(times.count).saturating_add(values.count.saturating_mul(width));
        let limit = self.file_bytes.saturating_mul(PER_BYTE).max(FREE);
        if *size > limit {
            return Err(Error::Limit {
                what: format!("numbers in {place} and those before it"),
                needed: size.to_string(),
                limit: limit.to_string(),
                advice: "its channels share their data too often".into(),
            });
        }
        let (times, values) = (times.read(|e| e[0]).map_err(here)?, values.read(make).map_err(here)?);
        Track::new(times, values, sampler.interpolation).map_err(here)
    }

    /// A node's own transform as translation, rotation and scale: what an animation changes parts of.
    ///
    /// # Errors
    /// [`Error::Format`] for a matrix that shears.
    pub(super) fn rest_transform(&self, node: usize) -> Result<Transform> {
        let place = self.node_place(node);
        let row = self.entry("nodes", node, &place)?;
        if let Some(matrix) = numbers::<16>(row, "matrix", &place)? {
            let matrix = DAffine3::from_mat4(glam::DMat4::from_cols_array(&matrix));
            return Transform::from_affine(&matrix)
                .ok_or_else(|| Error::format(place, "it is animated, but its matrix shears"));
        }
        let rest = Transform::IDENTITY;
        let rotation = numbers::<4>(row, "rotation", &place)?.map_or(rest.rotation, DQuat::from_array);
        let length = rotation.length();
        Ok(Transform {
            translation: numbers::<3>(row, "translation", &place)?.map_or(rest.translation, DVec3::from_array),
            // One of length 0 turns nothing.
            rotation: if length > 0.0 && length.is_finite() { rotation / length } else { rest.rotation },
            scale: numbers::<3>(row, "scale", &place)?.map_or(rest.scale, DVec3::from_array),
        })
    }
}

/// Where the keys of a channel are.
struct Sampler {
    input: usize,
    output: usize,
    interpolation: Interpolation,
}

impl Sampler {
    fn new(row: &Value, place: &str) -> Result<Self> {
        let interpolation = match text(row, "interpolation", place)? {
            None | Some("LINEAR") => Interpolation::Linear,
            Some("STEP") => Interpolation::Step,
            Some("CUBICSPLINE") => Interpolation::CubicSpline,
            Some(other) => {
                let other: String = other.chars().take(40).collect();
                return Err(Error::format(place, format!("interpolation \"{other}\" is not one that glTF has")));
            }
        };
        Ok(Self { input: need_index(row, "input", place)?, output: need_index(row, "output", place)?, interpolation })
    }
}

fn is_transform(path: &str) -> bool {
    ["translation", "rotation", "scale"].contains(&path)
}

/// How an element becomes a value.
struct Stored<V> {
    /// Numbers an element.
    width: usize,
    allowed: &'static [Component],
    make: fn(&[f64]) -> V,
}

/// A quaternion is brought to unit length later, so integers need not be marked as normalised.
const ROTATION: Stored<DQuat> = Stored {
    width: 4,
    allowed: &[Component::F32, Component::I8, Component::U8, Component::I16, Component::U16],
    make: |e| DQuat::from_xyzw(e[0], e[1], e[2], e[3]),
};

const VECTOR: Stored<DVec3> = Stored { width: 3, allowed: &[Component::F32], make: |e| DVec3::new(e[0], e[1], e[2]) };
