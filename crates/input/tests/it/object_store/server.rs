//! A small server of files: what S3 and Google Cloud Storage (by its XML API) answer for a bucket, as far as reading
//! goes, and what web servers answer.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// How many objects one answer lists.
const PAGE: usize = 2;

/// It ends with the test: listener and connections are closed with the last owner.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// By path, `/bucket/name`.
    objects: BTreeMap<String, Vec<u8>>,
    /// So many requests are refused as if it was busy.
    failing: AtomicUsize,
    ended: AtomicUsize,
    ranges: Mutex<Vec<(u64, u64)>>,
    signatures: Mutex<Vec<String>>,
}

struct Request {
    method: String,
    target: String,
    headers: BTreeMap<String, String>,
}

struct Answer {
    status: &'static str,
    headers: String,
    body: Vec<u8>,
}

impl Server {
    pub(crate) fn start(objects: Vec<(&str, Vec<u8>)>) -> Server {
        let objects = objects.into_iter();
        let state = Arc::new(State {
            objects: objects
                .map(|(name, bytes)| (format!("/bucket/{name}"), bytes))
                .collect(),
            ..State::default()
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serving = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if serving.ended.load(Ordering::Acquire) > 0 {
                    return;
                }
                let state = serving.clone();
                std::thread::spawn(move || state.serve(stream));
            }
        });
        Server { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn fail_next(&self, requests: usize) {
        self.state.failing.store(requests, Ordering::Release);
    }

    /// The parts of objects that were asked for, from and up to.
    pub(crate) fn ranges(&self) -> Vec<(u64, u64)> {
        self.state.ranges.lock().unwrap().clone()
    }

    /// Who signed the requests.
    pub(crate) fn signatures(&self) -> Vec<String> {
        self.state.signatures.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.ended.store(1, Ordering::Release);
        // Wakes the listener up, which then ends.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    /// One request after the other, until the client hangs up.
    fn serve(&self, mut stream: TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        while let Some(request) = Request::read(&mut lines) {
            let answer = self.answer(&request);
            let head = format!(
                "HTTP/1.1 {}\r\n{}Content-Length: {}\r\n\r\n",
                answer.status,
                answer.headers,
                answer.body.len()
            );
            let mut bytes = head.into_bytes();
            if request.method != "HEAD" {
                bytes.extend(answer.body);
            }
            if stream.write_all(&bytes).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Request) -> Answer {
        let busy = |left: usize| left.checked_sub(1);
        let failing = &self.failing;
        if failing
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, busy)
            .is_ok()
        {
            return Answer::plain("503 Slow Down");
        }
        if let Some(signature) = request.headers.get("authorization") {
            self.signatures.lock().unwrap().push(signature.clone());
        }
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        let path = &decoded(path);
        match request.method.as_str() {
            "GET" | "HEAD" if path.starts_with("/private") => Answer::plain("403 Forbidden"),
            "GET" if query.contains("list-type=2") => self.list(query),
            "GET" | "HEAD" => self.object(path, request),
            _ => Answer::plain("405 Method Not Allowed"),
        }
    }

    fn object(&self, path: &str, request: &Request) -> Answer {
        let Some(bytes) = self.objects.get(path) else {
            return Answer::plain("404 Not Found");
        };
        let headers = "ETag: \"1\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n".to_owned();
        let range = request.headers.get("range").and_then(|range| {
            let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
            Some((from.parse::<usize>().ok()?, to.parse::<usize>().ok()? + 1))
        });
        let Some((from, to)) = range else {
            let body = bytes.clone();
            return Answer {
                status: "200 OK",
                headers,
                body,
            };
        };
        self.ranges.lock().unwrap().push((from as u64, to as u64));
        let range = format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, bytes.len());
        Answer {
            status: "206 Partial Content",
            headers: headers + &range,
            body: bytes[from..to].to_vec(),
        }
    }

    /// A page of the names that begin with a prefix.
    fn list(&self, query: &str) -> Answer {
        let argument = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let found = pairs.find(|(key, _)| *key == name);
            found.map_or(String::new(), |(_, value)| decoded(value))
        };
        let (prefix, after) = (argument("prefix"), argument("continuation-token"));
        let names = self
            .objects
            .iter()
            .map(|(path, bytes)| (path.strip_prefix("/bucket/").unwrap(), bytes.len()));
        let names = names.filter(|(name, _)| name.starts_with(&prefix) && *name > after.as_str());
        let mut names: Vec<(&str, usize)> = names.collect();
        let more = names.len() > PAGE;
        names.truncate(PAGE);
        let mut body = format!("<ListBucketResult><IsTruncated>{more}</IsTruncated>");
        if let Some((last, _)) = names.last().filter(|_| more) {
            body += &format!("<NextContinuationToken>{last}</NextContinuationToken>");
        }
        for (name, size) in names {
            body += &format!(
                "<Contents><Key>{name}</Key><Size>{size}</Size><ETag>\"1\"</ETag>\
                 <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            );
        }
        body += "</ListBucketResult>";
        Answer {
            status: "200 OK",
            headers: "Content-Type: application/xml\r\n".to_owned(),
            body: body.into_bytes(),
        }
    }
}

/// Text whose odd characters are written as `%` and two hexadecimal digits.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        plain.push(char::from(u8::from_str_radix(digits, 16).unwrap()));
        plain += rest;
    }
    plain
}

impl Answer {
    fn plain(status: &'static str) -> Answer {
        Answer {
            status,
            headers: String::new(),
            body: Vec::new(),
        }
    }
}

impl Request {
    /// The next request of a connection; none has a body.
    fn read(lines: &mut impl BufRead) -> Option<Request> {
        let mut lines = lines.lines().map_while(Result::ok);
        let first = lines.next()?;
        let mut words = first.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let headers = lines
            .take_while(|line| !line.is_empty())
            .filter_map(|line| {
                let (name, value) = line.split_once(':')?;
                Some((name.to_ascii_lowercase(), value.trim().to_owned()))
            });
        Some(Request {
            method,
            target,
            headers: headers.collect(),
        })
    }
}
