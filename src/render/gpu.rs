//! Pictures with the z-buffer of a device: it finds the triangle at each sample, while camera, light, colours and overlays are
//! those of the CPU, in f64. The pictures differ at edges only, where a sample is within rounding of one.

use bytemuck::NoUninit;
use wgpu::util::DeviceExt;
use wgpu::{
    BindGroup, Buffer, BufferUsages, Device, Queue, RenderPass, RenderPipeline, TextureFormat, TextureUsages,
    TextureView,
};

use super::camera::Projected;
use super::surface::{Drawing, GRID};
use super::{BoneMark, Image, Look, Paint, begin};
use crate::error::Result;
use crate::gpu::{Readback, Uniforms, catch, storage, uniforms};
use crate::model::Mesh;

/// The shader.
pub const WGSL: &str = include_str!("../../shaders/raster.wgsl");

/// Rows of pixels that are drawn at once: 16 MiB of samples at the largest width.
const STRIP: usize = 256;
/// Triangles of a buffer: 36 bytes each.
const BATCH: usize = 2_000_000;
/// Copies of pictures have rows of a multiple of 256 bytes.
const ROW_WORDS: usize = 64;

const SAMPLES: TextureFormat = TextureFormat::R32Uint;
const DEPTH: TextureFormat = TextureFormat::Depth32Float;

/// What a strip is told; the same struct is in the shader.
#[repr(C)]
#[derive(Debug, Clone, Copy, NoUninit)]
pub struct RasterParams {
    pub scale: [f32; 2],
    pub top: f32,
    pub padding: f32,
}

/// The compiled pipeline.
#[derive(Debug)]
pub struct Rasterizer {
    device: Device,
    queue: Queue,
    pipeline: RenderPipeline,
}

impl Rasterizer {
    /// Compiles it. The device needs wgpu's default limits and no features.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the device does not take it.
    pub async fn new(device: &Device, queue: &Queue) -> Result<Self> {
        catch(device, "compiling the rasterizer", || Ok(Self::from_wgsl(device, queue, WGSL))).await
    }

    /// The same from a shader's text: for tests, which change it. Faults go to the device's error scope.
    pub fn from_wgsl(device: &Device, queue: &Queue, wgsl: &str) -> Self {
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("raster"),
            source: wgpu::ShaderSource::Wgsl(wgsl.into()),
        });
        let attributes = wgpu::vertex_attr_array![0 => Float32x3];
        let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("raster"),
            layout: None,
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: Some("corner"),
                compilation_options: Default::default(),
                buffers: &[Some(wgpu::VertexBufferLayout {
                    array_stride: 12,
                    step_mode: wgpu::VertexStepMode::Vertex,
                    attributes: &attributes,
                })],
            },
            primitive: Default::default(),
            depth_stencil: Some(wgpu::DepthStencilState {
                format: DEPTH,
                depth_write_enabled: Some(true),
                // The first of equals, as on the CPU.
                depth_compare: Some(wgpu::CompareFunction::Less),
                stencil: Default::default(),
                bias: Default::default(),
            }),
            multisample: Default::default(),
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: Some("nearest"),
                compilation_options: Default::default(),
                targets: &[Some(SAMPLES.into())],
            }),
            multiview_mask: None,
            cache: None,
        });
        Self { device: device.clone(), queue: queue.clone(), pipeline }
    }

    /// Draws as [`super::draw`] does. Submits to the queue, strip by strip.
    ///
    /// # Errors
    /// As there, and [`crate::Error::Device`].
    pub async fn draw(&self, mesh: &Mesh, paint: &Paint, bones: &[BoneMark], look: &Look) -> Result<Image> {
        let (mut canvas, camera) = begin(mesh, paint, look)?;
        let drawing = Drawing::new(mesh, paint, &camera, look.flat, canvas.height);
        let scene = catch(&self.device, "the mesh to draw", || {
            Ok(Scene::new(self, drawing.projected(), mesh.triangles(), canvas.width, canvas.height))
        });
        let scene = scene.await?;
        let width = canvas.width;
        for (strip, rows) in canvas.pixels.chunks_mut(width * STRIP).enumerate() {
            let read = catch(&self.device, "drawing", || Ok(scene.record(self, strip))).await?;
            let padded: Vec<u32> = read.read().await?;
            let lines = rows.len() / width * GRID;
            let seen: Vec<u32> =
                padded.chunks(scene.columns).take(lines).flat_map(|line| &line[..width * GRID]).copied().collect();
            drawing.resolve_rows(strip * STRIP, width, &seen, rows);
        }
        Ok(canvas.finish_with(paint, bones, &camera))
    }
}

/// Triangles and targets of one picture.
struct Scene {
    /// Corners of up to `BATCH` triangles each.
    batches: Vec<(Buffer, u32)>,
    /// Samples along a row, with what fills it up.
    columns: usize,
    samples: wgpu::Texture,
    depth: TextureView,
    bindings: Vec<BindGroup>,
}

impl Scene {
    fn new(raster: &Rasterizer, seen: &[Projected], triangles: &[[u32; 3]], width: usize, height: usize) -> Self {
        let device = &raster.device;
        let range = seen
            .iter()
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], p| [least.min(p.nearness), most.max(p.nearness)]);
        // A little more than the range, so that the farthest point is nearer than the cleared depth of 1.
        let depth = (1.001 * (range[1] - range[0])).max(f64::MIN_POSITIVE);
        let corner = |&v: &u32| {
            let p = &seen[v as usize];
            [p.x as f32, p.y as f32, ((range[1] - p.nearness) / depth) as f32]
        };
        let batch = |triangles: &[[u32; 3]]| {
            let corners: Vec<[f32; 3]> = triangles.as_flattened().iter().map(corner).collect();
            let contents = bytemuck::cast_slice(&corners);
            let describe =
                wgpu::util::BufferInitDescriptor { label: Some("corners"), contents, usage: BufferUsages::VERTEX };
            (device.create_buffer_init(&describe), corners.len() as u32)
        };
        let columns = (width * GRID).next_multiple_of(ROW_WORDS);
        let lines = STRIP.min(height) * GRID;
        let texture = |format, usage| {
            device.create_texture(&wgpu::TextureDescriptor {
                label: Some("samples"),
                size: wgpu::Extent3d { width: columns as u32, height: lines as u32, depth_or_array_layers: 1 },
                mip_level_count: 1,
                sample_count: 1,
                dimension: wgpu::TextureDimension::D2,
                format,
                usage: TextureUsages::RENDER_ATTACHMENT | usage,
                view_formats: &[],
            })
        };
        let scale = [columns, lines].map(|samples| (2 * GRID) as f32 / samples as f32);
        let params: Vec<RasterParams> =
            (0..height).step_by(STRIP).map(|top| RasterParams { scale, top: top as f32, padding: 0.0 }).collect();
        let uniforms: Uniforms = uniforms(device, &params);
        let bind = |k| {
            device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some("raster"),
                layout: &raster.pipeline.get_bind_group_layout(0),
                entries: &[wgpu::BindGroupEntry { binding: 0, resource: uniforms.at(k) }],
            })
        };
        Self {
            batches: triangles.chunks(BATCH).map(batch).collect(),
            columns,
            samples: texture(SAMPLES, TextureUsages::COPY_SRC),
            depth: texture(DEPTH, TextureUsages::empty()).create_view(&Default::default()),
            bindings: (0..params.len()).map(bind).collect(),
        }
    }

    /// Submits a strip and the way back of its triangles' numbers.
    fn record(&self, raster: &Rasterizer, strip: usize) -> Readback {
        let mut encoder = raster.device.create_command_encoder(&Default::default());
        let view = self.samples.create_view(&Default::default());
        let nothing = wgpu::Color { r: f64::from(u32::MAX), g: 0.0, b: 0.0, a: 0.0 };
        let pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("raster"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &view,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations { load: wgpu::LoadOp::Clear(nothing), store: wgpu::StoreOp::Store },
            })],
            depth_stencil_attachment: Some(wgpu::RenderPassDepthStencilAttachment {
                view: &self.depth,
                depth_ops: Some(wgpu::Operations { load: wgpu::LoadOp::Clear(1.0), store: wgpu::StoreOp::Discard }),
                stencil_ops: None,
            }),
            ..Default::default()
        });
        self.draw(pass, raster, strip);
        let (columns, lines) = (self.samples.width(), self.samples.height());
        let bytes = u64::from(columns) * u64::from(lines) * 4;
        let buffer = storage(&raster.device, "samples", bytes);
        encoder.copy_texture_to_buffer(
            self.samples.as_image_copy(),
            wgpu::TexelCopyBufferInfo {
                buffer: &buffer,
                layout: wgpu::TexelCopyBufferLayout {
                    offset: 0,
                    bytes_per_row: Some(4 * columns),
                    rows_per_image: None,
                },
            },
            self.samples.size(),
        );
        let read = Readback::record(&raster.device, &mut encoder, &buffer, 0, bytes);
        raster.queue.submit([encoder.finish()]);
        read
    }

    fn draw(&self, mut pass: RenderPass, raster: &Rasterizer, strip: usize) {
        pass.set_pipeline(&raster.pipeline);
        pass.set_bind_group(0, &self.bindings[strip], &[]);
        for (number, (corners, count)) in self.batches.iter().enumerate() {
            let first = (number * BATCH) as u32;
            pass.set_vertex_buffer(0, corners.slice(..));
            pass.draw(0..*count, first..first + 1);
        }
    }
}
