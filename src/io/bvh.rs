//! BVH motion files: a hierarchy of joints and one row of channel values a frame, sampled at any time. The format as
//! Meredith and Maddock describe it ("Motion Capture File Formats Explained", 2001).

use std::collections::HashMap;
use std::path::Path;

use glam::{DMat3, DQuat, DVec3};

use crate::error::{Error, Result};
use crate::model::{Pose, Skeleton};

/// Deeper hierarchies than this are refused: no rig has them, and damaged files do.
const MAX_DEPTH: usize = 1024;

/// What one number of a frame sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// A coordinate: axis 0, 1 or 2.
    Position(usize),
    /// Degrees about an axis: 0, 1 or 2.
    Rotation(usize),
}

/// A joint of the file's hierarchy.
#[derive(Debug, Clone, PartialEq)]
pub struct Joint {
    pub name: String,
    pub parent: Option<usize>,
    /// From the parent's joint to this one, in the rest pose.
    pub offset: DVec3,
    /// In the order of the file, which is the order of the rotations: the first listed turns the others' axes.
    pub channels: Vec<Channel>,
    /// Place of its first channel in a frame.
    pub first_value: usize,
    /// From this joint to the tip, where an End Site gives one.
    pub end: Option<DVec3>,
}

/// How a joint is placed at some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JointMotion {
    pub rotation: DQuat,
    /// The position channels as they stand in the file, `None` where the joint has none. Programs differ in what they
    /// mean: some write the place of the joint (instead of its offset), others how far it is from there.
    pub position: Option<DVec3>,
}

/// A motion file.
#[derive(Debug, Clone, PartialEq)]
pub struct Bvh {
    /// Parents come before their children.
    pub joints: Vec<Joint>,
    /// Seconds.
    pub frame_time: f64,
    frames: usize,
    values: Vec<f64>,
    /// Numbers in a frame.
    width: usize,
    /// Turns the file's axes into the caller's.
    axes: DQuat,
}

impl Bvh {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Read`], and all of [`Bvh::parse`], with the file's name.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let bytes = std::fs::read(&path).map_err(|e| Error::Read(e).in_file(&path))?;
        // Names in old code pages come through as replacement characters, and still differ from each other.
        Self::parse(&String::from_utf8_lossy(&bytes)).map_err(|e| e.in_file(&path))
    }

    /// Reads the text of a file. Keywords may be in any case, white space of any kind and amount, as files in the wild
    /// have them.
    ///
    /// # Errors
    /// [`Error::Line`] with the first line at fault.
    pub fn parse(text: &str) -> Result<Self> {
        let mut words = Words::new(text);
        words.expect("HIERARCHY")?;
        let joints = parse_hierarchy(&mut words)?;
        let width = joints.iter().map(|j| j.channels.len()).sum();
        words.expect("Frames:")?;
        let frames = words.count("the number of frames")?;
        if frames == 0 {
            return Err(words.fault("there are no frames"));
        }
        words.expect("Frame")?;
        words.expect("Time:")?;
        let frame_time = words.number("the frame time")?;
        if frame_time < 0.0 || (frame_time == 0.0 && frames > 1) {
            return Err(words.fault(format!("the frame time is {frame_time}; it must be more than 0")));
        }
        // What is there counts, not what the header promises: memory follows the file's size.
        let mut values = Vec::new();
        for frame in 0..frames {
            if width == 0 {
                break;
            }
            for _ in 0..width {
                values.push(words.number("a value").map_err(|e| in_frame(e, frame, frames))?);
            }
        }
        if let Some(word) = words.next() {
            return Err(words.fault(format!("\"{word}\" after the last of {frames} frames of {width} values")));
        }
        Ok(Self { joints, frame_time, frames, values, width, axes: DQuat::IDENTITY })
    }

    /// How many frames there are: at least one.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Time of the last frame, in seconds; the first is at 0.
    pub fn end(&self) -> f64 {
        (self.frames - 1) as f64 * self.frame_time
    }

    /// The same motion with its axes turned: offsets, positions and rotations as seen by a caller whose axes are the
    /// file's turned by `axes`. [`Bvh::axes_for`] finds which.
    pub fn with_axes(mut self, axes: DQuat) -> Self {
        for joint in &mut self.joints {
            joint.offset = axes * joint.offset;
            joint.end = joint.end.map(|e| axes * e);
        }
        self.axes = axes * self.axes;
        self
    }

    /// How every joint is placed at a time in seconds, clamped to the frames. Between two frames positions go
    /// straight and rotations take the shortest arc.
    pub fn sample(&self, time: f64) -> Vec<JointMotion> {
        let last = self.frames - 1;
        // NaN becomes 0.
        let at = if self.frame_time > 0.0 { (time / self.frame_time).max(0.0).min(last as f64) } else { 0.0 };
        let from = (at as usize).min(last);
        let to = (from + 1).min(last);
        let share = at - from as f64;
        let between = |joint: &Joint| {
            let (a, b) = (self.motion(joint, from), self.motion(joint, to));
            JointMotion {
                rotation: a.rotation.slerp(b.rotation, share).normalize(),
                position: a.position.zip(b.position).map(|(a, b)| a.lerp(b, share)),
            }
        };
        self.joints.iter().map(between).collect()
    }

    /// How far the first root has moved since the first frame: what carries a character through the world, and means
    /// the same whichever way a program writes positions. 0 without position channels.
    pub fn root_motion(&self, time: f64) -> DVec3 {
        let (now, first) = (self.sample(time)[0].position, self.motion(&self.joints[0], 0).position);
        now.zip(first).map_or(DVec3::ZERO, |(now, first)| now - first)
    }

    /// One joint in one frame.
    fn motion(&self, joint: &Joint, frame: usize) -> JointMotion {
        let start = frame * self.width + joint.first_value;
        let (mut rotation, mut position) = (DQuat::IDENTITY, None);
        for (channel, &value) in joint.channels.iter().zip(&self.values[start..]) {
            match *channel {
                Channel::Position(axis) => position.get_or_insert(DVec3::ZERO)[axis] = value,
                Channel::Rotation(axis) => {
                    rotation *= DQuat::from_axis_angle(DVec3::AXES[axis], value.to_radians());
                }
            }
        }
        JointMotion {
            rotation: (self.axes * rotation * self.axes.conjugate()).normalize(),
            position: position.map(|p| self.axes * p),
        }
    }

    /// For each joint of the file the bone of the skeleton it moves: the names agree after [`plain_name`]. Of several
    /// joints with one plain name the first counts, of several bones an exact match and then the first.
    pub fn bones_of_joints(&self, skeleton: &Skeleton) -> Vec<Option<usize>> {
        let mut by_name: HashMap<String, usize> = HashMap::with_capacity(skeleton.len());
        let mut exact: HashMap<&str, usize> = HashMap::with_capacity(skeleton.len());
        for (bone, b) in skeleton.bones().iter().enumerate() {
            exact.insert(&b.name, bone);
            by_name.entry(plain_name(&b.name)).or_insert(bone);
        }
        let mut taken = vec![false; skeleton.len()];
        let find = |joint: &Joint| {
            let bone = exact.get(joint.name.as_str()).or_else(|| by_name.get(&plain_name(&joint.name)));
            bone.copied().filter(|&bone| !std::mem::replace(&mut taken[bone], true))
        };
        self.joints.iter().map(find).collect()
    }

    /// The turn by multiples of 90 degrees that makes the file's offsets agree best with the skeleton's bones: files
    /// differ in which axis points up. The identity where no joint and its parent are both in the skeleton.
    pub fn axes_for(&self, skeleton: &Skeleton) -> DQuat {
        let bone_of = self.bones_of_joints(skeleton);
        let head = |joint: usize| bone_of[joint].map(|b| skeleton.bones()[b].head);
        // The matrix of sum target * offset^T: the trace of its product with a rotation is the agreement.
        let mut pairs = Vec::new();
        for (j, joint) in self.joints.iter().enumerate() {
            if let Some((child, parent)) = head(j).zip(joint.parent.and_then(head)) {
                pairs.push((child - parent, joint.offset));
            }
        }
        let agreement = |turn: &DQuat| pairs.iter().map(|&(target, offset)| target.dot(*turn * offset)).sum::<f64>();
        let mut best = (DQuat::IDENTITY, agreement(&DQuat::IDENTITY));
        for turn in quarter_turns() {
            let score = agreement(&turn);
            // The margin keeps the identity where rounding alone would decide.
            if score > best.1 + 1e-9 * best.1.abs() {
                best = (turn, score);
            }
        }
        best.0
    }

    /// The pose of a skeleton at a time in seconds: each bone that a joint of the file names is turned from its rest
    /// pose as the file turns that joint, about axes that are the world's in the rest pose. Positions are left to the
    /// caller: see [`Bvh::root_motion`].
    ///
    /// # Errors
    /// [`Error::Joints`] where the rest pose does not fit the skeleton.
    pub fn pose(&self, time: f64, skeleton: &Skeleton, rest: &Pose) -> Result<Pose> {
        if rest.locals.len() != skeleton.len() {
            let (found, expected) = (rest.locals.len(), skeleton.len());
            return Err(Error::Joints { what: "the rest pose's transforms", found, expected });
        }
        let turns = world_rotations(skeleton, rest);
        let mut pose = rest.clone();
        for (motion, bone) in self.sample(time).iter().zip(self.bones_of_joints(skeleton)) {
            if let Some(bone) = bone {
                let r = turns[bone];
                let local = &mut pose.locals[bone].rotation;
                *local = (*local * (r.conjugate() * motion.rotation * r)).normalize();
            }
        }
        Ok(pose)
    }
}

/// The rotation of each joint in world space, scales left out.
fn world_rotations(skeleton: &Skeleton, rest: &Pose) -> Vec<DQuat> {
    let mut turns = vec![DQuat::IDENTITY; skeleton.len()];
    for bone in skeleton.parents_first() {
        let above = skeleton.bones()[bone].parent.map_or(DQuat::IDENTITY, |p| turns[p]);
        turns[bone] = (above * rest.locals[bone].rotation).normalize();
    }
    turns
}

/// The 24 rotations that map axes to axes.
fn quarter_turns() -> impl Iterator<Item = DQuat> {
    let axes = [DVec3::X, DVec3::NEG_X, DVec3::Y, DVec3::NEG_Y, DVec3::Z, DVec3::NEG_Z];
    let pairs = axes.into_iter().flat_map(move |x| axes.into_iter().map(move |y| (x, y)));
    pairs
        .filter(|(x, y)| x.dot(*y) == 0.0)
        .map(|(x, y)| DQuat::from_mat3(&DMat3::from_cols(x, y, x.cross(y))).normalize())
}

/// A name as poses and rigs are matched by: lower case, space and '-' as '_', without a '_' and digits at the end.
pub fn plain_name(name: &str) -> String {
    let plain = name.to_lowercase().replace([' ', '-'], "_");
    let stem = plain.trim_end_matches(|c: char| c.is_ascii_digit());
    match stem.strip_suffix('_') {
        Some(short) if stem.len() < plain.len() && !short.is_empty() => short.to_string(),
        _ => plain,
    }
}

fn in_frame(error: Error, frame: usize, frames: usize) -> Error {
    match error {
        Error::Line { line, what } => Error::Line { line, what: format!("{what}, in frame {} of {frames}", frame + 1) },
        other => other,
    }
}

/// Reads joints up to the word MOTION.
fn parse_hierarchy(words: &mut Words) -> Result<Vec<Joint>> {
    let mut joints: Vec<Joint> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut values = 0;
    loop {
        let word = words.need("a joint")?;
        match word.to_ascii_uppercase().as_str() {
            "MOTION" if open.is_empty() && !joints.is_empty() => return Ok(joints),
            "ROOT" if open.is_empty() => parse_joint(words, &mut joints, &mut open)?,
            "JOINT" if !open.is_empty() => parse_joint(words, &mut joints, &mut open)?,
            "END" if !open.is_empty() => {
                words.expect("Site")?;
                words.expect("{")?;
                words.expect("OFFSET")?;
                joints[open[open.len() - 1]].end = Some(words.vector("an end site's offset")?);
                words.expect("}")?;
            }
            "OFFSET" if !open.is_empty() => joints[open[open.len() - 1]].offset = words.vector("an offset")?,
            "CHANNELS" if !open.is_empty() => {
                let joint = &mut joints[open[open.len() - 1]];
                if !joint.channels.is_empty() {
                    return Err(words.fault(format!("joint \"{}\" has channels already", joint.name)));
                }
                joint.channels = parse_channels(words)?;
                joint.first_value = values;
                values += joint.channels.len();
            }
            "}" if !open.is_empty() => {
                open.pop();
            }
            _ => return Err(words.fault(format!("\"{word}\" is not expected here"))),
        }
    }
}

/// The name after ROOT or JOINT, up to the bracket; it may hold spaces.
fn parse_joint(words: &mut Words, joints: &mut Vec<Joint>, open: &mut Vec<usize>) -> Result<()> {
    let mut name = String::new();
    loop {
        match words.need("a joint's name and \"{\"")? {
            "{" => break,
            word if name.is_empty() => name.push_str(word),
            word => {
                name.push(' ');
                name.push_str(word);
            }
        }
    }
    if name.is_empty() {
        return Err(words.fault("a joint has no name"));
    }
    if open.len() == MAX_DEPTH {
        return Err(words.fault(format!("joints are nested more than {MAX_DEPTH} deep")));
    }
    let parent = open.last().copied();
    open.push(joints.len());
    joints.push(Joint { name, parent, offset: DVec3::ZERO, channels: Vec::new(), first_value: 0, end: None });
    Ok(())
}

fn parse_channels(words: &mut Words) -> Result<Vec<Channel>> {
    let count = words.count("the number of channels")?;
    if count > 6 {
        return Err(words.fault(format!("{count} channels; a joint has at most 6")));
    }
    let mut channels = Vec::with_capacity(count);
    for _ in 0..count {
        let word = words.need("a channel")?;
        let lower = word.to_ascii_lowercase();
        let axis = ["x", "y", "z"].iter().position(|a| lower.starts_with(a));
        let channel = match (axis, lower.get(1..)) {
            (Some(axis), Some("position")) => Channel::Position(axis),
            (Some(axis), Some("rotation")) => Channel::Rotation(axis),
            _ => return Err(words.fault(format!("\"{word}\" is not a channel (Xposition ... Zrotation)"))),
        };
        if channels.contains(&channel) {
            return Err(words.fault(format!("channel {word} stands twice")));
        }
        channels.push(channel);
    }
    Ok(channels)
}

/// The words of a text with the lines they stand on.
struct Words<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    rest: std::str::SplitWhitespace<'a>,
    line: usize,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { lines: text.lines().enumerate(), rest: "".split_whitespace(), line: 1 }
    }

    fn next(&mut self) -> Option<&'a str> {
        loop {
            if let Some(word) = self.rest.next() {
                return Some(word);
            }
            let (index, line) = self.lines.next()?;
            (self.line, self.rest) = (index + 1, line.split_whitespace());
        }
    }

    fn fault(&self, what: impl Into<String>) -> Error {
        Error::Line { line: self.line, what: what.into() }
    }

    fn need(&mut self, what: &str) -> Result<&'a str> {
        self.next().ok_or_else(|| self.fault(format!("the file ends where {what} should stand")))
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        match self.need(&format!("\"{word}\""))? {
            found if found.eq_ignore_ascii_case(word) => Ok(()),
            found => Err(self.fault(format!("\"{found}\" where \"{word}\" should stand"))),
        }
    }

    fn number(&mut self, what: &str) -> Result<f64> {
        let word = self.need(what)?;
        let value = word.parse().ok().filter(|v: &f64| v.is_finite());
        value.ok_or_else(|| self.fault(format!("{what} is \"{word}\", not a finite number")))
    }

    fn count(&mut self, what: &str) -> Result<usize> {
        let word = self.need(what)?;
        word.parse().map_err(|_| self.fault(format!("{what} is \"{word}\", not a whole number")))
    }

    fn vector(&mut self, what: &str) -> Result<DVec3> {
        Ok(DVec3::new(self.number(what)?, self.number(what)?, self.number(what)?))
    }
}
