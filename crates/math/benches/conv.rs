//! Prints the speed of f32 convolutions on the shapes the project watches: `cargo bench -p tensorfleet-math --bench conv [threads]`.

use std::time::{Duration, Instant};

use tensorfleet_math::conv::{self, Conv2d, Padding};
use tensorfleet_math::gemm::Epilogue;
use tensorfleet_math::par::Pool;

/// Images, side, channels, filter side, output channels, stride; depthwise if the output channels are zero.
const SHAPES: [[usize; 6]; 14] = [
    [32, 28, 1, 5, 32, 1],
    [32, 14, 32, 5, 64, 1],
    [8, 56, 64, 3, 64, 1],
    [1, 224, 3, 7, 64, 2],
    [8, 14, 256, 3, 256, 1],
    [8, 28, 128, 3, 128, 1],
    [8, 56, 64, 1, 256, 1],
    [8, 56, 256, 1, 64, 1],
    [32, 28, 32, 3, 64, 1],
    [8, 56, 64, 3, 128, 2],
    [8, 28, 256, 1, 512, 2],
    [32, 7, 512, 3, 512, 1],
    [8, 56, 64, 3, 0, 1],
    [8, 56, 64, 3, 0, 2],
];

fn main() {
    let number = |s: String| s.parse::<usize>().ok();
    let threads = std::env::args().filter_map(number).next().unwrap_or(2);
    let pool = Pool::new(threads);
    for [n, side, c, k, out, stride] in SHAPES {
        let (input, strides, same) = ([n, side, side, c], [stride; 2], Padding::Same);
        let shape = if out == 0 {
            Conv2d::depthwise(input, [k, k, c, 1], strides, [1, 1], same)
        } else {
            Conv2d::new(input, [k, k, c, out], strides, [1, 1], same)
        };
        let Some(shape) = shape else { continue };
        let numbers =
            |len: usize| -> Vec<f32> { (0..len).map(|i| (i % 13) as f32 - 6.0).collect() };
        let mut x = numbers(shape.input_len());
        let mut w = numbers(shape.filter_len());
        let mut y = numbers(shape.output_len());
        let forward = fastest(|| conv::forward(&pool, &shape, &x, &w, &mut y, Epilogue::None));
        let input = fastest(|| conv::backprop_input(&pool, &shape, &w, &y, &mut x));
        let filter = fastest(|| conv::backprop_filter(&pool, &shape, &x, &y, &mut w));
        let kind = if out == 0 {
            "depthwise".into()
        } else {
            out.to_string()
        };
        print!("{n}x{side}x{side}x{c} {k}x{k}x{kind} s{stride}:");
        for (pass, time) in [("forward", forward), ("input", input), ("filter", filter)] {
            let speed = 2.0 * shape.work() as f64 / time / 1e9;
            print!("  {pass} {:.1} us {speed:.1} GF", time * 1e6);
        }
        println!();
    }
}

/// The shortest of many runs, in seconds.
fn fastest(mut run: impl FnMut()) -> f64 {
    run();
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed() < Duration::from_millis(400) {
        let one = Instant::now();
        run();
        best = best.min(one.elapsed().as_secs_f64());
    }
    best
}
