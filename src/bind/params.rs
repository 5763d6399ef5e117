//! What can be chosen about a bind.

use serde::Serialize;

use crate::crawl::Neighbors;
use crate::error::Result;
use crate::heat;
use crate::influence::{Falloff, Limits};
use crate::model::Grid;
use crate::voxelize::Interior;

/// How weights are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// By heat that spreads from the bones in the solid; see [`crate::heat`].
    #[default]
    VoxelHeat,
    /// By distance through the body (Dionne and de Lasa 2013).
    Geodesic,
    /// By heat that spreads from the bones on the surface (Baran and Popovic 2007); see [`crate::heat::surface`].
    Heat,
    /// By straight distance, 1/d^4 within twice the nearest.
    Envelope,
    /// All to the nearest bone.
    Closest,
}

impl Method {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::VoxelHeat => "voxel-heat",
            Method::Geodesic => "geodesic",
            Method::Heat => "heat",
            Method::Envelope => "envelope",
            Method::Closest => "closest",
        }
    }

    /// Whether its stages can run on a GPU. All others run on the CPU, whatever the device.
    pub fn has_gpu_stages(self) -> bool {
        matches!(self, Method::VoxelHeat | Method::Geodesic)
    }
}

/// Everything that can be chosen about a bind. The default is what the program does where nothing is asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Params {
    pub method: Method,
    /// Voxels along the longest axis of the mesh, 16 to 1024; `None` for the method's default.
    pub resolution: Option<u32>,
    pub neighbors: Neighbors,
    pub interior: Interior,
    pub falloff: Falloff,
    pub heat: heat::Parameters,
    pub surface_heat: heat::surface::Parameters,
    pub limits: Limits,
    /// Names of bones that get no weight.
    pub exclude: Vec<String>,
}

impl Params {
    /// Checks all ranges. `bind` does so too.
    ///
    /// # Errors
    /// [`crate::Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        if let Some(resolution) = self.resolution {
            Grid::check_resolution(resolution)?;
        }
        self.falloff.check()?;
        self.heat.check()?;
        self.surface_heat.check()?;
        self.limits.check()
    }
}
