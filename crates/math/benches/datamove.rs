//! Times the data-movement, random, optimizer, pooling and normalisation loops: `cargo bench -p tensorfleet-math --bench datamove [filter]`.
//!
//! Prints the shortest of many runs in microseconds: processor time on one thread, and time by the clock on all.

#![allow(missing_docs)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tensorfleet_math::movement::{
    Gather, Updates, View, concat, copy_view_bytes, gather_bytes, pad_bytes, scatter,
    scatter_update_bytes, top_k,
};
use tensorfleet_math::norm::{
    BatchNorm, BatchNormGrad, Layout, Lrn, Statistics, batch_norm_grad, batch_norm_infer,
    batch_norm_train, lrn, lrn_grad,
};
use tensorfleet_math::optimizer::{
    Adagrad, Adam, AdamInputs, Ftrl, GradientDescent, Momentum, apply, apply_sparse,
};
use tensorfleet_math::par::{Par, Pool, Serial};
use tensorfleet_math::pool2d::{Pool2d, avg_pool, avg_pool_grad, max_pool, max_pool_grad};
use tensorfleet_math::random::{
    Philox, fill_normal, fill_truncated_normal, fill_uniform, fill_uniform_int,
};

const MILLION: usize = 1 << 20;

struct Bench {
    filter: String,
    pool: Pool,
}

impl Bench {
    fn run(&self, name: &str, mut body: impl FnMut(&dyn Par)) {
        if !name.contains(&self.filter) {
            return;
        }
        let (_, serial) = shortest(|| body(&Serial));
        let (parallel, _) = shortest(|| body(&self.pool));
        println!("{name:44} {serial:10.1} {parallel:10.1}");
    }
}

/// The shortest time of many runs, and the shortest processor time of this thread.
fn shortest(mut body: impl FnMut()) -> (f64, f64) {
    let begin = Instant::now();
    let (mut best, mut least) = (f64::MAX, f64::MAX);
    let mut runs = 0;
    while runs < 5 || (begin.elapsed() < Duration::from_millis(500) && runs < 2000) {
        let (start, used) = (Instant::now(), processor_time());
        body();
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
        least = least.min((processor_time() - used) * 1e6);
        runs += 1;
    }
    (best, least)
}

/// Seconds that this thread has kept a processor busy; on a machine shared with others a steadier measure than the clock.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn processor_time() -> f64 {
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    const THREAD: i32 = 3;
    let mut time = [0; 2];
    // SAFETY: the time is two words on these systems, and they live through the call.
    unsafe { clock_gettime(THREAD, &raw mut time) };
    time[0] as f64 + time[1] as f64 * 1e-9
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn processor_time() -> f64 {
    use std::sync::LazyLock;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_secs_f64()
}

fn main() {
    let filter = std::env::args()
        .skip(1)
        .find(|arg| !arg.starts_with('-'))
        .unwrap_or_default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench {
        filter,
        pool: Pool::new(threads),
    };
    let all = format!("{threads} threads");
    println!("{:44} {:>10} {all:>10}", "µs", "1 thread");
    random(&bench);
    movement(&bench);
    rows(&bench);
    optimizer(&bench);
    pool(&bench);
    norm(&bench);
}

fn random(bench: &Bench) {
    let philox = Philox::new(1, 2);
    let mut out = vec![0.0_f32; MILLION];
    bench.run("random/uniform f32 1M", |par| {
        fill_uniform(par, philox, black_box(&mut out))
    });
    bench.run("random/normal f32 1M", |par| {
        fill_normal(par, philox, black_box(&mut out))
    });
    bench.run("random/truncated f32 1M", |par| {
        fill_truncated_normal(par, philox, black_box(&mut out));
    });
    let mut out = vec![0.0_f64; MILLION];
    bench.run("random/uniform f64 1M", |par| {
        fill_uniform(par, philox, black_box(&mut out))
    });
    bench.run("random/normal f64 1M", |par| {
        fill_normal(par, philox, black_box(&mut out))
    });
    let mut out = vec![0_i32; MILLION];
    bench.run("random/uniform_int i32 1M", |par| {
        fill_uniform_int(par, philox, 0, 1000, black_box(&mut out));
    });
    let mut out = [0.0_f32; 10];
    bench.run("random/normal f32 10", |par| {
        fill_normal(par, philox, black_box(&mut out))
    });
}

fn movement(bench: &Bench) {
    for (name, size, dims, order) in [
        ("transpose f32 1024x1024", 4, vec![1024, 1024], vec![1, 0]),
        ("transpose f32 1000x1000", 4, vec![1000, 1000], vec![1, 0]),
        ("transpose f32 256x256", 4, vec![256, 256], vec![1, 0]),
        ("transpose f64 1024x1024", 8, vec![1024, 1024], vec![1, 0]),
        ("transpose u8 1024x1024", 1, vec![1024, 1024], vec![1, 0]),
        (
            "transpose f32 32x56x56x64 to NCHW",
            4,
            vec![32, 56, 56, 64],
            vec![0, 3, 1, 2],
        ),
        (
            "transpose f32 32x64x56x56 to NHWC",
            4,
            vec![32, 64, 56, 56],
            vec![0, 2, 3, 1],
        ),
        (
            "transpose f32 32x224x224x3 to NCHW",
            4,
            vec![32, 224, 224, 3],
            vec![0, 3, 1, 2],
        ),
        (
            "transpose f32 128x64x8x64 (0213)",
            4,
            vec![128, 64, 8, 64],
            vec![0, 2, 1, 3],
        ),
    ] {
        let len: usize = dims.iter().product();
        let src = vec![1_u8; len * size];
        let mut dst = vec![0; len * size];
        let view = View::transposed(&dims, &order);
        bench.run(&format!("movement/{name}"), |par| {
            copy_view_bytes(par, size, black_box(&src), &view, black_box(&mut dst));
        });
    }
    let src = vec![1.0_f32; MILLION];
    let mut dst = vec![0.0_f32; 4 * MILLION];
    bench.run("movement/concat f32 4x 1024x1024 axis 1", |par| {
        let parts = [(src.as_slice(), 1024); 4];
        concat(par, black_box(&parts), black_box(&mut dst));
    });
    let src = vec![1_u8; 4 * MILLION];
    let mut dst = vec![0_u8; 16 * MILLION];
    let tile = View::tiled(&[1024, 1024], &[2, 2]);
    bench.run("movement/tile f32 1024x1024 by 2x2", |par| {
        copy_view_bytes(par, 4, black_box(&src), &tile, black_box(&mut dst));
    });
    let slice = View::sliced(&[1024, 1024], &[0, 1], &[1, 2], &[1024, 511]);
    bench.run("movement/slice f32 1024x1024 [:, 1:-1:2]", |par| {
        copy_view_bytes(
            par,
            4,
            black_box(&src),
            &slice,
            black_box(&mut dst[..4 * 1024 * 511]),
        );
    });
    let reverse = View::reversed(&[1024, 1024], &[false, true]);
    bench.run("movement/reverse f32 1024x1024 axis 1", |par| {
        copy_view_bytes(
            par,
            4,
            black_box(&src),
            &reverse,
            black_box(&mut dst[..4 * MILLION]),
        );
    });
    let broadcast = View::broadcast(&[1024, 1], &[1024, 1024]);
    bench.run("movement/broadcast f32 1024x1 to 1024x1024", |par| {
        copy_view_bytes(
            par,
            4,
            black_box(&src[..4096]),
            &broadcast,
            black_box(&mut dst[..4 * MILLION]),
        );
    });
    let len = 32 * 58 * 58 * 64;
    let src = vec![1_u8; 4 * 32 * 56 * 56 * 64];
    let mut dst = vec![0_u8; 4 * len];
    bench.run("movement/pad f32 32x56x56x64 by 1", |par| {
        let paddings = [(0, 0), (1, 1), (1, 1), (0, 0)];
        pad_bytes(
            par,
            4,
            black_box(&src),
            &[32, 56, 56, 64],
            &paddings,
            &[0; 4],
            black_box(&mut dst),
        );
    });
    let src: Vec<f32> = (0..MILLION as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32)
        .collect();
    let (mut values, mut indices) = (vec![0.0; 1024 * 10], vec![0_i32; 1024 * 10]);
    bench.run("movement/top_k f32 1024x1024 k 10", |par| {
        top_k(
            par,
            black_box(&src),
            1024,
            10,
            &mut values,
            &mut indices,
            |a, b| a > b,
        );
    });
}

const ROWS: usize = 26_624;
const WIDTH: usize = 64;
const TABLE: usize = 1_000_000;
const LINE: usize = 64;

fn row_indices() -> Vec<i32> {
    let philox = Philox::new(5, 5);
    let mut indices = vec![0; ROWS];
    fill_uniform_int(&Serial, philox, 0, TABLE as i32, &mut indices);
    indices
}

/// Room for `len` bytes at an address as tensors have it.
fn bytes(len: usize) -> Vec<u8> {
    vec![1; len + LINE]
}

fn aligned(bytes: &mut [u8]) -> &mut [u8] {
    let skipped = bytes.as_ptr().align_offset(LINE);
    let len = bytes.len() - LINE;
    &mut bytes[skipped..][..len]
}

fn rows(bench: &Bench) {
    let indices = row_indices();
    let (mut table, mut updates) = (bytes(TABLE * WIDTH * 4), bytes(ROWS * WIDTH * 4));
    let (table, updates) = (aligned(&mut table), aligned(&mut updates));
    let shape = Gather {
        batch: 1,
        outer: 1,
        limit: TABLE,
        inner: WIDTH,
        count: ROWS,
    };
    bench.run("rows/gather f32 26624x64 of 1M", |par| {
        gather_bytes(
            par,
            4,
            shape,
            black_box(table),
            &indices,
            black_box(updates),
        )
        .unwrap();
    });
    bench.run("rows/scatter_update f32 26624x64 of 1M", |par| {
        scatter_update_bytes(
            par,
            4,
            black_box(table),
            WIDTH,
            &indices,
            black_box(updates),
        )
        .unwrap();
    });
    let mut table = vec![1.0_f32; TABLE * WIDTH];
    let updates = vec![0.5_f32; ROWS * WIDTH];
    bench.run("rows/scatter_add f32 26624x64 of 1M", |par| {
        let updates = Updates::Rows(black_box(&updates));
        scatter(
            par,
            black_box(&mut table),
            WIDTH,
            &indices,
            updates,
            |a, b| *a += b,
        )
        .unwrap();
    });
}

fn optimizer(bench: &Bench) {
    let grad = vec![0.25_f32; MILLION];
    let mut var = vec![1.0_f32; MILLION];
    let mut slots = [vec![0.5_f32; MILLION], vec![0.5; MILLION]];
    bench.run("optimizer/gradient_descent f32 1M", |par| {
        let rule = GradientDescent { lr: 1e-6 };
        apply(par, rule, black_box(&mut var), [], &grad);
    });
    bench.run("optimizer/momentum f32 1M", |par| {
        let rule = Momentum {
            lr: 1e-6,
            momentum: 0.9,
            use_nesterov: false,
        };
        let [accum, _] = &mut slots;
        apply(par, rule, black_box(&mut var), [accum], &grad);
    });
    bench.run("optimizer/adagrad f32 1M", |par| {
        let rule = Adagrad {
            lr: 1e-6,
            update_slots: true,
        };
        let [accum, _] = &mut slots;
        apply(par, rule, black_box(&mut var), [accum], &grad);
    });
    bench.run("optimizer/adam f32 1M", |par| {
        let inputs = AdamInputs {
            beta1_power: 0.9,
            beta2_power: 0.999,
            lr: 1e-6,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
        };
        let [m, v] = &mut slots;
        apply(
            par,
            Adam::new(inputs, false),
            black_box(&mut var),
            [m, v],
            &grad,
        );
    });
    bench.run("optimizer/ftrl f32 1M", |par| {
        let rule = Ftrl {
            lr: 0.1,
            l1: 0.1,
            l2: 0.1,
            l2_shrinkage: 0.0,
            lr_power: -0.5,
            multiply_linear_by_lr: false,
        };
        let [accum, linear] = &mut slots;
        apply(par, rule, black_box(&mut var), [accum, linear], &grad);
    });
    drop((var, slots, grad));
    let indices = row_indices();
    let grad = vec![0.25_f32; ROWS * WIDTH];
    let mut var = vec![1.0_f32; TABLE * WIDTH];
    let mut accum = vec![0.5_f32; TABLE * WIDTH];
    bench.run("rows/sparse adagrad f32 26624x64 of 1M", |par| {
        let rule = Adagrad {
            lr: 1e-6,
            update_slots: true,
        };
        apply_sparse(
            par,
            rule,
            WIDTH,
            black_box(&mut var),
            [&mut accum],
            &indices,
            &grad,
        )
        .unwrap();
    });
}

/// Noise, so that maxima are not all in one place.
fn noise(len: usize) -> Vec<f32> {
    let mut out = vec![0.0; len];
    fill_uniform(&Serial, Philox::new(3, 3), &mut out);
    out
}

fn pool(bench: &Bench) {
    for (name, window, out) in [("2x2 s2", 2, 28), ("3x3 s2 same", 3, 28)] {
        let shape = Pool2d {
            batch: 32,
            in_rows: 56,
            in_cols: 56,
            channels: 64,
            window_rows: window,
            window_cols: window,
            row_stride: 2,
            col_stride: 2,
            pad_top: 0,
            pad_left: 0,
            out_rows: out,
            out_cols: out,
        };
        let input = noise(shape.input_len());
        let grad = noise(shape.output_len());
        let mut small = vec![0.0; shape.output_len()];
        let mut large = vec![0.0; shape.input_len()];
        bench.run(&format!("pool/max f32 32x56x56x64 {name}"), |par| {
            max_pool(par, &shape, black_box(&input), &mut small);
        });
        bench.run(&format!("pool/max_grad f32 32x56x56x64 {name}"), |par| {
            max_pool_grad(par, &shape, black_box(&input), &grad, &mut large);
        });
        bench.run(&format!("pool/avg f32 32x56x56x64 {name}"), |par| {
            avg_pool(par, &shape, black_box(&input), &mut small);
        });
        bench.run(&format!("pool/avg_grad f32 32x56x56x64 {name}"), |par| {
            avg_pool_grad(par, &shape, black_box(&grad), &mut large);
        });
    }
}

fn norm(bench: &Bench) {
    let (pixels, channels) = (32 * 28 * 28, 64);
    let layout = Layout::nhwc(pixels, channels);
    let x = noise(pixels * channels);
    let mut y = vec![0.0; pixels * channels];
    let ones = vec![1.0; channels];
    let mut outputs = [(); 4].map(|()| vec![0.0; channels]);
    let (scale, offset, epsilon) = (&ones[..], &ones[..], 1e-3);
    let norm = BatchNorm {
        scale,
        offset,
        epsilon,
    };
    bench.run("norm/train f32 32x28x28x64", |par| {
        let [mean, variance, saved_mean, saved_variance] = &mut outputs;
        let statistics = Statistics {
            mean,
            variance,
            saved_mean,
            saved_variance,
        };
        batch_norm_train(par, layout, norm, None, black_box(&x), &mut y, statistics);
    });
    bench.run("norm/infer f32 32x28x28x64", |par| {
        batch_norm_infer(par, layout, norm, (&ones, &ones), black_box(&x), &mut y);
    });
    bench.run("norm/grad f32 32x28x28x64", |par| {
        let norm = BatchNormGrad {
            is_training: true,
            scale,
            mean: &ones,
            variance: &ones,
            epsilon,
        };
        let [dscale, doffset, ..] = &mut outputs;
        batch_norm_grad(
            par,
            layout,
            norm,
            black_box(&x),
            &x,
            &mut y,
            dscale,
            doffset,
        );
    });
    let attrs = Lrn {
        depth_radius: 5,
        bias: 1.0,
        alpha: 1e-4,
        beta: 0.75,
    };
    bench.run("norm/lrn f32 32x28x28x64", |par| {
        lrn(par, attrs, channels, black_box(&x), &mut y);
    });
    bench.run("norm/lrn_grad f32 32x28x28x64", |par| {
        lrn_grad(par, attrs, channels, (&x, &x, black_box(&x)), &mut y);
    });
}
