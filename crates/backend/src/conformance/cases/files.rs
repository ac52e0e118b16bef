//! Files that go in and out of a session's place.

use std::sync::Arc;

use wharf_model::{Code, FileKind, Text};

use crate::conformance::{CASE_TIMEOUT, Place, TestArchive, within};

/// What goes in is there for the command, and comes out as it was.
pub async fn what_goes_in_comes_out(place: Arc<Place>) {
    let session = place.sleeper().await;
    let Some(files) = place.backend().files() else {
        assert!(!place.can().copy, "copies are claimed, and there are no files");
        return;
    };
    assert!(place.can().copy, "there are files, and copies are not claimed");
    let ticket = &session.ticket;
    let here = within(CASE_TIMEOUT, "a look", files.look(ticket, &".".into(), true)).await.expect("a look");
    let here = here.expect("the session's directory is there");
    assert_eq!(here.kind, FileKind::Directory);
    // Names are the case's own: some places share their directory with others.
    let name = format!("in-{}", &session.token[session.token.len().saturating_sub(20)..]);
    let data: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
    let archive = TestArchive::default().file(&name, &data, here.owner.unwrap_or_default()).closed();
    within(CASE_TIMEOUT, "a copy", files.put(ticket, &".".into(), archive)).await.expect("it goes in");
    let path = Text::from(name.as_str());
    let found = files.look(ticket, &path, false).await.expect("a look").expect("it is there");
    assert_eq!((found.kind, found.size, found.mode), (FileKind::File, 100_000, 0o640), "{found:?}");
    let taken = within(CASE_TIMEOUT, "a copy", files.take(ticket, &path, false)).await.expect("it comes out");
    let (as_named, back) =
        within(CASE_TIMEOUT, "a copy", TestArchive::opened(taken)).await.expect("all of it");
    assert_eq!(as_named, name);
    assert!(back == data, "{} bytes came back, and others", back.len());
    // It is replaced, and not written to.
    let archive = TestArchive::default().file(&name, b"new", here.owner.unwrap_or_default()).closed();
    files.put(ticket, &".".into(), archive).await.expect("it goes in");
    assert_eq!(files.look(ticket, &path, true).await.expect("a look").expect("it is there").size, 3);
}

/// What is not there is said to be not there, and an archive that breaks off is a failure.
pub async fn what_is_not_there_is_said(place: Arc<Place>) {
    let session = place.sleeper().await;
    let Some(files) = place.backend().files() else {
        assert!(!place.can().copy, "copies are claimed, and there are no files");
        return;
    };
    let (ticket, missing) = (&session.ticket, Text::from("no/such/file"));
    assert_eq!(files.look(ticket, &missing, true).await.expect("a look"), None);
    let Err(failure) = files.take(ticket, &missing, false).await else { panic!("nothing was copied") };
    assert_eq!(failure.code, Code::NotFound, "{failure:?}");
    let archive = TestArchive::default().file("x", b"x", (0, 0)).closed();
    let failure = files.put(ticket, &missing, archive).await.expect_err("there is nothing to put it in");
    assert_eq!(failure.code, Code::NotFound, "{failure:?}");
    assert!(session.connection.status().borrow().exit.is_none(), "the session lives on");
}
