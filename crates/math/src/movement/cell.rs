//! Elements by their size: data movement does not care what the bytes mean.

/// Plain bytes of one element.
pub(super) trait Cells: Copy + Send + Sync + 'static {
    /// The elements in `bytes`.
    fn of(bytes: &[u8]) -> &[Self];

    /// The elements in `bytes`, to write.
    fn of_mut(bytes: &mut [u8]) -> &mut [Self];
}

impl<const SIZE: usize> Cells for [u8; SIZE] {
    fn of(bytes: &[u8]) -> &[Self] {
        let (cells, rest) = bytes.as_chunks();
        assert!(rest.is_empty(), "bytes are no whole number of elements");
        cells
    }

    fn of_mut(bytes: &mut [u8]) -> &mut [Self] {
        let (cells, rest) = bytes.as_chunks_mut();
        assert!(rest.is_empty(), "bytes are no whole number of elements");
        cells
    }
}

/// Evaluates an expression with `$cell` being the plain type of `$size` bytes: `by_size!(size, Cell => f(Cell::of(bytes)))`.
///
/// # Panics
/// For a size that no element has.
macro_rules! by_size {
    (@arm $n:literal, $cell:ident => $body:expr) => {{
        type $cell = [u8; $n];
        #[allow(unused_imports)]
        use $crate::movement::cell::Cells as _;
        $body
    }};
    ($size:expr, $cell:ident => $body:expr) => {
        match $size {
            1 => $crate::movement::cell::by_size!(@arm 1, $cell => $body),
            2 => $crate::movement::cell::by_size!(@arm 2, $cell => $body),
            4 => $crate::movement::cell::by_size!(@arm 4, $cell => $body),
            8 => $crate::movement::cell::by_size!(@arm 8, $cell => $body),
            16 => $crate::movement::cell::by_size!(@arm 16, $cell => $body),
            size => panic!("no element has {size} bytes"),
        }
    };
    (rows $size:expr, $cell:ident => $body:expr, else $other:expr) => {
        match $size {
            1 => $crate::movement::cell::by_size!(@arm 1, $cell => $body),
            2 => $crate::movement::cell::by_size!(@arm 2, $cell => $body),
            4 => $crate::movement::cell::by_size!(@arm 4, $cell => $body),
            8 => $crate::movement::cell::by_size!(@arm 8, $cell => $body),
            16 => $crate::movement::cell::by_size!(@arm 16, $cell => $body),
            32 => $crate::movement::cell::by_size!(@arm 32, $cell => $body),
            64 => $crate::movement::cell::by_size!(@arm 64, $cell => $body),
            _ => $other,
        }
    };
}

pub(super) use by_size;
