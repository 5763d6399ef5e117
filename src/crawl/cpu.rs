//! The crawl on the CPU: one label-setting pass over all bones at once, on all cores.
//!
//! Buckets one voxel wide (Dial 1969; Denardo and Fox 1979): no step is shorter than a voxel, so the labels of a bucket
//! are final once the buckets before it are done, in whatever order they are taken. The solid is cut into regions that
//! work through a bucket at the same time and hand each other offers between buckets. `docs/crawl.md` has the proofs.

use std::cmp::Ordering;

use rayon::prelude::*;

use super::Neighbors;
use super::key::Key;
use super::moves::{ALL, Moves, STAY, bits, offset};
use super::seeds::{Seeder, Start};
use crate::error::Result;
use crate::model::{BRICK_CELLS, Bricks, Grid, Skeleton, set_bits};
use crate::progress::{Progress, Stage};

/// Bones whose starts are found at a time: what bounds the memory for them.
const BONES_AT_ONCE: usize = 1024;
/// Labels below which a second thread costs more than it saves.
const LABELS_A_REGION: usize = 40_000;
/// Bricks and offers below which waking the other threads costs more than it saves.
const BRICKS_AT_ONCE: usize = 24;
/// Regions a thread, so that threads with less to do in a bucket can take more of them.
const REGIONS_A_THREAD: usize = 8;

/// What to find.
pub struct Job<'a> {
    pub grid: &'a Grid,
    pub bricks: &'a Bricks,
    pub skeleton: &'a Skeleton,
    /// The bones that take part.
    pub used: &'a [usize],
    /// Labels a voxel.
    pub per_voxel: usize,
    pub neighbors: Neighbors,
    pub progress: Progress<'a>,
}

/// The labels of all solid voxels, and the bones that lie outside with their distance in voxels.
type Found<K> = (Vec<K>, Vec<(usize, f64)>);

impl Job<'_> {
    /// Finds the labels; none if a distance does not fit the keys.
    pub fn run<K: Key>(&self) -> Result<Option<Found<K>>> {
        // A few sizes fixed at compile time make the inner loops twice as fast. More labels than asked for do no harm:
        // the first ones are the same.
        match self.per_voxel {
            0..=3 => self.run_with::<K, 3>(),
            4..=5 => self.run_with::<K, 5>(),
            6..=9 => self.run_with::<K, 9>(),
            _ => self.run_with::<K, 17>(),
        }
    }

    fn run_with<K: Key, const N: usize>(&self) -> Result<Option<Found<K>>> {
        self.progress.at(Stage::Crawl, 0.0)?;
        let empty = Record { keys: [K::NONE; N], arrivals: [0; N], solid: 0 };
        let mut records: Vec<Record<K, N>> = rayon::iter::repeat_n(empty, self.bricks.solid()).collect();
        let bounds = cut(self.bricks, self.per_voxel);
        let mut regions = Region::split(self.bricks, &bounds, &mut records);
        let moves = Moves::new(self.neighbors);
        let mut outside = Vec::new();
        if !self.seed(&mut regions, &mut outside)? {
            return Ok(None);
        }
        if !self.spread(&moves, &bounds, &mut regions)? {
            return Ok(None);
        }
        drop(regions);
        let mut keys = vec![K::NONE; records.len() * self.per_voxel];
        if self.per_voxel > 0 {
            keys.par_chunks_mut(self.per_voxel)
                .zip(&records)
                .for_each(|(to, from)| to.copy_from_slice(&from.keys[..to.len()]));
        }
        Ok(Some((keys, outside)))
    }

    /// Hands every bone's start to the regions; false if one is too far for the keys.
    fn seed<K: Key, const N: usize>(
        &self,
        regions: &mut [Region<K, N>],
        outside: &mut Vec<(usize, f64)>,
    ) -> Result<bool> {
        let seeder = Seeder::new(self.grid, self.bricks);
        for bones in self.used.chunks(BONES_AT_ONCE) {
            self.progress.at(Stage::Crawl, 0.0)?;
            let starts: Vec<Start> = bones.par_iter().map(|&bone| seeder.start(&self.skeleton.bones()[bone])).collect();
            for (&bone, start) in bones.iter().zip(&starts) {
                outside.extend(start.outside.map(|distance| (bone, distance)));
                for &(voxel, distance) in &start.seeds {
                    if distance >> 32 >= K::END {
                        return Ok(false);
                    }
                    let key = K::new(distance, self.skeleton.rank(bone) as u16);
                    let (slot, cell) = self.bricks.locate(voxel).expect("bones start in solid voxels");
                    let region = regions.partition_point(|r| r.first_slot + r.bricks.len() <= slot);
                    regions[region].seed(slot, cell, key);
                }
            }
        }
        for region in regions {
            region.late.sort_unstable_by_key(|seed| std::cmp::Reverse(seed.key));
        }
        Ok(true)
    }

    /// Works through the buckets in order; false if a distance does not fit the keys.
    fn spread<K: Key, const N: usize>(
        &self,
        moves: &Moves,
        bounds: &[usize],
        regions: &mut [Region<K, N>],
    ) -> Result<bool> {
        let steps = Steps::new(self.bricks, moves, bounds);
        let expected = (self.bricks.solid() * self.per_voxel) as f64;
        let boxes = || vec![vec![Vec::new(); regions.len()]; regions.len()];
        let (mut sent, mut sending): (Vec<Outbox<K>>, _) = (boxes(), boxes());
        let (mut bucket, mut waiting) = (0, regions.iter().map(Region::waiting).sum::<usize>());
        loop {
            if bucket >= K::END {
                return Ok(false);
            }
            let pass = |(i, (region, out)): (usize, (&mut Region<K, N>, &mut Outbox<K>))| {
                out.iter_mut().for_each(Vec::clear);
                region.receive(bucket, sent.iter().map(|from| &from[i]));
                region.process(bucket, &steps, out);
            };
            if waiting < BRICKS_AT_ONCE {
                regions.iter_mut().zip(&mut sending).enumerate().for_each(pass);
            } else {
                regions.par_iter_mut().zip(&mut sending).enumerate().for_each(pass);
            }
            std::mem::swap(&mut sent, &mut sending);
            let settled: usize = regions.iter().map(|r| r.settled).sum();
            self.progress.at(Stage::Crawl, (settled as f64 / expected).min(1.0))?;
            let offers: usize = sent.iter().flatten().map(Vec::len).sum();
            waiting = offers + regions.iter().map(Region::waiting).sum::<usize>();
            let late = regions.iter().filter_map(|r| r.late.last()).map(|seed| seed.key.bucket()).min();
            bucket = match (waiting > 0, late) {
                (true, _) => bucket + 1,
                (false, Some(next)) => next,
                (false, None) => return Ok(true),
            };
        }
    }
}

/// The first slot of each region and the end of the last: about as many solid voxels in each.
fn cut(bricks: &Bricks, per_voxel: usize) -> Vec<usize> {
    let most = (bricks.solid() * per_voxel / LABELS_A_REGION).min(REGIONS_A_THREAD * rayon::current_num_threads());
    let count = if rayon::current_num_threads() == 1 { 1 } else { most.max(1) };
    let first = bricks.first_indices();
    let mut bounds: Vec<usize> = (0..count)
        .map(|i| first.partition_point(|&index| (index as usize) < bricks.solid() * i / count).min(bricks.len()))
        .collect();
    bounds.push(bricks.len());
    bounds.dedup();
    if bounds.len() == 1 {
        bounds.push(bricks.len());
    }
    bounds
}

/// What is known of a voxel.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Record<K, const N: usize> {
    /// The nearest bones so far, in order.
    keys: [K; N],
    /// For each, the bit of a step over which it came at this distance, or of `STAY` where the bone starts here.
    arrivals: [u32; N],
    /// Which of the 27 voxels around are solid.
    solid: u32,
}

impl<K: Key, const N: usize> Record<K, N> {
    /// Takes an offer if it is among the best N; whether it was.
    fn take(&mut self, key: K, arrivals: u32) -> bool {
        if key > self.keys[N - 1] {
            return false;
        }
        let rank = key.rank();
        let mut at = 0;
        while self.keys[at] < key {
            if self.keys[at].rank() == rank {
                return false;
            }
            at += 1;
        }
        if self.keys[at] == key {
            // Of several steps over which a label comes at the same distance any one will do: `docs/crawl.md`.
            return false;
        }
        // What goes is the same bone further away, or else the last.
        let mut end = at;
        while end < N - 1 && self.keys[end].rank() != rank {
            end += 1;
        }
        for i in (at..end).rev() {
            self.keys[i + 1] = self.keys[i];
            self.arrivals[i + 1] = self.arrivals[i];
        }
        self.keys[at] = key;
        self.arrivals[at] = arrivals;
        true
    }
}

/// A label for a voxel of another region.
#[derive(Debug, Clone, Copy)]
struct Offer<K> {
    key: K,
    slot: u32,
    cell: u16,
    step: u8,
}

/// What a region sends to each region.
type Outbox<K> = Vec<Vec<Offer<K>>>;

/// A bone that starts some way off.
#[derive(Debug, Clone, Copy)]
struct Seed<K> {
    key: K,
    slot: u32,
    cell: u16,
}

/// A brick at work.
struct Brick {
    /// Record of the brick's first solid voxel, in its region.
    first: u32,
    /// Record of each solid cell, from that one.
    record: [u16; BRICK_CELLS],
    /// Cells with labels to settle in each of three buckets in turn.
    pending: [[u64; 8]; 3],
    /// Whether the brick is in the list of each.
    listed: [bool; 3],
}

/// A range of slots with the records of their voxels, which nobody else touches.
struct Region<'a, K, const N: usize> {
    first_slot: usize,
    bricks: Vec<Brick>,
    records: &'a mut [Record<K, N>],
    /// Bricks with labels to settle in each of three buckets in turn.
    pending: [Vec<u32>; 3],
    /// Starts beyond the first bucket, the nearest last.
    late: Vec<Seed<K>>,
    settled: usize,
}

impl<'a, K: Key, const N: usize> Region<'a, K, N> {
    fn split(bricks: &Bricks, bounds: &[usize], records: &'a mut [Record<K, N>]) -> Vec<Self> {
        let first = bricks.first_indices();
        let mut rest = records;
        let mut parts = Vec::new();
        for slots in bounds.windows(2) {
            let (part, others) = rest.split_at_mut((first[slots[1]] - first[slots[0]]) as usize);
            parts.push((slots[0]..slots[1], part));
            rest = others;
        }
        parts.into_par_iter().map(|(slots, records)| Self::new(bricks, slots, records)).collect()
    }

    fn new(bricks: &Bricks, slots: std::ops::Range<usize>, records: &'a mut [Record<K, N>]) -> Self {
        let first_slot = slots.start;
        let base = bricks.first_indices()[first_slot];
        let list = slots.map(|slot| {
            let first = bricks.first_indices()[slot] - base;
            let halo = bricks.halo(slot);
            let mut record = [0; BRICK_CELLS];
            for (i, cell) in bricks.cells(slot).enumerate() {
                record[cell] = i as u16;
                records[first as usize + i].solid = around(&halo, cell);
            }
            Brick { first, record, pending: [[0; 8]; 3], listed: [false; 3] }
        });
        let list = list.collect();
        Self { first_slot, bricks: list, records, pending: Default::default(), late: Vec::new(), settled: 0 }
    }

    fn seed(&mut self, slot: usize, cell: usize, key: K) {
        if key.bucket() == 0 {
            self.offer(slot - self.first_slot, cell, key, 1 << STAY, 0);
        } else {
            self.late.push(Seed { key, slot: slot as u32, cell: cell as u16 });
        }
    }

    /// How many bricks have labels to settle, in all buckets.
    fn waiting(&self) -> usize {
        self.pending.iter().map(Vec::len).sum()
    }

    /// Offers a label to a voxel; `cycle` is its bucket modulo 3.
    fn offer(&mut self, brick: usize, cell: usize, key: K, arrivals: u32, cycle: usize) {
        let state = &mut self.bricks[brick];
        let record = &mut self.records[state.first as usize + usize::from(state.record[cell])];
        if record.take(key, arrivals) {
            state.pending[cycle][cell / 64] |= 1 << (cell % 64);
            if !std::mem::replace(&mut state.listed[cycle], true) {
                self.pending[cycle].push(brick as u32);
            }
        }
    }

    /// Takes what other regions sent in the last pass, and the bones that start in this bucket.
    fn receive<'b>(&mut self, bucket: u64, sent: impl Iterator<Item = &'b Vec<Offer<K>>>)
    where
        K: 'b,
    {
        for offer in sent.flatten() {
            let cycle = (offer.key.bucket() % 3) as usize;
            let brick = offer.slot as usize - self.first_slot;
            self.offer(brick, offer.cell.into(), offer.key, 1 << offer.step, cycle);
        }
        while let Some(seed) = self.late.pop_if(|seed| seed.key.bucket() == bucket) {
            let brick = seed.slot as usize - self.first_slot;
            self.offer(brick, seed.cell.into(), seed.key, 1 << STAY, (bucket % 3) as usize);
        }
    }

    /// Settles the labels of a bucket and offers them to the voxels around.
    fn process(&mut self, bucket: u64, steps: &Steps, out: &mut [Vec<Offer<K>>]) {
        let cycle = (bucket % 3) as usize;
        let mut list = std::mem::take(&mut self.pending[cycle]);
        for &brick in &list {
            let state = &mut self.bricks[brick as usize];
            state.listed[cycle] = false;
            let cells = std::mem::take(&mut state.pending[cycle]);
            for cell in set_bits(cells) {
                self.settle(bucket, brick as usize, cell, steps, out);
            }
        }
        list.clear();
        self.pending[cycle] = list;
    }

    fn settle(&mut self, bucket: u64, brick: usize, cell: usize, steps: &Steps, out: &mut [Vec<Offer<K>>]) {
        let state = &self.bricks[brick];
        let record = self.records[state.first as usize + usize::from(state.record[cell])];
        let near = steps.bricks.neighbors(self.first_slot + brick);
        let padded = (cell % 8 + 1) + 10 * (cell / 8 % 8 + 1) + 100 * (cell / 64 + 1);
        let cycles = [(bucket + 1) % 3, (bucket + 2) % 3].map(|c| c as usize);
        for j in 0..N {
            match record.keys[j].bucket().cmp(&bucket) {
                Ordering::Less => continue,
                Ordering::Equal => self.settled += 1,
                Ordering::Greater => break,
            }
            for step in bits(steps.moves.after(record.arrivals[j], record.solid)) {
                let key = record.keys[j].plus(steps.moves.length[step]);
                let (which, target) = steps.targets[padded + steps.shift[step]];
                let slot = near[usize::from(which)] as usize;
                let brick = slot.wrapping_sub(self.first_slot);
                if brick < self.bricks.len() {
                    self.offer(brick, target.into(), key, 1 << step, cycles[(key.bucket() - bucket - 1) as usize]);
                } else {
                    let offer = Offer { key, slot: slot as u32, cell: target, step: step as u8 };
                    out[steps.region(slot)].push(offer);
                }
            }
        }
    }
}

/// Where steps lead.
struct Steps<'a> {
    bricks: &'a Bricks,
    moves: &'a Moves,
    bounds: &'a [usize],
    /// For a place in a brick with one layer around it, x + 1 + 10 (y + 1) + 100 (z + 1): which of the 27 bricks, and which
    /// cell of it.
    targets: Vec<(u8, u16)>,
    /// What each step adds to such a place, plus 111, with the place one layer lower.
    shift: [usize; 27],
}

impl<'a> Steps<'a> {
    fn new(bricks: &'a Bricks, moves: &'a Moves, bounds: &'a [usize]) -> Self {
        let split = |i: usize| (i.div_ceil(8), (i + 7) % 8);
        let targets = (0..1111usize)
            .map(|i| {
                let Some(place) = i.checked_sub(111) else { return (0, 0) };
                let [(bx, x), (by, y), (bz, z)] = [place % 10, place / 10 % 10, place / 100].map(split);
                ((bx + 3 * by + 9 * bz) as u8, (x + 8 * y + 64 * z) as u16)
            })
            .collect();
        let shift = std::array::from_fn(|step| {
            let d = offset(step) + 1;
            (d.x + 10 * d.y + 100 * d.z) as usize
        });
        Self { bricks, moves, bounds, targets, shift }
    }

    fn region(&self, slot: usize) -> usize {
        self.bounds.partition_point(|&first| first <= slot) - 1
    }
}

/// The 27 bits around a cell.
fn around(halo: &[u16; 100], cell: usize) -> u32 {
    let (x, row) = (cell % 8, cell / 8 % 8 + 10 * (cell / 64));
    let bits = |i: usize| u32::from(halo[row + i % 3 + 10 * (i / 3)] >> x & 7) << (3 * i);
    (0..9).fold(0, |mask, i| mask | bits(i)) & ALL
}
