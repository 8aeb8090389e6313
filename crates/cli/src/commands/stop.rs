//! `tensorfleet stop`: ends a server.

use std::io::Write;

use anyhow::{Result, anyhow};
use tensorfleet_rpc::admin::StopRequest;
use tensorfleet_status::{Code, Status};

use crate::args::StopArgs;

pub(crate) fn run(args: &StopArgs, out: &mut dyn Write) -> Result<()> {
    let request = StopRequest {
        grace_seconds: args.grace,
    };
    let token = args.token.as_deref();
    super::ask(
        &args.target,
        token,
        args.timeout,
        |client, options| async move { client.admin_stop(&request, &options).await },
    )
    .map_err(|error| match error.downcast_ref::<Status>() {
        Some(status) if status.code() == Code::Unimplemented => anyhow!(
            "{} is no server of TensorFleet and cannot be stopped from outside: end its process",
            args.target
        ),
        _ => error,
    })?;
    writeln!(out, "{} is stopping", args.target)?;
    Ok(())
}
