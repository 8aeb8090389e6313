//! A client may be in any process and open sessions on any server of a cluster, many at once.
//!
//! ```sh
//! tensorfleet up --ps 1 --workers 2      # prints the targets
//! cargo run --example any_server -- grpc://localhost:2223 grpc://localhost:2224
//! ```
//!
//! Without targets it starts two servers of its own.

#![allow(clippy::print_stdout)]

use tensorfleet::{Graph, Result, Server, Session, init};

fn main() -> Result<()> {
    let mut targets: Vec<String> = std::env::args().skip(1).collect();
    let mut own = Vec::new();
    if targets.is_empty() {
        for _ in 0..2 {
            own.push(Server::create_local(Default::default())?);
        }
        targets = own
            .iter()
            .map(|server| server.target().to_owned())
            .collect();
    }

    let g = Graph::new();
    let counter = g
        .variable("counter", &[])
        .initializer(init::zeros())
        .build();
    let next = counter.assign_add(g.constant(1.0f32));

    for target in &targets {
        // Two sessions on one server see the same variable.
        let first = Session::connect(&g, target)?;
        let second = Session::connect(&g, target)?;
        first.run(counter.initializer())?;
        first.run(&next)?;
        second.run(&next)?;
        let count = second.run(&counter)?.to_scalar::<f32>()?;
        let devices = first.list_devices()?;
        println!("{target}: counted to {count} in two sessions");
        for device in devices {
            println!("  {}", device.name);
        }
    }
    Ok(())
}
