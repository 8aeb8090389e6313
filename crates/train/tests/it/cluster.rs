//! A small cluster and a small model for the tests, and training on them.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use tensorfleet_client::{DType, Graph, Operation, Output, Shape, Tensor, gradients, init};
use tensorfleet_cluster::{ClusterSpec, ServerSpec};
use tensorfleet_rpc::{Server, ServerOptions};
use tensorfleet_train::{MonitoredTrainingSession, StopAtStepHook, get_or_create_global_step};

/// Nothing here takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Servers of a cluster, some of which may be down.
pub(crate) struct Cluster {
    spec: ClusterSpec,
    servers: BTreeMap<(String, u32), Server>,
}

impl Cluster {
    /// So many ps and workers, all up.
    pub(crate) fn new(ps: usize, workers: usize) -> Cluster {
        // Ports are held together before they are given away, so that no two are the same.
        let held: Vec<TcpListener> = (0..ps + workers)
            .map(|_| TcpListener::bind("localhost:0").unwrap())
            .collect();
        let addresses: Vec<String> = held
            .iter()
            .map(|port| format!("localhost:{}", port.local_addr().unwrap().port()))
            .collect();
        drop(held);
        let (ps, workers) = addresses.split_at(ps);
        let spec = ClusterSpec::from_jobs([("ps", ps.to_vec()), ("worker", workers.to_vec())]);
        let mut cluster = Cluster {
            spec: spec.unwrap(),
            servers: BTreeMap::new(),
        };
        let tasks: Vec<(String, u32)> = cluster
            .spec
            .iter()
            .map(|(job, task, _)| (job.to_owned(), task))
            .collect();
        for (job, task) in tasks {
            cluster.start(&job, task);
        }
        cluster
    }

    /// Starts a task that is not up.
    pub(crate) fn start(&mut self, job: &str, task: u32) {
        let spec = ServerSpec::new(self.spec.clone(), Some(job), Some(task)).unwrap();
        let server = Server::new(spec, ServerOptions::default()).unwrap();
        server.start().unwrap();
        self.servers.insert((job.to_owned(), task), server);
    }

    /// Takes a task away with all it holds.
    pub(crate) fn kill(&mut self, job: &str, task: u32) {
        let server = self.servers.remove(&(job.to_owned(), task)).unwrap();
        server.stop_within(Duration::ZERO);
        server.join();
    }

    /// Where sessions are opened.
    pub(crate) fn target(&self, job: &str, task: u32) -> String {
        self.servers[&(job.to_owned(), task)].target().to_owned()
    }
}

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
            step.assign_add(&g.constant(1i64))
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
    let cluster = Cluster::new(1, 2);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let targets = [cluster.target("worker", 0), cluster.target("worker", 1)];
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
