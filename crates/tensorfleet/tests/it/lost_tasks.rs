//! Training runs of real processes, some of which are killed: they end at their last step with a correct model, and no
//! more steps are lost than lie between checkpoints.

use std::time::Duration;

use tensorfleet::train::latest_checkpoint;

use crate::program::{assert_at_last, assert_fall};
use crate::tasks::{CHIEF, PS, Tasks, assert_learned};

/// Numbers that look random and are always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// The flags of a run that saves so often.
fn flags(dir: &str, last_step: i64, save_steps: i64) -> Vec<String> {
    vec![
        format!("--dir={dir}"),
        format!("--steps={last_step}"),
        format!("--save_steps={save_steps}"),
    ]
}

/// One interval at most is lost, and what other workers may do while the chief is writing a checkpoint.
#[expect(clippy::print_stderr, reason = "what was lost is worth knowing")]
fn assert_lost(lost: &[i64], save_steps: i64) {
    eprintln!("steps lost: {lost:?}");
    assert!(lost.iter().all(|lost| *lost <= 2 * save_steps), "{lost:?}");
}

#[test]
fn training_outlives_a_ps_killed_three_times_and_workers_killed_at_random() {
    const LAST_STEP: i64 = 6000;
    const SAVE_STEPS: i64 = 200;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let mut random = Random(11);
    let mut tasks = Tasks::start("trainer", 2, &flags(dir, LAST_STEP, SAVE_STEPS));
    let mut lost = Vec::new();
    let mut worker_kills = 0;
    while lost.len() < 3 {
        tasks.wait_for_steps(60 + random.below(200) as usize);
        let task = random.below(tasks.len() as u64) as usize;
        if task == PS {
            lost.push(tasks.lose(PS));
        } else {
            worker_kills += 1;
            tasks.restart(task);
        }
    }
    tasks.finish();
    assert!(worker_kills > 0, "the seed kills no worker");
    assert_lost(&lost, SAVE_STEPS);
    let newest = latest_checkpoint(dir).unwrap().unwrap();
    assert_at_last(&newest, LAST_STEP);
    assert_learned(&newest);
}

/// Two of three workers make a step: one that is away is not waited for, and one that comes back is welcome.
#[test]
fn synchronous_training_outlives_a_killed_ps_and_a_killed_worker() {
    const LAST_STEP: i64 = 800;
    const SAVE_STEPS: i64 = 100;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let mut tasks = Tasks::start("sync_trainer", 3, &flags(dir, LAST_STEP, SAVE_STEPS));
    tasks.wait_for_steps(250);
    let lost = tasks.lose(PS);
    tasks.wait_for_steps(50);
    let last = tasks.len() - 1;
    tasks.restart(last);
    tasks.finish();
    assert_lost(&[lost], SAVE_STEPS);
    let newest = latest_checkpoint(dir).unwrap().unwrap();
    assert_at_last(&newest, LAST_STEP);
    assert_learned(&newest);
}

/// Both workers make a step. The other one waits while the chief is away, wherever the chief was in its step, and goes
/// on when it is back.
#[test]
fn synchronous_training_outlives_a_chief_killed_at_random_moments() {
    const LAST_STEP: i64 = 600;
    const SAVE_STEPS: i64 = 50;
    const OTHER: usize = CHIEF + 1;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let mut flags = flags(dir, LAST_STEP, SAVE_STEPS);
    flags.push("--backups=0".to_owned());
    let mut random = Random(5);
    let mut tasks = Tasks::start("sync_trainer", 2, &flags);
    let mut lost = Vec::new();
    while lost.len() < 6 {
        tasks.wait_for_steps(1 + random.below(60) as usize);
        // Anywhere in a step.
        std::thread::sleep(Duration::from_millis(random.below(20)));
        lost.push(tasks.lose(CHIEF));
    }
    tasks.wait_for_steps(LAST_STEP as usize);
    assert_fall("sync_trainer", &tasks.losses(OTHER), 0.01);
    tasks.finish();
    assert_lost(&lost, SAVE_STEPS);
    let newest = latest_checkpoint(dir).unwrap().unwrap();
    assert_at_last(&newest, LAST_STEP);
    assert_learned(&newest);
}
