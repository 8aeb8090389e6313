//! `tensorfleet devices`: what a server's cluster computes with.

use std::io::Write;

use anyhow::Result;
use serde_json::json;
use tensorfleet_proto::ListDevicesRequest;

use crate::args::TargetArgs;
use crate::output;

pub(crate) fn run(args: &TargetArgs, out: &mut dyn Write) -> Result<()> {
    let response = super::ask(
        &args.target,
        None,
        args.timeout,
        |client, options| async move {
            client
                .list_devices(&ListDevicesRequest::default(), &options)
                .await
        },
    )?;
    let local = response.local_device.iter().map(|device| (device, true));
    let remote = response.remote_device.iter().map(|device| (device, false));
    let devices: Vec<_> = local.chain(remote).collect();
    if args.json {
        let list = devices.iter().map(|(device, local)| {
            json!({
                "name": device.name,
                "type": device.device_type,
                "memory_limit": device.memory_limit,
                "incarnation": format!("{:016x}", device.incarnation),
                "local": local,
            })
        });
        return output::json(out, &json!({"devices": list.collect::<Vec<_>>()}));
    }
    let rows: Vec<Vec<String>> = devices
        .iter()
        .map(|(device, _)| {
            vec![
                device.name.clone(),
                device.device_type.clone(),
                format!("{:016x}", device.incarnation),
            ]
        })
        .collect();
    output::table(out, &rows)?;
    Ok(())
}
