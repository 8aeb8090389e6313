//! Hello, distributed TensorFlow: a server in this process and a session on it.
//!
//! ```sh
//! cargo run --example hello
//! ```

#![allow(clippy::print_stdout)]

use tensorfleet::{Graph, Result, Server, Session, TString};

fn main() -> Result<()> {
    let g = Graph::new();
    let hello = g.constant("Hello, distributed TensorFlow!");

    let server = Server::create_local(Default::default())?;
    let session = Session::connect(&g, server.target())?;
    let said = session.run(&hello)?;
    println!("{}", String::from_utf8_lossy(&said.slice::<TString>()?[0]));
    Ok(())
}
