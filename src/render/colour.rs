//! Colours that look as far apart as they are meant to: made in OKLab (Ottosson 2020), where distance is difference as seen.

use crate::model::Skeleton;

/// Red, green and blue in linear light, 0 to 1.
pub type Rgb = [f64; 3];

/// A bright clay, for surfaces without colours of their own.
pub const CLAY: Rgb = [0.56, 0.50, 0.44];

/// The scale of weights: lightness rises evenly from 0 to 1, while the hue goes from slate over violet and red to yellow,
/// so that equal steps look equal and the order shows in grey too.
const HEAT: [[f64; 3]; 6] = [
    // lightness, chroma, hue in degrees
    [0.440, 0.030, 262.0],
    [0.520, 0.135, 288.0],
    [0.605, 0.195, 345.0],
    [0.695, 0.185, 30.0],
    [0.795, 0.150, 67.0],
    [0.930, 0.150, 103.0],
];

/// The colour of a weight; what lies outside 0 to 1 has the colour of the nearer end, and so has NaN of 0.
pub fn heat(value: f64) -> Rgb {
    let steps = HEAT.len() - 1;
    let value = if value > 0.0 { value.min(1.0) } else { 0.0 };
    let at = value * steps as f64;
    let from = (at as usize).min(steps - 1);
    let share = at - from as f64;
    let [a, b] = [HEAT[from], HEAT[from + 1]].map(|[l, c, h]| lab(l, c, h));
    from_lab([0, 1, 2].map(|i| a[i] + (b[i] - a[i]) * share))
}

/// A colour for each bone of a skeleton, as unlike those of its neighbours as can be: its parent, its siblings and what
/// stands shortly before it in the tree.
pub fn bones(skeleton: &Skeleton) -> Vec<Rgb> {
    let candidates: Vec<[f64; 3]> = (0..CANDIDATES).map(candidate).collect();
    let bones = skeleton.bones();
    let mut chosen: Vec<Option<usize>> = vec![None; bones.len()];
    let mut uses = [0usize; CANDIDATES];
    // Colours taken so far: of each bone's children, and of all bones.
    let (mut children, mut recent) = (vec![Vec::new(); bones.len()], Vec::new());
    for bone in skeleton.parents_first() {
        let parent = bones[bone].parent;
        let grandparent = parent.and_then(|p| bones[p].parent);
        let mut near: Vec<(usize, f64)> =
            [(parent, 1.0), (grandparent, 0.6)].iter().filter_map(|&(b, w)| Some((chosen[b?]?, w))).collect();
        let siblings = parent.map_or(&[][..], |p| &children[p]);
        near.extend(siblings.iter().rev().take(CANDIDATES).map(|&c| (c, 0.9)));
        near.extend(recent.iter().rev().take(8).map(|&c| (c, 0.35)));
        // Distances are about 0.1 to 0.4; a colour in use is taken again when the others are much nearer.
        let score = |c: usize| {
            let apart = near.iter().map(|&(other, weight)| distance(candidates[c], candidates[other]) / weight);
            apart.fold(1.0, f64::min) - 0.02 * uses[c] as f64
        };
        let best = (1..CANDIDATES).fold(0, |best, c| if score(c) > score(best) { c } else { best });
        chosen[bone] = Some(best);
        uses[best] += 1;
        recent.push(best);
        if let Some(p) = parent {
            children[p].push(best);
        }
    }
    chosen.into_iter().map(|c| from_lab(candidates[c.unwrap_or(0)])).collect()
}

const CANDIDATES: usize = 24;

/// Twelve hues, each light and dark, neighbouring numbers far apart.
fn candidate(number: usize) -> [f64; 3] {
    let hue = (number * 5 % 12) as f64 * 30.0 + if number >= 12 { 15.0 } else { 0.0 };
    if number >= 12 { lab(0.56, 0.125, hue) } else { lab(0.76, 0.130, hue) }
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

fn lab(lightness: f64, chroma: f64, hue: f64) -> [f64; 3] {
    let (sin, cos) = hue.to_radians().sin_cos();
    [lightness, chroma * cos, chroma * sin]
}

/// OKLab to linear light, brought into what a screen can show.
fn from_lab([l, a, b]: [f64; 3]) -> Rgb {
    let cube = |x: f64| x * x * x;
    let long = cube(l + 0.3963377774 * a + 0.2158037573 * b);
    let medium = cube(l - 0.1055613458 * a - 0.0638541728 * b);
    let short = cube(l - 0.0894841775 * a - 1.2914855480 * b);
    [
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    ]
    .map(|c| c.clamp(0.0, 1.0))
}

/// Linear light as sRGB stores it (IEC 61966-2-1), in eight bits.
pub fn to_srgb8(colour: Rgb) -> [u8; 3] {
    colour.map(|c| {
        let c = c.clamp(0.0, 1.0);
        let encoded = if c <= 0.0031308 { 12.92 * c } else { 1.055 * c.powf(1.0 / 2.4) - 0.055 };
        (encoded * 255.0).round() as u8
    })
}

/// An sRGB number from 0 to 1 in linear light.
pub fn from_srgb(c: f64) -> f64 {
    if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bone;
    use glam::DVec3;

    fn luminance([r, g, b]: Rgb) -> f64 {
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    #[test]
    fn heat_gets_lighter_all_the_way_and_never_leaves_the_screen() {
        let steps: Vec<Rgb> = (0..=100).map(|i| heat(f64::from(i) / 100.0)).collect();
        assert!(steps.is_sorted_by(|a, b| luminance(*a) < luminance(*b)));
        for c in &steps {
            // Clamped colours would be at an end; blue may be for yellow.
            assert!(c[..2].iter().all(|&x| x > 0.0 && x < 1.0), "{c:?}");
        }
        assert_eq!((heat(-1.0), heat(f64::NAN), heat(7.0)), (heat(0.0), heat(0.0), heat(1.0)));
    }

    #[test]
    fn bones_differ_from_parents_and_siblings() {
        let bone = |i: usize| Bone {
            name: format!("b{i}"),
            head: DVec3::X * i as f64,
            tail: DVec3::Y,
            parent: (i > 0).then(|| (i - 1) / 3),
            deform: true,
        };
        let skeleton = Skeleton::new((0..80).map(bone).collect()).unwrap();
        let colours = bones(&skeleton);
        for i in 1..80usize {
            let parent = (i - 1) / 3;
            let siblings = (1..80).filter(|&j| j != i && (j - 1) / 3 == parent);
            for other in siblings.chain([parent]) {
                let apart: i32 = to_srgb8(colours[i])
                    .iter()
                    .zip(to_srgb8(colours[other]))
                    .map(|(&a, b)| (i32::from(a) - i32::from(b)).abs())
                    .sum();
                assert!(apart > 60, "{i} and {other}: {apart}");
            }
        }
    }

    #[test]
    fn srgb_goes_both_ways() {
        for i in 0..=255u8 {
            assert_eq!(to_srgb8([from_srgb(f64::from(i) / 255.0); 3]), [i; 3]);
        }
    }
}
