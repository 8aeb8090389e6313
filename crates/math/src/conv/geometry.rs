//! Sizes of windowed operations.

/// How an image is padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// The output has ⌈input / stride⌉ rows and columns.
    Same,
    /// No padding.
    Valid,
    /// `[[top, bottom], [left, right]]`
    Explicit([[usize; 2]; 2]),
}

/// One direction of a window: its output size and the padding before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Positions of the window.
    pub output: usize,
    /// Zeros before the first element.
    pub before: usize,
    /// Zeros after the last element; less than asked for is counted if the last window does not reach them.
    pub after: usize,
}

/// How many places a window has in `length`. As in TensorFlow, one that is too long by less than a stride has none, and only beyond
/// that it is no window.
fn places(length: usize, reach: usize, stride: usize) -> Option<usize> {
    let end = length.checked_add(stride)?;
    match end.checked_sub(reach) {
        Some(free) => Some(free / stride),
        None => (reach - end < stride).then_some(0),
    }
}

impl Window {
    /// Positions of a window of `filter` elements `dilation` apart over `input` elements; direction 0 is the height.
    ///
    /// `None` if the window is larger than the padded input by more than the stride allows, or a size is absurd.
    pub fn new(
        direction: usize,
        input: usize,
        filter: usize,
        dilation: usize,
        stride: usize,
        padding: Padding,
    ) -> Option<Self> {
        let reach = (filter.checked_sub(1)?)
            .checked_mul(dilation)?
            .checked_add(1)?;
        match padding {
            Padding::Same => {
                let output = input.div_ceil(stride);
                let covered = output.checked_mul(stride)?.checked_add(reach)?;
                let missing = covered.saturating_sub(input.checked_add(stride)?);
                let before = missing / 2;
                Some(Self {
                    output,
                    before,
                    after: missing - before,
                })
            }
            Padding::Valid => {
                let output = places(input, reach, stride)?;
                Some(Self {
                    output,
                    before: 0,
                    after: 0,
                })
            }
            Padding::Explicit(pads) => {
                let [before, after] = pads[direction];
                let padded = input.checked_add(before)?.checked_add(after)?;
                let output = places(padded, reach, stride)?;
                Some(Self {
                    output,
                    before,
                    after,
                })
            }
        }
    }
}

/// The sizes of a two-dimensional convolution: input NHWC, filter HWIO, output NHWC.
///
/// With `groups > 1` the channels of input and output fall into as many equal parts that do not mix; the filter then has
/// `in_channels / groups` input channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv2d {
    /// Number of images.
    pub batch: usize,
    /// Height and width of the input.
    pub input: [usize; 2],
    /// Channels of the input.
    pub in_channels: usize,
    /// Height and width of the filter.
    pub filter: [usize; 2],
    /// Channels of the output.
    pub out_channels: usize,
    /// Parts of the channels that do not mix.
    pub groups: usize,
    /// Step of the window.
    pub stride: [usize; 2],
    /// Distance of the filter's elements.
    pub dilation: [usize; 2],
    /// Zeros above and left of the input.
    pub before: [usize; 2],
    /// Height and width of the output.
    pub output: [usize; 2],
}

impl Conv2d {
    /// Sizes from an input `[n, h, w, c]` and a filter `[h, w, c / groups, out]`.
    ///
    /// `None` if the filter does not fit (see [`Window::new`]), a stride or dilation is zero, or the channels do not divide.
    pub fn new(
        input: [usize; 4],
        filter: [usize; 4],
        stride: [usize; 2],
        dilation: [usize; 2],
        padding: Padding,
    ) -> Option<Self> {
        let [batch, height, width, in_channels] = input;
        let [rows, columns, depth, out_channels] = filter;
        if stride.contains(&0) || dilation.contains(&0) {
            return None;
        }
        let groups = in_channels.checked_div(depth).unwrap_or(1);
        if groups * depth != in_channels || groups == 0 || !out_channels.is_multiple_of(groups) {
            return None;
        }
        let vertical = Window::new(0, height, rows, dilation[0], stride[0], padding)?;
        let horizontal = Window::new(1, width, columns, dilation[1], stride[1], padding)?;
        Some(Self {
            batch,
            input: [height, width],
            in_channels,
            filter: [rows, columns],
            out_channels,
            groups,
            stride,
            dilation,
            before: [vertical.before, horizontal.before],
            output: [vertical.output, horizontal.output],
        })
    }

    /// Sizes of a depthwise convolution: a filter `[h, w, channels, multiplier]` has `multiplier` outputs for each channel.
    pub fn depthwise(
        input: [usize; 4],
        filter: [usize; 4],
        stride: [usize; 2],
        dilation: [usize; 2],
        padding: Padding,
    ) -> Option<Self> {
        let [rows, columns, channels, multiplier] = filter;
        if channels != input[3] {
            return None;
        }
        let out = channels.checked_mul(multiplier)?;
        // Without channels there is nothing to multiply, whatever the filter's depth is called.
        let depth = channels.min(1);
        Self::new(
            input,
            [rows, columns, depth, out],
            stride,
            dilation,
            padding,
        )
    }

    /// Elements of the input.
    pub fn input_len(&self) -> usize {
        self.batch * self.input[0] * self.input[1] * self.in_channels
    }

    /// Elements of the filter.
    pub fn filter_len(&self) -> usize {
        self.filter[0] * self.filter[1] * self.group_in() * self.out_channels
    }

    /// Elements of the output.
    pub fn output_len(&self) -> usize {
        self.batch * self.output[0] * self.output[1] * self.out_channels
    }

    /// Multiply-adds of one pass.
    pub fn work(&self) -> usize {
        let taps = self.filter[0] * self.filter[1] * self.group_in();
        self.output_len().saturating_mul(taps)
    }

    /// Input channels of one group.
    pub(super) fn group_in(&self) -> usize {
        self.in_channels / self.groups
    }

    /// Output channels of one group.
    pub(super) fn group_out(&self) -> usize {
        self.out_channels / self.groups
    }

    /// Whether each output pixel is a product of one input pixel: a matrix product over all pixels.
    pub(super) fn is_pointwise(&self) -> bool {
        self.filter == [1, 1]
            && self.stride == [1, 1]
            && self.before == [0, 0]
            && self.groups == 1
            && self.output == self.input
    }

    /// Whether the window covers each image exactly once: a matrix product over all images.
    pub(super) fn is_dense(&self) -> bool {
        self.output == [1, 1]
            && self.before == [0, 0]
            && self.filter == self.input
            && self.dilation == [1, 1]
            && self.groups == 1
    }

    /// Calls `body(out, in, tap)` for each pair of an output and an input position that a filter row or column joins.
    pub(super) fn pairs(&self, direction: usize, mut body: impl FnMut(usize, usize, usize)) {
        for out in 0..self.output[direction] {
            for tap in 0..self.filter[direction] {
                let at = out * self.stride[direction] + tap * self.dilation[direction];
                let Some(at) = at.checked_sub(self.before[direction]) else {
                    continue;
                };
                if at < self.input[direction] {
                    body(out, at, tap);
                }
            }
        }
    }
}
