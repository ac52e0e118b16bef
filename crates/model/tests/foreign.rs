//! Tickets and exit records as somebody else wrote them: refused, or read so that what is written of them reads the same.

use proptest::prelude::*;
use serde_json::{Value, json};
use wharf_model::{ExitRecord, Ticket};

/// Any JSON, not too deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,8}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// A ticket with one of its fields, or none, replaced.
fn tickets() -> impl Strategy<Value = Value> {
    let fields = prop::sample::select(vec![
        "id", "name", "run", "backend", "dir", "token", "created", "started", "holder", "command", "scope",
        "spec", "private", "other",
    ]);
    (fields, any_json()).prop_map(|(field, value)| {
        let mut ticket = json!({
            "id": "1m7hj3a754n49hvp", "name": "one", "run": 1, "backend": "local", "dir": "/d", "token": "t",
            "created": 1, "spec": { "argv": ["true"] },
        });
        ticket[field] = value;
        ticket
    })
}

proptest! {
    #[test]
    fn any_bytes_as_a_ticket_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = serde_json::from_slice::<Ticket>(&bytes);
        let _ = serde_json::from_slice::<ExitRecord>(&bytes);
    }

    #[test]
    fn a_ticket_that_is_read_names_one_file_and_reads_the_same(written in tickets()) {
        if let Ok(ticket) = serde_json::from_value::<Ticket>(written) {
            let again: Ticket = serde_json::from_value(serde_json::to_value(&ticket).expect("JSON")).expect("a ticket");
            prop_assert_eq!(&again, &ticket);
            for word in [ticket.id.as_str(), ticket.name.as_str()] {
                prop_assert!(!word.contains('/') && !["", ".", ".."].contains(&word), "{:?}", word);
            }
        }
    }

    #[test]
    fn an_exit_record_that_is_read_reads_the_same(
        field in prop::sample::select(vec!["code", "signal", "oom", "reason", "by", "started", "ended", "log_end", "leftovers"]),
        value in any_json(),
    ) {
        let mut record = json!({ "code": 0, "reason": "exited" });
        record[field] = value;
        if let Ok(record) = serde_json::from_value::<ExitRecord>(record) {
            let again: ExitRecord = serde_json::from_value(serde_json::to_value(&record).expect("JSON")).expect("a record");
            prop_assert_eq!(again, record);
        }
    }
}
