//! `skinbind bench --skin`: how fast vertices are moved on the CPU and on a GPU, beside a copy of memory as the limit.

use std::time::Instant;

use serde::Serialize;
use skinbind::Result;
use skinbind::glam::{DAffine3, DQuat, DVec3};
use skinbind::gpu::{Context as Gpu, Kernel, Module, Readback, block_on, finished, storage, storage_with};
use skinbind::influence::gpu::JointFormat;
use skinbind::model::{Influence, Palette, Weights};
use skinbind::skin::gpu::{
    Blend, Palettes, Place, SkinFormat, SkinJob, SkinKernels, Source, Stream, Target, WeightFormat, influence_words,
};
use skinbind::skin::{Method, Posed, SkinInput, Surface};
use skinbind::wgpu;

use super::super::screen;

const JOINTS: u32 = 163;
/// Vertices on hardware: enough that no cache holds them. A software adapter would take seconds for them.
const VERTICES: u32 = 1_000_000;
const VERTICES_SOFTWARE: u32 = 100_000;
/// Bytes of the copy that everything is compared with.
const COPIED: u64 = 96 << 20;
const COPIED_SOFTWARE: u64 = 16 << 20;

/// Four words an invocation, read and written.
const COPY: &str = "
override WORKGROUP: u32;
@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> copy: array<vec4<u32>>;

@compute @workgroup_size(WORKGROUP)
fn copy_all(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = (workgroup.y * workgroups.x + workgroup.x) * WORKGROUP + local;
    if index < arrayLength(&copy) {
        copy[index] = source[index];
    }
}
";

#[derive(Serialize)]
struct Row {
    what: String,
    device: &'static str,
    poses: u32,
    /// Counted, not measured: what a vertex reads and writes for a pose.
    bytes_per_vertex: f64,
    million_vertices_per_second: f64,
    gigabytes_per_second: f64,
    /// Of the speed of the copy on the same device.
    share_of_copy: f64,
}

#[derive(Serialize)]
struct Table<'a> {
    vertices: u32,
    joints: u32,
    runs: u32,
    threads: usize,
    device: &'a str,
    software: bool,
    /// Whether the GPU's own clock was read; otherwise times include the way to the device and back.
    timestamps: bool,
    rows: Vec<Row>,
}

/// Vertices whose joints follow each other along a body, four influences each.
struct Case {
    positions: Vec<DVec3>,
    normals: Vec<DVec3>,
    weights: Weights,
    palette: Palette,
}

/// Measures and prints.
pub fn run(gpu: &Gpu, runs: u32, json: bool) -> Result<()> {
    let software = gpu.is_software();
    let vertices = if software { VERTICES_SOFTWARE } else { VERTICES };
    let case = Case::new(vertices);
    let mut rows = on_cpu(&case, runs)?;
    let clock = Clock::new(gpu, runs);
    rows.extend(on_gpu(gpu, &case, &clock)?);
    gpu.check()?;
    let table = Table {
        vertices,
        joints: JOINTS,
        runs,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        device: &gpu.info().name,
        software,
        timestamps: clock.stamps.is_some(),
        rows,
    };
    if json { screen::print_json(&table) } else { screen::print(&text(&table)) }
}

impl Case {
    fn new(vertices: u32) -> Self {
        let joint = |v: u32, i: u32| (v as u64 * u64::from(JOINTS) / u64::from(vertices)) as u32 + i * (v % 3);
        let mut weights = Weights::with_capacity(vertices as usize, 4 * vertices as usize);
        for v in 0..vertices {
            weights.push((0..4).map(|i| Influence { joint: joint(v, i) % JOINTS, weight: 1.0 / f64::from(i + 2) }));
        }
        let point = |v: u32| DVec3::new((f64::from(v) * 0.7).sin(), (f64::from(v) * 0.3).cos(), f64::from(v) * 1e-6);
        let positions: Vec<DVec3> = (0..vertices).map(point).collect();
        let matrix = |j: u32| {
            let t = f64::from(j);
            let turn = DQuat::from_axis_angle(DVec3::new(t.sin(), t.cos(), 1.0).normalize(), t * 0.1);
            DAffine3::from_rotation_translation(turn, DVec3::new(t, 1.0, -t) * 0.01)
        };
        let normals = positions.iter().map(|p| p.normalize()).collect();
        Self { positions, normals, weights, palette: Palette::new((0..JOINTS).map(matrix).collect()) }
    }
}

/// On all cores, in f64: 64 bytes of position, joints and weights are read and 24 written; normals add 24 and 24.
fn on_cpu(case: &Case, runs: u32) -> Result<Vec<Row>> {
    let input = SkinInput::new(&case.weights, JOINTS as usize)?;
    let vertices = case.positions.len();
    let from = vec![1u64; vertices * 88 / 16];
    let mut to = from.clone();
    let copy = best(runs, || {
        std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from));
        Ok(())
    })?;
    let rate = (vertices * 88) as f64 / copy;
    let mut rows = vec![row("copy on one core", "cpu", 1, 88.0, vertices as f64, copy, rate)];
    for (name, method, with_normals) in [
        ("linear, positions", Method::Linear, false),
        ("linear, positions and normals", Method::Linear, true),
        ("dual quaternion, positions", Method::DualQuaternion, false),
        ("dual quaternion, positions and normals", Method::DualQuaternion, true),
    ] {
        let normals = with_normals.then_some(&case.normals[..]);
        let surface = Surface { positions: &case.positions, normals, tangents: None };
        let mut posed = Posed::like(surface);
        let seconds = best(runs, || input.skin(&case.palette, method, surface, &mut posed))?;
        let bytes = if with_normals { 136.0 } else { 88.0 };
        rows.push(row(name, "cpu", 1, bytes, vertices as f64, seconds, rate));
    }
    Ok(rows)
}

fn on_gpu(gpu: &Gpu, case: &Case, clock: &Clock) -> Result<Vec<Row>> {
    let copied = if gpu.is_software() { COPIED_SOFTWARE } else { COPIED };
    let [from, to] = ["source", "copy"].map(|label| storage(&gpu.device, label, copied));
    let kernel = Module::new(&gpu.device, "copy", &[COPY]).kernel(&gpu.device, "copy_all", 64, &[]);
    let bind = kernel.bind(&gpu.device, &[(0, from.as_entire_binding()), (1, to.as_entire_binding())]);
    let copy = clock.best(gpu, &|pass| Kernel::dispatch(&kernel, pass, &bind, copied / 16))?;
    let rate = 2.0 * copied as f64 / copy;
    let vertices = case.positions.len() as f64;
    let mut rows = vec![row("copy", "gpu", 1, 2.0 * copied as f64 / vertices, vertices, copy, rate)];
    for (name, blend, joints, weights) in [
        ("linear, u32 + f32", Blend::Linear, JointFormat::U32, WeightFormat::F32),
        ("linear, u16 + unorm8", Blend::Linear, JointFormat::U16, WeightFormat::Unorm8),
        ("dual quaternion, u16 + unorm8", Blend::DualQuaternion, JointFormat::U16, WeightFormat::Unorm8),
    ] {
        let format = SkinFormat { blend, joints, weights, ..SkinFormat::default() };
        let kernels = block_on(&gpu.device, SkinKernels::new(&gpu.device, format))?;
        // Four poses are what buffers of 128 MiB hold.
        for poses in [1, 4] {
            let job = bind_job(gpu, case, &kernels, poses)?;
            let seconds = clock.best(gpu, &|pass| job.record_in(&kernels, pass))?;
            let [read, written] = format.vertex_bytes().map(|bytes| bytes as f64);
            let bytes = written + read / f64::from(poses);
            rows.push(row(name, "gpu", poses, bytes, vertices * f64::from(poses), seconds, rate));
        }
    }
    Ok(rows)
}

fn bind_job(gpu: &Gpu, case: &Case, kernels: &SkinKernels, poses: u32) -> Result<SkinJob> {
    let (device, format) = (&gpu.device, kernels.format());
    let words = influence_words(&case.weights, format.joints, format.weights)?;
    let floats = |points: &[DVec3]| points.iter().map(|p| p.as_vec3().to_array()).collect::<Vec<_>>();
    let [positions, normals] = [&case.positions, &case.normals].map(|p| storage_with(device, "points", &floats(p)));
    let [joints, weights] = [&words.joints, &words.weights].map(|words| storage_with(device, "influences", words));
    let vertices = case.positions.len() as u32;
    let mut palettes = Palettes::new(device, format.blend, JOINTS, poses)?;
    for pose in 0..poses {
        palettes.write(&gpu.queue, pose, &case.palette)?;
    }
    let posed = storage(device, "posed", u64::from(vertices) * u64::from(poses) * 24);
    let source = Source {
        vertices,
        positions: Stream::tight(&positions, 3),
        normals: Some(Stream::tight(&normals, 3)),
        tangents: None,
        joints: Stream::tight(&joints, format.joint_words()),
        weights: Stream::tight(&weights, format.weight_words()),
        shares: None,
    };
    let place = |offset| Place { offset, stride: 6 };
    let pose_words = u64::from(vertices) * 6;
    let target = Target { buffer: &posed, pose_words, positions: place(0), normals: Some(place(3)), tangents: None };
    kernels.bind(device, source, &palettes, target)
}

/// What is recorded into a pass and timed.
type Work<'a> = &'a dyn Fn(&mut wgpu::ComputePass) -> Result<()>;

/// The device's clock where it has one.
struct Clock {
    runs: u32,
    stamps: Option<(wgpu::QuerySet, wgpu::Buffer)>,
}

impl Clock {
    fn new(gpu: &Gpu, runs: u32) -> Self {
        let has = gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        let stamps = has.then(|| {
            let ty = wgpu::QueryType::Timestamp;
            let set = gpu.device.create_query_set(&wgpu::QuerySetDescriptor { label: None, ty, count: 2 });
            let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("timestamps"),
                size: 16,
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            });
            (set, buffer)
        });
        Self { runs, stamps }
    }

    /// The shortest time of the runs, after one that does not count, in seconds.
    fn best(&self, gpu: &Gpu, work: Work) -> Result<f64> {
        self.once(gpu, work)?;
        (0..self.runs).try_fold(f64::INFINITY, |best, _| Ok(best.min(self.once(gpu, work)?)))
    }

    fn once(&self, gpu: &Gpu, work: Work) -> Result<f64> {
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        let writes = self.stamps.as_ref().map(|(set, _)| wgpu::ComputePassTimestampWrites {
            query_set: set,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        });
        let describe = wgpu::ComputePassDescriptor { label: None, timestamp_writes: writes };
        let mut pass = encoder.begin_compute_pass(&describe);
        work(&mut pass)?;
        drop(pass);
        let stamps = self.stamps.as_ref().map(|(set, buffer)| {
            encoder.resolve_query_set(set, 0..2, buffer, 0);
            Readback::record(&gpu.device, &mut encoder, buffer, 0, 16)
        });
        let start = Instant::now();
        gpu.queue.submit([encoder.finish()]);
        block_on(&gpu.device, async {
            finished(&gpu.queue).await;
            Ok(())
        })?;
        let wall = start.elapsed().as_secs_f64();
        let Some(stamps) = stamps else { return Ok(wall) };
        let ticks: Vec<u64> = stamps.read_blocking()?;
        let ticks = ticks[1].saturating_sub(ticks[0]);
        Ok(ticks as f64 * f64::from(gpu.queue.get_timestamp_period()) * 1e-9)
    }
}

fn best(runs: u32, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    (0..runs).try_fold(f64::INFINITY, |best, _| {
        let start = Instant::now();
        work()?;
        Ok(best.min(start.elapsed().as_secs_f64()))
    })
}

fn row(what: &str, device: &'static str, poses: u32, bytes: f64, moved: f64, seconds: f64, copy_rate: f64) -> Row {
    let rate = moved * bytes / seconds;
    Row {
        what: what.into(),
        device,
        poses,
        bytes_per_vertex: bytes,
        million_vertices_per_second: moved / seconds * 1e-6,
        gigabytes_per_second: rate * 1e-9,
        share_of_copy: rate / copy_rate,
    }
}

fn text(table: &Table) -> String {
    let cells: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| {
            vec![
                row.device.into(),
                row.what.clone(),
                row.poses.to_string(),
                format!("{:.0}", row.bytes_per_vertex),
                format!("{:.0}", row.million_vertices_per_second),
                format!("{:.1}", row.gigabytes_per_second),
                format!("{:.0} %", 100.0 * row.share_of_copy),
            ]
        })
        .collect();
    let header = ["", "what", "poses", "bytes a vertex", "million a second", "GB/s", "of the copy"];
    let mut text = format!(
        "{} vertices, {} joints, 4 influences; best of {} runs\ncpu: {} threads, f64; gpu: {}\n\n{}",
        table.vertices,
        table.joints,
        table.runs,
        table.threads,
        table.device,
        screen::columns(&header, &cells)
    );
    if !table.timestamps {
        text += "\nThe device has no clock of its own: its times include the way there and back.\n";
    }
    if table.software {
        text += "\nThe adapter is a software one: its figures say nothing about a GPU.\n";
    }
    text
}
