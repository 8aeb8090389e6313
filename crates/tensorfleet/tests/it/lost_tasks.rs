//! A training run of real processes whose parameter server is killed three times and whose workers are killed at
//! random: it ends at its last step with a correct model, and no more steps are lost than lie between checkpoints.

use std::time::{Duration, Instant};

use tensorfleet::train::{Saver, latest_checkpoint};
use tensorfleet::{Graph, Session};
use tensorfleet_rpc::free_ports;

use crate::data::{BIAS, WEIGHTS};
use crate::program::{PATIENCE, Running, assert_at_last, losses};

const LAST_STEP: i64 = 6000;
const SAVE_STEPS: i64 = 200;
/// One interval, and what the other worker may do while the chief is writing a checkpoint.
const MOST_LOST: i64 = 2 * SAVE_STEPS;
const SEED: u64 = 11;

const PS: usize = 0;
const CHIEF: usize = 1;
const TASKS: [(&str, &str); 3] = [("ps", "0"), ("worker", "0"), ("worker", "1")];

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

/// One ps, two workers, each a process.
struct Cluster {
    flags: Vec<String>,
    tasks: Vec<Running>,
    /// What killed chiefs had printed.
    chief_said: String,
}

impl Cluster {
    fn start(dir: &str) -> Cluster {
        let ports = free_ports("localhost", TASKS.len()).unwrap();
        let flags = vec![
            format!("--ps_hosts=localhost:{}", ports[0]),
            format!(
                "--worker_hosts=localhost:{},localhost:{}",
                ports[1], ports[2]
            ),
            format!("--dir={dir}"),
            format!("--steps={LAST_STEP}"),
            format!("--save_steps={SAVE_STEPS}"),
            "--log_steps=1".to_owned(),
        ];
        let tasks = (0..TASKS.len()).map(|index| start_task(&flags, index));
        Cluster {
            tasks: tasks.collect(),
            flags,
            chief_said: String::new(),
        }
    }

    /// Kills a task and starts it anew, without anything it knew.
    fn restart(&mut self, index: usize) {
        let task = self.tasks.remove(index);
        let said = task.kill();
        if index == CHIEF {
            self.chief_said += &said;
        }
        self.tasks.insert(index, start_task(&self.flags, index));
    }

    /// The steps that the chief made, in its order: the step falls where work was lost.
    fn chief_steps(&self) -> Vec<i64> {
        let said = format!("{}{}", self.chief_said, self.tasks[CHIEF].output());
        said.lines()
            .flat_map(losses)
            .map(|(step, _)| step)
            .collect()
    }

    /// The latest step of any worker of this moment's processes.
    fn latest_step(&self) -> i64 {
        let steps = self.tasks[CHIEF..].iter();
        let steps = steps.filter_map(|task| Some(losses(&task.output()).last()?.0));
        steps.max().unwrap_or(0)
    }

    /// Waits until the chief made so many more steps, or is done.
    fn wait_for_steps(&mut self, count: usize) {
        let (before, began) = (self.chief_steps().len(), Instant::now());
        while self.chief_steps().len() < before + count && self.tasks[CHIEF].is_running() {
            assert!(
                began.elapsed() < PATIENCE,
                "no progress:\n{}",
                self.tasks[CHIEF].end_of_output()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn start_task(flags: &[String], index: usize) -> Running {
    let (job, task) = TASKS[index];
    let own = [format!("--job_name={job}"), format!("--task_index={task}")];
    let args: Vec<&str> = flags.iter().chain(&own).map(String::as_str).collect();
    Running::start("trainer", &args)
}

#[test]
#[expect(clippy::print_stderr, reason = "what was lost is worth knowing")]
fn training_outlives_a_ps_killed_three_times_and_workers_killed_at_random() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let mut random = Random(SEED);
    let mut cluster = Cluster::start(dir);
    let mut lost = Vec::new();
    let (mut ps_kills, mut worker_kills) = (0, 0);
    while ps_kills < 3 {
        cluster.wait_for_steps(60 + random.below(200) as usize);
        let task = random.below(TASKS.len() as u64) as usize;
        if task != PS {
            worker_kills += 1;
            cluster.restart(task);
            continue;
        }
        ps_kills += 1;
        let made = cluster.chief_steps().len();
        let latest = cluster.latest_step();
        cluster.restart(PS);
        cluster.wait_for_steps(20);
        let steps = cluster.chief_steps();
        let fall = steps[made.saturating_sub(1)..]
            .windows(2)
            .find(|pair| pair[1] < pair[0]);
        lost.push(fall.map_or(0, |pair| latest.max(pair[0]) - (pair[1] - 1)));
    }
    let mut tasks = cluster.tasks.into_iter();
    let ps = tasks.next().unwrap();
    for worker in tasks {
        worker.finish();
    }
    drop(ps);
    eprintln!("{ps_kills} ps and {worker_kills} workers killed, steps lost: {lost:?}");
    assert!(worker_kills > 0, "the seed kills no worker");
    assert!(lost.iter().all(|lost| *lost <= MOST_LOST), "lost {lost:?}");

    let newest = latest_checkpoint(dir).unwrap().unwrap();
    assert_at_last(&newest, LAST_STEP);
    let (weights, bias) = restore(&newest);
    for (found, hidden) in weights.iter().zip(WEIGHTS) {
        assert!((found - hidden).abs() < 1e-3, "{weights:?}");
    }
    assert!((bias - BIAS).abs() < 1e-3, "{bias}");
}

/// The model in a checkpoint.
fn restore(path: &str) -> (Vec<f32>, f32) {
    let g = Graph::new();
    let w = g.variable("w", &[4, 1]).build();
    let b = g.variable("b", &[1]).build();
    let saver = Saver::builder(&g).build().unwrap();
    let session = Session::new(&g).unwrap();
    saver.restore(&session, path).unwrap();
    let (w, b) = session.run((&w, &b)).unwrap();
    (
        w.slice::<f32>().unwrap().to_vec(),
        b.slice::<f32>().unwrap()[0],
    )
}
