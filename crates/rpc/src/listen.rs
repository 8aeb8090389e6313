//! Where a server listens, and what to do where it cannot.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use tensorfleet_cluster::ServerSpec;
use tensorfleet_status::{Result, Status, unavailable};

/// Binds the own address of a task, or its port on another host.
pub(crate) fn listen(spec: &ServerSpec, other_host: Option<&str>) -> Result<TcpListener> {
    let port = spec.listen_port()?;
    let host = match other_host {
        Some(host) => host,
        None => spec.host()?,
    };
    let addresses = addresses(host, port).map_err(|error| {
        unavailable!(
            "cannot listen on {host}:{port}: the name does not resolve here ({error}); correct it in the cluster, or \
             listen on all interfaces with --bind 0.0.0.0"
        )
    })?;
    let listener = bind(&addresses).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|error| refused(host, port, &error))
}

/// Listens on the first of these addresses that this machine has. If somebody else listens there, the next one is no
/// way out: clients would come to the other one.
pub(crate) fn bind(addresses: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut missing = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpListener::bind(address) {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => missing = error,
            bound => return bound,
        }
    }
    Err(missing)
}

/// All addresses of a host, those first that a client tries who tries only one.
pub(crate) fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    // An IPv6 address is in brackets where a port follows, and without them where none does.
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut addresses: Vec<SocketAddr> = (bare, port).to_socket_addrs()?.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    Ok(addresses)
}

/// What the system has against it, and the remedy.
fn refused(host: &str, port: u16, error: &io::Error) -> Status {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another process listens there (ss -ltnp 'sport = :{port}' says which): stop it, or give this task another \
             port; if the cluster's address is not this machine's own, name the own one with --bind"
        ),
        io::ErrorKind::AddrNotAvailable => format!(
            "{host} is no address of this machine: start the task where it belongs, or, if others reach this machine \
             by that address, listen with --bind 0.0.0.0"
        ),
        io::ErrorKind::PermissionDenied => {
            "this user may not: ports below 1024 are the system's, give the task a higher one"
                .to_owned()
        }
        _ => "give the task another address, or listen elsewhere with --bind".to_owned(),
    };
    unavailable!("cannot listen on {host}:{port}: {error}; {remedy}")
}

#[cfg(test)]
mod tests {
    use tensorfleet_cluster::ClusterSpec;

    use super::*;

    fn task_at(address: &str) -> ServerSpec {
        let cluster = ClusterSpec::from_jobs([("worker", [address])]).unwrap();
        ServerSpec::new(cluster, None, None).unwrap()
    }

    #[track_caller]
    fn says(error: &Status, words: &[&str]) {
        for word in words {
            assert!(error.message().contains(word), "{error}");
        }
    }

    #[test]
    fn a_taken_port_is_named_with_who_may_have_it() {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = held.local_addr().unwrap();
        let error = listen(&task_at(&address.to_string()), None).unwrap_err();
        let who = format!("ss -ltnp 'sport = :{}'", address.port());
        says(
            &error,
            &[&address.to_string(), "another port", &who, "--bind"],
        );
    }

    #[test]
    fn addresses_of_other_machines_and_unknown_names_are_told_apart() {
        // Kept free for documentation.
        let elsewhere = task_at("192.0.2.1:0");
        let error = listen(&elsewhere, None).unwrap_err();
        says(
            &error,
            &["no address of this machine", "--bind 0.0.0.0", "192.0.2.1"],
        );
        assert!(listen(&elsewhere, Some("127.0.0.1")).is_ok());
        let error = listen(&task_at("no-such-host.invalid:1"), None).unwrap_err();
        says(&error, &["does not resolve", "--bind"]);
    }

    #[test]
    fn who_is_at_the_first_address_has_them_all() {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = held.local_addr().unwrap();
        let mut other = taken;
        other.set_ip([127, 0, 0, 2].into());
        let error = bind(&[taken, other]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        // Another machine's.
        let elsewhere = "192.0.2.1:0".parse().unwrap();
        assert!(bind(&[elsewhere, other]).is_ok());
    }

    #[test]
    fn privileges_are_a_cause_of_their_own() {
        let error = refused("here", 80, &io::ErrorKind::PermissionDenied.into());
        says(&error, &["here:80", "below 1024"]);
    }
}
