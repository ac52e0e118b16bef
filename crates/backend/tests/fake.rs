//! The fake keeps the contract, so that what is proven with it holds above a real backend.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wharf_backend::fake::FakeBackend;
use wharf_backend::{Adoption, Backend, Connection, Launch, OutputChunk, Stop, Stream, Ticket};
use wharf_model::{Code, ExitRecord, Home, Millis, Offset, Reason, SessionId, Size, Spec, Text};

const SECOND: Duration = Duration::from_secs(1);

fn launch(root: &Path, number: u64, argv: &[&str]) -> Launch {
    let id = SessionId::new(Millis(1), number);
    Launch {
        home: Home::below(root).session(&id),
        id,
        name: format!("s{number}").parse().unwrap(),
        run: 1,
        token: format!("token-{number}"),
        created: Millis(1),
        argv: argv.iter().map(|word| Text::from(*word)).collect(),
        env: vec![("A".into(), "1\n2".into()), ("B".into(), Text::default())],
        spec: Spec::new(argv.iter().copied(), root),
    }
}

async fn start(fake: &FakeBackend, root: &Path, argv: &[&str]) -> (Ticket, Arc<dyn Connection>) {
    fake.start(launch(root, u64::from(fake.starts()), argv)).await.unwrap()
}

async fn all(connection: &dyn Connection, from: u64) -> Vec<u8> {
    let mut output = connection.output(Offset(from)).await.unwrap();
    let mut all = Vec::new();
    while let Some(chunk) = output.next().await.unwrap() {
        match chunk {
            OutputChunk::Data { offset, bytes, .. } => {
                assert_eq!(offset.0, from + all.len() as u64);
                all.extend(bytes);
            }
            OutputChunk::Gap { .. } => panic!("the fake drops nothing"),
        }
    }
    all
}

fn stop(grace: Duration) -> Stop {
    Stop { grace, reason: Reason::Stopped, by: "test".to_owned() }
}

#[tokio::test]
async fn programs_do_what_their_names_say() {
    let (root, fake) = (tempfile::tempdir().unwrap(), FakeBackend::new());
    let cases: &[(&[&str], i32, &[u8])] = &[
        (&["fake:exit", "3"], 3, b""),
        (&["fake:print", "a", "b c"], 0, b"a b c\n"),
        (&["fake:flood", "18"], 0, b"0123456789abcdef01"),
        (&["fake:env"], 0, b"A=1\n2\0B=\0"),
    ];
    for (argv, code, printed) in cases {
        let (ticket, connection) = start(&fake, root.path(), argv).await;
        let record = connection.wait().await.unwrap();
        assert_eq!(record.code, Some(*code), "{argv:?}");
        assert_eq!(all(&*connection, 0).await, *printed, "{argv:?}");
        let log = ticket.dir.as_path().join("log/00000000000000000000.log");
        assert_eq!(std::fs::read(log).unwrap(), *printed);
        assert_eq!(record.log_end.0, printed.len() as u64);
    }
    let missing = fake.start(launch(root.path(), 99, &["fake:missing"])).await.err().unwrap();
    assert_eq!(missing.code, Code::CommandNotFound);
    assert!(!launch(root.path(), 99, &[]).home.exists());
}

#[tokio::test]
async fn an_echo_is_typed_at_and_told_to_exit() {
    let (root, fake) = (tempfile::tempdir().unwrap(), FakeBackend::new());
    let (ticket, connection) = start(&fake, root.path(), &["fake:echo"]).await;
    assert_eq!(fake.live(), std::slice::from_ref(&ticket.id));
    connection.write(b"hello\r", SECOND).await.unwrap();
    assert_eq!(connection.pending().await.unwrap().unread, 0);
    connection.write(b"exit 7\r", SECOND).await.unwrap();
    assert_eq!(connection.wait().await.unwrap().code, Some(7));
    assert_eq!(all(&*connection, 6).await, b"exit 7\r");
    assert_eq!(fake.input(&ticket.id), b"hello\rexit 7\r");
    assert_eq!(connection.write(b"x", SECOND).await.unwrap_err().code, Code::Ended);
    assert!(fake.live().is_empty());
}

#[tokio::test(start_paused = true)]
async fn input_that_nobody_reads_times_out_and_says_how_much_went_in() {
    let (root, fake) = (tempfile::tempdir().unwrap(), FakeBackend::new());
    let (ticket, connection) = start(&fake, root.path(), &["fake:sleep"]).await;
    let late = connection.write(&vec![b'x'; 70_000], SECOND).await.unwrap_err();
    assert_eq!((late.code, &late.message[..14]), (Code::Timeout, "65536 of 70000"));
    assert_eq!(connection.pending().await.unwrap().unread, 65_536);
    fake.read(&ticket.id);
    assert_eq!(connection.pending().await.unwrap().unread, 0);
}

#[tokio::test(start_paused = true)]
async fn stop_is_polite_and_then_is_not() {
    let (root, fake) = (tempfile::tempdir().unwrap(), FakeBackend::new());
    let (_, polite) = start(&fake, root.path(), &["fake:sleep"]).await;
    let record = polite.stop(stop(SECOND)).await.unwrap();
    assert_eq!((record.signal, record.by.as_deref()), (Some(15), Some("test")));
    assert_eq!(polite.stop(stop(SECOND)).await.unwrap(), record);

    let (_, stubborn) = start(&fake, root.path(), &["fake:ignore-term"]).await;
    stubborn.signal(15, true).await.unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(stubborn.stop(stop(SECOND)).await.unwrap().signal, Some(9));
    assert_eq!(before.elapsed(), SECOND);
}

#[tokio::test]
async fn a_second_handle_adopts_what_the_first_started() {
    let (root, fake) = (tempfile::tempdir().unwrap(), FakeBackend::new());
    let (ticket, first) = start(&fake, root.path(), &["fake:echo"]).await;
    first.write(b"one ", SECOND).await.unwrap();
    fake.break_connection(&ticket.id);
    assert!(first.status().borrow().broken);
    assert_eq!(first.wait().await.unwrap_err().code, Code::Unreachable);
    assert_eq!(first.write(b"x", SECOND).await.unwrap_err().code, Code::Unreachable);

    let again = fake.clone();
    assert_eq!(again.list().await.unwrap(), std::slice::from_ref(&ticket));
    let Adoption::Alive(second) = again.adopt(&ticket).await.unwrap() else { panic!("it lives") };
    assert!(!second.status().borrow().broken);
    second.write(b"two\r", SECOND).await.unwrap();
    fake.exit(&ticket.id, 4);
    assert_eq!(all(&*second, 0).await, b"one two\r");
    let Adoption::Ended(record) = again.adopt(&ticket).await.unwrap() else { panic!("it ended") };
    assert_eq!(record, second.wait().await.unwrap());

    let stranger = Ticket { token: "other".to_owned(), id: SessionId::new(Millis(5), 5), ..ticket.clone() };
    let stranger = Ticket { dir: root.path().join("nowhere").into(), ..stranger };
    assert!(matches!(again.adopt(&stranger).await.unwrap(), Adoption::Lost));
}

#[tokio::test]
async fn a_lost_session_leaves_no_record() {
    let (root, fake) = (tempfile::tempdir().unwrap(), FakeBackend::new());
    let (ticket, connection) = start(&fake, root.path(), &["fake:sleep"]).await;
    fake.lose(&ticket.id);
    assert!(fake.live().is_empty());
    assert_eq!(connection.wait().await.unwrap_err().code, Code::Unreachable);
    assert!(matches!(fake.adopt(&ticket).await.unwrap(), Adoption::Lost));
    assert!(!ticket.dir.as_path().join(Home::EXIT).exists());
    assert_eq!(fake.sweep(&ticket).await.unwrap(), 0);
}

#[tokio::test]
async fn records_are_private_and_say_what_the_test_said() {
    let (root, fake) = (tempfile::tempdir().unwrap(), FakeBackend::new());
    let (ticket, connection) = start(&fake, root.path(), &["fake:sleep"]).await;
    assert_eq!(fake.sweep(&ticket).await.unwrap_err().code, Code::Running);
    fake.print(&ticket.id, b"out");
    fake.print_error(&ticket.id, b"err");
    connection.resize(Size { cols: 0, rows: 65_535 }).await.unwrap();
    assert_eq!(connection.status().borrow().size, Size { cols: 1, rows: 4096 });
    let record = ExitRecord {
        code: Some(137),
        signal: None,
        oom: true,
        limit: None,
        reason: Reason::Exited,
        by: None,
        started: Millis(1),
        ended: Millis(2),
        log_end: Offset(6),
        leftovers: 0,
        survivors: 0,
        unsure: false,
    };
    fake.end(&ticket.id, record.clone());
    let path = ticket.dir.as_path().join(Home::EXIT);
    let written: ExitRecord = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!((&written, connection.wait().await.unwrap()), (&record, record.clone()));
    let mode = |name: &str| ticket.dir.as_path().join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode(Home::TICKET), mode(Home::EXIT)), (0o700, 0o600, 0o600));

    let mut output = connection.output(Offset(1)).await.unwrap();
    let first = output.next().await.unwrap();
    assert_eq!(
        first,
        Some(OutputChunk::Data { offset: Offset(1), stream: Stream::Out, bytes: b"ut".to_vec() })
    );
    let second = output.next().await.unwrap();
    assert_eq!(
        second,
        Some(OutputChunk::Data { offset: Offset(3), stream: Stream::Err, bytes: b"err".to_vec() })
    );
    assert_eq!(output.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_second_run_continues_the_log() {
    let (root, fake) = (tempfile::tempdir().unwrap(), FakeBackend::new());
    let mut launch = launch(root.path(), 1, &["fake:print", "one"]);
    let (first, _) = fake.start(launch.clone()).await.unwrap();
    launch.run = 2;
    let (_, connection) = fake.start(launch).await.unwrap();
    assert_eq!(all(&*connection, 0).await, b"one\none\n");
    // The first run is over, and its ticket does not pass for the second.
    assert!(matches!(fake.adopt(&first).await.unwrap(), Adoption::Ended(_)));
    assert_eq!(fake.starts(), 2);
}

#[tokio::test]
async fn what_is_not_claimed_is_visibly_absent() {
    let root = tempfile::tempdir().unwrap();
    let capabilities = wharf_model::Capabilities { tty: true, ..Default::default() };
    let fake = FakeBackend::with("poor", capabilities);
    let (ticket, connection) = start(&fake, root.path(), &["fake:sleep"]).await;
    assert_eq!(connection.resize(Size::default()).await.unwrap_err().code, Code::Unsupported);
    assert_eq!(connection.signal(15, false).await.unwrap_err().code, Code::Unsupported);
    assert_eq!(connection.stats().await.unwrap_err().code, Code::Unsupported);
    assert_eq!(connection.pending().await.unwrap_err().code, Code::Unsupported);
    assert_eq!(fake.list().await.unwrap_err().code, Code::Unsupported);
    assert_eq!(fake.adopt(&ticket).await.err().unwrap().code, Code::Unsupported);
    let mut pipes = launch(root.path(), 7, &["fake:sleep"]);
    pipes.spec.tty = false;
    assert_eq!(fake.start(pipes).await.err().unwrap().code, Code::Unsupported);
}
