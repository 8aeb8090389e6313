//! A small cluster and a small model for the tests, and training on them.

use std::time::Duration;

use tensorfleet_client::{DType, Graph, Operation, Output, Shape, Tensor, gradients, init};
use tensorfleet_rpc::LocalCluster;
use tensorfleet_train::{MonitoredTrainingSession, StopAtStepHook, get_or_create_global_step};

/// Nothing here takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// y = 2x + 1, variables on the ps.
pub(crate) struct Line {
    pub(crate) graph: Graph,
    pub(crate) x: Output,
    pub(crate) y: Output,
    pub(crate) loss: Output,
    pub(crate) train: Operation,
}

impl Line {
    pub(crate) fn on(variables: &str) -> Line {
        let g = Graph::new();
        let x = g.placeholder(DType::F32, &[-1, 1]);
        let y = g.placeholder(DType::F32, &[-1, 1]);
        let (step, w, b) = g.device(variables).run(|| {
            let step = get_or_create_global_step(&g).unwrap();
            let w = g.variable("w", &[1, 1]).initializer(init::zeros()).build();
            let b = g.variable("b", &[1]).initializer(init::zeros()).build();
            (step, w, b)
        });
        let loss = (x.matmul(&w) + &b - &y).square().mean(&[]);
        let grads = gradients(&[&loss], &[&w, &b]).unwrap();
        let updates: Vec<Operation> = [&w, &b]
            .iter()
            .zip(&grads)
            .map(|(v, grad)| v.assign_sub(&(grad.as_ref().unwrap().to_dense() * 0.1)))
            .collect();
        let train = {
            let _after = g.control_dependencies(&updates);
            step.assign_add(g.constant(1i64))
        };
        g.check().unwrap();
        Line {
            graph: g,
            x,
            y,
            loss,
            train,
        }
    }

    pub(crate) fn feeds(&self) -> [(&Output, Tensor); 2] {
        let shape = Shape::matrix(4, 1).unwrap();
        let xs = Tensor::from_slice(shape.clone(), &[0.0f32, 1.0, 2.0, 3.0]).unwrap();
        let ys = Tensor::from_slice(shape, &[1.0f32, 3.0, 5.0, 7.0]).unwrap();
        [(&self.x, xs), (&self.y, ys)]
    }

    /// A training session on a target.
    pub(crate) fn session(&self, target: &str, dir: &str) -> MonitoredTrainingSession {
        MonitoredTrainingSession::new(&self.graph)
            .target(target)
            .checkpoint_dir(dir)
            .max_wait(PATIENCE)
    }
}

/// Trains to a step; the last loss.
pub(crate) fn train(line: &Line, session: MonitoredTrainingSession, last_step: i64) -> f32 {
    let mut session = session.hook(StopAtStepHook::at(last_step)).start().unwrap();
    let mut last = f32::MAX;
    while !session.should_stop() {
        let (loss, ()) = session
            .run_fed(&line.feeds(), (&line.loss, &line.train))
            .unwrap();
        last = loss.to_scalar::<f32>().unwrap();
    }
    session.close().unwrap();
    last
}

#[test]
fn a_chief_and_a_worker_share_the_work() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let targets = [0, 1].map(|task| cluster.target("worker", task).unwrap());
    std::thread::scope(|scope| {
        for (task, target) in targets.iter().enumerate().rev() {
            scope.spawn(move || {
                let line = Line::on("/job:ps/task:0");
                let session = line.session(target, dir).is_chief(task == 0);
                assert!(train(&line, session, 400) < 1e-3);
            });
        }
    });
    let latest = tensorfleet_train::latest_checkpoint(dir).unwrap().unwrap();
    let step: i64 = latest.rsplit_once('-').unwrap().1.parse().unwrap();
    assert!(step >= 400, "{latest}");
}
