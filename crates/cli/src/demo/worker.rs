//! `tensorfleet demo-worker`: serves its task of the demo's cluster and trains beside that, as a worker of
//! distributed TensorFlow does.

use std::io::Write;

use anyhow::Result;

use super::trainer::Trainer;
use crate::args::DemoWorkerArgs;
use crate::cluster;
use crate::commands::runtime;
use crate::commands::serve::READY;
use crate::output::Misuse;
use crate::serving::{Settings, Signals, listen_to_stdin, until_stopped};

pub(crate) fn run(args: &DemoWorkerArgs, out: &mut dyn Write) -> Result<()> {
    let spec = cluster::place(&args.serve).map_err(|error| Misuse(format!("{error:#}")))?;
    let trainer = Trainer {
        cluster: spec.cluster.clone(),
        task: spec.task,
        training: args.training.clone(),
        dir: args.dir.clone(),
    };
    let name = format!("/job:{}/task:{}", spec.job, spec.task);
    let servers = Settings::new(&args.serve.server)?.bind([spec])?;
    let runtime = runtime()?;
    let mut signals = runtime.block_on(async { Signals::new() })?;
    let mut target = String::new();
    for server in &servers {
        server.start()?;
        target = server.target().to_owned();
        writeln!(out, "{READY} {name} at {target}")?;
    }
    out.flush()?;
    let stdin = args.serve.stop_with_stdin.then(listen_to_stdin);
    // Whoever says stop means training too, wherever it is.
    std::thread::spawn(move || {
        until_stopped(&runtime, &mut signals, &servers, stdin);
        std::process::exit(0);
    });
    trainer.train(&target, &mut |message| {
        writeln!(out, "{}", message.to_line())?;
        Ok(out.flush()?)
    })?;
    // Others may still need what this task serves.
    loop {
        std::thread::park();
    }
}
