use half::{bf16, f16};
use proptest::prelude::*;

use super::*;
use crate::num::Num;
use crate::par::{Pool, Serial};

/// A plain pooling: for each output element the input elements of its window, with their indices, in order.
fn windows(shape: &Pool2d) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for image in 0..shape.batch {
        for row in 0..shape.out_rows {
            for col in 0..shape.out_cols {
                for channel in 0..shape.channels {
                    let mut window = Vec::new();
                    for i in 0..shape.window_rows {
                        for j in 0..shape.window_cols {
                            let r = (row * shape.row_stride + i).checked_sub(shape.pad_top);
                            let c = (col * shape.col_stride + j).checked_sub(shape.pad_left);
                            if let (Some(r), Some(c)) = (r, c)
                                && r < shape.in_rows
                                && c < shape.in_cols
                            {
                                let pixel = (image * shape.in_rows + r) * shape.in_cols + c;
                                window.push(pixel * shape.channels + channel);
                            }
                        }
                    }
                    all.push(window);
                }
            }
        }
    }
    all
}

/// Coarse numbers, so that there are ties.
fn numbers<T: Num>(len: usize, salt: u64) -> Vec<T> {
    (0..len as u64)
        .map(|i| {
            let noise = (i + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
            T::from_f64(noise as f64 - 3.0)
        })
        .collect()
}

fn extent(input: usize, window: usize, stride: usize, padding: usize) -> usize {
    (input + padding).saturating_sub(window) / stride + 1
}

prop_compose! {
    fn shapes()(
        batch in 1..3_usize,
        channels in prop_oneof![1..4_usize, 15..35_usize],
        (in_rows, in_cols) in (1..9_usize, 1..9_usize),
        (window_rows, window_cols) in (1..4_usize, 1..4_usize),
        (row_stride, col_stride) in (1..4_usize, 1..4_usize),
        (top, left, bottom, right) in (0..3_usize, 0..3_usize, 0..3_usize, 0..3_usize),
    ) -> Pool2d {
        let (window_rows, window_cols) = (window_rows.min(in_rows), window_cols.min(in_cols));
        let (pad_top, pad_left) = (top.min(window_rows - 1), left.min(window_cols - 1));
        let bottom = bottom.min(window_rows - 1);
        let right = right.min(window_cols - 1);
        Pool2d {
            batch, in_rows, in_cols, channels, window_rows, window_cols, row_stride, col_stride, pad_top, pad_left,
            out_rows: extent(in_rows, window_rows, row_stride, pad_top + bottom),
            out_cols: extent(in_cols, window_cols, col_stride, pad_left + right),
        }
    }
}

fn check<T: PoolElement + crate::num::Float>(shape: &Pool2d) -> Result<(), TestCaseError> {
    let pool = Pool::new(2);
    let input = numbers::<T>(shape.input_len(), 0);
    let grad = numbers::<T>(shape.output_len(), 99);
    let grad_grad = numbers::<T>(shape.input_len(), 7);
    let windows = windows(shape);
    let first_max = |window: &[usize]| {
        let mut best = window[0];
        for &at in window {
            if input[at] > input[best] {
                best = at;
            }
        }
        best
    };
    let places: Vec<usize> = windows.iter().map(|window| first_max(window)).collect();

    let mut out = grad.clone();
    max_pool(&pool, shape, &input, &mut out);
    let expected: Vec<T> = places.iter().map(|&at| input[at]).collect();
    prop_assert_eq!(&out, &expected);

    let image = shape.input_len() / shape.batch;
    for whole in [true, false] {
        let (mut out, mut argmax) = (grad.clone(), vec![0; grad.len()]);
        max_pool_with_argmax(&pool, shape, whole, &input, &mut out, &mut argmax);
        let modulus = if whole { usize::MAX } else { image };
        let indices: Vec<i64> = places.iter().map(|&at| (at % modulus) as i64).collect();
        prop_assert_eq!(&out, &expected);
        prop_assert_eq!(&argmax, &indices);
        let mut back = input.clone();
        prop_assert_eq!(
            max_pool_grad_with_argmax(shape, whole, &grad, &argmax, &mut back),
            Ok(())
        );
        let mut direct = input.clone();
        max_pool_grad(&pool, shape, &input, &grad, &mut direct);
        let mut sums = vec![T::ZERO; input.len()];
        for (&at, &g) in places.iter().zip(&grad) {
            sums[at] = sums[at].add(g);
        }
        prop_assert_eq!(&direct, &sums);
        prop_assert_eq!(&back, &sums);
    }

    let mut out = grad.clone();
    max_pool_grad_grad(&pool, shape, &input, &expected, &grad_grad, &mut out);
    let expected: Vec<T> = places.iter().map(|&at| grad_grad[at]).collect();
    prop_assert_eq!(&out, &expected);

    let near = |a: T, b: f64| (a.to_f64() - b).abs() <= 0.02 * (1.0 + b.abs());
    let mut out = grad.clone();
    avg_pool(&pool, shape, &input, &mut out);
    let mut back = input.clone();
    avg_pool_grad(&pool, shape, &grad, &mut back);
    let mut shares = vec![0.0; input.len()];
    for (i, window) in windows.iter().enumerate() {
        let sum: f64 = window.iter().map(|&at| input[at].to_f64()).sum();
        prop_assert!(near(out[i], sum / window.len() as f64));
        for &at in window {
            shares[at] += grad[i].to_f64() / window.len() as f64;
        }
    }
    for (got, expected) in back.into_iter().zip(shares) {
        prop_assert!(near(got, expected));
    }
    Ok(())
}

proptest! {
    #[test]
    fn agrees_with_plain_loops(shape in shapes()) {
        check::<f32>(&shape)?;
        check::<f64>(&shape)?;
        check::<f16>(&shape)?;
        check::<bf16>(&shape)?;
    }
}

prop_compose! {
    /// High images, so that tasks share one, with and without vectors of channels.
    fn high_shapes()(
        mut shape in shapes(),
        in_rows in 1..60_usize,
        channels in prop_oneof![1..4_usize, 15..35_usize],
        bottom in 0..2_usize,
    ) -> Pool2d {
        let bottom = bottom.min(shape.window_rows - 1);
        shape.in_rows = in_rows.max(shape.window_rows);
        shape.channels = channels;
        shape.out_rows = extent(shape.in_rows, shape.window_rows, shape.row_stride, shape.pad_top + bottom);
        shape
    }
}

/// Numbers with ties, NaN, infinities and zeros of both signs; sums of them depend on their order.
fn odd_numbers(len: usize, salt: u64) -> Vec<f32> {
    const ODD: [f32; 8] = [f32::NAN, f32::NEG_INFINITY, -0.0, 0.0, 0.1, -1e8, 3.3, 3.3];
    (0..len as u64)
        .map(|i| ODD[((i + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize])
        .collect()
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

proptest! {
    #[test]
    fn max_pool_grad_agrees_to_the_bit_with_a_plain_loop(shape in high_shapes(), salt in 0..1000_u64) {
        let input = odd_numbers(shape.input_len(), salt);
        let mut grad = odd_numbers(shape.output_len(), salt + 7);
        // Which NaN a sum of two is, nobody says.
        grad.iter_mut().filter(|x| !x.is_finite()).for_each(|x| *x = 1e-3);
        let mut expected = vec![0_f32; input.len()];
        for (window, grad) in windows(&shape).iter().zip(&grad) {
            let mut best = window[0];
            for &at in window {
                best = if input[at] > input[best] { at } else { best };
            }
            expected[best] += grad;
        }
        let mut out = vec![f32::NAN; input.len()];
        max_pool_grad(&Serial, &shape, &input, &grad, &mut out);
        prop_assert_eq!(bits(&out), bits(&expected));
        out.fill(f32::NAN);
        max_pool_grad(&Pool::new(3), &shape, &input, &grad, &mut out);
        prop_assert_eq!(bits(&out), bits(&expected));
    }

    /// A window's columns are summed each for itself, then together, whichever way is taken.
    #[test]
    fn avg_pool_agrees_to_the_bit_with_a_plain_loop(shape in high_shapes(), salt in 0..1000_u64) {
        let mut input = odd_numbers(shape.input_len(), salt);
        input.iter_mut().filter(|x| !x.is_finite()).for_each(|x| *x = 7e-3);
        let column = |at: usize| at / shape.channels % shape.in_cols;
        let mut expected = Vec::new();
        for window in windows(&shape) {
            let mut columns = vec![0_f32; shape.in_cols];
            for &at in &window {
                columns[column(at)] += input[at];
            }
            expected.push(columns.iter().sum::<f32>() / window.len() as f32);
        }
        // Whether an empty sum begins at 0 or -0 is all that may differ.
        let mut out = vec![f32::NAN; expected.len()];
        avg_pool(&Pool::new(2), &shape, &input, &mut out);
        prop_assert_eq!(out, expected);
    }
}

fn square(n: usize, window: usize, stride: usize, out: usize) -> Pool2d {
    Pool2d {
        batch: 1,
        in_rows: n,
        in_cols: n,
        channels: 1,
        window_rows: window,
        window_cols: window,
        row_stride: stride,
        col_stride: stride,
        pad_top: 0,
        pad_left: 0,
        out_rows: out,
        out_cols: out,
    }
}

/// What TensorFlow 2.21 gives for a window of two by two.
#[test]
fn treats_nan_and_infinity_as_tensorflow_does() {
    let shape = square(2, 2, 2, 1);
    let nan = f32::NAN;
    let cases = [
        ([nan, 1.0, 2.0, 3.0], 3.0, 0),
        ([1.0, nan, 2.0, 3.0], 3.0, 3),
        ([1.0, 2.0, 3.0, nan], 3.0, 2),
        ([nan; 4], f32::MIN, 0),
        ([-f32::INFINITY; 4], f32::MIN, 0),
    ];
    for (input, largest, place) in cases {
        let mut out = [0.0];
        max_pool(&Serial, &shape, &input, &mut out);
        assert_eq!(out, [largest], "{input:?}");
        let mut argmax = [9];
        max_pool_with_argmax(&Serial, &shape, false, &input, &mut out, &mut argmax);
        assert_eq!(argmax, [place], "{input:?}");
        assert_eq!(out[0].to_bits(), input[place as usize].to_bits());
    }
    let mut out = [9.0];
    max_pool_grad_grad(&Serial, &shape, &[nan; 4], &[nan], &[1.0; 4], &mut out);
    assert_eq!(out, [0.0]);
}

#[test]
fn pools_nothing() {
    let mut shape = square(2, 2, 2, 1);
    shape.channels = 0;
    max_pool::<f32>(&Serial, &shape, &[], &mut []);
    max_pool_grad::<f32>(&Serial, &shape, &[], &[], &mut []);
    avg_pool::<f32>(&Serial, &shape, &[], &mut []);
    avg_pool_grad::<f32>(&Serial, &shape, &[], &mut []);
    let mut shape = square(2, 2, 2, 1);
    shape.batch = 0;
    max_pool_with_argmax::<f32>(&Serial, &shape, true, &[], &mut [], &mut []);
    avg_pool_grad::<f32>(&Serial, &shape, &[], &mut []);
}

#[test]
fn refuses_indices_outside_the_input() {
    let shape = square(2, 2, 2, 1);
    let bad = max_pool_grad_with_argmax(&shape, true, &[1.0_f32], &[4], &mut [0.0; 4]);
    assert!(bad.is_err());
}
