//! The AMX path: packing, blocking and the order of work around the 32×32 kernel.
//!
//! One operand is *stationary*: the smaller one, packed once per block of its lines and shared by all threads. The other is *moving*:
//! cut in parts, each packed by the thread that multiplies it. Which of the two is the left tile operand is a question of its
//! own: whichever way packs the cheaper; a result that then lies transposed is stored so.
//!
//! A result tile adds its products in the order of the contraction, however the work is cut, so neither the blocks below nor
//! the number of threads change a bit.

use super::amx::{Amx, BLOCK, TILE_LEN, Tiles};
use super::pack::{self, Role};
use super::target::TILE;
use super::{Dims, Operand, Output, Par, Part, for_each, scratch};
use half::f16;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Longest stretch of the contraction that is multiplied at a time, in blocks of 32.
const DEPTH: usize = 32;
/// Packed bytes of the stationary operand per stretch: half of a 2 MiB second-level cache.
const STATIONARY: usize = 1 << 20;
/// Packed bytes of the stationary operand over the whole contraction; at least one panel.
const STATIONARY_TOTAL: usize = 16 << 20;
/// Bytes of fp32 sums that a part may hold between stretches.
const SUMS: usize = 1 << 20;
/// Multiplications below which a matmul is not worth waking threads for.
const SMALL: usize = 2 << 20;

/// An operand holds ±inf or NaN; some results may have been stored.
pub(super) struct NotFinite;

/// An operand as outer lines × steps of the contraction.
#[derive(Clone, Copy)]
struct Lines<'a> {
    data: &'a [f16],
    lines: usize,
    steps: usize,
    line_stride: usize,
    step_stride: usize,
    role: Role,
}

impl<'a> Lines<'a> {
    fn panels(&self) -> usize {
        self.lines.div_ceil(TILE)
    }

    /// Packing cost per element in one role, in arbitrary units.
    fn cost(&self, role: Role) -> usize {
        match (role, self.step_stride == 1, self.line_stride == 1) {
            (Role::Rows, true, _) => 2,
            (Role::Columns, _, true) => 3,
            (Role::Columns, true, _) => 4,
            (Role::Rows, _, true) => 5,
            _ => 40,
        }
    }

    /// Panels that are packed at a time: neighbours of a source that lies across share its cache lines.
    fn group(&self) -> usize {
        if self.step_stride == 1 { 1 } else { 4 }
    }

    fn starting_at(&self, line: usize) -> Lines<'a> {
        Lines { data: &self.data[line * self.line_stride..], lines: self.lines - line, ..*self }
    }

    /// Packs the panels from `panel` on over the blocks of `range`, one panel after another in `out`; whether everything was finite.
    fn pack(&self, amx: Amx, panel: usize, panels: usize, range: Range<usize>, out: &mut [u16]) -> bool {
        let blocks = range.len();
        let mut top = 0;
        // Neighbouring panels share the pages, and often the cache lines, of a source that lies across.
        for (i, block) in range.enumerate() {
            for p in 0..panels {
                let out = &mut out[(p * blocks + i) * BLOCK..][..BLOCK];
                top = top.max(self.pack_block(amx, (panel + p) * TILE, block * TILE, out));
            }
        }
        top < 0x7c00
    }

    fn pack_block(&self, amx: Amx, line: usize, step: usize, out: &mut [u16]) -> u16 {
        let source = &self.data[line * self.line_stride + step * self.step_stride..];
        let full = self.lines - line >= TILE && self.steps - step >= TILE;
        if full && self.step_stride == 1 {
            pack::block(amx, self.role, true, source, self.line_stride, out)
        } else if full && self.line_stride == 1 {
            pack::block(amx, self.role, false, source, self.step_stride, out)
        } else {
            let padded = self.padded(source, TILE.min(self.lines - line), TILE.min(self.steps - step));
            pack::block(amx, self.role, true, &padded, TILE, out)
        }
    }

    /// A block at an edge or of unusual strides, gathered and filled up with zeros.
    fn padded(&self, source: &[f16], lines: usize, steps: usize) -> [f16; TILE * TILE] {
        let mut block = [f16::ZERO; TILE * TILE];
        for (l, out) in block.chunks_exact_mut(TILE).take(lines).enumerate() {
            let source = &source[l * self.line_stride..];
            if self.step_stride == 1 {
                out[..steps].copy_from_slice(&source[..steps]);
            } else {
                for (out, x) in out[..steps].iter_mut().zip(source.iter().step_by(self.step_stride)) {
                    *out = *x;
                }
            }
        }
        block
    }

    /// Whether every element is finite, by reading them all.
    fn finite(&self) -> bool {
        let (outer, inner, outer_stride, inner_stride) = if self.step_stride <= self.line_stride {
            (self.lines, self.steps, self.line_stride, self.step_stride)
        } else {
            (self.steps, self.lines, self.step_stride, self.line_stride)
        };
        (0..outer).all(|o| {
            let line = &self.data[o * outer_stride..][..(inner - 1) * inner_stride + 1];
            if inner_stride == 1 { crate::stats::finite(line) } else { line.iter().step_by(inner_stride).all(|x| x.is_finite()) }
        })
    }
}

/// Multiplies every matrix of the batch.
pub(super) fn run(amx: Amx, par: Par<'_>, dims: Dims, a: Operand<'_>, b: Operand<'_>, out: Output<'_>) -> Result<(), NotFinite> {
    let adds = matches!(out, Output::F32 { accumulate: true, .. });
    let one = |batch: usize| {
        let (a, b) = (a.batch(batch), b.batch(batch));
        let left =
            Lines { data: a.data, lines: dims.m, steps: dims.k, line_stride: a.row_stride, step_stride: a.col_stride, role: Role::Rows };
        let right =
            Lines { data: b.data, lines: dims.n, steps: dims.k, line_stride: b.col_stride, step_stride: b.row_stride, role: Role::Columns };
        (left, right)
    };
    // What is added to cannot be computed again: look first.
    if adds && !(0..dims.batch).all(|i| one(i).0.finite() && one(i).1.finite()) {
        return Err(NotFinite);
    }
    let finite = AtomicBool::new(true);
    let matrices = Part::batches(out, dims);
    let work = dims.m * dims.n * dims.k;
    let product = |par: Par<'_>, batch: usize, part: Part<'_>| {
        if finite.load(Ordering::Relaxed) {
            let (left, right) = one(batch);
            Product::new(amx, left, right, &finite).run(par, part);
        }
    };
    if dims.batch.saturating_mul(work) < SMALL {
        for_each(Par::Serial, matrices, |batch, part| product(Par::Serial, batch, part));
    } else if dims.batch >= 4 && work < 64 * SMALL {
        for_each(par, matrices, |batch, part| product(Par::Serial, batch, part));
    } else {
        for (batch, part) in matrices.into_iter().enumerate() {
            product(par, batch, part);
        }
    }
    if finite.into_inner() { Ok(()) } else { Err(NotFinite) }
}

/// One matrix product with its roles settled.
struct Product<'a> {
    amx: Amx,
    stationary: Lines<'a>,
    moving: Lines<'a>,
    /// The moving operand is the left factor of the product as the caller gave it.
    moving_is_left: bool,
    finite: &'a AtomicBool,
}

impl<'a> Product<'a> {
    fn new(amx: Amx, mut left: Lines<'a>, mut right: Lines<'a>, finite: &'a AtomicBool) -> Self {
        let straight = left.lines * left.cost(Role::Rows) + right.lines * right.cost(Role::Columns);
        let swapped = left.lines * left.cost(Role::Columns) + right.lines * right.cost(Role::Rows);
        if swapped < straight {
            (left.role, right.role) = (Role::Columns, Role::Rows);
        }
        let moving_is_left = left.lines >= right.lines;
        let (moving, stationary) = if moving_is_left { (left, right) } else { (right, left) };
        Product { amx, stationary, moving, moving_is_left, finite }
    }

    fn run(&self, par: Par<'_>, part: Part<'_>) {
        let mut part = if self.moving_is_left { part } else { part.transposed() };
        let blocks = self.moving.steps.div_ceil(TILE);
        let stretches = blocks.div_ceil(DEPTH);
        let depth = blocks.div_ceil(stretches);
        let panel_bytes = BLOCK * size_of::<u16>();
        let width = (STATIONARY / (depth * panel_bytes)).min(STATIONARY_TOTAL / (blocks * panel_bytes)).max(1);
        let threads = if let Par::Pool(pool) = par { pool.threads() } else { 1 };
        for first in (0..self.stationary.panels()).step_by(width) {
            let width = width.min(self.stationary.panels() - first);
            // Scheduling only. Several parts a thread balance the load; over a long contraction every part reads all of the
            // stationary panels again, so there are fewer, with sums between stretches that stay in the cache.
            let parts = threads * [4, 2, 2, 2, 1][(stretches - 1).min(4)];
            let mut height = self.moving.panels().div_ceil(parts).clamp(1, 64);
            if stretches > 1 {
                height = height.min((SUMS / (width * TILE_LEN * size_of::<f32>())).max(1));
            }
            scratch::u16s(blocks * width * BLOCK, |buffer| {
                let shared = Shared::new(self.stationary.starting_at(first * TILE), buffer, width, blocks, depth);
                let parts = part.split_rows(height * TILE);
                for_each(par, parts, |i, part| self.part(&shared, first, i * height, part));
            });
        }
    }

    /// Multiplies the moving panels from `panel` on that make up `part` with the shared ones.
    fn part(&self, shared: &Shared<'_>, first: usize, panel: usize, mut part: Part<'_>) {
        let panels = part.rows.div_ceil(TILE);
        let (width, depth) = (shared.width, shared.depth);
        let stretches = shared.blocks.div_ceil(depth);
        let kept = if stretches > 1 { panels * width } else { 1 };
        scratch::f32s(kept * TILE_LEN, |sums| {
            let at_a_time = self.moving.group();
            scratch::moving(at_a_time * depth * BLOCK, |packed| {
                for stretch in 0..stretches {
                    let range = stretch * depth..((stretch + 1) * depth).min(shared.blocks);
                    let length = range.len() * BLOCK;
                    shared.prepare(self, stretch);
                    for group in (0..panels).step_by(at_a_time) {
                        let members = at_a_time.min(panels - group);
                        if !self.moving.pack(self.amx, panel + group, members, range.clone(), packed) {
                            self.finite.store(false, Ordering::Relaxed);
                        }
                        if !self.finite.load(Ordering::Relaxed) {
                            return;
                        }
                        let tiles = Tiles::configure(self.amx);
                        for j in 0..width {
                            let fixed = shared.panel(self, stretch, j);
                            for (i, moving) in packed.chunks_exact(length).take(members).enumerate() {
                                let (row, col) = ((group + i) * TILE, (first + j) * TILE);
                                let at = if stretches > 1 { (group + i) * width + j } else { 0 };
                                let sum = &mut sums[at * TILE_LEN..][..TILE_LEN];
                                let last = stretch + 1 == stretches;
                                if last {
                                    part.prefetch(row, col);
                                }
                                if self.moving.role == Role::Rows {
                                    tiles.multiply(moving, fixed, sum, stretch > 0);
                                } else {
                                    tiles.multiply(fixed, moving, sum, stretch > 0);
                                }
                                if last {
                                    let (rows, cols) = (TILE.min(part.rows - row), TILE.min(part.cols - col));
                                    part.store_tile(row, col, rows, cols, sum, self.moving.role == Role::Columns);
                                }
                            }
                        }
                    }
                }
            });
        });
    }
}

/// Panels of the stationary operand, packed by whichever thread needs one first.
struct Shared<'a> {
    source: Lines<'a>,
    width: usize,
    blocks: usize,
    depth: usize,
    /// One per (stretch, panel).
    cells: Vec<Cell<'a>>,
    /// Per stretch: the first panel that no thread has set about.
    next: Vec<AtomicUsize>,
}

struct Cell<'a> {
    room: Mutex<Option<&'a mut [u16]>>,
    packed: OnceLock<&'a [u16]>,
}

impl<'a> Shared<'a> {
    fn new(source: Lines<'a>, buffer: &'a mut [u16], width: usize, blocks: usize, depth: usize) -> Self {
        let mut cells = Vec::new();
        for stretch in buffer.chunks_mut(width * depth * BLOCK) {
            let length = stretch.len() / width;
            let cell = |room| Cell { room: Mutex::new(Some(room)), packed: OnceLock::new() };
            cells.extend(stretch.chunks_exact_mut(length).map(cell));
        }
        let next = (0..cells.len() / width).map(|_| AtomicUsize::new(0)).collect();
        Shared { source, width, blocks, depth, cells, next }
    }

    /// Returns when all panels of a stretch are packed, having packed those that nobody else was about to.
    fn prepare(&self, product: &Product<'_>, stretch: usize) {
        loop {
            let panel = self.next[stretch].fetch_add(1, Ordering::Relaxed);
            if panel >= self.width {
                break;
            }
            self.panel(product, stretch, panel);
        }
        for panel in 0..self.width {
            self.panel(product, stretch, panel);
        }
    }

    fn panel(&self, product: &Product<'_>, stretch: usize, panel: usize) -> &'a [u16] {
        let cell = &self.cells[stretch * self.width + panel];
        cell.packed.get_or_init(|| {
            let room = cell.room.lock().unwrap_or_else(PoisonError::into_inner).take();
            let room = room.unwrap_or_default();
            let range = stretch * self.depth..((stretch + 1) * self.depth).min(self.blocks);
            if !self.source.pack(product.amx, panel, 1, range, room) {
                product.finite.store(false, Ordering::Relaxed);
            }
            room
        })
    }
}
