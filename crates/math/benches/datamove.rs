//! Times the data-movement, random, optimizer, pooling and normalisation loops: `cargo bench -p tensorfleet-math --bench datamove [filter]`.
//!
//! Prints the shortest of many runs, in microseconds, for one thread and for all.

#![allow(missing_docs)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tensorfleet_math::par::{Par, Pool, Serial};
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
        let serial = shortest(|| body(&Serial));
        let parallel = shortest(|| body(&self.pool));
        println!("{name:44} {serial:10.1} {parallel:10.1}");
    }
}

fn shortest(mut body: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    let mut runs = 0;
    while runs < 5 || (begin.elapsed() < Duration::from_millis(300) && runs < 2000) {
        let start = Instant::now();
        body();
        best = best.min(start.elapsed());
        runs += 1;
    }
    best.as_secs_f64() * 1e6
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
    println!(
        "{:44} {:>10} {:>10}",
        "µs",
        "1 thread",
        format!("{threads} threads")
    );
    random(&bench);
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
