//! Engines that are reached by logging in at their host, by a real `sshd` and the engine's own command line.

mod support;

use std::time::Duration;

use support::{RemoteBench, Server, TestEngine};
use wharf_backend::conformance::{Transcript, within};
use wharf_backend::{Adoption, Backend, Stop};
use wharf_container::Flavour;
use wharf_model::{Code, Offset, Reason};

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

fn run<C>(flavour: Flavour, case: C)
where
    C: AsyncFnOnce(RemoteBench, Server),
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (engine, server) = (TestEngine::get(flavour).await, Server::start().await);
        let address = server.address(engine.endpoint().socket().expect("a socket"));
        let bench = RemoteBench::by_ssh(flavour, &server.program(), address).await;
        within(Duration::from_secs(100), "the case", case(bench, server)).await;
    });
}

macro_rules! on_both {
    ($($case:ident)*) => {
        mod docker { $( #[test] fn $case() { super::run(super::Flavour::Docker, super::$case); } )* }
        mod podman { $( #[test] fn $case() { super::run(super::Flavour::Podman, super::$case); } )* }
    };
}

on_both! {
    a_session_by_ssh
    who_is_not_let_in_is_told_why
}

async fn a_session_by_ssh(bench: RemoteBench, server: Server) {
    let probe = bench.open().probe().await;
    assert!(probe.available && probe.detail.contains("ssh://"), "{probe:?}\n{}", server.log());
    let flood = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); echo $i; done; read -r x; echo \"<$x>\"; exec sleep 600";
    let (ticket, connection) = bench.start(bench.shell(flood)).await;
    connection.write(b"typed\n", TEST_TIMEOUT).await.expect("input works");
    let mut transcript = Transcript::of(&*connection, Offset(0)).await;
    transcript.until("<typed>\n").await;
    let expected: Vec<String> = (1..=20_000).map(|i| i.to_string()).collect();
    let expected = format!("{}\n<typed>\n", expected.join("\n"));
    assert!(transcript.seen == expected.as_bytes(), "a byte is missing or doubled");
    let Ok(Adoption::Alive(again)) = bench.open().adopt(&ticket).await else { panic!("it is found again") };
    let stop = Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "a test".to_owned() };
    let record = within(TEST_TIMEOUT, "a stop", again.stop(stop)).await.expect("a stop");
    assert_eq!((record.signal, record.log_end.0), (Some(9), expected.len() as u64));
    bench.gone(&ticket).await;
}

async fn who_is_not_let_in_is_told_why(bench: RemoteBench, server: Server) {
    server.forget();
    let failure = bench.open().start(bench.shell("exit 0")).await.err().expect("nobody is let in");
    assert_eq!(failure.code, Code::Unavailable);
    assert!(failure.message.contains("Permission denied"), "{failure:?}\n{}", server.log());
}
