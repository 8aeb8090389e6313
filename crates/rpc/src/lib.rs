//! gRPC servers and clients for masters and workers. The only crate that knows gRPC.

pub mod grpc;
