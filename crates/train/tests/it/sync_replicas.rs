//! Workers that step together: on clusters of real servers, and by hand in one session.

use std::sync::{Arc, Barrier};
use std::thread;

use tensorfleet_client::{
    Code, DType, Graph, Operation, Output, Session, Shape, Tensor, Variable, init,
};
use tensorfleet_rpc::LocalCluster;
use tensorfleet_train::{
    Coordinator, GradientDescent, Minimize, MonitoredTrainingSession, Optimizer,
    ReplicaDeviceSetter, SessionRunHook, StopAtStepHook, SyncReplicas, SyncReplicasHook,
    get_or_create_global_step,
};

use crate::cluster::PATIENCE;

pub(crate) const LAST_STEP: i64 = 60;

/// What one worker of two has: the same program on each, as between-graph replication wants it.
pub(crate) struct Replica {
    pub(crate) graph: Graph,
    x: Output,
    y: Output,
    loss: Output,
    pub(crate) train: Operation,
    sync: SyncReplicas,
}

impl Replica {
    pub(crate) fn new(task: u32, ps: usize, wanted: u32) -> Replica {
        let graph = Graph::new();
        let worker = format!("/job:worker/task:{task}");
        let setter = ReplicaDeviceSetter::new()
            .ps_tasks(ps)
            .worker_device(&worker);
        let _scope = graph.device_function(setter.build().unwrap());
        let step = get_or_create_global_step(&graph).unwrap();
        let w = graph
            .variable("w", &[1, 1])
            .initializer(init::zeros())
            .build();
        let b = graph.variable("b", &[1]).initializer(init::zeros()).build();
        let x = graph.placeholder(DType::F32, &[-1, 1]);
        let y = graph.placeholder(DType::F32, &[-1, 1]);
        let loss = (x.matmul(&w) + &b - &y).square().mean(&[]);
        let sync = SyncReplicas::new(GradientDescent::new(0.1), wanted).total_num_replicas(2);
        let train = sync.minimize_with(&loss, &Minimize::step(&step)).unwrap();
        Replica {
            graph,
            x,
            y,
            loss,
            train,
            sync,
        }
    }

    pub(crate) fn hook(&self, is_chief: bool, num_tokens: Option<u32>) -> SyncReplicasHook {
        let hook = self.sync.make_session_run_hook(is_chief, num_tokens);
        hook.unwrap()
    }

    pub(crate) fn feeds(&self) -> [(&Output, Tensor); 2] {
        let shape = Shape::matrix(3, 1).unwrap();
        let tensor = |values: &[f32]| Tensor::from_slice(shape.clone(), values).unwrap();
        let (xs, ys) = (tensor(&[0.0, 1.0, 2.0]), tensor(&[1.0, 3.0, 5.0]));
        [(&self.x, xs), (&self.y, ys)]
    }

    /// Trains to the end that a hook knows; the last loss.
    pub(crate) fn train(&self, session: MonitoredTrainingSession) -> f32 {
        self.train_from(session, &Barrier::new(1))
    }

    /// Trains to the end, from when all are ready.
    fn train_from(&self, session: MonitoredTrainingSession, ready: &Barrier) -> f32 {
        let mut session = session.max_wait(PATIENCE).start().unwrap();
        ready.wait();
        let mut last = f32::MAX;
        while !session.should_stop() {
            match session.run_fed(&self.feeds(), (&self.loss, &self.train)) {
                Ok((loss, ())) => last = loss.to_scalar::<f32>().unwrap(),
                // The chief is done and hands out no more tokens.
                Err(status) if status.code() == Code::OutOfRange => {}
                Err(status) => panic!("{status}"),
            }
        }
        session.close().unwrap();
        last
    }

    pub(crate) fn session(
        &self,
        target: &str,
        is_chief: bool,
        num_tokens: Option<u32>,
    ) -> MonitoredTrainingSession {
        MonitoredTrainingSession::new(&self.graph)
            .target(target)
            .is_chief(is_chief)
            .hook(StopAtStepHook::at(LAST_STEP))
            .hook(self.hook(is_chief, num_tokens))
    }
}

/// A training of two workers on a cluster of two.
fn train_together(cluster: &LocalCluster) {
    let ready = Arc::new(Barrier::new(2));
    // The chief last: the other one has to wait for it.
    let workers = [1, 0].map(|task| {
        let target = cluster.target("worker", task).unwrap().to_owned();
        let ready = Arc::clone(&ready);
        thread::spawn(move || {
            let replica = Replica::new(task, 2, 2);
            replica.train_from(replica.session(&target, task == 0, None), &ready)
        })
    });
    for worker in workers {
        let loss = worker.join().unwrap();
        assert!(loss < 0.05, "{loss}");
    }
}

#[test]
fn two_workers_step_together() {
    train_together(&LocalCluster::start(&[("ps", 2), ("worker", 2)]).unwrap());
}

#[test]
fn one_training_follows_another_on_the_same_servers() {
    let cluster = LocalCluster::start(&[("ps", 2), ("worker", 2)]).unwrap();
    for _ in 0..3 {
        train_together(&cluster);
    }
}

#[test]
fn a_step_does_not_wait_for_a_backup_worker() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    // Of two workers one is enough; the other never comes.
    let target = cluster.target("worker", 0).unwrap();
    let replica = Replica::new(0, 1, 1);
    let loss = replica.train(replica.session(target, true, None));
    assert!(loss < 0.05, "{loss}");
}

/// A replica by hand: no threads, every op of the protocol run where the test wants it.
struct ByHand {
    sparse: bool,
    session: Session,
    graph: Graph,
    step: Variable,
    rows: Variable,
    train: Operation,
    sync: SyncReplicas,
    init_tokens: Operation,
}

impl ByHand {
    /// One gradient of ones for rows 1, 3 and 1 of a table, or for all of it.
    fn new(sparse: bool) -> ByHand {
        let graph = Graph::new();
        let step = get_or_create_global_step(&graph).unwrap();
        let rows = graph
            .variable("rows", &[4, 2])
            .initializer(init::zeros())
            .build();
        let loss = if sparse {
            rows.gather(graph.constant([1i32, 3, 1])).sum(&[])
        } else {
            rows.read().sum(&[])
        };
        let sync = SyncReplicas::new(GradientDescent::new(1.0), 2);
        let train = sync.minimize_with(&loss, &Minimize::step(&step)).unwrap();
        let init_tokens = sync.init_tokens_op(None).unwrap();
        let session = Session::new(&graph).unwrap();
        session.run(&graph.global_variables_initializer()).unwrap();
        ByHand {
            sparse,
            session,
            graph,
            step,
            rows,
            train,
            sync,
            init_tokens,
        }
    }

    fn set_step(&self, step: i64) {
        let set = self.step.assign(self.graph.constant(step));
        self.session.run(&set).unwrap();
    }

    /// How many gradients the accumulator holds.
    fn accumulated(&self) -> i32 {
        let (name, count) = match self.sparse {
            true => (
                "sparse_conditional_accumulator",
                "AccumulatorNumAccumulated",
            ),
            false => (
                "conditional_accumulator",
                "ResourceAccumulatorNumAccumulated",
            ),
        };
        let found = self.graph.operation(&format!("sync_replicas/{name}"));
        let handle = found.unwrap().output(0);
        let count = self.graph.op(count).input(&handle).output();
        let count = self.session.run(&count).unwrap();
        count.to_scalar::<i32>().unwrap()
    }

    fn chief_step(&self) {
        let runner = self.sync.chief_queue_runner().unwrap();
        self.session.run(&runner.enqueue[0]).unwrap();
    }

    fn values(&self) -> Vec<f32> {
        let value = self.session.run(&self.rows).unwrap();
        value.slice::<f32>().unwrap().to_vec()
    }
}

#[test]
fn stale_gradients_are_dropped() {
    let one = ByHand::new(false);
    one.set_step(3);
    one.session.run(&one.sync.chief_init_op().unwrap()).unwrap();
    one.session.run(&one.init_tokens).unwrap();
    // This worker lags behind: it believes in step 1, the accumulators are at 3.
    let locals = one.graph.local_variables();
    let late = locals[0].assign(one.graph.constant(1i64));
    one.session.run(&late).unwrap();
    one.session.run(&one.train).unwrap();
    assert_eq!(one.accumulated(), 0);
    // The token told it where the others are.
    one.session.run(&one.train).unwrap();
    assert_eq!(one.accumulated(), 1);
    one.session.run(&one.init_tokens).unwrap();
    one.session.run(&one.train).unwrap();
    one.chief_step();
    assert_eq!(one.values(), [-1.0; 8]);
    let step = one.session.run(&one.step).unwrap();
    assert_eq!(step.to_scalar::<i64>().unwrap(), 4);
}

/// A chief that begins where a training has ended: the queue of tokens is closed, a gradient was never taken.
#[test]
fn the_chief_clears_away_what_a_training_left() {
    for sparse in [false, true] {
        let one = ByHand::new(sparse);
        let mut hook = one.sync.make_session_run_hook(true, None).unwrap();
        one.session.run(&one.sync.chief_init_op().unwrap()).unwrap();
        one.session.run(&one.init_tokens).unwrap();
        one.session.run(&one.train).unwrap();
        let runner = one.sync.chief_queue_runner().unwrap();
        one.session.run(&runner.cancel).unwrap();
        let closed = one.session.run(&one.init_tokens).unwrap_err();
        assert_eq!(closed.code(), Code::Cancelled);
        assert_eq!(one.accumulated(), 1);

        let coordinator = Coordinator::new();
        hook.after_create_session(&one.session, &coordinator)
            .unwrap();
        assert_eq!(one.accumulated(), 0);
        one.session.run(&one.train).unwrap();
        assert_eq!(one.accumulated(), 1);
        hook.end(&one.session).unwrap();
        one.session.close().unwrap();
        coordinator.join(PATIENCE).unwrap();
    }
}

/// The chief may have come back before a worker that is done looks where it stands.
#[test]
fn a_worker_that_is_done_remembers_what_it_has_seen() {
    let one = ByHand::new(false);
    let mut chief = one.sync.make_session_run_hook(true, Some(0)).unwrap();
    let mut other = one.sync.make_session_run_hook(false, None).unwrap();
    let seen = one.graph.local_variables()[0].assign(one.graph.constant(5i64));
    let coordinator = Coordinator::new();
    for step in [5, 3] {
        one.set_step(step);
        let opened = chief.after_create_session(&one.session, &coordinator);
        opened.unwrap();
    }
    one.session.run(&seen).unwrap();
    let status = other.stopping(&one.session).unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    assert!(status.message().contains("came back at step 3"), "{status}");
    coordinator.request_stop();
    one.session.close().unwrap();
    coordinator.join(PATIENCE).unwrap();
}

#[test]
fn rows_are_averaged_as_rows() {
    let one = ByHand::new(true);
    one.session.run(&one.sync.chief_init_op().unwrap()).unwrap();
    one.session.run(&one.init_tokens).unwrap();
    one.session.run(&one.train).unwrap();
    one.session.run(&one.train).unwrap();
    one.chief_step();
    assert_eq!(one.values(), [0.0, 0.0, -2.0, -2.0, 0.0, 0.0, -1.0, -1.0]);
}

#[test]
fn mistakes_are_named() {
    let g = Graph::new();
    let w = g.variable("w", &[]).build();
    let sync = SyncReplicas::new(GradientDescent::new(0.1), 3).total_num_replicas(1);
    let loss = w.read().square();
    let text = |status: tensorfleet_client::Status| status.message().to_owned();
    assert!(text(sync.chief_init_op().unwrap_err()).contains("call minimize"));
    assert!(text(sync.minimize(&loss).unwrap_err()).contains("need a global step"));
    let step = get_or_create_global_step(&g).unwrap();
    sync.minimize_with(&loss, &Minimize::step(&step)).unwrap();
    let few = sync.init_tokens_op(Some(1)).unwrap_err();
    assert_eq!(
        few.message(),
        "too few tokens to finish the first step: 1 given, 2 needed"
    );
    sync.init_tokens_op(Some(2)).unwrap();
}
