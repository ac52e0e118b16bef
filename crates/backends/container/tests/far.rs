//! Engines on another host: what a cut wire and a dead daemon do to a session there, and what cannot be shared with it.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{BUSYBOX, RemoteBench};
use wharf_backend::conformance::{Transcript, until, within};
use wharf_backend::{Adoption, Backend, Connection, Stop};
use wharf_container::{ContainerBackend, Flavour};
use wharf_model::{Code, Container, Home, Offset, Reason, Secret, Ticket, Volume};

const TEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Prints every number up to its first argument, a line each.
const COUNT: &str = "i=0; while [ $i -lt $1 ]; do i=$((i + 1)); echo $i; done";

fn run<C>(flavour: Flavour, case: C)
where
    C: AsyncFnOnce(RemoteBench),
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let bench = RemoteBench::new(flavour).await;
        within(Duration::from_secs(100), "the case", case(bench)).await;
    });
}

macro_rules! on_both {
    ($($case:ident)*) => {
        mod docker { $( #[test] fn $case() { super::run(super::Flavour::Docker, super::$case); } )* }
        mod podman { $( #[test] fn $case() { super::run(super::Flavour::Podman, super::$case); } )* }
    };
}

on_both! {
    a_session_is_one_like_any_other
    a_cut_wire_loses_and_doubles_nothing
    a_dead_daemon_loses_and_doubles_nothing
    what_ended_meanwhile_is_brought_home
    an_engine_out_of_reach_is_not_an_end
    killed_over_there
    nothing_of_this_host_is_shared
    secrets_and_users
}

fn stop() -> Stop {
    Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "a test".to_owned() }
}

fn counted(to: u32) -> String {
    let mut lines = (1..=to).map(|i| i.to_string()).collect::<Vec<_>>().join("\n");
    lines.push('\n');
    lines
}

async fn all(connection: &Arc<dyn Connection>) -> String {
    let output = Transcript::of(&**connection, Offset(0)).await.rest().await.seen;
    String::from_utf8_lossy(&output).into_owned()
}

/// What is in the log of this side.
fn mirrored(ticket: &Ticket) -> Vec<u8> {
    let mut reader =
        wharf_log::Reader::open(&ticket.dir.as_path().join(Home::LOG), Offset(0)).expect("a log");
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match reader.read(&mut buffer).expect("it can be read") {
            wharf_log::Chunk::Data { len, .. } => bytes.extend_from_slice(&buffer[..len]),
            wharf_log::Chunk::Gap { from, to } => panic!("a gap from {from} to {to}"),
            wharf_log::Chunk::End => return bytes,
        }
    }
}

async fn found(bench: &RemoteBench, ticket: &Ticket) -> Adoption {
    let mut fate = None;
    until("it is known what became of it", async || match bench.open().adopt(ticket).await {
        Ok(found) => {
            fate = Some(found);
            true
        }
        Err(failure) => {
            assert_eq!(failure.code, Code::Unreachable, "{failure:?}");
            false
        }
    })
    .await;
    fate.expect("just found")
}

async fn a_session_is_one_like_any_other(bench: RemoteBench) {
    let (ticket, connection) =
        bench.start(bench.shell("echo out; echo err >&2; read -r x; echo \"<$x>\"; exit 7")).await;
    assert!(ticket.holder.is_none() && ticket.command.is_none(), "no process of there is one of here");
    connection.write(b"typed\n", TEST_TIMEOUT).await.expect("input works");
    let record = within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
    assert_eq!(record.code, Some(7));
    let lines = all(&connection).await;
    for line in ["out\n", "err\n", "<typed>\n"] {
        assert!(lines.contains(line), "{lines:?}");
    }
    assert_eq!(mirrored(&ticket).len() as u64, record.log_end.0);
    bench.gone(&ticket).await;
}

async fn a_cut_wire_loses_and_doubles_nothing(bench: RemoteBench) {
    // With pauses, so that it goes on for longer than it takes to be connected again.
    let script =
        "i=0; while [ $i -lt 40000 ]; do i=$((i + 1)); echo $i; [ $((i % 1000)) != 0 ] || sleep 0.1; done";
    let launch = bench.shell(script);
    let (ticket, connection) = bench.start(launch).await;
    drop(connection);
    let mut seen = 0;
    for _ in 0..5 {
        let over = || ticket.dir.as_path().join(Home::EXIT).exists();
        until("more of it", async || mirrored(&ticket).len() > seen || over()).await;
        bench.wire.cut();
        seen = mirrored(&ticket).len();
    }
    let record = loop {
        match found(&bench, &ticket).await {
            Adoption::Ended(record) => break record,
            Adoption::Alive(connection) => match within(TEST_TIMEOUT, "the end", connection.wait()).await {
                Ok(record) => break record,
                Err(failure) => assert_eq!(failure.code, Code::Unreachable),
            },
            Adoption::Lost => panic!("it was never lost"),
        }
    };
    assert_eq!(record.code, Some(0));
    assert!(mirrored(&ticket) == counted(40_000).into_bytes(), "a byte is missing or doubled");
    bench.gone(&ticket).await;
}

async fn a_dead_daemon_loses_and_doubles_nothing(bench: RemoteBench) {
    let mut launch = bench.shell(&format!("{COUNT}; read -r x; echo \"<$x>\""));
    launch.argv.push("40000".into());
    let options = bench.options();
    // A daemon of its own, which takes everything with it that it had.
    let ticket = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let started = ContainerBackend::new(options).start(launch).await;
            let (ticket, connection) = started.map_err(|failure| format!("{failure:?}")).expect("it starts");
            Transcript::of(&*connection, Offset(0)).await.until("1000\n").await;
            ticket
        })
    });
    let ticket = bench.joined(ticket).await;
    let before = mirrored(&ticket).len();
    let Adoption::Alive(connection) = found(&bench, &ticket).await else { panic!("it lives") };
    connection.write(b"again\n", TEST_TIMEOUT).await.expect("input works again");
    let record = within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
    assert!(before as u64 <= record.log_end.0);
    assert!(
        mirrored(&ticket) == format!("{}<again>\n", counted(40_000)).into_bytes(),
        "a byte is missing or doubled"
    );
    bench.gone(&ticket).await;
}

async fn what_ended_meanwhile_is_brought_home(bench: RemoteBench) {
    let mut launch = bench.shell(&format!("echo begun; read -r x; {COUNT}; echo last >&2; exit 5"));
    launch.argv.push("20000".into());
    let options = bench.options();
    let ticket = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let started = ContainerBackend::new(options).start(launch).await;
            let (ticket, connection) = started.map_err(|failure| format!("{failure:?}")).expect("it starts");
            Transcript::of(&*connection, Offset(0)).await.until("begun\n").await;
            connection.write(b"go\n", TEST_TIMEOUT).await.expect("input works");
            ticket
        })
    });
    let ticket = bench.joined(ticket).await;
    bench.ends(&ticket).await;
    let Adoption::Ended(record) = found(&bench, &ticket).await else { panic!("its record is there") };
    assert_eq!((record.code, record.reason), (Some(5), Reason::Exited));
    let mirror = mirrored(&ticket);
    assert_eq!(mirror.len() as u64, record.log_end.0);
    assert!(
        mirror == format!("begun\n{}last\n", counted(20_000)).into_bytes(),
        "a byte is missing or doubled"
    );
    // It was seen to be over, so it is taken away without being asked to.
    bench.gone(&ticket).await;
    until("its key is gone", async || !ticket.dir.as_path().join("door").exists()).await;
}

async fn an_engine_out_of_reach_is_not_an_end(bench: RemoteBench) {
    let (ticket, connection) = bench.start(bench.shell("echo up; exec cat")).await;
    Transcript::of(&*connection, Offset(0)).await.until("up").await;
    bench.wire.set_down(true);
    bench.wire.cut();
    let broken = within(TEST_TIMEOUT, "it is noticed", connection.wait()).await;
    assert_eq!(broken.expect_err("nobody can know").code, Code::Unreachable);
    let failure = bench.open().adopt(&ticket).await.err().expect("it cannot be reached");
    assert_eq!(failure.code, Code::Unreachable, "{failure:?}");
    let again = bench.shell("exit 0");
    assert!(!bench.open().probe().await.available);
    assert_eq!(bench.open().start(again).await.err().map(|failure| failure.code), Some(Code::Unavailable));
    bench.wire.set_down(false);
    let Adoption::Alive(connection) = found(&bench, &ticket).await else { panic!("it lives") };
    connection.write(b"still here\n", TEST_TIMEOUT).await.expect("input works");
    Transcript::of(&*connection, Offset(0)).await.until("still here").await;
    assert_eq!(bench.containers().await, 1, "nothing is started twice");
    connection.stop(stop()).await.expect("a stop");
    bench.gone(&ticket).await;
}

async fn killed_over_there(bench: RemoteBench) {
    let (ticket, connection) = bench.start(bench.shell("echo up; exec sleep 600")).await;
    Transcript::of(&*connection, Offset(0)).await.until("up").await;
    bench.kill(&ticket).await;
    match within(TEST_TIMEOUT, "the end", connection.wait()).await {
        Ok(record) => assert_eq!(record.signal, Some(9)),
        Err(failure) => assert_eq!(failure.code, Code::Unreachable),
    }
    let Adoption::Ended(record) = found(&bench, &ticket).await else {
        panic!("its end was seen by the engine")
    };
    assert_eq!((record.signal, record.reason), (Some(9), Reason::Killed));
    assert_eq!(mirrored(&ticket), b"up\n");
    bench.clear(&ticket).await;
}

async fn nothing_of_this_host_is_shared(bench: RemoteBench) {
    let mut launch = bench.shell("exit 0");
    let volume = |source: &str| Volume { source: source.into(), target: "/there".into(), read_only: false };
    launch.spec.container.as_mut().expect("a container").volumes.push(volume("/tmp"));
    let (home, refused) = (launch.home.clone(), bench.open().start(launch).await);
    let failure = refused.err().expect("it cannot be mounted");
    assert_eq!(failure.code, Code::Unsupported, "{failure:?}");
    assert!(failure.message.contains("/tmp") && failure.hint.is_some(), "{failure:?}");
    assert!(!home.exists(), "nothing is left");
    let mut launch = bench.shell("exit 0");
    launch.spec.dir = bench.root().into();
    let failure = bench.open().start(launch).await.err().expect("that directory is not there");
    assert_eq!(failure.code, Code::NoDirectory, "{failure:?}");
    let mut launch = bench.shell("exit 0");
    launch.argv = vec!["/bin/busybox".into(), "echo".into(), "from scratch".into()];
    launch.spec.argv.clone_from(&launch.argv);
    let container = Container { network: Some("none".into()), read_only: true, ..Container::of(BUSYBOX) };
    launch.spec.container = Some(container.into());
    let (ticket, connection) = bench.start(launch).await;
    assert_eq!(within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end").code, Some(0));
    assert_eq!(all(&connection).await, "from scratch\n");
    bench.gone(&ticket).await;
}

async fn secrets_and_users(bench: RemoteBench) {
    let mut launch = bench.shell("id -u; cat /run/secrets/key; read -r x");
    launch.env.push(("PASSWORD".into(), "hunter-two".into()));
    let file = bench.root().join("key-file");
    std::fs::write(&file, "key-three\n").expect("a file");
    let container = launch.spec.container.as_mut().expect("a container");
    container.secrets.push(Secret { name: "key".into(), source: file.as_path().into() });
    container.user = Some("other".to_owned());
    container.read_only = true;
    let (ticket, connection) = bench.start(launch).await;
    let mut transcript = Transcript::of(&*connection, Offset(0)).await;
    transcript.until("1234").await;
    transcript.until("key-three").await;
    let shown = bench.inspect(&ticket).await;
    for secret in ["hunter-two", "key-three"] {
        assert!(!shown.contains(secret), "{secret} is shown by inspect");
    }
    connection.stop(stop()).await.expect("a stop");
    bench.gone(&ticket).await;
}
