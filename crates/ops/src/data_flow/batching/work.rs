//! What is done with a batch: its last step gets it, or a function is called with it.

use std::sync::Arc;

use tensorfleet_kernel::FuncRef;
use tensorfleet_status::{Result, Status, ensure, internal};
use tensorfleet_tensor::{Shape, Tensor};

use super::batcher::Turn;
use super::join;
use super::options::Options;
use super::task::{Task, Work};

/// Works on a batch; its tasks are answered, and `turn` is dropped at the end.
pub(super) fn work(options: &Options, batch: Vec<Task>, turn: Turn) {
    let joined = inputs(options, &batch);
    match (joined, batch.last().map(|task| task.work.clone())) {
        (Ok(inputs), Some(Work::Call(func))) => call(options, &func, inputs, batch, turn),
        (Ok(inputs), _) => emit(inputs, batch),
        (Err(status), _) => fail(batch, &status),
    }
}

fn fail(batch: Vec<Task>, status: &Status) {
    for task in batch {
        (task.done)(Err(status.clone()));
    }
}

fn rows(batch: &[Task]) -> usize {
    batch.iter().map(|task| task.rows).sum()
}

/// The inputs of all tasks, put together and padded with the first row.
fn inputs(options: &Options, batch: &[Task]) -> Result<Vec<Tensor>> {
    let first = batch.first().ok_or_else(|| internal!("Empty batch."))?;
    ensure!(
        batch
            .iter()
            .all(|task| task.inputs.len() == first.inputs.len()),
        invalid_argument,
        "Batching inputs must have equal number of edges"
    );
    let rows = rows(batch);
    let missing = options.padded(rows).saturating_sub(rows);
    let joined = first.inputs.iter().enumerate().map(|(input, padding)| {
        let row = padding.rows(0, missing.min(1))?;
        let tensors = batch.iter().filter_map(|task| task.inputs.get(input));
        let parts: Vec<&Tensor> = tensors.chain(std::iter::repeat_n(&row, missing)).collect();
        join(&*first.env.pool, &parts)
    });
    joined.collect()
}

/// Gives all rows, and whose they are, to the last task; the others get none.
fn emit(inputs: Vec<Tensor>, batch: Vec<Task>) {
    let mut index = Vec::with_capacity(3 * batch.len());
    let mut start = 0;
    for task in &batch {
        let end = start + task.rows as i64;
        index.extend([task.key, start, end]);
        start = end;
    }
    let last = batch.len().saturating_sub(1);
    let outputs = |place: usize, task: &Task| -> Result<Vec<Tensor>> {
        let (mut outputs, index): (Vec<Tensor>, &[i64]) = if place == last {
            (inputs.clone(), &index)
        } else {
            let empty = task.inputs.iter().map(|input| input.rows(0, 0));
            (empty.collect::<Result<_>>()?, &[])
        };
        let shape = Shape::matrix(index.len() / 3, 3)?;
        outputs.push(Tensor::from_slice(shape, index)?);
        outputs.push(Tensor::scalar(task.key));
        Ok(outputs)
    };
    for (place, task) in batch.into_iter().enumerate() {
        let outputs = outputs(place, &task);
        (task.done)(outputs);
    }
}

/// Calls a function with all rows, and gives each task its rows of the results.
fn call(
    options: &Options,
    func: &Arc<FuncRef>,
    mut args: Vec<Tensor>,
    batch: Vec<Task>,
    turn: Turn,
) {
    let Some(last) = batch.last() else {
        return;
    };
    let env = last.env.clone();
    args.extend(last.captured.iter().cloned());
    let padded = options.padded(rows(&batch));
    let done = Box::new(move |results: Result<Vec<Tensor>>| {
        let results = results.and_then(|results| check(&results, &batch, padded).map(|()| results));
        match results {
            Ok(results) => {
                let mut end = 0;
                for task in batch {
                    let start = end;
                    end += task.rows;
                    let own = results.iter().map(|result| result.rows(start, task.rows));
                    (task.done)(own.collect());
                }
            }
            Err(status) => fail(batch, &status),
        }
        drop(turn);
    });
    env.functions.call(func, args, &env, done);
}

/// Whether the results have a row for each row of the batch.
fn check(results: &[Tensor], batch: &[Task], padded: usize) -> Result<()> {
    let rows = rows(batch);
    for result in results {
        ensure!(
            result.rank() > 0,
            failed_precondition,
            "Batched output tensor has 0 dimensions"
        );
        ensure!(
            result.shape().dim(0) == padded,
            failed_precondition,
            "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input tensors. \
             0th dimension size: {}; batch size: {rows}; unbatched tasks size: 0; padding size: {}",
            result.shape().dim(0),
            padded.saturating_sub(rows)
        );
    }
    Ok(())
}
