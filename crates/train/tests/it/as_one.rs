//! Several workers learn what one worker learns: synchronous ones make its very steps, the others end where it ends.
//!
//! All learn a line from points that carry noise, so that a loss has a floor that it falls to and not below.

use std::sync::{Condvar, Mutex};

use tensorfleet_client::{
    Code, DType, Graph, Operation, Output, Session, Shape, Tensor, Variable, init,
};
use tensorfleet_rpc::LocalCluster;
use tensorfleet_train::{
    GradientDescent, Minimize, MonitoredTrainingSession, Optimizer, ReplicaDeviceSetter,
    StopAtStepHook, SyncReplicas, get_or_create_global_step,
};

use crate::cluster::PATIENCE;

const WEIGHTS: [f32; 4] = [1.0, -2.0, 3.0, 0.5];
const BATCH: usize = 32;
const RATE: f64 = 0.2;
const STEPS: i64 = 60;
/// How far sums may lie apart that are taken in another order, relative to 1 or the larger.
const ROUNDING: f32 = 1e-5;
/// How much larger or smaller the loss of workers may end that saw the batches in another order. The last steps of
/// the loss of one worker vary by some hundredths: each batch has a noise of its own.
const FACTOR: f32 = 1.1;
/// The batch that losses are compared on, which nobody learns from.
const UNSEEN: u64 = 1 << 40;

/// A number in [-1, 1) that looks random.
fn noise(index: u64) -> f32 {
    let mut bits = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (bits >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

/// Points and their values.
fn batches(numbers: &[u64], size: usize) -> (Tensor, Tensor) {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for batch in numbers {
        for point in 0..size as u64 {
            let at = (batch << 16) + (point << 3);
            let x: Vec<f32> = (0..WEIGHTS.len() as u64).map(|i| noise(at + i)).collect();
            let terms = x.iter().zip(WEIGHTS).map(|(x, w)| x * w);
            ys.push(terms.sum::<f32>() + 0.25 + 0.3 * noise(at + 7));
            xs.extend(x);
        }
    }
    let matrix = |values: Vec<f32>, columns: usize| {
        let shape = Shape::matrix(values.len() / columns, columns).unwrap();
        Tensor::from_vec(shape, values).unwrap()
    };
    (matrix(xs, WEIGHTS.len()), matrix(ys, 1))
}

/// The batch that a worker learns from in its step.
fn batch_of(task: u64, step: i64) -> u64 {
    (task << 32) + step as u64
}

/// One worker's graph.
struct Model {
    graph: Graph,
    x: Output,
    y: Output,
    loss: Output,
    train: Operation,
    sync: Option<SyncReplicas>,
}

impl Model {
    /// For a worker of a cluster; `wanted` are the gradients that a step is made of, of so many workers.
    fn of_worker(task: u64, wanted: Option<(u32, u32)>) -> Model {
        let graph = Graph::new();
        let device = format!("/job:worker/task:{task}");
        let setter = ReplicaDeviceSetter::new()
            .ps_tasks(1)
            .worker_device(&device);
        let _devices = graph.device_function(setter.build().unwrap());
        Model::new(&graph, wanted)
    }

    fn new(graph: &Graph, wanted: Option<(u32, u32)>) -> Model {
        let step = get_or_create_global_step(graph).unwrap();
        let zeros = |name: &str, dims: &[i64]| -> Variable {
            graph
                .variable(name, dims)
                .initializer(init::zeros())
                .build()
        };
        let (w, b) = (zeros("w", &[4, 1]), zeros("b", &[1]));
        let x = graph.placeholder(DType::F32, &[-1, 4]);
        let y = graph.placeholder(DType::F32, &[-1, 1]);
        let loss = (x.matmul(&w) + &b - &y).square().mean(&[]);
        let descent = GradientDescent::new(RATE);
        let options = Minimize::step(&step);
        let (train, sync) = match wanted {
            None => (descent.minimize_with(&loss, &options), None),
            Some((wanted, workers)) => {
                let sync = SyncReplicas::new(descent, wanted).total_num_replicas(workers);
                (sync.minimize_with(&loss, &options), Some(sync))
            }
        };
        Model {
            graph: graph.clone(),
            x,
            y,
            loss,
            train: train.unwrap(),
            sync,
        }
    }

    fn feeds(&self, (xs, ys): (Tensor, Tensor)) -> [(&Output, Tensor); 2] {
        [(&self.x, xs), (&self.y, ys)]
    }

    fn session(&self, target: &str, task: u64) -> MonitoredTrainingSession {
        let session = MonitoredTrainingSession::new(&self.graph);
        let session = session
            .target(target)
            .is_chief(task == 0)
            .max_wait(PATIENCE);
        match &self.sync {
            Some(sync) => session.hook(sync.make_session_run_hook(task == 0, Some(0)).unwrap()),
            None => session,
        }
    }

    /// The loss on points that nobody learned from.
    fn loss_on_unseen(&self, session: &Session) -> f32 {
        let feeds = self.feeds(batches(&[UNSEEN], 2048));
        let loss = session.run_fed(&feeds, &self.loss).unwrap();
        loss.to_scalar::<f32>().unwrap()
    }
}

/// What a run came to.
struct Run {
    /// The loss of each step.
    losses: Vec<f32>,
    /// The loss in the end, on points that nobody learned from.
    unseen: f32,
}

/// One worker that learns from these batches, several of them in a step.
fn one_worker(steps: &[Vec<u64>]) -> Run {
    let model = Model::new(&Graph::new(), None);
    let session = Session::new(&model.graph).unwrap();
    session
        .run(&model.graph.global_variables_initializer())
        .unwrap();
    let losses = steps.iter().map(|numbers| {
        let feeds = model.feeds(batches(numbers, BATCH));
        let (loss, ()) = session
            .run_fed(&feeds, (&model.loss, &model.train))
            .unwrap();
        loss.to_scalar::<f32>().unwrap()
    });
    Run {
        losses: losses.collect(),
        unseen: model.loss_on_unseen(&session),
    }
}

/// Holds workers together: nobody is more than some steps ahead, however busy the machine.
struct Pace {
    made: Mutex<Vec<i64>>,
    changed: Condvar,
    lead: i64,
}

impl Pace {
    fn new(workers: usize, lead: i64) -> Pace {
        Pace {
            made: Mutex::new(vec![0; workers]),
            changed: Condvar::new(),
            lead,
        }
    }

    /// Counts a step of a worker and waits for those that are too far behind.
    fn step(&self, task: u64) {
        let mut made = self.made.lock().unwrap();
        made[task as usize] += 1;
        let mine = made[task as usize];
        self.changed.notify_all();
        let behind = |made: &mut Vec<i64>| made.iter().any(|other| *other < mine - self.lead);
        let (_made, waited) = self
            .changed
            .wait_timeout_while(made, PATIENCE, behind)
            .unwrap();
        assert!(!waited.timed_out(), "a worker was left behind");
    }
}

/// Workers that make so many steps each: the losses of each, and what they learned in the end.
fn paced_workers(pace: &Pace, wanted: Option<(u32, u32)>) -> (Vec<Vec<f32>>, f32) {
    let workers = pace.made.lock().unwrap().len();
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", workers)]).unwrap();
    let work = |task: u64| -> Vec<f32> {
        let model = Model::of_worker(task, wanted);
        let target = cluster.target("worker", task as u32).unwrap();
        let mut session = model.session(target, task).start().unwrap();
        let mut step = |step: i64| {
            let feeds = model.feeds(batches(&[batch_of(task, step)], BATCH));
            let (loss, ()) = session
                .run_fed(&feeds, (&model.loss, &model.train))
                .unwrap();
            pace.step(task);
            loss.to_scalar::<f32>().unwrap()
        };
        let losses = (0..STEPS).map(&mut step).collect();
        session.close().unwrap();
        losses
    };
    let losses = std::thread::scope(|scope| {
        let work = &work;
        let threads = (0..workers as u64).map(|task| scope.spawn(move || work(task)));
        let threads: Vec<_> = threads.collect();
        let losses = threads.into_iter().map(|thread| thread.join().unwrap());
        losses.collect()
    });
    (losses, loss_in(&cluster))
}

/// The loss of what a cluster has learned.
fn loss_in(cluster: &LocalCluster) -> f32 {
    let model = Model::of_worker(0, None);
    let target = cluster.target("worker", 0).unwrap();
    model.loss_on_unseen(&Session::connect(&model.graph, target).unwrap())
}

#[expect(clippy::print_stderr, reason = "how close they are is worth knowing")]
fn assert_ends_as(name: &str, several: f32, one: &Run) {
    eprintln!("{name}: loss {several}, of one worker {}", one.unseen);
    assert!(one.unseen < 0.01 * one.losses[0], "one worker learns");
    let apart = several / one.unseen;
    assert!((1.0 / FACTOR..FACTOR).contains(&apart), "{name}: {apart}");
}

/// The mean of two workers' gradients is the gradient of one worker that has both of their batches.
#[test]
fn synchronous_workers_make_the_steps_of_one_worker() {
    let (losses, unseen) = paced_workers(&Pace::new(2, 0), Some((2, 2)));
    let steps = (0..STEPS).map(|step| vec![batch_of(0, step), batch_of(1, step)]);
    let one = one_worker(&steps.collect::<Vec<_>>());
    let near = |a: f32, b: f32| (a - b).abs() < ROUNDING * a.max(b).max(1.0);
    let pairs = losses[0].iter().zip(&losses[1]);
    for (step, ((first, second), loss)) in pairs.zip(&one.losses).enumerate() {
        let mean = (first + second) / 2.0;
        assert!(near(mean, *loss), "step {step}: {mean}, one worker {loss}");
    }
    assert!(near(unseen, one.unseen), "{unseen} {}", one.unseen);
    assert_ends_as("two in step", unseen, &one);
}

/// As many steps of either make the same of the loss, though gradients come a little late.
#[test]
fn asynchronous_workers_end_where_one_worker_ends() {
    let (_, unseen) = paced_workers(&Pace::new(2, 1), None);
    let steps = (0..STEPS).flat_map(|step| [vec![batch_of(0, step)], vec![batch_of(1, step)]]);
    let one = one_worker(&steps.collect::<Vec<_>>());
    assert_ends_as("two on their own", unseen, &one);
}

/// Whichever two of three workers a step is made of, it is as good as another two.
#[test]
fn synchronous_workers_with_a_backup_end_where_one_worker_ends() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 3)]).unwrap();
    let work = |task: u64| {
        let model = Model::of_worker(task, Some((2, 3)));
        let target = cluster.target("worker", task as u32).unwrap();
        let session = model.session(target, task).hook(StopAtStepHook::at(STEPS));
        let mut session = session.start().unwrap();
        let mut step = 0;
        while !session.should_stop() {
            let feeds = model.feeds(batches(&[batch_of(task, step)], BATCH));
            step += 1;
            match session.run_fed(&feeds, &model.train) {
                Ok(()) => {}
                // The chief is done and hands out no more tokens.
                Err(status) if status.code() == Code::OutOfRange => assert!(task != 0),
                Err(status) => panic!("{status}"),
            }
        }
        session.close().unwrap();
    };
    std::thread::scope(|scope| {
        let work = &work;
        for task in 0..3 {
            scope.spawn(move || work(task));
        }
    });
    let steps = (0..STEPS).map(|step| vec![batch_of(0, step), batch_of(1, step)]);
    let one = one_worker(&steps.collect::<Vec<_>>());
    assert_ends_as("two of three in step", loss_in(&cluster), &one);
}
