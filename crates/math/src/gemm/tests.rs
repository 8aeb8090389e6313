use half::{bf16, f16};
use num_complex::Complex;
use proptest::prelude::*;

use super::*;
use crate::par::{Pool, Serial};

/// Small whole numbers: every sum below is exact in f32, so results must be equal, whatever the order.
fn numbers(len: usize, seed: usize) -> Vec<f32> {
    (0..len)
        .map(|i| ((i * 7 + seed * 3) * 2654435761 % 11) as f32 - 5.0)
        .collect()
}

struct Case<T> {
    dims: Dims,
    transposed: (bool, bool),
    gap: usize,
    alpha: T,
    beta: T,
}

fn check<T: Element + std::fmt::Debug>(
    par: &dyn Par,
    case: &Case<T>,
    of: impl Fn(f32) -> T,
    epilogue: Epilogue<'_, T>,
) {
    let Dims { m, n, k } = case.dims;
    let (ta, tb) = case.transposed;
    let a_shape = if ta { (k, m) } else { (m, k) };
    let b_shape = if tb { (n, k) } else { (k, n) };
    let fill = |(rows, cols): (usize, usize), seed| -> Vec<T> {
        numbers(rows * (cols + case.gap), seed)
            .into_iter()
            .map(&of)
            .collect()
    };
    let (a, b) = (fill(a_shape, 1), fill(b_shape, 2));
    let old = fill((m, n), 3);
    let (a_stride, b_stride) = (a_shape.1 + case.gap, b_shape.1 + case.gap);
    let a_op = Operand {
        data: &a,
        stride: a_stride,
        transposed: ta,
    };
    let b_op = Operand {
        data: &b,
        stride: b_stride,
        transposed: tb,
    };
    let mut c = old.clone();
    let c_stride = n + case.gap;
    gemm(
        par, case.dims, case.alpha, a_op, b_op, case.beta, &mut c, c_stride, epilogue,
    );
    let ((ar, ac), (br, bc)) = (a_op.strides(), b_op.strides());
    let mut expected = old;
    for row in 0..m {
        for col in 0..n {
            let mut sum = T::ZERO;
            for p in 0..k {
                sum = sum.plus(a[row * ar + p * ac].times(b[p * br + col * bc]));
            }
            let at = row * c_stride + col;
            expected[at] = case.alpha.times(sum).plus(case.beta.times(expected[at]));
        }
        epilogue.apply(0, &mut expected[row * c_stride..][..n]);
    }
    assert_eq!(c, expected, "{:?} {:?}", case.dims, case.transposed);
}

fn sizes() -> impl Strategy<Value = Dims> {
    let size = || {
        prop_oneof![
            4 => 0usize..20,
            2 => 20usize..70,
            1 => Just(1usize),
        ]
    };
    (
        size(),
        size(),
        prop_oneof![6 => 0usize..40, 1 => 380usize..800],
    )
        .prop_map(|(m, n, k)| Dims { m, n, k })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_naive_product(
        dims in sizes(),
        transposed: (bool, bool),
        gap in 0usize..4,
        alpha in -2i8..3,
        beta in -1i8..3,
        kind in 0..4,
    ) {
        let bias = numbers(dims.n, 4);
        let twice = |first: usize, row: &mut [f32]| {
            for (j, x) in row.iter_mut().enumerate() {
                *x += 2.0 * (first + j) as f32;
            }
        };
        let epilogue = match kind {
            0 => Epilogue::None,
            1 => Epilogue::Bias(&bias),
            2 => Epilogue::BiasRelu(&bias),
            _ => Epilogue::Rows(&twice),
        };
        let case = Case { dims, transposed, gap, alpha: f32::from(alpha), beta: f32::from(beta) };
        check(&Serial, &case, |x| x, epilogue);
        let case = Case { dims, transposed, gap, alpha: f64::from(alpha), beta: f64::from(beta) };
        check(&Serial, &case, f64::from, Epilogue::None);
        let case = Case { dims, transposed, gap, alpha: i32::from(alpha), beta: i32::from(beta) };
        check(&Serial, &case, |x| x as i32, Epilogue::None);
    }

    #[test]
    fn agrees_with_every_table(dims in sizes(), transposed: (bool, bool), beta in 0i8..2) {
        let Dims { m, n, k } = dims;
        prop_assume!(m > 0 && n > 0 && k > 0);
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let a = dense((&a, transposed.0), m, k);
        let b = dense((&b, transposed.1), k, n);
        let mut results = Vec::new();
        for kernels in simd::all_f32() {
            let mut c = numbers(m * n, 3);
            let beta = f32::from(beta);
            let epilogue = Epilogue::None;
            let job = Job { dims, alpha: 1.0, a, b, beta, c: &mut c, c_stride: n, epilogue };
            driver::run_blocks(&Serial, kernels, job);
            results.push(c);
        }
        prop_assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn agrees_for_other_types(dims in sizes(), transposed: (bool, bool), gap in 0usize..3) {
        let of = |x: f32| Complex::new(x, 1.0 - x);
        let case = Case { dims, transposed, gap, alpha: of(2.0), beta: of(-1.0) };
        check(&Serial, &case, of, Epilogue::None);
        let case = Case { dims, transposed, gap, alpha: 3u8, beta: 1 };
        check(&Serial, &case, |x| x as i8 as u8, Epilogue::None);
    }
}

/// Deep enough for several passes, long enough for several sections and slabs; the last is shallow and still more than one slab.
#[test]
fn agrees_where_large_products_are_cut() {
    let pool = Pool::new(3);
    for (m, n, k, transposed) in [
        (300, 40, 1700, (false, true)),
        (40, 2300, 900, (true, false)),
        (300, 300, 900, (true, true)),
        (990, 1000, 801, (false, false)),
        (700, 600, 20, (true, false)),
    ] {
        let dims = Dims { m, n, k };
        let bias = numbers(n, 4);
        let case = Case {
            dims,
            transposed,
            gap: 1,
            alpha: 2.0f32,
            beta: 1.0,
        };
        check(&pool, &case, |x| x, Epilogue::BiasRelu(&bias));
    }
}

#[test]
fn agrees_on_several_threads() {
    let pool = Pool::new(3);
    for (m, n, k) in [
        (130, 120, 100),
        (50, 515, 65),
        (1, 5000, 90),
        (900, 1, 800),
        (13, 1100, 400),
    ] {
        for transposed in [(false, false), (false, true), (true, false), (true, true)] {
            let dims = Dims { m, n, k };
            let case = Case {
                dims,
                transposed,
                gap: 0,
                alpha: 1.0f32,
                beta: 0.0,
            };
            check(&pool, &case, |x| x, Epilogue::None);
            let case = Case {
                dims,
                transposed,
                gap: 1,
                alpha: 1i64,
                beta: 1,
            };
            check(&pool, &case, |x| x as i64, Epilogue::None);
        }
    }
}

#[test]
fn rounds_halves_once() {
    // 1024 + 1 + 1: adding one by one in half precision would stay at 2048.
    let dims = Dims { m: 1, n: 1, k: 3 };
    let a = [2048.0, 1.0, 1.0].map(f16::from_f32);
    let mut c = [f16::NAN];
    matmul(&Serial, dims, (&a, false), (&[f16::ONE; 3], false), &mut c);
    assert_eq!(c[0].to_f32(), 2050.0);
    let a = [256.0, 1.0, 1.0].map(bf16::from_f32);
    let mut c = [bf16::NAN];
    matmul(&Serial, dims, (&a, false), (&[bf16::ONE; 3], false), &mut c);
    assert_eq!(c[0].to_f32(), 258.0);
    let case = Case {
        dims: Dims { m: 9, n: 7, k: 5 },
        transposed: (true, true),
        gap: 2,
        alpha: f16::ONE,
        beta: f16::ONE,
    };
    check(&Serial, &case, f16::from_f32, Epilogue::None);
}

#[test]
fn does_not_read_c_when_beta_is_zero() {
    for (m, n) in [(5, 9), (1, 9), (5, 1), (20, 40)] {
        for alpha in [1.0f32, 2.0] {
            let (a, b) = (vec![1.0; m * 2], vec![1.0; 2 * n]);
            let mut c = vec![f32::NAN; m * (n + 1)];
            let dims = Dims { m, n, k: 2 };
            gemm(
                &Serial,
                dims,
                alpha,
                Operand::new(&a, 2),
                Operand::new(&b, n),
                0.0,
                &mut c,
                n + 1,
                Epilogue::None,
            );
            for row in c.chunks(n + 1) {
                assert!(row[..n].iter().all(|&x| x == 2.0 * alpha), "{row:?}");
                assert!(row[n].is_nan());
            }
        }
    }
}

#[test]
fn keeps_nan_of_operands() {
    let mut c = [0.0f32; 4];
    let a = [0.0, 1.0, f32::NAN, 1.0];
    let dims = Dims { m: 2, n: 2, k: 2 };
    matmul(&Serial, dims, (&a, false), (&[1.0; 4], false), &mut c);
    assert!(c[0] == 1.0 && c[2].is_nan());
}

#[test]
fn multiplies_batches() {
    let pool = Pool::new(2);
    let dims = Dims { m: 3, n: 4, k: 2 };
    let (a, b) = (numbers(5 * 6, 1), numbers(5 * 8, 2));
    let strided = Batch::Strided {
        count: 5,
        a: 6,
        b: 0,
    };
    let offsets: Vec<_> = (0..5).map(|i| (6 * i, 0)).collect();
    for batch in [strided, Batch::Listed(&offsets)] {
        let mut c = vec![0.0; 5 * 12];
        gemm_batched(
            &pool,
            dims,
            batch,
            Operand::new(&a, 2),
            Operand::new(&b, 4),
            &mut c,
        );
        for i in 0..5 {
            let mut one = vec![0.0; 12];
            matmul(
                &Serial,
                dims,
                (&a[6 * i..][..6], false),
                (&b[..8], false),
                &mut one,
            );
            assert_eq!(c[12 * i..][..12], one);
        }
    }
    let dims = Dims { m: 3, n: 4, k: 0 };
    let mut c = vec![1.0f32; 12];
    let none = Operand::new(&[], 0);
    gemm_batched(
        &pool,
        dims,
        Batch::Strided {
            count: 1,
            a: 0,
            b: 0,
        },
        none,
        Operand::new(&[], 4),
        &mut c,
    );
    assert_eq!(c, [0.0; 12]);
}

#[test]
#[should_panic(expected = "B: 3x2 with stride 2 in 5 elements")]
fn rejects_short_operand() {
    let dims = Dims { m: 1, n: 2, k: 3 };
    matmul(
        &Serial,
        dims,
        (&[1.0f32; 3], false),
        (&[1.0; 5], false),
        &mut [0.0; 2],
    );
}
