//! What `up` prints: the cluster when it is ready, then what becomes of its tasks.
//!
//! The cluster goes to stdout. What happens later goes to stderr, with the tasks' logs; with `--json` it goes to
//! stdout as well, one line an event.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use crate::args::UpArgs;
use crate::output;
use crate::tasks::{Ended, Plan, Task};

pub(super) struct Report<'a> {
    plan: &'a Plan,
    args: &'a UpArgs,
    out: &'a mut dyn Write,
}

impl<'a> Report<'a> {
    pub(super) fn new(plan: &'a Plan, args: &'a UpArgs, out: &'a mut dyn Write) -> Report<'a> {
        Report { plan, args, out }
    }

    /// All tasks serve.
    pub(super) fn ready(&mut self, pids: &[Option<u32>]) -> Result<()> {
        if self.args.json {
            let event = self.ready_event(pids);
            self.event(&event)?;
        } else {
            self.ready_text(pids)?;
            self.out.flush()?;
        }
        Ok(())
    }

    fn ready_event(&self, pids: &[Option<u32>]) -> Value {
        let tasks = self.plan.tasks.iter().zip(pids);
        let tasks: Vec<Value> = tasks
            .map(|(task, pid)| {
                json!({
                    "task": task.name(),
                    "target": task.target(),
                    "pid": pid,
                    "tf_config": self.plan.tf_config(task),
                    "flags": self.flags(task),
                })
            })
            .collect();
        let mut event = json!({
            "event": "ready",
            "cluster": self.plan.cluster.to_json(),
            "cluster_spec": self.cluster_spec(),
            "tasks": tasks,
        });
        if self.args.evaluator {
            event["evaluator"] = json!({"tf_config": self.plan.tf_config_of_evaluator()});
        }
        event
    }

    fn ready_text(&mut self, pids: &[Option<u32>]) -> Result<()> {
        let rows: Vec<Vec<String>> = self
            .plan
            .tasks
            .iter()
            .zip(pids)
            .map(|(task, pid)| {
                let pid = pid.map_or_else(String::new, |pid| format!("pid {pid}"));
                vec![task.name(), task.target(), pid]
            })
            .collect();
        output::table(self.out, &rows)?;
        writeln!(
            self.out,
            "\nin Python:\n  cluster = {}",
            self.cluster_spec()
        )?;
        writeln!(
            self.out,
            "\nfor programs that read TF_CONFIG, one line a task:"
        )?;
        for task in &self.plan.tasks {
            writeln!(self.out, "  TF_CONFIG='{}'", self.plan.tf_config(task))?;
        }
        if self.args.evaluator {
            let config = self.plan.tf_config_of_evaluator();
            writeln!(self.out, "  TF_CONFIG='{config}'")?;
        }
        writeln!(
            self.out,
            "\nfor programs that take flags:\n  {} --job_name=JOB --task_index=N",
            self.plan.cluster_flags().join(" ")
        )?;
        let jobs = self.plan.cluster.as_map().iter();
        let jobs: Vec<String> = jobs
            .map(|(job, tasks)| format!("{} {job}", tasks.len()))
            .collect();
        writeln!(
            self.out,
            "\ntensorfleet is up: {}; Ctrl-C stops it",
            jobs.join(", ")
        )?;
        Ok(())
    }

    fn cluster_spec(&self) -> String {
        format!("tf.train.{}", self.plan.cluster)
    }

    fn flags(&self, task: &Task) -> Vec<String> {
        let mut flags = self.plan.cluster_flags();
        flags.push(format!("--job_name={}", task.job));
        flags.push(format!("--task_index={}", task.index));
        flags
    }

    /// A task serves again.
    pub(super) fn restarted(&mut self, number: usize, pid: Option<u32>) -> Result<()> {
        let task = self.name(number);
        if self.args.json {
            return self.event(&json!({"event": "restarted", "task": task, "pid": pid}));
        }
        let pid = pid.map_or_else(String::new, |pid| format!(" as pid {pid}"));
        self.say(&format!("{task} serves again{pid}"));
        Ok(())
    }

    /// A task ended though nobody stops the cluster. Returns the story in words.
    pub(super) fn ended(&mut self, ended: &Ended) -> Result<String> {
        let task = self.name(ended.number);
        let story = self.story(&task, ended);
        if self.args.json {
            let again = ended.again.map(|again| again.as_secs_f64());
            self.event(&json!({
                "event": "ended",
                "task": task,
                "pid": ended.pid,
                "how": ended.how,
                "last_words": ended.last_words,
                "restart_in_seconds": again,
            }))?;
        } else if let Some(again) = ended.again {
            self.say(&format!("{story}; it is started again in {again:?}"));
        } else if ended.left {
            self.say(&story);
        }
        Ok(story)
    }

    fn story(&self, task: &str, ended: &Ended) -> String {
        let address = self.plan.tasks.get(ended.number);
        let address = address.map_or("its address", |task| task.address.as_str());
        let how = &ended.how;
        if ended.left {
            return format!("{task} was told to stop and has left; the other tasks go on");
        }
        let last_words = match &ended.last_words {
            Some(words) => format!(": {words}"),
            None => String::new(),
        };
        match ended.pid {
            None => format!("{task}: {how}"),
            Some(_) if !ended.was_ready => {
                format!("{task} did not come up at {address} ({how}){last_words}")
            }
            Some(pid) => format!("{task} at {address}, pid {pid}, died ({how}){last_words}"),
        }
    }

    /// The tasks were told to stop.
    pub(super) fn stopping(&mut self) -> Result<()> {
        if self.args.json {
            return self.event(&json!({"event": "stopping"}));
        }
        self.say("stopping; Ctrl-C again ends it at once");
        Ok(())
    }

    /// Tasks did not stop in time.
    pub(super) fn killing(&mut self) -> Result<()> {
        if self.args.json {
            return self.event(&json!({"event": "killing"}));
        }
        self.say("some tasks do not stop and are killed");
        Ok(())
    }

    /// What a task wrote, with its name before it.
    pub(super) fn log(&self, number: usize, line: &str) {
        let line = format!("[{}] {line}\n", self.name(number));
        // Without a stderr there is nobody to tell.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn name(&self, number: usize) -> String {
        self.plan
            .tasks
            .get(number)
            .map_or_else(String::new, Task::name)
    }

    fn event(&mut self, event: &Value) -> Result<()> {
        writeln!(self.out, "{event}")?;
        self.out.flush()?;
        Ok(())
    }

    fn say(&self, text: &str) {
        // Without a stderr there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "tensorfleet: {text}");
    }
}
