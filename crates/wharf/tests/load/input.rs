//! Tests large, concurrent and timed-out writes to late readers.

use std::time::Duration;

use crate::support::{Ran, Wharf, until};
use crate::tools::{count, pending, show, within};

fn pattern(size: usize) -> Vec<u8> {
    (0..size as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

/// An agent that reads only once it is told to, and keeps what it read.
fn late(wharf: &Wharf, name: &str, tty: bool, read: &str) {
    let raw = if tty { "stty raw -echo; " } else { "" };
    let script = format!(
        "{raw}echo ready; until [ -e go-{name} ]; do sleep 0.02; done; {read} > got-{name}; echo done"
    );
    wharf.start(name, if tty { &[] } else { &["--no-tty"] }, &["sh", "-c", &script]);
    wharf.until_log(name, "ready");
}

fn go(wharf: &Wharf, name: &str) {
    std::fs::write(wharf.home().join(format!("go-{name}")), "").unwrap();
}

#[test]
fn any_amount_arrives_whole_at_an_agent_that_reads_late() {
    let wharf = Wharf::new();
    for tty in [true, false] {
        for size in [1, 4 << 10, 1 << 20, 16 << 20] {
            let (name, bytes) = (format!("s{size}-{tty}"), pattern(size));
            late(&wharf, &name, tty, &format!("head -c {size}"));
            std::thread::scope(|scope| {
                let (wharf, name, sent) = (&wharf, &name, &bytes);
                let writer =
                    scope.spawn(move || wharf.run_with(&["write", "--timeout", "20", name, "-"], sent));
                if size > 1 << 20 {
                    // It waits, and nothing else does.
                    within(Duration::from_secs(1), "ls", || wharf.ok(&["ls"]));
                    assert!(!writer.is_finished(), "16 MiB are in a terminal that nobody reads");
                }
                go(wharf, name);
                let ran = writer.join().unwrap();
                assert_eq!(ran.code, 0, "{name}: {ran:#?}");
            });
            wharf.until_log(&name, "done");
            let got = std::fs::read(wharf.home().join(format!("got-{name}"))).unwrap();
            assert!(got == bytes, "{name}: {} of {} bytes, or others", got.len(), bytes.len());
        }
    }
}

#[test]
fn two_long_writes_at_once_both_arrive() {
    const SIZE: usize = 4 << 20;
    let wharf = Wharf::new();
    late(&wharf, "one", false, &format!("head -c {}", 2 * SIZE));
    std::thread::scope(|scope| {
        let writers: Vec<_> = [b'a', b'b']
            .into_iter()
            .map(|letter| {
                let wharf = &wharf;
                scope.spawn(move || {
                    wharf.run_with(&["write", "--timeout", "20", "one", "-"], &vec![letter; SIZE])
                })
            })
            .collect();
        go(&wharf, "one");
        for writer in writers {
            let ran: Ran = writer.join().unwrap();
            assert_eq!(ran.code, 0, "{ran:#?}");
        }
    });
    wharf.until_log("one", "done");
    let got = std::fs::read(wharf.home().join("got-one")).unwrap();
    assert_eq!(count(&got, b'a'), SIZE);
    assert_eq!(count(&got, b'b'), SIZE);
}

#[test]
fn a_write_that_nobody_reads_ends_in_time_and_says_how_much_went_in() {
    let wharf = Wharf::new();
    for (name, tty) in [("tty", true), ("pipes", false)] {
        let size = 3 << 20;
        late(&wharf, name, tty, "exec cat");
        let ran = within(Duration::from_secs(4), "a write", || {
            wharf.run_with(&["write", "--timeout", "1", name, "-"], &pattern(size))
        });
        assert_eq!(ran.code, 124, "{ran:#?}");
        let words =
            ran.err.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<usize>().ok());
        let told: Vec<usize> = words.collect();
        // What it says is what arrives, to the byte.
        go(&wharf, name);
        let got = || {
            std::fs::metadata(wharf.home().join(format!("got-{name}"))).map_or(0, |meta| meta.len() as usize)
        };
        let whole = |count: usize| told.contains(&count) && count > 0;
        assert!(until(|| whole(got())), "{} bytes arrived: {}", got(), ran.err);
        let arrived = std::fs::read(wharf.home().join(format!("got-{name}"))).unwrap();
        assert!(arrived == pattern(size)[..arrived.len()]);
        // Nothing of it comes later: what is written next follows at once.
        wharf.ok(&["write", name, "next"]);
        assert!(until(|| got() == arrived.len() + 4));
        assert!(std::fs::read(wharf.home().join(format!("got-{name}"))).unwrap().ends_with(b"next"));
    }
}

#[test]
fn a_stop_does_not_wait_behind_input() {
    let wharf = Wharf::new();
    for (name, tty) in [("tty", true), ("pipes", false)] {
        late(&wharf, name, tty, "cat");
        std::thread::scope(|scope| {
            let wharf = &wharf;
            let writer = scope
                .spawn(move || wharf.run_with(&["write", "--timeout", "20", name, "-"], &pattern(2 << 20)));
            // It has begun: its first bytes are in, and it cannot come to its end.
            let _ = until(|| writer.is_finished() || pending(wharf, name).queued > 0);
            assert!(!writer.is_finished(), "{:#?}", writer.join().unwrap());
            within(Duration::from_secs(1), "a stop", || wharf.ok(&["stop", "-t", "5", name]));
            let ran = writer.join().unwrap();
            assert!([4, 7].contains(&ran.code), "{ran:#?}");
            assert!(!ran.err.is_empty());
        });
    }
}

#[test]
fn input_to_a_session_in_any_other_state_is_answered() {
    let wharf = Wharf::new();
    wharf.start("ended", &[], &["true"]);
    wharf.run(&["wait", "ended"]);
    let script = "stty raw -echo; trap '' TERM HUP; echo ready; exec cat";
    wharf.start("stubborn", &[], &["sh", "-c", script]);
    wharf.start("waiting", &["--after", "stubborn"], &["true"]);
    wharf.until_log("stubborn", "ready");
    for (name, code) in [("ended", 4), ("waiting", 4), ("nobody", 3)] {
        for input in
            [&["write", name, "x"][..], &["keys", name, "Enter"], &["interrupt", name], &["escape", name]]
        {
            let ran = within(Duration::from_secs(1), "an answer", || wharf.run(input));
            assert_eq!(ran.code, code, "{input:?}: {ran:#?}");
        }
    }
    std::thread::scope(|scope| {
        let wharf = &wharf;
        let stop = scope.spawn(move || wharf.ok(&["stop", "-t", "1.5", "stubborn"]));
        // While it stops it still runs, and may be answered for it: what is taken arrives.
        let mut taken = 0;
        while !stop.is_finished() {
            let ran = within(Duration::from_secs(2), "an answer", || wharf.run(&["write", "stubborn", "z"]));
            assert!([0, 4, 7].contains(&ran.code), "{ran:#?}");
            taken += usize::from(ran.code == 0);
        }
        stop.join().unwrap();
        let log = wharf.log("stubborn");
        let seen = count(&log, b'z');
        assert!(taken > 0 && seen <= taken && seen + 5 >= taken, "{taken} were taken, {seen} arrived");
    });
    assert_eq!(show(&wharf, "stubborn")["state"], "exited");
}
