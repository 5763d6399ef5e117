//! Which resolution has about so many solid voxels: a resolution along the longest side makes stubby bodies expensive
//! and slender ones coarse.

use glam::DVec3;

use crate::model::{Grid, MAX_RESOLUTION, MIN_RESOLUTION, Mesh};

/// Solid voxels where nothing else is asked for: about those of a standing human at resolution 192.
pub const SOLID_VOXELS: f64 = 100_000.0;

/// Volume and surface of a mesh as a grid of voxels sees them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Enclosed volume. Faces turned inside out count against the others.
    volume: f64,
    /// Sum over the faces of area times half the width of a unit cube across the face.
    skin: f64,
    longest: f64,
}

impl Size {
    /// Measures a mesh, in time proportional to its triangles.
    pub fn of(mesh: &Mesh) -> Self {
        let bounds = mesh.bounds();
        let middle = bounds.center();
        let (mut volume, mut skin) = (0.0, 0.0);
        for &triangle in mesh.triangles() {
            let [a, b, c] = mesh.corners(triangle).map(|p| p - middle);
            let normal: DVec3 = (b - a).cross(c - a);
            volume += a.dot(normal) / 6.0;
            // Half the normal's length is the area; the cube reaches (|x| + |y| + |z|) / 2 from its middle along a unit
            // normal.
            skin += normal.abs().element_sum() / 4.0;
        }
        Self { volume: volume.abs(), skin, longest: bounds.extent().max_element() }
    }

    /// About how many solid voxels there are at a resolution: those whose cube touches the body are as many as their
    /// middles fit into the body grown by half a cube (Steiner's formula, to first order).
    pub fn solid_voxels(&self, resolution: u32) -> f64 {
        let per_length = f64::from(resolution) / self.longest;
        self.volume * per_length.powi(3) + self.skin * per_length.powi(2)
    }

    /// The finest resolution that has no more than so many solid voxels, within what a [`Grid`] can have.
    pub fn resolution_for(&self, solid_voxels: f64) -> u32 {
        let (mut fits, mut too_fine) = (MIN_RESOLUTION, MAX_RESOLUTION + 1);
        while too_fine - fits > 1 {
            let middle = (fits + too_fine) / 2;
            if self.solid_voxels(middle) <= solid_voxels { fits = middle } else { too_fine = middle }
        }
        debug_assert!(Grid::check_resolution(fits).is_ok());
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn box_mesh(size: DVec3) -> Mesh {
        let at = |i: u32| DVec3::new(f64::from(i & 1), f64::from(i >> 1 & 1), f64::from(i >> 2)) * size;
        let quads = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
        let triangles = quads.iter().flat_map(|&[a, b, c, d]| [[a, b, c], [a, c, d]]).collect();
        Mesh::new((0..8).map(at).collect(), triangles).unwrap()
    }

    #[test]
    fn a_box_has_its_volume_and_half_a_voxel_all_round() {
        // To first order (2 x 4 x 8 voxels and half a voxel beyond each face), without edges and corners.
        let size = Size::of(&box_mesh(DVec3::new(2.0, 4.0, 8.0) * 1e-3));
        let expected = 64.0 + (8.0 + 16.0 + 32.0);
        assert!((size.solid_voxels(8) - expected).abs() < 1e-9, "{}", size.solid_voxels(8));
    }

    #[test]
    fn the_budget_is_met_and_not_wasted() {
        for shape in [DVec3::ONE, DVec3::new(0.2, 1.0, 0.1), DVec3::new(1.0, 1e-4, 1e-4)] {
            let size = Size::of(&box_mesh(shape));
            let resolution = size.resolution_for(SOLID_VOXELS);
            assert!(size.solid_voxels(resolution) <= SOLID_VOXELS);
            assert!(resolution == MAX_RESOLUTION || size.solid_voxels(resolution + 1) > SOLID_VOXELS);
        }
        // Scale changes nothing; a stubby body gets fewer voxels along its side than a slender one.
        let stubby = Size::of(&box_mesh(DVec3::ONE)).resolution_for(SOLID_VOXELS);
        let slender = Size::of(&box_mesh(DVec3::new(0.2, 1.0, 0.1) * 1e3)).resolution_for(SOLID_VOXELS);
        assert!(stubby < slender);
        assert_eq!(Size::of(&box_mesh(DVec3::ONE)).resolution_for(0.0), MIN_RESOLUTION);
    }
}
