//! Sessions that turn against their holder's files: what they put there leads nobody on this host anywhere, and holds nobody
//! up. The attackers are shell scripts in real containers, with the rights that every session has.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::KillContainerOptionsBuilder;
use support::Bench;
use wharf_backend::conformance::{Transcript, until, within};
use wharf_backend::{Adoption, Backend, Connection, Stop};
use wharf_model::{ExitRecord, Offset, Reason, Ticket};

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long anything may take that a hostile session would like to take for ever.
const HOSTILE_TIMEOUT: Duration = Duration::from_secs(10);

support::on_both! {
    what_stands_in_the_place_of_an_exit_record_is_none
    a_link_in_the_place_of_a_socket_leads_to_nobody_else
    a_neighbour_is_not_born_in_the_place_of_another
    a_neighbour_takes_no_room_and_no_name_of_another
}

fn kill() -> Stop {
    Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "a test".to_owned() }
}

async fn start(bench: &Bench, script: &str, reuse: bool) -> (Ticket, Arc<dyn Connection>) {
    let mut launch = bench.shell(script);
    launch.spec.container.as_mut().expect("a container").reuse = reuse;
    let (ticket, connection) = bench.start(launch).await;
    within(TEST_TIMEOUT, "its first word", async {
        Transcript::of(&*connection, Offset(0)).await.until("up").await;
    })
    .await;
    (ticket, connection)
}

/// Another daemon, which has to find out what became of it.
async fn adopt(bench: &Bench, ticket: &Ticket) -> wharf_backend::Result<Adoption> {
    within(HOSTILE_TIMEOUT, "an answer", bench.open().adopt(ticket)).await
}

/// How it ended, once that is known. Nothing where it is taken for lost, which is not taken back.
async fn settled(bench: &Bench, ticket: &Ticket) -> Option<ExitRecord> {
    let mut found = adopt(bench, ticket).await;
    until("its end is known", async || {
        if matches!(found, Ok(Adoption::Ended(_) | Adoption::Lost)) {
            return true;
        }
        found = adopt(bench, ticket).await;
        false
    })
    .await;
    match found {
        Ok(Adoption::Ended(record)) => Some(record),
        _ => None,
    }
}

async fn end(bench: &Bench, ticket: &Ticket, connection: &Arc<dyn Connection>) {
    within(TEST_TIMEOUT, "an end", connection.stop(kill())).await.expect("it is ended");
    bench.clear(ticket).await;
}

async fn what_stands_in_the_place_of_an_exit_record_is_none(bench: Bench) {
    let forged = bench.root().join("forged.json");
    std::fs::write(&forged, r#"{"code":0,"reason":"exited"}"#).expect("a file");
    let forged = forged.display();
    for attack in [
        "mkfifo exit.json".to_owned(),
        format!("ln -s {forged} exit.json"),
        "ln -s nowhere exit.json".to_owned(),
        "truncate -s 6G exit.json".to_owned(),
        "mkdir exit.json".to_owned(),
    ] {
        let script = format!("cd /run/wharf/room; {attack} && echo up; exec sleep 600");
        let (ticket, connection) = start(&bench, &script, false).await;
        match adopt(&bench, &ticket).await {
            Ok(Adoption::Alive(_)) => {}
            Ok(Adoption::Ended(record)) => {
                panic!("{attack}: it lives, and this is not its record: {record:?}")
            }
            other => panic!("{attack}: it lives: {:?}", other.err()),
        }
        // Nobody could write a record: what the engine saw is its end, and a file of ours.
        let client = bench.engine.client().expect("it answers").negotiate_version().await.expect("a version");
        let private: serde_json::Value =
            serde_json::from_str(ticket.private.as_deref().expect("words")).expect("JSON");
        let options = KillContainerOptionsBuilder::default().signal("KILL").build();
        let container = private["container"].as_str().expect("an id");
        client.kill_container(container, Some(options)).await.expect("a kill");
        let found = settled(&bench, &ticket).await;
        assert_eq!(found.and_then(|record| record.signal), Some(9), "{attack}");
        let record = ticket.dir.as_path().join("exit.json");
        assert!(std::fs::symlink_metadata(record).expect("a record").is_file(), "{attack}");
        drop(connection);
        bench.clear(&ticket).await;
    }
}

async fn a_link_in_the_place_of_a_socket_leads_to_nobody_else(bench: Bench) {
    let (victim, other) = start(&bench, "echo up; read -r line; echo typed $line", false).await;
    let target = victim.dir.as_path().join("room/sock");
    let script =
        format!("cd /run/wharf/room; rm -f sock; ln -s {} sock; echo up; exec sleep 600", target.display());
    let (evil, connection) = start(&bench, &script, false).await;
    // It runs and cannot be reached: whoever types to it types to nobody.
    if let Ok(Adoption::Alive(found)) = adopt(&bench, &evil).await {
        let _ = found.write(b"for the evil one\n", HOSTILE_TIMEOUT).await;
    }
    other.write(b"for me\n", TEST_TIMEOUT).await.expect("the other is there");
    let seen = within(TEST_TIMEOUT, "its output", async {
        Transcript::of(&*other, Offset(0)).await.rest().await.seen
    })
    .await;
    assert_eq!(String::from_utf8_lossy(&seen), "up\ntyped for me\n");
    bench.clear(&victim).await;
    end(&bench, &evil, &connection).await;
}

/// Whether a process was started by somebody with this variable.
fn has_variable(pid: i32, variable: &str) -> bool {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|pair| pair == variable.as_bytes())
}

async fn a_neighbour_is_not_born_in_the_place_of_another(bench: Bench) {
    // It calls wherever somebody waits for a holder, long before the engine has started one.
    let script = "export EVIL=1; echo up; while :; do for birth in /run/wharf/berth/*/birth; do \
        [ -S $birth ] && /run/wharf/holder one $birth & done; sleep 0.02; done";
    let (evil, connection) = start(&bench, script, true).await;
    for _ in 0..3 {
        let (ticket, victim) = start(&bench, "echo up; read -r x; exit 6", true).await;
        let holder = ticket.holder.clone().expect("it is seen from here");
        assert!(!has_variable(holder.pid, "EVIL=1"), "a neighbour holds the session");
        victim.write(b"\n", TEST_TIMEOUT).await.expect("it is there");
        assert_eq!(within(TEST_TIMEOUT, "the end", victim.wait()).await.expect("a record").code, Some(6));
        bench.clear(&ticket).await;
    }
    end(&bench, &evil, &connection).await;
}

async fn a_neighbour_takes_no_room_and_no_name_of_another(bench: Bench) {
    // Apart from what containers see: where they may write themselves, their own holder may follow their own link.
    let apart = tempfile::tempdir().expect("a directory");
    let precious = apart.path().to_owned();
    std::fs::write(precious.join("file"), "precious").expect("a file");
    // All that it finds becomes a link to a directory of this host.
    let script = format!(
        "echo up; while :; do for room in /run/wharf/berth/*; do [ -e $room/mine ] || [ -L $room ] || \
         {{ mv $room $room.old && ln -s {} $room; }}; done; sleep 0.05; done",
        precious.display()
    );
    let (other, kept) = start(&bench, "echo up; read -r x; exit 6", false).await;
    let mut launch = bench.shell(&format!(": > /run/wharf/berth/$ID/mine; {script}"));
    launch.spec.container.as_mut().expect("a container").reuse = true;
    launch.env.push(("ID".into(), launch.id.as_str().into()));
    let (evil, connection) = bench.start(launch).await;
    within(TEST_TIMEOUT, "its first word", async {
        Transcript::of(&*connection, Offset(0)).await.until("up").await;
    })
    .await;
    let mut launch = bench.shell("echo up; exec sleep 600");
    launch.spec.container.as_mut().expect("a container").reuse = true;
    // It may or may not live with such a neighbour: only nothing of this host is touched.
    match within(TEST_TIMEOUT * 2, "an answer", bench.open().start(launch)).await {
        Ok((ticket, victim)) => {
            let inside = ticket.dir.as_path().join("room");
            until("its room is a link", async || {
                std::fs::read_link(&inside).is_ok_and(|way| way.is_symlink())
            })
            .await;
            let _ = adopt(&bench, &ticket).await;
            let _ = within(TEST_TIMEOUT, "an end", victim.stop(kill())).await;
            drop(victim);
            let _ = within(TEST_TIMEOUT, "a sweep", bench.open().sweep(&ticket)).await;
        }
        Err(failure) => eprintln!("it was refused: {failure:?}"),
    }
    end(&bench, &evil, &connection).await;
    untouched(&precious);
    kept.write(b"\n", TEST_TIMEOUT).await.expect("the one apart is there");
    assert_eq!(within(TEST_TIMEOUT, "the end", kept.wait()).await.expect("a record").code, Some(6));
    bench.clear(&other).await;
}

fn untouched(precious: &Path) {
    let names: Vec<_> =
        std::fs::read_dir(precious).expect("it is there").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["file"]);
    assert_eq!(std::fs::read_to_string(precious.join("file")).expect("it is there"), "precious");
}
