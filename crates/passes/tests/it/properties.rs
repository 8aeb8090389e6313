//! Random programs on random devices.

use crate::harness::{check, devices};
use crate::programs::{Random, program};

fn check_seeds(seeds: std::ops::Range<u64>, tasks: u32, per_task: u32) {
    let table = devices(tasks, per_task);
    for seed in seeds {
        let graph = program(seed, 4);
        let mut random = Random::new(!seed);
        let placed: Vec<u32> = graph
            .ids()
            .map(|_| random.below(table.len()) as u32)
            .collect();
        check(&graph, &table, &placed, 4);
    }
}

#[test]
fn random_programs_on_two_tasks() {
    check_seeds(0..50, 2, 1);
}

#[test]
fn random_programs_on_three_tasks() {
    check_seeds(1000..1050, 3, 1);
}

#[test]
fn random_programs_split_by_task_and_again_by_device() {
    check_seeds(2000..2050, 2, 2);
}
