//! TensorFlow-compatible protocol buffer messages.
//!
//! The `.proto` files in `protos/` are our own, with the names and numbers that TensorFlow puts on
//! the wire and on disk; `cargo xtask codegen` turns them into the code under `src/gen`, which is
//! checked in so that building needs no generator. There is no logic here: conversions live with
//! the types they convert to.
//!
//! Messages of package `tensorflow` are found at the crate root, those of its sub-packages in
//! [`error`], [`distributed_runtime`] and [`eager`]. Bytes fields are [`bytes::Bytes`], so that
//! decoding from a `Bytes` shares the buffer; map fields are `BTreeMap`, so that encoding is
//! deterministic.
//!
//! ```
//! use prost::Message;
//! use tensorfleet_proto::{AttrValue, DataType, GraphDef, NodeDef, attr_value};
//!
//! let mut node = NodeDef { name: "x".into(), op: "Placeholder".into(), ..Default::default() };
//! let float = AttrValue { value: Some(attr_value::Value::Type(DataType::DtFloat as i32)) };
//! node.attr.insert("dtype".into(), float);
//! let graph = GraphDef { node: vec![node], ..Default::default() };
//! assert_eq!(GraphDef::decode(graph.encode_to_vec().as_slice())?, graph);
//! # Ok::<(), prost::DecodeError>(())
//! ```
//!
//! Unknown fields are dropped by decoding: whoever only passes a message on should keep its bytes.

pub mod services;
pub mod text;

pub use google::protobuf::Any;
pub use tensorflow::*;

/// Package `google`: the few well-known types that TensorFlow's messages use.
#[allow(missing_docs, unused_qualifications, clippy::all)]
pub mod google {
    /// Package `google.protobuf`.
    pub mod protobuf {
        include!("gen/google.protobuf.rs");
    }
}

/// Package `tensorflow` and its sub-packages.
#[allow(missing_docs, unused_qualifications, clippy::all)]
pub mod tensorflow {
    include!("gen/tensorflow.rs");

    /// Package `tensorflow.core`.
    pub mod core {
        /// Package `tensorflow.core.platform`: payloads attached to errors.
        pub mod platform {
            include!("gen/tensorflow.core.platform.rs");
        }
    }

    /// Package `tensorflow.distributed_runtime`: payloads that travel in gRPC trailers.
    pub mod distributed_runtime {
        include!("gen/tensorflow.distributed_runtime.rs");
    }

    /// Package `tensorflow.eager`: the eager service of TensorFlow 2 clients.
    pub mod eager {
        include!("gen/tensorflow.eager.rs");
    }

    /// Package `tensorflow.error`: the canonical error codes.
    pub mod error {
        include!("gen/tensorflow.error.rs");
    }
}
