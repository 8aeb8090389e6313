//! Where the windows lie.

use std::ops::Range;

/// The shapes of a pooling: NHWC input, windows, strides, and NHWC output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Pool2d {
    pub batch: usize,
    pub in_rows: usize,
    pub in_cols: usize,
    pub channels: usize,
    pub window_rows: usize,
    pub window_cols: usize,
    pub row_stride: usize,
    pub col_stride: usize,
    pub pad_top: usize,
    pub pad_left: usize,
    pub out_rows: usize,
    pub out_cols: usize,
}

impl Pool2d {
    /// Elements of the input.
    pub fn input_len(&self) -> usize {
        self.batch * self.in_rows * self.in_cols * self.channels
    }

    /// Elements of the output.
    pub fn output_len(&self) -> usize {
        self.batch * self.out_rows * self.out_cols * self.channels
    }

    pub(super) fn check(&self, input: usize, output: usize) {
        assert_eq!(input, self.input_len(), "input");
        assert_eq!(output, self.output_len(), "output");
        assert!(
            self.row_stride > 0 && self.col_stride > 0,
            "strides must be positive"
        );
    }

    /// The input rows that output row `out_row` sees.
    pub(super) fn rows(&self, out_row: usize) -> Range<usize> {
        let start = out_row * self.row_stride;
        clip(start, self.window_rows, self.pad_top, self.in_rows)
    }

    /// The input columns that output column `out_col` sees.
    pub(super) fn cols(&self, out_col: usize) -> Range<usize> {
        let start = out_col * self.col_stride;
        clip(start, self.window_cols, self.pad_left, self.in_cols)
    }

    /// The output rows that see input row `row`.
    pub(super) fn out_rows_of(&self, row: usize) -> Range<usize> {
        let row = row + self.pad_top;
        let first = (row + 1)
            .saturating_sub(self.window_rows)
            .div_ceil(self.row_stride);
        let last = row / self.row_stride;
        first..(last + 1).min(self.out_rows).max(first)
    }

    /// Elements of one row of the input.
    pub(super) fn in_row_len(&self) -> usize {
        self.in_cols * self.channels
    }

    /// Elements of one row of the output.
    pub(super) fn out_row_len(&self) -> usize {
        self.out_cols * self.channels
    }
}

fn clip(start: usize, window: usize, pad: usize, extent: usize) -> Range<usize> {
    let end = (start + window).saturating_sub(pad).min(extent);
    start.saturating_sub(pad).min(end)..end
}
