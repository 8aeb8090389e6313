//! A band of image rows as the register tiles want it: padded left and right, one group's channels only.

use std::ops::Range;

use crate::gemm::Element;
use crate::gemm::scratch::{self, Plain};

/// The images a window moves over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Images {
    pub(super) height: usize,
    pub(super) width: usize,
    /// Elements between two pixels.
    pub(super) pixel: usize,
    /// Channels in use, from `first` on.
    pub(super) channels: usize,
    pub(super) first: usize,
}

/// The columns the windows of one output row see: from `begin`, which may lie left of the image, `len` pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub(super) begin: isize,
    pub(super) len: usize,
}

/// Rows of images in memory: column `c` of row `r` begins at `(r - top) * pitch + c * channels`, `image` after the image before.
#[derive(Clone, Copy)]
pub(super) struct Slab<'a, T> {
    pub(super) data: &'a [T],
    pub(super) pitch: usize,
    pub(super) image: usize,
    pub(super) top: usize,
}

impl Images {
    fn image(&self) -> usize {
        self.height * self.width * self.pixel
    }

    /// Whether rows can be used where they are.
    fn in_place(&self, columns: Columns) -> bool {
        let inside =
            usize::try_from(columns.begin).is_ok_and(|begin| begin + columns.len <= self.width);
        inside && self.pixel == self.channels
    }

    /// Calls `body` with `rows` of some images, copied into this thread's scratch `slot` if need be.
    pub(super) fn with_rows<T: Element + Plain, R>(
        &self,
        slot: usize,
        data: &[T],
        images: Range<usize>,
        rows: Range<usize>,
        columns: Columns,
        body: impl FnOnce(Slab<'_, T>) -> R,
    ) -> R {
        let (top, line) = (rows.start, self.width * self.pixel);
        if self.in_place(columns) {
            let first = top * line + columns.begin.unsigned_abs() * self.pixel;
            let all = &data[images.start * self.image()..images.end * self.image()];
            let data = all.get(first..).unwrap_or_default();
            return body(Slab {
                data,
                pitch: line,
                image: self.image(),
                top,
            });
        }
        let pitch = columns.len * self.channels;
        let image = rows.len() * pitch;
        scratch::with(slot, images.len() * image, |room: &mut [T]| {
            for (i, n) in images.enumerate() {
                let from = &data[n * self.image()..][..self.image()];
                let to = room[i * image..][..image].chunks_exact_mut(pitch);
                for (r, to) in rows.clone().zip(to) {
                    self.copy_row(&from[r * line..][..line], columns, to);
                }
            }
            body(Slab {
                data: room,
                pitch,
                image,
                top,
            })
        })
    }

    fn copy_row<T: Element>(&self, from: &[T], columns: Columns, to: &mut [T]) {
        let clamp = |at: isize| usize::try_from(at).unwrap_or(0).min(self.width);
        let begin = clamp(columns.begin);
        let end = clamp(columns.begin + columns.len as isize).max(begin);
        let left = (begin as isize - columns.begin).min(columns.len as isize) as usize;
        let (pad, to) = to.split_at_mut(left * self.channels);
        pad.fill(T::ZERO);
        let (to, pad) = to.split_at_mut((end - begin) * self.channels);
        pad.fill(T::ZERO);
        if self.pixel == self.channels {
            to.copy_from_slice(&from[begin * self.pixel..end * self.pixel]);
        } else {
            let from = from.chunks_exact(self.pixel).skip(begin);
            for (from, to) in from.zip(to.chunks_exact_mut(self.channels)) {
                to.copy_from_slice(&from[self.first..][..self.channels]);
            }
        }
    }
}
