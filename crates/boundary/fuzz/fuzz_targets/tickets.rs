//! Any bytes as a ticket: refused, or read so that what is written of it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_model::Ticket;

fuzz_target!(|data: &[u8]| {
    let Ok(ticket) = serde_json::from_slice::<Ticket>(data) else { return };
    let written = serde_json::to_vec(&ticket).expect("what was read can be written");
    let again: Ticket = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, ticket);
    // A name or an id that leads elsewhere would be a path.
    let name = ticket.name.as_str();
    assert!(name.matches('/').count() < 2, "{name:?} is no name in a group");
    for word in name.split('/').chain([ticket.id.as_str()]) {
        assert!(!word.contains('/') && !matches!(word, "" | "." | ".."), "{word:?} is no name of one file");
    }
});
