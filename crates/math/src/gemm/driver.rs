//! How a real product is cut: for the caches, and for the threads.
//!
//! ```text
//! k ──► passes ──► the shorter side of C ──► sections, whose operand each thread packs once and keeps
//!                  the longer side of C  ──► strips, claimed by the threads one after the other ──► blocks
//! ```
//!
//! Every thread packs for itself, but for a large B: a second copy of a panel costs less than a meeting of the threads. Strips get
//! smaller towards the end, so that a thread that comes late or is slowed down does not hold up the rest.

use std::ops::Range;

use super::block::Product;
use super::simd::{Kernels, Real};
use super::{Dims, Job, thin};
use crate::par::{Par, Serial, crew};

/// Multiply-adds below which a second thread costs more than it brings, with vectors of eight.
pub(super) const PARALLEL_WORK: usize = 400_000;
/// Multiply-adds that are worth claiming.
const STRIP_WORK: usize = PARALLEL_WORK / 2;
/// Most strips for each thread.
const STRIPS: usize = 32;
/// Deepest pass that is sliced: bounds what is kept of a section.
const PASS_DEPTH: usize = 800;
/// Bytes of a section's operand that is kept; less in tests, where products are smaller.
const KEPT_BYTES: usize = if cfg!(test) { 3 << 20 } else { 8 << 20 };

/// Runs one checked product.
pub(super) fn run<T: Real>(par: &dyn Par, job: Job<'_, T>) {
    let kernels = T::kernels();
    if thin::applies(&job) {
        return thin::run(par, kernels, job);
    }
    run_blocks(par, kernels, job);
}

/// The blocked path with a given set of kernels.
pub(super) fn run_blocks<T: Real>(par: &dyn Par, kernels: &Kernels<T>, job: Job<'_, T>) {
    let Dims { m, n, k } = job.dims;
    let work = m.saturating_mul(n).saturating_mul(k);
    // Some 10 µs on one thread. A second one comes after one, and the wider the vectors, the slower cores begin with them.
    let alone = work < PARALLEL_WORK / 8 * kernels.lanes;
    let par = if alone { &Serial } else { par };
    let product = Product::new(kernels, job, par.threads());
    // The longer side is cut into strips: what the threads pack twice is the operand of the shorter one.
    let by_rows = m >= n;
    let (long, short) = if by_rows { (m, n) } else { (n, m) };
    let (strip_unit, section_unit) = if by_rows {
        (kernels.rows(), kernels.columns())
    } else {
        (kernels.columns(), kernels.rows())
    };
    for ks in pieces(0..k, PASS_DEPTH.max(product.whole_depth()), 1) {
        let most = KEPT_BYTES / size_of::<T>() / ks.len();
        for section in pieces(0..short, most, section_unit) {
            let work = long * section.len() * ks.len();
            let strips = (work / STRIP_WORK).clamp(par.threads(), STRIPS * par.threads());
            let grain = long.div_ceil(strips).next_multiple_of(strip_unit);
            if by_rows {
                product.with_shared_b(par, &ks, &section, |shared_b| {
                    crew(par, long, grain, &|claims| {
                        product.row_strips(&ks, &section, shared_b, claims);
                    });
                });
            } else {
                crew(par, long, grain, &|claims| {
                    product.column_strips(&ks, &section, claims);
                });
            }
        }
    }
}

/// Cuts a range as evenly as can be into pieces of at most `most`, or of one unit, each but the last a multiple of the unit.
pub(super) fn pieces(
    whole: Range<usize>,
    most: usize,
    unit: usize,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let units = whole.len().div_ceil(unit);
    let count = units.div_ceil((most / unit).max(1));
    let at = move |i: usize| whole.end.min(whole.start + units * i / count * unit);
    (0..count).map(move |i| at(i)..at(i + 1))
}
