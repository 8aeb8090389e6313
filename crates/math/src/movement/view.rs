//! A strided window on a dense array: what slicing, transposing, reversing and broadcasting all come down to.

/// Positions in a dense array, one for each index of a box of `dims`: `offset + Σ index·stride`.
///
/// Strides may be negative (reversal) and zero (repetition).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Extent of each dimension.
    pub dims: Vec<usize>,
    /// Distance in elements between neighbours in each dimension.
    pub strides: Vec<isize>,
    /// Position of index zero.
    pub offset: usize,
}

impl View {
    /// All of a dense row-major array.
    pub fn dense(dims: &[usize]) -> Self {
        Self {
            dims: dims.to_vec(),
            strides: dense_strides(dims),
            offset: 0,
        }
    }

    /// A dense array with its dimensions in another order: dimension `i` is dimension `order[i]` of the array.
    ///
    /// # Panics
    /// If `order` does not name dimensions of the array.
    pub fn transposed(dims: &[usize], order: &[usize]) -> Self {
        let strides = dense_strides(dims);
        Self {
            dims: order.iter().map(|&dim| dims[dim]).collect(),
            strides: order.iter().map(|&dim| strides[dim]).collect(),
            offset: 0,
        }
    }

    /// Every `steps[i]`-th element of dimension `i` from `begin[i]` on, `sizes[i]` of them; steps may be negative, not zero.
    ///
    /// # Panics
    /// If the numbers of dimensions differ or the slice leaves the array.
    pub fn sliced(dims: &[usize], begin: &[usize], steps: &[isize], sizes: &[usize]) -> Self {
        let rank = dims.len();
        assert!(
            begin.len() == rank && steps.len() == rank && sizes.len() == rank,
            "slice of another rank"
        );
        let dense = dense_strides(dims);
        let mut view = Self {
            dims: sizes.to_vec(),
            strides: dense
                .iter()
                .zip(steps)
                .map(|(stride, step)| stride * step)
                .collect(),
            offset: 0,
        };
        if !view.is_empty() {
            for i in 0..rank {
                let last = begin[i] as isize + (sizes[i] - 1) as isize * steps[i];
                assert!(
                    begin[i] < dims[i] && last >= 0 && (last as usize) < dims[i],
                    "slice leaves dimension {i}"
                );
                view.offset += begin[i] * dense[i] as usize;
            }
        }
        view
    }

    /// A dense array seen as `dims`: dimensions are aligned at the end, those of extent one and missing ones repeat.
    ///
    /// # Panics
    /// If the array cannot be broadcast to `dims`.
    pub fn broadcast(from: &[usize], dims: &[usize]) -> Self {
        let missing = dims.len().checked_sub(from.len()).expect("rank shrinks");
        let dense = dense_strides(from);
        let strides = dims.iter().enumerate().map(|(i, &extent)| {
            let Some(i) = i.checked_sub(missing) else {
                return 0;
            };
            assert!(
                from[i] == 1 || from[i] == extent,
                "{from:?} does not broadcast to {dims:?}"
            );
            if from[i] == 1 { 0 } else { dense[i] }
        });
        Self {
            strides: strides.collect(),
            dims: dims.to_vec(),
            offset: 0,
        }
    }

    /// A dense array repeated `multiples[i]` times along dimension `i`; each dimension becomes the two (repeat, extent).
    pub fn tiled(dims: &[usize], multiples: &[usize]) -> Self {
        let dense = dense_strides(dims);
        let both = |a: usize, b: usize| [a, b];
        Self {
            dims: multiples
                .iter()
                .zip(dims)
                .flat_map(|(&multiple, &extent)| both(multiple, extent))
                .collect(),
            strides: dense.iter().flat_map(|&stride| [0, stride]).collect(),
            offset: 0,
        }
    }

    /// A dense array with the order of elements turned round in the dimensions where `reversed` is true.
    pub fn reversed(dims: &[usize], reversed: &[bool]) -> Self {
        let mut view = Self::dense(dims);
        if !view.is_empty() {
            for (i, _) in reversed
                .iter()
                .enumerate()
                .filter(|(_, reversed)| **reversed)
            {
                view.offset += (dims[i] - 1) * view.strides[i] as usize;
                view.strides[i] = -view.strides[i];
            }
        }
        view
    }

    /// How many positions there are.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }

    /// The same positions in the same order in as few dimensions as possible; none has extent one.
    pub(super) fn collapsed(&self) -> Self {
        let mut view = Self {
            dims: Vec::with_capacity(self.dims.len()),
            strides: Vec::with_capacity(self.dims.len()),
            offset: self.offset,
        };
        for (&extent, &stride) in self.dims.iter().zip(&self.strides) {
            if extent == 1 {
                continue;
            }
            match (view.dims.last_mut(), view.strides.last_mut()) {
                (Some(outer), Some(outer_stride)) if *outer_stride == stride * extent as isize => {
                    *outer *= extent;
                    *outer_stride = stride;
                }
                _ => {
                    view.dims.push(extent);
                    view.strides.push(stride);
                }
            }
        }
        view
    }

    /// Panics unless all positions lie inside an array of `len` elements.
    pub(super) fn check_inside(&self, len: usize) {
        if self.is_empty() {
            return;
        }
        let (mut low, mut high) = (self.offset as isize, self.offset as isize);
        for (&extent, &stride) in self.dims.iter().zip(&self.strides) {
            let reach = (extent - 1) as isize * stride;
            low += reach.min(0);
            high += reach.max(0);
        }
        assert!(
            low >= 0 && (high as usize) < len,
            "view of {low}..={high} leaves an array of {len}"
        );
    }
}

/// Row-major strides of a dense array.
pub fn dense_strides(dims: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i].max(1) as isize;
    }
    strides
}

/// Walks the positions of the leading dimensions of a view in order.
pub(super) struct Cursor<'a> {
    dims: &'a [usize],
    strides: &'a [isize],
    index: Vec<usize>,
    /// The current position.
    pub(super) at: isize,
}

impl<'a> Cursor<'a> {
    /// Starts at the `first`-th index of `dims`.
    pub(super) fn new(
        dims: &'a [usize],
        strides: &'a [isize],
        offset: isize,
        first: usize,
    ) -> Self {
        let mut index = vec![0; dims.len()];
        let mut at = offset;
        let mut rest = first;
        for i in (0..dims.len()).rev() {
            index[i] = rest % dims[i];
            rest /= dims[i];
            at += index[i] as isize * strides[i];
        }
        Self {
            dims,
            strides,
            index,
            at,
        }
    }

    /// Goes to the next index; behind the last comes the first.
    #[inline]
    pub(super) fn advance(&mut self) {
        for i in (0..self.dims.len()).rev() {
            self.index[i] += 1;
            self.at += self.strides[i];
            if self.index[i] < self.dims[i] {
                return;
            }
            self.at -= self.strides[i] * self.dims[i] as isize;
            self.index[i] = 0;
        }
    }
}
