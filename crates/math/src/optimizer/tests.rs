use half::{bf16, f16};

use super::*;
use crate::num::Num;
use crate::par::{Par, Pool, Serial};

const GOLDEN: &str = include_str!("golden/optimizer.txt");

/// The inputs of the golden file, see its generator.
fn x(first: usize) -> Vec<f64> {
    (first..first + 9)
        .map(|k| ((k * 37 + 11) % 101) as f64 / 50.0 - 1.0)
        .collect()
}

fn cast<T: Num>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&value| T::from_f64(value)).collect()
}

/// Updates twice and returns the weights and slots.
fn twice<T, R, const SLOTS: usize>(rule: R, sparse: bool) -> Vec<Vec<T>>
where
    T: Weight + Num,
    R: Rule<T::Wide, SLOTS>,
{
    let mut var = cast::<T>(&x(0));
    let grad = cast::<T>(&x(20));
    let mut slots: [Vec<T>; SLOTS] = std::array::from_fn(|i| {
        let values: Vec<f64> = x(20 * (i + 2)).iter().map(|v| v.abs() + 0.1).collect();
        cast(&values)
    });
    for _ in 0..2 {
        let slots = slots.each_mut().map(Vec::as_mut_slice);
        if sparse {
            apply_sparse(&Serial, rule, 3, &mut var, slots, &[2, 0, 2], &grad).unwrap();
        } else {
            apply(&Serial, rule, &mut var, slots, &grad);
        }
    }
    [vec![var], slots.to_vec()].concat()
}

fn run<T: Weight<Wide: RealWide> + Num>(name: &str) -> Vec<Vec<T>> {
    let c = <T::Wide as Wide>::of;
    let (op, sparse) = match name.strip_prefix("sparse_") {
        Some(op) => (op, true),
        None => (name, false),
    };
    let has = |word: &str| op.contains(word);
    let lr = c(0.25);
    let l1 = c(if has("_l2") { 0.0 } else { 0.0625 });
    let l2 = c(0.5);
    let (momentum, use_nesterov) = (c(0.5), has("nesterov"));
    let adam = AdamInputs {
        beta1_power: c(0.5),
        beta2_power: c(0.25),
        lr,
        beta1: c(0.75),
        beta2: c(0.875),
        epsilon: c(0.01),
    };
    let (rho, epsilon, beta, update_slots) = (c(0.75), c(0.001), c(0.75), !has("still"));
    match op {
        "gradient_descent" => twice::<T, _, 0>(GradientDescent { lr }, sparse),
        "proximal_gradient_descent" | "proximal_gradient_descent_l2" => {
            twice::<T, _, 0>(ProximalGradientDescent { lr, l1, l2 }, sparse)
        }
        "momentum" | "momentum_nesterov" => {
            let rule = Momentum {
                lr,
                momentum,
                use_nesterov,
            };
            twice::<T, _, 1>(rule, sparse)
        }
        "keras_momentum" | "keras_momentum_nesterov" => {
            let rule = KerasMomentum {
                lr,
                momentum,
                use_nesterov,
            };
            twice::<T, _, 1>(rule, sparse)
        }
        "adagrad" | "adagrad_still" => twice::<T, _, 1>(Adagrad { lr, update_slots }, sparse),
        "adagrad_v2" => {
            let rule = AdagradV2 {
                lr,
                epsilon: c(0.125),
                update_slots,
            };
            twice::<T, _, 1>(rule, sparse)
        }
        "proximal_adagrad" | "proximal_adagrad_l2" => {
            twice::<T, _, 1>(ProximalAdagrad { lr, l1, l2 }, sparse)
        }
        "adagrad_da" | "adagrad_da_l2" => {
            let rule = AdagradDa {
                lr,
                l1,
                l2,
                global_step: c(3.0),
            };
            twice::<T, _, 2>(rule, sparse)
        }
        "adadelta" => twice::<T, _, 2>(Adadelta { lr, rho, epsilon }, sparse),
        "rms_prop" => twice::<T, _, 2>(
            RmsProp {
                lr,
                rho,
                momentum,
                epsilon,
            },
            sparse,
        ),
        "centered_rms_prop" => {
            let rule = CenteredRmsProp {
                lr,
                rho,
                momentum,
                epsilon: c(4.0),
            };
            twice::<T, _, 3>(rule, sparse)
        }
        "add_sign" => {
            let rule = AddSign {
                lr,
                alpha: c(1.0),
                sign_decay: c(0.5),
                beta,
            };
            twice::<T, _, 1>(rule, sparse)
        }
        "power_sign" => {
            let rule = PowerSign {
                lr,
                logbase: c(0.5),
                sign_decay: c(0.75),
                beta,
            };
            twice::<T, _, 1>(rule, sparse)
        }
        "adam" | "adam_nesterov" => twice::<T, _, 2>(Adam::new(adam, use_nesterov), sparse),
        "adam_with_amsgrad" => twice::<T, _, 3>(AdamWithAmsgrad::new(adam), sparse),
        "ada_max" => {
            let AdamInputs {
                beta1_power,
                beta1,
                beta2,
                epsilon,
                ..
            } = adam;
            twice::<T, _, 2>(
                AdaMax {
                    beta1_power,
                    lr,
                    beta1,
                    beta2,
                    epsilon,
                },
                sparse,
            )
        }
        _ if op.starts_with("ftrl") => {
            let rule = Ftrl {
                lr,
                l1,
                l2,
                l2_shrinkage: c(if has("v2") { 0.125 } else { 0.0 }),
                lr_power: c(if has("power") { -0.75 } else { -0.5 }),
                multiply_linear_by_lr: has("by_lr"),
            };
            twice::<T, _, 2>(rule, sparse)
        }
        other => panic!("unknown rule {other}"),
    }
}

fn check<T: Weight<Wide: RealWide> + Num>(
    name: &str,
    expected: &[Vec<f64>],
    tolerance: f64,
    to_f64: fn(T) -> f64,
) {
    let got = run::<T>(name);
    assert_eq!(got.len(), expected.len(), "{name}");
    for (got, expected) in got.iter().zip(expected) {
        for (&got, &expected) in got.iter().zip(expected) {
            let got = to_f64(got);
            let distance = (got - expected).abs() / (expected.abs() + 1.0);
            assert!(distance <= tolerance, "{name}: {got} instead of {expected}");
        }
    }
}

#[test]
fn updates_as_tensorflow_does() {
    for line in GOLDEN.lines() {
        let (case, values) = line.split_once(" = ").unwrap();
        let (name, dtype) = case.split_once(' ').unwrap();
        let expected: Vec<Vec<f64>> = values
            .split(" | ")
            .map(|tensor| tensor.split(' ').map(|v| v.parse().unwrap()).collect())
            .collect();
        match dtype {
            "float32" => check::<f32>(name, &expected, 4e-7, f64::from),
            "float64" => check::<f64>(name, &expected, 1e-9, |x| x),
            // TensorFlow rounds after each operation.
            "half" => check::<f16>(name, &expected, 3e-3, f16::to_f64),
            _ => check::<bf16>(name, &expected, 3e-2, bf16::to_f64),
        }
    }
}

/// Numbers between -1 and 1 that look random.
fn noise(len: usize, salt: u32) -> Vec<f32> {
    (0..len as u32)
        .map(|i| (i.wrapping_add(salt).wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0)
        .collect()
}

#[test]
fn long_weights_are_updated_element_by_element() {
    let pool = Pool::new(3);
    let rule = Momentum {
        lr: 0.1_f32,
        momentum: 0.9,
        use_nesterov: true,
    };
    for len in [0, 1, 127, 128, 129, 16_384, 40_001] {
        let (mut var, mut accum, grad) = (noise(len, 1), noise(len, 2), noise(len, 3));
        let expected: Vec<_> = (0..len)
            .map(|i| rule.step(var[i], [accum[i]], grad[i]))
            .collect();
        apply(&pool, rule, &mut var, [&mut accum], &grad);
        for (i, (weight, [slot])) in expected.into_iter().enumerate() {
            assert_eq!((var[i], accum[i]), (weight, slot), "{i} of {len}");
        }
    }
}

#[test]
fn rows_named_twice_are_updated_in_order_on_all_threads() {
    let pool = Pool::new(3);
    let rule = Adagrad {
        lr: 0.1_f32,
        update_slots: true,
    };
    for (rows, row_len, count) in [(20, 64, 1000), (7, 1, 60_000), (3, 300, 200), (5, 5, 0)] {
        let indices: Vec<i64> = (0..count)
            .map(|i| (i * i + 3 * i) as i64 % rows as i64)
            .collect();
        let grad = noise(count * row_len, 9);
        let start = (noise(rows * row_len, 1), vec![0.5; rows * row_len]);
        let run = |par: &dyn Par| {
            let (mut var, mut accum) = start.clone();
            apply_sparse(par, rule, row_len, &mut var, [&mut accum], &indices, &grad).unwrap();
            (var, accum)
        };
        let (mut var, mut accum) = start.clone();
        for (i, &row) in indices.iter().enumerate() {
            for j in 0..row_len {
                let at = row as usize * row_len + j;
                let (weight, [slot]) = rule.step(var[at], [accum[at]], grad[i * row_len + j]);
                (var[at], accum[at]) = (weight, slot);
            }
        }
        assert_eq!(run(&Serial), (var.clone(), accum.clone()));
        assert_eq!(run(&pool), (var, accum));
    }
}

#[test]
fn a_bad_index_changes_nothing() {
    let rule = GradientDescent { lr: 1.0 };
    let mut var = [1.0_f64; 6];
    let bad = apply_sparse(&Serial, rule, 2, &mut var, [], &[0, 3], &[1.0; 4]);
    let expected = crate::movement::BadIndex {
        position: 1,
        value: 3,
    };
    assert_eq!(bad, Err(expected));
    assert_eq!(var, [1.0; 6]);
}

/// A weight that is no number must not look like one again: regularisers and maxima keep a NaN.
#[test]
fn nan_stays() {
    fn of<R: Rule<f32, SLOTS>, const SLOTS: usize>(
        rule: R,
        var: f32,
        slots: [f32; SLOTS],
        grad: f32,
    ) -> f32 {
        rule.step(var, slots, grad).0
    }
    let nan = f32::NAN;
    let (lr, l1, l2) = (0.5, 0.1, 0.1);
    assert!(of(ProximalGradientDescent { lr, l1, l2 }, nan, [], 1.0).is_nan());
    assert!(of(ProximalAdagrad { lr, l1, l2 }, nan, [1.0], 1.0).is_nan());
    assert!(of(ProximalAdagrad { lr, l1, l2 }, 1.0, [1.0], nan).is_nan());
    let dual = AdagradDa {
        lr,
        l1,
        l2,
        global_step: 1.0,
    };
    assert!(of(dual, 1.0, [nan, 1.0], 1.0).is_nan());
    assert!(RealWide::max(nan, 1.0f32).is_nan());
    assert_eq!(RealWide::max(1.0f32, nan), 1.0);
    assert!(RealWide::sign(nan).is_nan());
}
