//! What a backend says of itself.

use std::sync::Arc;

use wharf_model::{Offset, Size};

use crate::conformance::Place;
use crate::conformance::running::absent;

/// It is available, and has a word for itself that its tickets carry.
pub async fn it_is_available(place: Arc<Place>) {
    let probe = place.backend().probe().await;
    assert!(probe.available, "{probe:?}");
    assert!(!probe.detail.is_empty());
    let name = place.backend().name();
    assert!(
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    );
    assert_eq!(place.sleeper().await.ticket.backend, name);
    assert_eq!(place.reopen().capabilities(), place.can(), "it claims the same each time");
}

/// Whatever it does not claim answers *unsupported*, and does nothing.
pub async fn what_is_absent_says_so(place: Arc<Place>) {
    let can = place.can();
    let session = place.sleeper().await;
    let connection = &session.connection;
    if !can.resize || !place.tty() {
        absent("a resize", connection.resize(Size::default()).await);
    }
    if !can.signal {
        absent("a signal", connection.signal(15, false).await);
    }
    if !can.pending_input {
        absent("pending input", connection.pending().await);
    }
    if !can.stats {
        absent("statistics", connection.stats().await);
    }
    if !can.offsets {
        absent("an offset", connection.output(Offset(1)).await);
    }
    if !can.list {
        absent("a list", place.backend().list().await);
    }
    if !can.adopt {
        absent("adoption", place.backend().adopt(&session.ticket).await);
    }
    assert!(connection.status().borrow().exit.is_none(), "the session lives on");
}
