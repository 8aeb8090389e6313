//! The machine's limits, so that a rate can be read beside them.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

/// Processor, cores and how fast memory is copied, in one line.
pub(super) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    format!(
        "{}, {cores} cores; all cores copying (read and written): {:.1} GB/s over 8 MB, {:.1} GB/s over 512 MB",
        model.unwrap_or("unknown processor"),
        copy_rate(cores, 8 << 20),
        copy_rate(cores, 512 << 20),
    )
}

/// Bytes read and written per nanosecond when `cores` threads copy, the best of several tries.
fn copy_rate(cores: usize, bytes: usize) -> f64 {
    // Half of the bytes is read, half written.
    let each = bytes / 2 / cores;
    let tries = ((1 << 30) / bytes).clamp(3, 64);
    let rates: Vec<f64> = std::thread::scope(|scope| {
        let copy = || {
            let (from, mut to) = (vec![1_u8; each], vec![0_u8; each]);
            let mut best = f64::INFINITY;
            for _ in 0..tries {
                let start = Instant::now();
                to.copy_from_slice(black_box(&from));
                black_box(&mut to);
                best = best.min(start.elapsed().as_nanos() as f64);
            }
            2.0 * each as f64 / best
        };
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(copy)).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    });
    rates.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_something() {
        let rate = copy_rate(2, 1 << 20);
        assert!(rate.is_finite() && rate > 0.0, "{rate}");
    }
}
