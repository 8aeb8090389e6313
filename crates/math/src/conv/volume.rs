//! Three-dimensional convolutions of NDHWC volumes with DHWIO filters, as two-dimensional ones.
//!
//! The planes that the taps of the filter see at one output plane are laid side by side as channels: an output plane is then
//! the convolution of one image with `taps · channels` channels. Volumes are taken some planes at a time, so that what is laid
//! out stays small.

use std::ops::Range;

use super::{Conv2d, Element, Padding, Window, backprop_filter, backprop_input, forward};
use crate::gemm::Epilogue;
use crate::par::{Par, rows_mut};

/// Elements laid out at a time, but for a single plane that has more.
const BUDGET: usize = 8 << 20;

/// The sizes of a three-dimensional convolution: input NDHWC, filter DHWIO, output NDHWC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv3d {
    /// The convolution of one image per output plane, its channels being those of all taps.
    plane: Conv2d,
    /// Number of volumes.
    batch: usize,
    /// Planes of the input.
    depth: usize,
    /// Channels of the input.
    channels: usize,
    /// Planes of the filter.
    taps: usize,
    /// Step of the window from plane to plane.
    stride: usize,
    /// Zero planes before the first one.
    before: usize,
    /// Planes of the output.
    out_depth: usize,
}

impl Conv3d {
    /// Sizes from an input `[n, d, h, w, c]` and a filter `[d, h, w, c, out]`.
    ///
    /// `None` if the filter does not fit (see [`Window::new`]), a stride is zero, the channels differ or are none.
    pub fn new(
        input: [usize; 5],
        filter: [usize; 5],
        stride: [usize; 3],
        padding: Padding,
    ) -> Option<Self> {
        let [batch, depth, height, width, channels] = input;
        let [taps, rows, columns, filter_channels, out_channels] = filter;
        if channels != filter_channels || channels == 0 || stride[0] == 0 {
            return None;
        }
        let planes = Window::new(0, depth, taps, 1, stride[0], padding)?;
        let inner = channels.checked_mul(taps)?;
        let plane = Conv2d::new(
            [batch.checked_mul(planes.output)?, height, width, inner],
            [rows, columns, inner, out_channels],
            [stride[1], stride[2]],
            [1, 1],
            padding,
        )?;
        Some(Self {
            plane,
            batch,
            depth,
            channels,
            taps,
            stride: stride[0],
            before: planes.before,
            out_depth: planes.output,
        })
    }

    /// The sizes of the output.
    pub fn output(&self) -> [usize; 5] {
        let [height, width] = self.plane.output;
        let out = self.plane.out_channels;
        [self.batch, self.out_depth, height, width, out]
    }

    /// Elements that are laid out at a time, at least.
    pub fn scratch(&self) -> usize {
        if self.is_flat() {
            return 0;
        }
        let [height, width] = self.plane.input;
        let pixels = height.saturating_mul(width);
        pixels.saturating_mul(self.plane.in_channels)
    }

    /// Elements of one plane of the input.
    fn plane_len(&self) -> usize {
        self.plane.input[0] * self.plane.input[1] * self.channels
    }

    /// Whether planes do not mix: each output plane sees the input plane of the same number.
    fn is_flat(&self) -> bool {
        self.taps == 1 && self.stride == 1
    }

    /// The output planes of all volumes in runs that can be laid out.
    fn runs(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let planes = self.plane.batch;
        let per_plane = (self.plane_len() * self.taps).max(1);
        let step = (BUDGET / per_plane).max(1);
        (0..planes)
            .step_by(step)
            .map(move |first| first..planes.min(first + step))
    }

    /// The convolution of some of the output planes.
    fn of_planes(&self, planes: usize) -> Conv2d {
        Conv2d {
            batch: planes,
            ..self.plane
        }
    }

    /// Elements of one plane of the output.
    fn out_len(&self) -> usize {
        self.plane.output[0] * self.plane.output[1] * self.plane.out_channels
    }

    /// The input plane, of those of all volumes, that `tap` sees at output plane `out`.
    fn seen(&self, out: usize, tap: usize) -> Option<usize> {
        let at = (out % self.out_depth * self.stride + tap).checked_sub(self.before)?;
        (at < self.depth).then(|| out / self.out_depth * self.depth + at)
    }

    /// The output plane, of those of all volumes, that sees input plane `at` by `tap`.
    fn seeing(&self, at: usize, tap: usize) -> Option<usize> {
        let place = (at % self.depth + self.before).checked_sub(tap)?;
        let out = place / self.stride;
        (place.is_multiple_of(self.stride) && out < self.out_depth)
            .then(|| at / self.depth * self.out_depth + out)
    }
}

/// Lays the planes that output planes see side by side.
fn lay_out<T: Element>(
    par: &dyn Par,
    conv: &Conv3d,
    input: &[T],
    planes: Range<usize>,
    packed: &mut [T],
) {
    let (channels, taps, len) = (conv.channels, conv.taps, conv.plane_len());
    rows_mut(par, packed, len * taps, 1, |first, images| {
        for (n, image) in images.chunks_exact_mut(len * taps).enumerate() {
            for tap in 0..taps {
                let pixels = image.chunks_exact_mut(channels * taps);
                let pixels = pixels.map(|pixel| &mut pixel[tap * channels..(tap + 1) * channels]);
                match conv.seen(planes.start + first + n, tap) {
                    Some(at) => {
                        let from = input[at * len..(at + 1) * len].chunks_exact(channels);
                        pixels
                            .zip(from)
                            .for_each(|(to, from)| to.copy_from_slice(from));
                    }
                    None => pixels.for_each(|pixel| pixel.fill(T::ZERO)),
                }
            }
        }
    });
}

/// Adds what was computed for planes laid side by side to the planes themselves.
fn add_back<T: Element>(
    par: &dyn Par,
    conv: &Conv3d,
    packed: &[T],
    planes: Range<usize>,
    input: &mut [T],
) {
    let (channels, taps, len) = (conv.channels, conv.taps, conv.plane_len());
    rows_mut(par, input, len, 1, |first, images| {
        for (n, image) in images.chunks_exact_mut(len).enumerate() {
            for tap in 0..taps {
                let Some(out) = conv
                    .seeing(first + n, tap)
                    .filter(|out| planes.contains(out))
                else {
                    continue;
                };
                let from = &packed[(out - planes.start) * len * taps..][..len * taps];
                let from = from.chunks_exact(channels * taps);
                for (to, from) in image.chunks_exact_mut(channels).zip(from) {
                    for (to, &from) in to.iter_mut().zip(&from[tap * channels..]) {
                        *to = to.plus(from);
                    }
                }
            }
        }
    });
}

/// Calls `body(volume, image)` with the places of each block of a filter: in `[d, h, w, c, out]` and in `[h, w, d · c, out]`.
fn for_blocks(conv: &Conv3d, mut body: impl FnMut(Range<usize>, Range<usize>)) {
    let block = conv.channels * conv.plane.out_channels;
    let nth = |n: usize| n * block..(n + 1) * block;
    let places = conv.plane.filter[0] * conv.plane.filter[1];
    for tap in 0..conv.taps {
        for place in 0..places {
            body(nth(tap * places + place), nth(place * conv.taps + tap));
        }
    }
}

/// The filter of the convolution of planes.
fn plane_filter<T: Element>(conv: &Conv3d, filter: &[T]) -> Vec<T> {
    let mut planes = vec![T::ZERO; filter.len()];
    for_blocks(conv, |volume, image| {
        planes[image].copy_from_slice(&filter[volume]);
    });
    planes
}

/// `output = input * filter`.
///
/// # Panics
/// If a slice is not as long as the sizes say.
pub fn forward_3d<T: Element>(
    par: &dyn Par,
    conv: &Conv3d,
    input: &[T],
    filter: &[T],
    output: &mut [T],
) {
    if conv.is_flat() {
        return forward(par, &conv.plane, input, filter, output, Epilogue::None);
    }
    let filter = plane_filter(conv, filter);
    let (len, out_len) = (conv.plane_len() * conv.taps, conv.out_len());
    let mut packed = Vec::new();
    for run in conv.runs() {
        packed.resize(run.len() * len, T::ZERO);
        lay_out(par, conv, input, run.clone(), &mut packed);
        let output = &mut output[run.start * out_len..run.end * out_len];
        let plane = conv.of_planes(run.len());
        forward(par, &plane, &packed, &filter, output, Epilogue::None);
    }
}

/// `input` becomes the gradient with respect to the input, for the gradient `grad` of the output.
///
/// # Panics
/// As [`forward_3d`].
pub fn backprop_input_3d<T: Element>(
    par: &dyn Par,
    conv: &Conv3d,
    filter: &[T],
    grad: &[T],
    input: &mut [T],
) {
    if conv.is_flat() {
        return backprop_input(par, &conv.plane, filter, grad, input);
    }
    let filter = plane_filter(conv, filter);
    let (len, out_len) = (conv.plane_len() * conv.taps, conv.out_len());
    let mut packed = Vec::new();
    input.fill(T::ZERO);
    for run in conv.runs() {
        packed.resize(run.len() * len, T::ZERO);
        let grad = &grad[run.start * out_len..run.end * out_len];
        backprop_input(par, &conv.of_planes(run.len()), &filter, grad, &mut packed);
        add_back(par, conv, &packed, run, input);
    }
}

/// `filter` becomes the gradient with respect to the filter, for the gradient `grad` of the output.
///
/// # Panics
/// As [`forward_3d`].
pub fn backprop_filter_3d<T: Element>(
    par: &dyn Par,
    conv: &Conv3d,
    input: &[T],
    grad: &[T],
    filter: &mut [T],
) {
    if conv.is_flat() {
        return backprop_filter(par, &conv.plane, input, grad, filter);
    }
    let (len, out_len) = (conv.plane_len() * conv.taps, conv.out_len());
    let (mut packed, mut part) = (Vec::new(), vec![T::ZERO; filter.len()]);
    filter.fill(T::ZERO);
    for run in conv.runs() {
        packed.resize(run.len() * len, T::ZERO);
        lay_out(par, conv, input, run.clone(), &mut packed);
        let grad = &grad[run.start * out_len..run.end * out_len];
        backprop_filter(par, &conv.of_planes(run.len()), &packed, grad, &mut part);
        for_blocks(conv, |volume, image| {
            for (to, &from) in filter[volume].iter_mut().zip(&part[image]) {
                *to = to.plus(from);
            }
        });
    }
}
