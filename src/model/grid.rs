//! The voxel grid: where it lies around a mesh, and the fixed-point lattice on which contact is decided.

use glam::{DVec3, IVec3, UVec3};

use crate::error::{Error, Result};
use crate::model::Bounds;

/// Fewest voxels along the longest axis.
pub const MIN_RESOLUTION: u32 = 16;
/// Most voxels along the longest axis.
pub const MAX_RESOLUTION: u32 = 1024;
/// Lattice steps a voxel. Vertices are moved to this lattice before contact with voxels is decided, in integers, so that the
/// CPU and the GPU find the same voxels. A vertex moves by less than 0.6 steps, 1/426 voxel, along an axis.
pub const LATTICE: i32 = 256;

/// Where rounding to the lattice turns over, as a fraction of a step. Structured coordinates (halves, thirds) never come
/// near it, so noise in the last bit of f64 (after scaling, say) moves no vertex to another lattice point.
const TURNOVER: f64 = 0.414_213_562_373_095_05;

/// Below this, steps of the lattice a world unit would overflow f64.
const SMALLEST_VOXEL: f64 = 1e-300;

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
        Self::check_resolution(resolution)?;
        let center = bounds.center();
        // Not half the extent: where a box is a few units in the last place wide, its centre is not in its middle.
        let reach = (bounds.max - center).max(center - bounds.min);
        let voxel = 2.0 * reach.max_element() / f64::from(resolution);
        if voxel.is_nan() || voxel < SMALLEST_VOXEL {
            return Err(Error::NoExtent);
        }
        // Voxels that the box reaches beyond the middle one, and a free layer. The half step is for contact with the
        // next layer after rounding to the lattice, which moves a vertex outwards by less than that.
        let half = (reach / voxel + DVec3::splat(0.5 + 0.5 / f64::from(LATTICE))).floor().as_uvec3() + UVec3::ONE;
        Ok(Self { dims: 2 * half + UVec3::ONE, center, voxel })
    }

    /// Checks that a resolution is one that can be had.
    ///
    /// # Errors
    /// [`Error::Parameter`] outside 16 to 1024.
    pub fn check_resolution(resolution: u32) -> Result<()> {
        if (MIN_RESOLUTION..=MAX_RESOLUTION).contains(&resolution) {
            return Ok(());
        }
        let value = resolution.to_string();
        Err(Error::Parameter { name: "resolution", value, allowed: "it must be from 16 to 1024" })
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
        let from_middle = self.to_middle(p);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(min: [f64; 3], max: [f64; 3]) -> Bounds {
        Bounds { min: DVec3::from_array(min), max: DVec3::from_array(max) }
    }

    /// Boxes of many shapes and places, among them thin, far and tiny ones.
    fn boxes() -> Vec<Bounds> {
        let mut out = vec![
            bounds([0.0; 3], [1.0; 3]),
            bounds([-3.0, 1.0, 2.0], [-1.0, 1.0, 2.0]),
            bounds([1e6, 1e6, 1e6], [1e6 + 1.0, 1e6 + 0.3, 1e6 + 0.7]),
            bounds([1.0; 3], [1.0 + f64::EPSILON, 1.0, 1.0]),
            bounds([-1e-30, 0.0, 0.0], [1e-30, 1e-30, 2e-30]),
            bounds([-3e38, -3e38, -3e38], [3e38, 3e38, 3e38]),
        ];
        for i in 1..60 {
            let f = f64::from(i);
            out.push(bounds([-f, 0.1 * f, 7.0 / f], [f * 1.37, 0.1 * f + 11.0 / f, 7.0 / f + f.sqrt()]));
        }
        out
    }

    #[test]
    fn numbers_of_voxels_are_odd_and_follow_the_resolution() {
        for (n, b) in boxes().into_iter().enumerate() {
            for resolution in [16, 17, 63, 64, 255, 1024] {
                let dims = Grid::around(&b, resolution).unwrap().dims();
                assert!(dims.to_array().iter().all(|d| d % 2 == 1), "box {n}: {dims}");
                // The middle voxel, the free layer, and at an odd resolution the layer that the box ends on.
                let longest = resolution + 3 + resolution % 2;
                assert_eq!(dims.max_element(), longest, "box {n} at {resolution}: {dims}");
                assert!(dims.min_element() >= 3);
            }
        }
    }

    #[test]
    fn the_outermost_layer_is_free() {
        for (n, b) in boxes().into_iter().enumerate() {
            for resolution in [16, 31, 64, 1024] {
                let grid = Grid::around(&b, resolution).unwrap();
                let first = IVec3::splat(LATTICE);
                let last = (grid.dims().as_ivec3() - IVec3::ONE) * LATTICE;
                for p in [b.min, b.max] {
                    let at = grid.lattice(p);
                    assert!(at.cmpgt(first).all() && at.cmplt(last).all(), "box {n} at {resolution}: {at} of {last}");
                }
            }
        }
    }

    #[test]
    fn the_lattice_is_symmetric_and_near() {
        let b = bounds([-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]);
        let grid = Grid::around(&b, 100).unwrap();
        let middle = grid.dims().as_ivec3() * (LATTICE / 2);
        for i in 0..2000 {
            let p = DVec3::new(0.001, 0.00173, 0.0029) * f64::from(i) * 0.5;
            let plus = grid.lattice(p) - middle;
            assert_eq!(plus, middle - grid.lattice(-p), "{p}");
            let moved = (grid.to_grid(p) * f64::from(LATTICE) - grid.lattice(p).as_dvec3()).abs().max_element();
            assert!(moved < 0.6, "{p} moved by {moved} steps");
        }
    }

    #[test]
    fn the_voxel_of_a_point_is_one_its_lattice_point_touches() {
        let b = bounds([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]);
        let grid = Grid::around(&b, 16).unwrap();
        for i in -4000..=4000 {
            let p = DVec3::splat(f64::from(i) / 4000.0);
            let low = grid.voxel_of(p).as_ivec3() * LATTICE;
            let at = grid.lattice(p);
            assert!(at.cmpge(low).all() && at.cmple(low + IVec3::splat(LATTICE)).all(), "{p}: {at} not in {low}");
        }
    }

    #[test]
    fn on_a_face_the_voxel_further_out_is_taken_and_outside_the_nearest() {
        let b = bounds([-8.0, -8.0, -8.0], [8.0, 8.0, 8.0]);
        let grid = Grid::around(&b, 16).unwrap();
        let middle = grid.dims() / 2;
        assert_eq!(grid.voxel(), 1.0);
        assert_eq!(grid.voxel_of(DVec3::splat(0.5)), middle + UVec3::ONE);
        assert_eq!(grid.voxel_of(DVec3::splat(-0.5)), middle - UVec3::ONE);
        assert_eq!(grid.voxel_of(DVec3::splat(0.49)), middle);
        assert_eq!(grid.voxel_of(DVec3::splat(-1e9)), UVec3::ZERO);
        assert_eq!(grid.voxel_of(DVec3::splat(1e9)), grid.dims() - UVec3::ONE);
    }

    #[test]
    fn grid_and_world_coordinates_are_inverse() {
        let grid = Grid::around(&bounds([2.0, 3.0, 4.0], [5.0, 9.0, 6.0]), 60).unwrap();
        let p = DVec3::new(2.5, 8.0, 4.4);
        assert!((grid.to_world(grid.to_grid(p)) - p).length() < 1e-12);
        assert_eq!(grid.to_grid(DVec3::new(3.5, 6.0, 5.0)), grid.dims().as_dvec3() * 0.5);
    }

    #[test]
    fn a_point_has_no_grid() {
        assert!(matches!(Grid::around(&bounds([1.0; 3], [1.0; 3]), 64), Err(Error::NoExtent)));
        assert!(matches!(Grid::around(&bounds([0.0; 3], [5e-324, 0.0, 0.0]), 64), Err(Error::NoExtent)));
        assert!(matches!(Grid::around(&bounds([0.0; 3], [1.0; 3]), 15), Err(Error::Parameter { .. })));
    }
}
