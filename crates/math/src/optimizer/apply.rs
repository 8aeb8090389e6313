//! The loops that all rules share: one pass over weights, slots and gradient; dense, or by rows that indices name.

use super::weight::{Weight, Wide};
use crate::disjoint::Disjoint;
use crate::movement::prefetch::prefetch;
use crate::movement::scatter::{for_each_ahead, for_owned_rows};
use crate::movement::{BadIndex, Index, check_indices};
use crate::num::isa::multiversion;
use crate::par::Par;

/// Elements per task.
const GRAIN: usize = 16 * 1024;
/// Elements updated together: few enough for their copies to live in registers, where nothing can alias them.
const BLOCK: usize = 16;

/// How one weight and its `SLOTS` slots change by one element of a gradient.
pub trait Rule<W: Wide, const SLOTS: usize>: Copy + Send + Sync {
    /// The new weight and slots.
    fn step(self, var: W, slots: [W; SLOTS], grad: W) -> (W, [W; SLOTS]);
}

/// Weights, their slots and a gradient, all of one length.
#[doc(hidden)]
pub struct Part<'a, T, const SLOTS: usize> {
    pub(super) var: &'a mut [T],
    pub(super) slots: [&'a mut [T]; SLOTS],
    pub(super) grad: &'a [T],
}

/// The loop of a [`Rule`], behind a pointer: all else here is compiled once for all rules.
#[doc(hidden)]
pub trait Update<W: Wide, const SLOTS: usize>: Sync {
    /// Updates what is there to compute in, on this thread.
    fn update(&self, part: Part<'_, W, SLOTS>);
}

impl<W: Wide, R: Rule<W, SLOTS>, const SLOTS: usize> Update<W, SLOTS> for R {
    fn update(&self, part: Part<'_, W, SLOTS>) {
        run(Pass { rule: *self, part });
    }
}

/// Updates all of `var` and its `slots` by a gradient of the same length.
///
/// # Panics
/// If lengths differ.
pub fn apply<T: Weight, const SLOTS: usize>(
    par: &dyn Par,
    rule: &dyn Update<T::Wide, SLOTS>,
    var: &mut [T],
    slots: [&mut [T]; SLOTS],
    grad: &[T],
) {
    let len = var.len();
    assert_eq!(grad.len(), len, "gradient and weights differ in length");
    for slot in &slots {
        assert_eq!(slot.len(), len, "slot and weights differ in length");
    }
    let var = Disjoint::new(var);
    let slots = slots.map(Disjoint::new);
    par.for_each(len, GRAIN, &|range| {
        let (start, len) = (range.start, range.len());
        let part = Part {
            // SAFETY: ranges are disjoint, by `Par`.
            var: unsafe { var.slice(start, len) },
            // SAFETY: as above.
            slots: std::array::from_fn(|i| unsafe { slots[i].slice(start, len) }),
            grad: &grad[range],
        };
        T::update(rule, part);
    });
}

/// Updates the rows of `var` and its `slots` that `indices` name by the rows of a gradient, in the order of the indices.
///
/// Nothing changes if an index is bad.
///
/// # Panics
/// If `var` is not whole rows, a slot has another length, or the gradient has not a row for each index.
pub fn apply_sparse<T, I, const SLOTS: usize>(
    par: &dyn Par,
    rule: &dyn Update<T::Wide, SLOTS>,
    row_len: usize,
    var: &mut [T],
    slots: [&mut [T]; SLOTS],
    indices: &[I],
    grad: &[T],
) -> Result<(), BadIndex>
where
    T: Weight,
    I: Index,
{
    let len = var.len();
    assert!(row_len > 0 || len == 0, "rows have no elements");
    let rows = len / row_len.max(1);
    assert_eq!(rows * row_len, len, "weights are not whole rows");
    assert_eq!(grad.len(), indices.len() * row_len, "rows of the gradient");
    for slot in &slots {
        assert_eq!(slot.len(), len, "slot and weights differ in length");
    }
    check_indices(indices, rows)?;
    let var = Disjoint::new(var);
    let slots = slots.map(Disjoint::new);
    for_owned_rows(par, indices, row_len * (2 + SLOTS), &|own| {
        let row = |position: usize| {
            let at = indices[position].position() * row_len;
            Part {
                // SAFETY: this task alone has the row, by `for_owned_rows`, and uses one part at a time.
                var: unsafe { var.slice(at, row_len) },
                // SAFETY: as above.
                slots: std::array::from_fn(|i| unsafe { slots[i].slice(at, row_len) }),
                grad: &grad[position * row_len..(position + 1) * row_len],
            }
        };
        for_each_ahead(
            own,
            |position| {
                let part = row(position);
                prefetch(part.var);
                for slot in part.slots {
                    prefetch(slot);
                }
                prefetch(part.grad);
            },
            |position| T::update(rule, row(position)),
        );
    });
    Ok(())
}

/// Updates weights of another type than is computed in, some at a time.
pub(super) fn update_narrow<T: Weight, const SLOTS: usize>(
    rule: &dyn Update<T::Wide, SLOTS>,
    mut part: Part<'_, T, SLOTS>,
) {
    const SOME: usize = 256;
    let zeros = [T::Wide::default(); SOME];
    let (mut var, mut slots, mut grad) = (zeros, [zeros; SLOTS], zeros);
    for at in (0..part.var.len()).step_by(SOME) {
        let len = SOME.min(part.var.len() - at);
        T::widen(&part.var[at..at + len], &mut var[..len]);
        T::widen(&part.grad[at..at + len], &mut grad[..len]);
        for (wide, slot) in slots.iter_mut().zip(&part.slots) {
            T::widen(&slot[at..at + len], &mut wide[..len]);
        }
        rule.update(Part {
            var: &mut var[..len],
            slots: slots.each_mut().map(|slot| &mut slot[..len]),
            grad: &grad[..len],
        });
        T::narrow(&var[..len], &mut part.var[at..at + len]);
        for (wide, slot) in slots.iter().zip(&mut part.slots) {
            T::narrow(&wide[..len], &mut slot[at..at + len]);
        }
    }
}

/// A rule and what it is for.
struct Pass<'a, W, R, const SLOTS: usize> {
    rule: R,
    part: Part<'a, W, SLOTS>,
}

/// A loop to be compiled for each instruction set.
trait Work {
    fn work(self);
}

impl<W: Wide, R: Rule<W, SLOTS>, const SLOTS: usize> Work for Pass<'_, W, R, SLOTS> {
    #[inline(always)]
    fn work(mut self) {
        let whole = self.part.var.len() / BLOCK * BLOCK;
        for at in (0..whole).step_by(BLOCK) {
            self.block(at, BLOCK);
        }
        self.block(whole, self.part.var.len() - whole);
    }
}

impl<W: Wide, R: Rule<W, SLOTS>, const SLOTS: usize> Pass<'_, W, R, SLOTS> {
    #[inline(always)]
    fn block(&mut self, at: usize, len: usize) {
        let part = &mut self.part;
        let zero = W::default();
        let mut var = [zero; BLOCK];
        let mut grad = [zero; BLOCK];
        let mut slots = [[zero; BLOCK]; SLOTS];
        var[..len].copy_from_slice(&part.var[at..at + len]);
        grad[..len].copy_from_slice(&part.grad[at..at + len]);
        for (copy, slot) in slots.iter_mut().zip(&part.slots) {
            copy[..len].copy_from_slice(&slot[at..at + len]);
        }
        // By index: iterators over so few slots are calls where the compiler has several units, and hide the loop from it.
        for i in 0..len {
            let mut old = [zero; SLOTS];
            for slot in 0..SLOTS {
                old[slot] = slots[slot][i];
            }
            let (weight, new) = self.rule.step(var[i], old, grad[i]);
            var[i] = weight;
            for slot in 0..SLOTS {
                slots[slot][i] = new[slot];
            }
        }
        part.var[at..at + len].copy_from_slice(&var[..len]);
        for (copy, slot) in slots.iter().zip(&mut part.slots) {
            slot[at..at + len].copy_from_slice(&copy[..len]);
        }
    }
}

#[inline(always)]
fn run_body<U: Work>(update: U) {
    update.work();
}

multiversion! { fn run<U: Work>(update: U) = run_body; }
