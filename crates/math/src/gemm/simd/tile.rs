//! What a register tile computes, and the one source of all kernels.
//!
//! ```text
//! acc[i][j] = Σ_s Σ_p A(i, s, p) · B(s, p, j)        i < rows, j < vectors·lanes, s < segments, p < depth
//! A(i, s, p) = a[i·a_row + s·a_segment + p·a_step]    one element, broadcast
//! B(s, p, j) = b[s·b_segment + p·b_step + j]          a run of vectors
//! C(i, j)    = c[i·c_row + j]
//! ```
//!
//! Segments let one tile run over what is not evenly spaced as a whole: the rows of a filter window, or the rows of an image.

/// How a tile is combined with what is in `C`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Store<T> {
    /// `C = acc`
    Set,
    /// `C += acc`
    Add,
    /// `C = alpha·acc + beta·C`; `C` is not read when `beta` is zero.
    Scale(T, T),
}

/// The operands of one register tile; see the module for the meaning of the strides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<T> {
    pub(crate) depth: usize,
    pub(crate) segments: usize,
    pub(crate) a: *const T,
    pub(crate) a_row: usize,
    pub(crate) a_step: usize,
    pub(crate) a_segment: usize,
    pub(crate) b: *const T,
    pub(crate) b_step: usize,
    pub(crate) b_segment: usize,
    pub(crate) c: *mut T,
    pub(crate) c_row: usize,
    pub(crate) store: Store<T>,
}

/// A tile kernel: every address of the module's formulas must be readable (`c` writable), and the CPU must have the features
/// of the table it comes from.
pub(crate) type TileFn<T> = unsafe fn(&Tile<T>);
/// As [`TileFn`], but touches only so many of the first columns of C, of which at least one and not all are in the last vector;
/// B is read in whole vectors.
pub(crate) type RaggedFn<T> = unsafe fn(&Tile<T>, usize);
/// `pack(src, stride, width, depth, dst)`: writes `dst[p·width + i] = src[i·stride + p]`; may write up to one vector of
/// rubbish beyond `dst[depth·width]`.
pub(crate) type PackFn<T> = unsafe fn(*const T, usize, usize, usize, *mut T);
/// `copy(src, stride, width, depth, dst)`: writes `dst[p·width + i] = src[p·stride + i]`.
pub(crate) type CopyFn<T> = unsafe fn(*const T, usize, usize, usize, *mut T);
/// `axpy(x, b, stride, n, y)`: `y[j] += Σ_p x[p]·b[p·stride + j]` for `p < x.len()`, `j < y.len()`.
pub(crate) type AxpyFn<T> = unsafe fn(&[T], *const T, usize, &mut [T]);
/// `dot(x, b, stride, out)`: `out[r] = Σ_p x[p]·b[r·stride + p]`.
pub(crate) type DotFn<T> = unsafe fn(&[T], *const T, usize, &mut [T]);

/// The kernels of one instruction set and type.
pub(crate) struct Kernels<T: 'static> {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "names a failing table in tests")
    )]
    pub(crate) name: &'static str,
    /// Elements per vector.
    pub(crate) lanes: usize,
    /// Tiles of two vectors by 1, 2, … rows.
    pub(crate) wide: &'static [TileFn<T>],
    /// Tiles of one vector by 1, 2, … rows.
    pub(crate) narrow: &'static [TileFn<T>],
    /// As `wide`, for fewer columns.
    pub(crate) ragged_wide: &'static [RaggedFn<T>],
    /// As `narrow`, for fewer columns.
    pub(crate) ragged_narrow: &'static [RaggedFn<T>],
    pub(crate) pack: PackFn<T>,
    pub(crate) copy: CopyFn<T>,
    pub(crate) axpy: AxpyFn<T>,
    pub(crate) dot: DotFn<T>,
}

impl<T> Kernels<T> {
    /// Rows of the largest tile.
    pub(crate) fn rows(&self) -> usize {
        self.wide.len()
    }

    /// Bytes per vector.
    pub(crate) fn vector_bytes(&self) -> usize {
        self.lanes * size_of::<T>()
    }

    /// Columns of the widest tile.
    pub(crate) fn columns(&self) -> usize {
        2 * self.lanes
    }

    /// The kernel for `rows` by at most `columns` elements, and the columns it really writes.
    pub(crate) fn tile(&self, rows: usize, columns: usize) -> (TileFn<T>, usize) {
        if columns <= self.lanes {
            (self.narrow[rows - 1], self.lanes)
        } else {
            (self.wide[rows - 1], 2 * self.lanes)
        }
    }

    /// Computes a tile of `rows` by `used` elements.
    ///
    /// # Safety
    /// As [`TileFn`], but only the `used` first columns of C need be writable; B is read in whole vectors.
    pub(crate) unsafe fn run(&self, rows: usize, used: usize, tile: &Tile<T>) {
        let (kernel, width) = self.tile(rows, used);
        if used == width {
            // SAFETY: the caller's contract.
            return unsafe { kernel(tile) };
        }
        let ragged = if width == self.lanes {
            self.ragged_narrow
        } else {
            self.ragged_wide
        };
        // SAFETY: the caller's contract; `used` ends inside the last vector, as the narrow tile is taken where it suffices.
        unsafe { ragged[rows - 1](tile, used) };
    }
}

/// Instantiates the kernels for one vector type.
///
/// `$ops` is a module with `T`, `LANES`, `zero`, `splat`, `load`, `store`, `load_first`, `store_first`, `fma`, `mul`, `add`,
/// `sum`, `pack`, `prefetch` and `opaque`; `$feature` is the attribute list that makes the operations inline.
///
/// `opaque` hides that the rows of A are evenly spaced: told so, the compiler steps one pointer from row to row, and that chain
/// of additions is as long as the loop's multiply-adds.
macro_rules! kernels {
    ($name:ident, $module:ident, $ops:path, [$($feature:meta),*], [$($rows:literal),*]) => {
        mod $module {
            use $ops::{
                LANES, T, add, fma, load, load_first, mul, opaque, pack, prefetch, splat, store, store_first, sum, zero,
            };
            use $crate::gemm::simd::tile::{Kernels, Store, Tile};

            pub(crate) static TABLE: Kernels<T> = Kernels {
                name: stringify!($name),
                lanes: LANES,
                wide: &[$(whole::<$rows, 2>),*],
                narrow: &[$(whole::<$rows, 1>),*],
                ragged_wide: &[$(tile::<$rows, 2, true>),*],
                ragged_narrow: &[$(tile::<$rows, 1, true>),*],
                pack,
                copy,
                axpy,
                dot,
            };

            /// # Safety
            /// See `TileFn`.
            $(#[$feature])*
            unsafe fn whole<const ROWS: usize, const VECTORS: usize>(t: &Tile<T>) {
                // SAFETY: the caller's contract.
                unsafe { tile::<ROWS, VECTORS, false>(t, VECTORS * LANES) };
            }

            /// # Safety
            /// See `TileFn`, or `RaggedFn` if `RAGGED`.
            $(#[$feature])*
            unsafe fn tile<const ROWS: usize, const VECTORS: usize, const RAGGED: bool>(t: &Tile<T>, used: usize) {
                let mut acc = [[zero(); VECTORS]; ROWS];
                for i in 0..ROWS {
                    prefetch(t.c.wrapping_add(i * t.c_row));
                }
                let (mut a_line, mut b_line) = (t.a, t.b);
                for _ in 0..t.segments {
                    let mut rows = [a_line; ROWS];
                    for i in 0..ROWS {
                        rows[i] = opaque(a_line.wrapping_add(i * t.a_row));
                    }
                    let (mut at, mut b) = (0, b_line);
                    for _ in 0..t.depth {
                        let mut right = [zero(); VECTORS];
                        for j in 0..VECTORS {
                            // SAFETY: element `(s, p, j·LANES..)` of B is readable by the contract of `TileFn`.
                            right[j] = unsafe { load(b.wrapping_add(j * LANES)) };
                        }
                        for i in 0..ROWS {
                            // SAFETY: element `(i, s, p)` of A is readable by the contract of `TileFn`.
                            let left = splat(unsafe { *rows[i].wrapping_add(at) });
                            for j in 0..VECTORS {
                                acc[i][j] = fma(left, right[j], acc[i][j]);
                            }
                        }
                        at += t.a_step;
                        b = b.wrapping_add(t.b_step);
                    }
                    a_line = a_line.wrapping_add(t.a_segment);
                    b_line = b_line.wrapping_add(t.b_segment);
                }
                // `Kernels::run` takes the narrow tile where that is wide enough: only the last vector is cut.
                let part = |j: usize| RAGGED && j + 1 == VECTORS;
                let at = |i: usize, j: usize| t.c.wrapping_add(i * t.c_row + j * LANES);
                let first = used.saturating_sub((VECTORS - 1) * LANES);
                let old = |i: usize, j: usize| {
                    // SAFETY: row `i` of C is valid by the contract of `TileFn`, up to `used` by that of `RaggedFn`.
                    unsafe { if part(j) { load_first(at(i, j), first) } else { load(at(i, j)) } }
                };
                // One short loop for each kind: only loops that are unrolled as a whole leave the accumulators in registers.
                match t.store {
                    Store::Set => {}
                    Store::Add => {
                        for i in 0..ROWS {
                            for j in 0..VECTORS {
                                acc[i][j] = add(old(i, j), acc[i][j]);
                            }
                        }
                    }
                    Store::Scale(alpha, beta) => {
                        for i in 0..ROWS {
                            for j in 0..VECTORS {
                                acc[i][j] = mul(splat(alpha), acc[i][j]);
                            }
                        }
                        if beta != 0.0 {
                            for i in 0..ROWS {
                                for j in 0..VECTORS {
                                    acc[i][j] = fma(splat(beta), old(i, j), acc[i][j]);
                                }
                            }
                        }
                    }
                }
                for i in 0..ROWS {
                    for j in 0..VECTORS {
                        let (c, value) = (at(i, j), acc[i][j]);
                        // SAFETY: as for `old`.
                        unsafe { if part(j) { store_first(c, value, first) } else { store(c, value) } };
                    }
                }
            }

            /// # Safety
            /// See `CopyFn`.
            $(#[$feature])*
            unsafe fn copy(src: *const T, stride: usize, width: usize, depth: usize, dst: *mut T) {
                #[allow(unreachable_patterns, reason = "small vectors repeat a width")]
                match width {
                    // SAFETY: the caller's contract, here and below.
                    4 => unsafe { copy_runs::<4>(src, stride, depth, dst) },
                    // SAFETY: as above.
                    5 => unsafe { copy_runs::<5>(src, stride, depth, dst) },
                    // SAFETY: as above.
                    6 => unsafe { copy_runs::<6>(src, stride, depth, dst) },
                    // SAFETY: as above.
                    LANES => unsafe { copy_runs::<LANES>(src, stride, depth, dst) },
                    // SAFETY: as above.
                    WIDE => unsafe { copy_runs::<WIDE>(src, stride, depth, dst) },
                    _ => {
                        for p in 0..depth {
                            let (from, to) = (src.wrapping_add(p * stride), dst.wrapping_add(p * width));
                            // SAFETY: as above.
                            unsafe { from.copy_to_nonoverlapping(to, width) };
                        }
                    }
                }
            }

            const WIDE: usize = 2 * LANES;

            /// # Safety
            /// As `copy`, for a width of `N`.
            $(#[$feature])*
            unsafe fn copy_runs<const N: usize>(src: *const T, stride: usize, depth: usize, dst: *mut T) {
                for p in 0..depth {
                    let (from, to) = (src.wrapping_add(p * stride), dst.wrapping_add(p * N));
                    // SAFETY: the caller's contract.
                    unsafe { from.copy_to_nonoverlapping(to, N) };
                }
            }

            /// # Safety
            /// `b[p·stride..][..y.len()]` is readable for each `p < x.len()`; the CPU has the features.
            $(#[$feature])*
            unsafe fn axpy(x: &[T], b: *const T, stride: usize, y: &mut [T]) {
                let (groups, rest) = x.as_chunks::<4>();
                for (g, x) in groups.iter().enumerate() {
                    // SAFETY: rows `4g..4g + 4` are readable by the caller's contract.
                    unsafe { axpy_rows(x, b.wrapping_add(4 * g * stride), stride, y) };
                }
                for (p, x) in rest.iter().enumerate() {
                    let row = b.wrapping_add((4 * groups.len() + p) * stride);
                    // SAFETY: this row is readable by the caller's contract.
                    unsafe { axpy_rows(&[*x], row, stride, y) };
                }
            }

            /// # Safety
            /// As `axpy`, for `N` rows.
            $(#[$feature])*
            unsafe fn axpy_rows<const N: usize>(x: &[T; N], b: *const T, stride: usize, y: &mut [T]) {
                let mut left = [zero(); N];
                for p in 0..N {
                    left[p] = splat(x[p]);
                }
                let whole = y.len() - y.len() % LANES;
                for j in (0..whole).step_by(LANES) {
                    let at = y[j..j + LANES].as_mut_ptr();
                    // SAFETY: `at` begins a slice of `LANES` elements.
                    let mut acc = unsafe { load(at) };
                    for p in 0..N {
                        // SAFETY: `j + LANES <= y.len()`, and rows of that length are readable by the caller's contract.
                        acc = fma(left[p], unsafe { load(b.wrapping_add(p * stride + j)) }, acc);
                    }
                    // SAFETY: `at` begins a slice of `LANES` elements.
                    unsafe { store(at, acc) };
                }
                for (j, y) in y.iter_mut().enumerate().skip(whole) {
                    for p in 0..N {
                        // SAFETY: `j < y.len()`, inside row `p` by the caller's contract.
                        *y += x[p] * unsafe { *b.wrapping_add(p * stride + j) };
                    }
                }
            }

            /// # Safety
            /// `b[r·stride..][..x.len()]` is readable for each `r < out.len()`; the CPU has the features.
            $(#[$feature])*
            unsafe fn dot(x: &[T], b: *const T, stride: usize, out: &mut [T]) {
                let (groups, rest) = out.as_chunks_mut::<4>();
                let done = 4 * groups.len();
                for (g, out) in groups.iter_mut().enumerate() {
                    // SAFETY: rows `4g..4g + 4` are readable by the caller's contract.
                    unsafe { dot_rows(x, b.wrapping_add(4 * g * stride), stride, out) };
                }
                for (r, out) in rest.iter_mut().enumerate() {
                    let row = b.wrapping_add((done + r) * stride);
                    let mut one = [0.0];
                    // SAFETY: this row is readable by the caller's contract.
                    unsafe { dot_rows(x, row, stride, &mut one) };
                    [*out] = one;
                }
            }

            /// # Safety
            /// As `dot`, for `N` rows.
            $(#[$feature])*
            unsafe fn dot_rows<const N: usize>(x: &[T], b: *const T, stride: usize, out: &mut [T; N]) {
                // Two sums per row hide the latency of the multiply-add.
                let mut acc = [[zero(); 2]; N];
                let pairs = x.len() - x.len() % (2 * LANES);
                for p in (0..pairs).step_by(2 * LANES) {
                    for half in 0..2 {
                        let at = p + half * LANES;
                        // SAFETY: `at + LANES <= pairs <= x.len()`.
                        let left = unsafe { load(x.as_ptr().wrapping_add(at)) };
                        for r in 0..N {
                            // SAFETY: rows have `x.len()` readable elements by the caller's contract.
                            let right = unsafe { load(b.wrapping_add(r * stride + at)) };
                            acc[r][half] = fma(left, right, acc[r][half]);
                        }
                    }
                }
                for r in 0..N {
                    let mut total = sum(add(acc[r][0], acc[r][1]));
                    for (p, x) in x.iter().enumerate().skip(pairs) {
                        // SAFETY: `p < x.len()`, inside row `r` by the caller's contract.
                        total += x * unsafe { *b.wrapping_add(r * stride + p) };
                    }
                    out[r] = total;
                }
            }
        }
        pub(crate) use $module::TABLE as $name;
    };
}
pub(crate) use kernels;
