//! Labels cut into buffers that a binding holds, and the windows of two such buffers in which dispatches work.

use bytemuck::{Pod, Zeroable};

/// Most buffers that labels are cut into: what bounds the memory of a crawl.
pub const MOST_CHUNKS: usize = 16;
/// `Window::second_voxel` where all labels lie in one buffer.
const NO_SECOND: u32 = u32::MAX;

/// Whole layers of bricks along z whose labels share a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    pub first_layer: u32,
    pub first_voxel: u32,
    pub voxels: u32,
}

/// `Window` of the shaders: layers of bricks whose labels, and those of all bricks around, lie in two chunks that follow
/// each other.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct Window {
    pub first_layer: u32,
    pub end_layer: u32,
    pub first_voxel: u32,
    pub second_voxel: u32,
}

/// Cuts layers of so many voxels into as few chunks of at most `most` voxels as there can be. None where a layer and the
/// next are more than that together, but for all being one chunk: windows step from chunk to chunk by a layer.
pub fn chunks(layers: &[u32], most: u64) -> Option<Vec<Chunk>> {
    let total: u64 = layers.iter().copied().map(u64::from).sum();
    if total > most && thickest(layers) > most {
        return None;
    }
    let mut chunks = vec![Chunk { first_layer: 0, first_voxel: 0, voxels: 0 }];
    let mut first_voxel = 0;
    for (layer, &voxels) in (0..).zip(layers) {
        let last = chunks.last_mut().expect("there is one from the start");
        if u64::from(last.voxels) + u64::from(voxels) > most {
            chunks.push(Chunk { first_layer: layer, first_voxel, voxels });
        } else {
            last.voxels += voxels;
        }
        first_voxel += voxels;
    }
    Some(chunks)
}

/// Voxels of the two layers, one next to the other, that have most.
pub fn thickest(layers: &[u32]) -> u64 {
    let two = layers.windows(2).map(|two| u64::from(two[0]) + u64::from(two[1]));
    two.max().unwrap_or_else(|| layers.iter().copied().map(u64::from).sum())
}

/// The windows over chunks of `layers` layers in all: window `k` sees the chunks `k` and `k + 1`. A window ends a layer
/// after its second chunk has begun, so that the next one finds the layer before its first in that chunk.
pub fn windows(chunks: &[Chunk], layers: u32) -> Vec<Window> {
    if let [only] = chunks {
        let (first_voxel, second_voxel) = (only.first_voxel, NO_SECOND);
        return vec![Window { first_layer: 0, end_layer: layers, first_voxel, second_voxel }];
    }
    let (mut windows, mut first_layer) = (Vec::new(), 0);
    for (k, two) in chunks.windows(2).enumerate() {
        let end_layer = if k + 2 == chunks.len() { layers } else { two[1].first_layer + 1 };
        let (first_voxel, second_voxel) = (two[0].first_voxel, two[1].first_voxel);
        windows.push(Window { first_layer, end_layer, first_voxel, second_voxel });
        first_layer = end_layer;
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every layer is in one window, and in its chunks with the layers below and above.
    fn check(layers: &[u32], most: u64) -> usize {
        let chunks = chunks(layers, most).expect("fits");
        let count = layers.len() as u32;
        let windows = windows(&chunks, count);
        assert_eq!(windows.len(), chunks.len().max(2) - 1);
        let start = |layer: u32| layers[..layer as usize].iter().sum::<u32>();
        let mut next = 0;
        for (k, window) in windows.iter().enumerate() {
            assert_eq!((window.first_layer, window.first_voxel), (next, chunks[k].first_voxel));
            assert_eq!(chunks[k].first_voxel, start(chunks[k].first_layer));
            next = window.end_layer;
            let seen_end = chunks.get(k + 2).map_or(count, |chunk| chunk.first_layer);
            assert!(chunks[k].first_layer <= window.first_layer.saturating_sub(1), "{window:?}");
            assert!((window.end_layer + 1).min(count) <= seen_end && window.first_layer < next, "{window:?}");
        }
        assert_eq!(next, count);
        assert!(chunks.iter().all(|chunk| u64::from(chunk.voxels) <= most));
        assert_eq!(chunks.iter().map(|chunk| chunk.voxels).sum::<u32>(), start(count));
        chunks.len()
    }

    #[test]
    fn windows_see_all_neighbours() {
        assert_eq!(check(&[5, 7, 3], 15), 1);
        assert_eq!(check(&[5, 7, 3], 12), 2);
        assert_eq!(check(&[1; 40], 2), 20);
        assert_eq!(check(&[0, 0, 4, 4, 0, 0, 0, 4, 4, 0], 8), 2);
        assert_eq!(check(&[3, 9, 1, 8, 2, 2, 2, 9, 0, 0, 1], 12), 4);
        let mut state = 1u32;
        for most in 20..60 {
            let layers: Vec<u32> = (0..23)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 16) % 11
                })
                .collect();
            check(&layers, most);
        }
        // A layer and the next do not fit; all in one do.
        assert_eq!(chunks(&[1, 5, 6, 1], 10), None);
        assert_eq!(chunks(&[6, 6], 12).map(|chunks| chunks.len()), Some(1));
    }
}
