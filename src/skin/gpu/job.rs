//! Skinning tied to buffers: where vertices stand, windows that bindings can hold, and the recording of a frame.

use std::num::NonZero;
use std::ops::Range;

use bytemuck::NoUninit;
use wgpu::{BindGroup, BindingResource, Buffer, BufferBinding, CommandEncoder, ComputePass, Device};

use crate::error::{Error, Result};
use crate::gpu::uniforms;
use crate::skin::gpu::{Blend, Palettes, SkinFormat, SkinKernels};

/// Most invocations of a window, so that their numbers stay within 32 bits.
const MOST_INVOCATIONS: u64 = 1 << 31;

/// Where an attribute stands: 32-bit words up to that of the first vertex, and from one vertex to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub offset: u64,
    pub stride: u32,
}

/// An attribute of all vertices in a buffer that has the usage `STORAGE`. Several may be in one buffer.
#[derive(Debug, Clone, Copy)]
pub struct Stream<'a> {
    pub buffer: &'a Buffer,
    pub place: Place,
}

impl<'a> Stream<'a> {
    /// An attribute of so many words that has a buffer of its own, without gaps.
    pub fn tight(buffer: &'a Buffer, words: u32) -> Self {
        Self { buffer, place: Place { offset: 0, stride: words } }
    }
}

/// The vertices as they are at rest: three floats a position and a normal, four a tangent (handedness last). Joints and
/// weights have the words that the format says, one set of four after the other. Joints that are not in the
/// palette count as its last one.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub vertices: u32,
    pub positions: Stream<'a>,
    pub normals: Option<Stream<'a>>,
    pub tangents: Option<Stream<'a>>,
    pub joints: Stream<'a>,
    pub weights: Stream<'a>,
    /// One float from 0 (linear) to 1 (dual quaternion), for [`Blend::Mixed`] only.
    pub shares: Option<Stream<'a>>,
}

/// Where posed vertices go: one buffer, with the usage `STORAGE`, that is not among the source's. Words between the
/// attributes are left as they are. Attributes must not overlap.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub buffer: &'a Buffer,
    /// Words from the first vertex of a pose to that of the next.
    pub pose_words: u64,
    pub positions: Place,
    pub normals: Option<Place>,
    pub tangents: Option<Place>,
}

/// What a window is told; the same struct is in the shader.
#[repr(C)]
#[derive(Debug, Clone, Copy, NoUninit)]
pub struct SkinParams {
    pub vertices: u32,
    pub poses: u32,
    pub poses_each: u32,
    pub joints: u32,
    pub palette_first: u32,
    pub palette_pose: u32,
    pub rigid: u32,
    pub stretch: u32,
    pub positions: [u32; 2],
    pub normals: [u32; 2],
    pub tangents: [u32; 2],
    pub joint_words: [u32; 2],
    pub weight_words: [u32; 2],
    pub shares: [u32; 2],
    pub posed_positions: [u32; 2],
    pub posed_normals: [u32; 2],
    pub posed_tangents: [u32; 2],
    pub posed_pose: u32,
    pub padding: u32,
}

/// Skinning of one mesh to all poses of its palettes, ready to be recorded any number of times.
#[derive(Debug)]
pub struct SkinJob {
    /// Bindings and number of invocations of each window.
    windows: Vec<(BindGroup, u64)>,
}

impl SkinJob {
    /// Records the skinning of all vertices to all poses.
    ///
    /// # Errors
    /// None as long as the constants of this file are what they are; see [`crate::gpu::Kernel::dispatch`].
    pub fn record(&self, kernels: &SkinKernels, encoder: &mut CommandEncoder) -> Result<()> {
        let mut pass =
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("skin"), timestamp_writes: None });
        self.record_in(kernels, &mut pass)
    }

    /// The same in a compute pass of the caller's.
    ///
    /// # Errors
    /// As there.
    pub fn record_in(&self, kernels: &SkinKernels, pass: &mut ComputePass) -> Result<()> {
        for (bind, invocations) in &self.windows {
            kernels.kernel.dispatch(pass, bind, *invocations)?;
        }
        Ok(())
    }

    /// How many dispatches a frame takes: one, unless buffers are larger than a binding.
    pub fn dispatches(&self) -> usize {
        self.windows.len()
    }
}

impl SkinKernels {
    /// Ties the kernel to buffers. What is recorded later reads what they hold by then.
    ///
    /// # Errors
    /// [`Error::Parameter`] for attributes that the format has and source or target lack, or the other way round, for
    /// strides that are too short, for palettes of another method, and for a source that is the target;
    /// [`Error::Limit`] for buffers that end too early and for one pose that is more than a binding can hold.
    pub fn bind(&self, device: &Device, source: Source, palettes: &Palettes, target: Target) -> Result<SkinJob> {
        let poses_each = self.poses_each(source.vertices, palettes.poses());
        let layout = Layout::new(self.format, source, palettes, target, poses_each)?;
        if source.vertices == 0 {
            return Ok(SkinJob { windows: Vec::new() });
        }
        layout.check_sizes()?;
        let alignment = u64::from(device.limits().min_storage_buffer_offset_alignment);
        let windows = layout.windows(self.max_binding, alignment, &device.adapter_info().name)?;
        let params: Vec<SkinParams> = windows.iter().map(|w| layout.params(w, alignment)).collect();
        let uniforms = uniforms(device, &params);
        let bind = |(k, window): (usize, &Window)| {
            let mut entries = vec![(0, uniforms.at(k))];
            entries.extend((1..).zip(layout.spans(window)).map(|(i, span)| (i, span.bound(alignment))));
            if self.format.blend != Blend::Mixed {
                entries.truncate(8);
            }
            (self.kernel.bind(device, &entries), window.invocations(poses_each))
        };
        Ok(SkinJob { windows: windows.iter().enumerate().map(bind).collect() })
    }
}

/// Vertices and poses of one dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Window {
    vertices: Range<u32>,
    poses: Range<u32>,
}

impl Window {
    fn invocations(&self, poses_each: u32) -> u64 {
        self.vertices.len() as u64 * self.poses.len().div_ceil(poses_each as usize) as u64
    }
}

/// Words of a buffer.
struct Span<'a> {
    what: &'static str,
    buffer: &'a Buffer,
    first: u64,
    end: u64,
}

impl<'a> Span<'a> {
    /// From an offset that a binding may have on.
    fn start(&self, alignment: u64) -> u64 {
        self.first * 4 / alignment * alignment
    }

    fn bytes(&self, alignment: u64) -> u64 {
        self.end * 4 - self.start(alignment)
    }

    /// Words from the start of the binding.
    fn within(&self, alignment: u64) -> u32 {
        (self.first - self.start(alignment) / 4) as u32
    }

    fn bound(&self, alignment: u64) -> BindingResource<'a> {
        BindingResource::Buffer(BufferBinding {
            buffer: self.buffer,
            offset: self.start(alignment),
            size: NonZero::new(self.bytes(alignment)),
        })
    }
}

/// An attribute that is read, and its words a vertex.
type Read<'a> = (&'static str, Stream<'a>, u32);

/// All that is bound. What the format lacks has the positions in its place, which no kernel then reads.
struct Layout<'a> {
    reads: [Read<'a>; 6],
    writes: [(Place, u32); 3],
    target: Target<'a>,
    palettes: &'a Palettes,
    vertices: u32,
    /// Poses that an invocation moves its vertex to.
    poses_each: u32,
}

impl<'a> Layout<'a> {
    fn new(
        format: SkinFormat,
        source: Source<'a>,
        palettes: &'a Palettes,
        target: Target<'a>,
        poses_each: u32,
    ) -> Result<Self> {
        let fault = |name, value: &str, allowed| Err(Error::Parameter { name, value: value.into(), allowed });
        for (name, wanted, found) in [
            ("normals of the source", format.normals, source.normals.is_some()),
            ("normals of the target", format.normals, target.normals.is_some()),
            ("tangents of the source", format.tangents, source.tangents.is_some()),
            ("tangents of the target", format.tangents, target.tangents.is_some()),
            ("shares of dual quaternion", format.blend == Blend::Mixed, source.shares.is_some()),
        ] {
            if wanted != found {
                return fault(name, if found { "given" } else { "missing" }, "the kernel's format says otherwise");
            }
        }
        if palettes.blend() != format.blend {
            return fault("method of the palettes", palettes.blend().entry(), "it must be the kernel's");
        }
        let none = source.positions;
        let reads = [
            ("positions", source.positions, 3),
            ("normals", source.normals.unwrap_or(none), 3),
            ("tangents", source.tangents.unwrap_or(none), if format.tangents { 4 } else { 3 }),
            ("joints", source.joints, format.joint_words()),
            ("weights", source.weights, format.weight_words()),
            ("shares of dual quaternion", source.shares.unwrap_or(none), if source.shares.is_some() { 1 } else { 3 }),
        ];
        let tangents = target.tangents.map_or((target.positions, 3), |place| (place, 4));
        let writes = [(target.positions, 3), (target.normals.unwrap_or(target.positions), 3), tangents];
        let strides = reads.iter().map(|(name, stream, words)| (*name, stream.place.stride, *words));
        let posed = writes.iter().map(|(place, words)| ("posed vertices", place.stride, *words));
        if let Some((name, stride, _)) = strides.chain(posed).find(|(_, stride, words)| stride < words) {
            return fault(name, &format!("{stride} words from one to the next"), "they would overlap");
        }
        if reads.iter().any(|(_, stream, _)| stream.buffer == target.buffer) || *palettes.buffer() == *target.buffer {
            return fault("target", "a buffer of the source", "posed vertices need a buffer of their own");
        }
        Ok(Self { reads, writes, target, palettes, vertices: source.vertices, poses_each })
    }

    /// The words that a window reads and writes, in the order of the bindings.
    fn spans(&self, window: &Window) -> [Span<'a>; 8] {
        let (from, last) = (u64::from(window.vertices.start), u64::from(window.vertices.end - 1));
        let read = |(what, stream, words): Read<'a>| {
            let Place { offset, stride } = stream.place;
            let at = |vertex: u64| offset.saturating_add(vertex * u64::from(stride));
            Span { what, buffer: stream.buffer, first: at(from), end: at(last).saturating_add(u64::from(words)) }
        };
        let pose = u64::from(self.palettes.layout()[0]) * 4;
        let [first_pose, end_pose] = [window.poses.start, window.poses.end].map(u64::from);
        let palette =
            Span { what: "palettes", buffer: self.palettes.buffer(), first: first_pose * pose, end: end_pose * pose };
        let at = |place: Place, vertex: u64, pose: u64| {
            let of_pose = pose.saturating_mul(self.target.pose_words);
            of_pose.saturating_add(place.offset).saturating_add(vertex * u64::from(place.stride))
        };
        let firsts = self.writes.map(|(place, _)| at(place, from, first_pose));
        let ends = self.writes.map(|(place, words)| at(place, last, end_pose - 1).saturating_add(u64::from(words)));
        let posed = Span {
            what: "posed vertices",
            buffer: self.target.buffer,
            first: firsts.into_iter().fold(u64::MAX, u64::min),
            end: ends.into_iter().fold(0, u64::max),
        };
        let [a, b, c, d, e, shares] = self.reads.map(read);
        [a, b, c, d, e, palette, posed, shares]
    }

    fn all(&self) -> Window {
        Window { vertices: 0..self.vertices, poses: 0..self.palettes.poses() }
    }

    fn check_sizes(&self) -> Result<()> {
        for span in self.spans(&self.all()) {
            let (needed, limit) = (span.end.saturating_mul(4), span.buffer.size());
            if needed > limit {
                return Err(Error::Limit {
                    what: format!("buffer of the {} ({} vertices)", span.what, self.vertices),
                    needed: format!("{needed} bytes"),
                    limit: format!("{limit} bytes, its size"),
                    advice: "make it larger, or check offset and stride, which count 32-bit words".into(),
                });
            }
        }
        Ok(())
    }

    /// As few windows as bindings allow: of poses, all vertices at a time; of vertices, where one pose is too large.
    fn windows(&self, max_binding: u64, alignment: u64, device: &str) -> Result<Vec<Window>> {
        // The start of a binding is rounded down by less than the alignment.
        let limit = max_binding.saturating_sub(alignment);
        let too_large = |vertices: u32, poses: u32| {
            let window = Window { vertices: 0..vertices, poses: 0..poses };
            let many = window.invocations(self.poses_each) > MOST_INVOCATIONS;
            self.spans(&window).into_iter().find(|span| many || (span.end - span.first).saturating_mul(4) > limit)
        };
        let (vertices, poses) = (self.vertices, self.palettes.poses());
        let poses_at_once = most(poses, |poses| too_large(vertices, poses).is_none());
        let vertices_at_once = match poses_at_once {
            0 => most(vertices, |vertices| too_large(vertices, 1).is_none()),
            _ => vertices,
        };
        if let (0, Some(span)) = (vertices_at_once, too_large(1, 1)) {
            return Err(Error::Limit {
                what: format!("{} of one vertex and pose", span.what),
                needed: format!("{} bytes in one binding", (span.end - span.first).saturating_mul(4)),
                limit: format!("{limit} bytes on \"{device}\""),
                advice: "let the attributes of a vertex stand nearer to each other".into(),
            });
        }
        let mut windows = Vec::new();
        for first_pose in (0..poses).step_by(poses_at_once.max(1) as usize) {
            for first in (0..vertices).step_by(vertices_at_once as usize) {
                windows.push(Window {
                    vertices: first..vertices.min(first.saturating_add(vertices_at_once)),
                    poses: first_pose..poses.min(first_pose.saturating_add(poses_at_once.max(1))),
                });
            }
        }
        Ok(windows)
    }

    fn params(&self, window: &Window, alignment: u64) -> SkinParams {
        let spans = self.spans(window);
        let read = |k: usize, binding: usize| [spans[binding].within(alignment), self.reads[k].1.place.stride];
        let (posed, [palette_pose, rigid, stretch]) = (&spans[6], self.palettes.layout());
        let first_place = self.writes.map(|(place, _)| self.first_word(place, window));
        let write =
            |k: usize| [posed.within(alignment) + (first_place[k] - posed.first) as u32, self.writes[k].0.stride];
        let poses = window.poses.len() as u32;
        SkinParams {
            vertices: window.vertices.len() as u32,
            poses,
            poses_each: self.poses_each,
            joints: self.palettes.joints(),
            palette_first: spans[5].within(alignment) / 4,
            palette_pose,
            rigid,
            stretch,
            positions: read(0, 0),
            normals: read(1, 1),
            tangents: read(2, 2),
            joint_words: read(3, 3),
            weight_words: read(4, 4),
            shares: read(5, 7),
            posed_positions: write(0),
            posed_normals: write(1),
            posed_tangents: write(2),
            // More than 32 bits only where no binding holds two poses.
            posed_pose: if poses > 1 { self.target.pose_words as u32 } else { 0 },
            padding: 0,
        }
    }

    /// The word of the target where an attribute of the window's first vertex and pose goes.
    fn first_word(&self, place: Place, window: &Window) -> u64 {
        let of_pose = u64::from(window.poses.start) * self.target.pose_words;
        of_pose + place.offset + u64::from(window.vertices.start) * u64::from(place.stride)
    }
}

/// The largest number up to `count` that fits, where all smaller ones do; 0 where none does.
fn most(count: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::most;

    #[test]
    fn the_largest_that_fits_is_found() {
        for limit in 0..12 {
            assert_eq!(most(9, |n| n <= limit), limit.min(9));
        }
        assert_eq!(most(u32::MAX, |_| true), u32::MAX);
    }
}
