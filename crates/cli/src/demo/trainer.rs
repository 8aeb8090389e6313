//! [`Trainer`]: one worker's training, between-graph: every worker builds the same graph, with the variables on the
//! parameter servers and the rest on itself, and feeds it its own batches.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result};
use tensorfleet::input::{Dataset, Element};
use tensorfleet::train::{
    FileWriter, MonitoredSession, MonitoredTrainingSession, ReplicaDeviceSetter, StopAtStepHook,
};
use tensorfleet::{ClusterSpec, Graph, Output};

use super::data::Digits;
use super::hooks::{Examiner, Rate, Report, Saves};
use super::message::Message;
use super::model::Model;
use crate::args::TrainingArgs;

/// Over a whole run there are so many checkpoints.
const CHECKPOINTS: u64 = 10;
/// Over a whole run the network is tried so often.
const EXAMS: u64 = 20;
/// Over a whole run summaries are written so often.
const SUMMARIES: u64 = 50;
/// How long the end may take.
const GRACE: Duration = Duration::from_secs(2);

/// One worker.
pub(super) struct Trainer {
    pub(super) cluster: ClusterSpec,
    /// The first worker is the chief.
    pub(super) task: u32,
    pub(super) training: TrainingArgs,
    /// Where checkpoints and events go.
    pub(super) dir: PathBuf,
}

impl Trainer {
    /// Trains up to the last step through the server at `target`, and tells how it goes.
    pub(super) fn train(
        &self,
        target: &str,
        tell: &mut dyn FnMut(Message) -> Result<()>,
    ) -> Result<()> {
        let digits = Digits::load()?;
        let g = Graph::new();
        g.set_random_seed(self.training.seed as i64);
        let model = {
            // Variables to the parameter servers in turns, all else to this worker.
            let devices = ReplicaDeviceSetter::new()
                .cluster(&self.cluster)
                .worker_device(&format!("/job:worker/task:{}", self.task));
            let _scope = g.device_function(devices.build()?);
            Model::new(&g, self.training.steps)?
        };
        let (images, labels) = digits.training.with_moved().tensors()?;
        let count = labels.elements();
        let images_and_labels = Element::named([("images", images), ("labels", labels)]);
        let batches = Dataset::from_tensor_slices(images_and_labels)?
            .shuffle(count, self.training.seed.wrapping_add(self.task.into()))
            .repeat_forever()
            .batch(self.training.batch_size as usize, true)
            .prefetch(2);
        // Begins to shuffle now, while the session is opened.
        let mut batches = batches.iter();
        let (mut session, told) = self.session(&g, &model, &digits, target)?;
        let mut step = 0;
        while !session.should_stop() {
            let batch = batches.next().context("the digits have come to an end")??;
            let feeds = batch.feeds([("images", &model.images), ("labels", &model.labels)])?;
            session.run_fed(&feeds, &model.train)?;
            step = pass_on(&told, tell)?.unwrap_or(step);
        }
        session.close()?;
        step = pass_on(&told, tell)?.unwrap_or(step);
        tell(Message::Done { step })
    }

    /// The session, and what its hooks tell.
    fn session(
        &self,
        g: &Graph,
        model: &Model,
        digits: &Digits,
        target: &str,
    ) -> Result<(MonitoredSession, Receiver<Message>)> {
        let dir = self
            .dir
            .to_str()
            .context("the directory's name is no text")?;
        let (tell, told) = channel();
        let report = Report {
            tell: tell.clone(),
            step: model.global_step.clone(),
            loss: model.loss.clone(),
            rate: Rate::default(),
        };
        let chief = self.task == 0;
        let mut session = MonitoredTrainingSession::new(g)
            .target(target)
            .is_chief(chief)
            .checkpoint_dir(dir)
            .checkpoint_listener(Saves(tell.clone()))
            .save_checkpoint_steps(self.every(CHECKPOINTS) as i64)
            .save_summaries_steps(self.every(SUMMARIES) as i64)
            .log_step_count_steps(self.every(SUMMARIES) as i64)
            .hook(StopAtStepHook::at(self.training.steps as i64))
            .hook(report)
            .stop_grace(GRACE);
        if chief {
            let (images, labels) = digits.test.tensors()?;
            let fed = |to: &Output, it| (to.clone(), it);
            session = session.chief_only_hook(Examiner {
                tell,
                step: model.global_step.clone(),
                accuracy: model.accuracy.clone(),
                test: vec![fed(&model.images, images), fed(&model.labels, labels)],
                events: FileWriter::open(dir)?,
                every: self.every(EXAMS),
                next: 0,
            });
        }
        Ok((session.start()?, told))
    }

    /// The number of steps after which something is done that is done `times` over a whole run.
    fn every(&self, times: u64) -> u64 {
        (self.training.steps / times).max(1)
    }
}

/// Passes on what hooks told; the last step of it, if there was any.
fn pass_on(
    told: &Receiver<Message>,
    tell: &mut dyn FnMut(Message) -> Result<()>,
) -> Result<Option<u64>> {
    let mut last = None;
    for message in told.try_iter() {
        if let Message::Progress { step, .. } | Message::Accuracy { step, .. } = message {
            last = Some(step);
        }
        tell(message)?;
    }
    Ok(last)
}
