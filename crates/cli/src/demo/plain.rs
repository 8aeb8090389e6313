//! The demo where there is no terminal: lines for people, or JSON for programs.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};

use super::snapshot::{Point, Snapshot};
use super::view::seconds;

/// Between two lines of progress.
const PAUSE: Duration = Duration::from_secs(1);

/// Prints what is new.
pub(super) struct Plain {
    json: bool,
    events: usize,
    /// When progress was last told, and of which step.
    told: Option<(Duration, u64)>,
}

impl Plain {
    pub(super) fn new(json: bool) -> Plain {
        Plain {
            json,
            events: 0,
            told: None,
        }
    }

    /// All tasks serve.
    pub(super) fn ready(&self, now: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
        if self.json {
            let tasks: Vec<Value> = now
                .tasks
                .iter()
                .map(|task| {
                    let target = format!("grpc://{}", task.address);
                    json!({"task": task.name(), "target": target, "pid": task.pid})
                })
                .collect();
            writeln!(out, "{}", json!({"event": "ready", "tasks": tasks}))?;
        } else {
            for task in &now.tasks {
                let at = seconds(now.elapsed);
                writeln!(out, "{at:>8}  {} serves at {}", task.name(), task.address)?;
            }
        }
        out.flush()
    }

    /// Prints new events, and progress now and then.
    pub(super) fn update(&mut self, now: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
        for event in now.events.iter().skip(self.events) {
            let (at, text) = (event.at, &event.text);
            if self.json {
                let at = at.as_secs_f64();
                writeln!(out, "{}", json!({"event": "note", "at": at, "text": text}))?;
            } else {
                writeln!(out, "{:>8}  {text}", seconds(at))?;
            }
        }
        self.events = now.events.len();
        let due = match self.told {
            None => now.first_step_at.is_some(),
            Some((at, step)) => now.elapsed >= at + PAUSE && now.step != step,
        };
        if due {
            self.told = Some((now.elapsed, now.step));
            let line = if self.json {
                progress(now).to_string()
            } else {
                progress_text(now)
            };
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}

fn last(points: &[Point]) -> Option<f64> {
    points.last().map(|point| point.value)
}

fn progress(now: &Snapshot) -> Value {
    json!({
        "event": "progress",
        "at": now.elapsed.as_secs_f64(),
        "step": now.step,
        "last_step": now.last_step,
        "loss": last(&now.loss),
        "accuracy": last(&now.accuracy),
        "steps_per_second": now.steps_per_second(),
    })
}

fn progress_text(now: &Snapshot) -> String {
    let mut line = format!(
        "{:>8}  step {:>4} of {}",
        seconds(now.elapsed),
        now.step,
        now.last_step
    );
    if let Some(loss) = last(&now.loss) {
        line.push_str(&format!("  loss {loss:.4}"));
    }
    if let Some(accuracy) = last(&now.accuracy) {
        line.push_str(&format!("  test accuracy {:.2} %", accuracy * 100.0));
    }
    for task in &now.tasks {
        if let Some(rate) = task.steps_per_second {
            line.push_str(&format!("  {} {rate:.1} steps/s", task.name()));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::message::Message;
    use crate::demo::snapshot::Kind;
    use crate::demo::snapshot::tests::cluster;

    /// What is printed over a run of five seconds with ten reports a second.
    fn printed(json: bool) -> String {
        let mut plain = Plain::new(json);
        let mut now = cluster(1, 1);
        let mut out = Vec::new();
        plain.ready(&now, &mut out).unwrap();
        for step in 0..50 {
            now.pass(Duration::from_millis(step * 100));
            let progress = Message::Progress {
                step,
                loss: 1.0,
                steps_per_second: 10.0,
            };
            now.heard(1, progress);
            if step == 25 {
                now.note(Kind::Bad, "something happened".to_owned());
            }
            plain.update(&now, &mut out).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn people_get_a_line_a_second_and_every_event_once() {
        let text = printed(false);
        assert_eq!(text.matches("step ").count(), 5, "{text}");
        assert_eq!(text.matches("something happened").count(), 1, "{text}");
        assert!(text.contains("worker 0 serves at localhost:2223"), "{text}");
        assert!(
            text.contains("  step   10 of 1000  loss 1.0000  worker 0 10.0 steps/s"),
            "{text}"
        );
        assert!(!text.contains('\x1b'), "{text}");
    }

    #[test]
    fn programs_get_an_object_a_line() {
        let text = printed(true);
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["event"], "ready");
        assert_eq!(lines[0]["tasks"][1]["target"], "grpc://localhost:2223");
        assert_eq!(lines[1]["event"], "progress");
        assert_eq!(
            lines
                .iter()
                .filter(|line| line["event"] == "progress")
                .count(),
            5
        );
        assert!(
            lines
                .iter()
                .any(|line| line["text"] == "something happened")
        );
    }
}
