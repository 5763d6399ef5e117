//! What lies over the surface: bones, seen through it, and the scale of a heat map. Edges are smoothed by how much of a pixel
//! they cover.

use glam::DVec2;

use super::camera::Camera;
use super::colour::{Rgb, heat};
use super::{BoneMark, Canvas};

/// The height of a picture in which an overlay's lengths are as given here.
const DESIGN_HEIGHT: f64 = 900.0;
const DARK: Rgb = [0.015, 0.017, 0.02];
/// Rows of five pixels, the first digit's bits on the left; then a point.
const DIGITS: [[u8; 7]; 11] = [
    [0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e],
    [0x04, 0x0c, 0x14, 0x04, 0x04, 0x04, 0x1f],
    [0x0e, 0x11, 0x01, 0x06, 0x08, 0x10, 0x1f],
    [0x0e, 0x11, 0x01, 0x06, 0x01, 0x11, 0x0e],
    [0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02],
    [0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e],
    [0x0e, 0x10, 0x10, 0x1e, 0x11, 0x11, 0x0e],
    [0x1f, 0x01, 0x02, 0x02, 0x04, 0x04, 0x04],
    [0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e],
    [0x0e, 0x11, 0x11, 0x0f, 0x01, 0x01, 0x0e],
    [0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c],
];

impl Canvas {
    /// Lays a colour of this opacity over a pixel, of which it covers a share (cut to 0 to 1).
    fn blend(&mut self, x: usize, y: usize, colour: Rgb, opacity: f64, share: f64) {
        let cover = (opacity * share.clamp(0.0, 1.0)) as f32;
        let pixel = &mut self.pixels[y * self.width + x];
        for (under, over) in pixel.iter_mut().zip(colour) {
            *under += (over as f32 - *under) * cover;
        }
    }

    /// The pixels of a box that are in the picture.
    fn pixels_in(&self, low: DVec2, high: DVec2) -> impl Iterator<Item = (usize, usize)> + use<> {
        let range = |low: f64, high: f64, most: usize| low.max(0.0) as usize..(high.max(0.0).ceil() as usize).min(most);
        let (columns, rows) = (range(low.x, high.x, self.width), range(low.y, high.y, self.height));
        rows.flat_map(move |y| columns.clone().map(move |x| (x, y)))
    }
}

/// Draws bones as slim kites from head to tail, with a ring at the head, far ones first.
pub(super) fn bones(canvas: &mut Canvas, bones: &[BoneMark], camera: &Camera) {
    let unit = (canvas.height as f64 / DESIGN_HEIGHT).max(0.4);
    let mut order: Vec<(f64, &BoneMark)> = bones.iter().map(|b| (camera.project(b.head).nearness, b)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, bone) in &order {
        let [head, tail] = [bone.head, bone.tail].map(|p| camera.project(p)).map(|p| DVec2::new(p.x, p.y));
        if head.is_finite() && tail.is_finite() {
            kite(canvas, head, tail, bone.colour, unit);
        }
    }
    for (_, bone) in &order {
        let p = camera.project(bone.head);
        disc(canvas, DVec2::new(p.x, p.y), bone.colour, unit);
    }
}

fn kite(canvas: &mut Canvas, head: DVec2, tail: DVec2, colour: Rgb, unit: f64) {
    /// Where along the bone it is widest.
    const SHOULDER: f64 = 0.18;
    let length = head.distance(tail);
    let widest = (0.085 * length).clamp(1.2 * unit, 6.0 * unit);
    let reach = DVec2::splat(widest + 3.0 * unit);
    for (x, y) in canvas.pixels_in(head.min(tail) - reach, head.max(tail) + reach) {
        let p = DVec2::new(x as f64 + 0.5, y as f64 + 0.5);
        let along = if length > 0.0 { ((p - head).dot(tail - head) / (length * length)).clamp(0.0, 1.0) } else { 0.0 };
        let apart = p.distance(head.lerp(tail, along));
        let taper = if along < SHOULDER { along / SHOULDER } else { (1.0 - along) / (1.0 - SHOULDER) };
        let radius = widest * taper + 0.5 * unit;
        canvas.blend(x, y, DARK, 0.85, radius + 1.1 * unit - apart + 0.5);
        canvas.blend(x, y, colour, 0.95, radius - apart + 0.5);
    }
}

fn disc(canvas: &mut Canvas, middle: DVec2, colour: Rgb, unit: f64) {
    if !middle.is_finite() {
        return;
    }
    let radius = 2.6 * unit;
    let reach = DVec2::splat(radius + 2.0 * unit);
    for (x, y) in canvas.pixels_in(middle - reach, middle + reach) {
        let apart = middle.distance(DVec2::new(x as f64 + 0.5, y as f64 + 0.5));
        canvas.blend(x, y, DARK, 0.85, radius + 1.1 * unit - apart + 0.5);
        canvas.blend(x, y, colour.map(|c| 0.4 + 0.6 * c), 1.0, radius - apart + 0.5);
    }
}

/// Whole pixels that a dot of a digit is wide.
fn dot(height: usize) -> usize {
    ((height as f64 / 450.0).round() as usize).max(1)
}

/// How much room the scale takes on the right.
pub(super) fn scale_width(height: usize) -> f64 {
    0.025 * height as f64 + 34.0 * dot(height) as f64
}

/// Draws the scale of a heat map on the right: a bar with five marks.
pub(super) fn scale(canvas: &mut Canvas) {
    let (width, height) = (canvas.width as f64, canvas.height as f64);
    let dot = dot(canvas.height);
    let left = width - scale_width(canvas.height);
    let (bar, top, bottom) = (0.025 * height, 0.22 * height, 0.78 * height);
    let value = |y: f64| (bottom - y) / (bottom - top);
    let edge = (0.0015 * height).max(1.0);
    for (x, y) in canvas.pixels_in(DVec2::new(left - edge, top - edge), DVec2::new(left + bar + edge, bottom + edge)) {
        canvas.blend(x, y, DARK, 0.85, 1.0);
    }
    for (x, y) in canvas.pixels_in(DVec2::new(left, top), DVec2::new(left + bar, bottom)) {
        canvas.blend(x, y, heat(value(y as f64 + 0.5)), 1.0, 1.0);
    }
    for (mark, text) in ["0", "0.25", "0.5", "0.75", "1"].into_iter().enumerate() {
        let y = bottom - (bottom - top) * mark as f64 / 4.0;
        let from = DVec2::new(left + bar, y - edge / 2.0);
        for (x, y) in canvas.pixels_in(from, from + DVec2::new(3.0 * dot as f64, edge)) {
            canvas.blend(x, y, DARK, 0.85, 1.0);
        }
        let x = (left + bar) as usize + 5 * dot;
        write(canvas, x, (y - 3.5 * dot as f64).max(0.0) as usize, text, dot);
    }
}

/// Digits and points, `dot` pixels to a dot.
fn write(canvas: &mut Canvas, left: usize, top: usize, text: &str, dot: usize) {
    let mut x = left;
    for c in text.chars() {
        let digit = &DIGITS[c.to_digit(10).map_or(10, |d| d as usize)];
        for (row, bits) in digit.iter().enumerate() {
            for column in (0..5).filter(|column| bits >> (4 - column) & 1 == 1) {
                let corner = DVec2::new((x + column * dot) as f64, (top + row * dot) as f64);
                for (x, y) in canvas.pixels_in(corner, corner + dot as f64) {
                    canvas.blend(x, y, DARK, 0.9, 1.0);
                }
            }
        }
        x += 6 * dot - if c == '.' { dot } else { 0 };
    }
}
