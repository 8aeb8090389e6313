//! The steps that clients run, and what their answers must be.

use std::sync::Arc;

use tensorfleet_proto as pb;
use tensorfleet_proto::services::master as path;
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

use super::client::{ClientSession, asked, draw_limit};
use super::graphs::{SLOTS, feed};
use super::judge::{Excuses, Limit};
use super::process::Process;
use super::rng::Rng;

/// A step as a client sends it.
struct Request {
    feeds: Vec<pb::NamedTensorProto>,
    fetches: Vec<String>,
    limit: Limit,
    /// Of the step, kept by the master; 0 for none.
    timeout_in_ms: i64,
    partial_run: String,
    request_id: i64,
    uninitialized: bool,
}

impl Request {
    fn new(rng: &mut Rng, fetches: Vec<String>) -> Request {
        Request {
            feeds: Vec::new(),
            fetches,
            limit: draw_limit(rng, 3000),
            timeout_in_ms: if rng.chance(100) {
                rng.between(1, 3000) as i64
            } else {
                0
            },
            partial_run: String::new(),
            request_id: rng.next() as i64,
            uninitialized: false,
        }
    }
}

impl ClientSession {
    /// Runs some step.
    pub(super) async fn step(&self, mut rng: Rng) {
        let rng = &mut rng;
        match rng.below(16) {
            0..=3 => self.add(rng).await,
            4..=5 => self.read(rng).await,
            6..=7 => self.cond(rng).await,
            8..=9 => self.repeat(rng).await,
            10 => self.wait(rng).await,
            11 => self.late(rng).await,
            12..=13 => self.partial_run(rng).await,
            _ => self.callable(rng).await,
        }
    }

    /// Adds to some counters and reads them.
    async fn add(&self, rng: &mut Rng) {
        let counters = self.some_counters(rng);
        let Some(slot) = self.world.history().begin(counters.clone()) else {
            return;
        };
        let fetches = counters.iter().map(|i| format!("after{i}:0")).collect();
        let mut request = Request::new(rng, fetches);
        request.feeds.push(slot_feed(slot));
        let began = self.world.history().moment();
        if let Some(values) = self.run(request).await {
            for (counter, values) in counters.iter().zip(&values) {
                self.saw_own(*counter, values, began, slot);
            }
        }
    }

    /// Reads all counters here, far away, and their sum.
    async fn read(&self, rng: &mut Rng) {
        let ps = self.world.setup.ps;
        let mut fetches: Vec<String> = (0..ps).map(|i| format!("read{i}:0")).collect();
        fetches.extend((0..ps).map(|i| format!("echo{i}:0")));
        fetches.push("sum:0".to_owned());
        let request = Request::new(rng, fetches);
        let began = self.world.history().moment();
        let Some(values) = self.run(request).await else {
            return;
        };
        let (reads, rest) = values.split_at(ps);
        let (echoes, sum) = rest.split_at(ps);
        let mut total = vec![0; SLOTS];
        for (counter, values) in reads.iter().enumerate() {
            self.saw(counter, values, began);
            total.iter_mut().zip(values).for_each(|(t, v)| *t += v);
        }
        if reads != echoes || sum != [total] {
            self.wrong(&format!(
                "read {reads:?}, echoed {echoes:?}, summed {sum:?}"
            ));
        }
    }

    /// Adds to a counter in a branch that is taken or not.
    async fn cond(&self, rng: &mut Rng) {
        let counter = rng.below(self.world.setup.ps);
        let taken = rng.chance(500);
        let may_change = if taken { vec![counter] } else { Vec::new() };
        let Some(slot) = self.world.history().begin(may_change) else {
            return;
        };
        let mut request = Request::new(rng, vec![format!("cond{counter}:0")]);
        request.feeds.push(slot_feed(slot));
        request.feeds.push(scalar_feed("pred:0", taken));
        let began = self.world.history().moment();
        if let Some(values) = self.run(request).await {
            if taken {
                self.saw_own(counter, &values[0], began, slot);
            } else if values[0] != one_at(slot) {
                self.wrong(&format!("the other branch gave {:?}", values[0]));
            }
        }
    }

    /// Counts up in a loop that spans tasks.
    async fn repeat(&self, rng: &mut Rng) {
        let counter = rng.below(self.world.setup.ps);
        let trips = rng.below(4) as i32;
        let fetches = vec![format!("loop{counter}:0"), format!("read{counter}:0")];
        let mut request = Request::new(rng, fetches);
        request.feeds.push(scalar_feed("trips:0", trips));
        let began = self.world.history().moment();
        if let Some(mut values) = self.run(request).await {
            self.saw(counter, &values[1], began);
            values[1].iter_mut().for_each(|value| *value += trips);
            if values[0] != values[1] {
                self.wrong(&format!("{trips} trips gave {values:?}"));
            }
        }
    }

    /// Waits for what never comes, with a timeout or without patience.
    async fn wait(&self, rng: &mut Rng) {
        let mut request = Request::new(rng, vec!["waited:0".to_owned()]);
        if request.limit == Limit::None && request.timeout_in_ms == 0 {
            request.timeout_in_ms = rng.between(1, 3000) as i64;
        }
        if let Some(values) = self.run(request).await {
            self.wrong(&format!("an empty queue gave {values:?}"));
        }
    }

    /// Reads a variable that a restart forgets, and gives it a value if it has none.
    async fn late(&self, rng: &mut Rng) {
        let mut request = Request::new(rng, vec!["late_read:0".to_owned()]);
        if rng.chance(300) {
            request.fetches = vec!["late_init".to_owned()];
        }
        request.uninitialized = true;
        if let Some(values) = self.run(request).await
            && values.iter().any(|values| *values != [1; SLOTS])
        {
            self.wrong(&format!("the late variable is {values:?}"));
        }
    }

    /// Adds in the first part of a partial run; the second part may never come.
    async fn partial_run(&self, rng: &mut Rng) {
        let counter = rng.below(self.world.setup.ps);
        let Some(slot) = self.world.history().begin(vec![counter]) else {
            return;
        };
        let fetches = vec![format!("after{counter}:0"), "neg:0".to_owned()];
        let setup = pb::PartialRunSetupRequest {
            session_handle: self.handle.clone(),
            feed: vec!["slot:0".to_owned(), "more:0".to_owned()],
            fetch: fetches.clone(),
            request_id: rng.next() as i64,
            ..pb::PartialRunSetupRequest::default()
        };
        let Some(answer) = self
            .answer(
                path::PARTIAL_RUN_SETUP,
                draw_limit(rng, 3000),
                setup,
                asked!(partial_run_setup),
            )
            .await
        else {
            return;
        };
        let mut request = Request::new(rng, fetches[..1].to_vec());
        request.feeds.push(slot_feed(slot));
        request.partial_run.clone_from(&answer.partial_run_handle);
        let began = self.world.history().moment();
        let Some(values) = self.run(request).await else {
            return;
        };
        self.saw_own(counter, &values[0], began, slot);
        if rng.chance(800) {
            let mut request = Request::new(rng, fetches[1..].to_vec());
            request.feeds.push(scalar_feed("more:0", 5i32));
            request.partial_run = answer.partial_run_handle;
            if let Some(values) = self.run(request).await
                && values != [[-5]]
            {
                self.wrong(&format!("the rest of a partial run gave {values:?}"));
            }
        }
    }

    /// Adds by a callable, some times.
    async fn callable(&self, rng: &mut Rng) {
        let counter = rng.below(self.world.setup.ps);
        let make = pb::MakeCallableRequest {
            session_handle: self.handle.clone(),
            options: Some(pb::CallableOptions {
                feed: vec!["slot:0".to_owned()],
                fetch: vec![format!("after{counter}:0")],
                ..pb::CallableOptions::default()
            }),
            request_id: rng.next() as i64,
        };
        let made = self.answer(
            path::MAKE_CALLABLE,
            draw_limit(rng, 3000),
            make,
            asked!(make_callable),
        );
        let Some(made) = made.await else {
            return;
        };
        for _ in 0..rng.between(1, 3) {
            let Some(slot) = self.world.history().begin(vec![counter]) else {
                return;
            };
            let request = pb::RunCallableRequest {
                session_handle: self.handle.clone(),
                handle: made.handle,
                feed: slot_feed(slot).tensor.into_iter().collect(),
                request_id: rng.next() as i64,
            };
            let began = self.world.history().moment();
            let ran = self.answer(
                path::RUN_CALLABLE,
                draw_limit(rng, 3000),
                request,
                asked!(run_callable),
            );
            let Some(ran) = ran.await else {
                return;
            };
            match ran.fetch.iter().map(integers).collect::<Result<Vec<_>>>() {
                Ok(values) => self.saw_own(counter, &values[0], began, slot),
                Err(status) => self.wrong(&status.to_string()),
            }
        }
    }

    /// Runs what an extension added.
    pub(super) async fn run_extension(&self, mut rng: Rng, number: usize) {
        let fetches = vec![format!("ext{number}:0"), "read0:0".to_owned()];
        let request = Request::new(&mut rng, fetches);
        if let Some(values) = self.run(request).await
            && values[0].iter().zip(&values[1]).any(|(e, r)| *e != r + 1)
        {
            self.wrong(&format!("extension {number} gave {values:?}"));
        }
    }

    /// The fetched integers of a step; `None` if it failed as it may, or nobody waited for it.
    async fn run(&self, step: Request) -> Option<Vec<Vec<i32>>> {
        let (targets, fetches): (Vec<_>, Vec<_>) = step
            .fetches
            .into_iter()
            .partition(|name| !name.contains(':'));
        let request = pb::RunStepRequest {
            session_handle: self.handle.clone(),
            feed: step.feeds,
            fetch: fetches,
            target: targets,
            options: (step.timeout_in_ms > 0).then(|| pb::RunOptions {
                timeout_in_ms: step.timeout_in_ms,
                ..pb::RunOptions::default()
            }),
            partial_run_handle: step.partial_run,
            request_id: step.request_id,
            ..pb::RunStepRequest::default()
        };
        let what = format!("RunStep {:?} {:?}", request.fetch, request.target);
        let answer = self
            .caller()
            .ask(path::RUN_STEP, step.limit, request, asked!(run_step))
            .await?;
        let excuses = Excuses {
            closing: self.is_closing(),
            deadline: step.timeout_in_ms > 0 || step.limit != Limit::None,
            uninitialized: step.uninitialized,
        };
        let values = match answer {
            Ok(answer) => answer
                .tensor
                .iter()
                .map(|named| integers(named.tensor.as_ref().unwrap_or(&EMPTY)))
                .collect::<Result<Vec<_>>>(),
            Err(status) => {
                self.world.judge(&what, excuses, &status);
                return None;
            }
        };
        match values {
            Ok(values) => Some(values),
            Err(status) => {
                self.wrong(&status.to_string());
                None
            }
        }
    }

    /// The answer to some other call.
    async fn answer<Q, A, F>(
        &self,
        path: &'static str,
        limit: Limit,
        request: Q,
        serve: impl Fn(Arc<Process>, Q) -> F + Clone + Send + 'static,
    ) -> Option<A>
    where
        Q: Clone + Send + 'static,
        A: Send + 'static,
        F: Future<Output = Result<A>> + Send + 'static,
    {
        let answer = self.caller().ask(path, limit, request, serve).await?;
        let excuses = Excuses {
            closing: self.is_closing(),
            deadline: limit != Limit::None,
            uninitialized: false,
        };
        answer
            .map_err(|status| self.world.judge(path, excuses, &status))
            .ok()
    }

    fn some_counters(&self, rng: &mut Rng) -> Vec<usize> {
        let ps = self.world.setup.ps;
        if rng.chance(500) {
            (0..ps).collect()
        } else {
            vec![rng.below(ps)]
        }
    }

    fn saw(&self, counter: usize, values: &[i32], began: u64) {
        let seen = self
            .world
            .history()
            .see(&self.handle, counter, values, began);
        if let Err(what) = seen {
            self.wrong(&what);
        }
    }

    fn saw_own(&self, counter: usize, values: &[i32], began: u64, slot: usize) {
        let seen = self
            .world
            .history()
            .see_own(&self.handle, counter, values, began, slot);
        if let Err(what) = seen {
            self.wrong(&what);
        }
    }

    fn wrong(&self, what: &str) {
        let (client, handle) = (self.client, &self.handle);
        self.world
            .violated(format!("client {client}, session {handle}: {what}"));
    }
}

static EMPTY: std::sync::LazyLock<pb::TensorProto> = std::sync::LazyLock::new(Default::default);

fn integers(proto: &pb::TensorProto) -> Result<Vec<i32>> {
    Ok(Tensor::from_proto(proto)?.slice::<i32>()?.to_vec())
}

fn one_at(slot: usize) -> Vec<i32> {
    let mut values = vec![0; SLOTS];
    values[slot] = 1;
    values
}

fn slot_feed(slot: usize) -> pb::NamedTensorProto {
    named("slot:0", &Tensor::vector(&one_at(slot)))
}

fn scalar_feed<T: tensorfleet_tensor::Element>(name: &str, value: T) -> pb::NamedTensorProto {
    named(name, &Tensor::scalar(value))
}

/// Small dense tensors always have a message.
fn named(name: &str, tensor: &Tensor) -> pb::NamedTensorProto {
    feed(name, tensor).unwrap_or_default()
}
