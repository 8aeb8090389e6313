//! [`Lanes`]: blocking calls without a thread of their own.
//!
//! A lane is a connection and the event loop that drives it. Whoever calls takes a free lane, drives it
//! until the answer is there, and puts it back: no other thread is woken on the way, and callers that
//! come at the same time each have a lane of their own.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tensorfleet_status::{Result, failed_precondition, internal};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::grpc::Limits;
use crate::master_client::MasterClient;

/// Connections to one server for callers that block.
pub(crate) struct Lanes {
    target: String,
    limits: Limits,
    token: Option<String>,
    free: Mutex<Vec<Lane>>,
}

struct Lane {
    /// Before the runtime: what it holds of the connection goes first.
    client: MasterClient,
    runtime: Runtime,
}

impl Lanes {
    pub(crate) fn new(target: &str, limits: Limits, token: Option<&str>) -> Result<Lanes> {
        crate::master_client::address(target)?;
        Ok(Lanes {
            target: target.to_owned(),
            limits,
            token: token.map(str::to_owned),
            free: Mutex::default(),
        })
    }

    /// Makes calls and waits for them.
    pub(crate) fn call<T, F>(&self, call: impl FnOnce(MasterClient) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        if Handle::try_current().is_ok() {
            return Err(failed_precondition!(
                "this call blocks and was made from async code: use MasterClient there, or tokio::task::spawn_blocking"
            ));
        }
        let free = self.lock().pop();
        let lane = match free {
            Some(lane) => lane,
            None => self.open()?,
        };
        let result = lane.runtime.block_on(call(lane.client.clone()));
        self.lock().push(lane);
        result
    }

    fn open(&self) -> Result<Lane> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| internal!("no event loop for a connection: {error}"))?;
        let client = MasterClient::new(&self.target, self.limits.clone(), self.token.as_deref())?;
        Ok(Lane { client, runtime })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Lane>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
