//! `tensorfleet reset`: closes sessions and clears state.

use std::io::Write;

use anyhow::Result;
use tensorfleet_proto::ResetRequest;

use crate::args::ResetArgs;

pub(crate) fn run(args: &ResetArgs, out: &mut dyn Write) -> Result<()> {
    let request = ResetRequest {
        container: args.containers.clone(),
        ..ResetRequest::default()
    };
    super::ask(
        &args.target,
        None,
        args.timeout,
        |client, options| async move { client.reset(&request, &options).await },
    )?;
    match args.containers.as_slice() {
        [] => writeln!(
            out,
            "{}: sessions closed, default containers cleared",
            args.target
        )?,
        names => writeln!(
            out,
            "{}: sessions closed, cleared {}",
            args.target,
            names.join(", ")
        )?,
    }
    Ok(())
}
