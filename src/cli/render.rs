//! `skinbind render`: a picture of a mesh, of one bone's weights, or of all bones.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use skinbind::glam::DAffine3;
use skinbind::io::gltf::Rigged;
use skinbind::io::output::{self, Outputs};
use skinbind::model::{Mesh, Skeleton, Weights};
use skinbind::render::colour::{self, Rgb};
use skinbind::render::{self, BoneMark, Image, Look, Paint, View};
use skinbind::{Error, Result};

use super::device::Device;
use super::input::{self, Kind};
use super::motion::{Actor, MethodArg, Motion};
use super::screen;

const EXAMPLES: &str = "\
Examples:
  skinbind render rigged.glb -o picture.png
  skinbind render rigged.glb --bone upper_arm.L --view front -o heat.png
  skinbind render rigged.glb --bones --skeleton --animation walk --time 0.4 --size 800x1200 -o bones.png";

/// For vertices that no bone moves.
const BARE: Rgb = [0.25, 0.25, 0.25];
/// Bones over a surface that has no colours of its own.
const BONE: Rgb = [0.80, 0.72, 0.42];

/// Draw a mesh, one bone's weights or all bones, as a PNG file.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The mesh: .glb, .gltf or .obj. Weights and animations are in the first two only.
    input: PathBuf,
    /// The weights of this bone, dark for 0 and bright for 1, with a scale beside it.
    #[arg(long, value_name = "NAME", conflicts_with = "bones")]
    bone: Option<String>,
    /// Every bone in a colour of its own, mixed by the weights.
    #[arg(long)]
    bones: bool,
    /// Draw the bones over the mesh.
    #[arg(long)]
    skeleton: bool,
    /// Show this animation's pose.
    #[arg(long, value_name = "NAME", conflicts_with = "bvh")]
    animation: Option<String>,
    /// Show a BVH file's pose.
    #[arg(long, value_name = "FILE")]
    bvh: Option<PathBuf>,
    /// The time of the pose, in seconds, of the animation named or else of the file's first.
    #[arg(long, value_name = "T")]
    time: Option<f64>,
    /// How the joints' motions are blended.
    #[arg(long, value_enum, default_value_t)]
    method: MethodArg,
    /// Width and height in pixels, 16 to 4096.
    #[arg(long, value_name = "WxH", default_value = "900x900", value_parser = size)]
    size: (u32, u32),
    /// Where to look from; the mesh faces +Z, with +Y up.
    #[arg(long, value_enum, default_value_t)]
    view: ViewArg,
    /// Without perspective.
    #[arg(long)]
    orthographic: bool,
    /// Colours without light, to be measured.
    #[arg(long)]
    flat: bool,
    /// Where to find what is seen: auto (a hardware GPU, or the CPU where there is none), cpu, gpu, or a part of an
    /// adapter's name. Pictures differ at edges only.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    device: String,
    /// Where to write: .png.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite an output that is there already.
    #[arg(long)]
    force: bool,
    /// Print no messages.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum ViewArg {
    Front,
    /// From +X, the character's left.
    Side,
    Back,
    #[default]
    ThreeQuarter,
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let sides = text.split_once(['x', 'X']).and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    match sides {
        Some((w, h)) if render::SIDES.contains(&w) && render::SIDES.contains(&h) => Ok((w, h)),
        Some(_) => Err("both must be from 16 to 4096".into()),
        None => Err("it must be two whole numbers, as in 900x900".into()),
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if !args.output.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
        let (value, allowed) = (args.output.display().to_string(), "its name must end in .png");
        return Err(Error::Parameter { name: "output", value, allowed });
    }
    if let Some(time) = args.time.filter(|t| !t.is_finite()) {
        return Err(Error::Parameter {
            name: "time",
            value: time.to_string(),
            allowed: "it must be a number of seconds",
        });
    }
    output::check(&[&args.output], args.force)?;
    let (mesh, paint, marks) = subject(args)?;
    let view = match args.view {
        ViewArg::Front => View::Front,
        ViewArg::Side => View::Side,
        ViewArg::Back => View::Back,
        ViewArg::ThreeQuarter => View::ThreeQuarter,
    };
    let (width, height) = args.size;
    let look = Look { width, height, view, orthographic: args.orthographic, flat: args.flat };
    let (image, drawn_on) = draw(args, &mesh, &paint, &marks, &look)?;
    let mut outputs = Outputs::new(args.force);
    write_png(&image, &args.output, &mut outputs)?;
    outputs.commit()?;
    if !args.quiet {
        let drawn_on = drawn_on.map_or(String::new(), |name| format!(" (drawn on {name})"));
        screen::say(&format!("wrote {}{drawn_on}", args.output.display()));
    }
    Ok(())
}

/// The picture, and the adapter that found what is seen if it was not the CPU.
fn draw(args: &Args, mesh: &Mesh, paint: &Paint, marks: &[BoneMark], look: &Look) -> Result<(Image, Option<String>)> {
    // That there is no GPU is nothing to tell when nobody asked for one.
    let quiet = args.quiet || args.device == "auto";
    match Device::open(&args.device, true, quiet)? {
        Device::Cpu => Ok((render::draw(mesh, paint, marks, look).map_err(|e| e.in_file(&args.input))?, None)),
        #[cfg(feature = "gpu")]
        Device::Gpu { context, .. } => {
            let drawn = skinbind::gpu::block_on(&context.device, async {
                let raster = render::gpu::Rasterizer::new(&context.device, &context.queue).await?;
                raster.draw(mesh, paint, marks, look).await
            });
            let image = drawn.map_err(|e| e.in_file(&args.input))?;
            context.check()?;
            Ok((image, Some(context.info().name.clone())))
        }
    }
}

/// What is to be drawn.
fn subject(args: &Args) -> Result<(Mesh, Paint, Vec<BoneMark>)> {
    if input::kind(&args.input) == Some(Kind::Obj) {
        let asked = args.bones || args.skeleton || args.bone.is_some() || args.animation.is_some();
        if asked || args.bvh.is_some() || args.time.is_some() {
            let what = "an .obj file holds none, so neither weights nor poses; give a rigged .glb or .gltf";
            return Err(Error::format("skin", what).in_file(&args.input));
        }
        return Ok((input::mesh(&args.input, false)?.mesh, Paint::Plain(colour::CLAY), Vec::new()));
    }
    let actor = Actor::read(&args.input, args.quiet)?;
    let first = match (args.time, &args.animation, &args.bvh) {
        (Some(_), None, None) => Some(first_animation(&actor, &args.input)?),
        _ => None,
    };
    let name = args.animation.as_deref().or(first.as_deref());
    let motion = Motion::open(&actor.document, &actor.rigged, &args.input, name, args.bvh.as_deref(), args.quiet)?;
    let worlds = motion.worlds(&actor.rigged, args.time.unwrap_or(0.0))?;
    let in_file = |e: Error| e.in_file(&args.input);
    let posed = actor.pose(&worlds, args.method.method()).map_err(in_file)?;
    let mesh = actor.rigged.posed_mesh(&posed).map_err(in_file)?;
    let skeleton = match actor.rigged.skeleton() {
        Some(skeleton) => skeleton,
        None if args.bones || args.skeleton || args.bone.is_some() => {
            return Err(Error::format("skin", "the file holds none, so it has no bones").in_file(&args.input));
        }
        None => return Ok((mesh, Paint::Plain(colour::CLAY), Vec::new())),
    };
    let paint = match &args.bone {
        Some(name) => heat_map(skeleton, &actor.rigged.bone_weights(), name).map_err(in_file)?,
        None if args.bones => bone_colours(skeleton, &actor.rigged.bone_weights()),
        None => Paint::Plain(colour::CLAY),
    };
    let marks = if args.skeleton { bone_marks(&actor.rigged, skeleton, &worlds, args.bones) } else { Vec::new() };
    Ok((mesh, paint, marks))
}

fn first_animation(actor: &Actor, path: &Path) -> Result<String> {
    let names = actor.document.animation_names().map_err(|e| e.in_file(path))?;
    let none = || Error::format("animations", "the file has none, so --time shows nothing").in_file(path);
    names.into_iter().next().ok_or_else(none)
}

/// One bone's share of each vertex' weights.
///
/// # Errors
/// [`Error::UnknownBone`].
pub fn heat_map(skeleton: &Skeleton, weights: &Weights, bone: &str) -> Result<Paint> {
    let joint = skeleton.find(bone).ok_or_else(|| Error::UnknownBone(bone.to_owned()))? as u32;
    let share = |v: usize| {
        let total: f64 = weights.of(v).iter().map(|i| i.weight).sum();
        if total > 0.0 { weights.weight(v, joint) / total } else { 0.0 }
    };
    Ok(Paint::Heat((0..weights.len()).map(share).collect()))
}

/// The bones' colours, mixed by the weights of each vertex.
pub fn bone_colours(skeleton: &Skeleton, weights: &Weights) -> Paint {
    let colours = colour::bones(skeleton);
    let mix = |row: &[skinbind::model::Influence]| {
        let total: f64 = row.iter().map(|i| i.weight).sum();
        if total <= 0.0 {
            return BARE;
        }
        [0, 1, 2].map(|c| row.iter().map(|i| i.weight / total * colours[i.joint as usize][c]).sum())
    };
    Paint::Vertices(weights.iter().map(mix).collect())
}

/// The bones in a pose, each in its own colour or all in one.
pub fn bone_marks(rigged: &Rigged, skeleton: &Skeleton, worlds: &[DAffine3], coloured: bool) -> Vec<BoneMark> {
    let colours = if coloured { colour::bones(skeleton) } else { vec![BONE; skeleton.len()] };
    let marks = rigged.bones_at(worlds).into_iter().zip(colours);
    marks.map(|([head, tail], colour)| BoneMark { head, tail, colour }).collect()
}

/// Writes a picture as a PNG file.
///
/// # Errors
/// Those of [`Outputs::write`].
pub fn write_png(image: &Image, path: &Path, outputs: &mut Outputs) -> Result<()> {
    outputs.write(path, |out| {
        let mut encoder = png::Encoder::new(out, image.width, image.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        // Files are a third larger than they could be; a picture should be there at once.
        encoder.set_compression(png::Compression::Fast);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(image.pixels.as_flattened())?;
        Ok(writer.finish()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_two_numbers_in_range() {
        assert_eq!(size("640x480"), Ok((640, 480)));
        for bad in ["", "640", "640x", "15x900", "900x4097", "-1x5", "1e3x20"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
