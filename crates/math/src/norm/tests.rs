use half::{bf16, f16};
use proptest::prelude::*;

use super::*;
use crate::par::{Par, Pool, Serial};

const GOLDEN: &str = include_str!("golden/norm.txt");

/// The inputs of the golden file, see its generator.
fn x(first: usize, len: usize) -> Vec<f32> {
    (first..first + len)
        .map(|k| (((k * 37 + 11) % 101) as f64 / 50.0 - 1.0) as f32)
        .collect()
}

fn near(got: &[f32], expected: &[f64], tolerance: f64) -> bool {
    got.len() == expected.len()
        && got.iter().zip(expected).all(|(&got, &expected)| {
            (f64::from(got) - expected).abs() <= tolerance * (1.0 + expected.abs())
        })
}

fn golden(name: &str) -> Vec<Vec<f64>> {
    let line = GOLDEN
        .lines()
        .find(|line| line.starts_with(&format!("{name} = ")));
    let (_, tensors) = line.unwrap().split_once(" = ").unwrap();
    let parse = |tensor: &str| tensor.split(' ').map(|v| v.parse().unwrap()).collect();
    tensors.split(" | ").map(parse).collect()
}

struct Trained<T> {
    y: Vec<T>,
    /// Mean, variance, saved mean, saved variance.
    statistics: [Vec<f32>; 4],
}

fn train<T: NormElement>(
    par: &dyn Par,
    layout: Layout,
    channels: usize,
    norm: BatchNorm<'_>,
    running: Option<Running<'_>>,
    x: &[T],
) -> Trained<T> {
    let mut y = vec![T::ZERO; x.len()];
    let mut statistics = std::array::from_fn(|_| vec![7.0; channels]);
    let [mean, variance, saved_mean, saved_variance] = &mut statistics;
    let outputs = Statistics {
        mean,
        variance,
        saved_mean,
        saved_variance,
    };
    batch_norm_train(par, layout, norm, running, x, &mut y, outputs);
    Trained { y, statistics }
}

/// The three gradients of a batch normalisation.
fn grads<T: NormElement>(
    par: &dyn Par,
    layout: Layout,
    norm: BatchNormGrad<'_>,
    dy: &[T],
    x: &[T],
) -> (Vec<T>, Vec<f32>, Vec<f32>) {
    let channels = norm.scale.len();
    let (mut dx, mut dscale, mut doffset) = (
        vec![T::ZERO; x.len()],
        vec![7.0; channels],
        vec![7.0; channels],
    );
    batch_norm_grad(par, layout, norm, dy, x, &mut dx, &mut dscale, &mut doffset);
    (dx, dscale, doffset)
}

#[test]
fn normalises_batches_as_tensorflow_does() {
    let (data, dy) = (x(0, 24), x(50, 24));
    let layout = Layout::nhwc(12, 2);
    let (scale, offset, epsilon) = (&[1.5, -0.5], &[0.25, 1.0], 0.01);
    let norm = BatchNorm {
        scale,
        offset,
        epsilon,
    };
    let (mean, variance) = ([0.1, -0.2], [0.5, 2.0]);
    let running = Running {
        mean: &mean,
        variance: &variance,
        exponential_avg_factor: 0.25,
    };
    for (name, running) in [("train", None), ("average", Some(running))] {
        let got = train(&Serial, layout, 2, norm, running, &data);
        let expected = golden(name);
        assert!(near(&got.y, &expected[0], 2e-6), "{name}");
        for (got, expected) in got.statistics.iter().zip(&expected[1..]) {
            assert!(near(got, expected, 1e-6), "{name}: {got:?} {expected:?}");
        }
        let [_, _, mean, variance] = &got.statistics;
        let norm = BatchNormGrad {
            is_training: true,
            scale,
            mean,
            variance,
            epsilon,
        };
        let (dx, dscale, doffset) = grads(&Serial, layout, norm, &dy, &data);
        let expected = golden(&format!("{name}_grad"));
        assert!(near(&dx, &expected[0], 3e-6), "{name}");
        assert!(near(&dscale, &expected[1], 3e-6) && near(&doffset, &expected[2], 3e-6));
    }
    let mut y = vec![0.0; 24];
    batch_norm_infer(&Serial, layout, norm, (&mean, &variance), &data, &mut y);
    assert!(near(&y, &golden("infer")[0], 1e-6));
    let norm = BatchNormGrad {
        is_training: false,
        scale,
        mean: &mean,
        variance: &variance,
        epsilon,
    };
    let (dx, dscale, doffset) = grads(&Serial, layout, norm, &dy, &data);
    let expected = golden("infer_grad");
    assert!(near(&dx, &expected[0], 1e-6) && near(&dscale, &expected[1], 3e-6));
    assert!(near(&doffset, &expected[2], 1e-6));
}

#[test]
fn normalises_neighbours_as_tensorflow_does() {
    let (data, dy) = (x(0, 14), x(50, 14));
    for (name, beta) in [("lrn_0.75", 0.75), ("lrn_0.5", 0.5), ("lrn_1.0", 1.0)] {
        let attrs = Lrn {
            depth_radius: 2,
            bias: 1.5,
            alpha: 0.5,
            beta,
        };
        let (mut y, mut dx) = (vec![0.0; 14], vec![0.0; 14]);
        lrn(&Serial, attrs, 7, &data, &mut y);
        lrn_grad(&Serial, attrs, 7, (&dy, &data, &y), &mut dx);
        let expected = golden(name);
        assert!(near(&y, &expected[0], 1e-6), "{name}: {y:?}");
        assert!(near(&dx, &expected[1], 1e-6), "{name}: {dx:?}");
    }
}

/// Mean and variance of each channel in double precision; `channel` says whose an element is.
fn moments(
    data: &[f32],
    channels: usize,
    channel: impl Fn(usize) -> usize,
) -> (Vec<f64>, Vec<f64>) {
    let count = (data.len() / channels) as f64;
    let mut mean = vec![0.0; channels];
    let mut variance = vec![0.0; channels];
    for (i, &x) in data.iter().enumerate() {
        mean[channel(i)] += f64::from(x) / count;
    }
    for (i, &x) in data.iter().enumerate() {
        variance[channel(i)] += (f64::from(x) - mean[channel(i)]).powi(2) / count;
    }
    (mean, variance)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn both_layouts_agree_with_plain_loops(
        batch in 1..4_usize, plane in 2..50_usize, channels in prop_oneof![1..5_usize, 30..40_usize], first in 0..1000_usize,
    ) {
        let len = batch * channels * plane;
        let (nchw, dy_nchw) = (x(first, len), x(first + 50, len));
        // The same numbers with the channels last.
        let last = |from: &[f32]| -> Vec<f32> {
            (0..len).map(|i| {
                let (pixel, channel) = (i / channels, i % channels);
                from[(pixel / plane * channels + channel) * plane + pixel % plane]
            }).collect()
        };
        let (nhwc, dy_nhwc) = (last(&nchw), last(&dy_nchw));
        let (scale, offset, epsilon) = (&x(7, channels)[..], &x(9, channels)[..], 0.01);
        let norm = BatchNorm { scale, offset, epsilon };
        let (mean, variance) = moments(&nchw, channels, |i| i / plane % channels);
        let pool = Pool::new(2);
        let a = train(&pool, Layout::nchw(batch, channels, plane), channels, norm, None, &nchw);
        let b = train(&pool, Layout::nhwc(batch * plane, channels), channels, norm, None, &nhwc);
        let correction = (batch * plane) as f64 / ((batch * plane) as f64 - 1.0);
        let corrected: Vec<f64> = variance.iter().map(|v| v * correction).collect();
        let mut expected = vec![0.0; len];
        for (i, expected) in expected.iter_mut().enumerate() {
            let c = i / plane % channels;
            let factor = f64::from(scale[c]) / (variance[c] + 0.01).sqrt();
            *expected = (f64::from(nchw[i]) - mean[c]) * factor + f64::from(offset[c]);
        }
        for got in [&a.statistics, &b.statistics] {
            prop_assert!(near(&got[0], &mean, 1e-5) && near(&got[1], &corrected, 1e-5));
            prop_assert!(near(&got[2], &mean, 1e-5) && near(&got[3], &variance, 1e-5));
        }
        prop_assert!(near(&a.y, &expected, 1e-4));
        let as_f64 = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        prop_assert!(near(&b.y, &as_f64(&last(&a.y)), 1e-4));
        for is_training in [true, false] {
            let norm = BatchNormGrad { is_training, scale, mean: &a.statistics[2], variance: &a.statistics[3], epsilon };
            let a = grads(&pool, Layout::nchw(batch, channels, plane), norm, &dy_nchw, &nchw);
            let b = grads(&pool, Layout::nhwc(batch * plane, channels), norm, &dy_nhwc, &nhwc);
            prop_assert!(near(&b.0, &as_f64(&last(&a.0)), 1e-4));
            prop_assert!(near(&b.1, &as_f64(&a.1), 1e-4) && near(&b.2, &as_f64(&a.2), 1e-4));
        }
    }

    #[test]
    fn local_response_agrees_with_plain_loops(pixels in 0..5_usize, channels in 1..20_usize, depth_radius in 0..25_usize, beta in 0.1..1.5_f32) {
        let (data, dy) = (x(3, pixels * channels), x(60, pixels * channels));
        let attrs = Lrn { depth_radius, bias: 1.0, alpha: 0.3, beta };
        let (mut y, mut dx) = (vec![0.0; data.len()], vec![0.0; data.len()]);
        lrn(&Pool::new(2), attrs, channels, &data, &mut y);
        lrn_grad(&Pool::new(2), attrs, channels, (&dy, &data, &y), &mut dx);
        let (mut expected, mut expected_dx) = (vec![0.0; data.len()], vec![0.0; data.len()]);
        for i in 0..data.len() {
            let pixel = i / channels * channels;
            let seen = i.saturating_sub(depth_radius).max(pixel)..(i + depth_radius + 1).min(pixel + channels);
            let sum: f64 = data[seen.clone()].iter().map(|&x| f64::from(x).powi(2)).sum();
            let norm = 1.0 + f64::from(attrs.alpha) * sum;
            let power = norm.powf(-f64::from(beta));
            expected[i] = f64::from(data[i]) * power;
            for k in seen {
                let through = -2.0 * f64::from(attrs.alpha * beta) * f64::from(data[k]) * expected[i] / norm;
                expected_dx[k] += f64::from(dy[i]) * (through + if k == i { power } else { 0.0 });
            }
        }
        prop_assert!(near(&y, &expected, 1e-5), "{y:?} {expected:?}");
        prop_assert!(near(&dx, &expected_dx, 1e-5), "{dx:?} {expected_dx:?}");
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let pool = Pool::new(3);
    for (layout, len) in [
        (Layout::nhwc(5000, 33), 165_000),
        (Layout::nchw(4, 5, 20_001), 400_020),
    ] {
        let channels = layout.channels;
        let data = x(0, len);
        let (scale, offset) = (&x(7, channels)[..], &x(9, channels)[..]);
        let norm = BatchNorm {
            scale,
            offset,
            epsilon: 0.01,
        };
        let a = train(&Serial, layout, channels, norm, None, &data);
        let b = train(&pool, layout, channels, norm, None, &data);
        assert!(a.y == b.y && a.statistics == b.statistics);
    }
}

fn check_half<T: NormElement>(tolerance: f64) {
    let data: Vec<T> = x(0, 24)
        .iter()
        .map(|&x| T::from_f64(f64::from(x)))
        .collect();
    let norm = BatchNorm {
        scale: &[1.5, -0.5],
        offset: &[0.25, 1.0],
        epsilon: 0.01,
    };
    let got = train(&Serial, Layout::nhwc(12, 2), 2, norm, None, &data);
    let wide: Vec<f32> = got.y.iter().map(|y| y.to_f32()).collect();
    assert!(near(&wide, &golden("train")[0], tolerance), "{wide:?}");
}

#[test]
fn halves_are_normalised_in_single_precision() {
    check_half::<f16>(2e-3);
    check_half::<bf16>(2e-2);
}

#[test]
fn nothing_has_no_mean() {
    let norm = BatchNorm {
        scale: &[1.0, 1.0],
        offset: &[0.0, 0.0],
        epsilon: 0.01,
    };
    let got = train::<f32>(&Serial, Layout::nhwc(0, 2), 2, norm, None, &[]);
    assert!(got.statistics.iter().flatten().all(|x| x.is_nan()));
    // One element of a channel: its variance is zero with and without correction.
    let got = train(&Serial, Layout::nhwc(1, 2), 2, norm, None, &[3.0_f32, 4.0]);
    assert_eq!(
        got.statistics,
        [vec![3.0, 4.0], vec![0.0; 2], vec![3.0, 4.0], vec![0.0; 2]]
    );
    let zeros = [0.0; 2];
    let norm = BatchNormGrad {
        is_training: true,
        scale: &zeros,
        mean: &zeros,
        variance: &zeros,
        epsilon: 0.01,
    };
    let (_, dscale, doffset) = grads::<f32>(&Serial, Layout::nhwc(0, 2), norm, &[], &[]);
    assert_eq!((dscale, doffset), (vec![0.0; 2], vec![0.0; 2]));
    lrn::<f32>(
        &Serial,
        Lrn {
            depth_radius: 1,
            bias: 1.0,
            alpha: 1.0,
            beta: 0.5,
        },
        0,
        &[],
        &mut [],
    );
}
