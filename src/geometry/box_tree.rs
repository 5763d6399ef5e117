//! A tree of axis-aligned boxes for nearest-item searches: median splits (Bentley 1975), searched best side first.

use glam::DVec3;

/// Items a leaf. All leaves but the last of a subtree are full, so the number of nodes follows from that of the items.
const LEAF: usize = 4;
/// Below so many items a subtree is built by one thread.
const PARALLEL: usize = 8192;
/// More than twice the depth of a tree of 2^32 items.
const STACK: usize = 80;
/// Rounding allowance, relative to the size of the coordinates: a box that holds the nearest item must not be passed over
/// because its distance was rounded up or the item's own rounded down. Each is off by a few 2^-53 of the coordinates.
const MARGIN: f64 = 1e-13;

#[derive(Debug, Clone, Copy)]
struct Node {
    min: DVec3,
    max: DVec3,
    /// A leaf: its first item. Otherwise: the second child; the first child comes right after its parent.
    link: u32,
    /// Items of a leaf; 0 for an inner node.
    count: u32,
}

/// Items by the boxes around them.
#[derive(Debug, Clone)]
pub struct BoxTree {
    nodes: Vec<Node>,
    items: Vec<u32>,
}

impl BoxTree {
    /// A tree over the boxes (smallest and largest corner), whose places in the list are the items' numbers.
    pub fn new(boxes: &[(DVec3, DVec3)]) -> Self {
        let mut items: Vec<u32> = (0..boxes.len() as u32).collect();
        let blank = Node { min: DVec3::ZERO, max: DVec3::ZERO, link: 0, count: 0 };
        let mut nodes = vec![blank; nodes_for(boxes.len())];
        if !boxes.is_empty() {
            build(&mut nodes, 0, &mut items, 0, boxes);
        }
        Self { nodes, items }
    }

    /// Calls `test(item, reach)` for each item whose box may lie within the squared distance `reach` of `p`; what `test`
    /// returns is the reach from then on. Near boxes come first. Returns the last reach.
    pub fn search(&self, p: DVec3, mut reach: f64, mut test: impl FnMut(u32, f64) -> f64) -> f64 {
        let mut stack = [(0u32, 0f64); STACK];
        let mut height = usize::from(!self.nodes.is_empty());
        while height > 0 {
            height -= 1;
            let (at, distance) = stack[height];
            if distance > reach {
                continue;
            }
            let node = &self.nodes[at as usize];
            if node.count > 0 {
                for &item in &self.items[node.link as usize..(node.link + node.count) as usize] {
                    reach = test(item, reach);
                }
                continue;
            }
            let (first, second) = (at + 1, node.link);
            let near = (first, self.nodes[first as usize].lower_bound(p));
            let far = (second, self.nodes[second as usize].lower_bound(p));
            let (near, far) = if near.1 <= far.1 { (near, far) } else { (far, near) };
            stack[height] = far;
            stack[height + 1] = near;
            height += 2;
        }
        reach
    }

    /// Whether `hit(item)` is true for an item whose box the segment from `from` to `to` may meet. Which items are asked
    /// about before the first hit is not specified.
    pub fn any_on_segment(&self, from: DVec3, to: DVec3, mut hit: impl FnMut(u32) -> bool) -> bool {
        let inverse = (to - from).to_array().map(|d| 1.0 / d);
        let mut stack = [0u32; STACK];
        let mut height = usize::from(!self.nodes.is_empty());
        while height > 0 {
            height -= 1;
            let at = stack[height];
            let node = &self.nodes[at as usize];
            if !node.meets(from, inverse) {
                continue;
            }
            if node.count > 0 {
                let items = &self.items[node.link as usize..(node.link + node.count) as usize];
                if items.iter().any(|&item| hit(item)) {
                    return true;
                }
                continue;
            }
            stack[height] = node.link;
            stack[height + 1] = at + 1;
            height += 2;
        }
        false
    }
}

impl Node {
    /// Whether a segment may have a point in the box: the slab test. `inverse` has the inverse of each side of the segment.
    fn meets(&self, from: DVec3, inverse: [f64; 3]) -> bool {
        let less = |a: f64, b: f64| if a < b { a } else { b };
        let more = |a: f64, b: f64| if a > b { a } else { b };
        let (mut enter, mut leave) = (0.0f64, 1.0f64);
        for (axis, inverse) in inverse.into_iter().enumerate() {
            let (t0, t1) = ((self.min[axis] - from[axis]) * inverse, (self.max[axis] - from[axis]) * inverse);
            // A segment along a face of the box is 0 times infinity, NaN, and may be missed: boxes have a margin around
            // their items.
            enter = more(less(t0, t1), enter);
            leave = less(more(t0, t1), leave);
        }
        // Each t is off by a few 2^-53 of itself.
        enter <= leave * (1.0 + MARGIN)
    }

    /// No item of this node is nearer to `p` than the root of this, rounding included.
    fn lower_bound(&self, p: DVec3) -> f64 {
        let outside = (self.min - p).max(p - self.max).max(DVec3::ZERO);
        outside.length_squared() * (1.0 - MARGIN)
    }
}

fn nodes_for(items: usize) -> usize {
    (2 * items.div_ceil(LEAF)).saturating_sub(1)
}

/// Builds the subtree of `items` into `nodes`, whose first is node `node` of the tree; the first item is item `start`.
fn build(nodes: &mut [Node], node: u32, items: &mut [u32], start: u32, boxes: &[(DVec3, DVec3)]) {
    let nothing = (DVec3::INFINITY, DVec3::NEG_INFINITY);
    let (mut bounds, mut middles) = (nothing, nothing);
    for &item in items.iter() {
        let (min, max) = boxes[item as usize];
        bounds = (bounds.0.min(min), bounds.1.max(max));
        middles = (middles.0.min(min + max), middles.1.max(min + max));
    }
    let margin = DVec3::splat(bounds.0.abs().max(bounds.1.abs()).max_element() * MARGIN);
    let count = items.len();
    nodes[0] = Node { min: bounds.0 - margin, max: bounds.1 + margin, link: start, count: count as u32 };
    if count <= LEAF {
        return;
    }
    let axis = (middles.1 - middles.0).max_position();
    let left = count.div_ceil(LEAF) / 2 * LEAF;
    let middle = |item: u32| boxes[item as usize].0[axis] + boxes[item as usize].1[axis];
    items.select_nth_unstable_by(left, |&a, &b| middle(a).total_cmp(&middle(b)).then(a.cmp(&b)));
    let (near_items, far_items) = items.split_at_mut(left);
    let (near_nodes, far_nodes) = nodes[1..].split_at_mut(nodes_for(left));
    let second = node + 1 + near_nodes.len() as u32;
    let far_start = start + left as u32;
    if count < PARALLEL {
        build(near_nodes, node + 1, near_items, start, boxes);
        build(far_nodes, second, far_items, far_start, boxes);
    } else {
        rayon::join(
            || build(near_nodes, node + 1, near_items, start, boxes),
            || build(far_nodes, second, far_items, far_start, boxes),
        );
    }
    nodes[0].link = second;
    nodes[0].count = 0;
}
