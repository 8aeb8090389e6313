use half::{bf16, f16};
use num_complex::Complex;
use proptest::prelude::*;

use super::*;
use crate::par::{Pool, Serial};

/// Folds by indices: the output position of each input element, in input order.
fn positions(shape: &[usize], axes: &[usize]) -> (Vec<usize>, usize) {
    let len: usize = shape.iter().product();
    let kept: usize = shape
        .iter()
        .enumerate()
        .filter(|(i, _)| !axes.contains(i))
        .map(|(_, n)| n)
        .product();
    let at = (0..len)
        .map(|at| {
            let (mut rest, mut stride, mut out) = (at, 1, 0);
            for i in (0..shape.len()).rev() {
                if !axes.contains(&i) {
                    out += rest % shape[i] * stride;
                    stride *= shape[i];
                }
                rest /= shape[i];
            }
            out
        })
        .collect();
    (at, kept)
}

fn check(shape: &[usize], axes: &[usize]) {
    let (at, kept) = positions(shape, axes);
    let x: Vec<f32> = (0..at.len())
        .map(|i| ((i * 7919) % 1009) as f32 * 0.01 - 3.0)
        .collect();
    let layout = Layout::new(shape, axes);
    assert_eq!(layout.out_len(), kept);
    let count = layout.reduced_len() as f64;
    let fold = |start: f64, f: fn(f64, f64) -> f64| {
        let mut out = vec![start; kept];
        for (&at, &x) in at.iter().zip(&x) {
            out[at] = f(out[at], f64::from(x));
        }
        out
    };
    let sums = fold(0.0, |a, b| a + b);
    let sizes = fold(0.0, |a, b| a + b.abs());
    let pool = Pool::new(3);
    let run = |op| {
        let (mut one, mut many) = (vec![0f32; kept], vec![0f32; kept]);
        apply(&Serial, op, &layout, &x, &mut one);
        apply(&pool, op, &layout, &x, &mut many);
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(
            bits(&one),
            bits(&many),
            "{op:?} {shape:?} {axes:?} depends on threads"
        );
        one
    };
    let near = |got: &[f32], want: &[f64], scale: &[f64]| {
        for ((got, want), scale) in got.iter().zip(want).zip(scale) {
            let both_nan = got.is_nan() && want.is_nan();
            assert!(
                both_nan || (f64::from(*got) - want).abs() <= 2e-6 * scale,
                "{shape:?} {axes:?}: {got} {want}"
            );
        }
    };
    near(&run(Reduce::Sum), &sums, &sizes);
    let scaled = |v: &[f64]| v.iter().map(|v| v / count).collect::<Vec<_>>();
    near(&run(Reduce::Mean), &scaled(&sums), &scaled(&sizes));
    let exact = |got: Vec<f32>, want: Vec<f64>| {
        assert_eq!(got, want.iter().map(|&x| x as f32).collect::<Vec<_>>())
    };
    exact(run(Reduce::Max), fold(f64::NEG_INFINITY, f64::max));
    exact(run(Reduce::Min), fold(f64::INFINITY, f64::min));
    let norms: Vec<f64> = fold(0.0, |a, b| a + b * b)
        .iter()
        .map(|v| v.sqrt())
        .collect();
    near(&run(Reduce::EuclideanNorm), &norms, &norms);
    let ints: Vec<i32> = x.iter().map(|x| *x as i32).collect();
    let mut wrapped = vec![1i32; kept];
    for (&at, &x) in at.iter().zip(&ints) {
        wrapped[at] = wrapped[at].wrapping_mul(x);
    }
    let mut out = vec![0; kept];
    apply(&pool, Reduce::Prod, &layout, &ints, &mut out);
    assert_eq!(out, wrapped);
    let flags: Vec<bool> = ints.iter().map(|x| x % 3 == 0).collect();
    let (mut some, mut every) = (vec![false; kept], vec![true; kept]);
    for (&at, &flag) in at.iter().zip(&flags) {
        some[at] |= flag;
        every[at] &= flag;
    }
    let mut out = vec![false; kept];
    super::any(&pool, &layout, &flags, &mut out);
    assert_eq!(out, some);
    super::all(&pool, &layout, &flags, &mut out);
    assert_eq!(out, every);
}

#[test]
fn known_layouts() {
    for (shape, axes) in [
        (&[][..], &[][..]),
        (&[1], &[0]),
        (&[0], &[0]),
        (&[2, 0], &[1]),
        (&[0, 2], &[0]),
        (&[0, 2], &[1]),
        (&[5], &[]),
        (&[70_001], &[0]),
        (&[1000, 10], &[1]),
        (&[1000, 10], &[0]),
        (&[5000, 10], &[0]),
        (&[5000, 10], &[1]),
        (&[300, 300], &[0]),
        (&[300, 300], &[1]),
        (&[30, 3000], &[0]),
        (&[3, 30_000], &[1]),
        (&[40, 3, 500], &[0, 2]),
        (&[3, 200, 100], &[1]),
        (&[100, 2, 50, 7], &[0, 2]),
        (&[4, 2100, 9], &[0, 2]),
        (&[2, 3, 4, 5, 6, 7], &[1, 3, 5]),
        (&[2, 3, 4, 5, 6, 7], &[0, 2, 4]),
        (&[70, 3, 5, 60], &[0, 2]),
        (&[1, 600, 1, 70], &[0, 1]),
    ] {
        check(shape, axes);
    }
}

proptest! {
    #[test]
    fn any_layout(shape in prop::collection::vec(0usize..9, 0..6), mask in 0usize..64) {
        let axes: Vec<usize> = (0..shape.len()).filter(|i| mask >> i & 1 == 1).collect();
        check(&shape, &axes);
    }
}

#[test]
fn long_sums_stay_accurate() {
    let x = vec![0.1f32; 1 << 22];
    let mut out = [0.0];
    apply(&Serial, Reduce::Sum, &Layout::all(x.len()), &x, &mut out);
    let want = f64::from(0.1f32) * x.len() as f64;
    assert!((f64::from(out[0]) / want - 1.0).abs() < 3e-7, "{}", out[0]);
    let mut columns = vec![0.0; 4];
    apply(
        &Serial,
        Reduce::Sum,
        &Layout::new(&[1 << 20, 4], &[0]),
        &x,
        &mut columns,
    );
    assert!(
        columns
            .iter()
            .all(|c| (f64::from(*c) * 4.0 / want - 1.0).abs() < 1e-6),
        "{columns:?}"
    );
}

#[test]
fn propagates_nan_and_handles_nothing() {
    for n in [3, 70] {
        for place in [0, 1, n - 1] {
            let mut x = vec![1f32; n];
            x[place] = f32::NAN;
            for op in [
                Reduce::Max,
                Reduce::Min,
                Reduce::Sum,
                Reduce::Prod,
                Reduce::Mean,
                Reduce::EuclideanNorm,
            ] {
                let mut out = [0.0];
                apply(&Serial, op, &Layout::all(n), &x, &mut out);
                assert!(out[0].is_nan(), "{op:?}");
            }
        }
    }
    let none = Layout::new(&[2, 0], &[1]);
    let mut out = [9f32; 2];
    for (op, want) in [
        (Reduce::Sum, 0.0),
        (Reduce::Prod, 1.0),
        (Reduce::Max, f32::NEG_INFINITY),
        (Reduce::Min, f32::INFINITY),
    ] {
        apply(&Serial, op, &none, &[], &mut out);
        assert_eq!(out, [want; 2]);
    }
    apply(&Serial, Reduce::Mean, &none, &[], &mut out);
    assert!(out[0].is_nan());
    let mut out = [9i8; 2];
    apply(&Serial, Reduce::Mean, &none, &[], &mut out);
    assert_eq!(out, [0; 2]);
    apply(&Serial, Reduce::Max, &none, &[], &mut out);
    assert_eq!(out, [-128; 2]);
}

#[test]
fn integers_halves_complex_as_tensorflow() {
    fn one<T: ReduceElement>(op: Reduce, x: &[T]) -> T {
        let mut out = [T::default()];
        apply(&Serial, op, &Layout::all(x.len()), x, &mut out);
        out[0]
    }
    assert_eq!(one(Reduce::Mean, &[100i8, 101, 100]), 100);
    assert_eq!(one(Reduce::Mean, &[-3i32, -2, -2, 0]), -1);
    assert_eq!(one(Reduce::Mean, &[253u8, 254, 254, 0]), 190);
    assert_eq!(one(Reduce::Sum, &[100i8, 101, 100]), 45);
    assert_eq!(one(Reduce::Prod, &[100u8, 101, 100]), 80);
    assert_eq!(one(Reduce::EuclideanNorm, &[100i8, 101, 100]), 0);
    assert_eq!(one(Reduce::EuclideanNorm, &[100u8, 101, 100]), 15);
    assert_eq!(one(Reduce::EuclideanNorm, &[2i64, 2]), 2);
    assert_eq!(
        one(Reduce::Sum, &vec![f16::ONE; 5000]),
        f16::from_f32(5000.0)
    );
    assert_eq!(one(Reduce::Mean, &vec![bf16::ONE; 70_000]), bf16::ONE);
    let c = [Complex::new(3f32, 4.0), Complex::new(0.0, 1.0)];
    assert_eq!(
        one(Reduce::EuclideanNorm, &c),
        Complex::new(26f32.sqrt(), 0.0)
    );
    assert_eq!(one(Reduce::Mean, &c), Complex::new(1.5, 2.5));
    assert_eq!(one(Reduce::Prod, &c), Complex::new(-4.0, 3.0));
    assert!(!<Complex<f64> as ReduceElement>::supports(Reduce::Max));
    assert_eq!(l2_loss(&Serial, &[3f32, 4.0]), 12.5);
    assert_eq!(l2_loss(&Serial, &[f16::from_f32(3.0)]), f16::from_f32(4.5));
    assert_eq!(l2_loss::<f64>(&Serial, &[]), 0.0);
}

#[test]
fn positions_of_extremes_pass_over_nan() {
    let nan = f32::NAN;
    for (row, max, min) in [
        (vec![3.0, nan, 1.0], 0, 2),
        (vec![nan, 3.0, 1.0], 1, 2),
        (vec![nan, nan], 0, 0),
        (vec![f32::NEG_INFINITY; 3], 0, 0),
        (vec![1.0, 5.0, 5.0, 1.0], 1, 0),
    ] {
        for repeat in [1, 20] {
            let x: Vec<f32> = row
                .iter()
                .copied()
                .cycle()
                .take(row.len() * repeat)
                .collect();
            let axis = Axis {
                outer: 1,
                len: x.len(),
                inner: 1,
            };
            let mut out = [9i64];
            arg_max(&Serial, axis, &x, &mut out);
            assert_eq!(out, [max]);
            arg_min(&Serial, axis, &x, &mut out);
            assert_eq!(out, [min]);
            let twice: Vec<f32> = x.iter().flat_map(|&x| [x, x]).collect();
            let mut out = [9i64; 2];
            arg_min(&Serial, Axis { inner: 2, ..axis }, &twice, &mut out);
            assert_eq!(out, [min; 2]);
        }
    }
}

#[test]
fn arguments_of_many_columns() {
    let axis = Axis {
        outer: 3,
        len: 5,
        inner: 601,
    };
    let x: Vec<i32> = (0..axis.elements() as i32)
        .map(|i| i * 7919 % 1009)
        .collect();
    let mut out = vec![-1; 3 * 601];
    arg_min(&Pool::new(3), axis, &x, &mut out);
    for (i, out) in out.iter().enumerate() {
        let column = (0..5).map(|row| x[(i / 601 * 5 + row) * 601 + i % 601]);
        let best = column.enumerate().min_by_key(|(_, x)| *x);
        assert_eq!(Some(*out as usize), best.map(|(row, _)| row), "{i}");
    }
}

proptest! {
    #[test]
    fn arguments_and_scans(outer in 0usize..4, len in 1usize..70, inner in 1usize..5, seed in 0i32..1000) {
        let axis = Axis { outer, len, inner };
        let x: Vec<i32> = (0..axis.elements() as i32).map(|i| (i * 7919 + seed * 31) % 23 - 11).collect();
        let pool = Pool::new(2);
        let mut arg = vec![0i64; outer * inner];
        arg_max(&pool, axis, &x, &mut arg);
        for o in 0..outer {
            for i in 0..inner {
                let column: Vec<i32> = (0..len).map(|l| x[(o * len + l) * inner + i]).collect();
                let best = column.iter().max().unwrap();
                prop_assert_eq!(arg[o * inner + i] as usize, column.iter().position(|x| x == best).unwrap());
                for exclusive in [false, true] {
                    for reverse in [false, true] {
                        let mut out = vec![0; x.len()];
                        cumulate(&pool, Scan::Sum, (exclusive, reverse), axis, &x, &mut out);
                        for l in 0..len {
                            let range = match (exclusive, reverse) {
                                (false, false) => 0..l + 1,
                                (true, false) => 0..l,
                                (false, true) => l..len,
                                (true, true) => l + 1..len,
                            };
                            prop_assert_eq!(out[(o * len + l) * inner + i], column[range].iter().sum::<i32>());
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn scans_by_logarithm_and_product() {
    let axis = Axis::new(&[4], 0);
    let x = [1f32, 2.0, 3.0, 4.0];
    let mut out = [0.0; 4];
    cumulate(&Serial, Scan::LogSumExp, (false, false), axis, &x, &mut out);
    for (got, want) in out.iter().zip([1.0, 2.313_261_7, 3.407_606, 4.440_19]) {
        assert!((got - want).abs() < 1e-5);
    }
    cumulate(&Serial, Scan::LogSumExp, (true, true), axis, &x, &mut out);
    assert_eq!(out[3], f32::NEG_INFINITY);
    assert_eq!(out[2], 4.0);
    cumulate(&Serial, Scan::Prod, (true, true), axis, &x, &mut out);
    assert_eq!(out, [24.0, 12.0, 4.0, 1.0]);
}
