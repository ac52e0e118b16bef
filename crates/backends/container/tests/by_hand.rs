//! What somebody does to a container behind our back is seen as what it is; and what a container is kept from.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::{
    KillContainerOptionsBuilder, RemoveContainerOptionsBuilder, RenameContainerOptionsBuilder,
};
use futures_util::StreamExt;
use support::{BUSYBOX, Bench};
use wharf_backend::conformance::{Transcript, until, within};
use wharf_backend::{Adoption, Backend, Connection, Stop};
use wharf_container::{ContainerBackend, Endpoint, Flavour, Options};
use wharf_model::{Code, Container, Offset, Reason, Ticket, Volume};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn name(ticket: &Ticket) -> String {
    format!("wharf-{}", ticket.id)
}

async fn lines(connection: &Arc<dyn Connection>) -> String {
    let output = Transcript::of(&**connection, Offset(0)).await.rest().await.seen;
    String::from_utf8_lossy(&output).replace("\r\n", "\n")
}

async fn client(bench: &Bench) -> Docker {
    bench.engine.client().expect("it answers").negotiate_version().await.expect("a version")
}

/// What becomes of a session once its connection broke.
async fn fate(bench: &Bench, ticket: &Ticket) -> Adoption {
    let mut found = None;
    until("it is known what became of it", async || match bench.open().adopt(ticket).await {
        Ok(Adoption::Alive(_)) | Err(_) => false,
        Ok(fate) => {
            found = Some(fate);
            true
        }
    })
    .await;
    found.expect("just found")
}

fn stop() -> Stop {
    Stop { grace: Duration::ZERO, reason: Reason::Killed, by: "a test".to_owned() }
}

macro_rules! on_both {
    ($($case:ident)*) => {
        mod docker { $( #[test] fn $case() { super::run(super::Flavour::Docker, super::$case); } )* }
        mod podman { $( #[test] fn $case() { super::run(super::Flavour::Podman, super::$case); } )* }
    };
}

on_both! {
    killed
    removed
    stopped_by_the_engine
    paused_and_renamed
    a_start_that_fails_leaves_no_container
    it_is_closed
    secrets_are_not_in_the_engine
    files_are_the_users
    another_user
    one_static_program_is_enough
    worktrees_work
    a_missing_image
    a_hung_engine_delays_nothing
    an_ended_session_leaves_no_container
    strangers_are_left_alone
    orphans_are_cleared_and_doubts_are_kept
    an_image_is_built
    a_next_run_is_not_taken_for_the_last
}

fn run<C>(flavour: Flavour, case: C)
where
    C: AsyncFnOnce(Bench),
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let bench = Bench::new(flavour).await;
        within(Duration::from_secs(100), "the case", case(bench)).await;
    });
}

async fn killed(bench: Bench) {
    let (ticket, connection) = bench.start(bench.shell("echo up; exec sleep 600")).await;
    Transcript::of(&*connection, Offset(0)).await.until("up").await;
    let options = KillContainerOptionsBuilder::default().signal("KILL").build();
    client(&bench).await.kill_container(&name(&ticket), Some(options)).await.expect("a kill");
    let broken = within(TEST_TIMEOUT, "the end", connection.wait()).await;
    assert_eq!(broken.expect_err("no holder could tell").code, Code::Unreachable);
    let Adoption::Ended(record) = fate(&bench, &ticket).await else {
        panic!("its end was seen by the engine")
    };
    assert_eq!((record.signal, record.reason), (Some(9), Reason::Killed));
    assert!(record.by.is_some_and(|by| by.contains("container")));
    assert!(record.log_end.0 >= 3);
    let Adoption::Ended(again) = fate(&bench, &ticket).await else { panic!("an end is for ever") };
    assert_eq!(again.signal, Some(9));
    bench.clear(&ticket).await;
}

async fn removed(bench: Bench) {
    let (ticket, connection) = bench.start(bench.shell("exec sleep 600")).await;
    let options = RemoveContainerOptionsBuilder::default().force(true).build();
    client(&bench).await.remove_container(&name(&ticket), Some(options)).await.expect("a removal");
    // Docker kills it, and nobody is left to tell; Podman asks its first process to go.
    match within(TEST_TIMEOUT, "the end", connection.wait()).await {
        Ok(record) => assert_eq!(record.reason, Reason::Stopped),
        Err(_) => assert!(matches!(fate(&bench, &ticket).await, Adoption::Lost)),
    }
    assert_eq!(bench.open().sweep(&ticket).await, Ok(0));
}

async fn stopped_by_the_engine(bench: Bench) {
    let script = "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done";
    let (ticket, connection) = bench.start(bench.shell(script)).await;
    Transcript::of(&*connection, Offset(0)).await.until("up").await;
    client(&bench).await.stop_container(&name(&ticket), None).await.expect("a stop");
    let record = within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the holder saw to it");
    assert_eq!((record.code, record.reason), (Some(7), Reason::Stopped));
    assert!(lines(&connection).await.contains("bye"));
    bench.clear(&ticket).await;
}

async fn paused_and_renamed(bench: Bench) {
    let (ticket, connection) = bench.start(bench.shell("exec cat")).await;
    let client = client(&bench).await;
    client.pause_container(&name(&ticket)).await.expect("a pause");
    let Err(failure) = bench.open().adopt(&ticket).await else {
        panic!("a paused session cannot be reached")
    };
    assert_eq!(failure.code, Code::Unreachable);
    assert!(failure.message.contains("paused") && failure.hint.is_some(), "{failure:?}");
    assert_eq!(bench.open().sweep(&ticket).await.expect_err("it is not over").code, Code::Running);
    client.unpause_container(&name(&ticket)).await.expect("it goes on");
    let options = RenameContainerOptionsBuilder::default().name(&format!("mine-{}", ticket.id)).build();
    client.rename_container(&name(&ticket), options).await.expect("a rename");
    let Ok(Adoption::Alive(found)) = bench.open().adopt(&ticket).await else { panic!("it lives") };
    found.write(b"hello\n", TEST_TIMEOUT).await.expect("input works");
    Transcript::of(&*found, Offset(0)).await.until("hello").await;
    connection.stop(stop()).await.expect("a stop");
    bench.clear(&ticket).await;
    let left = client.inspect_container(&format!("mine-{}", ticket.id), None).await;
    assert!(left.is_err(), "whatever it is called, it is ours to take away");
}

async fn a_start_that_fails_leaves_no_container(bench: Bench) {
    let launch = bench.launch(vec!["/no/such/command".into()]);
    let (id, home) = (launch.id.clone(), launch.home.clone());
    let failure = bench.open().start(launch).await.err().expect("it cannot run");
    assert_eq!(failure.code, Code::CommandNotFound);
    assert!(client(&bench).await.inspect_container(&format!("wharf-{id}"), None).await.is_err());
    assert!(!home.exists());
}

async fn it_is_closed(bench: Bench) {
    let script = "while read -r key value; do case $key in CapEff:|CapBnd:|NoNewPrivs:) echo $key $value;; esac; done \
        </proc/self/status; ls -d /run/docker.sock /run/podman/podman.sock 2>/dev/null; touch /x 2>/dev/null || echo ro";
    let mut launch = bench.shell(script);
    let container = launch.spec.container.as_mut().expect("a container");
    container.read_only = true;
    let (ticket, connection) = bench.start(launch).await;
    within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
    let none = "0".repeat(16);
    assert_eq!(lines(&connection).await, format!("CapEff: {none}\nCapBnd: {none}\nNoNewPrivs: 1\nro\n"));
    bench.clear(&ticket).await;
    let mut launch = bench.shell("exit 0");
    let socket = bench.engine.endpoint().socket().expect("a socket").to_owned();
    let volume =
        Volume { source: socket.as_path().into(), target: "/var/run/docker.sock".into(), read_only: true };
    launch.spec.container.as_mut().expect("a container").volumes.push(volume);
    let failure = bench.open().start(launch).await.err().expect("it is refused");
    assert_eq!(failure.code, Code::Forbidden, "{failure:?}");
}

async fn secrets_are_not_in_the_engine(bench: Bench) {
    let mut launch = bench.shell("cat /run/secrets/key; echo \"$PASSWORD\" \"$1\"; read -r x");
    launch.env.push(("PASSWORD".into(), "hunter-two".into()));
    launch.argv.push("argument-one".into());
    let file = bench.root().join("key-file");
    std::fs::write(&file, "key-three\n").expect("a file");
    let secret = wharf_model::Secret { name: "key".into(), source: file.as_path().into() };
    launch.spec.container.as_mut().expect("a container").secrets.push(secret);
    let (ticket, connection) = bench.start(launch).await;
    let mut transcript = Transcript::of(&*connection, Offset(0)).await;
    transcript.until("key-three").await;
    transcript.until("hunter-two").await;
    let shown = client(&bench).await.inspect_container(&name(&ticket), None).await.expect("it is there");
    let shown = serde_json::to_string(&shown).expect("JSON");
    for secret in ["hunter-two", "key-three", "argument-one"] {
        assert!(!shown.contains(secret), "{secret} is shown by inspect");
    }
    connection.stop(stop()).await.expect("a stop");
    bench.clear(&ticket).await;
}

async fn files_are_the_users(bench: Bench) {
    use std::os::unix::fs::MetadataExt;
    let (ticket, connection) = bench.start(bench.shell("umask; touch made; mkdir dir")).await;
    assert_eq!(within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end").code, Some(0));
    let own = rustix::process::geteuid().as_raw();
    for made in ["made", "dir"] {
        assert_eq!(bench.root().join(made).metadata().expect("it was made").uid(), own);
    }
    bench.clear(&ticket).await;
}

async fn another_user(bench: Bench) {
    for user in ["1234:1234", "other"] {
        let mut launch = bench.shell("id -u; exec cat");
        launch.spec.dir = "/".into();
        launch.spec.container.as_mut().expect("a container").user = Some(user.to_owned());
        let (ticket, connection) = bench.start(launch).await;
        connection.write(b"typed\n", TEST_TIMEOUT).await.expect("input works");
        let mut transcript = Transcript::of(&*connection, Offset(0)).await;
        transcript.until("1234").await;
        transcript.until("typed").await;
        let Ok(Adoption::Alive(_)) = bench.open().adopt(&ticket).await else { panic!("it is found again") };
        // Whoever reads here is not who writes there.
        for file in std::fs::read_dir(ticket.dir.as_path().join(wharf_model::Home::LOG)).expect("a log") {
            let meta = file.expect("a file").metadata().expect("it is there");
            assert_eq!(meta.permissions().mode() & 0o666, 0o666);
        }
        let record = connection.stop(stop()).await.expect("a stop");
        assert_eq!(record.signal, Some(9));
        bench.clear(&ticket).await;
    }
}

async fn one_static_program_is_enough(bench: Bench) {
    let mut launch = bench.launch(vec!["/bin/busybox".into(), "echo".into(), "from scratch".into()]);
    launch.spec.dir = "/".into();
    let container = Container { network: Some("none".into()), ..Container::of(BUSYBOX) };
    launch.spec.container = Some(container.into());
    let (ticket, connection) = bench.start(launch).await;
    assert_eq!(within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end").code, Some(0));
    assert_eq!(lines(&connection).await, "from scratch\n");
    bench.clear(&ticket).await;
}

async fn worktrees_work(bench: Bench) {
    let root = bench.root();
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments).env("HOME", root);
        let ran = git.current_dir(root).output().expect("git is here");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["init", "-q", "repository"]);
    git(&["-C", "repository", "commit", "-q", "--allow-empty", "-m", "first"]);
    git(&["-C", "repository", "worktree", "add", "-q", "../tree"]);
    let tree = root.join("tree");
    let mut launch = bench.shell("git log --format=%s && touch new && git add new && git status --short");
    launch.env.push(("HOME".into(), "/tmp".into()));
    launch.spec.dir = tree.as_path().into();
    launch.spec.container = Some(support::container(&tree).into());
    let (ticket, connection) = bench.start(launch).await;
    let record = within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
    assert_eq!(lines(&connection).await, "first\nA  new\n");
    assert_eq!(record.code, Some(0));
    bench.clear(&ticket).await;
}

async fn a_missing_image(bench: Bench) {
    let mut launch = bench.shell("exit 0");
    let never = Container { pull: wharf_model::Pull::Never, ..Container::of("localhost/no-such-image") };
    launch.spec.container = Some(never.into());
    let failure = bench.open().start(launch.clone()).await.err().expect("there is none");
    assert_eq!(failure.code, Code::NotFound);
    assert!(failure.message.contains("no-such-image") && failure.hint.is_some(), "{failure:?}");
    launch.spec.container = Some(Container::of("localhost/no-such-image").into());
    let failure =
        within(TEST_TIMEOUT, "a refusal", bench.open().start(launch)).await.err().expect("nobody has it");
    assert_eq!(failure.code, Code::Unavailable, "{failure:?}");
}

async fn a_hung_engine_delays_nothing(bench: Bench) {
    let (ticket, connection) = bench.start(bench.shell("exec cat")).await;
    // It takes connections, and that is all that it does.
    let path = bench.root().join("hung");
    let _hung = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let endpoint = Endpoint::named(format!("unix://{}", path.display()), "a test");
    let options = Options { endpoint: Some(endpoint.clone()), ..bench.options() };
    let backend = ContainerBackend::new(options);
    let probe = within(Duration::from_secs(8), "a probe", backend.probe()).await;
    assert!(!probe.available && probe.detail.contains("silent"), "{probe:?}");
    let hung =
        Ticket { private: Some(format!(r#"{{"endpoint":"{}"}}"#, endpoint.address)), ..ticket.clone() };
    // The holder answers for itself.
    let found = within(Duration::from_secs(1), "an adoption", backend.adopt(&hung)).await;
    let Ok(Adoption::Alive(found)) = found else { panic!("the engine is not needed for that") };
    let record = within(TEST_TIMEOUT, "a stop", found.stop(stop())).await.expect("nor for that");
    assert_eq!(record.signal, Some(9));
    within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
    // Nothing is concluded from silence.
    let gone = Ticket { dir: bench.root().join("nowhere").as_path().into(), ..hung };
    let Err(failure) = within(TEST_TIMEOUT, "an answer", backend.adopt(&gone)).await else {
        panic!("nothing can be known")
    };
    assert_eq!(failure.code, Code::Unreachable);
    bench.clear(&ticket).await;
}

async fn an_ended_session_leaves_no_container(bench: Bench) {
    let (ticket, connection) = bench.start(bench.shell("exit 3")).await;
    within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
    let client = client(&bench).await;
    until("its container is gone", async || client.inspect_container(&name(&ticket), None).await.is_err())
        .await;
    let Ok(Adoption::Ended(record)) = bench.open().adopt(&ticket).await else { panic!("its record is kept") };
    assert_eq!(record.code, Some(3));
}

async fn strangers_are_left_alone(bench: Bench) {
    let (ticket, connection) = bench.start(bench.shell("exec sleep 600")).await;
    // Another install that has the same ticket: the container is not its own.
    let elsewhere = tempfile::tempdir().expect("a directory");
    let options = Options { state: elsewhere.path().to_owned(), ..bench.options() };
    let dir = elsewhere.path().join("session");
    let copy = Ticket { dir: dir.as_path().into(), ..ticket.clone() };
    let stranger = ContainerBackend::new(options);
    assert!(matches!(stranger.adopt(&copy).await, Ok(Adoption::Lost)));
    assert_eq!(stranger.sweep(&copy).await, Ok(0));
    assert!(connection.status().borrow().exit.is_none());
    let Ok(Adoption::Alive(_)) = bench.open().adopt(&ticket).await else { panic!("it lives on") };
    connection.stop(stop()).await.expect("a stop");
    bench.clear(&ticket).await;
}

async fn orphans_are_cleared_and_doubts_are_kept(bench: Bench) {
    let (gone, connection) = bench.start(bench.shell("exec sleep 600")).await;
    let (kept, live) = bench.start(bench.shell("exec sleep 600")).await;
    // A daemon that was ended together with its session had no time to tidy up.
    let (ended, ending) = {
        let backend = bench.open();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let launch = bench.shell("exit 0");
        let started = std::thread::spawn(move || {
            let started = runtime.block_on(async { backend.start(launch).await });
            runtime.shutdown_background();
            started
        });
        let (ticket, _) = started.join().expect("no panic").unwrap_or_else(|failure| panic!("{failure:?}"));
        let home = ticket.dir.as_path().to_owned();
        (ticket, home)
    };
    until("it is over", async || ending.join(wharf_model::Home::EXIT).exists()).await;
    let client = client(&bench).await;
    // Its answer is an error for some codes; that it came is what counts.
    let _ =
        within(TEST_TIMEOUT, "its container's end", client.wait_container(&name(&ended), None).next()).await;
    let there = async |ticket: &Ticket| client.inspect_container(&name(ticket), None).await.is_ok();
    // Their directories are lost. One runs on, and one does not.
    let options = KillContainerOptionsBuilder::default().signal("KILL").build();
    client.kill_container(&name(&gone), Some(options)).await.expect("a kill");
    within(TEST_TIMEOUT, "the end", connection.wait()).await.expect_err("no holder could tell");
    let aside = bench.root().join("aside");
    for ticket in [&gone, &kept] {
        std::fs::rename(ticket.dir.as_path(), aside.with_extension(ticket.id.as_str())).expect("a rename");
    }
    let backend = bench.open();
    assert!(backend.probe().await.available);
    until("the one that is over is cleared away", async || !there(&gone).await).await;
    until("and so is one that nobody tidied up", async || !there(&ended).await).await;
    assert!(there(&kept).await, "what runs may be somebody's");
    std::fs::rename(aside.with_extension(kept.id.as_str()), kept.dir.as_path()).expect("a rename");
    live.stop(stop()).await.expect("a stop");
    bench.clear(&kept).await;
}

async fn an_image_is_built(bench: Bench) {
    let context = bench.root().join("context");
    std::fs::create_dir(&context).expect("a directory");
    let file = format!("FROM {BUSYBOX}\nCOPY greeting /greeting\nENV GREETED=yes\nWORKDIR /bin\n");
    std::fs::write(context.join("Dockerfile"), file).expect("a file");
    std::fs::write(context.join("greeting"), "hello\n").expect("a file");
    let script = "/bin/busybox cat /greeting; /bin/busybox pwd; echo $GREETED";
    let mut launch = bench.launch(vec!["/bin/busybox".into(), "sh".into(), "-c".into(), script.into()]);
    let container = Container {
        build: Some(context.as_path().into()),
        image_variables: true,
        image_dir: true,
        network: Some("none".into()),
        ..Container::default()
    };
    launch.spec.container = Some(container.into());
    let (ticket, connection) = bench.start(launch.clone()).await;
    within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
    assert_eq!(lines(&connection).await, "hello\n/bin\nyes\n");
    bench.clear(&ticket).await;
    // An error in the middle of a build is an error, and is told.
    std::fs::write(context.join("Dockerfile"), format!("FROM {BUSYBOX}\nCOPY no-such /x\n")).expect("a file");
    let failure = bench.open().start(launch).await.err().expect("it cannot be built");
    assert!(failure.message.contains("no-such"), "{failure:?}");
}

async fn a_next_run_is_not_taken_for_the_last(bench: Bench) {
    let launch = bench.shell("exit 0");
    let mut second = launch.clone();
    let (first, connection) = bench.start(launch).await;
    within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
    bench.clear(&first).await;
    // As a restart does it.
    let exit = first.dir.as_path().join(wharf_model::Home::EXIT);
    std::fs::rename(&exit, exit.with_file_name("exit.1.json")).expect("a rename");
    second.run = 2;
    second.argv = bench.shell("exec sleep 600").argv;
    let (ticket, connection) = bench.start(second).await;
    bench.clear(&first).await;
    assert!(connection.status().borrow().exit.is_none());
    let Ok(Adoption::Alive(_)) = bench.open().adopt(&ticket).await else { panic!("the second run lives on") };
    connection.stop(stop()).await.expect("a stop");
    bench.clear(&ticket).await;
}
