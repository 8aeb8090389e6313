//! Convolutions whose every group has one input channel: no sums over channels, so vectors run along the channels.
//!
//! All three passes see one channel for each output channel: an input channel with several of them is repeated in the copied
//! rows, and its gradients are added up at the end.

use std::ops::Range;
use std::sync::Mutex;

use super::Conv2d;
use super::depthwise_rows::{Taps, filter_row, row};
use super::slab::{Columns, Images};
use crate::gemm::scratch::{self, Plain};
use crate::gemm::{Element, Epilogue};
use crate::par::{Par, Serial, rows_mut};

/// Elements of a band: it stays in the second-level cache.
const BAND: usize = 24 << 10;
/// Multiply-adds below which one thread is enough.
const PARALLEL_WORK: usize = 400_000;

/// Whether this module handles the shape.
pub(super) fn applies(conv: &Conv2d) -> bool {
    conv.groups > 1 && conv.group_in() == 1
}

fn parallel<'a>(par: &'a dyn Par, conv: &Conv2d) -> &'a dyn Par {
    if conv.work() < PARALLEL_WORK {
        &Serial
    } else {
        par
    }
}

/// Rows of an image whose channels are repeated `times` times.
fn with_repeated<T: Element + Plain>(
    images: &Images,
    times: usize,
    data: &[T],
    n: usize,
    rows: Range<usize>,
    columns: Columns,
    body: impl FnOnce(&[T], usize),
) {
    let count = rows.len();
    images.with_rows(0, data, n..n + 1, rows, columns, |slab| {
        if times == 1 {
            return body(slab.data, slab.pitch);
        }
        let line = columns.len * images.channels;
        scratch::with(1, count * line * times, |room: &mut [T]| {
            for (r, to) in room.chunks_exact_mut((line * times).max(1)).enumerate() {
                let from = &slab.data[r * slab.pitch..][..line];
                for (to, &x) in to.chunks_exact_mut(times).zip(from) {
                    to.fill(x);
                }
            }
            body(room, line * times);
        });
    });
}

/// Input rows that output rows `rows` see, clipped to the image.
fn input_rows(conv: &Conv2d, rows: &Range<usize>) -> Range<usize> {
    let clip = |at: usize| at.saturating_sub(conv.before[0]).min(conv.input[0]);
    let last = (rows.end - 1) * conv.stride[0] + (conv.filter[0] - 1) * conv.dilation[0];
    clip(rows.start * conv.stride[0])..clip(last + 1)
}

/// The columns all windows of an output row see.
fn input_columns(conv: &Conv2d) -> Columns {
    Columns {
        begin: -(conv.before[1] as isize),
        len: (conv.output[1] - 1) * conv.stride[1] + (conv.filter[1] - 1) * conv.dilation[1] + 1,
    }
}

fn input_images(conv: &Conv2d) -> Images {
    Images {
        height: conv.input[0],
        width: conv.input[1],
        pixel: conv.in_channels,
        channels: conv.in_channels,
        first: 0,
    }
}

/// `output = input * filter`, then the epilogue on each pixel.
pub(super) fn forward<T: Element + Plain>(
    par: &dyn Par,
    conv: &Conv2d,
    input: &[T],
    filter: &[T],
    output: &mut [T],
    epilogue: Epilogue<'_, T>,
) {
    let channels = conv.out_channels;
    let line = conv.output[1] * channels;
    let columns = input_columns(conv);
    let images = input_images(conv);
    let grain = (BAND / line).clamp(1, conv.output[0]);
    rows_mut(parallel(par, conv), output, line, grain, |first, lines| {
        for (n, rows, lines) in bands(first, conv.output[0], lines, line, grain) {
            let needed = input_rows(conv, &rows);
            let top = needed.start;
            with_repeated(
                &images,
                conv.group_out(),
                input,
                n,
                needed,
                columns,
                |slab, pitch| {
                    for (y, line) in rows.clone().zip(lines.chunks_exact_mut(line)) {
                        let mut taps = Taps::new(conv.stride[1] * channels, channels);
                        for tap in 0..conv.filter[0] {
                            let at = y * conv.stride[0] + tap * conv.dilation[0];
                            let Some(at) = at
                                .checked_sub(conv.before[0])
                                .filter(|&at| at < conv.input[0])
                            else {
                                continue;
                            };
                            for h in 0..conv.filter[1] {
                                let begin = (at - top) * pitch + h * conv.dilation[1] * channels;
                                taps.push(begin, (tap * conv.filter[1] + h) * channels);
                            }
                        }
                        row(slab, filter, &taps, channels, line);
                        if !matches!(epilogue, Epilogue::None) {
                            line.chunks_exact_mut(channels)
                                .for_each(|pixel| epilogue.apply(0, pixel));
                        }
                    }
                },
            );
        }
    });
}

/// The gradient with respect to the input.
pub(super) fn backprop_input<T: Element + Plain>(
    par: &dyn Par,
    conv: &Conv2d,
    filter: &[T],
    grad: &[T],
    input: &mut [T],
) {
    let (channels, times) = (conv.out_channels, conv.group_out());
    let line = conv.input[1] * conv.in_channels;
    let reach = ((conv.filter[1] - 1) * conv.dilation[1]) as isize;
    let (stride, before) = (conv.stride[1] as isize, conv.before[1] as isize);
    let begin = (before - reach).div_euclid(stride);
    let end = (conv.input[1] as isize - 1 + before).div_euclid(stride) + 1;
    let columns = Columns {
        begin,
        len: (end - begin) as usize,
    };
    let images = Images {
        height: conv.output[0],
        width: conv.output[1],
        pixel: channels,
        channels,
        first: 0,
    };
    let grain = (BAND / (line * times)).clamp(1, conv.input[0]);
    rows_mut(parallel(par, conv), input, line, grain, |first, lines| {
        for (n, rows, lines) in bands(first, conv.input[0], lines, line, grain) {
            let needed = grad_rows(conv, &rows);
            let top = needed.start;
            images.with_rows(0, grad, n..n + 1, needed, columns, |slab| {
                for (at, line) in rows.clone().zip(lines.chunks_exact_mut(line)) {
                    let each = |line: &mut [T]| {
                        for phase in 0..conv.stride[1].min(conv.input[1]) {
                            let taps = grad_taps(conv, at, phase, top, slab.pitch, columns);
                            row(
                                slab.data,
                                filter,
                                &taps,
                                channels,
                                &mut line[phase * channels..],
                            );
                        }
                    };
                    if times == 1 {
                        each(line);
                        continue;
                    }
                    scratch::with(1, conv.input[1] * channels, |room: &mut [T]| {
                        each(room);
                        for (to, from) in line.iter_mut().zip(room.chunks_exact(times)) {
                            *to = from.iter().fold(T::ZERO, |sum, &x| sum.plus(x));
                        }
                    });
                }
            });
        }
    });
}

/// Gradient rows that reach input rows `rows`, clipped.
fn grad_rows(conv: &Conv2d, rows: &Range<usize>) -> Range<usize> {
    let reach = (conv.filter[0] - 1) * conv.dilation[0];
    let begin = (rows.start + conv.before[0])
        .saturating_sub(reach)
        .div_ceil(conv.stride[0]);
    let end = (rows.end - 1 + conv.before[0]) / conv.stride[0] + 1;
    let end = end.min(conv.output[0]);
    begin.min(end)..end
}

/// Taps that carry gradient into the pixels `phase`, `phase + stride`, … of input row `at`.
fn grad_taps(
    conv: &Conv2d,
    at: usize,
    phase: usize,
    top: usize,
    pitch: usize,
    columns: Columns,
) -> Taps {
    let channels = conv.out_channels;
    let mut taps = Taps::new(channels, conv.stride[1] * channels);
    for v in 0..conv.filter[0] {
        let Some(y) = (at + conv.before[0]).checked_sub(v * conv.dilation[0]) else {
            continue;
        };
        if !y.is_multiple_of(conv.stride[0]) || y / conv.stride[0] >= conv.output[0] {
            continue;
        }
        for h in 0..conv.filter[1] {
            let x = (phase + conv.before[1]) as isize - (h * conv.dilation[1]) as isize;
            if x.rem_euclid(conv.stride[1] as isize) == 0 {
                let x = x.div_euclid(conv.stride[1] as isize) - columns.begin;
                let begin = (y / conv.stride[0] - top) * pitch + x.unsigned_abs() * channels;
                taps.push(begin, (v * conv.filter[1] + h) * channels);
            }
        }
    }
    taps
}

/// The gradient with respect to the filter; tasks have sums of their own, added up in order.
pub(super) fn backprop_filter<T: Element + Plain>(
    par: &dyn Par,
    conv: &Conv2d,
    input: &[T],
    grad: &[T],
    filter: &mut [T],
) {
    let par = parallel(par, conv);
    let channels = conv.out_channels;
    let lines = conv.batch * conv.output[0];
    let tasks = if par.threads() == 1 {
        1
    } else {
        (4 * par.threads()).min(lines)
    };
    let sums: Vec<Mutex<Vec<T>>> = (0..tasks).map(|_| Mutex::default()).collect();
    par.for_each(tasks, 1, &|range| {
        for task in range {
            let mut own = vec![T::ZERO; filter_len(conv)];
            let mut at = lines * task / tasks;
            let end = lines * (task + 1) / tasks;
            while at < end {
                let (n, y) = (at / conv.output[0], at % conv.output[0]);
                let most = (BAND / (conv.output[1] * channels)).max(1);
                let rows = y..conv.output[0].min(y + most.min(end - at));
                at += rows.len();
                add_band(conv, input, grad, n, rows, &mut own);
            }
            if let Ok(mut sum) = sums[task].lock() {
                *sum = own;
            }
        }
    });
    filter.fill(T::ZERO);
    for sum in sums {
        for (to, x) in filter.iter_mut().zip(sum.into_inner().unwrap_or_default()) {
            *to = to.plus(x);
        }
    }
}

fn filter_len(conv: &Conv2d) -> usize {
    conv.filter[0] * conv.filter[1] * conv.out_channels
}

fn add_band<T: Element + Plain>(
    conv: &Conv2d,
    input: &[T],
    grad: &[T],
    n: usize,
    rows: Range<usize>,
    sum: &mut [T],
) {
    let channels = conv.out_channels;
    let needed = input_rows(conv, &rows);
    let top = needed.start;
    let columns = input_columns(conv);
    with_repeated(
        &input_images(conv),
        conv.group_out(),
        input,
        n,
        needed,
        columns,
        |slab, pitch| {
            for y in rows {
                let line = conv.output[1] * channels;
                let grad = &grad[(n * conv.output[0] + y) * line..][..line];
                for tap in 0..conv.filter[0] {
                    let at = y * conv.stride[0] + tap * conv.dilation[0];
                    let Some(at) = at
                        .checked_sub(conv.before[0])
                        .filter(|&at| at < conv.input[0])
                    else {
                        continue;
                    };
                    let steps = [conv.stride[1] * channels, conv.dilation[1] * channels];
                    let width = conv.filter[1] * channels;
                    filter_row(
                        &slab[(at - top) * pitch..],
                        grad,
                        steps,
                        channels,
                        &mut sum[tap * width..][..width],
                    );
                }
            }
        },
    );
}

/// Cuts a run of lines of consecutive images into (image, rows, lines) of at most `most` rows.
fn bands<T>(
    first: usize,
    height: usize,
    mut lines: &mut [T],
    line: usize,
    most: usize,
) -> impl Iterator<Item = (usize, Range<usize>, &mut [T])> {
    let mut at = first;
    std::iter::from_fn(move || {
        let all = std::mem::take(&mut lines);
        if all.is_empty() {
            return None;
        }
        let (n, begin) = (at / height, at % height);
        let here = (height - begin).min(all.len() / line).min(most);
        let (head, tail) = all.split_at_mut(here * line);
        lines = tail;
        at += here;
        Some((n, begin..begin + here, head))
    })
}
