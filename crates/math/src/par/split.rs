//! Safe splitting of mutable slices over a [`Par`].

use super::Par;

/// A base pointer that may cross threads; each use derives a slice from a range nobody else has.
struct Base<T>(*mut T);

// SAFETY: the pointer only serves to build disjoint `&mut [T]`, which may be sent for `T: Send`.
unsafe impl<T: Send> Sync for Base<T> {}

impl<T> Base<T> {
    /// # Safety
    /// `offset..offset + len` lies inside the allocation and no other live reference overlaps it.
    #[expect(
        clippy::mut_from_ref,
        reason = "exclusive by the caller's disjoint ranges"
    )]
    unsafe fn slice(&self, offset: usize, len: usize) -> &mut [T] {
        // SAFETY: the caller keeps the range inside the allocation.
        let first = unsafe { self.0.add(offset) };
        // SAFETY: the caller keeps the range exclusive; the lifetime is bounded by the borrow held by the splitter.
        unsafe { std::slice::from_raw_parts_mut(first, len) }
    }
}

/// Runs `body(offset, chunk)` over disjoint chunks of `data`; chunks begin at multiples of `grain`.
pub fn chunks_mut<T: Send>(
    par: &dyn Par,
    data: &mut [T],
    grain: usize,
    body: impl Fn(usize, &mut [T]) + Sync,
) {
    let base = Base(data.as_mut_ptr());
    par.for_each(data.len(), grain, &|range| {
        // SAFETY: `Par` gives disjoint ranges inside `0..data.len()`, and `data` stays borrowed until `for_each` is over.
        let chunk = unsafe { base.slice(range.start, range.len()) };
        body(range.start, chunk);
    });
}

/// Runs `body(first_row, rows)` over disjoint runs of whole rows of `row_len` elements; `grain` counts rows.
///
/// # Panics
/// If `data` is not a whole number of rows.
pub fn rows_mut<T: Send>(
    par: &dyn Par,
    data: &mut [T],
    row_len: usize,
    grain: usize,
    body: impl Fn(usize, &mut [T]) + Sync,
) {
    let rows = whole_rows(data.len(), row_len);
    let base = Base(data.as_mut_ptr());
    par.for_each(rows, grain, &|range| {
        // SAFETY: rows are disjoint and inside `data`, as the row ranges are disjoint and below `rows`.
        let chunk = unsafe { base.slice(range.start * row_len, range.len() * row_len) };
        body(range.start, chunk);
    });
}

/// As [`rows_mut`] for two outputs with the same number of rows: `body(first_row, rows_of_a, rows_of_b)`.
///
/// # Panics
/// If an output is not a whole number of rows or the numbers of rows differ.
pub fn rows2_mut<T: Send, U: Send>(
    par: &dyn Par,
    a: (&mut [T], usize),
    b: (&mut [U], usize),
    grain: usize,
    body: impl Fn(usize, &mut [T], &mut [U]) + Sync,
) {
    let (a, a_len) = a;
    let (b, b_len) = b;
    let rows = whole_rows(a.len(), a_len);
    assert_eq!(
        rows,
        whole_rows(b.len(), b_len),
        "outputs differ in their number of rows"
    );
    let (base_a, base_b) = (Base(a.as_mut_ptr()), Base(b.as_mut_ptr()));
    par.for_each(rows, grain, &|range| {
        // SAFETY: as in `rows_mut`, for `a`.
        let chunk_a = unsafe { base_a.slice(range.start * a_len, range.len() * a_len) };
        // SAFETY: as in `rows_mut`, for `b`.
        let chunk_b = unsafe { base_b.slice(range.start * b_len, range.len() * b_len) };
        body(range.start, chunk_a, chunk_b);
    });
}

fn whole_rows(len: usize, row_len: usize) -> usize {
    if len == 0 {
        return 0;
    }
    assert!(
        row_len > 0 && len.is_multiple_of(row_len),
        "{len} elements are no whole number of rows of {row_len}"
    );
    len / row_len
}
