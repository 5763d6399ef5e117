//! Test meshes with known shape, outward and closed where not said otherwise, and a seeded source of random numbers.

use std::collections::HashMap;
use std::f64::consts::{PI, TAU};

use glam::DVec3;
use skinbind::glam;
use skinbind::model::Mesh;

/// A mesh as lists, to be put together and changed before it is made.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    pub points: Vec<DVec3>,
    pub faces: Vec<[u32; 3]>,
}

impl Shape {
    /// The mesh.
    pub fn mesh(&self) -> Mesh {
        Mesh::new(self.points.clone(), self.faces.clone()).unwrap()
    }

    /// This shape and another beside it, with no vertex in common.
    pub fn and(mut self, other: &Shape) -> Self {
        let base = self.points.len() as u32;
        self.points.extend(&other.points);
        self.faces.extend(other.faces.iter().map(|f| f.map(|v| v + base)));
        self
    }

    /// The shape with every point moved.
    pub fn map(mut self, f: impl Fn(DVec3) -> DVec3) -> Self {
        self.points.iter_mut().for_each(|p| *p = f(*p));
        self
    }

    /// The faces turned inside out for which `which(number)` holds.
    pub fn flip(mut self, which: impl Fn(usize) -> bool) -> Self {
        self.faces.iter_mut().enumerate().filter(|(n, _)| which(*n)).for_each(|(_, f)| f.swap(1, 2));
        self
    }

    /// Only the faces for whose centre `which` holds.
    pub fn keep(mut self, which: impl Fn(DVec3) -> bool) -> Self {
        let points = &self.points;
        self.faces.retain(|f| which(f.iter().map(|&v| points[v as usize]).sum::<DVec3>() / 3.0));
        self
    }
}

/// The axis-aligned box from `min` to `max`, each side in n x n squares.
pub fn cuboid(min: DVec3, max: DVec3, n: u32) -> Shape {
    let mut shape = Shape::default();
    let mut number = HashMap::new();
    let axes = [DVec3::X, DVec3::Y, DVec3::Z];
    for axis in 0..3 {
        for upper in [0, n] {
            let mut at = |i: u32, j: u32| {
                let mut grid = [0; 3];
                (grid[axis], grid[(axis + 1) % 3], grid[(axis + 2) % 3]) = (upper, i, j);
                *number.entry(grid).or_insert_with(|| {
                    let t: DVec3 = (0..3).map(|a| axes[a] * (f64::from(grid[a]) / f64::from(n))).sum();
                    shape.points.push(min * (DVec3::ONE - t) + max * t);
                    shape.points.len() as u32 - 1
                })
            };
            for i in 0..n {
                for j in 0..n {
                    let quad = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)];
                    let [a, b, c, d] = if upper == 0 { [quad[0], quad[3], quad[2], quad[1]] } else { quad };
                    shape.faces.extend([[a, b, c], [a, c, d]]);
                }
            }
        }
    }
    shape
}

/// A surface of revolution about the y axis along a profile of (radius, height), from a pole at the bottom to a pole at the
/// top (both of radius 0).
fn lathe(profile: &[(f64, f64)], around: u32) -> Shape {
    let mut shape = Shape::default();
    let last = profile.len() - 1;
    shape.points.push(DVec3::Y * profile[0].1);
    for &(radius, height) in &profile[1..last] {
        for k in 0..around {
            let (sin, cos) = (TAU * f64::from(k) / f64::from(around)).sin_cos();
            shape.points.push(DVec3::new(radius * cos, height, radius * sin));
        }
    }
    shape.points.push(DVec3::Y * profile[last].1);
    let top = shape.points.len() as u32 - 1;
    let ring = |i: u32, k: u32| 1 + i * around + k % around;
    for k in 0..around {
        shape.faces.push([0, ring(0, k), ring(0, k + 1)]);
        for i in 0..last as u32 - 2 {
            let quad = [ring(i, k), ring(i + 1, k), ring(i + 1, k + 1), ring(i, k + 1)];
            shape.faces.extend([[quad[0], quad[1], quad[2]], [quad[0], quad[2], quad[3]]]);
        }
        shape.faces.push([top, ring(last as u32 - 2, k + 1), ring(last as u32 - 2, k)]);
    }
    shape
}

/// A sphere of this radius about the origin, poles on the y axis, n rings of 2 n squares.
pub fn sphere(radius: f64, n: u32) -> Shape {
    let at = |i: u32| PI * f64::from(i) / f64::from(n);
    lathe(&(0..=n).map(|i| (radius * at(i).sin(), -radius * at(i).cos())).collect::<Vec<_>>(), 2 * n)
}

/// A capsule about the y axis: all points within `radius` of the segment from (0, 0, 0) to (0, length, 0).
pub fn capsule(radius: f64, length: f64, n: u32) -> Shape {
    let at = |i: u32| PI / 2.0 * f64::from(i) / f64::from(n);
    let lower = (0..=n).map(|i| (radius * at(i).sin(), -radius * at(i).cos()));
    let middle = (1..2 * n).map(|i| (radius, length * f64::from(i) / f64::from(2 * n)));
    let upper = (0..=n).rev().map(|i| (radius * at(i).sin(), length + radius * at(i).cos()));
    lathe(&lower.chain(middle).chain(upper).collect::<Vec<_>>(), 4 * n)
}

/// A tube of radius `radius`, closed at both ends, bent to a U: two legs of this length along -y, `gap` apart, and a half ring.
pub fn u_bend(radius: f64, gap: f64, leg: f64, n: u32) -> Shape {
    let bend = radius + gap / 2.0;
    let length = 2.0 * leg + PI * bend;
    // The capsule's axis, point by point, is laid along the U.
    capsule(radius, length, n).map(|p| {
        let s = p.y.clamp(0.0, length);
        let beyond = p.y - s;
        if s < leg {
            DVec3::new(-bend + p.x, s - leg + beyond, p.z)
        } else if s > length - leg {
            DVec3::new(bend - p.x, length - leg - s - beyond, p.z)
        } else {
            let (sin, cos) = ((s - leg) / bend).sin_cos();
            DVec3::new(-(bend - p.x) * cos, (bend - p.x) * sin, p.z)
        }
    })
}

/// Triangles that have nothing to do with each other, of sizes from a point to the whole box [-1, 1]^3, every fifth one
/// degenerate, many with corners on a coarse lattice (so that they lie in faces, edges and corners of voxels).
pub fn soup(random: &mut Random, triangles: usize) -> Shape {
    let mut shape = Shape::default();
    // The corners of the box, so that the grid is the same whatever the triangles are.
    shape.points.extend([DVec3::NEG_ONE, DVec3::ONE]);
    for n in 0..triangles {
        let size = 10f64.powf(-3.0 * random.unit());
        let snapped = random.below(3) == 0;
        let middle = random.in_cube();
        let mut corners = [0, 1, 2].map(|_| {
            let p = middle + random.in_cube() * size;
            if snapped { (p * 16.0).round() / 16.0 } else { p }.clamp(DVec3::NEG_ONE, DVec3::ONE)
        });
        match n % 15 {
            0 => corners[2] = corners[0],
            5 => corners = [corners[0]; 3],
            10 => corners[2] = corners[0] + (corners[1] - corners[0]) * random.unit(),
            _ => {}
        }
        let base = shape.points.len() as u32;
        shape.points.extend(corners);
        shape.faces.push([base, base + 1, base + 2]);
    }
    shape
}

/// Random numbers that are the same on every machine (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// A point in [-1, 1]^3.
    pub fn in_cube(&mut self) -> DVec3 {
        DVec3::new(self.unit(), self.unit(), self.unit()) * 2.0 - 1.0
    }
}
