//! [`ProfilerHook`]: records the timeline of a step now and then.

use std::time::Duration;

use tensorfleet_client::Graph;
use tensorfleet_proto::StepStats;
use tensorfleet_status::Result;

use super::{RunArgs, RunContext, RunValues, SecondOrStepTimer, SessionRunHook, StepReader};

/// Writes `timeline-<step>.json`, which Chrome's trace viewer and Perfetto show.
///
/// ```
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::{MonitoredTrainingSession, ProfilerHook, get_or_create_global_step};
///
/// let dir = tempfile::tempdir().unwrap();
/// let g = Graph::new();
/// let count = get_or_create_global_step(&g)?.assign_add(&g.constant(1i64));
/// let hook = ProfilerHook::every_steps(dir.path().to_str().unwrap(), 100)?;
/// let mut session = MonitoredTrainingSession::new(&g).hook(hook).start()?;
/// for _ in 0..3 {
///     session.run(&count)?;
/// }
/// session.close()?;
/// assert!(std::fs::read_dir(dir.path()).unwrap().count() > 0);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct ProfilerHook {
    timer: SecondOrStepTimer,
    dir: String,
    step: StepReader,
    next_step: Option<i64>,
    asked: bool,
}

impl ProfilerHook {
    /// Every so many steps, into this directory.
    pub fn every_steps(dir: &str, steps: i64) -> Result<ProfilerHook> {
        Ok(ProfilerHook::with(
            dir,
            SecondOrStepTimer::every_steps(steps)?,
        ))
    }

    /// Every so much time.
    pub fn every(dir: &str, time: Duration) -> ProfilerHook {
        ProfilerHook::with(dir, SecondOrStepTimer::every(time))
    }

    fn with(dir: &str, timer: SecondOrStepTimer) -> ProfilerHook {
        ProfilerHook {
            timer,
            dir: dir.to_owned(),
            step: StepReader::default(),
            next_step: None,
            asked: false,
        }
    }
}

impl SessionRunHook for ProfilerHook {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.step.begin(graph)?;
        tensorfleet_checkpoint::fs::for_path(&self.dir)?.create_dir_all(&self.dir)
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        // The first run compiles; its timeline would mislead.
        self.asked = self
            .next_step
            .is_some_and(|step| self.timer.should_trigger(step));
        let args = self.step.fetch()?;
        Ok(if self.asked { args.trace() } else { args })
    }

    fn after_run(&mut self, _: &mut RunContext<'_>, values: &RunValues<'_>) -> Result<()> {
        let step = StepReader::fetched(values)?;
        self.next_step = Some(step + 1);
        if self.asked {
            self.timer.triggered(step);
            if let Some(stats) = &values.metadata().step_stats {
                let path =
                    tensorfleet_checkpoint::fs::join(&self.dir, &format!("timeline-{step}.json"));
                let fs = tensorfleet_checkpoint::fs::for_path(&path)?;
                fs.write_atomic(&path, chrome_trace(stats).as_bytes())?;
            }
        }
        Ok(())
    }
}

/// The trace event format: one row per device, one bar per node.
fn chrome_trace(stats: &StepStats) -> String {
    let mut events = Vec::new();
    for (pid, device) in stats.dev_stats.iter().enumerate() {
        events.push(format!(
            r#"{{"name":"process_name","ph":"M","pid":{pid},"args":{{"name":{}}}}}"#,
            quoted(&device.device)
        ));
        for node in &device.node_stats {
            events.push(format!(
                r#"{{"name":{},"cat":"Op","ph":"X","pid":{pid},"tid":{},"ts":{},"dur":{}}}"#,
                quoted(&node.node_name),
                node.thread_id,
                node.all_start_micros,
                node.all_end_rel_micros.max(1)
            ));
        }
    }
    format!("{{\"traceEvents\":[{}]}}\n", events.join(",\n"))
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
