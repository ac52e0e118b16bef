//! An engine that dies in the middle of a start, and what is left there by accident.

mod support;

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bollard::query_parameters::{KillContainerOptionsBuilder, ListContainersOptionsBuilder};
use support::{Bench, on_both};
use wharf_backend::conformance::{until, within};
use wharf_backend::{Backend, Leftover};
use wharf_container::{ContainerBackend, Endpoint, Options};

on_both! {
    a_start_that_a_dying_engine_cuts_off_leaves_nothing_once_it_is_back
    what_is_left_is_told_before_it_is_taken_away
}

/// An engine that dies as soon as it has made a container, before it says so; until it is let back.
struct Dying {
    dead: Arc<AtomicBool>,
}

impl Dying {
    fn at(socket: &Path, engine: &Path) -> Self {
        let listener = UnixListener::bind(socket).expect("a socket");
        let (dead, engine) = (Arc::new(AtomicBool::new(false)), engine.to_owned());
        let shared = Arc::clone(&dead);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                if shared.load(Ordering::SeqCst) {
                    continue;
                }
                let (engine, dead) = (engine.clone(), Arc::clone(&shared));
                std::thread::spawn(move || carry(&caller, &engine, &dead));
            }
        });
        Self { dead }
    }
}

/// Carries a connection both ways; the answer to a creation is never passed on.
fn carry(caller: &UnixStream, engine: &Path, dead: &Arc<AtomicBool>) {
    use std::io::{Read, Write};
    let engine = UnixStream::connect(engine).expect("the engine");
    let (mut from, mut to) = (caller.try_clone().expect("a socket"), engine.try_clone().expect("a socket"));
    let asked = Arc::new(AtomicBool::new(false));
    let creates = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut buffer = [0_u8; 8 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let words: &[u8] = b"/containers/create";
            if buffer[..count].windows(words.len()).any(|part| part == words) {
                creates.store(true, Ordering::SeqCst);
            }
            if to.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let (mut from, mut to) = (engine, caller);
    let mut buffer = [0_u8; 8 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if asked.load(Ordering::SeqCst) {
            dead.store(true, Ordering::SeqCst);
        }
        if dead.load(Ordering::SeqCst) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = caller.shutdown(std::net::Shutdown::Both);
}

/// How many containers the instance has.
async fn count(bench: &Bench) -> usize {
    let client = bench.engine.client().expect("it answers").negotiate_version().await.expect("a version");
    let install = std::fs::read_to_string(bench.options().state.join("install")).expect("a mark");
    let label = std::collections::HashMap::from([("label", vec![format!("wharf.install={install}")])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&label).build();
    client.list_containers(Some(options)).await.expect("a list").len()
}

async fn a_start_that_a_dying_engine_cuts_off_leaves_nothing_once_it_is_back(bench: Bench) {
    // Not where the container sees it.
    let aside = tempfile::tempdir().expect("a directory");
    let socket = aside.path().join("dying");
    let real = bench.engine.endpoint();
    let dying = Dying::at(&socket, real.socket().expect("a socket"));
    let endpoint = Endpoint::named(format!("unix://{}", socket.display()), "a test");
    let backend = ContainerBackend::new(Options { endpoint: Some(endpoint), ..bench.options() });
    assert!(backend.probe().await.available);
    let failure = backend.start(bench.shell("exit 0")).await.err().expect("nobody could hear of it");
    assert_eq!(count(&bench).await, 1, "it was made all the same: {failure:?}");
    dying.dead.store(false, Ordering::SeqCst);
    until("what was made is gone", async || count(&bench).await == 0).await;
}

async fn what_is_left_is_told_before_it_is_taken_away(bench: Bench) {
    let backend = bench.open();
    let keeper = backend.keeper().expect("it has containers");
    assert_eq!(keeper.leftovers(true).await, Ok(Vec::new()), "nothing was ever asked for");
    let launch = bench.shell("exec sleep 600");
    let started = backend.start(launch).await;
    let (ticket, connection) = started.unwrap_or_else(|failure| panic!("{failure:?}"));
    assert_eq!(keeper.leftovers(true).await, Ok(Vec::new()), "it is a session's");
    let name = format!("wharf-{}", ticket.id);
    let aside = bench.root().join("aside");
    std::fs::rename(ticket.dir.as_path(), &aside).expect("a rename");
    let one = async |dry_run: bool| -> Leftover {
        let mut left = keeper.leftovers(dry_run).await.expect("the engine answers");
        assert_eq!(left.len(), 1, "{left:?}");
        left.pop().expect("one")
    };
    let doubtful = one(false).await;
    assert!(doubtful.kept && doubtful.thing.contains(&name), "{doubtful:?}");
    let client = bench.engine.client().expect("it answers").negotiate_version().await.expect("a version");
    let options = KillContainerOptionsBuilder::default().signal("KILL").build();
    client.kill_container(&name, Some(options)).await.expect("a kill");
    let long = std::time::Duration::from_secs(20);
    within(long, "the end", connection.wait()).await.expect_err("no holder could tell");
    until("it does not run", async || !one(true).await.kept).await;
    assert_eq!(count(&bench).await, 1, "a look takes nothing away");
    assert!(!one(false).await.kept);
    assert_eq!(count(&bench).await, 0);
    assert_eq!(keeper.leftovers(true).await, Ok(Vec::new()));
}
