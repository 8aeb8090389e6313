//! Which dimensions of an input are reduced, in the fewest dimensions.

/// An input shape with a set of reduced axes; neighbouring axes of the same kind are one, axes of size 1 are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Outermost first, kinds alternate.
    pub(super) dims: Vec<Dim>,
    out_len: usize,
    reduced_len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dim {
    pub(super) size: usize,
    pub(super) reduced: bool,
}

impl Layout {
    /// For an input of shape `shape` reduced over `axes` (in range; order and repetition do not matter).
    pub fn new(shape: &[usize], axes: &[usize]) -> Self {
        let mut dims: Vec<Dim> = Vec::new();
        let (mut out_len, mut reduced_len) = (1, 1);
        for (i, &size) in shape.iter().enumerate() {
            let reduced = axes.contains(&i);
            *(if reduced {
                &mut reduced_len
            } else {
                &mut out_len
            }) *= size;
            match dims.last_mut() {
                _ if size == 1 => {}
                Some(last) if last.reduced == reduced => last.size *= size,
                _ => dims.push(Dim { size, reduced }),
            }
        }
        Self {
            dims,
            out_len,
            reduced_len,
        }
    }

    /// For a reduction of `len` elements to one.
    pub fn all(len: usize) -> Self {
        Self::new(&[len], &[0])
    }

    /// The length of the runs that are reduced, if they are all there is: one behind the other.
    pub(super) fn run_len(&self) -> Option<usize> {
        match self.dims[..] {
            [kept, run] if !kept.reduced && run.size > 0 => Some(run.size),
            _ => None,
        }
    }

    /// Elements of the output.
    pub fn out_len(&self) -> usize {
        self.out_len
    }

    /// Elements of the input that make one of the output.
    pub fn reduced_len(&self) -> usize {
        self.reduced_len
    }
}

/// One axis of an input, with what stands before and behind it: shape `[outer, len, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Product of the sizes before the axis.
    pub outer: usize,
    /// Size of the axis.
    pub len: usize,
    /// Product of the sizes behind the axis.
    pub inner: usize,
}

impl Axis {
    /// Axis `axis` (in range) of `shape`.
    pub fn new(shape: &[usize], axis: usize) -> Self {
        Self {
            outer: shape[..axis].iter().product(),
            len: shape[axis],
            inner: shape[axis + 1..].iter().product(),
        }
    }

    /// Elements of the whole input.
    pub fn elements(&self) -> usize {
        self.outer * self.len * self.inner
    }
}
