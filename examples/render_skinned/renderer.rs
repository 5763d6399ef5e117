//! The renderer of an application: a shadow pass, a picture with four samples a pixel and a depth buffer, read back.

use skinbind::glam::camera::rh::{proj::directx, view::look_at_mat4};
use skinbind::glam::{Mat4, Vec3};
use skinbind::gpu::{Readback, uniforms};
use skinbind::wgpu;
use wgpu::{
    BindGroup, Buffer, CommandEncoder, CompareFunction, Device, RenderPass, RenderPipeline, TextureFormat,
    TextureUsages, TextureView, VertexFormat,
};

pub const WIDTH: u32 = 1600;
pub const HEIGHT: u32 = 900;
const SHADOW_SIDE: u32 = 4096;
const SAMPLES: u32 = 4;
const COLOUR: TextureFormat = TextureFormat::Rgba8UnormSrgb;
const DEPTH: TextureFormat = TextureFormat::Depth32Float;
const HAZE: [f32; 3] = [0.57, 0.60, 0.64];

/// Bytes of a posed vertex: position and normal.
pub const VERTEX_BYTES: u64 = 24;

/// Where an instance stands, how it is turned, and its colour.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Instance {
    pub place: [f32; 4],
    pub colour: [f32; 3],
}

/// What does not change from frame to frame, and what is drawn.
pub struct Crowd<'a> {
    pub indices: &'a Buffer,
    pub index_count: u32,
    pub instances: &'a Buffer,
    pub instance_count: u32,
    /// Vertices of one instance; the next one's follow.
    pub vertices: u32,
}

pub struct Renderer {
    shadow: RenderPipeline,
    body: RenderPipeline,
    floor: RenderPipeline,
    /// The bindings of the three.
    bindings: [BindGroup; 3],
    shadow_map: TextureView,
    samples: TextureView,
    depth: TextureView,
    picture: wgpu::Texture,
}

impl Renderer {
    pub fn new(device: &Device) -> Self {
        let module = device.create_shader_module(wgpu::include_wgsl!("crowd.wgsl"));
        let shadow = pipeline(device, &module, "shadow_vertex", None);
        let body = pipeline(device, &module, "body_vertex", Some("body_fragment"));
        let floor = pipeline(device, &module, "floor_vertex", Some("floor_fragment"));
        let target = TextureUsages::RENDER_ATTACHMENT;
        let shadow_map = texture(device, SHADOW_SIDE, SHADOW_SIDE, 1, DEPTH, target | TextureUsages::TEXTURE_BINDING);
        let shadow_map = shadow_map.create_view(&Default::default());
        let scene = uniforms(device, &[camera_and_sun()]);
        let nearer = device.create_sampler(&wgpu::SamplerDescriptor {
            mag_filter: wgpu::FilterMode::Linear,
            min_filter: wgpu::FilterMode::Linear,
            compare: Some(CompareFunction::LessEqual),
            ..Default::default()
        });
        let entries = [
            wgpu::BindGroupEntry { binding: 0, resource: scene.at(0) },
            wgpu::BindGroupEntry { binding: 1, resource: wgpu::BindingResource::TextureView(&shadow_map) },
            wgpu::BindGroupEntry { binding: 2, resource: wgpu::BindingResource::Sampler(&nearer) },
        ];
        // The vertices of the shadow need the scene only.
        let bindings = [(&shadow, 1), (&body, 3), (&floor, 3)].map(|(pipeline, count)| {
            device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.get_bind_group_layout(0),
                entries: &entries[..count],
            })
        });
        let view =
            |samples, format| texture(device, WIDTH, HEIGHT, samples, format, target).create_view(&Default::default());
        let (samples, depth) = (view(SAMPLES, COLOUR), view(SAMPLES, DEPTH));
        let picture = texture(device, WIDTH, HEIGHT, 1, COLOUR, target | TextureUsages::COPY_SRC);
        Self { shadow, body, floor, bindings, shadow_map, samples, depth, picture }
    }

    /// Records a frame of the posed vertices, and its way back: rows of red, green, blue and opacity.
    pub fn record(&self, device: &Device, encoder: &mut CommandEncoder, crowd: &Crowd, posed: &Buffer) -> Readback {
        let depth = |view| wgpu::RenderPassDepthStencilAttachment {
            view,
            depth_ops: Some(wgpu::Operations { load: wgpu::LoadOp::Clear(1.0), store: wgpu::StoreOp::Store }),
            stencil_ops: None,
        };
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("shadows"),
            depth_stencil_attachment: Some(depth(&self.shadow_map)),
            ..Default::default()
        });
        draw_bodies(&mut pass, &self.shadow, &self.bindings[0], crowd, posed);
        drop(pass);
        let [r, g, b] = HAZE.map(f64::from);
        let picture = self.picture.create_view(&Default::default());
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("picture"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &self.samples,
                depth_slice: None,
                resolve_target: Some(&picture),
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color { r, g, b, a: 1.0 }),
                    store: wgpu::StoreOp::Discard,
                },
            })],
            depth_stencil_attachment: Some(depth(&self.depth)),
            ..Default::default()
        });
        pass.set_pipeline(&self.floor);
        pass.set_bind_group(0, &self.bindings[2], &[]);
        pass.draw(0..4, 0..1);
        draw_bodies(&mut pass, &self.body, &self.bindings[1], crowd, posed);
        drop(pass);
        self.read(device, encoder)
    }

    fn read(&self, device: &Device, encoder: &mut CommandEncoder) -> Readback {
        let bytes = u64::from(4 * WIDTH * HEIGHT);
        let buffer = skinbind::gpu::storage(device, "picture", bytes);
        encoder.copy_texture_to_buffer(
            self.picture.as_image_copy(),
            wgpu::TexelCopyBufferInfo {
                buffer: &buffer,
                // A multiple of 256, as copies demand.
                layout: wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4 * WIDTH), rows_per_image: None },
            },
            self.picture.size(),
        );
        Readback::record(device, encoder, &buffer, 0, bytes)
    }
}

/// One draw an instance: its vertices begin at its own place in the posed buffer.
fn draw_bodies(pass: &mut RenderPass, pipeline: &RenderPipeline, bind: &BindGroup, crowd: &Crowd, posed: &Buffer) {
    pass.set_pipeline(pipeline);
    pass.set_bind_group(0, bind, &[]);
    pass.set_vertex_buffer(0, posed.slice(..));
    pass.set_vertex_buffer(1, crowd.instances.slice(..));
    pass.set_index_buffer(crowd.indices.slice(..), wgpu::IndexFormat::Uint32);
    for k in 0..crowd.instance_count {
        pass.draw_indexed(0..crowd.index_count, (k * crowd.vertices) as i32, k..k + 1);
    }
}

/// The uniform of the shader: two matrices and three vectors.
fn camera_and_sun() -> [f32; 44] {
    let eye = Vec3::new(7.9, 7.4, 16.6);
    let view = look_at_mat4(eye, Vec3::new(-0.25, -0.35, 0.9), Vec3::Y);
    let view = directx::perspective(34f32.to_radians(), WIDTH as f32 / HEIGHT as f32, 1.0, 120.0) * view;
    let sun = Vec3::new(-0.55, 0.95, 0.62).normalize();
    let light: Mat4 =
        directx::orthographic(-11.0, 11.0, -11.0, 11.0, 1.0, 50.0) * look_at_mat4(sun * 25.0, Vec3::ZERO, Vec3::Y);
    let vectors = [eye, sun, Vec3::from_array(HAZE)].map(|v| v.extend(1.0).to_array());
    let numbers: Vec<f32> =
        [view, light].iter().flat_map(|m| m.to_cols_array()).chain(vectors.into_iter().flatten()).collect();
    std::array::from_fn(|i| numbers[i])
}

fn texture(
    device: &Device,
    width: u32,
    height: u32,
    sample_count: u32,
    format: TextureFormat,
    usage: TextureUsages,
) -> wgpu::Texture {
    device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d { width, height, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count,
        dimension: wgpu::TextureDimension::D2,
        format,
        usage,
        view_formats: &[],
    })
}

/// The pipeline of an entry point; without a fragment shader it draws depth alone.
fn pipeline(device: &Device, module: &wgpu::ShaderModule, vertex: &str, fragment: Option<&str>) -> RenderPipeline {
    let attribute = |format, offset, shader_location| wgpu::VertexAttribute { format, offset, shader_location };
    let of_vertex = [attribute(VertexFormat::Float32x3, 0, 0), attribute(VertexFormat::Float32x3, 12, 1)];
    let of_instance = [attribute(VertexFormat::Float32x4, 0, 2), attribute(VertexFormat::Float32x3, 16, 3)];
    let buffers = [
        Some(wgpu::VertexBufferLayout {
            array_stride: VERTEX_BYTES,
            step_mode: wgpu::VertexStepMode::Vertex,
            attributes: &of_vertex,
        }),
        Some(wgpu::VertexBufferLayout {
            array_stride: size_of::<Instance>() as u64,
            step_mode: wgpu::VertexStepMode::Instance,
            attributes: &of_instance,
        }),
    ];
    let targets = [Some(COLOUR.into())];
    let on_floor = vertex == "floor_vertex";
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some(vertex),
        layout: None,
        vertex: wgpu::VertexState {
            module,
            entry_point: Some(vertex),
            compilation_options: Default::default(),
            buffers: if on_floor { &[] } else { &buffers },
        },
        primitive: wgpu::PrimitiveState {
            topology: if on_floor {
                wgpu::PrimitiveTopology::TriangleStrip
            } else {
                wgpu::PrimitiveTopology::TriangleList
            },
            ..Default::default()
        },
        depth_stencil: Some(wgpu::DepthStencilState {
            format: DEPTH,
            depth_write_enabled: Some(true),
            depth_compare: Some(CompareFunction::Less),
            stencil: Default::default(),
            bias: Default::default(),
        }),
        multisample: wgpu::MultisampleState {
            count: if fragment.is_some() { SAMPLES } else { 1 },
            ..Default::default()
        },
        fragment: fragment.map(|entry| wgpu::FragmentState {
            module,
            entry_point: Some(entry),
            compilation_options: Default::default(),
            targets: &targets,
        }),
        multiview_mask: None,
        cache: None,
    })
}
