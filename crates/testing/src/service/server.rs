//! Runs the model service on the loopback, and lets tests ask what reached it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::dialect;
use super::http::Request;
use super::record::{RecordedRequest, Turn};

/// How a service is started.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The port; 0 takes a free one.
    pub port: u16,
    /// Where the record goes, one JSON object a line.
    pub log: Option<PathBuf>,
    /// Where every request goes, whole, for a look by hand.
    pub dump: Option<PathBuf>,
}

/// A running model service. It ends when it is dropped.
pub struct ModelService {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepts: Option<JoinHandle<()>>,
}

/// What the threads of a service have in common.
pub(super) struct Shared {
    pub(super) record: Mutex<RecordedRequest>,
    pub(super) ended: AtomicBool,
    dump: Option<PathBuf>,
    requests: AtomicUsize,
}

impl Shared {
    /// A number that no other request has.
    pub(super) fn number(&self) -> usize {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn record(&self) -> MutexGuard<'_, RecordedRequest> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelService {
    /// Starts a service on the loopback.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, settings.port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            record: Mutex::new(RecordedRequest::open(settings.log.as_deref())?),
            ended: AtomicBool::new(false),
            dump: settings.dump,
            requests: AtomicUsize::new(0),
        });
        let accepts = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Ok(Self { address, shared, accepts: Some(accepts) })
    }

    /// Where it listens, as `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The user turns so far.
    pub fn turns(&self) -> Vec<Turn> {
        self.shared.record().turns.clone()
    }

    /// How often this exact text was submitted.
    pub fn times(&self, text: &str) -> usize {
        self.shared.record().turns.iter().filter(|turn| turn.text == text).count()
    }

    /// How many answers were not waited for.
    pub fn cut(&self) -> usize {
        self.shared.record().cut
    }

    /// Waits until something holds of the record; whether it came to hold.
    pub fn wait(&self, within: Duration, holds: impl Fn(&RecordedRequest) -> bool) -> bool {
        let deadline = Instant::now() + within;
        loop {
            if holds(&self.shared.record()) {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for ModelService {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // The accepting thread waits for a connection: this is one.
        drop(TcpStream::connect(self.address));
        if let Some(accepts) = self.accepts.take() {
            let _ = accepts.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        if shared.ended.load(Ordering::Relaxed) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        threads.retain(|thread| !thread.is_finished());
        threads.push(std::thread::spawn(move || {
            // An agent that hangs up in the middle is an agent that was interrupted.
            let _ = serve(&stream, &shared);
        }));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // An agent keeps connections open that it never uses.
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let Some(request) = Request::read(stream)? else { return Ok(()) };
    if let Some(dir) = &shared.dump {
        let number = shared.number();
        let name = request.path.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let head = format!("{} {}\n", request.method, request.path);
        let body = [head.as_bytes(), &request.body].concat();
        std::fs::write(dir.join(format!("{number:04}-{name:.60}")), body)?;
    }
    dialect::serve(stream, shared, &request)
}
