//! What happens beside the steps of a demo's worker: it tells how it goes, and the chief tries the network.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tensorfleet::train::{
    CheckpointListener, Coordinator, FileWriter, RunArgs, RunContext, RunValues, SessionRunHook,
};
use tensorfleet::{Output, Result, Session, Tensor, Variable};

use super::message::Message;

/// Between two reports.
const PAUSE: Duration = Duration::from_millis(100);
/// A rate is measured over so many reports.
const REPORTS: usize = 10;

/// Tells step, loss and speed.
pub(super) struct Report {
    pub(super) tell: Sender<Message>,
    pub(super) step: Variable,
    pub(super) loss: Output,
    pub(super) rate: Rate,
}

impl SessionRunHook for Report {
    fn after_create_session(&mut self, session: &Session, _: &Coordinator) -> Result<()> {
        let step = count(&session.run(&self.step)?)?;
        self.rate = Rate::default();
        tell(&self.tell, Message::Session { step });
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(RunArgs::fetch((&self.step, &self.loss)))
    }

    fn after_run(&mut self, _: &mut RunContext<'_>, values: &RunValues<'_>) -> Result<()> {
        if let Some(steps_per_second) = self.rate.count(Instant::now()) {
            let (step, loss) = values.of((&self.step, &self.loss))?;
            let message = Message::Progress {
                step: count(&step)?,
                loss: loss.to_scalar::<f32>()?.into(),
                steps_per_second,
            };
            tell(&self.tell, message);
        }
        Ok(())
    }
}

/// How fast steps follow each other.
#[derive(Default)]
pub(super) struct Rate {
    steps: u64,
    /// When there was a report, and how many steps there were then; the oldest first.
    reports: VecDeque<(Instant, u64)>,
}

impl Rate {
    /// Counts a step. The steps per second, if it is time for a report.
    fn count(&mut self, now: Instant) -> Option<f64> {
        self.steps += 1;
        let last = self.reports.back();
        if last.is_some_and(|(at, _)| now.duration_since(*at) < PAUSE) {
            return None;
        }
        let rate = self.reports.front().map_or(0.0, |(at, steps)| {
            (self.steps - steps) as f64 / now.duration_since(*at).as_secs_f64()
        });
        self.reports.push_back((now, self.steps));
        if self.reports.len() > REPORTS {
            self.reports.pop_front();
        }
        Some(rate)
    }
}

/// Tries the network on the test images now and then. The chief's.
pub(super) struct Examiner {
    pub(super) tell: Sender<Message>,
    pub(super) step: Variable,
    pub(super) accuracy: Output,
    /// What to feed.
    pub(super) test: Vec<(Output, Tensor)>,
    pub(super) events: FileWriter,
    /// Between two tries.
    pub(super) every: u64,
    /// The global step of the next one.
    pub(super) next: u64,
}

impl Examiner {
    fn examine(&mut self, session: &Session) -> Result<()> {
        let feeds: Vec<(&Output, Tensor)> =
            self.test.iter().map(|(to, it)| (to, it.clone())).collect();
        let (step, accuracy) = session.run_fed(&feeds, (&self.step, &self.accuracy))?;
        let (step, accuracy) = (count(&step)?, accuracy.to_scalar::<f32>()?);
        self.events
            .add_scalar("test_accuracy", accuracy, step as i64)?;
        self.next = step + self.every;
        let accuracy = accuracy.into();
        tell(&self.tell, Message::Accuracy { step, accuracy });
        Ok(())
    }
}

impl SessionRunHook for Examiner {
    fn after_create_session(&mut self, session: &Session, _: &Coordinator) -> Result<()> {
        // After a recovery steps may be made again.
        self.next = count(&session.run(&self.step)?)? + self.every;
        let devices = session.list_devices()?.into_iter();
        let devices = devices.map(|device| device.name).collect();
        tell(&self.tell, Message::Devices { devices });
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(RunArgs::fetch(&self.step))
    }

    fn after_run(&mut self, context: &mut RunContext<'_>, values: &RunValues<'_>) -> Result<()> {
        if count(&values.of(&self.step)?)? >= self.next {
            self.examine(context.session())?;
        }
        Ok(())
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        self.examine(session)
    }
}

/// Tells of checkpoints.
pub(super) struct Saves(pub(super) Sender<Message>);

impl CheckpointListener for Saves {
    fn after_save(&mut self, _: &Session, step: i64, path: &str) -> Result<bool> {
        let (step, path) = (u64::try_from(step).unwrap_or(0), path.to_owned());
        tell(&self.0, Message::Saved { step, path });
        Ok(false)
    }
}

fn tell(listener: &Sender<Message>, message: Message) {
    // Who does not listen any more is about to end.
    let _ = listener.send(message);
}

fn count(step: &Tensor) -> Result<u64> {
    Ok(u64::try_from(step.to_scalar::<i64>()?).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_last_second() {
        let begin = Instant::now();
        let mut rate = Rate::default();
        assert_eq!(
            rate.count(begin),
            Some(0.0),
            "the first step is told at once"
        );
        let mut told = Vec::new();
        // 20 steps a second, then 100.
        let mut now = begin;
        for step in 0..300 {
            now += Duration::from_millis(if step < 100 { 50 } else { 10 });
            told.extend(rate.count(now));
        }
        assert!((told[40] - 20.0).abs() < 1.0, "{told:?}");
        let last = told.last().unwrap();
        assert!((last - 100.0).abs() < 1.0, "{told:?}");
        assert!(told.len() <= 71, "{}", told.len());
    }
}
