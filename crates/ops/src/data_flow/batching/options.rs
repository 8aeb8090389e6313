//! [`Options`]: how large batches may be, how long their rows wait, and how many are worked on at a time.

use std::time::Duration;

use tensorfleet_kernel::NodeInfo;
use tensorfleet_status::{Result, ensure, invalid_argument};

/// How many batches of a function without a number of threads are worked on at a time, TensorFlow's limit.
const ADAPTIVE_BATCHES: usize = 64;

/// How many of those may be batches that are not full. TensorFlow begins with this number and changes it by how long batches
/// take; here it stays.
const ADAPTIVE_OPEN: usize = 2;

/// The attributes of a node that batches.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Batches that are worked on at a time.
    pub(super) running: usize,
    /// And of these, batches that were not full.
    pub(super) running_open: usize,
    /// The most rows that one step may bring.
    pub(super) largest_task: usize,
    /// The most rows of a batch.
    pub(super) largest_batch: usize,
    /// Batches that wait, the one that is being filled included.
    pub(super) waiting: usize,
    /// How long the first rows of a batch wait for more.
    pub(super) patience: Duration,
    /// The numbers of rows that a batch is padded to; any if empty.
    pub(super) allowed: Vec<usize>,
    /// What is too large for a batch is split.
    pub(super) splits: bool,
    /// Rows beyond an allowed size wait for the next batch instead of being padded.
    pub(super) trims: bool,
}

impl Options {
    /// Of a `Batch` node.
    pub(super) fn of_batch(node: &NodeInfo) -> Result<Options> {
        let (threads, largest) = (
            int(node, "num_batch_threads")?,
            int(node, "max_batch_size")?,
        );
        ensure!(
            threads > 0,
            invalid_argument,
            "num_batch_threads must be positive; was {threads}"
        );
        let allowed = allowed(node)?;
        if let Some(last) = allowed.last().filter(|last| **last != largest) {
            return Err(invalid_argument!(
                "final entry in allowed_batch_sizes must equal max_batch_size, got {last} and {largest}"
            ));
        }
        Options::new(node, threads as usize, largest, &allowed, false)
    }

    /// Of a `BatchFunction` node.
    pub(super) fn of_function(node: &NodeInfo) -> Result<Options> {
        let (threads, largest) = (
            int(node, "num_batch_threads")?,
            int(node, "max_batch_size")?,
        );
        let adaptive = threads <= 0;
        let splits = node.attrs.bool("enable_large_batch_splitting")?;
        let allowed = allowed(node)?;
        if let Some(last) = allowed.last().filter(|last| !splits && **last != largest) {
            return Err(invalid_argument!(
                "final entry in allowed_batch_sizes must equal max_batch_size when \
                 enable_large_batch_splitting is False, got {last} and {largest}"
            ));
        }
        let running = if adaptive {
            ADAPTIVE_BATCHES
        } else {
            threads as usize
        };
        let options = Options::new(node, running, largest, &allowed, splits || adaptive)?;
        Ok(Options {
            running_open: if adaptive { ADAPTIVE_OPEN } else { running },
            trims: node.attrs.str("batch_padding_policy")? == "BATCH_DOWN",
            ..options
        })
    }

    fn new(
        node: &NodeInfo,
        running: usize,
        largest: i64,
        allowed: &[i64],
        splits: bool,
    ) -> Result<Options> {
        ensure!(
            largest > 0,
            invalid_argument,
            "input_batch_size_limit must be positive; was {largest}"
        );
        let micros = int(node, "batch_timeout_micros")?;
        ensure!(
            micros >= 0,
            invalid_argument,
            "batch_timeout_micros must be non-negative; was {micros}"
        );
        let waiting = int(node, "max_enqueued_batches")?;
        // TensorFlow counts none as one, for the models that say so, unless it splits.
        ensure!(
            waiting > 0 || (waiting == 0 && !splits),
            invalid_argument,
            "max_enqueued_batches must be positive; was {waiting}"
        );
        let largest_batch = allowed.last().copied().unwrap_or(largest);
        ensure!(
            !splits || largest >= largest_batch,
            invalid_argument,
            "When enable_large_batch_splitting is true, input_batch_size_limit must be greater than or equal to \
             max_execution_batch_size."
        );
        Ok(Options {
            running,
            running_open: running,
            largest_task: largest as usize,
            largest_batch: largest_batch as usize,
            waiting: waiting.max(1) as usize,
            patience: Duration::from_micros(micros as u64),
            allowed: allowed.iter().map(|size| *size as usize).collect(),
            splits,
            trims: false,
        })
    }

    /// The number of rows that so many are padded to.
    pub(super) fn padded(&self, rows: usize) -> usize {
        let next = self.allowed.iter().find(|size| **size >= rows);
        next.copied().unwrap_or(rows)
    }

    /// How many of so many rows go into a batch that is not full.
    pub(super) fn trimmed(&self, rows: usize) -> usize {
        if !self.trims || self.padded(rows) == rows {
            return rows;
        }
        let down = self.allowed.iter().rev().find(|size| **size <= rows);
        down.copied().unwrap_or(rows)
    }
}

/// An attribute that TensorFlow reads as int32.
fn int(node: &NodeInfo, name: &str) -> Result<i64> {
    int32(name, node.attrs.int(name)?)
}

fn int32(name: &str, value: i64) -> Result<i64> {
    ensure!(
        i32::try_from(value).is_ok(),
        invalid_argument,
        "Attr {name} has value {value} out of range for an int32"
    );
    Ok(value)
}

/// The allowed sizes, which grow from a first one that is positive.
fn allowed(node: &NodeInfo) -> Result<Vec<i64>> {
    let sizes = node.attrs.ints("allowed_batch_sizes")?.to_vec();
    let mut last = 0;
    for size in &sizes {
        ensure!(
            int32("allowed_batch_sizes", *size)? > last,
            invalid_argument,
            "allowed_batch_sizes entries must be monotonically increasing"
        );
        last = *size;
    }
    Ok(sizes)
}
