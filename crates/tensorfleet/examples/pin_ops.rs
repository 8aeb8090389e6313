//! Ops pinned to tasks: variables on the parameter servers, products on the workers.
//!
//! ```sh
//! cargo run --example pin_ops                                        # a cluster in this process
//! cargo run --example pin_ops -- grpc://localhost:2223               # any server of a cluster of 2 ps, 2 workers
//! ```

#![allow(clippy::print_stdout)]

use tensorfleet::{Graph, LocalCluster, Result, Session, init};

fn main() -> Result<()> {
    // Two parameter servers and two workers, unless there is a cluster already.
    let (cluster, target) = match std::env::args().nth(1) {
        Some(target) => (None, target),
        None => {
            let cluster = LocalCluster::start(&[("ps", 2), ("worker", 2)])?;
            let target = cluster.target("worker", 0)?.to_owned();
            (Some(cluster), target)
        }
    };

    let g = Graph::new();
    let weights = {
        let _on_first = g.device("/job:ps/task:0/cpu:0");
        g.variable("weights", &[2, 2])
            .initializer(init::tensor(tensorfleet::tensor([
                [1.0f32, 2.0],
                [3.0, 4.0],
            ])?))
            .build()
    };
    let bias = {
        let _on_second = g.device("/job:ps/task:1/cpu:0");
        g.variable("bias", &[2]).initializer(init::ones()).build()
    };
    let x = g.constant([[1.0f32, 1.0]]);
    let halves: Vec<_> = (0..2)
        .map(|task| {
            let _on_worker = g.device(&format!("/job:worker/task:{task}"));
            (x.matmul(&weights) + &bias) * 0.5
        })
        .collect();
    let whole = g
        .device("/job:worker/task:0")
        .run(|| &halves[0] + &halves[1]);

    let session = Session::connect(&g, &target)?;
    session.run(&g.global_variables_initializer())?;
    let value = session.run(&whole)?;
    println!("{:?}", value.slice::<f32>()?);
    for op in g.operations().iter().filter(|op| !op.device().is_empty()) {
        println!("{:40} {}", op.name(), op.device());
    }
    drop(cluster);
    Ok(())
}
