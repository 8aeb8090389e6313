//! One step of an executable: feeds in, all parts at once, fetches out.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tensorfleet_kernel::{CallFrame, CancelToken};
use tensorfleet_passes::Signature;
use tensorfleet_proto as pb;
use tensorfleet_status::{Code, Result, Status, deadline_exceeded, internal, invalid_argument};
use tensorfleet_tensor::Tensor;
use tokio::task::JoinSet;

use super::awaited::Awaited;
use super::cost;
use super::deadline::Deadline;
use super::executable::Executable;
use super::remote_part::RemotePart;
use super::session::MasterSession;
use crate::cancelled::cancelled;
use crate::task::TaskName;
use crate::worker::step::StepStats;

/// So long before its client gives up a step is ended, so that the client hears what was awaited.
const STEP_AHEAD: Duration = Duration::from_millis(50);

/// The parts of other tasks.
pub(super) type Parts = JoinSet<(TaskName, Result<pb::RunMetadata>)>;

/// What a step gives back.
struct Outcome {
    tensors: Vec<Tensor>,
    metadata: pb::RunMetadata,
}

impl MasterSession {
    /// Answers RunStep.
    pub(super) async fn run_step(
        &self,
        request: pb::RunStepRequest,
        time: Option<Duration>,
    ) -> Result<pb::RunStepResponse> {
        let _running = self.begin()?;
        let options = request.options.unwrap_or_default();
        let mut names = Vec::with_capacity(request.feed.len());
        let mut feeds = Vec::with_capacity(request.feed.len());
        for feed in request.feed {
            let tensor = feed.tensor.unwrap_or_default();
            feeds.push(
                Tensor::from_proto(&tensor)
                    .map_err(|error| error.context(format_args!("feed {}", feed.name)))?,
            );
            names.push(feed.name);
        }
        if !request.partial_run_handle.is_empty() {
            let tensor = self
                .partial_step(
                    &request.partial_run_handle,
                    names,
                    feeds,
                    request.fetch,
                    &options,
                )
                .await?;
            return Ok(pb::RunStepResponse {
                tensor,
                metadata: Some(pb::RunMetadata::default()),
                ..pb::RunStepResponse::default()
            });
        }
        let (names, feeds) = sorted_feeds(names, feeds);
        let deadline = self.deadline(&options, time);
        let executable = self.executable(Signature {
            feeds: names,
            fetches: sorted(request.fetch.clone()),
            targets: sorted(request.target),
        });
        let executable = tokio::select! {
            biased;
            built = executable => built?,
            () = deadline.passed() => {
                return Err(deadline_exceeded!("Deadline Exceeded: the graph could not be prepared to run in time"));
            }
        };
        let outcome = self
            .run_executable(&executable, feeds, &options, &deadline)
            .await?;
        Ok(pb::RunStepResponse {
            tensor: in_order(
                request.fetch,
                &executable.signature.fetches,
                &outcome.tensors,
            )?,
            metadata: Some(outcome.metadata),
            ..pb::RunStepResponse::default()
        })
    }

    /// Answers RunCallable.
    pub(super) async fn run_callable(
        &self,
        handle: i64,
        feeds: Vec<pb::TensorProto>,
        time: Option<Duration>,
    ) -> Result<pb::RunCallableResponse> {
        let _running = self.begin()?;
        let executable = self.callable(handle)?;
        let wanted = executable.feed_types.len();
        if feeds.len() != wanted {
            return Err(invalid_argument!(
                "Expected {wanted} feed tensors, but got {}",
                feeds.len()
            ));
        }
        let feeds: Result<Vec<Tensor>> = feeds.iter().map(Tensor::from_proto).collect();
        let options = executable.run_options.clone();
        let deadline = self.deadline(&options, time);
        let outcome = self
            .run_executable(&executable, feeds?, &options, &deadline)
            .await?;
        let fetch: Result<Vec<_>> = outcome.tensors.iter().map(Tensor::to_proto).collect();
        Ok(pb::RunCallableResponse {
            fetch: fetch?,
            metadata: Some(outcome.metadata),
        })
    }

    async fn run_executable(
        &self,
        executable: &Executable,
        feeds: Vec<Tensor>,
        options: &pb::RunOptions,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        check_feeds(executable, &feeds)?;
        let run = executable.runs.fetch_add(1, Ordering::Relaxed);
        let models_cost = cost::is_due(&self.config, run);
        let step = Step {
            id: self.worker.env().ids.step_id(),
            record: models_cost || options.trace_level > 0,
            graphs: models_cost || options.output_partition_graphs,
            cancel: CancelToken::new(),
        };
        let _guard = self.cancel.on_cancel({
            let cancel = step.cancel.clone();
            move |reason| cancel.cancel(reason.clone())
        });
        // Before the run, so that it is dropped after it: a client that goes away leaves nothing either.
        let mut clean_up = CleanUp {
            session: self,
            executable,
            step_id: step.id,
            went_well: false,
        };
        let frame = Arc::new(CallFrame::new(feeds, executable.signature.fetches.len()));
        let result = self
            .run_parts(executable, &step, frame.clone(), deadline)
            .await;
        clean_up.went_well = result.is_ok();
        drop(clean_up);
        // Whatever the parts say about it: a closed session ended the step.
        self.cancel.check()?;
        let mut metadata = result?;
        if models_cost {
            let stats = metadata.step_stats.take().unwrap_or_default();
            metadata.cost_graph = Some(cost::cost_graph(&metadata.partition_graphs, &stats));
            metadata.step_stats = (options.trace_level > 0).then_some(stats);
            if !options.output_partition_graphs {
                metadata.partition_graphs.clear();
            }
        }
        let mut tensors = Vec::with_capacity(executable.signature.fetches.len());
        for (name, tensor) in executable.signature.fetches.iter().zip(frame.take_rets()) {
            // Its node did not run: it is in a branch that was not taken.
            tensors.push(tensor.ok_or_else(|| {
                internal!(
                    "Failed to fetch outputs for step {}. (Original error message: The tensor returned for {} was not valid.)",
                    step.id,
                    self.client_key(name)
                )
            })?);
        }
        Ok(Outcome { tensors, metadata })
    }

    /// Until when a step is worth its while.
    fn deadline(&self, options: &pb::RunOptions, time: Option<Duration>) -> Deadline {
        let clock = &self.worker.env().clock;
        Deadline::new(clock, time, self.timeout(options), STEP_AHEAD)
    }

    /// Runs all parts to their end; the first root error cancels the others and is what the client sees.
    async fn run_parts(
        &self,
        executable: &Executable,
        step: &Step,
        frame: Arc<CallFrame>,
        deadline: &Deadline,
    ) -> Result<pb::RunMetadata> {
        // A part whose node fails throws its own switch, which must not look like a client that gives up.
        let (part_cancel, _passed_on) = if executable.remote.is_empty() {
            (step.cancel.clone(), None)
        } else {
            let part_cancel = CancelToken::new();
            let passed_on = step.cancel.on_cancel({
                let part_cancel = part_cancel.clone();
                move |reason| part_cancel.cancel(reason.clone())
            });
            (part_cancel, Some(passed_on))
        };
        deadline.bind(&part_cancel);
        // The others first: they need longer to begin.
        let mut remote = self.start_remote(executable, step);
        let own = executable.local.clone();
        let mut local = self
            .worker
            .begin(own, step.id, frame, part_cancel, step.record)?;
        let mut awaited = Awaited::new(self, executable, step.id);
        let mut given_up = pin!(cancelled(&step.cancel));
        let mut late = pin!(deadline.passed());
        let (mut metadata, mut failed) = (pb::RunMetadata::default(), None::<Status>);
        while awaited.local || !remote.is_empty() {
            let ended = tokio::select! {
                biased;
                stats = local.ended(), if awaited.local => {
                    awaited.local = false;
                    stats
                        .map_err(|status| from_task(status, &self.view.own))
                        .and_then(|stats| self.local_metadata(executable, step, stats))
                }
                // The client may give up while only other tasks are still at work.
                reason = &mut given_up, if failed.is_none() && !remote.is_empty() => Err(reason),
                Some(joined) = remote.join_next() => match joined {
                    Ok((task, ended)) => {
                        awaited.tasks.retain(|other| *other != task);
                        ended
                    }
                    // Cancelled by us after the first error, which is the one to show.
                    Err(error) => Err(internal!("a part's run was lost: {error}").derived()),
                },
                () = &mut late => return Err(awaited.deadline_exceeded(&local)),
                () = awaited.patience(), if !remote.is_empty() => {
                    awaited.report();
                    continue;
                }
            };
            match ended {
                Ok(part) => merge(&mut metadata, part),
                Err(status) => {
                    // The others must not wait for what will not come.
                    step.cancel.cancel(status.clone().derived());
                    remote.abort_all();
                    status.note(&mut failed);
                }
            }
        }
        match failed {
            Some(status) => Err(status),
            None => Ok(metadata),
        }
    }

    /// Starts the parts of the other tasks.
    pub(super) fn start_remote(&self, executable: &Executable, step: &Step) -> Parts {
        let mut remote = JoinSet::new();
        for part in &executable.remote {
            let request_id = self.worker.env().ids.request_id();
            let (task, run) = (
                part.task.clone(),
                run_remote(part, self.handle(), step, request_id),
            );
            remote.spawn(async move { (task, run.await) });
            part.left.tell();
        }
        remote
    }

    fn local_metadata(
        &self,
        executable: &Executable,
        step: &Step,
        stats: StepStats,
    ) -> Result<pb::RunMetadata> {
        let mut metadata = pb::RunMetadata::default();
        if step.record {
            metadata.step_stats = Some(pb::StepStats { dev_stats: stats });
        }
        if step.graphs {
            metadata.partition_graphs = executable.local_graphs()?;
        }
        Ok(metadata)
    }

    /// Lets every task forget what is left of a step, at once if it failed or was given up: somebody may
    /// wait for its tensors. Nobody waits for that.
    pub(super) fn clean_up(&self, executable: &Executable, step_id: i64, went_well: bool) {
        if executable.has_transfers() {
            self.worker.cleanup_step(step_id);
        }
        for part in &executable.remote {
            if went_well {
                part.left.add(step_id);
            } else {
                part.left.tell_now(step_id);
            }
        }
    }
}

/// Cleans up a step when it is dropped.
struct CleanUp<'a> {
    session: &'a MasterSession,
    executable: &'a Executable,
    step_id: i64,
    went_well: bool,
}

impl Drop for CleanUp<'_> {
    fn drop(&mut self) {
        self.session
            .clean_up(self.executable, self.step_id, self.went_well);
    }
}

/// One step as all its parts see it.
pub(super) struct Step {
    pub(super) id: i64,
    pub(super) record: bool,
    pub(super) graphs: bool,
    pub(super) cancel: CancelToken,
}

/// Runs another task's part; dropping the future cancels it there.
fn run_remote(
    part: &RemotePart,
    session: &str,
    step: &Step,
    request_id: i64,
) -> impl Future<Output = Result<pb::RunMetadata>> + Send + 'static {
    let (worker, task) = (part.worker.clone(), part.task.clone());
    let request = pb::RunGraphRequest {
        session_handle: session.to_owned(),
        create_worker_session_called: true,
        graph_handle: part.graph_handle.clone(),
        step_id: step.id,
        exec_opts: Some(pb::ExecutorOpts {
            record_timeline: step.record,
            record_partition_graphs: step.graphs,
            ..pb::ExecutorOpts::default()
        }),
        store_errors_in_response_body: true,
        request_id,
        ..pb::RunGraphRequest::default()
    };
    async move {
        let answer = worker.run_graph(request).await;
        let answer = answer.map_err(|status| from_task(status, &task))?;
        if answer.status_code != 0 {
            let status = Status::new(
                Code::from_number(answer.status_code),
                answer.status_error_message,
            );
            return Err(from_task(status, &task));
        }
        Ok(pb::RunMetadata {
            step_stats: answer.step_stats,
            partition_graphs: answer.partition_graph,
            ..pb::RunMetadata::default()
        })
    }
}

fn merge(metadata: &mut pb::RunMetadata, part: pb::RunMetadata) {
    if let Some(stats) = part.step_stats {
        let all = metadata.step_stats.get_or_insert_default();
        all.dev_stats.extend(stats.dev_stats);
    }
    metadata.partition_graphs.extend(part.partition_graphs);
}

/// Says which task an error came from.
pub(super) fn from_task(status: Status, task: &TaskName) -> Status {
    let text = format!("From {task}:\n{}", status.message());
    status.with_message(text)
}

fn check_feeds(executable: &Executable, feeds: &[Tensor]) -> Result<()> {
    let names = &executable.signature.feeds;
    for ((tensor, dtype), name) in feeds.iter().zip(&executable.feed_types).zip(names) {
        if tensor.dtype() != *dtype {
            let (node, port) = name.rsplit_once(':').unwrap_or((name, "0"));
            return Err(internal!(
                "Output 0 of type {} does not match declared output type {dtype} for node {{{{node _recv_{node}_{port}}}}}",
                tensor.dtype()
            ));
        }
    }
    Ok(())
}

/// Names in the order of a signature: clients that say the same in another order share what was prepared.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// Feeds in the order of a signature.
fn sorted_feeds(names: Vec<String>, feeds: Vec<Tensor>) -> (Vec<String>, Vec<Tensor>) {
    if names.is_sorted() {
        return (names, feeds);
    }
    let mut pairs: Vec<(String, Tensor)> = names.into_iter().zip(feeds).collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    pairs.into_iter().unzip()
}

/// Fetched tensors, which are in the order of the signature, in the order they were asked for.
fn in_order(
    wanted: Vec<String>,
    sorted: &[String],
    tensors: &[Tensor],
) -> Result<Vec<pb::NamedTensorProto>> {
    if wanted == sorted {
        return named(sorted, tensors);
    }
    let named = wanted.into_iter().map(|name| {
        let tensor = sorted
            .binary_search(&name)
            .ok()
            .and_then(|at| tensors.get(at));
        let tensor = tensor.ok_or_else(|| internal!("{name} was not fetched"))?;
        Ok(pb::NamedTensorProto {
            tensor: Some(tensor.to_proto()?),
            name,
        })
    });
    named.collect()
}

/// Tensors by the names they were fetched by.
pub(super) fn named(names: &[String], tensors: &[Tensor]) -> Result<Vec<pb::NamedTensorProto>> {
    let named = names.iter().zip(tensors).map(|(name, tensor)| {
        Ok(pb::NamedTensorProto {
            name: name.clone(),
            tensor: Some(tensor.to_proto()?),
        })
    });
    named.collect()
}
