//! Convolutions of volumes against plain loops.

use proptest::prelude::*;

use super::{Conv3d, Padding, backprop_filter_3d, backprop_input_3d, forward_3d};
use crate::par::{Pool, Serial};

/// Small whole numbers: every sum below is exact.
fn numbers(len: usize, seed: usize) -> Vec<f32> {
    (0..len)
        .map(|i| ((i * 7 + seed * 3) * 2654435761 % 7) as f32 - 3.0)
        .collect()
}

/// Zeros before the first element for `SAME`.
fn before(input: usize, window: usize, stride: usize, padding: Padding) -> usize {
    match padding {
        Padding::Same => ((input.div_ceil(stride) - 1) * stride + window).saturating_sub(input) / 2,
        _ => 0,
    }
}

/// Calls `body(output, input, filter)` with the elements that are multiplied.
fn for_products(
    input: [usize; 5],
    filter: [usize; 5],
    output: [usize; 5],
    (stride, padding): ([usize; 3], Padding),
    mut body: impl FnMut(usize, usize, usize),
) {
    let flat = |sizes: [usize; 5], at: [usize; 5]| (0..5).fold(0, |sum, i| sum * sizes[i] + at[i]);
    let pads: Vec<usize> = (0..3)
        .map(|i| before(input[i + 1], filter[i], stride[i], padding))
        .collect();
    for n in 0..flat(output, [output[0], 0, 0, 0, 0]) {
        let mut rest = n;
        let mut out = [0; 5];
        for axis in (0..5).rev() {
            out[axis] = rest % output[axis];
            rest /= output[axis];
        }
        for tap in 0..filter[0] * filter[1] * filter[2] {
            let tap = [
                tap / filter[2] / filter[1],
                tap / filter[2] % filter[1],
                tap % filter[2],
            ];
            let at: Option<Vec<usize>> = (0..3)
                .map(|i| {
                    let at = (out[i + 1] * stride[i] + tap[i]).checked_sub(pads[i])?;
                    (at < input[i + 1]).then_some(at)
                })
                .collect();
            let Some(at) = at else { continue };
            for channel in 0..input[4] {
                body(
                    n,
                    flat(input, [out[0], at[0], at[1], at[2], channel]),
                    flat(filter, [tap[0], tap[1], tap[2], channel, out[4]]),
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn convolutions_of_volumes_are_those_of_plain_loops(
        input in (1usize..3, 1usize..6, 1usize..6, 1usize..6, 1usize..4),
        window in (1usize..4, 1usize..4, 1usize..4, 1usize..4),
        stride in (1usize..3, 1usize..3, 1usize..3),
        same in any::<bool>(),
        threads in 1usize..3,
    ) {
        let padding = if same { Padding::Same } else { Padding::Valid };
        let input = [input.0, input.1, input.2, input.3, input.4];
        let filter = [window.0, window.1, window.2, input[4], window.3];
        let stride = [stride.0, stride.1, stride.2];
        let Some(conv) = Conv3d::new(input, filter, stride, padding) else { return Ok(()) };
        let output = conv.output();
        let len = |sizes: [usize; 5]| sizes.iter().product::<usize>();
        let (x, w, g) = (numbers(len(input), 1), numbers(len(filter), 2), numbers(len(output), 3));
        let (mut y, mut dx, mut dw) = (vec![0.0; g.len()], vec![0.0; x.len()], vec![0.0; w.len()]);
        for_products(input, filter, output, (stride, padding), |out, at, tap| {
            y[out] += x[at] * w[tap];
            dx[at] += g[out] * w[tap];
            dw[tap] += g[out] * x[at];
        });
        let pool = Pool::new(threads);
        let (mut found_y, mut found_dx, mut found_dw) = (y.clone(), dx.clone(), dw.clone());
        found_y.fill(f32::NAN);
        found_dx.fill(f32::NAN);
        found_dw.fill(f32::NAN);
        if !g.is_empty() {
            forward_3d(&pool, &conv, &x, &w, &mut found_y);
            backprop_input_3d(&pool, &conv, &w, &g, &mut found_dx);
            backprop_filter_3d(&Serial, &conv, &x, &g, &mut found_dw);
            prop_assert_eq!(found_y, y);
            prop_assert_eq!(found_dx, dx);
            prop_assert_eq!(found_dw, dw);
        }
    }
}
