//! Any stream in any pieces gives the same facts; any screen and any text are read without a panic.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wharf_agents::{Look, Profiles, StreamJson};

static ALL: LazyLock<Profiles> = LazyLock::new(Profiles::built_in);

fuzz_target!(|data: &[u8]| {
    let Some((head, bytes)) = data.split_first_chunk::<4>() else { return };
    let names: Vec<&str> = ALL.names().collect();
    let profile = ALL.get(names[usize::from(head[0]) % names.len()]).expect("a profile of a name");

    let mut whole = StreamJson::new(profile.clone());
    let mut facts = whole.feed(bytes);
    facts.extend(whole.finish());
    let mut cut = StreamJson::new(profile.clone());
    let middle = usize::from(head[1]).min(bytes.len());
    let mut pieces = cut.feed(&bytes[..middle]);
    pieces.extend(cut.feed(&bytes[middle..]));
    pieces.extend(cut.finish());
    assert_eq!(pieces, facts);

    let text = String::from_utf8_lossy(bytes);
    let rows: Vec<String> = text.lines().map(|row| row.trim_end().to_owned()).collect();
    let title = rows.first().cloned().unwrap_or_default();
    let cursor = (usize::from(head[2]), usize::from(head[3]));
    let look = Look { rows: &rows, cursor, title: &title, ..Look::default() };
    let asked = profile.question(&look).is_some();
    let findings = profile.recognise(&look);
    assert!(!asked || findings.iter().any(|finding| finding.state.as_str() == "asking"));
    let _ = profile.composer(&look);

    for raw in [false, true] {
        if let Ok(prepared) = profile.prepare(&text, raw) {
            assert!(!prepared.text.contains("\u{1b}[201~"), "a paste cannot be left");
            let _ = profile.as_received(&prepared.text);
        }
    }
});
