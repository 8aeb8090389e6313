//! Hooks beside runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tensorfleet_client::{Code, DType, Graph, Output, PartialShape, Result, Session};
use tensorfleet_rpc::LocalCluster;
use tensorfleet_train::{
    CheckpointListener, FeedFnHook, FinalOpsHook, LoggingTensorHook, MonitoredTrainingSession,
    ProfilerHook, QueueRunner, RunContext, RunValues, SessionRunHook, StepCounterHook,
    StopAtStepHook,
};

use crate::cluster::Line;

#[derive(Clone, Default)]
struct Counts {
    saved: Arc<AtomicI64>,
    runs: Arc<AtomicI64>,
    ends: Arc<AtomicI64>,
}

impl CheckpointListener for Counts {
    fn after_save(&mut self, _: &Session, _: i64, _: &str) -> Result<bool> {
        self.saved.fetch_add(1, Ordering::Relaxed);
        Ok(false)
    }
}

impl SessionRunHook for Counts {
    fn after_run(&mut self, _: &mut RunContext<'_>, _: &RunValues<'_>) -> Result<()> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn end(&mut self, _: &Session) -> Result<()> {
        self.ends.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn all_hooks_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let line = Line::on("");
    let counts = Counts::default();
    let [(x, xs), (y, ys)] = line.feeds();
    let last = FinalOpsHook::new(&[&line.loss])
        .feed(x, xs.clone())
        .feed(y, ys.clone());
    let at_the_end = last.values();
    let fed = [(x.clone(), xs), (y.clone(), ys)];
    let mut session = MonitoredTrainingSession::new(&line.graph)
        .checkpoint_dir(path)
        .save_checkpoint_steps(10)
        .log_step_count_steps(5)
        .checkpoint_listener(counts.clone())
        .hook(counts.clone())
        .hook(FeedFnHook::new(move || Ok(fed.to_vec())))
        .hook(
            LoggingTensorHook::new(&[("loss", &line.loss)])
                .every_steps(10)
                .unwrap(),
        )
        .hook(StepCounterHook::every_steps(10).unwrap())
        .hook(ProfilerHook::every_steps(path, 10).unwrap())
        .hook(StopAtStepHook::at(25))
        .hook(last)
        .start()
        .unwrap();
    while !session.should_stop() {
        session.run(&line.train).unwrap();
    }
    session.close().unwrap();
    assert_eq!(counts.runs.load(Ordering::Relaxed), 25);
    assert_eq!(counts.ends.load(Ordering::Relaxed), 1);
    // At the start, at 10, at 20, at the end.
    assert_eq!(counts.saved.load(Ordering::Relaxed), 4);
    let loss = at_the_end.values().unwrap()[0].to_scalar::<f32>().unwrap();
    assert!(loss < 0.5, "{loss}");
    let files: Vec<String> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for wanted in [
        "graph.pbtxt",
        "checkpoint",
        "model.ckpt-25.meta",
        "timeline-",
        "events.out",
    ] {
        assert!(
            files.iter().any(|file| file.starts_with(wanted)),
            "{wanted}: {files:?}"
        );
    }
}

#[test]
fn a_tensor_fed_twice_is_an_error() {
    let line = Line::on("");
    let [(x, xs), (y, ys)] = line.feeds();
    let fed = [(x.clone(), xs.clone())];
    let mut session = MonitoredTrainingSession::new(&line.graph)
        .hook(FeedFnHook::new(move || Ok(fed.to_vec())))
        .start()
        .unwrap();
    let status = session
        .run_fed(&[(x, xs), (y, ys)], &line.train)
        .unwrap_err();
    assert!(status.message().contains("fed twice"), "{status}");
}

/// A queue of three numbers, and what takes one out.
fn numbers(g: &Graph) -> (Output, Output) {
    let queue = g
        .op("FIFOQueueV2")
        .name("numbers")
        .attr("component_types", vec![DType::F32])
        .attr("shapes", vec![PartialShape::scalar()])
        .attr("capacity", 3i64)
        .output();
    let got = g
        .op("QueueDequeueV2")
        .input(&queue)
        .attr("component_types", vec![DType::F32])
        .output();
    (queue, got)
}

#[test]
fn queue_runners_fill_queues_and_end_with_the_session() {
    let g = Graph::new();
    let (queue, got) = numbers(&g);
    let one = g.constant(1.0f32);
    let put = g.op("QueueEnqueueV2").input(&queue).list(&[one]).build();
    QueueRunner::new(&queue, vec![put.clone(), put]).add_to_graph(&g);
    let mut session = MonitoredTrainingSession::new(&g).start().unwrap();
    for _ in 0..20 {
        let one = session.run(&got).unwrap();
        assert_eq!(one.to_scalar::<f32>().unwrap(), 1.0);
    }
    // Two threads wait at the full queue now; closing does not wait for them.
    session.close().unwrap();
}

#[test]
fn who_waits_at_a_queue_hears_why_it_is_not_filled() {
    let cluster = LocalCluster::start(&[("worker", 1)]).unwrap();
    for target in ["", cluster.target("worker", 0).unwrap()] {
        let g = Graph::new();
        let (queue, got) = numbers(&g);
        let node = g.op("CheckNumerics").input(g.constant(f32::NAN));
        let bad = node.attr("message", "a number of the file").output();
        let put = g.op("QueueEnqueueV2").input(&queue).list(&[bad]).build();
        QueueRunner::new(&queue, vec![put]).add_to_graph(&g);
        let session = MonitoredTrainingSession::new(&g).target(target);
        let mut session = session.start().unwrap();
        let status = session.run(&got).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(
            status.message().contains("a number of the file"),
            "{status}"
        );
        assert!(session.should_stop());
    }
}
