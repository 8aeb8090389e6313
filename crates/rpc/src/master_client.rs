//! [`MasterClient`]: TensorFlow's MasterService, called from async code.

use prost::Message;
use tensorfleet_cluster::split_address;
use tensorfleet_proto as pb;
use tensorfleet_proto::services::{master as path, worker};
use tensorfleet_status::{Result, invalid_argument};

use crate::admin;
use crate::grpc::{CallOptions, Channel, Limits};

/// Calls to a server's master. Clones share the connection.
#[derive(Clone)]
pub struct MasterClient {
    channel: Channel,
}

/// The address in a target: `grpc://host:port` or `host:port`.
pub(crate) fn address(target: &str) -> Result<&str> {
    let address = target.strip_prefix("grpc://").unwrap_or(target);
    if address.contains("://") {
        return Err(invalid_argument!(
            "target {target} is not of the form grpc://host:port"
        ));
    }
    split_address(address).map_err(|error| error.context(format_args!("target {target}")))?;
    Ok(address)
}

impl MasterClient {
    /// A client of the server at `grpc://host:port`; nothing is opened before the first call.
    pub fn new(target: &str, limits: Limits, token: Option<&str>) -> Result<MasterClient> {
        let channel = Channel::with_token(address(target)?, limits, token);
        Ok(MasterClient { channel })
    }

    async fn call<Q: Message, A: Message + Default>(
        &self,
        path: &'static str,
        request: &Q,
        options: &CallOptions,
    ) -> Result<A> {
        self.channel.unary(path, request, options).await
    }
}

/// One method per call of a service.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident: $path:expr, $request:ty => $response:ty;)+) => {
        impl MasterClient {
            $(
                $(#[$doc])*
                pub async fn $name(
                    &self,
                    request: &$request,
                    options: &CallOptions,
                ) -> Result<$response> {
                    self.call($path, request, options).await
                }
            )+
        }
    };
}

calls! {
    /// Opens a session with a graph.
    create_session: path::CREATE_SESSION, pb::CreateSessionRequest => pb::CreateSessionResponse;
    /// Adds nodes to a session's graph.
    extend_session: path::EXTEND_SESSION, pb::ExtendSessionRequest => pb::ExtendSessionResponse;
    /// Runs a step.
    run_step: path::RUN_STEP, pb::RunStepRequest => pb::RunStepResponse;
    /// Prepares a partial run.
    partial_run_setup: path::PARTIAL_RUN_SETUP, pb::PartialRunSetupRequest => pb::PartialRunSetupResponse;
    /// Prepares a callable.
    make_callable: path::MAKE_CALLABLE, pb::MakeCallableRequest => pb::MakeCallableResponse;
    /// Calls a callable.
    run_callable: path::RUN_CALLABLE, pb::RunCallableRequest => pb::RunCallableResponse;
    /// Forgets a callable.
    release_callable: path::RELEASE_CALLABLE, pb::ReleaseCallableRequest => pb::ReleaseCallableResponse;
    /// The devices of a session or of the cluster.
    list_devices: path::LIST_DEVICES, pb::ListDevicesRequest => pb::ListDevicesResponse;
    /// Closes a session.
    close_session: path::CLOSE_SESSION, pb::CloseSessionRequest => pb::CloseSessionResponse;
    /// Closes all sessions and clears containers.
    reset: path::RESET, pb::ResetRequest => pb::ResetResponse;
    /// The worker's devices: every TensorFlow server answers.
    get_status: worker::GET_STATUS, pb::GetStatusRequest => pb::GetStatusResponse;
    /// What a TensorFleet server is doing; others answer UNIMPLEMENTED.
    admin_status: admin::STATUS, admin::StatusRequest => admin::StatusResponse;
    /// Stops a TensorFleet server.
    admin_stop: admin::STOP, admin::StopRequest => admin::StopResponse;
}
