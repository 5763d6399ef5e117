//! What a bind says about itself.

use serde::Serialize;

use super::Method;
use crate::error::Result;
use crate::influence::Stats;
use crate::model::Warning;

/// What a bind did.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Report {
    pub vertices: usize,
    pub triangles: usize,
    pub bones: usize,
    pub components: usize,
    pub method: Method,
    pub device: String,
    /// 0 for methods without voxels, and so `solid_voxels`.
    pub resolution: u32,
    pub solid_voxels: u64,
    /// How the inside was found, and why so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interior: Option<String>,
    /// For methods that solve an equation, the largest residual: with voxels of a bone, relative to its right-hand side; on the
    /// surface of a place, relative to the diagonal (the most that one more sweep would change a heat).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    pub seconds: Seconds,
    /// Most bytes in use at once; filled in by whoever can tell (the program counts its allocations).
    pub peak_bytes: u64,
    #[serde(flatten)]
    pub stats: Stats,
    pub unreached_vertices: usize,
    pub warnings: Vec<Warning>,
}

/// Wall-clock seconds of each stage, in the order they ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seconds(pub Vec<(&'static str, f64)>);

impl Seconds {
    /// Adds a stage that has just ended; the total is the last entry and grows by it.
    pub fn add(&mut self, stage: &'static str, seconds: f64) {
        let before = match self.0.pop() {
            Some(("total", total)) => total,
            Some(other) => {
                self.0.push(other);
                0.0
            }
            None => 0.0,
        };
        self.0.push((stage, seconds));
        self.0.push(("total", before + seconds));
    }

    /// The seconds of a stage, or of `"total"`.
    pub fn of(&self, stage: &str) -> Option<f64> {
        self.0.iter().find(|(name, _)| *name == stage).map(|&(_, s)| s)
    }
}

impl Serialize for Seconds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_end_with_their_total() {
        let mut s = Seconds::default();
        s.add("read", 1.0);
        s.add("crawl", 2.0);
        assert_eq!(s.0, [("read", 1.0), ("crawl", 2.0), ("total", 3.0)]);
        assert_eq!(s.of("total"), Some(3.0));
    }
}
