//! Triangles to pixels: which triangle is nearest at each of four samples a pixel (Catmull's z-buffer, 1974), then light and
//! colour for those only. Bands of rows are drawn apart, so memory does not follow the picture's size.

use glam::DVec3;
use rayon::prelude::*;

use super::camera::{Camera, Projected};
use super::colour::{self, Rgb};
use super::ground::Ground;
use super::shade::Lights;
use super::{Canvas, Paint};
use crate::model::Mesh;

/// Samples along each side of a pixel.
pub(super) const GRID: usize = 2;
/// Rows of pixels in a band.
const BAND: usize = 16;
/// Where a face and a vertex normal that was made up here are further apart than this (as a cosine), there is an edge.
const CREASE: f64 = 0.6;

/// What the samples of a band see.
struct Samples {
    nearness: Vec<f64>,
    triangle: Vec<u32>,
}

pub(super) struct Drawing<'a> {
    mesh: &'a Mesh,
    paint: &'a Paint,
    camera: &'a Camera,
    lights: Lights,
    flat: bool,
    projected: Vec<Projected>,
    normals: Vec<DVec3>,
    own_normals: bool,
    height: usize,
    /// Colours without light have no shadow either.
    ground: Option<Ground>,
}

/// Fills the canvas with the background and the mesh on it.
pub(super) fn draw(canvas: &mut Canvas, mesh: &Mesh, paint: &Paint, camera: &Camera, flat: bool) {
    let drawing = Drawing::new(mesh, paint, camera, flat, canvas.height);
    let bands = drawing.bands(canvas.height);
    let width = canvas.width;
    canvas.pixels.par_chunks_mut(width * BAND).zip(&bands).enumerate().for_each(|(band, (rows, triangles))| {
        let samples = drawing.sample(band * BAND, rows.len() / width, width, triangles);
        drawing.resolve(band * BAND, width, &samples.triangle, rows);
    });
}

impl<'a> Drawing<'a> {
    /// What the picture of a mesh needs, of this height in pixels.
    pub fn new(mesh: &'a Mesh, paint: &'a Paint, camera: &'a Camera, flat: bool, height: usize) -> Self {
        Self {
            mesh,
            paint,
            camera,
            lights: Lights::of(camera),
            flat,
            projected: mesh.positions().par_iter().map(|&p| camera.project(p)).collect(),
            normals: mesh.normals().map_or_else(|| smooth_normals(mesh), <[DVec3]>::to_vec),
            own_normals: mesh.normals().is_some(),
            height,
            ground: (!flat).then(|| Ground::below(mesh)),
        }
    }

    /// Where the vertices lie in the picture.
    #[cfg(feature = "gpu")]
    pub fn projected(&self) -> &[Projected] {
        &self.projected
    }

    /// Rows of pixels whose samples another z-buffer has found.
    #[cfg(feature = "gpu")]
    pub fn resolve_rows(&self, top: usize, width: usize, triangles: &[u32], rows: &mut [[f32; 3]]) {
        let samples = triangles.par_chunks(width * GRID * GRID * BAND);
        rows.par_chunks_mut(width * BAND).zip(samples).enumerate().for_each(|(band, (rows, samples))| {
            self.resolve(top + band * BAND, width, samples, rows);
        });
    }

    /// The triangles that reach into each band.
    fn bands(&self, height: usize) -> Vec<Vec<u32>> {
        let mut bands = vec![Vec::new(); height.div_ceil(BAND)];
        let last = bands.len() as f64 - 1.0;
        for (number, triangle) in self.mesh.triangles().iter().enumerate() {
            let y = triangle.map(|v| self.projected[v as usize].y / BAND as f64);
            let (top, bottom) = (y[0].min(y[1]).min(y[2]), y[0].max(y[1]).max(y[2]));
            if bottom >= 0.0 && top < last + 1.0 {
                let (from, to) = (top.max(0.0) as usize, bottom.min(last) as usize);
                bands[from..=to].iter_mut().for_each(|band| band.push(number as u32));
            }
        }
        bands
    }

    /// The nearest triangle at each sample of some rows.
    fn sample(&self, top: usize, rows: usize, width: usize, triangles: &[u32]) -> Samples {
        let (columns, lines) = (width * GRID, rows * GRID);
        let mut samples =
            Samples { nearness: vec![f64::NEG_INFINITY; columns * lines], triangle: vec![u32::MAX; columns * lines] };
        let grid = GRID as f64;
        for &number in triangles {
            let Some(plane) = self.plane(number) else { continue };
            let [a, b, c] = self.corners(number);
            // Samples lie in the middle of their cells.
            let first = |low: f64, from: f64| ((low - from) * grid - 0.5).ceil().max(0.0) as usize;
            let end =
                |high: f64, from: f64, most: usize| (((high - from) * grid + 0.5).floor().max(0.0) as usize).min(most);
            let (left, right) = (a.x.min(b.x).min(c.x), a.x.max(b.x).max(c.x));
            let (upper, lower) = (a.y.min(b.y).min(c.y), a.y.max(b.y).max(c.y));
            let from = top as f64;
            for line in first(upper, from)..end(lower, from, lines) {
                let y = from + (line as f64 + 0.5) / grid;
                for column in first(left, 0.0)..end(right, 0.0, columns) {
                    let shares = plane.shares((column as f64 + 0.5) / grid, y);
                    if shares.iter().all(|&s| s >= 0.0) {
                        let nearness = shares[0] * a.nearness + shares[1] * b.nearness + shares[2] * c.nearness;
                        let at = line * columns + column;
                        if nearness > samples.nearness[at] {
                            samples.nearness[at] = nearness;
                            samples.triangle[at] = number;
                        }
                    }
                }
            }
        }
        samples
    }

    /// The mean of each pixel's samples in linear light.
    fn resolve(&self, top: usize, width: usize, triangles: &[u32], rows: &mut [[f32; 3]]) {
        let grid = GRID as f64;
        let lines = rows.len() / width;
        let walls: Vec<f64> = (0..lines).map(|line| wall((top + line) as f64 / self.height as f64)).collect();
        for (i, pixel) in rows.iter_mut().enumerate() {
            let (x, line) = (i % width, i / width);
            let empty = DVec3::splat(walls[line] * (1.0 - self.shadow(x, top + line)));
            let mut sum = DVec3::ZERO;
            for sample in 0..GRID * GRID {
                let (column, row) = (x * GRID + sample % GRID, line * GRID + sample / GRID);
                sum += match triangles[row * width * GRID + column] {
                    u32::MAX => empty,
                    triangle => {
                        let at = [(column as f64 + 0.5) / grid, top as f64 + (row as f64 + 0.5) / grid];
                        self.colour(triangle, at).map_or(empty, DVec3::from_array)
                    }
                };
            }
            *pixel = (sum / (GRID * GRID) as f64).as_vec3().to_array();
        }
    }

    /// How dark the shadow on the floor is that shows at a pixel without mesh.
    fn shadow(&self, x: usize, y: usize) -> f64 {
        let Some(ground) = &self.ground else { return 0.0 };
        let floor = self.camera.floor(x as f64 + 0.5, y as f64 + 0.5, ground.height);
        floor.map_or(0.0, |p| ground.shadow(p))
    }

    /// What a sample on a triangle shows.
    fn colour(&self, number: u32, [x, y]: [f64; 2]) -> Option<Rgb> {
        let corners = self.corners(number);
        let flat = self.plane(number)?.shares(x, y);
        let mut shares = [0, 1, 2].map(|i| flat[i] * corners[i].share);
        let total: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|s| *s /= total);
        let triangle = self.mesh.triangles()[number as usize];
        let colour = self.paint_at(triangle, shares);
        if self.flat {
            return Some(colour);
        }
        let points = self.mesh.corners(triangle);
        let face = (points[1] - points[0]).cross(points[2] - points[0]).normalize_or_zero();
        let corner_normal = |i: usize| {
            let n = self.normals[triangle[i] as usize].normalize_or(face);
            if self.own_normals || n.dot(face) > CREASE { n } else { face }
        };
        let normal: DVec3 = (0..3).map(|i| corner_normal(i) * shares[i]).sum();
        let point: DVec3 = (0..3).map(|i| points[i] * shares[i]).sum();
        let viewer = self.camera.towards(point);
        let normal = normal.normalize_or(viewer);
        // Open surfaces show both sides.
        let normal = if face.dot(viewer) * face.dot(normal) < 0.0 { -normal } else { normal };
        let data = !matches!(self.paint, Paint::Plain(_));
        Some(self.lights.shade(colour, normal, viewer, data))
    }

    fn paint_at(&self, triangle: [u32; 3], shares: [f64; 3]) -> Rgb {
        match self.paint {
            Paint::Plain(colour) => *colour,
            Paint::Vertices(colours) => {
                let of = |channel: usize| (0..3).map(|i| colours[triangle[i] as usize][channel] * shares[i]).sum();
                [0, 1, 2].map(of)
            }
            Paint::Heat(values) => colour::heat((0..3).map(|i| values[triangle[i] as usize] * shares[i]).sum()),
        }
    }

    fn corners(&self, number: u32) -> [Projected; 3] {
        self.mesh.triangles()[number as usize].map(|v| self.projected[v as usize])
    }

    /// `None` for a triangle that is seen from its edge.
    fn plane(&self, number: u32) -> Option<Plane> {
        let [a, b, c] = self.corners(number);
        let area = (b.x - a.x) * (c.y - a.y) - (c.x - a.x) * (b.y - a.y);
        (area != 0.0 && area.is_finite()).then_some(Plane { corners: [a, b, c], area })
    }
}

/// A triangle in the picture.
struct Plane {
    corners: [Projected; 3],
    area: f64,
}

impl Plane {
    /// How much of each corner there is at a place; all from 0 inside.
    fn shares(&self, x: f64, y: f64) -> [f64; 3] {
        let side = |p: &Projected, q: &Projected| ((q.x - p.x) * (y - p.y) - (x - p.x) * (q.y - p.y)) / self.area;
        let [a, b, c] = &self.corners;
        [side(b, c), side(c, a), side(a, b)]
    }
}

/// The wall behind the mesh, from its top (0) to its foot (1): a light grey that gets darker downwards.
fn wall(down: f64) -> f64 {
    colour::from_srgb(0.93 - 0.17 * down * down)
}

/// For meshes without normals: the mean of the faces round each place, larger faces counting more.
fn smooth_normals(mesh: &Mesh) -> Vec<DVec3> {
    let weld = mesh.weld();
    let mut of_place = vec![DVec3::ZERO; weld.places()];
    for &triangle in mesh.triangles() {
        let [a, b, c] = mesh.corners(triangle);
        let face = (b - a).cross(c - a);
        triangle.iter().for_each(|&v| of_place[weld.place_of[v as usize] as usize] += face);
    }
    weld.place_of.iter().map(|&place| of_place[place as usize]).collect()
}
