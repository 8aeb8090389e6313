//! Moving large tensors between memory and files, with the checksum computed on the way.
//!
//! Reading is split into chunks that a few threads take in turn: copying out of the page cache, the
//! page faults of fresh memory and the checksum all scale. Writing one file does not (the kernel
//! locks the file), so there only the checksum runs beside it.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use tensorfleet_status::{Result, internal};

use crate::crc;
use crate::fs::{ReadFile, WriteFile};

/// Reads of one thread at a time: large enough for few system calls, small enough that the checksum
/// finds the bytes in the cache.
const PIECE: usize = 512 << 10;

/// Writes of this size at a time. Measured on ext4 (Linux 6.18, 400 MB, sizes in turns): 0.18 s of system
/// time up to 256 KiB, 0.5 to 0.9 s on average from 512 KiB on.
const WRITE_PIECE: usize = 256 << 10;

/// What a thread takes at once.
const CHUNK: usize = 4 << 20;

/// Below this, starting a thread costs more than it gains.
const PARALLEL_FROM: usize = 4 << 20;

/// From here on the checksum of what is written runs on its own thread. Lower would gain little when
/// the cores are idle, and lose much when they are busy: the writer waits until the thread had its turn.
const SUM_BESIDE_FROM: usize = 64 << 20;

/// More threads than this do not make memory faster.
const MAX_THREADS: usize = 8;

/// A stretch of a file to be read into memory.
pub(super) struct ReadRequest<'a> {
    pub(super) file: &'a dyn ReadFile,
    pub(super) offset: u64,
    pub(super) target: &'a mut [u8],
}

/// Fills all targets; gives the (unmasked) checksum of each.
pub(super) fn read_all(requests: Vec<ReadRequest<'_>>) -> Vec<Result<u32>> {
    let total: usize = requests.iter().map(|request| request.target.len()).sum();
    let count = requests.len();
    let mut chunks = Vec::new();
    for (index, request) in requests.into_iter().enumerate() {
        let mut offset = request.offset;
        if request.target.is_empty() {
            continue;
        }
        for target in request.target.chunks_mut(CHUNK) {
            let file = request.file;
            let len = target.len();
            chunks.push((
                index,
                ReadRequest {
                    file,
                    offset,
                    target,
                },
            ));
            offset = offset.saturating_add(len as u64);
        }
    }
    let threads = if total < PARALLEL_FROM {
        1
    } else {
        thread_count().min(chunks.len())
    };
    let done = run(chunks, threads);
    join_sums(count, done)
}

/// Checksum of a stretch of a file, read in pieces and not kept.
pub(super) fn checksum(file: &dyn ReadFile, offset: u64, len: u64) -> Result<u32> {
    let mut piece = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE))];
    let (mut sum, mut done) = (0, 0);
    while done < len {
        let size = usize::try_from(len - done)
            .unwrap_or(usize::MAX)
            .min(piece.len());
        let target = piece.get_mut(..size).unwrap_or_default();
        file.read_at(offset.saturating_add(done), target)?;
        sum = crc::extend(sum, target);
        done += size as u64;
    }
    Ok(sum)
}

/// Appends the bytes; extends the (unmasked) checksum by them.
pub(super) fn append(file: &mut dyn WriteFile, mut sum: u32, bytes: &[u8]) -> Result<u32> {
    if bytes.len() < SUM_BESIDE_FROM || thread_count() < 2 {
        for piece in bytes.chunks(WRITE_PIECE) {
            sum = crc::extend(sum, piece);
            file.append(piece)?;
        }
        return Ok(sum);
    }
    thread::scope(|scope| {
        let own = scope.spawn(|| crc::crc32c(bytes));
        for piece in bytes.chunks(WRITE_PIECE) {
            file.append(piece)?;
        }
        match own.join() {
            Ok(own) => Ok(crc::combine(sum, own, bytes.len())),
            Err(_) => Err(internal!("the checksum thread panicked")),
        }
    })
}

/// Number of chunk, its length, its checksum.
type Done = (usize, usize, Result<u32>);

/// Runs the chunks on `threads` threads, this one included. Results come in order of the chunks.
fn run(chunks: Vec<(usize, ReadRequest<'_>)>, threads: usize) -> Vec<Done> {
    if threads <= 1 {
        return chunks
            .into_iter()
            .map(|(index, chunk)| read_chunk(index, chunk))
            .collect();
    }
    let count = chunks.len();
    let queue = Mutex::new(chunks.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(count));
    let work = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((order, (index, chunk))) = next else {
                return;
            };
            let result = read_chunk(index, chunk);
            done.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((order, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(order, _)| *order);
    done.into_iter().map(|(_, result)| result).collect()
}

fn read_chunk(index: usize, chunk: ReadRequest<'_>) -> Done {
    let len = chunk.target.len();
    let mut offset = chunk.offset;
    let mut sum = 0;
    for piece in chunk.target.chunks_mut(PIECE) {
        if let Err(status) = chunk.file.read_at(offset, piece) {
            return (index, len, Err(status));
        }
        sum = crc::extend(sum, piece);
        offset = offset.saturating_add(piece.len() as u64);
    }
    (index, len, Ok(sum))
}

/// Joins the checksums of chunks to those of requests; the first error of a request wins.
fn join_sums(count: usize, done: Vec<Done>) -> Vec<Result<u32>> {
    let mut sums: Vec<Result<u32>> = (0..count).map(|_| Ok(0)).collect();
    for (index, len, result) in done {
        let Some(slot) = sums.get_mut(index) else {
            continue;
        };
        match (&*slot, result) {
            (Err(_), _) => {}
            (Ok(before), Ok(sum)) => *slot = Ok(crc::combine(*before, sum, len)),
            (Ok(_), Err(status)) => *slot = Err(status),
        }
    }
    sums
}

fn thread_count() -> usize {
    thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS)
}
