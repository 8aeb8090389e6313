use half::f16;
use proptest::prelude::*;

use super::*;
use crate::gemm::simd;
use crate::par::{Pool, Serial};

/// Small whole numbers: every sum below is exact, so results must be equal, whatever the order.
fn numbers(len: usize, seed: usize) -> Vec<f32> {
    (0..len)
        .map(|i| ((i * 7 + seed * 3) * 2654435761 % 7) as f32 - 3.0)
        .collect()
}

fn check(par: &dyn Par, conv: &Conv2d) {
    let (input, filter) = (numbers(conv.input_len(), 1), numbers(conv.filter_len(), 2));
    let (grad, bias) = (numbers(conv.output_len(), 3), numbers(conv.out_channels, 4));
    let wide = |x: &[f32]| -> Vec<f64> { x.iter().map(|&x| f64::from(x)).collect() };
    let (wide_input, wide_filter, wide_grad) = (wide(&input), wide(&filter), wide(&grad));

    for epilogue in [Epilogue::None, Epilogue::BiasRelu(&bias)] {
        let (mut y, mut expected) = (vec![f32::NAN; grad.len()], vec![f32::NAN; grad.len()]);
        forward(par, conv, &input, &filter, &mut y, epilogue);
        naive::forward(&Serial, conv, &input, &filter, &mut expected, epilogue);
        assert_eq!(y, expected, "forward {conv:?}");
    }
    let mut y = vec![f64::NAN; grad.len()];
    let mut expected = y.clone();
    forward(par, conv, &wide_input, &wide_filter, &mut y, Epilogue::None);
    naive::forward(
        &Serial,
        conv,
        &wide_input,
        &wide_filter,
        &mut expected,
        Epilogue::None,
    );
    assert_eq!(y, expected, "forward f64 {conv:?}");

    let (mut x, mut expected) = (vec![f32::NAN; input.len()], vec![f32::NAN; input.len()]);
    backprop_input(par, conv, &filter, &grad, &mut x);
    naive::backprop_input(&Serial, conv, &filter, &grad, &mut expected);
    assert_eq!(x, expected, "backprop_input {conv:?}");

    let (mut w, mut expected) = (vec![f32::NAN; filter.len()], vec![f32::NAN; filter.len()]);
    backprop_filter(par, conv, &input, &grad, &mut w);
    naive::backprop_filter(&Serial, conv, &input, &grad, &mut expected);
    assert_eq!(w, expected, "backprop_filter {conv:?}");
    let (mut w, mut expected) = (vec![f64::NAN; filter.len()], vec![f64::NAN; filter.len()]);
    backprop_filter(par, conv, &wide_input, &wide_grad, &mut w);
    naive::backprop_filter(&Serial, conv, &wide_input, &wide_grad, &mut expected);
    assert_eq!(w, expected, "backprop_filter f64 {conv:?}");
}

fn pair(range: std::ops::Range<usize>) -> impl Strategy<Value = [usize; 2]> {
    [range.clone(), range]
}

fn shapes() -> impl Strategy<Value = Conv2d> {
    let padding = prop_oneof![
        Just(Padding::Same),
        Just(Padding::Valid),
        [pair(0..4), pair(0..4)].prop_map(Padding::Explicit),
    ];
    let channels = prop_oneof![3 => 0usize..5, 2 => 5usize..20, 1 => Just(35usize)];
    (
        (0usize..4, pair(0..15), pair(1..6), pair(1..4), pair(1..4)),
        (channels.clone(), channels, 1usize..4, padding),
    )
        .prop_filter_map(
            "the filter does not fit",
            |((n, input, filter, stride, dilation), (depth, out, groups, padding))| {
                let input = [n, input[0], input[1], depth * groups];
                let filter = [filter[0], filter[1], depth, out * groups];
                Conv2d::new(input, filter, stride, dilation, padding)
            },
        )
}

fn depthwise_shapes() -> impl Strategy<Value = Conv2d> {
    let padding = prop_oneof![Just(Padding::Same), Just(Padding::Valid)];
    (
        (1usize..3, pair(1..12), pair(1..6), pair(1..4), pair(1..4)),
        (0usize..40, 1usize..4, padding),
    )
        .prop_filter_map(
            "the filter does not fit",
            |((n, input, filter, stride, dilation), (channels, times, padding))| {
                let input = [n, input[0], input[1], channels];
                let filter = [filter[0], filter[1], channels, times];
                Conv2d::depthwise(input, filter, stride, dilation, padding)
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_plain_loops(conv in shapes()) {
        check(&Serial, &conv);
    }

    #[test]
    fn agrees_with_every_table(conv in shapes()) {
        prop_assume!(conv.in_channels * conv.out_channels > 0 && conv.output_len() > 0 && conv.input_len() > 0);
        let (x, w, g) = (numbers(conv.input_len(), 1), numbers(conv.filter_len(), 2), numbers(conv.output_len(), 3));
        let mut results = Vec::new();
        for kernels in simd::all_f32() {
            let (mut y, mut dx) = (vec![f32::NAN; g.len()], vec![f32::NAN; x.len()]);
            let (mut columns, mut dw) = (vec![f32::NAN; x.len()], vec![f32::NAN; w.len()]);
            correlate::forward(&Serial, kernels, &conv, &x, &w, &mut y, Epilogue::None);
            columns::run(&Serial, kernels, &conv, &w, &g, &mut columns);
            filter_grad::run(&Serial, kernels, &conv, &x, &g, &mut dw);
            if input_grad::applies(&conv) {
                input_grad::run(&Serial, kernels, &conv, &w, &g, &mut dx);
                prop_assert_eq!(&dx, &columns);
            }
            results.push((y, columns, dw));
        }
        prop_assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn agrees_for_depthwise_shapes(conv in depthwise_shapes()) {
        check(&Serial, &conv);
    }
}

#[test]
fn agrees_on_several_threads() {
    let pool = Pool::new(3);
    let conv = |input, filter, stride, padding| {
        Conv2d::new(input, filter, [stride; 2], [1, 1], padding).unwrap()
    };
    for conv in [
        conv([2, 28, 28, 1], [5, 5, 1, 32], 1, Padding::Same),
        conv([2, 14, 14, 32], [5, 5, 32, 64], 1, Padding::Same),
        conv([1, 56, 56, 3], [7, 7, 3, 64], 2, Padding::Same),
        conv([1, 12, 12, 160], [3, 3, 160, 48], 1, Padding::Valid),
        conv([3, 10, 11, 40], [1, 1, 40, 50], 1, Padding::Same),
        conv([3, 10, 11, 40], [1, 1, 40, 50], 2, Padding::Same),
        conv([64, 3, 3, 40], [3, 3, 40, 50], 1, Padding::Valid),
        conv([2, 20, 20, 24], [3, 3, 12, 64], 1, Padding::Same),
        conv(
            [1, 1, 0, 3],
            [1, 1, 3, 2],
            1,
            Padding::Explicit([[0, 0], [0, 1]]),
        ),
        conv([2, 40, 40, 48], [3, 3, 1, 96], 2, Padding::Same),
        conv([1, 40, 40, 99], [3, 3, 1, 99], 1, Padding::Same),
    ] {
        check(&pool, &conv);
    }
}

#[test]
fn convolves_halves_and_integers() {
    let conv = Conv2d::new([1, 5, 5, 2], [3, 3, 2, 4], [1, 1], [1, 1], Padding::Same).unwrap();
    let (input, filter) = (numbers(conv.input_len(), 1), numbers(conv.filter_len(), 2));
    let mut y = vec![0.0; conv.output_len()];
    forward(&Serial, &conv, &input, &filter, &mut y, Epilogue::None);
    let halves = |x: &[f32]| -> Vec<f16> { x.iter().map(|&x| f16::from_f32(x)).collect() };
    let mut y_half = vec![f16::NAN; conv.output_len()];
    forward(
        &Serial,
        &conv,
        &halves(&input),
        &halves(&filter),
        &mut y_half,
        Epilogue::None,
    );
    assert_eq!(y_half, halves(&y));
    let whole = |x: &[f32]| -> Vec<i32> { x.iter().map(|&x| x as i32).collect() };
    let mut y_int = vec![0; conv.output_len()];
    forward(
        &Serial,
        &conv,
        &whole(&input),
        &whole(&filter),
        &mut y_int,
        Epilogue::None,
    );
    assert_eq!(y_int, whole(&y));
}

#[test]
fn sizes_windows_as_tensorflow_does() {
    let check =
        |input, filter, dilation, stride, padding, expected: Option<(usize, usize, usize)>| {
            let window = Window::new(0, input, filter, dilation, stride, padding);
            assert_eq!(window.map(|w| (w.output, w.before, w.after)), expected);
        };
    check(224, 7, 1, 2, Padding::Same, Some((112, 2, 3)));
    check(28, 5, 1, 1, Padding::Same, Some((28, 2, 2)));
    check(5, 3, 2, 1, Padding::Valid, Some((1, 0, 0)));
    check(2, 3, 1, 1, Padding::Valid, Some((0, 0, 0)));
    check(1, 3, 1, 1, Padding::Valid, None);
    check(
        4,
        3,
        1,
        2,
        Padding::Explicit([[1, 2], [0, 0]]),
        Some((3, 1, 2)),
    );
    check(0, 3, 1, 2, Padding::Same, Some((0, 0, 1)));
}
