//! What is said at the end: how well it went, where everything lies, what to try next.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::snapshot::Snapshot;
use super::view::seconds;

/// All that matters at the end.
pub(super) struct Ending<'a> {
    pub(super) now: &'a Snapshot,
    pub(super) dir: &'a Path,
    /// Whether training came to its last step.
    pub(super) finished: bool,
    /// Whether the cluster stays up.
    pub(super) kept: bool,
}

impl Ending<'_> {
    /// For programs.
    pub(super) fn json(&self) -> Value {
        json!({
            "event": if self.finished { "done" } else { "stopped" },
            "step": self.now.step,
            "accuracy": self.accuracy(),
            "seconds": self.now.elapsed.as_secs_f64(),
            "seconds_to_first_step": self.now.first_step_at.map(|at| at.as_secs_f64()),
            "dir": self.dir,
            "checkpoint": self.checkpoint(),
            "target": self.target(),
        })
    }

    /// For people.
    pub(super) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        match (self.finished, self.accuracy()) {
            (true, Some(accuracy)) => writeln!(
                out,
                "test accuracy {:.2} % at step {}, after {}",
                accuracy * 100.0,
                self.now.step,
                seconds(self.now.elapsed)
            )?,
            _ => writeln!(
                out,
                "stopped at step {}, after {}",
                self.now.step,
                seconds(self.now.elapsed)
            )?,
        }
        if let Some(at) = self.now.first_step_at {
            writeln!(
                out,
                "the first step was made after {:.2} s",
                at.as_secs_f64()
            )?;
        }
        let (dir, program) = (self.dir.display(), program());
        writeln!(out, "\ncheckpoints, events and logs are in {dir}")?;
        writeln!(out, "  tensorboard --logdir {dir}")?;
        if let Some(checkpoint) = self.checkpoint() {
            writeln!(out, "  {program} checkpoint list {checkpoint}")?;
        }
        writeln!(
            out,
            "  {program} demo --dir {dir} --steps {}",
            self.now.last_step * if self.finished { 2 } else { 1 }
        )?;
        if self.kept && self.finished {
            self.how_to_attach(out)
        } else {
            writeln!(
                out,
                "\na cluster that stays up, for TensorFlow's clients too:"
            )?;
            writeln!(out, "  {program} demo --keep")
        }
    }

    fn how_to_attach(&self, out: &mut dyn Write) -> io::Result<()> {
        let (target, program) = (self.target().unwrap_or_default(), program());
        writeln!(out, "\nthe cluster is still up; ask it")?;
        writeln!(out, "  {program} status {target}")?;
        writeln!(out, "  {program} devices {target}")?;
        if let Some(checkpoint) = self.checkpoint() {
            writeln!(
                out,
                "\nor attach TensorFlow, which finds the variables as they are on the parameter servers:

  import tensorflow.compat.v1 as tf
  tf.disable_eager_execution()
  tf.train.import_meta_graph('{checkpoint}.meta')
  with tf.Session('{target}') as session:
      print(session.run('global_step/Read/ReadVariableOp:0'))"
            )?;
        }
        writeln!(out, "\nCtrl-C stops it")
    }

    fn accuracy(&self) -> Option<f64> {
        self.now.accuracy.last().map(|point| point.value)
    }

    fn checkpoint(&self) -> Option<&str> {
        let (_, path) = self.now.checkpoint.as_ref()?;
        Some(path)
    }

    /// The chief's.
    fn target(&self) -> Option<String> {
        let mut tasks = self.now.tasks.iter();
        let chief = tasks.find(|task| task.job == "worker")?;
        Some(format!("grpc://{}", chief.address))
    }
}

/// How this program was called, so that lines can be pasted.
fn program() -> String {
    std::env::args()
        .next()
        .unwrap_or_else(|| "tensorfleet".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::message::Message;
    use crate::demo::snapshot::tests::cluster;

    fn text(finished: bool, kept: bool) -> String {
        let mut now = cluster(1, 1);
        let accuracy = 0.98765;
        now.heard(1, Message::Accuracy { step: 7, accuracy });
        let path = "some/dir/model.ckpt-7".to_owned();
        now.heard(1, Message::Saved { step: 7, path });
        let ending = Ending {
            now: &now,
            dir: Path::new("some/dir"),
            finished,
            kept,
        };
        let mut out = Vec::new();
        ending.text(&mut out).unwrap();
        assert_eq!(ending.json()["accuracy"], accuracy);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tells_what_to_try_next() {
        let check = |text: &str, words: &[&str]| {
            for word in words {
                assert!(text.contains(word), "'{word}' is not in: {text}");
            }
        };
        let done = text(true, false);
        check(
            &done,
            &["test accuracy 98.77 %", "tensorboard --logdir some/dir"],
        );
        check(&done, &["checkpoint list some/dir/model.ckpt-7", "--keep"]);
        let kept = text(true, true);
        check(&kept, &["tf.Session('grpc://localhost:2223')", "Ctrl-C"]);
        check(&kept, &["import_meta_graph('some/dir/model.ckpt-7.meta')"]);
        let stopped = text(false, true);
        check(
            &stopped,
            &["stopped at step 0", "demo --dir some/dir --steps 1000"],
        );
    }
}
