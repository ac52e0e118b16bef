//! A registry on the engine's own loopback, with one small image and one that is for no machine of ours.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::net::sockopt::socket_peercred;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// A registry that serves until the test's process ends.
pub(crate) struct Registry {
    port: u16,
}

/// What is served: a path's last part, its type and its bytes.
type Things = Vec<(String, &'static str, Vec<u8>)>;

impl Registry {
    /// One in the network of whoever listens at an engine's socket: engines of the tests have networks of their own.
    pub(crate) fn beside(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("the engine listens");
        let engine = socket_peercred(&stream).expect("a peer").pid;
        let network = File::open(format!("/proc/{}/ns/net", engine.as_raw_nonzero())).expect("its network");
        let things = Arc::new(things());
        let (told, port) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            use std::os::fd::AsFd;
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may");
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            told.send(listener.local_addr().expect("an address").port()).expect("the test waits");
            for stream in listener.incoming().flatten() {
                let things = Arc::clone(&things);
                std::thread::spawn(move || serve(stream, &things));
            }
        });
        Self { port: port.recv().expect("it listens") }
    }

    /// What an image of it is called.
    pub(crate) fn image(&self, tag: &str) -> String {
        format!("127.0.0.1:{}/wharf-pulled:{tag}", self.port)
    }
}

/// Answers what is asked over one connection.
fn serve(mut stream: TcpStream, things: &Things) {
    let mut lines = BufReader::new(stream.try_clone().expect("a descriptor"));
    loop {
        let (mut request, mut header) = (String::new(), String::new());
        if lines.by_ref().take(8192).read_line(&mut request).unwrap_or(0) == 0 {
            return;
        }
        while lines.by_ref().take(8192).read_line(&mut header).is_ok_and(|count| count > 2) {
            header.clear();
        }
        let mut words = request.split(' ');
        let (verb, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let last = path.rsplit('/').next().unwrap_or_default();
        let found = things.iter().find(|(name, ..)| name == last);
        let (status, kind, body): (_, _, &[u8]) = match found {
            _ if path == "/v2/" => ("200 OK", "application/json", b"{}"),
            Some((_, kind, body)) => ("200 OK", kind, body),
            None => ("404 Not Found", "application/json", br#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#),
        };
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nDocker-Content-Digest: {}\r\n\r\n",
            body.len(),
            digest(body)
        )
        .into_bytes();
        if verb != "HEAD" {
            answer.extend_from_slice(body);
        }
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}

/// An image of one layer, by its tag and its parts' digests, and a list that has none for our processor.
fn things() -> Things {
    let layer = layer();
    let processor = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let config = json!({
        "architecture": processor, "os": "linux", "config": {"Cmd": ["/bin/sh"]},
        "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
    });
    let config = config.to_string().into_bytes();
    let part = |kind: &str, bytes: &[u8]| -> Value {
        json!({"mediaType": kind, "size": bytes.len(), "digest": digest(bytes)})
    };
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": part("application/vnd.docker.container.image.v1+json", &config),
        "layers": [part("application/vnd.docker.image.rootfs.diff.tar.gzip", &layer)],
    });
    let manifest = manifest.to_string().into_bytes();
    let mut elsewhere = part(MANIFEST, &manifest);
    elsewhere["platform"] = json!({"architecture": "s390x", "os": "linux"});
    let list =
        json!({"schemaVersion": 2, "mediaType": LIST, "manifests": [elsewhere]}).to_string().into_bytes();
    vec![
        (digest(&layer), "application/octet-stream", layer),
        (digest(&config), "application/octet-stream", config),
        (digest(&manifest), MANIFEST, manifest.clone()),
        ("1".to_owned(), MANIFEST, manifest),
        (digest(&list), LIST, list.clone()),
        ("elsewhere".to_owned(), LIST, list),
    ]
}

/// A layer of a few megabytes that no packing makes small, so that fetching it has steps.
fn layer() -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut noise = vec![0; 4 << 20];
    File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut noise)).expect("noise");
    std::fs::write(dir.path().join("noise"), noise).expect("a file");
    let packed =
        Command::new("tar").arg("-C").arg(dir.path()).args(["-c", "noise"]).output().expect("tar runs");
    assert!(packed.status.success());
    packed.stdout
}

fn digest(bytes: &[u8]) -> String {
    let mut sum = Command::new("sha256sum");
    let mut sum = sum.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sha256sum runs");
    sum.stdin.take().expect("a pipe").write_all(bytes).expect("it reads");
    let said = String::from_utf8(sum.wait_with_output().expect("it ends").stdout).expect("text");
    format!("sha256:{}", said.split(' ').next().expect("a sum"))
}
