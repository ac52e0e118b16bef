//! Faults come when they were asked for, and at no other time.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use wharf_backend::fake::FakeBackend;
use wharf_backend::faults::{Fault, FaultHandle, FaultyBackend, Op, Times};
use wharf_backend::{Adoption, Backend, Failure, Launch, Stop};
use wharf_model::{Code, Home, Millis, Offset, Reason, SessionId, Spec};

struct Place {
    root: tempfile::TempDir,
    fake: FakeBackend,
    backend: Arc<dyn Backend>,
    faults: FaultHandle,
}

fn place() -> Place {
    let fake = FakeBackend::new();
    let (backend, faults) = FaultyBackend::new(Arc::new(fake.clone()));
    Place { root: tempfile::tempdir().unwrap(), fake, backend, faults }
}

fn launch(place: &Place) -> Launch {
    let id = SessionId::new(Millis(1), u64::from(place.fake.starts()));
    Launch {
        home: Home::below(place.root.path()).session(&id),
        id,
        name: "faulty".parse().unwrap(),
        run: 1,
        token: "token".to_owned(),
        created: Millis(1),
        argv: vec!["fake:echo".into()],
        env: Vec::new(),
        spec: Spec::new(["fake:echo"], place.root.path()),
    }
}

fn failure() -> Failure {
    Failure::new(Code::Unreachable, "injected").hint("none")
}

#[tokio::test]
async fn nothing_changes_without_a_fault() {
    let place = place();
    let (ticket, connection) = place.backend.start(launch(&place)).await.unwrap();
    connection.write(b"hi", Duration::from_secs(1)).await.unwrap();
    assert_eq!(place.backend.list().await.unwrap(), std::slice::from_ref(&ticket));
    assert!(matches!(place.backend.adopt(&ticket).await.unwrap(), Adoption::Alive(_)));
    assert!(place.backend.probe().await.available);
    assert_eq!(place.faults.calls(Op::Write), 1);
}

#[tokio::test]
async fn failures_are_counted_and_ordered() {
    let place = place();
    let other = Failure::new(Code::Exhausted, "later");
    place.faults.inject(Op::Start, Fault::Fail(failure()), Times::Next(2));
    place.faults.inject(Op::Start, Fault::Fail(other), Times::Once);
    for code in [Code::Unreachable, Code::Unreachable, Code::Exhausted] {
        assert_eq!(place.backend.start(launch(&place)).await.err().unwrap().code, code);
    }
    assert_eq!(place.fake.starts(), 0);
    let _started = place.backend.start(launch(&place)).await.unwrap();
    place.faults.inject(Op::Probe, Fault::Fail(failure()), Times::Always);
    for _ in 0..3 {
        let probe = place.backend.probe().await;
        assert_eq!((probe.available, probe.detail.as_str()), (false, "injected"));
    }
    place.faults.clear();
    assert!(place.backend.probe().await.available);
}

#[tokio::test]
async fn a_lost_answer_leaves_the_deed_done() {
    let place = place();
    place.faults.inject(Op::Start, Fault::LoseAnswer(failure()), Times::Once);
    assert_eq!(place.backend.start(launch(&place)).await.err().unwrap(), failure());
    assert_eq!((place.fake.starts(), place.fake.live().len()), (1, 1));
}

#[tokio::test]
async fn a_hanging_call_waits_for_its_release() {
    let place = place();
    let (ticket, connection) = place.backend.start(launch(&place)).await.unwrap();
    place.faults.inject(Op::Stop, Fault::Hang, Times::Always);
    let hanging = tokio::spawn(async move {
        let stop = Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "test".to_owned() };
        connection.stop(stop).await
    });
    place.faults.called(Op::Stop, 1).await;
    place.faults.release(Op::List);
    assert!(!hanging.is_finished());
    assert_eq!(place.fake.live(), [ticket.id]);
    place.faults.release(Op::Stop);
    assert_eq!(hanging.await.unwrap().unwrap().signal, Some(9));
}

#[tokio::test(start_paused = true)]
async fn delays_are_in_tokio_time_and_outputs_fail_too() {
    let place = place();
    place.faults.inject(Op::List, Fault::Delay(Duration::from_secs(90)), Times::Once);
    let before = tokio::time::Instant::now();
    place.backend.list().await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(90));

    let (ticket, connection) = place.backend.start(launch(&place)).await.unwrap();
    let mut output = connection.output(Offset(0)).await.unwrap();
    place.faults.inject(Op::Next, Fault::Fail(failure()), Times::Once);
    assert_eq!(output.next().await.unwrap_err(), failure());
    place.fake.exit(&ticket.id, 0);
    assert_eq!(output.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_panic_stays_in_its_task() {
    let place = place();
    place.faults.inject(Op::Adopt, Fault::Panic, Times::Once);
    let (ticket, _) = place.backend.start(launch(&place)).await.unwrap();
    let backend = Arc::clone(&place.backend);
    let again = ticket.clone();
    assert!(tokio::spawn(async move { backend.adopt(&again).await.is_ok() }).await.unwrap_err().is_panic());
    assert!(matches!(place.backend.adopt(&ticket).await.unwrap(), Adoption::Alive(_)));
}
