//! The `tensorfleet` binary: argv in, text or JSON out, exit code 0 (done), 1 (failed) or 2 (misuse).

mod args;
mod cluster;
mod commands;
mod demo;
mod graph_file;
mod npy;
mod output;
mod serving;
mod tasks;
mod values;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = match args.command {
        Command::Demo(args) => demo::run(&args, &mut out),
        Command::DemoWorker(args) => demo::worker::run(&args, &mut out),
        Command::Run(run) => commands::run::run(&run, &mut out),
        Command::Inspect(inspect) => commands::inspect::run(&inspect, &mut out),
        Command::Ops(ops) => commands::ops::run(&ops, &mut out),
        Command::Checkpoint(checkpoint) => commands::checkpoint::run(&checkpoint.command, &mut out),
        Command::Serve(serve) => commands::serve::run(&serve, &mut out),
        Command::Local(local) => commands::serve::run_local(&local, &mut out),
        Command::Up(up) => commands::up::run(&up, &mut out),
        Command::Devices(target) => commands::devices::run(&target, &mut out),
        Command::Status(target) => commands::status::run(&target, &mut out),
        Command::Doctor(doctor) => commands::doctor::run(&doctor, &mut out),
        Command::Stop(stop) => commands::stop::run(&stop, &mut out),
        Command::Reset(reset) => commands::reset::run(&reset, &mut out),
    };
    match result.and_then(|()| out.flush().map_err(Into::into)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Whatever was printed before the error belongs before it; a second failure has nowhere to go.
            let _ = out.flush();
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::from(if error.is::<output::Misuse>() { 2 } else { 1 })
        }
    }
}

/// A reader that has seen enough (`tensorfleet ops | head`) is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
