//! [`Snapshot`]: all that the demo knows about its cluster at one moment, which is all that it shows.
//!
//! What happens comes in through the methods here; [`super::view`] and [`super::plain`] only look.

use std::time::Duration;

use super::message::Message;
use crate::tasks::{Ended, Plan};

/// Past this many points a curve keeps every other one: more than any terminal has columns.
const POINTS_MOST: usize = 4096;

/// A worker that tells nothing for so long does not train.
const SILENCE: Duration = Duration::from_secs(5);

/// The demo at one moment.
pub(super) struct Snapshot {
    pub(super) tasks: Vec<Task>,
    /// The global step, as far as anybody has told.
    pub(super) step: u64,
    /// The global step that training ends with.
    pub(super) last_step: u64,
    /// The loss of batches, in the order they were told.
    pub(super) loss: Vec<Point>,
    /// The share of test images that are recognised.
    pub(super) accuracy: Vec<Point>,
    /// Since the demo began.
    pub(super) elapsed: Duration,
    /// When the first progress was told.
    pub(super) first_step_at: Option<Duration>,
    /// The last checkpoint: its step and its prefix.
    pub(super) checkpoint: Option<(u64, String)>,
    pub(super) events: Vec<Event>,
}

/// One task.
pub(super) struct Task {
    pub(super) job: String,
    pub(super) index: u32,
    pub(super) address: String,
    pub(super) state: State,
    pub(super) pid: Option<u32>,
    /// How often it was started again.
    pub(super) restarts: u32,
    /// Such as `cpu:0`.
    pub(super) devices: Vec<String>,
    /// Of a worker that trains.
    pub(super) steps_per_second: Option<f64>,
    /// When a worker last told anything.
    heard_at: Duration,
    /// Whether a worker had a session before.
    trained: bool,
}

/// What a task does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Its process begins.
    Starting,
    /// It can be reached.
    Serving,
    /// It is a worker and makes steps.
    Training,
    /// It is a worker that makes no steps, because it lost a part of its cluster.
    Waiting,
    /// It is a worker that has made its last step.
    Done,
    /// Its process is dead.
    Killed,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Serving => "serving",
            State::Training => "training",
            State::Waiting => "waiting",
            State::Done => "done",
            State::Killed => "killed",
        }
    }
}

/// A value at a global step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    pub(super) step: u64,
    pub(super) value: f64,
}

/// Something worth a line.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Event {
    pub(super) at: Duration,
    pub(super) kind: Kind,
    pub(super) text: String,
}

/// Whether an event is good news.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Note,
    Good,
    Bad,
}

impl Task {
    /// Such as `ps 0`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.job, self.index)
    }

    fn device_prefix(&self) -> String {
        format!("/job:{}/replica:0/task:{}/device:", self.job, self.index)
    }
}

impl Snapshot {
    /// Nothing runs yet.
    pub(super) fn new(plan: &Plan, last_step: u64) -> Snapshot {
        let tasks = plan.tasks.iter().map(|task| Task {
            job: task.job.clone(),
            index: task.index,
            address: task.address.clone(),
            state: State::Starting,
            pid: None,
            restarts: 0,
            devices: Vec::new(),
            steps_per_second: None,
            heard_at: Duration::ZERO,
            trained: false,
        });
        Snapshot {
            tasks: tasks.collect(),
            step: 0,
            last_step,
            loss: Vec::new(),
            accuracy: Vec::new(),
            elapsed: Duration::ZERO,
            first_step_at: None,
            checkpoint: None,
            events: Vec::new(),
        }
    }

    /// So much time has passed.
    pub(super) fn pass(&mut self, elapsed: Duration) {
        self.elapsed = elapsed;
        // Without a parameter server nobody can make a step.
        let lost = |task: &Task| task.job == "ps" && task.state == State::Killed;
        let lost = self.tasks.iter().any(lost);
        for task in &mut self.tasks {
            let silent = elapsed > task.heard_at + SILENCE;
            if task.state == State::Training && (lost || silent) {
                task.state = State::Waiting;
                task.steps_per_second = None;
            }
        }
    }

    /// A task's process serves.
    pub(super) fn ready(&mut self, number: usize, pid: Option<u32>) {
        let Some(task) = self.tasks.get_mut(number) else {
            return;
        };
        let again = task.state == State::Killed;
        task.state = State::Serving;
        task.pid = pid;
        if again {
            task.restarts += 1;
            let text = format!("{} serves again", task.name());
            self.note(Kind::Good, text);
        }
    }

    /// A task's process is gone.
    pub(super) fn ended(&mut self, ended: &Ended) {
        let Some(task) = self.tasks.get_mut(ended.number) else {
            return;
        };
        task.state = State::Killed;
        task.pid = None;
        task.steps_per_second = None;
        let text = format!("{} is dead: {}", task.name(), ended.how);
        self.note(Kind::Bad, text);
    }

    /// A worker told something.
    pub(super) fn heard(&mut self, number: usize, message: Message) {
        let Some(task) = self.tasks.get_mut(number) else {
            return;
        };
        let name = task.name();
        task.heard_at = self.elapsed;
        match message {
            Message::Devices { devices } => self.place_devices(&devices),
            Message::Session { step } => {
                task.state = State::Training;
                self.step = step;
                let again = std::mem::replace(&mut task.trained, true);
                let (kind, text) = match (step, again) {
                    (0, false) => (Kind::Note, "begins to train".to_owned()),
                    (step, false) => (Kind::Note, format!("begins to train at step {step}")),
                    (step, true) => (Kind::Good, format!("is back at step {step}")),
                };
                self.note(kind, format!("{name} {text}"));
            }
            Message::Progress {
                step,
                loss,
                steps_per_second,
            } => {
                task.state = State::Training;
                task.steps_per_second = Some(steps_per_second);
                // Another worker may have told of a later step already.
                self.step = self.step.max(step);
                add(&mut self.loss, Point { step, value: loss });
                self.first_step_at.get_or_insert(self.elapsed);
            }
            Message::Accuracy { step, accuracy } => {
                let value = accuracy;
                add(&mut self.accuracy, Point { step, value });
            }
            Message::Saved { step, path } => {
                self.checkpoint = Some((step, path));
                self.note(Kind::Note, format!("{name} saved step {step}"));
            }
            Message::Done { step } => {
                task.state = State::Done;
                task.steps_per_second = None;
                self.step = self.step.max(step);
            }
        }
    }

    /// Adds an event, now.
    pub(super) fn note(&mut self, kind: Kind, text: String) {
        let at = self.elapsed;
        self.events.push(Event { at, kind, text });
    }

    /// Global steps in a second, of all workers together.
    pub(super) fn steps_per_second(&self) -> f64 {
        let rates = self.tasks.iter().filter_map(|task| task.steps_per_second);
        // Not `sum`, to which nothing is -0.
        rates.fold(0.0, |sum, rate| sum + rate)
    }

    fn place_devices(&mut self, devices: &[String]) {
        for task in &mut self.tasks {
            let prefix = task.device_prefix();
            let own = devices.iter().filter_map(|name| name.strip_prefix(&prefix));
            task.devices = own.map(str::to_lowercase).collect();
        }
    }
}

fn add(points: &mut Vec<Point>, point: Point) {
    points.push(point);
    if points.len() > POINTS_MOST {
        let mut number = 0;
        points.retain(|_| {
            number += 1;
            number % 2 == 0
        });
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A cluster of so many tasks, where nothing runs yet.
    pub(in crate::demo) fn cluster(ps: u32, workers: u32) -> Snapshot {
        let jobs = vec![("ps".to_owned(), ps), ("worker".to_owned(), workers)];
        let ports: Vec<u16> = (2222..).take((ps + workers) as usize).collect();
        Snapshot::new(&Plan::new("localhost", jobs, &ports).unwrap(), 1000)
    }

    fn death(number: usize) -> Ended {
        Ended {
            number,
            pid: Some(1),
            was_ready: true,
            how: "signal: 9 (SIGKILL)".to_owned(),
            by_signal: true,
            last_words: None,
            left: false,
            again: Some(Duration::ZERO),
        }
    }

    #[test]
    fn tasks_go_through_their_states() {
        let mut now = cluster(1, 1);
        assert_eq!(now.tasks[0].state, State::Starting);
        now.ready(0, Some(7));
        now.ready(1, Some(8));
        assert_eq!(now.tasks[0].state, State::Serving);
        assert!(now.events.is_empty());
        now.heard(1, Message::Session { step: 0 });
        assert_eq!(now.tasks[1].state, State::Training);
        now.heard(1, progress(1));
        now.ended(&death(0));
        assert_eq!(now.tasks[0].state, State::Killed);
        now.pass(Duration::from_secs(1));
        assert_eq!(now.tasks[1].state, State::Waiting);
        now.ready(0, Some(9));
        assert_eq!(now.tasks[0].restarts, 1);
        now.heard(1, Message::Session { step: 12 });
        assert_eq!(now.tasks[1].state, State::Training);
        let texts: Vec<&str> = now.events.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "worker 0 begins to train",
                "ps 0 is dead: signal: 9 (SIGKILL)",
                "ps 0 serves again",
                "worker 0 is back at step 12"
            ]
        );
    }

    #[test]
    fn silent_workers_do_not_train() {
        let mut now = cluster(1, 1);
        now.heard(1, progress(1));
        now.pass(SILENCE);
        assert_eq!(now.tasks[1].state, State::Training);
        now.pass(SILENCE * 2);
        assert_eq!(now.tasks[1].state, State::Waiting);
        assert_eq!(now.steps_per_second(), 0.0);
        now.heard(1, progress(2));
        assert_eq!(now.tasks[1].state, State::Training);
    }

    fn progress(step: u64) -> Message {
        Message::Progress {
            step,
            loss: 2.0,
            steps_per_second: 50.0,
        }
    }

    #[test]
    fn devices_go_to_their_tasks() {
        let mut now = cluster(1, 11);
        let devices = [
            "/job:ps/replica:0/task:0/device:CPU:0",
            "/job:worker/replica:0/task:1/device:CPU:0",
            "/job:worker/replica:0/task:1/device:CPU:1",
            "/job:worker/replica:0/task:10/device:CPU:0",
        ];
        let devices = devices.map(str::to_owned).to_vec();
        now.heard(1, Message::Devices { devices });
        assert_eq!(now.tasks[0].devices, ["cpu:0"]);
        assert!(now.tasks[1].devices.is_empty());
        assert_eq!(now.tasks[2].devices, ["cpu:0", "cpu:1"]);
        assert_eq!(now.tasks[11].devices, ["cpu:0"]);
    }

    #[test]
    fn curves_stay_short_and_keep_their_last_point() {
        let mut points = Vec::new();
        for step in 0..100_000 {
            add(&mut points, Point { step, value: 0.0 });
        }
        assert!(points.len() <= POINTS_MOST);
        assert_eq!(points.last().unwrap().step, 99_999);
        assert!(points.is_sorted_by_key(|point| point.step));
    }

    #[test]
    fn rates_add_up() {
        let mut now = cluster(1, 2);
        for number in [1, 2] {
            now.pass(Duration::from_millis(number as u64 * 100));
            now.heard(number, progress(10));
        }
        assert_eq!(now.steps_per_second(), 100.0);
        assert_eq!(now.first_step_at, Some(Duration::from_millis(100)));
        assert_eq!(now.loss.len(), 2);
    }
}
