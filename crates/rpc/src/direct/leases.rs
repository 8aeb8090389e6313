//! [`Leases`]: tensors kept where they are while other tasks read them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tensorfleet_proto::{RecvTensorRequest, RecvTensorResponse};

use super::{DIRECT_FROM, LOCATION, Location, OFFER, Offer, host, pack, unpack};

/// A receiver that has not read a tensor by then is taken for dead.
pub(crate) const LEASE_TIME: Duration = Duration::from_secs(60);

/// How many tensors may be lent at once; more are sent in messages.
const MOST: usize = 256;

/// The answers whose tensors are being read, by the id of the request.
pub(crate) struct Leases {
    enabled: bool,
    /// One word for each lease: the request's id while the lease lasts. Readers look at it last.
    proofs: Box<[AtomicU64]>,
    state: Mutex<State>,
    bytes: AtomicU64,
}

struct State {
    free: Vec<usize>,
    held: FxHashMap<i64, Lease>,
}

struct Lease {
    slot: usize,
    step_id: i64,
    since: Instant,
    answer: RecvTensorResponse,
}

impl Leases {
    pub(crate) fn new(enabled: bool) -> Leases {
        Leases {
            enabled,
            proofs: (0..MOST).map(|_| AtomicU64::new(0)).collect(),
            state: Mutex::new(State {
                free: (0..MOST).collect(),
                held: FxHashMap::default(),
            }),
            bytes: AtomicU64::new(0),
        }
    }

    /// Whether the sender of a request can read our memory.
    pub(crate) fn is_offer(&self, request: &RecvTensorRequest) -> bool {
        self.enabled
            && request.request_id != 0
            && unpack::<Offer>(OFFER, request.transport_options.as_ref())
                .is_some_and(|offer| host().is_some_and(|host| host == offer.host))
    }

    /// Says where the tensor is instead of sending it, if that pays.
    pub(crate) fn lend(
        &self,
        request_id: i64,
        step_id: i64,
        mut answer: RecvTensorResponse,
    ) -> RecvTensorResponse {
        let Some(tensor) = &mut answer.tensor else {
            return answer;
        };
        if tensor.tensor_content.len() < DIRECT_FROM {
            return answer;
        }
        let mut state = self.lock();
        if state.held.contains_key(&request_id) {
            return answer;
        }
        let Some(slot) = state.free.pop() else {
            return answer;
        };
        let content = tensor.tensor_content.clone();
        let mut told = answer.clone();
        if let Some(tensor) = &mut told.tensor {
            tensor.tensor_content.clear();
        }
        let lease = Lease {
            slot,
            step_id,
            since: Instant::now(),
            answer,
        };
        state.held.insert(request_id, lease);
        let proof = &self.proofs[slot];
        proof.store(request_id as u64, Ordering::Release);
        drop(state);
        self.bytes
            .fetch_add(content.len() as u64, Ordering::Relaxed);
        let location = Location {
            pid: std::process::id(),
            address: content.as_ptr().addr() as u64,
            len: content.len() as u64,
            proof: std::ptr::from_ref(proof).addr() as u64,
        };
        told.require_ack = true;
        told.transport_options = Some(pack(LOCATION, &location));
        told
    }

    /// Ends a lease: its tensor was read, or is wanted in a message after all.
    pub(crate) fn end(&self, request_id: i64) -> Option<RecvTensorResponse> {
        let mut state = self.lock();
        let lease = state.held.remove(&request_id)?;
        // Before the tensor is let go, so that whoever reads its memory afterwards notices.
        self.proofs[lease.slot].store(0, Ordering::Release);
        state.free.push(lease.slot);
        Some(lease.answer)
    }

    /// Ends the leases of a step.
    pub(crate) fn end_step(&self, step_id: i64) {
        self.end_where(|lease| lease.step_id == step_id);
    }

    /// Ends the leases of receivers that never came back.
    pub(crate) fn end_old(&self) {
        self.end_where(|lease| lease.since.elapsed() >= LEASE_TIME);
    }

    /// How many tensors are lent now, and how many bytes were lent in all.
    pub(crate) fn usage(&self) -> (usize, u64) {
        (self.lock().held.len(), self.bytes.load(Ordering::Relaxed))
    }

    fn end_where(&self, over: impl Fn(&Lease) -> bool) {
        let ended: Vec<i64> = {
            let state = self.lock();
            let over = state.held.iter().filter(|(_, lease)| over(lease));
            over.map(|(request_id, _)| *request_id).collect()
        };
        for request_id in ended {
            self.end(request_id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tensorfleet_proto::TensorProto;

    use super::*;

    fn answer(len: usize) -> RecvTensorResponse {
        RecvTensorResponse {
            tensor: Some(TensorProto {
                tensor_content: Bytes::from(vec![1; len]),
                ..TensorProto::default()
            }),
            ..RecvTensorResponse::default()
        }
    }

    fn is_lent(answer: &RecvTensorResponse) -> bool {
        Location::of(answer).is_some()
    }

    #[test]
    fn lends_what_is_large_until_it_was_read() {
        let leases = Leases::new(true);
        assert!(!is_lent(&leases.lend(1, 7, answer(DIRECT_FROM - 1))));
        assert!(is_lent(&leases.lend(1, 7, answer(DIRECT_FROM))));
        // An id names one lease only.
        assert!(!is_lent(&leases.lend(1, 7, answer(DIRECT_FROM))));
        assert_eq!(leases.usage(), (1, DIRECT_FROM as u64));
        assert_eq!(leases.end(1), Some(answer(DIRECT_FROM)));
        assert_eq!(leases.end(1), None);
        assert_eq!(leases.usage().0, 0);
    }

    #[test]
    fn ends_leases_with_their_step() {
        let leases = Leases::new(true);
        leases.lend(1, 7, answer(DIRECT_FROM));
        leases.lend(2, 8, answer(DIRECT_FROM));
        leases.end_old();
        assert_eq!(leases.usage().0, 2);
        leases.end_step(7);
        assert!(leases.end(1).is_none() && leases.end(2).is_some());
    }

    #[test]
    fn sends_messages_when_too_many_tensors_are_lent() {
        let leases = Leases::new(true);
        for id in 1..=MOST as i64 {
            assert!(is_lent(&leases.lend(id, id, answer(DIRECT_FROM))));
        }
        assert!(!is_lent(&leases.lend(-1, 0, answer(DIRECT_FROM))));
        leases.end(5);
        assert!(is_lent(&leases.lend(-1, 0, answer(DIRECT_FROM))));
    }
}
