//! [`Reader`]: takes tensors from where another task keeps them.

use std::io::IoSliceMut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use tensorfleet_math::par::{Par, Pool, chunks_mut};
use tensorfleet_proto::{RecvTensorRequest, RecvTensorResponse, TensorProto};
use tensorfleet_status::{Result, internal, invalid_argument, resource_exhausted};
use tensorfleet_tensor::{Buffer, PortType, Shape};

use super::{Location, OFFER, Offer, host, pack};

/// Up to this size reading takes less time than finding a thread that may block.
const INLINE_TO: u64 = 2 << 20;

/// A thread that reads as much has earned its waking.
const GRAIN: usize = 256 << 10;

/// What one task knows about reading another one's memory.
pub(crate) struct Reader {
    /// Helps with what is large: one core copies slower than memory can.
    pool: Arc<Pool>,
    /// It was tried and did not work, or is not wanted.
    gave_up: AtomicBool,
}

impl Reader {
    pub(crate) fn new(enabled: bool, pool: Arc<Pool>) -> Reader {
        Reader {
            pool,
            gave_up: AtomicBool::new(!enabled),
        }
    }

    /// Tells the sender that its memory could be read.
    pub(crate) fn offer(&self, request: &mut RecvTensorRequest) {
        if let Some(host) = host()
            && !self.gave_up.load(Ordering::Relaxed)
        {
            let host = host.to_owned();
            request.transport_options = Some(pack(OFFER, &Offer { host }));
        }
    }

    /// Fills the tensor of an answer in. After an error this sender gets no more offers.
    pub(crate) async fn fill(
        &self,
        answer: &mut RecvTensorResponse,
        location: Location,
        request_id: i64,
    ) -> Result<()> {
        let tensor = answer.tensor.get_or_insert_default();
        let read = async {
            check_len(tensor, location.len)?;
            if location.len <= INLINE_TO {
                return read(&*self.pool, &location, request_id as u64);
            }
            let pool = self.pool.clone();
            tokio::task::spawn_blocking(move || read(&*pool, &location, request_id as u64))
                .await
                .unwrap_or_else(|error| Err(internal!("reading a tensor was given up: {error}")))
        };
        match read.await {
            Ok(content) => {
                tensor.tensor_content = content;
                answer.transport_options = None;
                Ok(())
            }
            Err(error) => {
                self.gave_up.store(true, Ordering::Relaxed);
                Err(error)
            }
        }
    }
}

/// What is read must be what the tensor holds: nobody makes us allocate anything else.
fn check_len(tensor: &TensorProto, len: u64) -> Result<()> {
    let dtype = PortType::from_number(tensor.dtype)?.dtype;
    let fits = match (dtype.size(), &tensor.tensor_shape) {
        (Some(size), Some(shape)) if dtype.is_plain() => {
            size as u64 * Shape::from_proto(shape)?.elements() as u64 == len
        }
        // Encoded values are as long as they are, but no longer than a message.
        _ => len <= i32::MAX as u64,
    };
    if fits {
        Ok(())
    } else {
        Err(invalid_argument!(
            "a {dtype} tensor is said to have {len} bytes, which is not what its shape needs"
        ))
    }
}

/// Reads the content, then sees that it was still lent to this request.
fn read(par: &dyn Par, location: &Location, request_id: u64) -> Result<Bytes> {
    let pid = i32::try_from(location.pid)
        .map(Pid::from_raw)
        .map_err(|_| invalid_argument!("no process has the id {}", location.pid))?;
    let mut content = Buffer::try_new(location.len as usize).ok_or_else(|| {
        resource_exhausted!("there is no memory for a tensor of {} bytes", location.len)
    })?;
    if let Some(target) = content.bytes_mut() {
        let failed = Mutex::new(None);
        chunks_mut(par, target, GRAIN, |offset, chunk| {
            let address = location.address.wrapping_add(offset as u64);
            if let Err(error) = copy(pid, address, chunk) {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
    }
    let mut proof = [0; 8];
    copy(pid, location.proof, &mut proof)?;
    if u64::from_ne_bytes(proof) != request_id {
        return Err(internal!(
            "the tensor was gone before process {pid} could be read"
        ));
    }
    Ok(content.to_shared())
}

fn copy(pid: Pid, address: u64, target: &mut [u8]) -> Result<()> {
    let mut done = 0;
    while done < target.len() {
        let rest = &mut target[done..];
        let remote = RemoteIoVec {
            base: (address as usize).wrapping_add(done),
            len: rest.len(),
        };
        match process_vm_readv(pid, &mut [IoSliceMut::new(rest)], &[remote]) {
            Ok(0) => return Err(internal!("process {pid} has no memory at {address:#x}")),
            Ok(count) => done += count,
            Err(error) => {
                return Err(internal!(
                    "the memory of process {pid} cannot be read: {error}"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tensorfleet_math::par::Serial;

    use super::*;

    fn location(content: &[u8], proof: &u64) -> Location {
        Location {
            pid: std::process::id(),
            address: content.as_ptr().addr() as u64,
            len: content.len() as u64,
            proof: std::ptr::from_ref(proof).addr() as u64,
        }
    }

    #[test]
    fn reads_what_is_still_lent() {
        let pool = Pool::new(2);
        for len in [100_000, 3 * GRAIN + 5] {
            let content: Vec<u8> = (0..len).map(|byte| (byte % 251) as u8).collect();
            let proof = 7;
            let location = location(&content, &proof);
            assert_eq!(read(&pool, &location, 7).unwrap(), content);
            let error = read(&pool, &location, 8).unwrap_err();
            assert!(error.message().contains("was gone"), "{error}");
        }
    }

    #[test]
    fn refuses_what_is_not_there() {
        let (content, proof) = ([1u8; 16], 7);
        let there = location(&content, &proof);
        let nowhere = [
            Location {
                address: 8,
                ..there
            },
            Location { proof: 8, ..there },
            Location {
                address: u64::MAX - 4,
                ..there
            },
            Location {
                pid: u32::MAX,
                ..there
            },
            Location {
                pid: i32::MAX as u32,
                ..there
            },
        ];
        for location in nowhere {
            assert!(read(&Serial, &location, 7).is_err(), "{location:?}");
        }
    }

    #[test]
    fn refuses_lengths_that_are_not_the_tensors() {
        let tensor = tensorfleet_tensor::Tensor::vector(&[1f32; 100]);
        let proto = tensor.to_proto().unwrap();
        assert!(check_len(&proto, 400).is_ok());
        assert!(check_len(&proto, 1 << 40).is_err());
        assert!(check_len(&TensorProto { dtype: 7, ..proto }, 1 << 40).is_err());
    }
}
