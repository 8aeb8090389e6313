//! `bench-train --ps ADDRESSES --workers ADDRESSES [--models LIST] [--seconds S] [--rounds N]`: the Rust client
//! trains on a cluster.
//!
//! One thread per worker runs asynchronous steps of a model whose variables are on the parameter servers. The
//! batch lies in variables of the worker, so that nothing is fed. Prints one line of JSON per model: steps per
//! second of each round. `tests/reference/bench_train.py` does the same with TensorFlow's client.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tensorfleet_client::{
    DType, Graph, Operation, Output, Session, SessionOptions, Variable, init, ops,
};
use tensorfleet_train::{
    Adagrad, Minimize, Optimizer, ReplicaDeviceSetter, get_or_create_global_step,
};

const USAGE: &str = "usage: bench-train --ps ADDRESSES --workers ADDRESSES [--models logreg,mlp,cnn,wide] [--seconds S] [--rounds N]";

struct Options {
    ps: Vec<String>,
    workers: Vec<String>,
    models: Vec<String>,
    round: Duration,
    rounds: usize,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Options> {
        let list = |text: String| text.split(',').map(str::to_owned).collect();
        let mut options = Options {
            ps: Vec::new(),
            workers: Vec::new(),
            models: list("logreg,mlp,cnn,wide".to_owned()),
            round: Duration::from_secs(3),
            rounds: 3,
        };
        while let Some(arg) = args.next() {
            let value = args
                .next()
                .with_context(|| format!("{arg} needs a value"))?;
            match arg.as_str() {
                "--ps" => options.ps = list(value),
                "--workers" => options.workers = list(value),
                "--models" => options.models = list(value),
                "--seconds" => options.round = Duration::try_from_secs_f64(value.parse()?)?,
                "--rounds" => options.rounds = value.parse()?,
                _ => bail!("unknown option {arg}\n{USAGE}"),
            }
        }
        if options.ps.is_empty() || options.workers.is_empty() {
            bail!("{USAGE}");
        }
        Ok(options)
    }
}

fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    for model in &options.models {
        let trained = train(model, &options)?;
        writeln!(io::stdout(), "{trained}")?;
    }
    Ok(())
}

fn train(model: &str, options: &Options) -> Result<serde_json::Value> {
    let mut replicas = Vec::new();
    for (task, address) in options.workers.iter().enumerate() {
        let replica = Replica::build(model, options.ps.len(), task)?;
        let target = format!("grpc://{address}");
        let session = Session::with_options(&replica.graph, SessionOptions::target(&target))?;
        if task == 0 {
            session.run(&replica.graph.global_variables_initializer())?;
        }
        session.run(&replica.graph.local_variables_initializer())?;
        replicas.push((replica, session));
    }
    for (replica, session) in &replicas {
        for _ in 0..3 {
            session.run(&replica.step)?;
        }
    }
    let mut rates = Vec::new();
    for _ in 0..options.rounds {
        rates.push(round(&replicas, options.round)?);
    }
    let (replica, session) = &replicas[0];
    let loss = session.run(&replica.loss)?.to_scalar::<f32>()?;
    Ok(json!({"model": model, "steps_per_s": rates, "loss": loss}))
}

/// Steps per second of all replicas together.
fn round(replicas: &[(Replica, Session)], time: Duration) -> Result<f64> {
    let began = Instant::now();
    let counts: Vec<Result<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = replicas
            .iter()
            .map(|(replica, session)| {
                scope.spawn(move || {
                    let step = session.callable(&[], &replica.step)?;
                    let mut count = 0;
                    while began.elapsed() < time {
                        step.call(&[])?;
                        count += 1;
                    }
                    Ok(count)
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| {
            let panicked = |_| bail!("a replica panicked");
            thread.join().unwrap_or_else(panicked)
        });
        joined.collect()
    });
    let steps: u64 = counts.into_iter().sum::<Result<u64>>()?;
    Ok(steps as f64 / began.elapsed().as_secs_f64())
}

struct Replica {
    graph: Graph,
    loss: Output,
    step: Operation,
}

impl Replica {
    fn build(model: &str, ps: usize, task: usize) -> Result<Replica> {
        let g = Graph::new();
        let worker = format!("/job:worker/task:{task}");
        let (x, y) = g.device(&worker).run(|| batch(&g, model, task));
        let setter = ReplicaDeviceSetter::new()
            .ps_tasks(ps)
            .worker_device(&worker);
        let _devices = g.device_function(setter.build()?);
        let loss = match model {
            "logreg" => classify(&logreg(&g, &x), &y),
            "mlp" => classify(&mlp(&g, &x), &y),
            "cnn" => classify(&cnn(&g, &x), &y),
            "wide" => wide(&g, &x, &y),
            other => bail!("there is no model {other}"),
        };
        let global_step = get_or_create_global_step(&g)?;
        let step = Adagrad::new(0.01).minimize_with(&loss, &Minimize::step(&global_step))?;
        g.check()?;
        Ok(Replica {
            graph: g,
            loss,
            step,
        })
    }
}

/// The batch in variables of the worker, random numbers by the task.
fn batch(g: &Graph, model: &str, task: usize) -> (Output, Output) {
    let seed = 1 + task as i64;
    if model == "wide" {
        let draw = |dims: &[i32], high: i32| {
            let (low, high) = (g.constant(0i32), g.constant(high));
            let drawn = ops::random_uniform_int(g.constant(dims), low, high);
            drawn.seed(seed).seed2(seed).output()
        };
        let ids = draw(&[1024, 26], 1_000_000).cast(DType::I64);
        return (ids, draw(&[1024], 2).cast(DType::F32));
    }
    let (rows, dims): (i64, &[i64]) = match model {
        "logreg" => (100, &[784]),
        "mlp" => (128, &[784]),
        _ => (64, &[28, 28, 1]),
    };
    let local = |name: &str, dims: &[i64], dtype, high: f64| {
        let variable = g.variable(&format!("{name}{task}"), dims).local();
        let random = init::uniform(0.0, high).seed(seed);
        let start = move |g: &Graph, request: init::Request<'_>| {
            use init::Initializer;
            let floats = init::Request {
                dtype: DType::F32,
                ..request
            };
            random.initial_value(g, floats).cast(dtype)
        };
        variable.dtype(dtype).initializer(start).build().read()
    };
    let x = local("in_x", &[&[rows], dims].concat(), DType::F32, 1.0);
    (x, local("in_y", &[rows], DType::I64, 10.0))
}

fn weights(g: &Graph, name: &str, dims: &[i64]) -> Variable {
    let inputs: i64 = dims[..dims.len() - 1].iter().product();
    let stddev = (2.0 / inputs.max(1) as f64).sqrt();
    let normal = init::normal(0.0, stddev).seed(1);
    g.get_variable(name, dims).initializer(normal).build()
}

fn classify(logits: &Output, labels: &Output) -> Output {
    let loss = ops::sparse_softmax_cross_entropy_with_logits(logits, labels).outputs();
    loss.loss.mean(&[])
}

fn logreg(g: &Graph, x: &Output) -> Output {
    x.matmul(weights(g, "w", &[784, 10])) + &weights(g, "b", &[10])
}

fn mlp(g: &Graph, x: &Output) -> Output {
    let mut hidden = x.clone();
    for (layer, (rows, columns)) in [(784, 500), (500, 300), (300, 10)].into_iter().enumerate() {
        let w = weights(g, &format!("w{layer}"), &[rows, columns]);
        let b = weights(g, &format!("b{layer}"), &[columns]);
        hidden = hidden.matmul(&w).bias_add(&b);
        if layer < 2 {
            hidden = hidden.relu();
        }
    }
    hidden
}

fn cnn(g: &Graph, x: &Output) -> Output {
    let mut image = x.clone();
    for (layer, (from, to)) in [(1, 32), (32, 64)].into_iter().enumerate() {
        let filter = weights(g, &format!("c{layer}"), &[5, 5, from, to]);
        let bias = weights(g, &format!("cb{layer}"), &[to]);
        let convolved = ops::conv2d(&image, &filter, &[1, 1, 1, 1], "SAME").output();
        let active = convolved.bias_add(&bias).relu();
        image = ops::max_pool(&active, &[1, 2, 2, 1], &[1, 2, 2, 1], "SAME").output();
    }
    let flat = image.reshape(&[-1, 7 * 7 * 64]);
    let hidden = (flat.matmul(weights(g, "d1", &[3136, 512])) + &weights(g, "db1", &[512])).relu();
    hidden.matmul(weights(g, "d2", &[512, 10])) + &weights(g, "db2", &[10])
}

fn wide(g: &Graph, ids: &Output, labels: &Output) -> Output {
    let table = g.get_variable("emb", &[1_000_000, 64]);
    let table = table
        .initializer(init::uniform(-0.01, 0.01).seed(1))
        .build();
    let summed = table.gather(ids).sum(&[1]);
    let logits = summed.matmul(weights(g, "o", &[64, 1])).reshape(&[-1]);
    let zero = logits.zeros_like();
    // log(1 + e^x) without overflow: max(x, 0) - x·y + log(1 + e^-|x|).
    let tail = ops::log1p((-logits.abs()).exp()).output();
    (logits.maximum(&zero) - &logits * labels + tail).mean(&[])
}
