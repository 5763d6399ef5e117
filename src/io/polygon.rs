//! Polygons to triangles by ear clipping in the polygon's own plane (Meisters 1975; plane by Newell's normal, Sutherland
//! et al. 1974), with nothing but the polygon's corners.

use glam::{DVec2, DVec3};

/// Point-in-triangle tests that all polygons of a file may take together: some seconds of work. Only outlines of tens of
/// thousands of concave corners come near it.
const TESTS: u64 = 2_000_000_000;
/// Areas below this share of the square of the polygon's size count as none.
const FLAT: f64 = 1e-13;

/// A polygon is too intricate to be split in reasonable time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooIntricate;

/// Splits polygons; keeps its buffers from one to the next.
pub struct Triangulator {
    points: Vec<DVec2>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Corners that are not strictly convex: only they can lie in an ear.
    blunt: Vec<u32>,
    flat: f64,
    tests_left: u64,
}

/// How strict the search for an ear is; each is tried after the one before found none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ear {
    /// With an area, and no other corner in it or on its rim.
    Clean,
    /// With an area, and no other corner strictly inside.
    Touched,
    /// Without an area.
    Flat,
    /// Any: the outline crosses itself.
    Any,
}

impl Default for Triangulator {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            next: Vec::new(),
            previous: Vec::new(),
            blunt: Vec::new(),
            flat: 0.0,
            tests_left: TESTS,
        }
    }
}

impl Triangulator {
    /// Appends the n - 2 triangles of a polygon of n corners, in its own sense of rotation. Exact for any simple outline,
    /// concave too; a polygon without area or one that crosses itself still gives n - 2 triangles.
    ///
    /// # Errors
    /// [`TooIntricate`] where huge concave polygons would take minutes.
    ///
    /// There must be at least 3 corners, all of them indices into `positions`.
    pub fn split(
        &mut self,
        positions: &[DVec3],
        corners: &[u32],
        triangles: &mut Vec<[u32; 3]>,
    ) -> Result<(), TooIntricate> {
        if corners.len() == 3 {
            triangles.push([corners[0], corners[1], corners[2]]);
            return Ok(());
        }
        let at = |i: usize| positions[corners[i] as usize];
        let normal = newell(corners.iter().map(|&c| positions[c as usize]));
        if corners.len() == 4 {
            // A concave quad is split at its concave corner.
            let bends_in = |i: usize| {
                let (a, b, c) = (at((i + 3) % 4), at(i), at((i + 1) % 4));
                (b - a).cross(c - b).dot(normal) < 0.0
            };
            let turn = usize::from(bends_in(1) || bends_in(3));
            let [a, b, c, d] = std::array::from_fn(|i| corners[(i + turn) % 4]);
            triangles.extend([[a, b, c], [a, c, d]]);
            return Ok(());
        }
        match normal.try_normalize() {
            Some(normal) => self.clip(positions, corners, normal, triangles),
            None => {
                triangles.extend((2..corners.len()).map(|i| [corners[0], corners[i - 1], corners[i]]));
                Ok(())
            }
        }
    }

    fn clip(
        &mut self,
        positions: &[DVec3],
        corners: &[u32],
        normal: DVec3,
        triangles: &mut Vec<[u32; 3]>,
    ) -> Result<(), TooIntricate> {
        self.lay_out(positions, corners, normal);
        let mut left = corners.len();
        let mut at = 0;
        while left > 3 {
            let ear = self.find_ear(at, left)?;
            let (before, after) = (self.previous[ear as usize], self.next[ear as usize]);
            triangles.push([before, ear, after].map(|i| corners[i as usize]));
            self.next[before as usize] = after;
            self.previous[after as usize] = before;
            left -= 1;
            self.update_blunt(ear, before, after);
            // Going on beyond the cut gives rounder triangles than cutting at one corner again and again.
            at = self.next[after as usize];
        }
        let (a, b) = (at, self.next[at as usize]);
        triangles.push([a, b, self.next[b as usize]].map(|i| corners[i as usize]));
        Ok(())
    }

    /// Projects the corners to their plane, so that the outline runs counter-clockwise, and links them in a ring.
    fn lay_out(&mut self, positions: &[DVec3], corners: &[u32], normal: DVec3) {
        let (u, v) = normal.any_orthonormal_pair();
        let origin = positions[corners[0] as usize];
        let count = corners.len() as u32;
        self.points.clear();
        self.points.extend(corners.iter().map(|&c| {
            let p = positions[c as usize] - origin;
            DVec2::new(p.dot(u), p.dot(v))
        }));
        let size = self.points.iter().map(|p| p.abs().max_element()).fold(0.0, f64::max);
        self.flat = FLAT * size * size;
        self.next.clear();
        self.next.extend((0..count).map(|i| (i + 1) % count));
        self.previous.clear();
        self.previous.extend((0..count).map(|i| (i + count - 1) % count));
        self.blunt.clear();
        for i in 0..count {
            if self.area(i) <= self.flat {
                self.blunt.push(i);
            }
        }
    }

    /// Twice the signed area of a corner with its two neighbours.
    fn area(&self, i: u32) -> f64 {
        let [a, b, c] = self.ear(i);
        (b - a).perp_dot(c - b)
    }

    fn ear(&self, i: u32) -> [DVec2; 3] {
        [self.previous[i as usize], i, self.next[i as usize]].map(|j| self.points[j as usize])
    }

    fn find_ear(&mut self, start: u32, left: usize) -> Result<u32, TooIntricate> {
        for kind in [Ear::Clean, Ear::Touched, Ear::Flat, Ear::Any] {
            let mut at = start;
            for _ in 0..left {
                if self.is_ear(at, kind)? {
                    return Ok(at);
                }
                at = self.next[at as usize];
            }
        }
        Ok(start)
    }

    fn is_ear(&mut self, i: u32, kind: Ear) -> Result<bool, TooIntricate> {
        let area = self.area(i);
        match kind {
            Ear::Any => return Ok(true),
            Ear::Flat => return Ok(area.abs() <= self.flat),
            Ear::Clean | Ear::Touched if area <= self.flat => return Ok(false),
            Ear::Clean | Ear::Touched => {}
        }
        let [a, b, c] = self.ear(i);
        // A corner at the place of one of the ear's own does not count: outlines round a hole pass such places twice.
        let blocks = |p: DVec2| {
            let sides = [(a, b), (b, c), (c, a)].map(|(p0, p1)| (p1 - p0).perp_dot(p - p0));
            let inside = match kind {
                Ear::Clean => sides.iter().all(|&s| s >= 0.0),
                _ => sides.iter().all(|&s| s > self.flat),
            };
            inside && p != a && p != b && p != c
        };
        let blocked_by = self.blunt.iter().position(|&j| blocks(self.points[j as usize]));
        let tests = blocked_by.map_or(self.blunt.len(), |n| n + 1) as u64;
        self.tests_left = self.tests_left.checked_sub(tests).ok_or(TooIntricate)?;
        Ok(blocked_by.is_none())
    }

    /// After a corner was cut off: it blocks no more, and its neighbours may have become convex.
    fn update_blunt(&mut self, gone: u32, before: u32, after: u32) {
        let convex = [before, after].map(|i| self.area(i) > self.flat);
        self.blunt.retain(|&i| i != gone && !(i == before && convex[0]) && !(i == after && convex[1]));
        for (i, convex) in [before, after].into_iter().zip(convex) {
            if !convex && !self.blunt.contains(&i) {
                self.blunt.push(i);
            }
        }
    }
}

/// Newell's normal: twice the vector area of a closed outline. Taken about its first point, so that precision does not
/// suffer far from the origin.
fn newell(mut points: impl Iterator<Item = DVec3>) -> DVec3 {
    let Some(origin) = points.next() else { return DVec3::ZERO };
    let mut sum = DVec3::ZERO;
    let mut last = DVec3::ZERO;
    for p in points {
        sum += last.cross(p - origin);
        last = p - origin;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The areas' vector sum and the sum of their lengths.
    fn areas(positions: &[DVec3], triangles: &[[u32; 3]]) -> (DVec3, f64) {
        triangles.iter().fold((DVec3::ZERO, 0.0), |(sum, total), t| {
            let [a, b, c] = t.map(|i| positions[i as usize]);
            let area = (b - a).cross(c - a) / 2.0;
            (sum + area, total + area.length())
        })
    }

    fn split(points: &[[f64; 3]]) -> (Vec<DVec3>, Vec<[u32; 3]>) {
        let positions: Vec<DVec3> = points.iter().map(|&p| DVec3::from_array(p)).collect();
        let corners: Vec<u32> = (0..positions.len() as u32).collect();
        let mut triangles = Vec::new();
        Triangulator::default().split(&positions, &corners, &mut triangles).unwrap();
        assert_eq!(triangles.len(), points.len() - 2);
        (positions, triangles)
    }

    /// A star whose spikes all bend in between, tilted in space; a fan from a corner would cover too much.
    fn star(spikes: usize) -> Vec<[f64; 3]> {
        let turn = glam::DQuat::from_euler(glam::EulerRot::XYZ, 0.4, -0.8, 0.3);
        (0..2 * spikes)
            .map(|i| {
                let angle = std::f64::consts::PI * i as f64 / spikes as f64;
                let radius = if i % 2 == 0 { 1.0 } else { 0.3 };
                (turn * DVec3::new(radius * angle.cos(), radius * angle.sin(), 0.0) + DVec3::splat(50.0)).to_array()
            })
            .collect()
    }

    fn star_area(spikes: usize) -> f64 {
        spikes as f64 * 0.3 * (std::f64::consts::PI / spikes as f64).sin()
    }

    #[test]
    fn concave_outlines_keep_their_area() {
        for spikes in [3, 5, 17, 300] {
            let (positions, triangles) = split(&star(spikes));
            let (sum, total) = areas(&positions, &triangles);
            // The corners are ~87 from the origin and rounded to 2^-46 there: relative area error far below 1e-9.
            assert!((sum.length() - star_area(spikes)).abs() < 1e-9, "{spikes} spikes: {}", sum.length());
            assert!((total - star_area(spikes)).abs() < 1e-9, "{spikes} spikes overlap: {total}");
        }
        // The control: a fan from the first corner covers more.
        let positions: Vec<DVec3> = star(5).into_iter().map(DVec3::from_array).collect();
        let fan: Vec<[u32; 3]> = (2..10).map(|i| [0, i - 1, i]).collect();
        assert!(areas(&positions, &fan).1 > star_area(5) * 1.1);
    }

    #[test]
    fn concave_quads_are_split_at_the_concave_corner() {
        let dart = [[0.0, 0.0, 0.0], [2.0, -1.0, 0.0], [0.5, 0.0, 0.0], [2.0, 1.0, 0.0]];
        for turn in 0..4 {
            let mut points = dart;
            points.rotate_left(turn);
            let (positions, triangles) = split(&points);
            let (sum, total) = areas(&positions, &triangles);
            assert!((sum.length() - 0.5).abs() < 1e-15 && (total - 0.5).abs() < 1e-15, "{turn}: {total}");
        }
    }

    #[test]
    fn corners_on_straight_edges_give_no_flat_triangles() {
        let (positions, triangles) =
            split(&[[0., 0., 0.], [1., 0., 0.], [2., 0., 0.], [2., 1., 0.], [2., 2., 0.], [0., 2., 0.]]);
        for t in &triangles {
            assert!(areas(&positions, &[*t]).1 > 0.1, "{t:?}");
        }
        assert!((areas(&positions, &triangles).1 - 4.0).abs() < 1e-15);
    }

    #[test]
    fn an_outline_round_a_hole_keeps_its_area() {
        // A square of 3 with a square hole of 1, joined by a bridge that is passed twice.
        let (positions, triangles) = split(&[
            [0., 0., 0.],
            [3., 0., 0.],
            [3., 3., 0.],
            [0., 3., 0.],
            [0., 0., 0.],
            [1., 1., 0.],
            [1., 2., 0.],
            [2., 2., 0.],
            [2., 1., 0.],
            [1., 1., 0.],
        ]);
        let (sum, total) = areas(&positions, &triangles);
        assert!((sum.z - 8.0).abs() < 1e-12 && (total - 8.0).abs() < 1e-12, "{sum} {total}");
    }

    #[test]
    fn outlines_without_area_still_give_all_triangles() {
        split(&[[1.0; 3]; 7]);
        split(&[[0., 0., 0.], [1., 0., 0.], [2., 0., 0.], [3., 0., 0.], [4., 0., 0.]]);
        // It crosses itself: a pentagram.
        let pentagram: Vec<[f64; 3]> = (0..5)
            .map(|i| {
                let angle = 4.0 * std::f64::consts::PI * f64::from(i) / 5.0;
                [angle.cos(), angle.sin(), 0.0]
            })
            .collect();
        split(&pentagram);
    }
}
