//! [`LocalCluster`]: all servers of a cluster in this process, on loopback.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::time::Duration;

use tensorfleet_cluster::{ClusterSpec, ServerSpec};
use tensorfleet_status::{Result, not_found, unavailable};

use crate::listen::{addresses, bind};
use crate::server::{Server, ServerOptions};

/// A cluster on this machine whose servers run in this process: for examples, tests and trying out.
///
/// ```
/// use tensorfleet_rpc::{LocalCluster, Session};
///
/// let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)])?;
/// let session = Session::connect(cluster.target("worker", 0)?)?;
/// assert_eq!(session.list_devices()?.len(), 3);
/// # Ok::<(), tensorfleet_status::Status>(())
/// ```
pub struct LocalCluster {
    spec: ClusterSpec,
    options: ServerOptions,
    servers: BTreeMap<(String, u32), Server>,
}

impl LocalCluster {
    /// Starts so many tasks of each job.
    pub fn start(jobs: &[(&str, usize)]) -> Result<LocalCluster> {
        LocalCluster::start_with(jobs, ServerOptions::default())
    }

    /// Like [`start`](Self::start), every server with these options.
    pub fn start_with(jobs: &[(&str, usize)], options: ServerOptions) -> Result<LocalCluster> {
        let count = jobs.iter().map(|(_, count)| count).sum();
        let ports = free_ports("localhost", count);
        let ports = ports.map_err(|error| unavailable!("no free port on localhost: {error}"))?;
        let mut ports = ports.into_iter();
        let spec = ClusterSpec::from_jobs(jobs.iter().map(|(job, count)| {
            let addresses = ports.by_ref().take(*count);
            let addresses = addresses.map(|port| format!("localhost:{port}"));
            (*job, addresses.collect::<Vec<_>>())
        }))?;
        let mut cluster = LocalCluster {
            spec,
            options,
            servers: BTreeMap::new(),
        };
        for (job, count) in jobs {
            for task in 0..*count {
                cluster.start_task(job, task as u32)?;
            }
        }
        Ok(cluster)
    }

    /// All tasks and their addresses.
    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// The server of a task that is up.
    pub fn server(&self, job: &str, task: u32) -> Result<&Server> {
        let server = self.servers.get(&(job.to_owned(), task));
        server.ok_or_else(|| not_found!("/job:{job}/task:{task} is not up"))
    }

    /// Where sessions on a task are opened.
    pub fn target(&self, job: &str, task: u32) -> Result<&str> {
        self.server(job, task).map(Server::target)
    }

    /// Starts a task that is not up, without anything it may have held before.
    pub fn start_task(&mut self, job: &str, task: u32) -> Result<()> {
        let spec = ServerSpec::new(self.spec.clone(), Some(job), Some(task))?;
        let server = Server::new(spec, self.options.clone())?;
        server.start()?;
        self.servers.insert((job.to_owned(), task), server);
        Ok(())
    }

    /// Takes a task away at once, with all it holds.
    pub fn kill_task(&mut self, job: &str, task: u32) -> Result<()> {
        self.server(job, task)?;
        if let Some(server) = self.servers.remove(&(job.to_owned(), task)) {
            server.stop_within(Duration::ZERO);
            server.join();
        }
        Ok(())
    }
}

/// Ports on a host that nobody listens on. They are held all at once, so that no two are the same; another
/// process may still take one before it is used.
///
/// They are not of those that the system gives to outgoing connections, as far as there are enough: a server
/// that comes back must not find its port taken by somebody who is looking for it.
pub fn free_ports(host: &str, count: usize) -> std::io::Result<Vec<u16>> {
    let addresses = addresses(host, 0)?;
    let hold = |port: u16| {
        let mut addresses = addresses.clone();
        addresses
            .iter_mut()
            .for_each(|address| address.set_port(port));
        bind(&addresses)
    };
    let quiet = quiet_ports().filter_map(|port| hold(port).ok());
    let mut held: Vec<TcpListener> = quiet.take(count).collect();
    while held.len() < count {
        held.push(hold(0)?);
    }
    held.iter()
        .map(|listener| Ok(listener.local_addr()?.port()))
        .collect()
}

/// Ports below those of outgoing connections, beginning anywhere: processes that look at the same time shall
/// not meet.
fn quiet_ports() -> impl Iterator<Item = u16> {
    const FIRST: u16 = 10_000;
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let outgoing = range
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok());
    let end: u16 = outgoing.unwrap_or(FIRST).max(FIRST);
    let anywhere = RandomState::new().hash_one(std::process::id());
    let count = u64::from(end - FIRST);
    (0..count).map(move |step| FIRST + (anywhere.wrapping_add(step) % count) as u16)
}

#[cfg(test)]
mod tests {
    use super::free_ports;

    #[test]
    fn free_ports_are_all_different() {
        let mut ports = free_ports("localhost", 20).unwrap();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20);
    }
}
