//! The command that shows what this is about: `demo`, and the workers it starts.

use std::path::PathBuf;

use super::ServeArgs;

/// Train a network on a cluster of processes on this machine, and watch it.
#[derive(clap::Args)]
#[command(after_help = "\
Parameter servers and workers are processes of their own. The workers train a small convolutional network on 3,823
handwritten digits that are part of this program, every worker by itself, with the variables on the parameter
servers; the chief, worker 0, writes checkpoints and summaries and tries the network on 1,797 other digits. A task
that is killed, by --kill-a-ps, by --kill-a-worker or by you, is started again, and training goes on from the last
checkpoint. With --dir, so does the next demo.

On a terminal it draws; elsewhere it prints lines. NO_COLOR takes the colours away. Ctrl-C stops it.

Examples:
  tensorfleet demo
  tensorfleet demo --kill-a-ps --kill-a-worker
  tensorfleet demo --ps 3 --workers 4 --dir runs/digits --keep")]
pub(crate) struct DemoArgs {
    /// Parameter servers.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) ps: u32,
    /// Workers.
    #[arg(long, alias = "worker", value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) workers: u32,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    /// Kill a parameter server on the way.
    #[arg(long = "kill-a-ps", alias = "kill_a_ps")]
    pub(crate) kill_a_ps: bool,
    /// Kill a worker on the way.
    #[arg(long = "kill-a-worker", alias = "kill_a_worker")]
    pub(crate) kill_a_worker: bool,
    /// Where checkpoints and events go; a new temporary directory if left out. One that has checkpoints is gone on
    /// with.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Leave the cluster up at the end, until Ctrl-C.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print JSON, one line an event.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How to train.
#[derive(clap::Args, Clone)]
pub(crate) struct TrainingArgs {
    /// The global step to end with; all workers count.
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: u64,
    /// Images in a batch of one worker.
    #[arg(long = "batch_size", alias = "batch-size", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=3823))]
    pub(crate) batch_size: u32,
    /// Decides the first weights and the order of the images.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

impl TrainingArgs {
    /// The flags that tell another process the same.
    pub(crate) fn flags(&self) -> Vec<String> {
        let TrainingArgs {
            steps,
            batch_size,
            seed,
        } = self;
        vec![
            format!("--steps={steps}"),
            format!("--batch_size={batch_size}"),
            format!("--seed={seed}"),
        ]
    }
}

/// One worker of the demo: serves its task, trains, and tells about it on stdout.
#[derive(clap::Args)]
pub(crate) struct DemoWorkerArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    /// Where checkpoints and events go.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
}
