//! [`Reached`]: a directory whose checkpoint is as far as training shall go.

use std::io::{self, Write};
use std::path::Path;

use serde_json::json;
use tensorfleet_checkpoint::bundle::BundleReader;
use tensorfleet_checkpoint::state::latest_checkpoint;

/// The variable that counts the steps.
const GLOBAL_STEP: &[u8] = b"global_step";

/// The checkpoint there is.
pub(super) struct Reached<'a> {
    dir: &'a Path,
    checkpoint: String,
    step: u64,
    /// Where training shall end.
    last_step: u64,
}

impl<'a> Reached<'a> {
    /// Nothing if there is something to train. What cannot be read is for the trainers to complain about.
    pub(super) fn find(dir: &'a Path, last_step: u64) -> Option<Reached<'a>> {
        let checkpoint = latest_checkpoint(dir.to_str()?).ok()??;
        let step = BundleReader::open(&checkpoint).ok()?.read(GLOBAL_STEP);
        let step = u64::try_from(step.ok()?.to_scalar::<i64>().ok()?).ok()?;
        (step >= last_step).then_some(Reached {
            dir,
            checkpoint,
            step,
            last_step,
        })
    }

    /// What it means, and what to do.
    pub(super) fn text(&self) -> String {
        format!(
            "nothing to train: {} is at step {} already, and --steps {} is where training ends; --steps {} goes on \
             from there, another --dir begins anew",
            self.dir.display(),
            self.step,
            self.last_step,
            self.step.saturating_mul(2)
        )
    }

    /// The end of a demo that has nothing to do.
    pub(super) fn tell(&self, as_json: bool, out: &mut dyn Write) -> io::Result<()> {
        if !as_json {
            return writeln!(out, "{}", self.text());
        }
        let done = json!({
            "event": "done",
            "text": self.text(),
            "step": self.step,
            "dir": self.dir,
            "checkpoint": self.checkpoint,
        });
        writeln!(out, "{done}")
    }
}
