//! Queues between threads: waiting, closing, cancelling.

use std::sync::Arc;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use tensorfleet_session::{RunOptions, Session, SessionOptions};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::Tensor;

use crate::graphs::{graph, session, values};

/// A queue of two int32 scalars and everything one can do with it.
const GRAPH: &str = "
    q = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[]], capacity=2}
    x = Placeholder() {dtype=DT_INT32, shape=[]}
    xs = Placeholder() {dtype=DT_INT32, shape=[?]}
    n = Placeholder() {dtype=DT_INT32, shape=[]}
    put = QueueEnqueueV2(q, [x])
    put_many = QueueEnqueueManyV2(q, [xs])
    got = QueueDequeueV2(q) {component_types=[DT_INT32]}
    many = QueueDequeueManyV2(q, n) {component_types=[DT_INT32]}
    rest = QueueDequeueUpToV2(q, n) {component_types=[DT_INT32]}
    size = QueueSizeV2(q)
    close = QueueCloseV2(q)
    cancel = QueueCloseV2(q) {cancel_pending_enqueues=true}";

struct Queue(Arc<Session>);

impl Queue {
    fn new() -> Queue {
        Queue(Arc::new(session(&graph(GRAPH))))
    }

    /// Runs in a thread of its own.
    fn later<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Queue) -> R + Send + 'static,
    ) -> JoinHandle<R> {
        let queue = Queue(self.0.clone());
        spawn(move || work(&queue))
    }

    fn put(&self, x: i32) -> Result<()> {
        let run = self.0.run(&[("x:0", Tensor::scalar(x))], &[], &["put"]);
        run.map(drop)
    }

    fn put_many(&self, xs: &[i32]) -> Result<()> {
        let run = self
            .0
            .run(&[("xs:0", Tensor::vector(xs))], &[], &["put_many"]);
        run.map(drop)
    }

    fn got(&self) -> Result<i32> {
        self.0.run(&[], &["got:0"], &[])?[0].to_scalar()
    }

    fn many(&self, fetch: &str, n: i32) -> Result<Vec<i32>> {
        let run = self.0.run(&[("n:0", Tensor::scalar(n))], &[fetch], &[])?;
        Ok(values(&run[0]))
    }

    fn size(&self) -> i32 {
        let run = self.0.run(&[], &["size:0"], &[]).unwrap();
        run[0].to_scalar().unwrap()
    }

    fn run(&self, target: &str) -> Result<()> {
        self.0.run(&[], &[], &[target]).map(drop)
    }

    fn wait_for_size(&self, size: i32) {
        let begin = Instant::now();
        while self.size() != size {
            assert!(begin.elapsed() < Duration::from_secs(60), "size {size}");
            sleep(Duration::from_millis(1));
        }
    }
}

/// Long enough for an operation in another thread to start waiting. Too short only makes a test easier.
fn a_moment() {
    sleep(Duration::from_millis(50));
}

#[test]
fn dequeue_waits_for_an_element() {
    let queue = Queue::new();
    let waiting = queue.later(Queue::got);
    a_moment();
    assert!(!waiting.is_finished());
    queue.put(7).unwrap();
    assert_eq!(waiting.join().unwrap().unwrap(), 7);
}

#[test]
fn enqueue_waits_for_room() {
    let queue = Queue::new();
    let waiting = queue.later(|queue| queue.put_many(&[1, 2, 3, 4]));
    queue.wait_for_size(2);
    a_moment();
    assert!(!waiting.is_finished());
    assert_eq!(queue.got().unwrap(), 1);
    assert_eq!(queue.got().unwrap(), 2);
    waiting.join().unwrap().unwrap();
    assert_eq!(queue.many("many:0", 2).unwrap(), [3, 4]);
}

#[test]
fn dequeue_many_collects_more_than_fits() {
    let queue = Queue::new();
    let waiting = queue.later(|queue| queue.many("many:0", 5));
    a_moment();
    for x in 0..6 {
        queue.put(x).unwrap();
    }
    assert_eq!(waiting.join().unwrap().unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(queue.size(), 1);
}

#[test]
fn what_leaves_a_priority_queue_together_is_in_order() {
    let session = Arc::new(session(&graph(
        "q = PriorityQueueV2() {component_types=[DT_INT32], shapes=[[]]}
         p = Placeholder() {dtype=DT_INT64, shape=[]}
         x = int32[]{0}
         put = QueueEnqueueV2(q, [p, x])
         n = int32[]{3}
         many = QueueDequeueManyV2(q, n) {component_types=[DT_INT64, DT_INT32]}",
    )));
    let other = session.clone();
    let many = spawn(move || other.run(&[], &["many:0"], &[]));
    for priority in [7i64, 3, 5] {
        a_moment();
        let fed = [("p:0", Tensor::scalar(priority))];
        session.run(&fed, &[], &["put"]).unwrap();
    }
    let run = many.join().unwrap().unwrap();
    assert_eq!(run[0].slice::<i64>().unwrap(), [3, 5, 7]);
}

#[test]
fn waiting_dequeues_are_served_in_order() {
    let queue = Queue::new();
    let first = queue.later(|queue| queue.many("many:0", 3));
    a_moment();
    let second = queue.later(Queue::got);
    a_moment();
    queue.put_many(&[1, 2]).unwrap();
    a_moment();
    // The first in line holds two elements and waits for the third.
    assert!(!second.is_finished());
    queue.put_many(&[3, 4]).unwrap();
    assert_eq!(first.join().unwrap().unwrap(), [1, 2, 3]);
    assert_eq!(second.join().unwrap().unwrap(), 4);
}

#[test]
fn closing_ends_waiting_dequeues_and_gives_back_what_they_took() {
    let queue = Queue::new();
    queue.put(1).unwrap();
    let waiting = queue.later(|queue| queue.many("many:0", 3));
    queue.wait_for_size(0);
    queue.run("close").unwrap();
    let status = waiting.join().unwrap().unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    let text = "' is closed and has insufficient elements (requested 2, current size 0)";
    assert!(status.message().contains(text), "{status}");
    assert!(status.message().starts_with("FIFOQueue '_"), "{status}");
    assert_eq!(queue.many("rest:0", 3).unwrap(), [1]);
}

#[test]
fn closing_waits_for_enqueues_in_line() {
    let queue = Queue::new();
    let put = queue.later(|queue| queue.put_many(&[1, 2, 3]));
    queue.wait_for_size(2);
    let close = queue.later(|queue| queue.run("close"));
    a_moment();
    assert!(!close.is_finished());
    assert_eq!(queue.got().unwrap(), 1);
    put.join().unwrap().unwrap();
    close.join().unwrap().unwrap();
    assert_eq!(queue.put(4).unwrap_err().code(), Code::Cancelled);
    assert_eq!(queue.many("rest:0", 5).unwrap(), [2, 3]);
}

#[test]
fn closing_can_cancel_enqueues_in_line() {
    let queue = Queue::new();
    let put = queue.later(|queue| queue.put_many(&[1, 2, 3]));
    queue.wait_for_size(2);
    a_moment();
    queue.run("cancel").unwrap();
    let status = put.join().unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Cancelled);
    let text = "Enqueue operation was cancelled";
    assert!(status.message().contains(text), "{status}");
    assert_eq!(queue.size(), 2);
}

#[test]
fn a_deadline_takes_an_operation_out_of_line() {
    let queue = Queue::new();
    let options = RunOptions {
        timeout: Some(Duration::from_millis(50)),
        ..RunOptions::default()
    };
    let feeds = [("n:0", Tensor::scalar(2i32))];
    queue.put(1).unwrap();
    let status = queue.0.run_with(&options, &feeds, &["many:0"], &[]);
    assert_eq!(status.err().unwrap().code(), Code::DeadlineExceeded);
    // What it had taken is there again.
    assert_eq!(queue.got().unwrap(), 1);
    queue.put(2).unwrap();
    assert_eq!(queue.got().unwrap(), 2);
}

#[test]
fn closing_the_session_cancels_what_waits() {
    let queue = Queue::new();
    let got = queue.later(Queue::got);
    a_moment();
    queue.0.close();
    let status = got.join().unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Cancelled);
}

#[test]
fn waiting_holds_no_thread_of_the_pool() {
    let graph = graph(GRAPH);
    let options = SessionOptions {
        threads: 1,
        ..SessionOptions::default()
    };
    let session = Session::with_registry(options, graph.registry().clone()).unwrap();
    session.extend(&graph.export().unwrap()).unwrap();
    let queue = Queue(Arc::new(session));
    // A deadline makes a step run in the pool, which has one thread.
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            queue.later(|queue| {
                let options = RunOptions {
                    timeout: Some(Duration::from_secs(60)),
                    ..RunOptions::default()
                };
                let (got, _) = queue.0.run_with(&options, &[], &["got:0"], &[])?;
                got[0].to_scalar::<i32>()
            })
        })
        .collect();
    a_moment();
    for x in 0..20 {
        queue.put(x).unwrap();
    }
    let got = waiting.into_iter().map(|thread| thread.join().unwrap());
    let mut got: Vec<i32> = got.collect::<Result<_>>().unwrap();
    got.sort_unstable();
    assert_eq!(got, (0..20).collect::<Vec<_>>());
}

#[test]
fn many_producers_and_consumers_lose_nothing() {
    let queue = Queue::new();
    let producers: Vec<_> = (0..4)
        .map(|p| queue.later(move |queue| (0..50).try_for_each(|x| queue.put(p * 1000 + x))))
        .collect();
    let consumers: Vec<_> = (0..4)
        .map(|_| {
            queue.later(|queue| {
                (0..25)
                    .map(|_| queue.many("many:0", 2))
                    .collect::<Result<Vec<_>>>()
            })
        })
        .collect();
    for producer in producers {
        producer.join().unwrap().unwrap();
    }
    let mut got: Vec<i32> = Vec::new();
    for consumer in consumers {
        got.extend(consumer.join().unwrap().unwrap().into_iter().flatten());
    }
    got.sort_unstable();
    let all: Vec<i32> = (0..4)
        .flat_map(|p| (0..50).map(move |x| p * 1000 + x))
        .collect();
    assert_eq!(got, all);
}

#[test]
fn a_private_queue_ends_with_its_session_and_a_shared_one_does_not() {
    let text = "own = FIFOQueueV2() {component_types=[DT_INT32]}
        all = FIFOQueueV2() {component_types=[DT_INT32], shared_name='all'}
        x = int32[]{7}
        put_own = QueueEnqueueV2(own, [x])
        put_all = QueueEnqueueV2(all, [x])
        size = QueueSizeV2(all)";
    let graph = graph(text);
    let first = session(&graph);
    first.run(&[], &[], &["put_own", "put_all"]).unwrap();
    let device = first.device().clone();
    let names = || -> Vec<String> {
        let list = device.resources.list();
        list.into_iter().map(|(_, _, name)| name).collect()
    };
    assert_eq!(names(), ["_0_own", "all"]);
    drop(first);
    assert_eq!(names(), ["all"]);
    let options = SessionOptions {
        device: Some(device.clone()),
        ..SessionOptions::default()
    };
    let second = Session::with_registry(options, graph.registry().clone()).unwrap();
    second.extend(&graph.export().unwrap()).unwrap();
    let size = second.run(&[], &["size:0"], &[]).unwrap();
    assert_eq!(size[0].to_scalar::<i32>().unwrap(), 1);
}
