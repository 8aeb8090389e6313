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

/// Updates all of `var` and its `slots` by a gradient of the same length.
///
/// # Panics
/// If lengths differ.
pub fn apply<T: Weight, R: Rule<T::Wide, SLOTS>, const SLOTS: usize>(
    par: &dyn Par,
    rule: R,
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
        run(Update {
            rule,
            // SAFETY: ranges are disjoint, by `Par`.
            var: unsafe { var.slice(start, len) },
            // SAFETY: as above.
            slots: std::array::from_fn(|i| unsafe { slots[i].slice(start, len) }),
            grad: &grad[range],
        });
    });
}

/// Updates the rows of `var` and its `slots` that `indices` name by the rows of a gradient, in the order of the indices.
///
/// Nothing changes if an index is bad.
///
/// # Panics
/// If `var` is not whole rows, a slot has another length, or the gradient has not a row for each index.
pub fn apply_sparse<T, R, I, const SLOTS: usize>(
    par: &dyn Par,
    rule: R,
    row_len: usize,
    var: &mut [T],
    slots: [&mut [T]; SLOTS],
    indices: &[I],
    grad: &[T],
) -> Result<(), BadIndex>
where
    T: Weight,
    R: Rule<T::Wide, SLOTS>,
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
            Update {
                rule,
                // SAFETY: this task alone has the row, by `for_owned_rows`, and uses one update at a time.
                var: unsafe { var.slice(at, row_len) },
                // SAFETY: as above.
                slots: std::array::from_fn(|i| unsafe { slots[i].slice(at, row_len) }),
                grad: &grad[position * row_len..(position + 1) * row_len],
            }
        };
        for_each_ahead(
            own,
            |position| {
                let update = row(position);
                prefetch(update.var);
                for slot in update.slots {
                    prefetch(slot);
                }
                prefetch(update.grad);
            },
            |position| run(row(position)),
        );
    });
    Ok(())
}

/// A rule and the elements it is for, all of one length.
struct Update<'a, T, R, const SLOTS: usize> {
    rule: R,
    var: &'a mut [T],
    slots: [&'a mut [T]; SLOTS],
    grad: &'a [T],
}

/// A loop to be compiled for each instruction set.
trait Work {
    fn work(self);
}

impl<T: Weight, R: Rule<T::Wide, SLOTS>, const SLOTS: usize> Work for Update<'_, T, R, SLOTS> {
    #[inline(always)]
    fn work(mut self) {
        let whole = self.var.len() / BLOCK * BLOCK;
        for at in (0..whole).step_by(BLOCK) {
            self.block(at, BLOCK);
        }
        self.block(whole, self.var.len() - whole);
    }
}

impl<T: Weight, R: Rule<T::Wide, SLOTS>, const SLOTS: usize> Update<'_, T, R, SLOTS> {
    #[inline(always)]
    fn block(&mut self, at: usize, len: usize) {
        let zero = T::Wide::default();
        let mut var = [zero; BLOCK];
        let mut grad = [zero; BLOCK];
        let mut slots = [[zero; BLOCK]; SLOTS];
        T::widen(&self.var[at..at + len], &mut var[..len]);
        T::widen(&self.grad[at..at + len], &mut grad[..len]);
        for (wide, slot) in slots.iter_mut().zip(&self.slots) {
            T::widen(&slot[at..at + len], &mut wide[..len]);
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
        T::narrow(&var[..len], &mut self.var[at..at + len]);
        for (wide, slot) in slots.iter().zip(&mut self.slots) {
            T::narrow(&wide[..len], &mut slot[at..at + len]);
        }
    }
}

#[inline(always)]
fn run_body<U: Work>(update: U) {
    update.work();
}

multiversion! { fn run<U: Work>(update: U) = run_body; }
