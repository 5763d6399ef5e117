//! Progress and cancelling: one callback, asked often, from any thread.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// The stages of a job, in the order in which `bind` runs those it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    Read,
    Prepare,
    Voxelize,
    Interior,
    Crawl,
    Heat,
    Influence,
    Write,
}

impl Stage {
    /// Its name in reports and progress bars.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Read => "read",
            Stage::Prepare => "prepare",
            Stage::Voxelize => "voxelize",
            Stage::Interior => "interior",
            Stage::Crawl => "crawl",
            Stage::Heat => "heat",
            Stage::Influence => "influence",
            Stage::Write => "write",
        }
    }
}

type Callback<'a> = &'a (dyn Fn(Stage, f64) -> ControlFlow<()> + Sync);

/// Where a stage says how far it is, and learns whether to go on.
#[derive(Clone, Copy, Default)]
pub struct Progress<'a>(Option<Callback<'a>>);

impl<'a> Progress<'a> {
    /// Tells nobody and never stops.
    pub const NONE: Progress<'static> = Progress(None);

    /// Calls `callback(stage, fraction done)`; the work stops where it returns `Break`.
    pub fn new(callback: Callback<'a>) -> Self {
        Self(Some(callback))
    }

    /// Reports and asks whether to go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`] where the callback said to stop.
    pub fn at(&self, stage: Stage, fraction: f64) -> Result<()> {
        match self.0.map_or(ControlFlow::Continue(()), |f| f(stage, fraction)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }
}
