//! A session outlives whoever started it, and is found again; a stranger is not taken for it.

use std::sync::Arc;
use std::time::Duration;

use wharf_model::{Home, ProcessIdentity, Reason, SessionId, Ticket};

use crate::conformance::running::absent;
use crate::conformance::{Bystander, CASE_TIMEOUT, Place, Running, Transcript, until, within};
use crate::{Adoption, Backend, Connection};

/// Found again: input works, output continues, and the end is right.
pub async fn a_live_session_is_found_again(place: Arc<Place>) {
    let (session, ready) = place.echo().await;
    if !place.can().adopt {
        return absent("adoption", place.backend().adopt(&session.ticket).await);
    }
    session.type_in("before ").await;
    session.transcript(ready.len() as u64).await.until("before ").await;
    let Running { ticket, connection, .. } = session;
    let pid = connection.status().borrow().pid;
    drop(connection);
    // What a new daemon has is what was written down.
    let ticket: Ticket =
        serde_json::from_slice(&serde_json::to_vec(&ticket).expect("plain data")).expect("plain data");

    let connection = alive(&*place.reopen(), &ticket).await;
    assert_eq!(connection.status().borrow().pid, pid);
    connection.write(b"after", Duration::from_secs(5)).await.expect("input works");
    let at = (ready.len() + "before ".len()) as u64;
    let mut transcript = Transcript::of(&*connection, wharf_model::Offset(at)).await;
    transcript.until("after").await;
    assert_eq!(transcript.seen, b"after");
    let mut all = Transcript::of(&*connection, wharf_model::Offset(0)).await;
    all.until("before after").await;
    let record = connection.stop(crate::conformance::running::stop(Duration::ZERO)).await.expect("a stop");
    assert_eq!((record.signal, record.reason), (Some(9), Reason::Killed));
}

/// A backend that is closed leaves its sessions running, and can be used again.
pub async fn closing_ends_no_session(place: Arc<Place>) {
    let (session, ready) = place.echo().await;
    if !place.can().adopt {
        return absent("adoption", place.backend().adopt(&session.ticket).await);
    }
    within(CASE_TIMEOUT, "the close", place.backend().close()).await;
    let mut at = ready.len() as u64;
    for backend in [&*place.reopen(), place.backend()] {
        let connection = alive(backend, &session.ticket).await;
        connection.write(b"after", Duration::from_secs(5)).await.expect("input works");
        Transcript::of(&*connection, wharf_model::Offset(at)).await.until("after").await;
        at += "after".len() as u64;
    }
}

/// Two connections to one session: both work, and both are told the end.
pub async fn connections_share_a_session(place: Arc<Place>) {
    let (first, ready) = place.echo().await;
    if !place.can().adopt {
        return absent("adoption", place.backend().adopt(&first.ticket).await);
    }
    let second = alive(&*place.reopen(), &first.ticket).await;
    let mut transcript = first.transcript(ready.len() as u64).await;
    second.write(b"two", Duration::from_secs(5)).await.expect("input works");
    transcript.until("two").await;
    first.type_in("one").await;
    transcript.until("one").await;
    let record = first.stop(Duration::ZERO).await;
    assert_eq!(second.wait().await.expect("the end"), record);
    let status = second.status();
    assert!(!status.borrow().broken, "{:?}", status.borrow());
}

/// What ended while nobody looked is found with its record, however often it is looked for.
pub async fn an_ended_session_is_found_with_its_record(place: Arc<Place>) {
    let session = place.start_simple(place.tools().exit(6)).await;
    if !place.can().adopt {
        return absent("adoption", place.backend().adopt(&session.ticket).await);
    }
    let Running { ticket, connection, .. } = session;
    drop(connection);
    let backend = place.reopen();
    let mut record = None;
    until("the end is found", async || match backend.adopt(&ticket).await.expect("an answer") {
        Adoption::Ended(ended) => {
            record = Some(ended);
            true
        }
        Adoption::Alive(_) => false,
        Adoption::Lost => panic!("an ended session was taken for lost"),
    })
    .await;
    let record = record.expect("just found");
    assert_eq!((record.code, record.reason), (Some(6), Reason::Exited));
    match place.reopen().adopt(&ticket).await.expect("an answer") {
        Adoption::Ended(again) => assert_eq!(again, record),
        _ => panic!("an end is for ever"),
    }
}

/// A pid that now belongs to a stranger: the session is lost, and the stranger is left alone.
pub async fn a_stranger_is_not_taken_for_it(place: Arc<Place>) {
    let session = place.sleeper().await;
    if !place.can().adopt {
        return absent("adoption", place.backend().adopt(&session.ticket).await);
    }
    place.need_host();
    let real = session.ticket.clone();
    let mut bystander = Bystander::start();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("the kernel says it");
    let boot = boot.trim().to_owned();
    let (pid, start) = (bystander.pid(), bystander.start_time());
    let reused = [
        ("another start", ProcessIdentity { pid, start: start - 1, boot: boot.clone(), namespace: None }),
        (
            "another boot",
            ProcessIdentity {
                pid,
                start,
                boot: "00000000-0000-0000-0000-000000000000".into(),
                namespace: None,
            },
        ),
        ("another token", ProcessIdentity { pid, start, boot, namespace: None }),
    ];
    let gone = reused[0].1.clone();
    for (number, (what, identity)) in reused.into_iter().enumerate() {
        let id = SessionId::new(real.created, 7_000 + number as u64);
        let home = real.dir.as_path().with_file_name(id.as_str());
        std::fs::create_dir_all(home.join(Home::LOG)).expect("a directory can be made");
        let ticket = Ticket {
            id,
            dir: home.as_path().into(),
            token: "conformance-nobody-carries-this".to_owned(),
            // A holder is beyond doubt by its identity alone; a command must carry the mark besides.
            holder: real
                .holder
                .as_ref()
                .map(|_| if what == "another token" { gone.clone() } else { identity.clone() }),
            command: Some(identity),
            ..real.clone()
        };
        let json = serde_json::to_vec(&ticket).expect("plain data");
        std::fs::write(home.join(Home::TICKET), json).expect("a ticket can be written");
        let backend = place.reopen();
        assert!(matches!(backend.adopt(&ticket).await, Ok(Adoption::Lost)), "{what}");
        assert_eq!(backend.sweep(&ticket).await.expect("an answer"), 0, "{what}");
        bystander.must_live();
    }
    assert!(session.connection.status().borrow().exit.is_none(), "the real one lives on");
}

async fn alive(backend: &dyn Backend, ticket: &Ticket) -> Arc<dyn Connection> {
    match backend.adopt(ticket).await.expect("an answer") {
        Adoption::Alive(connection) => connection,
        Adoption::Ended(record) => panic!("it was taken for ended: {record:?}"),
        Adoption::Lost => panic!("it was taken for lost"),
    }
}
