//! An engine that is killed and started again while sessions run in its containers.

mod support;

use std::time::Duration;

use support::{Bench, RemoteBench, TestEngine};
use wharf_backend::conformance::{Transcript, until, within};
use wharf_backend::{Adoption, Backend};
use wharf_container::Flavour;
use wharf_model::{Code, Offset, Ticket};

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Counts with pauses until it is told to end, and then tells how far it came.
const COUNT: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); echo $i; [ $((i % 500)) != 0 ] || sleep 0.05; \
    [ ! -e /tmp/end ] || break; done; echo end $i";

/// Whether this is every number up to the one that it ends with.
fn is_whole(output: &[u8]) -> bool {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().collect();
    let Some((last, numbers)) = lines.split_last() else { return false };
    let exact = numbers.iter().enumerate().all(|(at, line)| *line == (at + 1).to_string());
    exact && *last == format!("end {}", numbers.len())
}

async fn alive(
    bench: &RemoteBench,
    remote: bool,
    ticket: &Ticket,
) -> std::sync::Arc<dyn wharf_backend::Connection> {
    let mut found = None;
    until("it is found again", async || {
        let backend = if remote { bench.open() } else { bench.bench.open() };
        match backend.adopt(ticket).await {
            Ok(Adoption::Alive(connection)) => found = Some(connection),
            Ok(_) => panic!("it never ended"),
            Err(failure) => assert_eq!(failure.code, Code::Unreachable, "{failure:?}"),
        }
        found.is_some()
    })
    .await;
    found.expect("just found")
}

#[tokio::test]
async fn an_engine_that_is_killed_and_comes_back_ends_nothing() {
    let bench = RemoteBench::with(Bench::with(TestEngine::alone().await, Flavour::Docker));
    let near = bench.shell(COUNT);
    let (near_ticket, near) = bench.bench.start(near).await;
    let (remote_ticket, remote) = bench.start(bench.shell(COUNT)).await;
    for connection in [&near, &remote] {
        Transcript::of(&**connection, Offset(0)).await.until("1000\n").await;
    }
    bench.bench.engine.kill();
    // By a stream of the engine nothing is known from here on; the other one is not even delayed.
    let broken = within(TEST_TIMEOUT, "it is noticed", remote.wait()).await;
    assert_eq!(broken.expect_err("nobody can know").code, Code::Unreachable);
    let failure = bench.open().adopt(&remote_ticket).await.err().expect("it cannot be reached");
    assert_eq!(failure.code, Code::Unreachable, "{failure:?}");
    let before = near.stats().await.expect("it is asked by its own socket").log_end;
    until("it goes on", async || near.stats().await.is_ok_and(|stats| stats.log_end > before)).await;
    let refused = bench.bench.open().start(bench.shell("exit 0")).await;
    assert_eq!(refused.err().expect("there is no engine").code, Code::Unavailable);
    bench.bench.engine.again().await;
    let remote = alive(&bench, true, &remote_ticket).await;
    let near_again = alive(&bench, false, &near_ticket).await;
    assert_eq!(bench.containers().await, 2, "nothing is started twice");
    for (connection, ticket) in [(remote, &remote_ticket), (near_again, &near_ticket)] {
        let stdio = std::io::pipe().expect("a pipe");
        // The session ends by it, and only after its own end was told.
        let later = "(/bin/sleep 1; /bin/touch /tmp/end) </dev/null >/dev/null 2>&1 &";
        let end = ["/bin/sh", "-c", later].map(Into::into).to_vec();
        let null = || std::fs::File::open("/dev/null").expect("it is there").into();
        let request = wharf_backend::ExecRequest {
            argv: end,
            env: Vec::new(),
            dir: "/".into(),
            stdio: [null(), stdio.1.into(), null()],
            tty: false,
        };
        assert_eq!(within(TEST_TIMEOUT, "a further command", connection.exec(request)).await, Ok(0));
        let record = within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
        assert_eq!(record.code, Some(0));
        let output = Transcript::of(&*connection, Offset(0)).await.rest().await.seen;
        assert_eq!(output.len() as u64, record.log_end.0);
        assert!(is_whole(&output), "a byte is missing or doubled");
        bench.gone(ticket).await;
    }
    drop(near);
}
