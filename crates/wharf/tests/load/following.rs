//! Tests followers of a log against rotation, slow readers and the session's end.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Wharf, until};
use crate::tools::{holder, memory, show, within};

/// What a reader of numbered records must have: each whole, in order, and what is missing is told to the byte.
#[track_caller]
fn accounted(out: &[u8], err: &str, total: u64) {
    const RECORD: u64 = 16;
    let gone: u64 = err
        .lines()
        .filter(|line| line.contains("bytes are gone"))
        .map(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(out.len() as u64 + gone, total, "{err}");
    // Where each piece begins is known by the gaps: check every byte by its offset.
    let mut gaps: Vec<(u64, u64)> = err
        .lines()
        .filter_map(|line| {
            let (_, range) = line.split_once("from ")?;
            let (from, to) = range.split_once(" to ")?;
            Some((from.parse().ok()?, to.parse().ok()?))
        })
        .collect();
    gaps.reverse();
    let (mut offset, mut at) = (0_u64, 0_usize);
    while offset < total {
        if gaps.last().is_some_and(|(from, _)| *from == offset) {
            offset = gaps.pop().unwrap().1;
            continue;
        }
        let until = gaps.last().map_or(total, |(from, _)| *from);
        while offset < until {
            let expected = format!("{:015}\n", offset / RECORD);
            let within = (offset % RECORD) as usize;
            let length = (RECORD as usize - within).min((until - offset) as usize);
            assert_eq!(&out[at..at + length], &expected.as_bytes()[within..within + length], "at {offset}");
            (offset, at) = (offset + length as u64, at + length);
        }
    }
}

#[test]
fn a_follower_that_races_rotation_knows_what_it_missed() {
    const RECORDS: u64 = 2_000_000;
    let wharf = Wharf::new();
    let script = format!("read x; perl -e 'printf \"%015d\\n\", $_ for 0..{}'", RECORDS - 1);
    wharf.start("one", &["--no-tty", "--log-size", "256k"], &["sh", "-c", &script]);
    let follow = || {
        let mut command = wharf.command(&["logs", "-f", "one"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let followers: Vec<_> = (0..4).map(|_| follow()).collect();
    wharf.ok(&["write", "one", "\n"]);
    let readers: Vec<_> =
        followers.into_iter().map(|child| std::thread::spawn(|| child.wait_with_output().unwrap())).collect();
    for reader in readers {
        let output = reader.join().unwrap();
        assert!(output.status.success(), "{output:?}");
        accounted(&output.stdout, &String::from_utf8_lossy(&output.stderr), RECORDS * 16);
    }
    assert_eq!(wharf.run(&["wait", "one"]).code, 0);
}

#[test]
fn twenty_five_readers_of_which_five_stand_still() {
    const TOTAL: usize = 50 << 20;
    let wharf = Wharf::new();
    let script = format!("read x; head -c {TOTAL} /dev/zero | tr '\\0' y; read x");
    wharf.start("one", &["--log-size", "100m", "--no-tty"], &["sh", "-c", &script]);
    let spawn = |args: &[&str]| {
        let mut command = wharf.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let files = || spawn(&["logs", "-f", "one"]);
    // Through the holder, which must not wait for any of them.
    let live = || spawn(&["attach", "-r", "--from", "0", "one"]);
    let mut moving: Vec<_> = (0..10).map(|_| files()).chain((0..10).map(|_| live())).collect();
    let mut stalled: Vec<_> = (0..2).map(|_| files()).chain((0..3).map(|_| live())).collect();
    let holder = holder(&wharf, "one");
    let connected = || show(&wharf, "one")["attached"].as_u64();
    assert!(until(|| connected() == Some(13)), "{:?}", connected());
    let readers: Vec<_> = moving
        .iter_mut()
        .map(|child| {
            let mut out = child.stdout.take().unwrap();
            std::thread::spawn(move || {
                let (mut count, mut buffer) = (0, vec![0; 64 << 10]);
                while let Ok(n @ 1..) = out.read(&mut buffer) {
                    assert!(buffer[..n].iter().all(|b| *b == b'y'));
                    count += n;
                }
                count
            })
        })
        .collect();
    wharf.ok(&["write", "one", "\n"]);
    let end =
        || wharf.json(&["stats", "one", "--json"]).pointer("/0/log_end").and_then(serde_json::Value::as_u64);
    let begun = std::time::Instant::now();
    assert!(until(|| end() == Some(TOTAL as u64)), "{:?} of {TOTAL}", end());
    eprintln!("50 MB with 25 readers took {:?}", begun.elapsed());
    within(Duration::from_secs(1), "ls", || wharf.ok(&["ls"]));
    let peak = memory(holder, "VmHWM:");
    eprintln!("the holder's peak with 25 readers is {peak} kB");
    assert!(peak <= 16 << 10, "the holder took {peak} kB");
    wharf.ok(&["write", "one", "\n"]);
    assert_eq!(wharf.run(&["wait", "--timeout", "20", "one"]).code, 0);
    for reader in readers {
        assert_eq!(reader.join().unwrap(), TOTAL);
    }
    for mut child in moving {
        assert!(child.wait().unwrap().success());
    }
    for child in &mut stalled {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_follower_ends_with_its_session_however_that_ends() {
    let wharf = Wharf::new();
    for (n, end) in [&["kill"][..], &["stop", "-t", "1"], &["rm", "-f"], &["rm", "-f"], &["rm", "-f"]]
        .into_iter()
        .enumerate()
    {
        let name = format!("s{n}");
        wharf.start(&name, &[], &["sh", "-c", "echo first; sleep 1000"]);
        wharf.until_log(&name, "first");
        let mut follower = wharf.command(&["logs", "-f", &name]).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 5];
        follower.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        wharf.ok(&[end, &[&name]].concat());
        assert!(until(|| follower.try_wait().unwrap().is_some()), "after {end:?} it goes on for ever");
        assert!(follower.wait().unwrap().success(), "after {end:?} it failed");
    }
}
