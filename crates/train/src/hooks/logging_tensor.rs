//! [`LoggingTensorHook`]: logs the values of tensors.

use std::time::Duration;

use tensorfleet_client::{Output, Session, Tensor};
use tensorfleet_status::Result;

use super::{RunArgs, RunContext, RunValues, SecondOrStepTimer, SessionRunHook};

type Formatter = Box<dyn Fn(&[(String, Tensor)]) -> String + Send>;

/// Logs tensors every so many local runs, every so much time, or at the end.
///
/// ```
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::{LoggingTensorHook, MonitoredTrainingSession};
///
/// let g = Graph::new();
/// let loss = g.constant(0.25f32);
/// let hook = LoggingTensorHook::new(&[("loss", &loss)]).every_steps(100)?.at_end();
/// let mut session = MonitoredTrainingSession::new(&g).hook(hook).start()?;
/// session.run(&loss)?; // logs "loss = 0.25" to `tracing`
/// session.close()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct LoggingTensorHook {
    tensors: Vec<(String, Output)>,
    timer: Option<SecondOrStepTimer>,
    at_end: bool,
    formatter: Option<Formatter>,
    runs: i64,
    asked: bool,
}

impl LoggingTensorHook {
    /// These tensors, each with a label.
    pub fn new(tensors: &[(&str, &Output)]) -> LoggingTensorHook {
        let label = |(label, tensor): &(&str, &Output)| ((*label).to_owned(), (*tensor).clone());
        LoggingTensorHook {
            tensors: tensors.iter().map(label).collect(),
            timer: None,
            at_end: false,
            formatter: None,
            runs: 0,
            asked: false,
        }
    }

    /// Every so many runs of this session.
    pub fn every_steps(mut self, steps: i64) -> Result<Self> {
        self.timer = Some(SecondOrStepTimer::every_steps(steps)?);
        Ok(self)
    }

    /// Every so much time.
    #[must_use]
    pub fn every(mut self, time: Duration) -> Self {
        self.timer = Some(SecondOrStepTimer::every(time));
        self
    }

    /// At the end too.
    #[must_use]
    pub fn at_end(mut self) -> Self {
        self.at_end = true;
        self
    }

    /// How the line is written.
    #[must_use]
    pub fn formatter(
        mut self,
        formatter: impl Fn(&[(String, Tensor)]) -> String + Send + 'static,
    ) -> Self {
        self.formatter = Some(Box::new(formatter));
        self
    }

    fn log(&self, values: Vec<Tensor>) {
        let labels = self.tensors.iter().map(|(label, _)| label.clone());
        let values: Vec<(String, Tensor)> = labels.zip(values).collect();
        let line = match &self.formatter {
            Some(formatter) => formatter(&values),
            None => {
                let parts = values
                    .iter()
                    .map(|(label, value)| format!("{label} = {}", shown(value)));
                parts.collect::<Vec<_>>().join(", ")
            }
        };
        tracing::info!("{line}");
    }

    fn fetches(&self) -> Vec<&Output> {
        self.tensors.iter().map(|(_, tensor)| tensor).collect()
    }
}

impl SessionRunHook for LoggingTensorHook {
    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        let timer = self.timer.as_ref();
        self.asked = timer.is_some_and(|timer| timer.should_trigger(self.runs));
        Ok(if self.asked {
            RunArgs::fetch(self.fetches())
        } else {
            RunArgs::default()
        })
    }

    fn after_run(&mut self, _: &mut RunContext<'_>, values: &RunValues<'_>) -> Result<()> {
        if self.asked {
            if let Some(timer) = &mut self.timer {
                timer.triggered(self.runs);
            }
            self.log(values.tensors().to_vec());
        }
        self.runs += 1;
        Ok(())
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        if self.at_end {
            self.log(session.run(self.fetches())?);
        }
        Ok(())
    }
}

/// The first few elements.
fn shown(value: &Tensor) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = tensorfleet_tensor::summarize(value, 6, &mut text);
    text
}
