//! Tests `wharf send` and `ask`: receipts, repeated keys, drafts, dying daemons.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{Pty, Ran, Wharf, until};

/// The receipt that a command printed.
#[track_caller]
fn receipt(ran: &Ran) -> Value {
    let receipt: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:#?}"));
    for field in ["id", "status", "evidence", "attempts"] {
        assert!(receipt.get(field).is_some(), "{field} is missing: {ran:#?}");
    }
    receipt
}

fn times(wharf: &Wharf, name: &str, text: &str) -> usize {
    String::from_utf8_lossy(&wharf.log(name)).matches(text).count()
}

#[test]
fn a_message_arrives_in_every_kind_of_program() {
    let wharf = Wharf::new();
    let programs: [(&str, &[&str], &str, &str); 4] = [
        ("cat", &["cat"], "as it is", "as it is\r\nas it is"),
        ("sh", &["sh"], "echo a$((40 + 2))b", "a42b"),
        ("bash", &["bash", "--norc"], "echo a$((40 + 2))b", "a42b"),
        ("python", &["python3", "-i"], "print(40 + 2, 'b')", "42 b"),
    ];
    for (name, argv, text, shows) in programs {
        wharf.start(name, &[], argv);
        let ran = wharf.run(&["send", name, text, "--json", "--timeout", "60"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(receipt(&ran)["status"], "confirmed");
        wharf.until_log(name, shows);
    }
}

#[test]
fn the_text_comes_from_standard_input_or_a_file() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    let file = wharf.home().join("text");
    std::fs::write(&file, "from a file\n").unwrap();
    wharf.ok(&["send", "one", "-f", file.to_str().unwrap()]);
    for args in [["send", "one", "-f", "-"].as_slice(), &["send", "one", "-"]] {
        let ran = wharf.run_with(args, "héllo wörld ✨\n".as_bytes());
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    assert!(
        until(|| times(&wharf, "one", "wörld ✨\r\n") == 4),
        "each is echoed and printed, and no line is empty"
    );
    assert!(!String::from_utf8_lossy(&wharf.log("one")).contains("\r\n\r\n"));
    let ran = wharf.run_with(&["send", "one", "-f", "-"], b"ab\xff");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.err.contains("wharf write one"), "{ran:#?}");
    for nothing in [["send", "one"].as_slice(), &["send", "one", ""], &["send", "one", "-f", "/nonexistent"]]
    {
        assert_eq!(wharf.run(nothing).code, 2, "{nothing:?}");
    }
    assert_eq!(wharf.run(&["send", "nobody", "x"]).code, 3);
}

#[test]
fn what_does_not_arrive_has_a_code_and_a_receipt() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["send", "one", "sleep 1000", "--wait=submitted"]);
    wharf.ok(&["wait", "one", "--until", "working", "--timeout", "20"]);
    let late = wharf.run(&["send", "one", "echo late", "--timeout", "300ms", "--json"]);
    assert_eq!((late.code, receipt(&late)["status"].as_str()), (12, Some("expired")), "{late:#?}");
    let now = wharf.run(&["send", "one", "echo now", "--when", "now", "--json"]);
    assert_eq!((now.code, receipt(&now)["status"].as_str()), (10, Some("refused")), "{now:#?}");
    let plain = wharf.run(&["send", "one", "echo now", "--when", "now"]);
    assert!(
        plain.code == 10 && plain.err.starts_with("wharf: message ") && plain.out.is_empty(),
        "{plain:#?}"
    );

    let id = wharf.ok(&["send", "one", "echo queued", "--no-wait"]);
    let id = id.trim();
    assert!(wharf.ok(&["cancel", id]).contains("cancelled"));
    let listed = wharf.json(&["messages", "one", "--json"]);
    let statuses: Vec<&str> =
        listed.as_array().unwrap().iter().map(|m| m["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["confirmed", "expired", "refused", "refused", "cancelled"]);
    assert!(wharf.ok(&["messages", "one"]).contains("echo queued"));
    assert_eq!(wharf.run(&["cancel", "../x"]).code, 2);

    wharf.ok(&["interrupt", "one"]);
    wharf.ok(&["send", "one", "echo done"]);
    wharf.until_log("one", "done\r\n");
    wharf.ok(&["wait", "one", "--until", "idle", "--timeout", "20"]);
    for never in ["late", "now", "queued"] {
        assert_eq!(times(&wharf, "one", never), 0, "{never}");
    }
    wharf.ok(&["kill", "one"]);
    assert_eq!(wharf.run(&["send", "one", "x"]).code, 4);
}

#[test]
fn a_message_with_the_same_key_is_the_same_message() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    let first = receipt(&wharf.run(&["send", "one", "once", "--key", "k1", "--json"]));
    let again = receipt(&wharf.run(&["send", "one", "once", "--key", "k1", "--json"]));
    assert_eq!(first["id"], again["id"]);
    wharf.ok(&["send", "one", "other"]);
    assert_eq!(times(&wharf, "one", "once"), 2, "echoed and printed");
}

#[test]
fn a_daemon_that_dies_meanwhile_is_replaced_and_nothing_is_sent_twice() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["send", "one", "cat > /dev/null", "--wait=submitted"]);
    wharf.ok(&["wait", "one", "--until", "working", "--timeout", "20"]);
    let sending = wharf
        .command(&["send", "one", "echo m$((20 + 1))m", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let queued = || wharf.json(&["messages", "one", "--json"]).as_array().unwrap().len() == 2;
    assert!(until(queued), "it is in the queue");
    wharf.kill_daemon();
    wharf.ok(&["keys", "one", "C-d"]);
    let ran = Ran::from(sending.wait_with_output().unwrap());
    assert_eq!((ran.code, receipt(&ran)["status"].as_str()), (0, Some("confirmed")), "{ran:#?}");
    wharf.until_log("one", "m21m");
    wharf.ok(&["send", "one", "echo last", "--wait=idle"]);
    assert_eq!(times(&wharf, "one", "m21m\r\n"), 1);
}

#[test]
fn a_text_can_be_left_unsubmitted_and_an_answer_awaited() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["send", "one", "echo dra", "--no-submit"]);
    assert!(wharf.ok(&["capture", "one"]).contains("echo dra"));
    wharf.ok(&["keys", "one", "C-u"]);
    assert!(wharf.ok(&["ask", "one", "echo a$((1 + 1))b", "--timeout", "60"]).contains("a2b"));
    let reply = wharf.json(&["ask", "one", "echo c$((1 + 1))d", "--json"]);
    assert!(reply["text"].as_str().unwrap().contains("c2d"), "{reply}");
    assert_eq!(reply["receipt"]["status"], "confirmed");
}

#[test]
fn an_interpreter_is_asked_and_its_answer_is_what_it_printed() {
    for (argv, question) in [
        (["python3", "-q"].as_slice(), "print('first', 40 + 2); print('second', 40 + 2)"),
        (&["node"], "for (const word of ['first', 'second']) console.log(word, 40 + 2)"),
    ] {
        crate::support::needs(argv[0]);
        let wharf = Wharf::on_this_host();
        wharf.start("one", &[], argv);
        let ask = |text: &str| {
            let reply = wharf.json(&["ask", "one", text, "--timeout", "60", "--json"]);
            assert_eq!(reply["receipt"]["status"], "confirmed", "{argv:?}: {reply}");
            reply["text"].as_str().unwrap().trim().to_owned()
        };
        // Alone: neither the question, nor the prompt that comes after it.
        assert_eq!(ask("6 * 7"), "42", "{argv:?}");
        let several = ask(question);
        let lines: Vec<&str> = several.lines().map(str::trim_end).collect();
        assert!(lines.starts_with(&["first 42", "second 42"]), "{argv:?}: {several:?}");
        assert!(!several.contains('>'), "{argv:?}: {several:?}");
        assert_eq!(ask("6 * 7"), "42", "{argv:?}");
    }
}

#[test]
fn two_senders_and_a_daemon_that_keeps_dying_double_and_mix_nothing() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    let send = |sender: &str| {
        let texts = (0..6).map(|number| format!("<{sender} says number {number}>"));
        let sent = texts.map(|text| {
            let ran = wharf.run(&["send", "one", &text, "--json", "--timeout", "60"]);
            (receipt(&ran)["status"].as_str().unwrap().to_owned(), text)
        });
        sent.collect::<Vec<_>>()
    };
    let over = std::sync::atomic::AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let senders = [scope.spawn(|| send("ann")), scope.spawn(|| send("bob"))];
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                if let Some(pid) = wharf.daemon_pid() {
                    crate::support::kill(pid);
                }
                std::thread::sleep(std::time::Duration::from_millis(300));
            }
        });
        let sent = senders.map(|sender| sender.join().unwrap()).concat();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        sent
    });
    let log = String::from_utf8_lossy(&wharf.log("one")).into_owned();
    for (status, text) in sent {
        // Echoed and printed, each on a line of its own.
        let count = log.lines().filter(|line| line.trim_end() == text).count();
        match status.as_str() {
            "confirmed" => assert_eq!(count, 2, "{text} in {log}"),
            // Its fate is not known, and it is not sent again.
            "unconfirmed" => assert!(count == 0 || count == 2, "{text} in {log}"),
            other => panic!("{text} is {other}"),
        }
    }
}

#[test]
fn a_draft_of_somebody_attached_is_waited_for() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["wait", "one", "--until", "idle", "--timeout", "20"]);
    let mut pty = Pty::spawn(wharf.command(&["attach", "one"]), (80, 24));
    pty.until("attached to one");
    pty.type_in(b"echo half");
    pty.until("echo half");
    let ran = wharf.run(&["send", "one", "echo whole", "--timeout", "2s", "--json"]);
    assert_eq!((ran.code, receipt(&ran)["status"].as_str()), (12, Some("expired")), "{ran:#?}");
    pty.type_in(b"-$((40 + 2))\r");
    pty.until("half-42");
    wharf.ok(&["send", "one", "echo wh$((1 + 1))le", "--timeout", "20s"]);
    pty.until("wh2le");
}

#[test]
fn another_key_submits() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    // At the end of a line that was begun, it hands over what is there, without a line break.
    wharf.ok(&["send", "one", "half", "--submit", "C-d", "--wait=submitted"]);
    wharf.until_log("one", "halfhalf");
    assert_eq!(wharf.run(&["send", "one", "x", "--submit", "Nonsense"]).code, 2);
}
