//! Tests `wharf ls`: its JSON fields, its selectors, and that its table is clean.

use crate::support::Wharf;

#[test]
fn the_fields_that_scripts_rely_on_are_there() {
    let wharf = Wharf::new();
    wharf.start("a", &["-g", "g"], &["sleep", "1000"]);
    wharf.start("b", &["-l", "x=1"], &["sleep", "1000"]);
    let all = wharf.json(&["ls", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 2);
    for field in ["id", "name", "group", "backend", "state", "pid", "dir", "created", "attached", "exit"] {
        assert!(all[0].get(field).is_some(), "{field} is missing in {}", all[0]);
    }
    for (selector, name) in [(["--group", "g"], "a"), (["--label", "x"], "b"), (["--label", "x=1"], "b")] {
        let some = wharf.json(&[&["ls", "--json"], &selector[..]].concat());
        assert_eq!(some.as_array().unwrap().len(), 1, "{selector:?}");
        assert_eq!(some[0]["name"], name, "{selector:?}");
    }
    assert_eq!(wharf.ok(&["ls", "-q", "a"]), "a\n");
}

#[test]
fn a_table_shows_no_control_characters() {
    let wharf = Wharf::new();
    wharf.start("a", &[], &["sh", "-c", "sleep 1000 # \x1b[2J\u{202e}\n"]);
    let table = wharf.ok(&["ls"]);
    assert_eq!(table.lines().count(), 2, "{table:?}");
    assert!(!table.contains('\x1b') && !table.contains('\u{202e}'), "{table:?}");
    assert!(!wharf.ok(&["show", "a"]).contains('\x1b'));
}
