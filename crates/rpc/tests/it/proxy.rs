//! [`Proxy`]: a network between two servers that can be cut without either hearing of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Carries connections to another address, unless it is cut.
pub(crate) struct Proxy {
    address: String,
    cut: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) fn new(target: &str) -> Proxy {
        let listener = TcpListener::bind("localhost:0").unwrap();
        let address = format!("localhost:{}", listener.local_addr().unwrap().port());
        let cut = Arc::new(AtomicBool::new(false));
        let (target, is_cut) = (target.to_owned(), cut.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (target, is_cut) = (target.clone(), is_cut.clone());
                thread::spawn(move || {
                    while is_cut.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(5));
                    }
                    if let Ok(server) = TcpStream::connect(&target) {
                        carry(client, server, &is_cut);
                    }
                });
            }
        });
        Proxy { address, cut }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// From now on nothing comes through, or everything again that comes new.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }
}

fn carry(client: TcpStream, server: TcpStream, cut: &Arc<AtomicBool>) {
    let ways = [
        (client.try_clone().unwrap(), server.try_clone().unwrap()),
        (server, client),
    ];
    for (mut from, mut to) in ways {
        let cut = cut.clone();
        thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(len) = from.read(&mut buffer)
                && len > 0
            {
                while cut.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(5));
                }
                if to.write_all(&buffer[..len]).is_err() {
                    break;
                }
            }
            // Either end may be closed already.
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
    }
}
