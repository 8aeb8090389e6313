//! Drives a two-input loop over the runs of two views, with a new output or one of the inputs as output.

use super::{BLOCK, Broadcast, Reader};
use crate::num::isa::Over2;
use crate::par::{Par, chunks_mut};

/// `out = f(a, b)`.
pub(crate) fn run2<T: Copy + Send + Sync, O: Send>(
    par: &dyn Par,
    broadcast: &Broadcast,
    grain: usize,
    (a, b): (&[T], &[T]),
    out: &mut [O],
    f: impl Fn(&[T], &[T], &mut [O]) + Sync,
) {
    check_len(broadcast, out.len());
    if broadcast.lhs.is_full() && broadcast.rhs.is_full() {
        assert!(
            a.len() == out.len() && b.len() == out.len(),
            "lengths of inputs and output differ"
        );
        chunks_mut(par, out, grain, |at, out| {
            let end = at + out.len();
            f(&a[at..end], &b[at..end], out);
        });
        return;
    }
    chunks_mut(par, out, grain, |mut at, mut out| {
        let mut a = Reader::new(&broadcast.lhs, a, out.len());
        let mut b = Reader::new(&broadcast.rhs, b, out.len());
        while !out.is_empty() {
            let run = out.len().min(a.run(at)).min(b.run(at));
            let (now, later) = out.split_at_mut(run);
            f(a.get(at, run), b.get(at, run), now);
            at += run;
            out = later;
        }
    });
}

/// `a = f(a, b)`; `a` has the output's shape. `over` is a loop that does it in place, if there is one.
pub(crate) fn run2_lhs<T: Copy + Default + Send + Sync>(
    par: &dyn Par,
    broadcast: &Broadcast,
    grain: usize,
    (a, b): (&mut [T], &[T]),
    over: Option<Over2<T>>,
    f: impl Fn(&[T], &[T], &mut [T]) + Sync,
) {
    assert!(
        broadcast.lhs.is_full(),
        "the left input is broadcast and cannot be the output"
    );
    check_len(broadcast, a.len());
    match over {
        Some(over) => over_in_place(par, &broadcast.rhs, grain, a, b, over),
        None => in_place(par, &broadcast.rhs, grain, a, b, f),
    }
}

/// `b = f(a, b)`; `b` has the output's shape. `over` is a loop that does it in place, given `b` first.
pub(crate) fn run2_rhs<T: Copy + Default + Send + Sync>(
    par: &dyn Par,
    broadcast: &Broadcast,
    grain: usize,
    (a, b): (&[T], &mut [T]),
    over: Option<Over2<T>>,
    f: impl Fn(&[T], &[T], &mut [T]) + Sync,
) {
    assert!(
        broadcast.rhs.is_full(),
        "the right input is broadcast and cannot be the output"
    );
    check_len(broadcast, b.len());
    match over {
        Some(over) => over_in_place(par, &broadcast.lhs, grain, b, a, over),
        None => in_place(par, &broadcast.lhs, grain, b, a, |b, a, out| f(a, b, out)),
    }
}

/// `mine = over(mine, other)`.
fn over_in_place<T: Copy + Send + Sync>(
    par: &dyn Par,
    view: &super::View,
    grain: usize,
    mine: &mut [T],
    other: &[T],
    over: Over2<T>,
) {
    chunks_mut(par, mine, grain, |mut at, mut mine| {
        let mut other = Reader::new(view, other, mine.len());
        while !mine.is_empty() {
            let run = mine.len().min(other.run(at));
            let (now, later) = mine.split_at_mut(run);
            over(now, other.get(at, run));
            at += run;
            mine = later;
        }
    });
}

/// `mine = f(mine, other)`: a block of `mine` is copied first, so that the loop sees no aliasing and vectorises.
fn in_place<T: Copy + Default + Send + Sync>(
    par: &dyn Par,
    view: &super::View,
    grain: usize,
    mine: &mut [T],
    other: &[T],
    f: impl Fn(&[T], &[T], &mut [T]) + Sync,
) {
    chunks_mut(par, mine, grain, |mut at, mine| {
        let mut other = Reader::new(view, other, mine.len());
        with_block(mine.len(), |buffer| {
            let mut mine = mine;
            while !mine.is_empty() {
                let run = mine.len().min(BLOCK).min(other.run(at));
                let (now, later) = mine.split_at_mut(run);
                let copy = &mut buffer[..run];
                copy.copy_from_slice(now);
                f(copy, other.get(at, run), now);
                at += run;
                mine = later;
            }
        });
    });
}

fn check_len(broadcast: &Broadcast, out: usize) {
    assert_eq!(
        broadcast.len(),
        out,
        "the length of the output is not that of the broadcast"
    );
}

/// Hands out a buffer of `min(len, BLOCK)` or more elements on the stack; small tensors do not pay for clearing a block.
#[inline]
pub(crate) fn with_block<T: Copy + Default>(len: usize, f: impl FnOnce(&mut [T])) {
    let (mut small, mut large);
    let buffer: &mut [T] = if len <= 16 {
        small = [T::default(); 16];
        &mut small
    } else {
        large = [T::default(); BLOCK];
        &mut large
    };
    f(buffer);
}
