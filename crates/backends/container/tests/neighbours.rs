//! Containers that are not ours alone: those of somebody else, and those that sessions share.

mod support;

use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder};
use support::{Bench, IMAGE};
use wharf_backend::conformance::{Transcript, until, within};
use wharf_backend::{Adoption, Backend, Connection, Stop};
use wharf_model::{Code, Offset, Reason, Size, Ticket};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

support::on_both! {
    a_guest_has_the_size_the_numbers_and_the_signals_of_its_container
    a_killed_holder_takes_its_own_session_with_it_and_no_other
    a_killed_container_is_the_end_of_all_that_share_it
    a_shared_container_stays_while_it_is_used_and_goes_with_the_last
    a_neighbour_types_into_nobody_by_the_socket_of_another
    a_neighbour_looks_into_no_holder
}

async fn client(bench: &Bench) -> Docker {
    bench.engine.client().expect("it answers").negotiate_version().await.expect("a version")
}

async fn remove(client: &Docker, name: &str) {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    client.remove_container(name, Some(options)).await.expect("a removal");
}

fn kill() -> Stop {
    Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "a test".to_owned() }
}

async fn a_guest_has_the_size_the_numbers_and_the_signals_of_its_container(bench: Bench) {
    let client = client(&bench).await;
    let name = format!("theirs-{}", std::process::id());
    let script = "trap 'exit 9' USR1; trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done";
    let body = ContainerCreateBody {
        image: Some(IMAGE.to_owned()),
        cmd: Some(["sh", "-c", script].map(str::to_owned).to_vec()),
        tty: Some(true),
        open_stdin: Some(true),
        host_config: Some(HostConfig { network_mode: Some("none".to_owned()), ..HostConfig::default() }),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    client.create_container(Some(options), body).await.expect("a container");
    client.start_container(&name, None).await.expect("a start");
    let mut launch = bench.launch(vec![name.as_str().into()]);
    launch.spec.container = None;
    launch.spec.adopt = Some(name.as_str().into());
    let (ticket, connection) = bench.start(launch).await;
    let mut seen = Transcript::of(&*connection, Offset(0)).await;
    seen.until("up").await;
    connection.resize(Size { cols: 101, rows: 37 }).await.expect("a size");
    seen.until("37 101").await;
    let stats = connection.stats().await.expect("numbers");
    assert!(stats.memory > 0 && stats.processes > 0, "{stats:?}");
    assert_eq!(connection.signal(10, true).await.map_err(|failure| failure.code), Err(Code::Unsupported));
    // Another daemon has the same hold of it.
    let Ok(Adoption::Alive(connection)) = bench.open().adopt(&ticket).await else { panic!("it lives") };
    connection.signal(10, false).await.expect("a signal");
    let record = within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("a record");
    assert_eq!((record.code, record.reason), (Some(9), Reason::Exited));
    bench.clear(&ticket).await;
    remove(&client, &name).await;
}

/// Starts a session in a container that is shared.
async fn start(bench: &Bench, script: &str) -> (Ticket, Arc<dyn Connection>) {
    let mut launch = bench.shell(script);
    launch.spec.container.as_mut().expect("a container").reuse = true;
    let (ticket, connection) = bench.start(launch).await;
    Transcript::of(&*connection, Offset(0)).await.until("up").await;
    (ticket, connection)
}

/// Whether a process is there.
fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

async fn a_killed_holder_takes_its_own_session_with_it_and_no_other(bench: Bench) {
    let (one, first) = start(&bench, "echo up; exec sleep 600").await;
    let (two, second) = start(&bench, "echo up; read -r x; exit 6").await;
    let (holder, command) = (one.holder.clone().expect("seen"), one.command.clone().expect("seen"));
    let pid = rustix::process::Pid::from_raw(holder.pid).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it was there");
    let broken = within(TEST_TIMEOUT, "the end", first.wait()).await;
    assert_eq!(broken.expect_err("no holder could tell").code, Code::Unreachable);
    until("it is lost", async || matches!(bench.open().adopt(&one).await, Ok(Adoption::Lost))).await;
    bench.clear(&one).await;
    until("what it left is ended", async || !lives(command.pid)).await;
    second.write(b"\n", TEST_TIMEOUT).await.expect("the other is there");
    assert_eq!(within(TEST_TIMEOUT, "the end", second.wait()).await.expect("a record").code, Some(6));
    bench.clear(&two).await;
    assert!(!bench.root().join("state/berths").read_dir().is_ok_and(|mut dir| dir.next().is_some()));
}

async fn a_killed_container_is_the_end_of_all_that_share_it(bench: Bench) {
    let (one, first) = start(&bench, "echo up; exec sleep 600").await;
    let (two, second) = start(&bench, "echo up; exec sleep 600").await;
    let private: serde_json::Value =
        serde_json::from_str(one.private.as_deref().expect("words")).expect("JSON");
    remove(&client(&bench).await, private["container"].as_str().expect("an id")).await;
    for (ticket, connection) in [(one, first), (two, second)] {
        // Podman asks first, and a holder that is asked has a word to say.
        if within(TEST_TIMEOUT, "the end", connection.wait()).await.is_err() {
            until("its end is known", async || {
                matches!(bench.open().adopt(&ticket).await, Ok(Adoption::Lost | Adoption::Ended(_)))
            })
            .await;
        }
        bench.clear(&ticket).await;
        assert!(ticket.dir.as_path().join("log").read_dir().expect("its log is kept").next().is_some());
    }
}

/// Types by the socket of another session, first as itself and then as an orphan of nobody, when it has killed its own holder.
/// What it is answered goes where the other sees it.
const TYPE_INTO: &str = r"echo up
attack() {
  (printf '\004\000\000\000\001\000\000\000\006\000\000\000pwned\n'; sleep 3) |
    /run/wharf/holder relay $SOCKET 2>/dev/null | head -c 1 | tr '\201\202' 'AE' > /tmp/new$1
  mv /tmp/new$1 /tmp/answer$1
}
attack 1
export -f attack; export HOLDER=$PPID SOCKET
setsid bash -c 'kill -9 $HOLDER; while kill -0 $HOLDER 2>/dev/null; do sleep 0.05; done; attack 2' > /dev/null 2>&1 < /dev/null &
sleep 600";

async fn a_neighbour_types_into_nobody_by_the_socket_of_another(bench: Bench) {
    let victim = "echo up; for at in 1 2; do until [ -e /tmp/answer$at ]; do sleep 0.05; done; \
                  echo answer $at $(cat /tmp/answer$at); done; exec sleep 600";
    let (one, first) = start(&bench, victim).await;
    let attack = format!("SOCKET=/run/wharf/berth/{}/sock; {TYPE_INTO}", one.id);
    let mut launch = bench.launch(["bash", "-c", &attack].map(Into::into).to_vec());
    launch.spec.container.as_mut().expect("a container").reuse = true;
    let (two, second) = bench.start(launch).await;
    let mut seen = Transcript::of(&*first, Offset(0)).await;
    // E is an error; A would say that it was typed.
    seen.until("answer 1 E").await;
    seen.until("answer 2 E").await;
    first.stop(kill()).await.expect("an end");
    // The container goes with the last session, which was not the end of this one.
    until("it is lost", async || match bench.open().adopt(&two).await {
        Ok(Adoption::Ended(record)) => panic!("nobody saw its end: {record:?}"),
        found => matches!(found, Ok(Adoption::Lost)),
    })
    .await;
    drop(second);
    bench.clear(&one).await;
    bench.clear(&two).await;
}

async fn a_neighbour_looks_into_no_holder(bench: Bench) {
    let (one, first) = start(&bench, "echo up; exec sleep 600").await;
    let look = "echo up; seen=0; open=0; for at in /proc/[0-9]*; do read -r name < $at/comm; case $name in *holder) \
                seen=$((seen + 1)); cat $at/environ > /dev/null 2>&1 && open=$((open + 1));; esac; done; \
                echo seen $seen, open $open.; exec sleep 600";
    let (two, second) = start(&bench, look).await;
    // The one that keeps the container, the other's and its own.
    Transcript::of(&*second, Offset(0)).await.until("seen 3, open 0.").await;
    for (ticket, connection) in [(one, first), (two, second)] {
        connection.stop(kill()).await.expect("an end");
        bench.clear(&ticket).await;
    }
}

async fn a_shared_container_stays_while_it_is_used_and_goes_with_the_last(bench: Bench) {
    let (ticket, connection) = start(&bench, "echo up; exec sleep 600").await;
    let private: serde_json::Value =
        serde_json::from_str(ticket.private.as_deref().expect("words")).expect("JSON");
    let id = private["container"].as_str().expect("an id").to_owned();
    let client = client(&bench).await;
    // Another daemon uses the engine: a container with a session in it stays.
    until("it is asked", async || bench.open().probe().await.available).await;
    client.inspect_container(&id, None).await.expect("it is there still");
    connection.stop(kill()).await.expect("an end");
    drop(connection);
    until("it is gone", async || client.inspect_container(&id, None).await.is_err()).await;
    assert!(ticket.dir.as_path().join("log").read_dir().expect("its log is kept").next().is_some());
    bench.clear(&ticket).await;
}
