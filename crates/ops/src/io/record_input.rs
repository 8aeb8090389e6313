//! `RecordInput`: batches of records out of all files that match, shuffled, without end.
//!
//! TensorFlow: RecordInput() -> records: string[batch_size], with attrs file_pattern: string (patterns parted by commas),
//! file_random_seed: int = 301, file_shuffle_shift_ratio: float = 0, file_buffer_size: int = 10000, file_parallelism: int =
//! 16, batch_size: int = 32, compression_type: string = "". Every epoch has each record once; records leave a buffer in
//! random order. Where we differ: files are read when records are wanted, not before, and by one thread, so that the order
//! is the same for the same seed; file_parallelism says how many are open at a time. Files without any records are NOT_FOUND.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tensorfleet_checkpoint::fs;
use tensorfleet_checkpoint::packed::{self, Packing, RecordStream};
use tensorfleet_graph::example::script;
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, cancelled, ensure, invalid_argument, not_found};
use tensorfleet_tensor::{DType, PartialShape, Shape, TString, Tensor};

pub(crate) static OP: OpDef = OpDef {
    name: "RecordInput",
    outputs: &["records: string"],
    attrs: &[
        "file_pattern: string",
        "file_random_seed: int = 301",
        "file_shuffle_shift_ratio: float = 0.0",
        "file_buffer_size: int = 10000",
        "file_parallelism: int = 16",
        "batch_size: int = 32",
        "compression_type: string = ''",
    ],
    stateful: true,
    infer: infer_batch,
    gradient: Gradient::Stop("files are not differentiated"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Expensive,
    exactness: Exactness::Shape,
    // Scripts can only show failures: where files may be written, only a test can say.
    scripts: &[script(
        "no files, no batches",
        "r = RecordInput() {file_pattern='no/such/a*,no/such/b*'}
         s = RecordInput() {file_pattern='x', batch_size=-1}
         t = RecordInput() {file_pattern='x', file_parallelism=-1}
         u = RecordInput() {file_pattern='no/such/a*', batch_size=0}",
        &[
            "fetch r fails NOT_FOUND Found no files at no/such/a*,no/such/b*",
            "fetch s fails INVALID_ARGUMENT batch_size must be non-negative but got -1",
            "fetch t fails INVALID_ARGUMENT file_parallelism should >= 0, got -1",
            "fetch u => string[0]{}",
        ],
    )],
    ..OpDef::BLANK
};

fn infer_batch(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, PartialShape::new(&[ctx.attrs().int("batch_size")?]));
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let open_at_once = attrs.int("file_parallelism")?;
    ensure!(
        open_at_once >= 0,
        invalid_argument,
        "file_parallelism should >= 0, got {open_at_once}"
    );
    let batch = attrs.int("batch_size")?;
    let batch = usize::try_from(batch)
        .map_err(|_| invalid_argument!("batch_size must be non-negative but got {batch}"))?;
    let records = Mutex::new(Records {
        pattern: attrs.str("file_pattern")?.to_owned(),
        packing: Packing::named(attrs.str("compression_type")?),
        shift: attrs.float("file_shuffle_shift_ratio")?,
        buffer_size: usize::try_from(attrs.int("file_buffer_size")?)
            .unwrap_or(0)
            .max(1),
        open_at_once: usize::try_from(open_at_once).unwrap_or(0).max(1),
        random: Random(attrs.int("file_random_seed")? as u64),
        waiting: VecDeque::new(),
        open: VecDeque::new(),
        buffer: Vec::new(),
    });
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Tensor::new(DType::String, Shape::vector(batch))?;
        for slot in out.slice_mut::<TString>()? {
            if ctx.is_cancelled() {
                return Err(cancelled!("read operation was cancelled"));
            }
            *slot = records.next_record()?;
        }
        ctx.set(0, out);
        Ok(())
    })
}

/// What is left of an epoch.
struct Records {
    pattern: String,
    packing: Packing,
    /// By which part of their number shuffled files are rotated.
    shift: f32,
    buffer_size: usize,
    open_at_once: usize,
    random: Random,
    waiting: VecDeque<String>,
    open: VecDeque<(String, RecordStream)>,
    /// In random order.
    buffer: Vec<TString>,
}

impl Records {
    fn next_record(&mut self) -> Result<TString> {
        if self.buffer.is_empty() && self.open.is_empty() && self.waiting.is_empty() {
            self.begin_epoch()?;
        }
        while self.buffer.len() < self.buffer_size
            && let Some(record) = self.read()?
        {
            let at = self.random.below(self.buffer.len() + 1);
            self.buffer.push(record);
            let last = self.buffer.len() - 1;
            self.buffer.swap(at, last);
        }
        let record = self.buffer.pop();
        record.ok_or_else(|| not_found!("Found no records at {}", self.pattern))
    }

    /// Finds all files, and shuffles them.
    fn begin_epoch(&mut self) -> Result<()> {
        let mut files = Vec::new();
        for pattern in self.pattern.split(',') {
            files.extend(fs::for_path(pattern)?.glob(pattern)?);
        }
        ensure!(
            !files.is_empty(),
            not_found,
            "Found no files at {}",
            self.pattern
        );
        for last in (1..files.len()).rev() {
            files.swap(last, self.random.below(last + 1));
        }
        if (0.0..1.0).contains(&self.shift) {
            let shift = (self.shift * files.len() as f32) as usize;
            let shift = shift.min(files.len());
            files.rotate_left(shift);
        }
        self.waiting = files.into();
        Ok(())
    }

    /// The next record of the files that are open, in turn.
    fn read(&mut self) -> Result<Option<TString>> {
        loop {
            while self.open.len() < self.open_at_once
                && let Some(path) = self.waiting.pop_front()
            {
                let file = fs::for_path(&path)?.open(&path);
                let file = file.map_err(|_| invalid_argument!("Can't open {path}"))?;
                let stream = RecordStream::new(packed::stream(file, self.packing));
                self.open.push_back((path, stream));
            }
            let Some((path, mut stream)) = self.open.pop_front() else {
                return Ok(None);
            };
            if let Some(record) = stream.next_record(&path)? {
                self.open.push_back((path, stream));
                return Ok(Some(record.into()));
            }
        }
    }
}

/// SplitMix64: small, and good enough to shuffle.
struct Random(u64);

impl Random {
    /// A number below `limit`, which is at least one.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((u128::from(bits) * limit as u128) >> 64) as usize
    }
}
