//! Paths of the gRPC methods.
//!
//! TensorFlow registers its services under `/tensorflow.…`, not under the package that its own
//! service files declare; only these paths are answered. All methods are unary except
//! [`eager::STREAMING_ENQUEUE`], a bidirectional stream.

/// Declares one constant per method, and `ALL`, from a service's name.
macro_rules! methods {
    ($service:literal: $($name:ident = $method:literal,)+) => {
        /// The service's full name.
        pub const SERVICE: &str = $service;

        /// Every path of this service.
        pub const ALL: &[&str] = &[$($name),+];

        $(
            #[doc = concat!("Method `", $method, "`.")]
            pub const $name: &str = concat!("/", $service, "/", $method);
        )+
    };
}

/// `tensorflow.MasterService`: what a session client calls.
pub mod master {
    methods! { "tensorflow.MasterService":
        CREATE_SESSION = "CreateSession",
        EXTEND_SESSION = "ExtendSession",
        PARTIAL_RUN_SETUP = "PartialRunSetup",
        RUN_STEP = "RunStep",
        CLOSE_SESSION = "CloseSession",
        LIST_DEVICES = "ListDevices",
        RESET = "Reset",
        MAKE_CALLABLE = "MakeCallable",
        RUN_CALLABLE = "RunCallable",
        RELEASE_CALLABLE = "ReleaseCallable",
    }
}

/// `tensorflow.WorkerService`: what masters and other workers call.
pub mod worker {
    methods! { "tensorflow.WorkerService":
        GET_STATUS = "GetStatus",
        CREATE_WORKER_SESSION = "CreateWorkerSession",
        DELETE_WORKER_SESSION = "DeleteWorkerSession",
        REGISTER_GRAPH = "RegisterGraph",
        DEREGISTER_GRAPH = "DeregisterGraph",
        RUN_GRAPH = "RunGraph",
        CLEANUP_GRAPH = "CleanupGraph",
        CLEANUP_ALL = "CleanupAll",
        RECV_TENSOR = "RecvTensor",
        RECV_BUF = "RecvBuf",
        LOGGING = "Logging",
        TRACING = "Tracing",
        COMPLETE_GROUP = "CompleteGroup",
        COMPLETE_INSTANCE = "CompleteInstance",
        GET_STEP_SEQUENCE = "GetStepSequence",
        MARK_RECV_FINISHED = "MarkRecvFinished",
    }
}

/// `tensorflow.eager.EagerService`: what TensorFlow 2 clients call.
pub mod eager {
    methods! { "tensorflow.eager.EagerService":
        CREATE_CONTEXT = "CreateContext",
        UPDATE_CONTEXT = "UpdateContext",
        ENQUEUE = "Enqueue",
        STREAMING_ENQUEUE = "StreamingEnqueue",
        WAIT_QUEUE_DONE = "WaitQueueDone",
        RUN_COMPONENT_FUNCTION = "RunComponentFunction",
        KEEP_ALIVE = "KeepAlive",
        CLOSE_CONTEXT = "CloseContext",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_service_and_method() {
        assert_eq!(master::RUN_STEP, "/tensorflow.MasterService/RunStep");
        assert_eq!(eager::ENQUEUE, "/tensorflow.eager.EagerService/Enqueue");
        assert_eq!(
            (master::ALL.len(), worker::ALL.len(), eager::ALL.len()),
            (10, 16, 8)
        );
    }
}
