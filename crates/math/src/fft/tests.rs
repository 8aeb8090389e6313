use num_complex::Complex;

use super::{Direction, Plan, Real, RealPlan, complex_to_real, lines, real_to_complex};
use crate::par::{Pool, Serial};

const LENGTHS: &[usize] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 21, 22, 25, 31, 32, 35, 49, 60, 64,
    97, 128, 210, 211, 720, 1024,
];

fn signal(len: usize) -> Vec<Complex<f64>> {
    let value = |k: usize| ((k * k * 7 + 3 * k) % 19) as f64 / 9.0 - 1.0;
    (0..len)
        .map(|k| Complex::new(value(k), value(k + 5)))
        .collect()
}

fn plain(x: &[Complex<f64>], sign: f64) -> Vec<Complex<f64>> {
    let n = x.len();
    let turn = |jk: usize| {
        Complex::from_polar(
            1.0,
            sign * std::f64::consts::TAU * (jk % n) as f64 / n as f64,
        )
    };
    (0..n)
        .map(|k| x.iter().enumerate().map(|(j, x)| x * turn(j * k)).sum())
        .collect()
}

fn near<T: Real + Into<f64>>(
    found: &[Complex<T>],
    wanted: &[Complex<f64>],
    tolerance: f64,
    what: &str,
) {
    assert_eq!(found.len(), wanted.len());
    // Errors grow with the whole line, not with the single number.
    let mean = wanted.iter().map(|x| x.norm_sqr()).sum::<f64>() / wanted.len() as f64;
    let size = mean.sqrt().max(10.0);
    for (found, wanted) in found.iter().zip(wanted) {
        let found = Complex::new(found.re.into(), found.im.into());
        assert!(
            (found - wanted).norm() < tolerance * wanted.norm().max(size),
            "{what}: {found} instead of {wanted}"
        );
    }
}

#[test]
fn transforms_of_all_lengths_are_their_sums() {
    for &n in LENGTHS {
        let x = signal(n);
        for (direction, sign) in [(Direction::Forward, -1.0), (Direction::Inverse, 1.0)] {
            let wanted = plain(&x, sign);
            let mut double = x.clone();
            lines(&Serial, &Plan::new(n), &mut double, 1, direction, 1.0);
            near(&double, &wanted, 1e-13, &format!("{n} {direction:?}"));
            let mut single: Vec<Complex<f32>> = x
                .iter()
                .map(|x| Complex::new(x.re as f32, x.im as f32))
                .collect();
            lines(&Serial, &Plan::new(n), &mut single, 1, direction, 1.0);
            near(&single, &wanted, 2e-6, &format!("single {n} {direction:?}"));
        }
    }
}

#[test]
fn lines_along_any_axis_are_transformed_alone() {
    let pool = Pool::new(3);
    for (n, inner, outer) in [
        (6, 5, 3),
        (11, 40, 1),
        (4, 1, 70),
        (8, 17, 2),
        // Long ones, side by side and one by one, with and without a chirp.
        (600, 1, 20),
        (600, 5, 1),
        (523, 1, 5),
        (512, 3, 2),
        (523, 2, 1),
    ] {
        let x = signal(n * inner * outer);
        let mut y = x.clone();
        lines(&pool, &Plan::new(n), &mut y, inner, Direction::Forward, 0.5);
        for block in 0..outer {
            for line in 0..inner {
                let at = |j: usize| (block * n + j) * inner + line;
                let own: Vec<_> = (0..n).map(|j| x[at(j)]).collect();
                let found: Vec<_> = (0..n).map(|j| y[at(j)]).collect();
                let wanted: Vec<_> = plain(&own, -1.0).iter().map(|x| x * 0.5).collect();
                near(&found, &wanted, 1e-13, &format!("{n} {inner} {outer}"));
            }
        }
    }
}

#[test]
fn real_lines_go_there_and_back() {
    for &n in LENGTHS {
        let (rows, longer) = (20, 3);
        let values: Vec<f64> = signal(rows * (n + longer)).iter().map(|x| x.re).collect();
        let plan = RealPlan::new(n);
        let mut half = vec![Complex::new(0.0, 0.0); rows * plan.half()];
        real_to_complex(&Serial, &plan, (&values, n + longer), &mut half);
        for row in 0..rows {
            let own = &values[row * (n + longer)..][..n];
            let own: Vec<_> = own.iter().map(|x| Complex::new(*x, 0.0)).collect();
            let found = &half[row * plan.half()..][..plan.half()];
            near(
                found,
                &plain(&own, -1.0)[..plan.half()],
                1e-13,
                &format!("{n}"),
            );
        }
        half[0].im = f64::NAN; // not read
        let mut back = vec![0.0; rows * n];
        complex_to_real(
            &Serial,
            &plan,
            (&half, plan.half()),
            &mut back,
            1.0 / n as f64,
        );
        for (row, back) in back.chunks(n).enumerate() {
            for (found, wanted) in back.iter().zip(&values[row * (n + longer)..]) {
                assert!(
                    (found - wanted).abs() < 1e-13,
                    "{n}: {found} instead of {wanted}"
                );
            }
        }
    }
}

#[test]
fn what_is_not_finite_stays_in_its_line() {
    let n = 12;
    let mut x = signal(2 * n);
    x[3].re = f64::NAN;
    lines(&Serial, &Plan::new(n), &mut x, 1, Direction::Forward, 1.0);
    assert!(x[..n].iter().all(|x| x.is_nan()));
    assert!(x[n..].iter().all(|x| x.is_finite()));
}
