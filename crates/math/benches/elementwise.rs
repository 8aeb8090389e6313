//! Time and bandwidth of each elementwise loop on a million floats: `cargo bench -p tensorfleet-math --bench elementwise [filter]`.
//!
//! Prints the best of many short runs, on one thread and on all, with the bytes that the loop must read and write.

use std::hint::black_box;
use std::time::Instant;

use tensorfleet_math::activation::{self, Channels};
use tensorfleet_math::binary::{self, Binary, Compare};
use tensorfleet_math::broadcast::Broadcast;
use tensorfleet_math::cast::{self, SliceMut};
use tensorfleet_math::par::{Par, Pool, Serial};
use tensorfleet_math::pool2d::{self, Pool2d};
use tensorfleet_math::reduce::{self, Axis, Layout, Reduce, Scan};
use tensorfleet_math::select::{self, Select};
use tensorfleet_math::softmax;
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
            "{name:<30} {one:>10.0} ns {:>6.1} GB/s   {all:>10.0} ns {:>6.1} GB/s",
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
        "{:<30} {:>13} {:>11}   {:>13}",
        "loop",
        "1 thread",
        "",
        format!("{threads} threads")
    );
    unary(&bench);
    binary(&bench);
    reduce(&bench);
    rows(&bench);
    windows(&bench);
    select(&bench);
    casts(&bench);
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

fn reduce(bench: &Bench) {
    use Reduce::*;
    let x: Vec<f32> = (0..N).map(|i| (i % 1000) as f32 * 0.002 + 1e-3).collect();
    let mut out = vec![0f32; N];
    let mut run = |name: &str, op: Reduce, shape: &[usize], axes: &[usize]| {
        let layout = Layout::new(shape, axes);
        let (n, m) = (layout.out_len() * layout.reduced_len(), layout.out_len());
        bench.run(name, 4 * (n + m), |par| {
            reduce::apply(
                par,
                op,
                &layout,
                black_box(&x[..n]),
                black_box(&mut out[..m]),
            );
        });
    };
    for op in [Sum, Mean, Prod, Max, EuclideanNorm] {
        run(&format!("{op:?} all"), op, &[N], &[0]);
    }
    for columns in [1024, 64, 10] {
        for op in [Sum, Max] {
            run(
                &format!("{op:?} inner {columns}"),
                op,
                &[N / columns, columns],
                &[1],
            );
            run(
                &format!("{op:?} outer {columns}"),
                op,
                &[N / columns, columns],
                &[0],
            );
        }
    }
    run("Sum middle", Sum, &[64, 128, 128], &[1]);
    run("Sum NHWC 0,1,2 c64", Sum, &[16, 32, 32, 64], &[0, 1, 2]);
    run("Sum NCHW 0,2,3", Sum, &[4, 16, 128, 128], &[0, 2, 3]);
    bench.run("L2Loss", 4 * N, |par| {
        black_box(reduce::l2_loss(par, black_box(&x)));
    });
    let (ints, mut sum) = (vec![1i32; N], [0]);
    bench.run("Sum i32 all", 4 * N, |par| {
        reduce::apply(par, Sum, &Layout::all(N), black_box(&ints), &mut sum);
    });
    let (doubles, mut sum) = (vec![1f64; N], [0.0]);
    bench.run("Sum f64 all", 8 * N, |par| {
        reduce::apply(par, Sum, &Layout::all(N), black_box(&doubles), &mut sum);
    });
    let (flags, mut flag) = (vec![true; N], [false]);
    bench.run("All all", N, |par| {
        reduce::all(par, &Layout::all(N), black_box(&flags), &mut flag)
    });
    let mut index = vec![0i64; N];
    for columns in [1024, 64, 10] {
        let rows = N / columns;
        let axis = Axis::new(&[rows, columns], 1);
        bench.run(
            &format!("ArgMax {columns}"),
            4 * rows * columns + 8 * rows,
            |par| {
                reduce::arg_max(
                    par,
                    axis,
                    black_box(&x[..rows * columns]),
                    black_box(&mut index[..rows]),
                );
            },
        );
        bench.run(&format!("Cumsum {columns}"), 8 * rows * columns, |par| {
            let n = rows * columns;
            reduce::cumulate(
                par,
                Scan::Sum,
                (false, false),
                axis,
                black_box(&x[..n]),
                black_box(&mut out[..n]),
            );
        });
    }
}

fn rows(bench: &Bench) {
    let x: Vec<f32> = (0..N).map(|i| (i % 1000) as f32 * 0.002 + 1e-3).collect();
    let (mut out, mut loss) = (vec![0f32; N], vec![0f32; N]);
    for columns in [1024, 1000, 64, 10] {
        let (rows, n) = (N / columns, N / columns * columns);
        let (x, out, loss) = (&x[..n], &mut out[..n], &mut loss[..rows]);
        let bias = &x[..columns];
        bench.run(&format!("Softmax {columns}"), 8 * n, |par| {
            softmax::softmax(par, black_box(x), columns, out)
        });
        bench.run(&format!("LogSoftmax {columns}"), 8 * n, |par| {
            softmax::log_softmax(par, black_box(x), columns, out)
        });
        bench.run(&format!("Xent {columns}"), 12 * n, |par| {
            softmax::cross_entropy(par, black_box(x), black_box(x), columns, loss, out);
        });
        let labels = vec![0i32; rows];
        bench.run(&format!("SparseXent {columns}"), 8 * n, |par| {
            softmax::sparse_cross_entropy(par, black_box(x), &labels, columns, loss, out).unwrap();
        });
        let channels = Channels::last(columns);
        bench.run(&format!("BiasAdd {columns}"), 8 * n, |par| {
            activation::bias_add(par, channels, black_box(x), bias, out);
        });
        bench.run(&format!("BiasAddGrad {columns}"), 4 * n, |par| {
            activation::bias_add_grad(par, channels, black_box(x), &mut out[..columns]);
        });
    }
    let channels = Channels {
        count: 64,
        inner: 1024,
    };
    bench.run("BiasAdd NCHW", 8 * N, |par| {
        activation::bias_add(par, channels, black_box(&x), &x[..64], &mut out)
    });
}

/// Poolings: images, side, channels, side of the window, stride.
fn windows(bench: &Bench) {
    for [batch, side, channels, window, stride] in [
        [32_usize, 28, 32, 2, 2],
        [32, 28, 32, 3, 2],
        [32, 28, 32, 3, 1],
        [1, 112, 64, 3, 2],
        [32, 28, 3, 2, 2],
        [32, 7, 512, 7, 7],
    ] {
        let out = side.div_ceil(stride);
        let padding = ((out - 1) * stride + window).saturating_sub(side);
        let shape = Pool2d {
            batch,
            in_rows: side,
            in_cols: side,
            channels,
            window_rows: window,
            window_cols: window,
            row_stride: stride,
            col_stride: stride,
            pad_top: padding / 2,
            pad_left: padding / 2,
            out_rows: out,
            out_cols: out,
        };
        // Nothing that a processor could foresee: branches on which element is larger would look free.
        let mut state = 1_u64;
        let mut noise = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 40) as f32
        };
        let x: Vec<f32> = (0..shape.input_len()).map(|_| noise()).collect();
        let mut back = vec![0f32; x.len()];
        let mut y = vec![1f32; shape.output_len()];
        let (small, large) = (4 * y.len(), 4 * x.len());
        let name = |op: &str| format!("{op} {batch}x{side}x{side}x{channels} {window}/{stride}");
        bench.run(&name("MaxPool"), small + large, |par| {
            pool2d::max_pool(par, &shape, black_box(&x), &mut y);
        });
        bench.run(&name("MaxPoolGrad"), small + 2 * large, |par| {
            pool2d::max_pool_grad(par, &shape, black_box(&x), black_box(&y), &mut back);
        });
        bench.run(&name("AvgPool"), small + large, |par| {
            pool2d::avg_pool(par, &shape, black_box(&x), &mut y);
        });
        bench.run(&name("AvgPoolGrad"), small + large, |par| {
            pool2d::avg_pool_grad(par, &shape, black_box(&y), &mut back);
        });
    }
}

fn select(bench: &Bench) {
    let (x, y, mut z) = (vec![1f32; N], vec![2f32; N], vec![0f32; N]);
    let mask: Vec<bool> = (0..N).map(|i| i % 3 == 0).collect();
    let plan = Select::new(&[N], &[N], &[N]).unwrap();
    bench.run("Select", 13 * N, |par| {
        select::select(par, &plan, black_box(&mask), &x, &y, &mut z)
    });
    bench.run("ClipByValue", 8 * N, |par| {
        select::clip(par, black_box(&x), &[0.0], &[1.5], &mut z)
    });
}

fn casts(bench: &Bench) {
    let floats: Vec<f32> = (0..N).map(|i| (i % 1000) as f32 * 0.1).collect();
    let flags: Vec<bool> = (0..N).map(|i| i % 3 == 0).collect();
    macro_rules! pair {
        ($from:ty, $to:ty, $source:expr) => {{
            let source: Slice<'_> = $source.as_slice().into();
            let mut x = vec![<$from>::default(); N];
            cast::cast(&Serial, source, x.as_mut_slice().into(), false);
            let mut out = vec![<$to>::default(); N];
            let name = format!("Cast {} {}", stringify!($from), stringify!($to));
            bench.run(&name, N * (size_of::<$from>() + size_of::<$to>()), |par| {
                let to: SliceMut<'_> = out.as_mut_slice().into();
                cast::cast(par, black_box(x.as_slice().into()), to, false);
            });
        }};
    }
    use half::{bf16, f16};
    use tensorfleet_math::cast::Slice;
    pair!(f32, i32, floats);
    pair!(i32, f32, floats);
    pair!(f32, f64, floats);
    pair!(f64, f32, floats);
    pair!(i64, i32, floats);
    pair!(i32, i64, floats);
    pair!(bool, f32, flags);
    pair!(u8, f32, floats);
    pair!(f32, f16, floats);
    pair!(f16, f32, floats);
    pair!(f32, bf16, floats);
    pair!(f32, i64, floats);
    pair!(i64, f32, floats);
    pair!(f32, bool, floats);
    pair!(f32, u8, floats);
    pair!(f64, i64, floats);
    pair!(f16, i32, floats);
}
