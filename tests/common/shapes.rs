//! Meshes to test on, and seeded random numbers. Each test file uses some of them.
#![allow(dead_code)]

use glam::DVec3;
use skinbind::model::Mesh;

/// A seeded generator (xorshift64*), the same on all machines.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn bits(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// From 0 to below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        self.bits() % end
    }

    /// From 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        f64::from(self.bits()) / 4_294_967_296.0
    }

    pub fn point(&mut self) -> DVec3 {
        DVec3::new(self.unit(), self.unit(), self.unit())
    }
}

/// A closed box with these edge lengths.
pub fn cuboid(size: DVec3) -> Mesh {
    let corner = |i: u32| DVec3::new(f64::from(i & 1), f64::from(i >> 1 & 1), f64::from(i >> 2)) * size;
    let faces: [[u32; 4]; 6] = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
    let triangles = faces.iter().flat_map(|f| [[f[0], f[1], f[2]], [f[0], f[2], f[3]]]).collect();
    Mesh::new((0..8).map(corner).collect(), triangles).expect("a box")
}

/// A closed sphere of radius 1 with `rings` rings of twice as many vertices.
pub fn sphere(rings: u32) -> Mesh {
    let around = 2 * rings;
    let mut positions = vec![DVec3::Z, -DVec3::Z];
    for ring in 1..rings {
        let polar = std::f64::consts::PI * f64::from(ring) / f64::from(rings);
        for step in 0..around {
            let turn = std::f64::consts::TAU * f64::from(step) / f64::from(around);
            positions.push(DVec3::new(polar.sin() * turn.cos(), polar.sin() * turn.sin(), polar.cos()));
        }
    }
    let at = |ring: u32, step: u32| 2 + (ring - 1) * around + step % around;
    let mut triangles = Vec::new();
    for step in 0..around {
        triangles.push([0, at(1, step), at(1, step + 1)]);
        triangles.push([1, at(rings - 1, step + 1), at(rings - 1, step)]);
        for ring in 1..rings - 1 {
            triangles.push([at(ring, step), at(ring + 1, step), at(ring + 1, step + 1)]);
            triangles.push([at(ring, step), at(ring + 1, step + 1), at(ring, step + 1)]);
        }
    }
    Mesh::new(positions, triangles).expect("a sphere")
}

/// Loose triangles: some across the whole box, some tiny, some that are segments or points, some parallel to the axes.
pub fn soup(seed: u64, triangles: u32) -> Mesh {
    let mut random = Random::new(seed);
    let mut positions = Vec::new();
    for triangle in 0..triangles {
        let a = random.point();
        let size = if triangle % 4 == 0 { 1.0 } else { 0.1 };
        let mut near = || (a + (random.point() - 0.5) * size).clamp(DVec3::ZERO, DVec3::ONE);
        let (mut b, mut c) = (near(), near());
        match triangle % 8 {
            1 => c = a.midpoint(b),
            2 => b = a,
            3 => (b, c) = (a, a),
            // On planes and lines between voxels, where contact is all there is.
            5 => (b.z, c.z) = (a.z, a.z),
            6 => (b.x, b.y, c.x) = (a.x, a.y, a.x),
            _ => {}
        }
        positions.extend([a, b, c]);
    }
    // Whole lattice steps, half of them whole voxels: without them contact would be rare.
    let places = if seed.is_multiple_of(2) { 64.0 } else { 64.0 * 256.0 };
    positions.iter_mut().for_each(|p| *p = (*p * places).round() / places);
    Mesh::new(positions, (0..triangles).map(|t| [3 * t, 3 * t + 1, 3 * t + 2]).collect()).expect("a soup")
}
