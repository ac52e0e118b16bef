//! Tests keys: control characters, two typists, viewers, and long lines.

use std::path::Path;

use rustix::process::Signal;
use wharf_holder_client::client::{Client, Event};

use crate::support::{Pty, Wharf, until};
use crate::tools::{count, pending, show};

/// An agent that keeps every byte that is typed at it.
fn keeper(wharf: &Wharf, name: &str) {
    let script = "stty raw -echo; echo ready; exec cat > got";
    wharf.start(name, &[], &["sh", "-c", script]);
    wharf.until_log(name, "ready");
}

fn got(wharf: &Wharf) -> Vec<u8> {
    std::fs::read(wharf.home().join("got")).unwrap_or_default()
}

#[test]
fn control_characters_go_through_as_bytes() {
    let wharf = Wharf::new();
    keeper(&wharf, "one");
    let every: Vec<u8> = (0..=255).collect();
    assert_eq!(wharf.run_with(&["write", "one", "-"], &every).code, 0);
    assert_eq!(wharf.run_with(&["write", "one", "-"], b"\x1b[200~paste\x1b[201~\0\x03").code, 0);
    wharf.ok(&["keys", "one", "C-c", "C-@", "Escape", "C-d", "C-z", "Up"]);
    wharf.ok(&["escape", "one"]);
    let expected =
        [&every[..], b"\x1b[200~paste\x1b[201~\0\x03", b"\x03\0\x1b\x04\x1a\x1b[A", b"\x1b"].concat();
    assert!(until(|| got(&wharf).len() >= expected.len()), "{:?}", got(&wharf));
    assert_eq!(got(&wharf), expected);
}

#[test]
fn an_interrupt_character_interrupts_where_the_terminal_says_so() {
    let wharf = Wharf::new();
    for (n, typed) in
        [&["write", "s0", "\x03"][..], &["keys", "s1", "C-c"], &["interrupt", "s2"]].into_iter().enumerate()
    {
        let name = format!("s{n}");
        wharf.start(
            &name,
            &[],
            &["sh", "-c", "trap 'exit 11' INT; echo ready; while :; do sleep 0.02; done"],
        );
        wharf.until_log(&name, "ready");
        wharf.ok(typed);
        assert_eq!(wharf.run(&["wait", "--timeout", "20", &name]).code, 11, "{typed:?}");
    }
}

#[test]
fn two_who_type_at_once_lose_nothing() {
    const LINES: usize = 300;
    let wharf = Wharf::new();
    keeper(&wharf, "one");
    let attach = || {
        let mut pty = Pty::spawn(wharf.command(&["attach", "one"]), (80, 24));
        pty.until("attached to one");
        pty
    };
    let mut users = [attach(), attach()];
    for n in 0..LINES {
        for (user, letter) in users.iter().zip(['a', 'b']) {
            user.type_in(format!("{letter}{n:05}\r").as_bytes());
        }
        // Now and then somebody looks, which must not disturb.
        if n % 100 == 0 {
            wharf.ok(&["ls", "-q"]);
        }
    }
    assert!(until(|| got(&wharf).len() >= LINES * 14), "{} bytes", got(&wharf).len());
    // Each key is a piece of its own, so two hands may mix within a line, but no byte is lost or moved.
    let all = got(&wharf);
    for letter in [b'a', b'b'] {
        assert_eq!(count(&all, letter), LINES);
    }
    assert_eq!(count(&all, b'\r'), 2 * LINES);
    assert_eq!(show(&wharf, "one")["attached"], 2);
    for user in &mut users {
        user.type_in(b"\x1c");
        assert_eq!(user.end(), 0);
    }
}

#[test]
fn a_viewer_changes_nothing_whatever_it_tries() {
    let wharf = Wharf::new();
    keeper(&wharf, "one");
    let mut viewer = Pty::spawn(wharf.command(&["attach", "-r", "one"]), (200, 60));
    viewer.until("attached to one");
    viewer.type_in(b"typed\r\x03\x04\x1a\x1b[A\x1b[200~pasted\x1b[201~\0");
    viewer.resize(33, 11);
    let size = show(&wharf, "one")["size"].clone();
    // At the holder itself, without the program's manners.
    let path = show(&wharf, "one")["path"].as_str().unwrap().to_owned();
    let mut client = Client::connect(Path::new(&path), "watch").unwrap();
    let mut refused = vec![client.send_input(b"direct", true).unwrap(), client.signal(9, true).unwrap()];
    client.send_input(b"unasked", false).unwrap();
    client.close_input().unwrap();
    client.resize(wharf_model::Size { cols: 7, rows: 7 }).unwrap();
    client.set_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    while !refused.is_empty() {
        if let Event::Refused { seq, failure } = client.next_event().unwrap().expect("the holder lives") {
            assert_eq!(failure.code.as_str(), "forbidden");
            refused.retain(|asked| *asked != seq);
        }
    }
    wharf.ok(&["write", "one", "end"]);
    assert!(until(|| got(&wharf).ends_with(b"end")));
    assert_eq!(got(&wharf), b"end");
    let session = show(&wharf, "one");
    assert!(crate::support::is_live(&session) && session["size"] == size, "{session}");
    viewer.signal(Signal::TERM);
    assert_eq!(viewer.end(), 143);
}

#[test]
fn what_a_canonical_terminal_would_cut_can_be_known() {
    let wharf = Wharf::new();
    wharf.start("cooked", &[], &["sh", "-c", "stty -echo; echo ready; exec sleep 1000"]);
    wharf.start("raw", &[], &["sh", "-c", "stty raw -echo; echo ready; exec sleep 1000"]);
    for (name, canonical) in [("cooked", true), ("raw", false)] {
        wharf.until_log(name, "ready");
        // The kernel keeps 4,095 bytes of a line in canonical mode: more is cut, by the kernel, in silence.
        wharf.ok(&["write", name, &format!("{}\n", "x".repeat(3_000))]);
        let pending = || pending(&wharf, name);
        assert!(until(|| pending().unread == 3_001), "{:?}", pending());
        assert_eq!(pending().canonical, canonical);
        assert_eq!(pending().queued, 0);
    }
}
