//! The network: calls that take time, get lost, arrive twice, or end with the connection or the process they went to.
//!
//! It keeps the contract that `rpc` keeps: a call has an answer, or fails with UNAVAILABLE once its connection is known to
//! be broken; dropping a call cancels it at the other end, a little later; calls that wait for their server retry to
//! connect, the others fail at once.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tensorfleet_cluster::TaskName;
use tensorfleet_status::{Result, Status, cancelled, unavailable};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::process::{Life, Process};
use super::world::World;

/// Who calls.
#[derive(Clone)]
pub(super) enum Party {
    Client(usize),
    Task(Arc<Life>),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Client(index) => write!(f, "client:{index}"),
            Party::Task(life) => life.fmt(f),
        }
    }
}

/// What is called, and how.
pub(super) struct Call {
    pub(super) path: &'static str,
    /// The step it is about; 0 for none.
    pub(super) step: i64,
    /// Keep trying to connect instead of failing at once.
    pub(super) wait_for_ready: bool,
}

/// What becomes of a call.
pub(super) struct Fate {
    /// When the request arrives: never, once or twice.
    pub(super) arrivals: Vec<Duration>,
    pub(super) answer_is_lost: bool,
    pub(super) answer_takes: Duration,
    /// Until the caller notices that nothing will come.
    pub(super) notice_takes: Duration,
    /// Until the other end notices that nobody waits.
    pub(super) cancel_takes: Duration,
}

/// A call on its way.
pub(super) struct Flight {
    /// The caller's task; `None` for a client.
    pub(super) from: Option<usize>,
    pub(super) to: usize,
    is_broken: AtomicBool,
    broke: Notify,
    serving: Mutex<Vec<AbortHandle>>,
}

impl Flight {
    fn new(from: &Party, to: usize) -> Flight {
        Flight {
            from: match from {
                Party::Client(_) => None,
                Party::Task(life) => Some(life.task),
            },
            to,
            is_broken: AtomicBool::new(false),
            broke: Notify::new(),
            serving: Mutex::default(),
        }
    }

    /// Whether it is between these tasks.
    pub(super) fn is_between(&self, a: usize, b: usize) -> bool {
        (self.from == Some(a) && self.to == b) || (self.from == Some(b) && self.to == a)
    }

    /// Breaks the connection under the call.
    pub(super) fn cut(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
        self.broke.notify_waiters();
    }

    async fn broken(&self) {
        let mut broke = pin!(self.broke.notified());
        broke.as_mut().enable();
        if !self.is_broken.load(Ordering::Relaxed) {
            broke.await;
        }
    }

    fn is_served(&self) -> bool {
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        serving.iter().any(|copy| !copy.is_finished())
    }

    pub(super) fn stop_serving(&self) {
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        serving.iter().for_each(AbortHandle::abort);
    }
}

/// Where the first answer goes.
type Told<A> = Arc<Mutex<Option<oneshot::Sender<Result<A>>>>>;

/// One request under way.
struct Delivery {
    label: String,
    process: Arc<Process>,
    arrives_in: Duration,
    answer_is_lost: bool,
    answer_takes: Duration,
}

impl World {
    /// Makes a call. `serve` may be called twice.
    pub(super) async fn call<Q, A, F>(
        self: Arc<World>,
        from: Party,
        to: usize,
        call: Call,
        request: Q,
        serve: impl Fn(Arc<Process>, Q) -> F + Clone + Send + 'static,
    ) -> Result<A>
    where
        Q: Clone + Send + 'static,
        A: Send + 'static,
        F: Future<Output = Result<A>> + Send + 'static,
    {
        let path = call.path;
        let exchange = self.exchange(&from, to, &call, request, serve);
        let answer = match &from {
            Party::Client(_) => exchange.await,
            Party::Task(life) => tokio::select! {
                biased;
                () = life.died() => return Err(cancelled!("{life} has crashed")),
                answer = exchange => answer,
            },
        };
        answer.map_err(|status| explain(status, &self.setup.tasks[to], path))
    }

    async fn exchange<Q, A, F>(
        self: &Arc<World>,
        from: &Party,
        to: usize,
        call: &Call,
        request: Q,
        serve: impl Fn(Arc<Process>, Q) -> F + Clone + Send + 'static,
    ) -> Result<A>
    where
        Q: Clone + Send + 'static,
        A: Send + 'static,
        F: Future<Output = Result<A>> + Send + 'static,
    {
        let process = self.connect(to, call.wait_for_ready).await?;
        let (number, fate) = self.draw_fate(from, to);
        let method = call.path.rsplit('/').next().unwrap_or_default();
        let mut label = format!("{from} > {} {method} #{number}", process.life);
        if call.step != 0 {
            label += &format!(" of step {:06x}", call.step & 0xff_ffff);
        }
        self.note(&label);
        let (tell, told) = oneshot::channel();
        let tell = Arc::new(Mutex::new(Some(tell)));
        let flight = Arc::new(Flight::new(from, to));
        for arrives_in in fate.arrivals {
            let delivery = Delivery {
                label: label.clone(),
                process: process.clone(),
                arrives_in,
                answer_is_lost: fate.answer_is_lost,
                answer_takes: fate.answer_takes,
            };
            let (serve, request) = (serve.clone(), request.clone());
            let served = move |process| serve(process, request);
            let serving =
                self.runtime()
                    .spawn(self.clone().deliver(delivery, tell.clone(), served));
            process.own(serving.abort_handle());
            let mut all = flight
                .serving
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.push(serving.abort_handle());
        }
        drop((tell, process));
        self.flights().insert(number, flight.clone());
        let mut waiting = Waiting {
            world: self.clone(),
            number,
            label,
            cancel_takes: fate.cancel_takes,
            answered: false,
        };
        let answer = tokio::select! {
            biased;
            () = flight.broken() => None,
            answer = told => answer.ok(),
        };
        if let Some(answer) = answer {
            waiting.answered = true;
            return answer;
        }
        sleep(fate.notice_takes).await;
        self.note(&format!("{} is lost", waiting.label));
        Err(unavailable!("Connection reset by peer"))
    }

    async fn connect(&self, to: usize, wait_for_ready: bool) -> Result<Arc<Process>> {
        let mut pause = Duration::from_millis(20);
        loop {
            if let Some(process) = self.process(to) {
                return Ok(process);
            }
            if !wait_for_ready {
                sleep(Duration::from_millis(3)).await;
                return Err(unavailable!(
                    "failed to connect to all addresses; last error: UNAVAILABLE: Connection refused"
                ));
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    async fn deliver<A, F>(
        self: Arc<World>,
        delivery: Delivery,
        tell: Told<A>,
        serve: impl FnOnce(Arc<Process>) -> F,
    ) where
        A: Send + 'static,
        F: Future<Output = Result<A>>,
    {
        let Delivery { label, process, .. } = delivery;
        let life = process.life.clone();
        sleep(delivery.arrives_in).await;
        self.while_paused(life.task).await;
        self.disturb();
        if life.is_dead() {
            return;
        }
        self.note(&format!("{label} arrives"));
        let answer = serve(process).await;
        match &answer {
            Ok(_) => self.note(&format!("{label} is answered")),
            Err(status) => self.note(&format!("{label} fails: {}", status.code().name())),
        }
        self.disturb();
        if life.is_dead() || delivery.answer_is_lost {
            return;
        }
        // The answer has left the process: it arrives even if that crashes now.
        self.runtime().spawn(async move {
            sleep(delivery.answer_takes).await;
            let tell = tell.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(tell) = tell {
                // The caller may have given up.
                let _ = tell.send(answer);
            }
        });
    }
}

/// A caller that waits; when it stops, the other end stops too: also to serve the other copy of a request.
struct Waiting {
    world: Arc<World>,
    number: u64,
    label: String,
    cancel_takes: Duration,
    answered: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(flight) = self.world.flights().remove(&self.number) else {
            return;
        };
        if !self.answered {
            self.world.note(&format!("{} is given up", self.label));
        } else if !flight.is_served() {
            return;
        }
        let cancel_takes = self.cancel_takes;
        self.world.runtime().spawn(async move {
            sleep(cancel_takes).await;
            flight.stop_serving();
        });
    }
}

/// Says where a failed call went, as `rpc` does.
fn explain(status: Status, task: &TaskName, path: &str) -> Status {
    status.append(format!(
        "\nAdditional GRPC error information from remote target {task} while calling {path}"
    ))
}
