//! Time and bandwidth of each elementwise loop on a million floats: `cargo bench -p tensorfleet-math --bench elementwise [filter]`.
//!
//! Prints the best of many short runs, on one thread and on all, with the bytes that the loop must read and write.

use std::hint::black_box;
use std::time::Instant;

use tensorfleet_math::binary::{self, Binary, Compare};
use tensorfleet_math::broadcast::Broadcast;
use tensorfleet_math::par::{Par, Pool, Serial};
use tensorfleet_math::unary::{self, Unary};

const N: usize = 1 << 20;

struct Bench {
    filter: Vec<String>,
    pool: Pool,
}

impl Bench {
    /// Runs `body` on one thread and on all; `bytes` is what one run moves.
    fn run(&self, name: &str, bytes: usize, mut body: impl FnMut(&dyn Par)) {
        if !self.filter.is_empty() && !self.filter.iter().any(|f| name.contains(f.as_str())) {
            return;
        }
        let mut best = |par: &dyn Par| {
            let begin = Instant::now();
            let mut best = f64::MAX;
            for i in 0.. {
                let start = Instant::now();
                body(par);
                best = best.min(start.elapsed().as_nanos() as f64);
                if i >= 15 && begin.elapsed().as_millis() > 250 {
                    break;
                }
            }
            best
        };
        let (one, all) = (best(&Serial), best(&self.pool));
        println!(
            "{name:<28} {one:>10.0} ns {:>6.1} GB/s   {all:>10.0} ns {:>6.1} GB/s",
            bytes as f64 / one,
            bytes as f64 / all
        );
    }
}

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench {
        filter: std::env::args()
            .skip(1)
            .filter(|a| !a.starts_with("--"))
            .collect(),
        pool: Pool::new(threads),
    };
    println!(
        "{:<28} {:>13} {:>11}   {:>13}",
        "loop",
        "1 thread",
        "",
        format!("{threads} threads")
    );
    unary(&bench);
    binary(&bench);
}

fn unary(bench: &Bench) {
    let x: Vec<f32> = (0..N).map(|i| (i % 1000) as f32 * 0.002 + 1e-3).collect();
    let mut y = vec![0f32; N];
    use Unary::*;
    for op in [
        Neg, Abs, Sign, Square, Sqrt, Rsqrt, Reciprocal, Exp, Expm1, Log, Log1p, Sin, Cos, Tan,
        Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Sigmoid, Floor, Round, Erf, Erfc,
        Lgamma, Digamma, Erfinv, Ndtri, Relu, Relu6, Elu, Selu, Softplus, Softsign,
    ] {
        bench.run(&format!("{op:?}"), 8 * N, |par| {
            unary::apply(par, op, black_box(&x), black_box(&mut y)).unwrap();
        });
    }
    bench.run("Neg in place", 8 * N, |par| {
        unary::apply_in_place(par, Neg, black_box(&mut y)).unwrap()
    });
    let (x, mut y) = (vec![0.7f64; N], vec![0f64; N]);
    for op in [Exp, Log, Tanh, Sqrt] {
        bench.run(&format!("{op:?} f64"), 16 * N, |par| {
            unary::apply(par, op, black_box(&x), black_box(&mut y)).unwrap();
        });
    }
    let (x, mut y) = (vec![half::bf16::ONE; N], vec![half::bf16::ONE; N]);
    bench.run("Exp bf16", 4 * N, |par| {
        unary::apply(par, Exp, black_box(&x), black_box(&mut y)).unwrap()
    });
    let (x, mut y) = (vec![half::f16::ONE; N], vec![half::f16::ONE; N]);
    bench.run("Exp f16", 4 * N, |par| {
        unary::apply(par, Exp, black_box(&x), black_box(&mut y)).unwrap()
    });
}

fn binary(bench: &Bench) {
    use Binary::*;
    let x: Vec<f32> = (0..N).map(|i| (i % 1000) as f32 * 0.002 + 1e-3).collect();
    let y: Vec<f32> = (0..N).map(|i| (i % 777) as f32 * 0.003 + 1e-3).collect();
    let mut z = vec![0f32; N];
    let same = Broadcast::same(N);
    for op in [
        Add,
        Mul,
        Div,
        Maximum,
        FloorDiv,
        FloorMod,
        DivNoNan,
        Pow,
        SquaredDifference,
        Atan2,
        Xlogy,
        ReluGrad,
        SigmoidGrad,
        TanhGrad,
    ] {
        bench.run(&format!("{op:?}"), 12 * N, |par| {
            binary::apply(
                par,
                op,
                &same,
                black_box(&x),
                black_box(&y),
                black_box(&mut z),
            )
            .unwrap();
        });
    }
    bench.run("Add in place", 12 * N, |par| {
        binary::apply_lhs(par, Add, &same, black_box(&mut z), black_box(&y)).unwrap()
    });
    for (name, shape, small) in [
        ("Add scalar", [1, N], vec![1, 1]),
        ("Add row 1024", [N / 1024, 1024], vec![1024]),
        ("Add row 10", [N / 10, 10], vec![10]),
        ("Add column 1024", [N / 1024, 1024], vec![N / 1024, 1]),
        ("Add column 10", [N / 10, 10], vec![N / 10, 1]),
    ] {
        let plan = Broadcast::new(&shape, &small).unwrap();
        let n = plan.len();
        let m: usize = small.iter().product();
        bench.run(name, 8 * n, |par| {
            binary::apply(
                par,
                Add,
                &plan,
                black_box(&x[..n]),
                black_box(&y[..m]),
                black_box(&mut z[..n]),
            )
            .unwrap();
        });
    }
    let mut flags = vec![false; N];
    bench.run("Less", 9 * N, |par| {
        binary::compare(
            par,
            Compare::Less,
            &same,
            black_box(&x),
            black_box(&y),
            black_box(&mut flags),
        )
        .unwrap();
    });
    let (a, b, mut c) = (vec![7i32; N], vec![3i32; N], vec![0i32; N]);
    for op in [Add, Mul, FloorDiv, FloorMod] {
        bench.run(&format!("{op:?} i32"), 12 * N, |par| {
            binary::apply(
                par,
                op,
                &same,
                black_box(&a),
                black_box(&b),
                black_box(&mut c),
            )
            .unwrap();
        });
    }
    bench.run("AddN of 4", 20 * N, |par| {
        binary::add_n(par, black_box(&[&x, &y, &x, &y]), black_box(&mut z))
    });
    bench.run("axpy", 12 * N, |par| {
        binary::axpy(par, 0.5, black_box(&x), black_box(&mut z))
    });
    let half: Vec<half::f16> = vec![half::f16::ONE; N];
    let mut sum = half.clone();
    bench.run("Add f16", 6 * N, |par| {
        binary::apply(
            par,
            Add,
            &same,
            black_box(&half),
            black_box(&half),
            black_box(&mut sum),
        )
        .unwrap()
    });
}
