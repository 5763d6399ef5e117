//! Steps between voxels, their lengths, and which steps a shortest path needs after which.
//!
//! The pruning is that of jump point search (Harabor and Grastien 2011) in three dimensions, without the jumps;
//! `docs/crawl.md` has the proof.

use glam::IVec3;

use super::Neighbors;
use super::key::to_fixed;

/// A step by (x, y, z), each -1 to 1, has the number (x+1) + 3 (y+1) + 9 (z+1). This one stays where it is.
pub const STAY: usize = 13;
/// All 27 bits of a neighbourhood.
pub const ALL: u32 = (1 << 27) - 1;

/// The displacement of a step.
pub fn offset(step: usize) -> IVec3 {
    let s = step as i32;
    IVec3::new(s % 3 - 1, s / 3 % 3 - 1, s / 9 - 1)
}

/// Bit of a displacement in a neighbourhood, and none if it is more than one voxel.
fn step_of(d: IVec3) -> Option<usize> {
    (d.abs().max_element() <= 1).then(|| ((d.x + 1) + 3 * (d.y + 1) + 9 * (d.z + 1)) as usize)
}

/// The numbers of the bits that are 1.
pub fn bits(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        (mask != 0).then(|| {
            mask &= mask - 1;
            bit
        })
    })
}

/// Most steps after one arrival that a detour may spare: of the 26 after a corner step, 7 lead no
/// further from the voxel before than one step and 7 are natural.
const MOST_FORCED: usize = 12;

/// The steps of a neighbourhood.
#[derive(Debug)]
pub struct Moves {
    /// Fixed-point length of each step.
    pub length: [u64; 27],
    /// Bits of the steps that may be taken.
    all: u32,
    /// After each step, the steps that are needed whatever is solid.
    natural: [u32; 27],
    /// After each step, the steps that are needed if none of certain voxels is solid.
    forced: [Forced; 27],
}

/// In arrays of fixed length, so that all entries are decided at once in vector registers.
#[derive(Debug, Clone, Copy)]
struct Forced {
    /// Bit of a step; 0 past the end.
    step: [u32; MOST_FORCED],
    /// Neighbours of the voxel between the two steps over which another path is shorter, or as short and comes first.
    detours: [u32; MOST_FORCED],
    count: usize,
}

impl Forced {
    const NONE: Self = Self { step: [0; MOST_FORCED], detours: [0; MOST_FORCED], count: 0 };

    fn push(&mut self, step: usize, detours: u32) {
        (self.step[self.count], self.detours[self.count]) = (1 << step, detours);
        self.count += 1;
    }

    fn steps(&self, solid: u32) -> u32 {
        let needed =
            self.step.iter().zip(&self.detours).map(|(&step, &detours)| if detours & solid == 0 { step } else { 0 });
        needed.fold(0, |mask, step| mask | step)
    }
}

impl Moves {
    /// The steps over faces, or over faces, edges and corners.
    pub fn new(neighbors: Neighbors) -> Self {
        let length = std::array::from_fn(|s| to_fixed((offset(s).length_squared() as f64).sqrt()));
        let allowed = |s: &usize| match neighbors {
            Neighbors::Six => offset(*s).length_squared() == 1,
            Neighbors::TwentySix => *s != STAY,
        };
        let steps: Vec<usize> = (0..27).filter(allowed).collect();
        let all = steps.iter().fold(0, |mask, s| mask | 1 << s);
        let mut moves = Self { length, all, natural: [0; 27], forced: [Forced::NONE; 27] };
        for &arrival in &steps {
            for &step in &steps {
                moves.classify(arrival, step);
            }
        }
        moves
    }

    /// Sorts one pair of steps: never needed, needed always, or needed if there is no detour.
    fn classify(&mut self, arrival: usize, step: usize) {
        let whole = offset(arrival) + offset(step);
        let cost = self.length[arrival] + self.length[step];
        let direct = |s: usize| s == STAY || self.all >> s & 1 == 1 && self.length[s] < cost;
        if step_of(whole).is_some_and(direct) {
            return;
        }
        // Of paths of equal length the one that takes its longer steps first is kept, then the one of lower step numbers.
        let order = |s: usize| (std::cmp::Reverse(self.length[s]), s);
        let mut detours = 0;
        for first in bits(self.all).filter(|&s| s != arrival) {
            let second = step_of(whole - offset(first)).filter(|&s| self.all >> s & 1 == 1);
            let Some((second, over)) = second.zip(step_of(offset(first) - offset(arrival))) else { continue };
            let other = self.length[first] + self.length[second];
            if other < cost || other == cost && order(first) < order(arrival) {
                detours |= 1 << over;
            }
        }
        if detours == 0 {
            self.natural[arrival] |= 1 << step;
        } else {
            self.forced[arrival].push(step, detours);
        }
    }

    /// The steps to take from a voxel, given the steps over which its label came (bits; STAY where it started there) and
    /// the solid voxels around it.
    pub fn after(&self, arrivals: u32, solid: u32) -> u32 {
        let open = solid & self.all;
        if arrivals >> STAY & 1 == 1 {
            return open;
        }
        let natural = bits(arrivals).fold(0, |mask, a| mask | self.natural[a]);
        if solid == ALL {
            return natural;
        }
        bits(arrivals).fold(natural, |mask, a| mask | self.forced[a].steps(solid)) & open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_open_a_label_goes_straight_on() {
        let moves = Moves::new(Neighbors::TwentySix);
        let count = |d: IVec3| moves.after(1 << step_of(d).unwrap(), ALL).count_ones();
        assert_eq!(count(IVec3::new(1, -1, 1)), 7);
        assert_eq!(count(IVec3::new(0, -1, 1)), 3);
        assert_eq!(count(IVec3::new(0, 0, -1)), 1);
        assert_eq!(moves.after(1 << STAY, ALL).count_ones(), 26);
        let six = Moves::new(Neighbors::Six);
        let mut counts: Vec<u32> = bits(six.all).map(|s| six.after(1 << s, ALL).count_ones()).collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 2, 3, 3, 4, 5]);
    }

    #[test]
    fn around_a_corner_it_turns() {
        let moves = Moves::new(Neighbors::TwentySix);
        let bit = |x, y, z| 1u32 << step_of(IVec3::new(x, y, z)).unwrap();
        // Coming along x with nothing beside: the step up and forward is needed. With a voxel above: it is not.
        let bare = bit(-1, 0, 0) | bit(0, 0, 0) | bit(1, 1, 0);
        assert_eq!(moves.after(bit(1, 0, 0), bare), bit(1, 1, 0));
        assert_eq!(moves.after(bit(1, 0, 0), bare | bit(0, 1, 0)), 0);
    }
}
