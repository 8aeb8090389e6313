//! `tensorfleet stop`: ends a server.

use std::io::Write;

use anyhow::Result;
use tensorfleet_rpc::admin::StopRequest;

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
    )?;
    writeln!(out, "{} is stopping", args.target)?;
    Ok(())
}
