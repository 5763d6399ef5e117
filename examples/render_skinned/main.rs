//! Skinning inside a renderer: an application with a device, pipelines and a camera of its own draws 100 animated
//! characters straight from the buffer that the skinning wrote, without a window.
//!
//! `cargo run --release --example render_skinned -- crowd.png` writes a picture and checks it: that it is not empty, that it
//! moves, and that it is the picture of the same crowd skinned in f64 on the CPU.

mod renderer;

/// The body, bones and motions of `skinbind demo`.
#[path = "../../src/cli/demo"]
mod demo {
    pub mod body;
    pub mod motion;
    pub mod rig;
    mod surface_nets;
}

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use skinbind::bind::{Params, bind};
use skinbind::glam::{DVec3, Vec3};
use skinbind::gpu::{block_on, catch_blocking, storage_with};
use skinbind::influence::Falloff;
use skinbind::influence::gpu::JointFormat;
use skinbind::io::gltf::RotationTrack;
use skinbind::model::{Animation, Interpolation, JointTracks, Mesh, Palette, Pose, Skeleton, Track, Weights};
use skinbind::progress::Progress;
use skinbind::skin::gpu::{
    Blend, Palettes, Place, SkinFormat, SkinJob, SkinKernels, Source, Stream, Target, WeightFormat, influence_words,
};
use skinbind::skin::{Method, Posed, SkinInput, Surface};
use skinbind::{Error, Result, wgpu};
use wgpu::util::DeviceExt;
use wgpu::{Buffer, BufferUsages, Device, Queue};

use renderer::{Crowd, HEIGHT, Instance, Renderer, VERTEX_BYTES, WIDTH};

const ROWS: usize = 10;
const INSTANCES: usize = ROWS * ROWS;
/// Metres between neighbours.
const SPACING: f64 = 1.42;

/// Levels of 255 by which rounding may shift a pixel's colour, and how many pixels may differ by more: where the edge of a
/// triangle passes a sample within rounding.
const LEVELS: u8 = 12;
const FEW: usize = 60;

type Picture = Vec<[u8; 4]>;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: render_skinned PICTURE.png");
        return ExitCode::from(2);
    };
    match run(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &Path) -> Result<()> {
    let (device, queue) = own_device()?;
    let character = Character::new()?;
    let shown = catch_blocking(&device, "drawing", || {
        let mut stage = Stage::new(&device, &queue, &character)?;
        let (first, later) = (stage.frame(&character, 0.9, true)?, stage.frame(&character, 1.0, true)?);
        Ok([first, later, stage.frame(&character, 0.9, false)?, stage.empty()?])
    })?;
    let [first, later, on_cpu, empty] = &shown;
    write_png(path, first)?;
    println!("{} is written", path.display());
    let pixels = (WIDTH * HEIGHT) as usize;
    let percent = |pixels_off: usize| 100.0 * pixels_off as f64 / pixels as f64;
    let (covered, moved, apart) = (differing(first, empty), differing(first, later), differing(first, on_cpu));
    println!("{:.1} % of the pixels show characters or their shadows", percent(covered));
    println!("{:.1} % of the pixels change within a tenth of a second", percent(moved));
    println!("{apart} pixels of {pixels} differ from the crowd skinned in f64 on the CPU");
    for (fine, what) in [
        (covered > pixels / 10, "the picture is empty"),
        (moved > pixels / 100, "the picture does not move"),
        (apart <= FEW, "the picture is not that of the crowd skinned on the CPU"),
    ] {
        if !fine {
            return Err(Error::Check(what.into()));
        }
    }
    Ok(())
}

/// The application's device: wgpu's default limits, no features.
fn own_device() -> Result<(Device, Queue)> {
    let failed = |what: String| Error::Device { name: "own".into(), what };
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
    let options =
        wgpu::RequestAdapterOptions { power_preference: wgpu::PowerPreference::HighPerformance, ..Default::default() };
    let adapter = pollster::block_on(instance.request_adapter(&options)).map_err(|e| failed(e.to_string()))?;
    println!("on {}", adapter.get_info().name);
    pollster::block_on(adapter.request_device(&Default::default())).map_err(|e| failed(e.to_string()))
}

/// A body, bound, with its animations.
struct Character {
    mesh: Mesh,
    normals: Vec<DVec3>,
    skeleton: Skeleton,
    weights: Weights,
    animations: Vec<Animation>,
}

impl Character {
    fn new() -> Result<Self> {
        let (mesh, skeleton) = (demo::body::mesh()?, demo::rig::skeleton()?);
        let falloff = Falloff { power: 4.0, ..Falloff::default() };
        let params = Params { resolution: Some(192), falloff, ..Params::default() };
        let weights = bind(&mesh, &skeleton, &params, Progress::NONE)?.weights;
        let motions = demo::motion::all(&skeleton);
        let animations = motions.iter().map(|m| animation(m.name, &m.tracks, &skeleton)).collect::<Result<_>>()?;
        Ok(Self { normals: mesh.smooth_normals(), mesh, skeleton, weights, animations })
    }

    /// The palette of every instance: neighbours wave and walk by turns, and what they do runs through the crowd.
    fn palettes(&self, time: f64) -> Result<Vec<Palette>> {
        let rest = Pose::rest(&self.skeleton);
        let inverse_bind = rest.inverse_bind(&self.skeleton)?;
        let palette = |k: usize| {
            let (row, column) = (k / ROWS, k % ROWS);
            let animation = &self.animations[(row + column) % 2];
            let moment = time + 0.21 * column as f64 + 0.34 * row as f64;
            animation.sample(moment % animation.end(), &rest)?.palette(&self.skeleton, &inverse_bind)
        };
        (0..INSTANCES).map(palette).collect()
    }

    fn vertices(&self) -> u32 {
        self.mesh.positions().len() as u32
    }
}

fn animation(name: &str, tracks: &[RotationTrack], skeleton: &Skeleton) -> Result<Animation> {
    let mut joints = vec![JointTracks::default(); skeleton.len()];
    for track in tracks {
        let rotation = Track::new(track.times.clone(), track.rotations.clone(), Interpolation::Linear)?;
        joints[track.joint].rotation = Some(rotation);
    }
    Ok(Animation { name: name.into(), joints })
}

/// What the application makes once.
struct Stage<'a> {
    device: &'a Device,
    queue: &'a Queue,
    renderer: Renderer,
    kernels: SkinKernels,
    palettes: Palettes,
    job: SkinJob,
    posed: Buffer,
    indices: Buffer,
    instances: Buffer,
    index_count: u32,
    vertices: u32,
}

impl<'a> Stage<'a> {
    fn new(device: &'a Device, queue: &'a Queue, character: &Character) -> Result<Self> {
        let format = SkinFormat {
            blend: Blend::DualQuaternion,
            joints: JointFormat::U16,
            weights: WeightFormat::Unorm16,
            ..SkinFormat::default()
        };
        let kernels = block_on(device, SkinKernels::new(device, format))?;
        let words = influence_words(&character.weights, format.joints, format.weights)?;
        // Position and normal of a vertex beside each other, as they were read from a file.
        let rest = storage_with(device, "rest", &interleaved(character.mesh.positions(), &character.normals));
        let joints = storage_with(device, "joints", &words.joints);
        let weights = storage_with(device, "weights", &words.weights);
        let place = |offset| Place { offset, stride: VERTEX_BYTES as u32 / 4 };
        let vertices = character.vertices();
        let source = Source {
            vertices,
            positions: Stream { buffer: &rest, place: place(0) },
            normals: Some(Stream { buffer: &rest, place: place(3) }),
            tangents: None,
            joints: Stream::tight(&joints, format.joint_words()),
            weights: Stream::tight(&weights, format.weight_words()),
            shares: None,
        };
        let posed = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("posed"),
            size: u64::from(vertices) * INSTANCES as u64 * VERTEX_BYTES,
            usage: BufferUsages::STORAGE | BufferUsages::VERTEX,
            mapped_at_creation: false,
        });
        let palettes = Palettes::new(device, format.blend, character.skeleton.len() as u32, INSTANCES as u32)?;
        let target = Target {
            buffer: &posed,
            pose_words: u64::from(vertices) * VERTEX_BYTES / 4,
            positions: place(0),
            normals: Some(place(3)),
            tangents: None,
        };
        let job = kernels.bind(device, source, &palettes, target)?;
        let triangles = character.mesh.triangles();
        let indices = with_usage(device, triangles, BufferUsages::INDEX);
        let instances = with_usage(device, &crowd(), BufferUsages::VERTEX);
        let (renderer, index_count) = (Renderer::new(device), 3 * triangles.len() as u32);
        Ok(Self { device, queue, renderer, kernels, palettes, job, posed, indices, instances, index_count, vertices })
    }

    /// A picture of the crowd at a time. On the GPU a frame is the palettes and one recorded dispatch.
    fn frame(&mut self, character: &Character, time: f64, on_gpu: bool) -> Result<Picture> {
        let palettes = character.palettes(time)?;
        let mut encoder = self.device.create_command_encoder(&Default::default());
        if !on_gpu {
            let posed = with_usage(self.device, &skinned_on_cpu(character, &palettes)?, BufferUsages::VERTEX);
            return self.show(encoder, &posed, INSTANCES);
        }
        for (pose, palette) in (0..).zip(&palettes) {
            self.palettes.write(self.queue, pose, palette)?;
        }
        self.job.record(&self.kernels, &mut encoder)?;
        self.show(encoder, &self.posed, INSTANCES)
    }

    /// The floor alone.
    fn empty(&self) -> Result<Picture> {
        self.show(self.device.create_command_encoder(&Default::default()), &self.posed, 0)
    }

    fn show(&self, mut encoder: wgpu::CommandEncoder, posed: &Buffer, instances: usize) -> Result<Picture> {
        let crowd = Crowd {
            indices: &self.indices,
            index_count: self.index_count,
            instances: &self.instances,
            instance_count: instances as u32,
            vertices: self.vertices,
        };
        let picture = self.renderer.record(self.device, &mut encoder, &crowd, posed);
        self.queue.submit([encoder.finish()]);
        picture.read_blocking()
    }
}

/// Position and normal of every vertex, as f32.
fn interleaved(positions: &[DVec3], normals: &[DVec3]) -> Vec<[f32; 6]> {
    let both = |(p, n): (&DVec3, &DVec3)| {
        let ([a, b, c], [d, e, f]) = (p.as_vec3().to_array(), n.as_vec3().to_array());
        [a, b, c, d, e, f]
    };
    positions.iter().zip(normals).map(both).collect()
}

fn skinned_on_cpu(character: &Character, palettes: &[Palette]) -> Result<Vec<[f32; 6]>> {
    let input = SkinInput::new(&character.weights, character.skeleton.len())?;
    let surface = Surface { positions: character.mesh.positions(), normals: Some(&character.normals), tangents: None };
    let (mut posed, mut all) = (Posed::like(surface), Vec::new());
    for palette in palettes {
        input.skin(palette, Method::DualQuaternion, surface, &mut posed)?;
        all.extend(interleaved(&posed.positions, posed.normals.as_deref().unwrap_or_default()));
    }
    Ok(all)
}

fn with_usage<T: bytemuck::NoUninit>(device: &Device, values: &[T], usage: BufferUsages) -> Buffer {
    let contents = bytemuck::cast_slice(values);
    device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label: None, contents, usage })
}

/// A square of characters, every other row moved aside, all looking about ahead, in colours that run through the crowd.
fn crowd() -> Vec<Instance> {
    let instance = |k: usize| {
        let (row, column) = ((k / ROWS) as f64, (k % ROWS) as f64);
        let middle = (ROWS - 1) as f64 / 2.0;
        let aside = if (k / ROWS).is_multiple_of(2) { 0.25 } else { -0.25 };
        let (x, z) = ((column - middle + aside) * SPACING, (middle - row) * SPACING);
        let angle = 0.28 + 0.22 * (1.7 * row + 2.3 * column).sin();
        let hue = 0.06 * column + 0.045 * row;
        let wave = |shift: f64| (0.5 + 0.5 * (std::f64::consts::TAU * (hue + shift)).cos()) as f32;
        let colour = Vec3::new(wave(0.0), wave(0.36), wave(0.68)).lerp(Vec3::new(0.72, 0.62, 0.52), 0.38) * 0.72;
        Instance { place: [x as f32, z as f32, angle.cos() as f32, angle.sin() as f32], colour: colour.to_array() }
    };
    (0..INSTANCES).map(instance).collect()
}

/// How many pixels differ by more than rounding.
fn differing(a: &Picture, b: &Picture) -> usize {
    let apart = |(a, b): (&[u8; 4], &[u8; 4])| a.iter().zip(b).any(|(a, b)| a.abs_diff(*b) > LEVELS);
    a.iter().zip(b).filter(|(a, b)| apart((a, b))).count()
}

fn write_png(path: &Path, picture: &Picture) -> Result<()> {
    let failed = |error: std::io::Error| Error::Write { path: path.to_path_buf(), source: error };
    let mut encoder = png::Encoder::new(std::fs::File::create(path).map_err(failed)?, WIDTH, HEIGHT);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    let mut writer = encoder.write_header().map_err(|e| failed(e.into()))?;
    writer.write_image_data(picture.as_flattened()).map_err(|e| failed(e.into()))?;
    writer.finish().map_err(|e| failed(e.into()))
}
