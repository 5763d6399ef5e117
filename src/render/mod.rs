//! Pictures of meshes and their weights on the CPU: a z-buffer with four samples a pixel, two lights, a neutral background.
//!
//! [`draw`] is the whole of it. Only `surface` turns triangles into pixels; `gpu` lets a device find the triangles and leaves
//! camera, light, colours and overlays as they are.

mod camera;
pub mod colour;
#[cfg(feature = "gpu")]
pub mod gpu;
mod ground;
mod overlay;
mod shade;
mod surface;

use glam::DVec3;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::model::Mesh;
use camera::Camera;
use colour::Rgb;

/// Fewest and most pixels along a side.
pub const SIDES: std::ops::RangeInclusive<u32> = 16..=4096;

/// Where the camera stands. Up is +Y, and a character faces +Z as glTF has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    Front,
    /// From +X: the character's left side.
    Side,
    Back,
    /// From the front, its left side and a little above.
    #[default]
    ThreeQuarter,
}

/// What colour the surface has.
#[derive(Debug, Clone, PartialEq)]
pub enum Paint {
    /// One for all of it.
    Plain(Rgb),
    /// One a vertex, mixed in between.
    Vertices(Vec<Rgb>),
    /// A number from 0 to 1 a vertex, shown by [`colour::heat`], with the scale beside it.
    Heat(Vec<f64>),
}

/// A bone drawn over the surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoneMark {
    pub head: DVec3,
    pub tail: DVec3,
    pub colour: Rgb,
}

/// How a picture is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    pub width: u32,
    pub height: u32,
    pub view: View,
    /// Without perspective.
    pub orthographic: bool,
    /// Colours as they are, without light.
    pub flat: bool,
}

impl Default for Look {
    fn default() -> Self {
        Self { width: 900, height: 900, view: View::default(), orthographic: false, flat: false }
    }
}

/// A picture: rows from the top, pixels from the left, red, green and blue in sRGB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub width: u32,
    pub height: u32,
    pub pixels: Vec<[u8; 3]>,
}

impl Image {
    /// The pixel at so many to the right and down from the upper left one.
    pub fn at(&self, x: u32, y: u32) -> [u8; 3] {
        self.pixels[y as usize * self.width as usize + x as usize]
    }
}

/// A picture in the making, in linear light.
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<[f32; 3]>,
}

impl Canvas {
    /// The picture with what lies over the surface.
    fn finish_with(mut self, paint: &Paint, bones: &[BoneMark], camera: &Camera) -> Image {
        overlay::bones(&mut self, bones, camera);
        if matches!(paint, Paint::Heat(_)) {
            overlay::scale(&mut self);
        }
        self.finish()
    }

    fn finish(self) -> Image {
        let encode = |row: &[[f32; 3]]| {
            // Most of a row is background of one colour.
            let mut last = ([f32::NAN; 3], [0; 3]);
            let encode = |&p: &[f32; 3]| {
                if p != last.0 {
                    last = (p, colour::to_srgb8(p.map(f64::from)));
                }
                last.1
            };
            row.iter().map(encode).collect::<Vec<_>>()
        };
        let rows: Vec<_> = self.pixels.par_chunks(self.width).map(encode).collect();
        Image { width: self.width as u32, height: self.height as u32, pixels: rows.concat() }
    }
}

/// Draws a mesh so that all of it fills the picture.
///
/// # Errors
/// [`Error::Parameter`] for a side outside [`SIDES`], [`Error::Length`] for paint that has not one entry a vertex, and
/// [`Error::NoExtent`].
pub fn draw(mesh: &Mesh, paint: &Paint, bones: &[BoneMark], look: &Look) -> Result<Image> {
    let (mut canvas, camera) = begin(mesh, paint, look)?;
    surface::draw(&mut canvas, mesh, paint, &camera, look.flat);
    Ok(canvas.finish_with(paint, bones, &camera))
}

/// The empty canvas of a picture and its camera.
fn begin(mesh: &Mesh, paint: &Paint, look: &Look) -> Result<(Canvas, Camera)> {
    check(mesh, paint, look)?;
    let (width, height) = (look.width as usize, look.height as usize);
    Ok((Canvas { width, height, pixels: vec![[0.0; 3]; width * height] }, camera(mesh, paint, look)))
}

/// Where points in world space lie in the picture that [`draw`] makes with the same arguments: pixels from its upper left
/// corner, the middle of the first pixel at (0.5, 0.5).
///
/// # Errors
/// As [`draw`].
pub fn project(mesh: &Mesh, paint: &Paint, look: &Look, points: &[DVec3]) -> Result<Vec<[f64; 2]>> {
    check(mesh, paint, look)?;
    let camera = camera(mesh, paint, look);
    Ok(points.iter().map(|&p| camera.project(p)).map(|p| [p.x, p.y]).collect())
}

fn camera(mesh: &Mesh, paint: &Paint, look: &Look) -> Camera {
    let beside = if matches!(paint, Paint::Heat(_)) { overlay::scale_width(look.height as usize) } else { 0.0 };
    Camera::framing(mesh, look, beside)
}

fn check(mesh: &Mesh, paint: &Paint, look: &Look) -> Result<()> {
    for (name, side) in [("width", look.width), ("height", look.height)] {
        if !SIDES.contains(&side) {
            return Err(Error::Parameter { name, value: side.to_string(), allowed: "it must be 16 to 4096 pixels" });
        }
    }
    let expected = mesh.positions().len();
    let found = match paint {
        Paint::Plain(_) => expected,
        Paint::Vertices(colours) => colours.len(),
        Paint::Heat(values) => values.len(),
    };
    if found != expected {
        return Err(Error::Length { what: "colours", found, expected });
    }
    if mesh.bounds().diagonal() > 0.0 { Ok(()) } else { Err(Error::NoExtent) }
}
