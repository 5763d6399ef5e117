//! The voxel grid: where it lies around a mesh, and the fixed-point lattice on which contact is decided.

use glam::{DVec3, IVec3, UVec3};

use crate::error::{Error, Result};
use crate::model::Bounds;

/// Fewest voxels along the longest axis.
pub const MIN_RESOLUTION: u32 = 16;
/// Most voxels along the longest axis.
pub const MAX_RESOLUTION: u32 = 1024;
/// Lattice steps a voxel. Vertices are moved to this lattice before contact with voxels is decided, in integers, so that the
/// CPU and the GPU find the same voxels. A vertex moves by at most 1/512 voxel along an axis.
pub const LATTICE: i32 = 256;

/// Where rounding to the lattice turns over, as a fraction of a step. Structured coordinates (halves, thirds) never come
/// near it, so noise in the last bit of f64 (after scaling, say) moves no vertex to another lattice point.
const TURNOVER: f64 = 0.414_213_562_373_095_05;

/// A grid of cubic voxels around a mesh. Voxel (i, j, k) covers the grid coordinates [i, i+1] x [j, j+1] x [k, k+1].
///
/// The centre of the mesh' bounding box is the centre of the middle voxel, so the number of voxels is odd along each axis
/// and mirrored or turned meshes have mirrored or turned voxels. The outermost layer on all sides touches no part of the mesh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    dims: UVec3,
    center: DVec3,
    voxel: f64,
}

impl Grid {
    /// The grid around a box, with `resolution` voxel lengths along the box' longest side.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a resolution outside 16 to 1024, [`Error::NoExtent`] for a box that is a point.
    pub fn around(bounds: &Bounds, resolution: u32) -> Result<Self> {
        if !(MIN_RESOLUTION..=MAX_RESOLUTION).contains(&resolution) {
            return Err(Error::Parameter {
                name: "resolution",
                value: resolution.to_string(),
                allowed: "it must be from 16 to 1024",
            });
        }
        let extent = bounds.extent();
        let voxel = extent.max_element() / f64::from(resolution);
        if voxel.is_nan() || voxel <= 0.0 {
            return Err(Error::NoExtent);
        }
        // Voxels that the half extent reaches beyond the middle one, and a free layer. The half step is for contact with
        // the next layer after rounding to the lattice.
        let half = (extent / (2.0 * voxel) + DVec3::splat(1.0 / 512.0 + 0.5)).floor().as_uvec3() + UVec3::ONE;
        Ok(Self { dims: 2 * half + UVec3::ONE, center: bounds.center(), voxel })
    }

    /// Voxels along each axis.
    pub fn dims(&self) -> UVec3 {
        self.dims
    }

    /// Edge length of a voxel, in world units.
    pub fn voxel(&self) -> f64 {
        self.voxel
    }

    /// World to grid coordinates (1 = a voxel).
    pub fn to_grid(&self, p: DVec3) -> DVec3 {
        (p - self.center) / self.voxel + self.dims.as_dvec3() * 0.5
    }

    /// World coordinates to voxels from the centre of the grid's middle voxel, whose coordinates are half of `dims` rounded
    /// down. Mirrored positions have mirrored results, to the last bit.
    pub fn to_middle(&self, p: DVec3) -> DVec3 {
        (p - self.center) / self.voxel
    }

    /// Grid to world coordinates.
    pub fn to_world(&self, g: DVec3) -> DVec3 {
        (g - self.dims.as_dvec3() * 0.5) * self.voxel + self.center
    }

    /// The lattice point nearest to a world position, in steps of 1/256 voxel from the grid's corner. Rounding is
    /// symmetric about the middle of the grid. Positions far outside saturate.
    pub fn lattice(&self, p: DVec3) -> IVec3 {
        let steps = (p - self.center) * (f64::from(LATTICE) / self.voxel);
        let rounded = (steps.abs() + DVec3::splat(TURNOVER)).floor().copysign(steps);
        // Far enough out for any contact, near enough in that sums and differences of two fit 32 bits.
        let limit = DVec3::splat(f64::from(1 << 28));
        rounded.clamp(-limit, limit).as_ivec3() + self.dims.as_ivec3() * (LATTICE / 2)
    }

    /// The voxel that holds a world position; positions outside take the nearest voxel. On a face between two voxels
    /// the one further from the middle of the grid.
    pub fn voxel_of(&self, p: DVec3) -> UVec3 {
        let from_middle = (p - self.center) / self.voxel;
        let half = (self.dims / 2).as_dvec3();
        let steps = (from_middle.abs() + DVec3::splat(0.5)).floor().min(half).copysign(from_middle);
        (steps + half).as_uvec3()
    }

    /// Whether a voxel coordinate lies in the grid.
    pub fn contains(&self, v: IVec3) -> bool {
        v.cmpge(IVec3::ZERO).all() && v.cmplt(self.dims.as_ivec3()).all()
    }

    /// Number of voxels, solid or not.
    pub fn len(&self) -> u64 {
        self.dims.to_array().into_iter().map(u64::from).product()
    }

    /// Never: a grid has voxels.
    pub fn is_empty(&self) -> bool {
        false
    }
}
