use half::{bf16, f16};
use proptest::prelude::*;

use super::*;
use crate::par::{Pool, Serial};

/// Softmax and its logarithm in double precision.
fn exact(row: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log = row.iter().map(|x| (x - max).exp()).sum::<f64>().ln();
    let logs: Vec<f64> = row.iter().map(|x| x - max - log).collect();
    (logs.iter().map(|x| x.exp()).collect(), logs)
}

fn close<T: SoftmaxElement>(got: T, want: f64, tolerance: f64) -> bool {
    let got = got.to_f64();
    (got.is_nan() && want.is_nan())
        || got == want
        || (got - want).abs() <= tolerance * want.abs().max(0.1)
}

fn check<T: SoftmaxElement>(rows: usize, columns: usize, tolerance: f64) {
    let x: Vec<T> = (0..rows * columns)
        .map(|i| T::from_f64(((i * 7919) % 1013) as f64 * 0.02 - 9.0))
        .collect();
    let labels: Vec<T> = (0..x.len())
        .map(|i| T::from_f64((i % 5) as f64 * 0.125))
        .collect();
    let columns_of: Vec<i32> = (0..rows).map(|i| (i * 31 % columns) as i32).collect();
    let pool = Pool::new(2);
    let (mut soft, mut log) = (vec![T::ZERO; x.len()], vec![T::ZERO; x.len()]);
    softmax(&pool, &x, columns, &mut soft);
    log_softmax(&pool, &x, columns, &mut log);
    let (mut loss, mut back) = (vec![T::ZERO; rows], vec![T::ZERO; x.len()]);
    cross_entropy(&pool, &x, &labels, columns, &mut loss, &mut back);
    let (mut sparse_loss, mut sparse_back) = (vec![T::ZERO; rows], vec![T::ZERO; x.len()]);
    sparse_cross_entropy(
        &pool,
        &x,
        &columns_of,
        columns,
        &mut sparse_loss,
        &mut sparse_back,
    )
    .unwrap();
    for r in 0..rows {
        let row: Vec<f64> = x[r * columns..][..columns]
            .iter()
            .map(|x| x.to_f64())
            .collect();
        let (want, want_log) = exact(&row);
        let mut total = 0.0;
        for c in 0..columns {
            let i = r * columns + c;
            assert!(
                close(soft[i], want[c], tolerance),
                "{:?} {}",
                soft[i],
                want[c]
            );
            assert!(
                close(log[i], want_log[c], tolerance),
                "{:?} {}",
                log[i],
                want_log[c]
            );
            let label = labels[i].to_f64();
            total -= label * want_log[c];
            assert!(close(back[i], want[c] - label, tolerance));
            let hit = if columns_of[r] as usize == c {
                1.0
            } else {
                0.0
            };
            assert!(close(sparse_back[i], want[c] - hit, tolerance));
        }
        assert!(close(loss[r], total, tolerance), "{:?} {total}", loss[r]);
        assert!(close(
            sparse_loss[r],
            -want_log[columns_of[r] as usize],
            tolerance
        ));
    }
}

#[test]
fn agrees_with_double_precision() {
    for (rows, columns) in [
        (1, 1),
        (3, 2),
        (1000, 10),
        (63, 17),
        (65, 31),
        (129, 32),
        (7, 33),
        (300, 64),
        (9, 100),
        (5, 1024),
        (2, 5000),
        (3000, 1),
    ] {
        check::<f32>(rows, columns, 2e-6);
        check::<f64>(rows, columns, 1e-13);
    }
    check::<f16>(300, 10, 4e-3);
    check::<bf16>(5, 100, 2e-2);
}

proptest! {
    #[test]
    fn any_size(rows in 1usize..20, columns in 1usize..90) {
        check::<f32>(rows, columns, 2e-6);
    }
}

#[test]
fn special_rows_as_tensorflow() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for (row, want, loss) in [
        ([1.0, 2.0, nan], [nan; 3], nan),
        ([inf, 1.0, 2.0], [nan; 3], nan),
        ([-inf; 3], [nan; 3], nan),
        ([-inf, 1.0, 2.0], [0.0, 0.268_941_43, 0.731_058_6], inf),
        ([1000.0; 3], [1.0 / 3.0; 3], 3f32.ln()),
    ] {
        let same = |a: f32, b: f32| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-6;
        // Once as it is and once as the end of a long row, which is computed another way; e^-inf adds nothing.
        for columns in [3, 70] {
            let mut long = vec![-inf; columns];
            long[columns - 3..].copy_from_slice(&row);
            if row == [1000.0; 3] {
                long[..columns - 3].fill(-1000.0);
            }
            let mut out = vec![0.5; columns];
            softmax(&Serial, &long, columns, &mut out);
            let (filled, got) = out.split_at(columns - 3);
            assert!(
                got.iter().zip(want).all(|(a, b)| same(*a, b)),
                "{row:?}: {out:?}"
            );
            let rest = if want[0].is_nan() { nan } else { 0.0 };
            assert!(filled.iter().all(|x| same(*x, rest)), "{row:?}: {out:?}");
            let (mut got, mut back) = ([0.0], vec![0.0; columns]);
            let label = columns as i32 - 3;
            sparse_cross_entropy(&Serial, &long, &[label], columns, &mut got, &mut back).unwrap();
            assert!(same(got[0], loss), "{row:?}: {got:?}");
        }
    }
}

#[test]
fn empty_and_bad_labels() {
    softmax::<f32>(&Serial, &[], 5, &mut []);
    softmax::<f32>(&Serial, &[], 0, &mut []);
    let mut loss = [1f32; 2];
    cross_entropy(&Serial, &[], &[], 0, &mut loss, &mut []);
    assert_eq!(loss, [0.0; 2]);
    for label in [2i64, -1] {
        let bad = sparse_cross_entropy(
            &Serial,
            &[1f32, 2.0],
            &[label],
            2,
            &mut [0.0],
            &mut [0.0; 2],
        );
        assert_eq!(bad, Err(BadLabel { row: 0, label }));
    }
    let none: Result<(), BadLabel> =
        sparse_cross_entropy::<f32, i32>(&Serial, &[], &[], 3, &mut [], &mut []);
    assert_eq!(none, Ok(()));
}
