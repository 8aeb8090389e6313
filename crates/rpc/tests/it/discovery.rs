//! Opening sessions while tasks are missing: who is missing, and why, is said.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use tensorfleet_proto as pb;
use tensorfleet_rpc::grpc::CallOptions;
use tensorfleet_rpc::{ConnectOptions, Server, Session};
use tensorfleet_status::{Code, Status};

use crate::cluster::{Scripted, free_address, task};
use crate::common::{PATIENCE, Raw, assert_status};

/// Why no session can be opened on a cluster with this address in it.
fn refusal(address: &str) -> Status {
    let addresses = [free_address(), address.to_owned()];
    let master = task(&addresses, 0);
    open(&master, Duration::from_secs(3))
}

fn open(master: &Server, timeout: Duration) -> Status {
    let options = ConnectOptions {
        timeout: Some(timeout),
        ..ConnectOptions::default()
    };
    let begin = Instant::now();
    let status = Session::connect_with(master.target(), options)
        .map(drop)
        .unwrap_err();
    assert!(begin.elapsed() < PATIENCE);
    status
}

fn assert_missing(status: Status, reason: &str) {
    let task = "/job:worker/replica:0/task:1";
    assert_status(Err::<(), _>(status.clone()), Code::DeadlineExceeded, task);
    assert_status(Err::<(), _>(status), Code::DeadlineExceeded, reason);
}

#[test]
fn nobody_listens() {
    assert_missing(refusal(&free_address()), "onnection refused");
}

#[test]
fn a_name_that_is_none() {
    let status = refusal("no-such-host.invalid:2222");
    assert_missing(status, "the name cannot be resolved");
}

#[test]
fn a_server_that_says_nothing() {
    let silent = TcpListener::bind("localhost:0").unwrap();
    let address = format!("localhost:{}", silent.local_addr().unwrap().port());
    assert_missing(refusal(&address), "no answer yet");
}

#[test]
fn a_server_of_something_else() {
    let web = TcpListener::bind("localhost:0").unwrap();
    let address = format!("localhost:{}", web.local_addr().unwrap().port());
    thread::spawn(move || {
        let mut clients = Vec::new();
        for mut client in web.incoming().flatten() {
            // Whatever it says.
            let _ = client.read(&mut [0; 100]);
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            clients.push(client);
        }
    });
    assert_missing(refusal(&address), "it is no gRPC server");
}

#[test]
fn the_config_s_timeout_counts_without_a_deadline_of_the_call() {
    let addresses = [free_address(), free_address()];
    let master = task(&addresses, 0);
    let raw = Raw::new(master.target());
    let request = pb::CreateSessionRequest {
        config: Some(pb::ConfigProto {
            operation_timeout_in_ms: 1000,
            ..pb::ConfigProto::default()
        }),
        ..pb::CreateSessionRequest::default()
    };
    let opened = raw.runtime.block_on(async {
        let options = CallOptions::default();
        tokio::time::timeout(PATIENCE, raw.master.create_session(&request, &options))
            .await
            .unwrap()
    });
    assert_status(opened, Code::DeadlineExceeded, "task:1");
}

#[test]
fn another_task_at_an_address_is_taken_under_the_name_of_the_cluster() {
    let addresses = [free_address(), free_address()];
    let master = task(&addresses, 0);
    let device = "/job:ps/replica:0/task:7/device:CPU:0".to_owned();
    let _other = Scripted::with_device(&addresses[1], device, Vec::new());
    let session = Session::connect(master.target()).unwrap();
    let devices = session.list_devices().unwrap();
    assert_eq!(devices[1].name, "/job:worker/replica:0/task:1/device:CPU:0");
}

#[test]
fn listing_devices_and_resetting_name_who_is_missing_too() {
    let addresses = [free_address(), free_address()];
    let master = task(&addresses, 0);
    let raw = Raw::new(master.target());
    let within = || CallOptions {
        deadline: Some(tokio::time::Instant::now() + Duration::from_secs(2)),
        wait_for_ready: true,
    };
    let listed = raw.call(|master, _| async move {
        let request = pb::ListDevicesRequest::default();
        master.list_devices(&request, &within()).await
    });
    assert_missing(listed.map(drop).unwrap_err(), "onnection refused");
    let reset = raw.call(|master, _| async move {
        let request = pb::ResetRequest::default();
        master.reset(&request, &within()).await
    });
    assert_missing(reset.map(drop).unwrap_err(), "onnection refused");
}
