//! Every schedule at several steps.

use serde_json::{Value, json};
use tensorfleet_client::{DType, Graph, Output, Session, Tensor};
use tensorfleet_train::schedule::{
    Cosine, CosineRestarts, Exponential, InverseTime, NaturalExp, PiecewiseConstant, Polynomial,
};

use super::{ask, differences};

const INITIAL: f64 = 0.3;

type Make = fn(&Output) -> Output;

/// TensorFlow's function, its arguments behind the step, ours.
fn schedules() -> Vec<(Value, Make)> {
    let decay =
        |name: &str, args: Value| json!({"schedule": name, "learning_rate": INITIAL, "args": args});

    vec![
        (decay("exponential_decay", json!([10, 0.5])), |step| {
            let (steps, rate, staircase) = (10.0, 0.5, false);
            Exponential {
                initial: INITIAL,
                steps,
                rate,
                staircase,
            }
            .at(step)
        }),
        (decay("exponential_decay", json!([10, 0.5, true])), |step| {
            let (steps, rate, staircase) = (10.0, 0.5, true);
            Exponential {
                initial: INITIAL,
                steps,
                rate,
                staircase,
            }
            .at(step)
        }),
        (decay("natural_exp_decay", json!([10, 0.5])), |step| {
            let (steps, rate, staircase) = (10.0, 0.5, false);
            NaturalExp {
                initial: INITIAL,
                steps,
                rate,
                staircase,
            }
            .at(step)
        }),
        (
            decay("inverse_time_decay", json!([10, 0.5, true])),
            |step| {
                let (steps, rate, staircase) = (10.0, 0.5, true);
                InverseTime {
                    initial: INITIAL,
                    steps,
                    rate,
                    staircase,
                }
                .at(step)
            },
        ),
        (decay("polynomial_decay", json!([20, 0.01, 2.0])), |step| {
            let (steps, end, power, cycle) = (20.0, 0.01, 2.0, false);
            Polynomial {
                initial: INITIAL,
                steps,
                end,
                power,
                cycle,
            }
            .at(step)
        }),
        (
            decay("polynomial_decay", json!([20, 0.01, 0.5, true])),
            |step| {
                let (steps, end, power, cycle) = (20.0, 0.01, 0.5, true);
                Polynomial {
                    initial: INITIAL,
                    steps,
                    end,
                    power,
                    cycle,
                }
                .at(step)
            },
        ),
        (decay("cosine_decay", json!([50, 0.1])), |step| {
            let (steps, alpha) = (50.0, 0.1);
            Cosine {
                initial: INITIAL,
                steps,
                alpha,
            }
            .at(step)
        }),
        (
            decay("cosine_decay_restarts", json!([12, 2.0, 0.7, 0.1])),
            |step| {
                let (first_steps, longer, lower, alpha) = (12.0, 2.0, 0.7, 0.1);
                CosineRestarts {
                    initial: INITIAL,
                    first_steps,
                    longer,
                    lower,
                    alpha,
                }
                .at(step)
            },
        ),
        (decay("cosine_decay_restarts", json!([12, 1.0])), |step| {
            let (first_steps, longer, lower, alpha) = (12.0, 1.0, 1.0, 0.0);
            CosineRestarts {
                initial: INITIAL,
                first_steps,
                longer,
                lower,
                alpha,
            }
            .at(step)
        }),
        (
            json!({"schedule": "piecewise_constant", "args": [[7, 20, 41], [0.4, 0.3, 0.2, 0.1]]}),
            |step| {
                let (boundaries, values) = (vec![7, 20, 41], vec![0.4, 0.3, 0.2, 0.1]);
                PiecewiseConstant { boundaries, values }.at(step).unwrap()
            },
        ),
    ]
}

#[test]
fn schedules_agree_with_tensorflow() {
    let steps = [0i64, 1, 7, 8, 13, 20, 21, 37, 41, 42, 60, 100];
    let schedules = schedules();
    let requests = schedules.iter().map(|(request, _)| {
        let mut request = request.clone();
        request["steps"] = steps.to_vec().into();
        request
    });
    let Some(answers) = ask("schedule", requests.collect()) else {
        return;
    };
    for ((request, make), theirs) in schedules.iter().zip(&answers) {
        let g = Graph::new();
        let step = g.placeholder(DType::I64, &[]);
        let rate = make(&step);
        let session = Session::new(&g).unwrap();
        let ours: Vec<f64> = steps
            .iter()
            .map(|at| {
                let rate = session.run_fed(&[(&step, Tensor::scalar(*at))], &rate);
                f64::from(rate.unwrap().to_scalar::<f32>().unwrap())
            })
            .collect();
        assert_eq!(differences(&ours, theirs, 1e-6), None, "{request}");
    }
}
