//! [`QueueRunner`]: threads that keep a queue filled while a session runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prost::Message;
use tensorfleet_client::{Code, Graph, Item, Operation, Session, keys};
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, Status, invalid_argument};

use crate::coordinator::Coordinator;

/// How long closing a session may take whose thread has failed.
const CLOSING: Duration = Duration::from_secs(10);

/// One thread per enqueue op, each running it over and over until the queue is closed or the coordinator
/// asks to stop. A thread that fails closes the session: nobody waits for what will not come.
///
/// ```
/// use tensorfleet_client::{DType, Graph, ops};
/// use tensorfleet_train::{MonitoredTrainingSession, QueueRunner};
///
/// let g = Graph::new();
/// let queue = ops::fifo_queue_v2(&g, &[DType::F32]).capacity(4).output();
/// let enqueue = ops::queue_enqueue_v2(&queue, &[g.constant(0.5f32)]).build();
/// QueueRunner::new(&queue, vec![enqueue]).add_to_graph(&g);
/// let next = ops::queue_dequeue_v2(&queue, &[DType::F32]).outputs().remove(0);
///
/// // Monitored sessions start the queue runners of their graph.
/// let mut session = MonitoredTrainingSession::new(&g).start()?;
/// assert_eq!(session.run(&next)?.to_scalar::<f32>()?, 0.5);
/// session.close()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone, Debug)]
pub struct QueueRunner {
    /// The queue's name, for error texts.
    pub queue: String,
    /// What the threads run.
    pub enqueue: Vec<Operation>,
    /// Closes the queue when the last thread ends.
    pub close: Operation,
    /// Closes the queue and cancels who waits at it.
    pub cancel: Operation,
}

impl QueueRunner {
    /// A runner of a queue, `close` and `cancel` nodes included.
    pub fn new(queue: &tensorfleet_client::Output, enqueue: Vec<Operation>) -> QueueRunner {
        let g = queue.graph();
        let name = queue.op().name();
        let close = |suffix: &str, cancel: bool| {
            let node = g.op("QueueCloseV2").name(&format!("{name}_{suffix}/"));
            let node = node.input(queue).colocate_with(&queue.op());
            node.attr("cancel_pending_enqueues", cancel).build()
        };
        QueueRunner {
            close: close("Close", false),
            cancel: close("Close_1", true),
            queue: name,
            enqueue,
        }
    }

    /// The message that MetaGraphs carry.
    pub fn to_proto(&self) -> pb::QueueRunnerDef {
        pb::QueueRunnerDef {
            queue_name: self.queue.clone(),
            enqueue_op_name: self.enqueue.iter().map(Operation::name).collect(),
            close_op_name: self.close.name(),
            cancel_op_name: self.cancel.name(),
            ..pb::QueueRunnerDef::default()
        }
    }

    /// The runner that a message describes.
    pub fn from_proto(g: &Graph, def: &pb::QueueRunnerDef) -> Result<QueueRunner> {
        let enqueue = def.enqueue_op_name.iter().map(|name| g.operation(name));
        Ok(QueueRunner {
            queue: def.queue_name.clone(),
            enqueue: enqueue.collect::<Result<_>>()?,
            close: g.operation(&def.close_op_name)?,
            cancel: g.operation(&def.cancel_op_name)?,
        })
    }

    /// Lets sessions that start queue runners start this one.
    pub fn add_to_graph(&self, g: &Graph) {
        let bytes = self.to_proto().encode_to_vec();
        g.add_to_collection(keys::QUEUE_RUNNERS, Item::Bytes(bytes.into()));
    }

    /// Starts the threads.
    pub fn start(&self, session: &Session, coordinator: &Coordinator) -> Result<()> {
        let left = Arc::new(AtomicUsize::new(self.enqueue.len()));
        for op in &self.enqueue {
            let thread = Filler {
                session: session.clone(),
                coordinator: coordinator.clone(),
                enqueue: op.clone(),
                close: self.close.clone(),
                left: left.clone(),
            };
            let name = format!("queue {} by {}", self.queue, op.name());
            coordinator.spawn(&name, move || thread.run())?;
        }
        Ok(())
    }
}

struct Filler {
    session: Session,
    coordinator: Coordinator,
    enqueue: Operation,
    close: Operation,
    left: Arc<AtomicUsize>,
}

impl Filler {
    fn run(self) -> Result<()> {
        let ended = self.fill();
        let last = self.left.fetch_sub(1, Ordering::AcqRel) == 1;
        match ended {
            // The end of input: readers get what is left, then OUT_OF_RANGE.
            Err(status) if status.code() == Code::OutOfRange => {
                if last {
                    // Whoever closed it already, or a lost server, leaves nothing to close.
                    let _ = self.session.run(&self.close);
                }
                Ok(())
            }
            // Stopping cancels what waits.
            Err(_) if self.coordinator.should_stop() => Ok(()),
            Err(status) => {
                // Whoever waits for what this thread will not bring must not wait for ever.
                self.coordinator.request_stop_with(status.clone());
                let _ = self.session.close_within(CLOSING);
                Err(status)
            }
            Ok(()) => Ok(()),
        }
    }

    fn fill(&self) -> Result<(), Status> {
        let call = self.session.callable(&[], &self.enqueue)?;
        while !self.coordinator.should_stop() {
            call.call(&[])?;
        }
        Ok(())
    }
}

/// The queue runners of a graph.
pub fn queue_runners(g: &Graph) -> Result<Vec<QueueRunner>> {
    let mut runners = Vec::new();
    for item in g.collection(keys::QUEUE_RUNNERS) {
        let Item::Bytes(bytes) = item else {
            return Err(invalid_argument!(
                "collection {} holds something that is no queue runner",
                keys::QUEUE_RUNNERS
            ));
        };
        let def = pb::QueueRunnerDef::decode(bytes)
            .map_err(|error| invalid_argument!("a queue runner cannot be read: {error}"))?;
        runners.push(QueueRunner::from_proto(g, &def)?);
    }
    Ok(runners)
}
