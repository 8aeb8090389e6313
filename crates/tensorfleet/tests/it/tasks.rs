//! A training run of real processes, one for each task, that a test kills and starts anew.

use tensorfleet::train::Saver;
use tensorfleet::{Graph, Session};
use tensorfleet_rpc::free_ports;

use crate::data::{BIAS, WEIGHTS};
use crate::program::{Patience, Running, losses};

/// The first task is the parameter server, the second the chief of the workers.
pub(crate) const PS: usize = 0;
pub(crate) const CHIEF: usize = 1;

/// One ps and some workers, each a process of the same example.
pub(crate) struct Tasks {
    example: &'static str,
    flags: Vec<String>,
    tasks: Vec<Running>,
    /// What killed chiefs had printed.
    chief_said: String,
}

impl Tasks {
    /// Starts an example with so many workers; it is told where the tasks are, and to print every step.
    pub(crate) fn start(example: &'static str, workers: usize, flags: &[String]) -> Tasks {
        let ports = free_ports("localhost", 1 + workers).unwrap();
        let hosts: Vec<String> = ports
            .iter()
            .map(|port| format!("localhost:{port}"))
            .collect();
        let mut flags = flags.to_vec();
        flags.extend([
            format!("--ps_hosts={}", hosts[PS]),
            format!("--worker_hosts={}", hosts[CHIEF..].join(",")),
            "--log_steps=1".to_owned(),
        ]);
        let tasks = (0..hosts.len()).map(|index| start(example, &flags, index));
        Tasks {
            tasks: tasks.collect(),
            example,
            flags,
            chief_said: String::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Kills a task and starts it anew, without anything it knew.
    pub(crate) fn restart(&mut self, index: usize) {
        let task = self.tasks.remove(index);
        let said = task.kill();
        if index == CHIEF {
            self.chief_said += &said;
        }
        let task = start(self.example, &self.flags, index);
        self.tasks.insert(index, task);
    }

    /// Kills the ps or the chief and starts it anew; how many steps were lost, when training goes on.
    pub(crate) fn lose(&mut self, index: usize) -> i64 {
        let made = self.chief_steps().len();
        let latest = self.latest_step();
        self.restart(index);
        self.wait_for_steps(20);
        let steps = self.chief_steps();
        let fall = steps[made.saturating_sub(1)..]
            .windows(2)
            .find(|pair| pair[1] < pair[0]);
        fall.map_or(0, |pair| latest.max(pair[0]) - (pair[1] - 1))
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
    pub(crate) fn wait_for_steps(&mut self, count: usize) {
        let wanted = self.chief_steps().len() + count;
        let mut patience = Patience::new();
        loop {
            let made = self.chief_steps().len();
            if made >= wanted || !self.tasks[CHIEF].is_running() {
                return;
            }
            patience.pause("the chief", made);
        }
    }

    /// The losses that a worker's process printed, by step.
    pub(crate) fn losses(&self, index: usize) -> Vec<(i64, f32)> {
        losses(&self.tasks[index].output())
    }

    /// Waits for the workers, which must end well.
    pub(crate) fn finish(self) {
        let mut tasks = self.tasks.into_iter();
        let ps = tasks.next();
        for worker in tasks {
            worker.finish();
        }
        drop(ps);
    }
}

fn start(example: &str, flags: &[String], index: usize) -> Running {
    let own = match index {
        PS => ["--job_name=ps".to_owned(), "--task_index=0".to_owned()],
        worker => [
            "--job_name=worker".to_owned(),
            format!("--task_index={}", worker - CHIEF),
        ],
    };
    let args: Vec<&str> = flags.iter().chain(&own).map(String::as_str).collect();
    Running::start(example, &args)
}

/// A checkpoint holds the line that the points lie on.
pub(crate) fn assert_learned(checkpoint: &str) {
    let g = Graph::new();
    let w = g.variable("w", &[4, 1]).build();
    let b = g.variable("b", &[1]).build();
    let saver = Saver::builder(&g).build().unwrap();
    let session = Session::new(&g).unwrap();
    saver.restore(&session, checkpoint).unwrap();
    let (w, b) = session.run((&w, &b)).unwrap();
    let (w, b) = (w.slice::<f32>().unwrap(), b.slice::<f32>().unwrap());
    for (found, hidden) in w.iter().chain(b).zip(WEIGHTS.iter().chain(&[BIAS])) {
        assert!((found - hidden).abs() < 1e-3, "{w:?} {b:?}");
    }
}
