//! Matrix products `C = alpha·op(A)·op(B) + beta·C` on row-major slices, single and batched.
//!
//! ```text
//! mod        public types, checks, batches
//! driver     cuts C into sections for the caches and strips for the threads
//! strips     what a thread packs once for all its strips
//! block      packs operands, and cuts blocks into panels for the registers
//! pack       copies operands into panels
//! thin       m == 1 or n == 1: matrix times vector
//! simd       register tiles for each instruction set
//! widened    half and bfloat16 through f32; complex through its real and imaginary parts; integers by plain loops
//! ```
//!
//! Results do not depend on the number of threads but in the order of additions.

mod bfloat;
mod block;
mod complex;
mod driver;
mod element;
mod integer;
pub(crate) mod pack;
pub(crate) mod scratch;
pub(crate) mod simd;
mod strips;
#[cfg(test)]
mod tests;
mod thin;
mod widened;

use crate::num::isa::multiversion;
use crate::par::Par;

pub use element::Element;

/// The sizes of a product: `op(A)` is `m`×`k`, `op(B)` is `k`×`n`, `C` is `m`×`n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    /// Rows of `C`.
    pub m: usize,
    /// Columns of `C`.
    pub n: usize,
    /// The summed dimension.
    pub k: usize,
}

/// A row-major matrix, read as it is or transposed.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a, T> {
    /// The elements; row `r` of the stored matrix begins at `r * stride`.
    pub data: &'a [T],
    /// Elements between the beginnings of two stored rows.
    pub stride: usize,
    /// Whether the product takes the transpose of what is stored.
    pub transposed: bool,
}

impl<'a, T> Operand<'a, T> {
    /// A matrix used as stored.
    pub fn new(data: &'a [T], stride: usize) -> Self {
        Self {
            data,
            stride,
            transposed: false,
        }
    }

    /// A matrix stored as the transpose of what the product takes.
    pub fn transposed(data: &'a [T], stride: usize) -> Self {
        Self {
            data,
            stride,
            transposed: true,
        }
    }

    /// Strides between rows and columns of the operand as the product takes it.
    pub(crate) fn strides(&self) -> (usize, usize) {
        if self.transposed {
            (1, self.stride)
        } else {
            (self.stride, 1)
        }
    }

    /// Checks that the operand fits its slice and cuts off what is not used.
    fn checked(self, name: &str, rows: usize, cols: usize) -> Self {
        let (rows, cols) = if self.transposed {
            (cols, rows)
        } else {
            (rows, cols)
        };
        let used = check(name, self.data.len(), self.stride, rows, cols);
        Self {
            data: &self.data[..used],
            ..self
        }
    }
}

/// What is done to each row of `C` after the product.
#[derive(Clone, Copy, Default)]
pub enum Epilogue<'a, T> {
    /// Nothing.
    #[default]
    None,
    /// Adds `bias[column]`.
    Bias(&'a [T]),
    /// Adds `bias[column]`, then takes the maximum with zero (NaN stays).
    BiasRelu(&'a [T]),
    /// Calls the closure with the index of the first column and a run of finished elements of one row.
    Rows(&'a (dyn Fn(usize, &mut [T]) + Sync)),
}

impl<T: Element> Epilogue<'_, T> {
    /// Finishes `row`, whose first element is in column `first`.
    pub(crate) fn apply(&self, first: usize, row: &mut [T]) {
        match self {
            Self::None => {}
            Self::Bias(bias) => add_bias(row, &bias[first..]),
            Self::BiasRelu(bias) => add_bias_relu(row, &bias[first..]),
            Self::Rows(body) => body(first, row),
        }
    }
}

multiversion! {
    fn add_bias<T: Element>(row: &mut [T], bias: &[T]) = add_bias_body;
}

#[inline(always)]
fn add_bias_body<T: Element>(row: &mut [T], bias: &[T]) {
    for (x, b) in row.iter_mut().zip(bias) {
        *x = x.plus(*b);
    }
}

multiversion! {
    fn add_bias_relu<T: Element>(row: &mut [T], bias: &[T]) = add_bias_relu_body;
}

#[inline(always)]
fn add_bias_relu_body<T: Element>(row: &mut [T], bias: &[T]) {
    for (x, b) in row.iter_mut().zip(bias) {
        *x = x.plus(*b).relu();
    }
}

/// Where the matrices of a batch begin.
#[derive(Clone, Copy, Debug)]
pub enum Batch<'a> {
    /// Evenly spaced: product `i` reads at `i * a` and `i * b`; zero repeats one matrix for all.
    Strided {
        /// Number of products.
        count: usize,
        /// Step in `A`.
        a: usize,
        /// Step in `B`.
        b: usize,
    },
    /// One pair of offsets into `A` and `B` for each product.
    Listed(&'a [(usize, usize)]),
}

impl Batch<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Strided { count, .. } => *count,
            Self::Listed(offsets) => offsets.len(),
        }
    }

    fn at(&self, i: usize) -> (usize, usize) {
        match self {
            Self::Strided { a, b, .. } => (i * a, i * b),
            Self::Listed(offsets) => offsets[i],
        }
    }
}

/// Computes `C = alpha·op(A)·op(B) + beta·C`, then the epilogue; `C` is not read when `beta` is zero.
///
/// Row `i` of `C` begins at `i * c_stride`; what lies between rows is left alone.
///
/// # Panics
/// If a slice is too short for its matrix or a stride shorter than a row.
#[expect(clippy::too_many_arguments, reason = "the classic signature of gemm")]
pub fn gemm<T: Element>(
    par: &dyn Par,
    dims: Dims,
    alpha: T,
    a: Operand<'_, T>,
    b: Operand<'_, T>,
    beta: T,
    c: &mut [T],
    c_stride: usize,
    epilogue: Epilogue<'_, T>,
) {
    let Dims { m, n, k } = dims;
    if m == 0 || n == 0 {
        return;
    }
    let a = a.checked("A", m, k);
    let b = b.checked("B", k, n);
    check("C", c.len(), c_stride, m, n);
    if let Epilogue::Bias(bias) | Epilogue::BiasRelu(bias) = epilogue {
        assert!(bias.len() >= n, "bias of {} for {n} columns", bias.len());
    }
    let job = Job {
        dims,
        alpha,
        a,
        b,
        beta,
        c,
        c_stride,
        epilogue,
    };
    if k == 0 || alpha == T::ZERO {
        return job.scale();
    }
    T::run(par, job);
}

/// `C = op(A)·op(B)` for dense matrices: rows are as long as the matrix is wide.
///
/// # Panics
/// As [`gemm`].
pub fn matmul<T: Element>(
    par: &dyn Par,
    dims: Dims,
    a: (&[T], bool),
    b: (&[T], bool),
    c: &mut [T],
) {
    let a = dense(a, dims.m, dims.k);
    let b = dense(b, dims.k, dims.n);
    gemm(par, dims, T::ONE, a, b, T::ZERO, c, dims.n, Epilogue::None);
}

/// A batch of `C = op(A)·op(B)`; the products lie one after the other in `c`.
///
/// The operands' slices begin at the first matrix; `batch` says where each product's matrices begin.
///
/// # Panics
/// As [`gemm`], and if `c` is not `batch` times `m`×`n` long.
pub fn gemm_batched<T: Element>(
    par: &dyn Par,
    dims: Dims,
    batch: Batch<'_>,
    a: Operand<'_, T>,
    b: Operand<'_, T>,
    c: &mut [T],
) {
    let Dims { m, n, k } = dims;
    assert_eq!(c.len(), batch.len() * m * n, "output of the batch");
    if c.is_empty() {
        return;
    }
    let one = |par: &dyn Par, i: usize, c: &mut [T]| {
        let (a_at, b_at) = if k == 0 { (0, 0) } else { batch.at(i) };
        let a = Operand {
            data: &a.data[a_at..],
            ..a
        };
        let b = Operand {
            data: &b.data[b_at..],
            ..b
        };
        gemm(par, dims, T::ONE, a, b, T::ZERO, c, n, Epilogue::None);
    };
    let work = m.saturating_mul(n).saturating_mul(k.max(1));
    if batch.len() < 2 * par.threads() && work >= driver::PARALLEL_WORK {
        for (i, c) in c.chunks_mut(m * n).enumerate() {
            one(par, i, c);
        }
    } else {
        let grain = (driver::PARALLEL_WORK / 2).div_ceil(work);
        crate::par::rows_mut(par, c, m * n, grain, |first, c| {
            for (i, c) in c.chunks_mut(m * n).enumerate() {
                one(&crate::par::Serial, first + i, c);
            }
        });
    }
}

/// One checked product.
pub struct Job<'a, T> {
    pub(crate) dims: Dims,
    pub(crate) alpha: T,
    pub(crate) a: Operand<'a, T>,
    pub(crate) b: Operand<'a, T>,
    pub(crate) beta: T,
    pub(crate) c: &'a mut [T],
    pub(crate) c_stride: usize,
    pub(crate) epilogue: Epilogue<'a, T>,
}

impl<T: Element> Job<'_, T> {
    /// `C = beta·C`, then the epilogue: the product of nothing.
    fn scale(self) {
        for row in self.c.chunks_mut(self.c_stride).take(self.dims.m) {
            let row = &mut row[..self.dims.n];
            for x in row.iter_mut() {
                *x = if self.beta == T::ZERO {
                    T::ZERO
                } else {
                    x.times(self.beta)
                };
            }
            self.epilogue.apply(0, row);
        }
    }
}

fn dense<T>((data, transposed): (&[T], bool), rows: usize, cols: usize) -> Operand<'_, T> {
    Operand {
        data,
        stride: if transposed { rows } else { cols },
        transposed,
    }
}

/// Checks that a matrix fits a slice of `len`, and returns how much of it is used.
fn check(name: &str, len: usize, stride: usize, rows: usize, cols: usize) -> usize {
    if rows == 0 || cols == 0 {
        return 0;
    }
    let need = (rows - 1)
        .checked_mul(stride)
        .and_then(|x| x.checked_add(cols))
        .filter(|&need| need <= len && stride >= cols);
    let Some(need) = need else {
        panic!("{name}: {rows}x{cols} with stride {stride} in {len} elements");
    };
    need
}
