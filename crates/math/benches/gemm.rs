//! Prints the speed of f32 products on the shapes the project watches, the shortest and the middle run:
//! `cargo bench -p tensorfleet-math --bench gemm [threads] [part of a shape's name…]`.

use std::time::{Duration, Instant};

use tensorfleet_math::gemm::{Dims, matmul};
use tensorfleet_math::par::Pool;

fn main() {
    let number = |s: String| s.parse::<usize>().ok();
    let threads = std::env::args().filter_map(number).next().unwrap_or(2);
    let parts: Vec<String> = std::env::args()
        .skip(1)
        .filter(|s| s.contains('x'))
        .collect();
    let pool = Pool::new(threads);
    for (m, n, k, ta, tb) in shapes() {
        let name = format!("{m}x{n}x{k} t{}{}", ta as u8, tb as u8);
        if !parts.is_empty() && !parts.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let a: Vec<f32> = (0..m * k).map(|i| (i % 13) as f32 - 6.0).collect();
        let b: Vec<f32> = (0..k * n).map(|i| (i % 7) as f32 - 3.0).collect();
        let mut c = vec![0.0; m * n];
        let (best, middle) = timed(|| matmul(&pool, Dims { m, n, k }, (&a, ta), (&b, tb), &mut c));
        let speed = 2.0 * (m * n * k) as f64 / best / 1e9;
        let (us, middle) = (best * 1e6, middle * 1e6);
        println!("{name}: {us:9.1} us {speed:7.1} GF, middle {middle:9.1} us");
    }
}

fn shapes() -> Vec<(usize, usize, usize, bool, bool)> {
    let mut all = Vec::new();
    for n in [64, 128, 256, 512, 1024, 2048] {
        all.push((n, n, n, false, false));
    }
    for n in [256, 1024] {
        all.extend([
            (n, n, n, false, true),
            (n, n, n, true, false),
            (n, n, n, true, true),
        ]);
    }
    all.extend([
        (100, 100, 784, false, false),
        (100, 10, 100, false, false),
        (784, 100, 100, true, false),
        (100, 10, 100, true, false),
        (100, 100, 10, false, true),
        (784, 10, 100, true, false),
        (100, 784, 100, false, true),
        // Logistic regression by the input; the dense layer of a convolutional network.
        (100, 784, 10, false, true),
        (64, 512, 3136, false, false),
        (64, 3136, 512, false, true),
        (3136, 512, 64, true, false),
    ]);
    // The layers of the benchmarked perceptron: forward, by the input, by the weights.
    for (from, to) in [(784, 500), (500, 300), (300, 10)] {
        all.extend([
            (128, to, from, false, false),
            (128, from, to, false, true),
            (from, to, 128, true, false),
        ]);
    }
    all
}

/// The shortest and the middle of many runs, in seconds.
fn timed(mut run: impl FnMut()) -> (f64, f64) {
    run();
    let (begin, mut all) = (Instant::now(), Vec::new());
    while begin.elapsed() < Duration::from_millis(400) {
        let one = Instant::now();
        run();
        all.push(one.elapsed().as_secs_f64());
    }
    all.sort_by(f64::total_cmp);
    (all[0], all[all.len() / 2])
}
