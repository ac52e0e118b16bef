//! What is refused, and that it does not disturb anybody else.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use common::{TEST_TIMEOUT, World, connect, raw, reply};
use tokio::io::AsyncWriteExt;
use wharf_api::Problem;
use wharf_model::Code;

/// Every route, so that none is forgotten by the tests below.
const ROUTES: &[(&str, &str)] = &[
    ("GET", "/v1/daemon"),
    ("POST", "/v1/daemon/stop"),
    ("GET", "/v1/sessions"),
    ("POST", "/v1/sessions"),
    ("GET", "/v1/sessions/a"),
    ("POST", "/v1/sessions/a/write"),
    ("POST", "/v1/sessions/a/close-input"),
    ("POST", "/v1/sessions/a/resize"),
    ("POST", "/v1/sessions/a/rename"),
    ("GET", "/v1/sessions/a/env"),
    ("POST", "/v1/sessions/a/env"),
    ("POST", "/v1/sessions/a/pipe"),
    ("GET", "/v1/sessions/a/wait"),
    ("GET", "/v1/sessions/a/stats"),
    ("GET", "/v1/sessions/a/log"),
    ("POST", "/v1/stop"),
    ("POST", "/v1/kill"),
    ("POST", "/v1/signal"),
    ("POST", "/v1/restart"),
    ("POST", "/v1/remove"),
    ("GET", "/v1/backends"),
    ("POST", "/v1/gc"),
    ("GET", "/v1/doctor"),
    ("GET", "/nowhere"),
];

fn head(method: &str, target: &str, more: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nconnection: close\r\ncontent-type: application/json\r\n{more}")
}

#[tokio::test]
async fn origins_and_foreign_hosts_are_refused_on_every_route() {
    let world = World::new().await;
    world.start("a", &["fake:sleep"]).await;
    for (method, target) in ROUTES {
        for bad in [
            "host: wharf\r\norigin: null\r\n",
            "host: wharf\r\norigin: http://localhost:7\r\n",
            "host: evil.example\r\n",
            "host: localhost.\r\n",
            "host: wharf\r\nhost: evil.example\r\n",
        ] {
            let answer = raw(&world.home.socket(), head(method, target, &format!("{bad}\r\n"))).await;
            assert_eq!(answer.status, 403, "{method} {target} with {bad:?}: {answer:?}");
            assert_eq!(answer.problem().code, Code::Forbidden);
            assert!(answer.head.contains(Problem::MEDIA_TYPE), "{answer:?}");
        }
    }
    assert_eq!(world.fake.live().len(), 1);
    world.client.daemon().await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn what_is_no_route_or_method_is_a_problem() {
    let world = World::new().await;
    let socket = world.home.socket();
    for (method, target, status) in [
        ("GET", "/nowhere", 404),
        ("GET", "/v1/sessions/a/b/c", 404),
        ("GET", "/v1/sessions/nobody", 404),
        ("GET", "/v1/sessions/..%2f..%2fetc", 400),
        ("GET", "/v1/sessions/%ff", 400),
        ("GET", "/v1/sessions/%00", 400),
        ("GET", "/v1/sessions?group=..%2f", 400),
        ("GET", "/v1/sessions/a/wait?timeout_ms=soon", 400),
        ("GET", "/v1/sessions/a/log?from=-1", 400),
        ("DELETE", "/v1/sessions", 405),
        ("GET", "/v1/daemon/stop", 405),
    ] {
        let answer = raw(&socket, head(method, target, "host: wharf\r\n\r\n")).await;
        assert_eq!(answer.status, status, "{method} {target}: {answer:?}");
        assert_eq!(answer.problem().status, status);
    }
    world.end().await;
}

#[tokio::test]
async fn bad_bodies_are_refused() {
    let world = World::new().await;
    let socket = world.home.socket();
    let post = |more: &str, body: &str| {
        let length = body.len();
        format!(
            "POST /v1/sessions HTTP/1.1\r\nhost: wharf\r\nconnection: close\r\ncontent-length: {length}\r\n{more}\r\n{body}"
        )
    };
    let json = "content-type: application/json\r\n";
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!("{{\"spec\":{deep}}}");
    for (request, status) in [
        (post("", "{}"), 415),
        (post("content-type: text/plain\r\n", "{}"), 415),
        (post("content-type: application/jsonp\r\n", "{}"), 415),
        (post(json, ""), 400),
        (post(json, "{"), 400),
        (post(json, "[]"), 400),
        (post(json, "{\"spec\":{\"argv\":[],\"dir\":\"/\",\"name\":\"../x\"}}"), 400),
        (post(json, &deep), 400),
        (post("content-type: application/json; charset=utf-8\r\n", "{}"), 400),
    ] {
        let answer = raw(&socket, &request).await;
        assert_eq!(answer.status, status, "{answer:?} to {}", &request[..request.len().min(200)]);
        assert_eq!(answer.problem().code, Code::Invalid);
    }
    // Many values take far more memory than they have bytes on the way: such a request is refused before it is read as JSON.
    let many = post(json, &format!("{{\"new\":[{}1]}}", "1,".repeat(1 << 20)));
    let answer = raw(&socket, &many).await;
    assert!(answer.status == 400 && answer.body.contains("too many values"), "{answer:?}");
    world.end().await;
}

#[tokio::test]
async fn oversized_requests_are_refused_before_they_are_read() {
    let world = World::new().await;
    let socket = world.home.socket();
    world.start("a", &["fake:sleep"]).await;
    for (target, length) in [("/v1/sessions", 33_u64 << 20), ("/v1/sessions/a/write", (64 << 20) + 1)] {
        let request = head("POST", target, &format!("host: wharf\r\ncontent-length: {length}\r\n\r\n"));
        let answer = raw(&socket, request).await;
        assert_eq!(answer.status, 413, "{answer:?}");
        assert_eq!(answer.problem().code, Code::Invalid);
    }
    let padding = "x".repeat(100 << 10);
    let answer =
        raw(&socket, head("GET", "/v1/daemon", &format!("host: wharf\r\nx-padding: {padding}\r\n\r\n")))
            .await;
    assert_eq!(answer.status, 431, "{answer:?}");
    let many: String = "x-many: y\r\n".repeat(500);
    let answer = raw(&socket, head("GET", "/v1/daemon", &format!("host: wharf\r\n{many}\r\n"))).await;
    assert_eq!(answer.status, 431, "{answer:?}");
    world.client.daemon().await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn a_body_without_a_length_is_limited_too() {
    let world = World::new().await;
    let mut stream = connect(&world.home.socket());
    stream
        .write_all(head("POST", "/v1/gc", "host: wharf\r\ntransfer-encoding: chunked\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    let mut sent = 0_usize;
    // The daemon stops reading, answers and closes; then a write fails.
    while sent < 64 << 20 {
        match tokio::time::timeout(TEST_TIMEOUT, stream.write_all(&chunk))
            .await
            .expect("the daemon reads or closes")
        {
            Ok(()) => sent += 1 << 20,
            Err(_) => break,
        }
    }
    assert!(sent < 64 << 20, "64 MiB of JSON were taken");
    world.client.daemon().await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn slow_clients_hold_up_nobody() {
    let world = World::new().await;
    let mut slow = Vec::new();
    for text in ["", "GET /v1/dae", "POST /v1/gc HTTP/1.1\r\nhost: wharf\r\ncontent-length: 100\r\n\r\n{"] {
        let mut stream = connect(&world.home.socket());
        stream.write_all(text.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    tokio::time::timeout(TEST_TIMEOUT, world.client.daemon()).await.unwrap().unwrap();
    // Nor do they hold up the end, beyond the daemon's patience.
    world.end().await;
}

#[tokio::test]
async fn a_reader_that_takes_nothing_leaves_no_task_of_the_daemon() {
    let world = World::new().await;
    let session = world.start("a", &["fake:sleep"]).await;
    // More than the socket and the daemon hold between them.
    world.fake.print(&session.id, &vec![b'x'; 1 << 20]);
    let mut hung = connect(&world.home.socket());
    hung.write_all(b"GET /v1/sessions/a/log?follow=true HTTP/1.1\r\nhost: wharf\r\n\r\n").await.unwrap();
    tokio::time::timeout(TEST_TIMEOUT, hung.readable()).await.expect("an answer begins").unwrap();
    let World { stopper, task, client, .. } = world;
    drop(client);
    stopper.stop();
    tokio::time::timeout(TEST_TIMEOUT, task).await.expect("the daemon ends").unwrap();
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let world = World::new().await;
    let mut stream = connect(&world.home.socket());
    stream.write_all(b"GET /v1/daemon HTTP/1.1\r\nhost: wh").await.unwrap();
    let begun = tokio::time::Instant::now();
    let mut bytes = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut bytes).await;
    assert!(begun.elapsed().as_secs() <= 31, "{:?}", begun.elapsed());
    world.end().await;
}

#[tokio::test]
async fn another_user_is_refused_though_the_modes_would_let_them_in() {
    if !rustix::process::geteuid().is_root() {
        wharf_backend::conformance::left_out("only root can become another user");
    }
    let world = World::new().await;
    let mut path = world.home.socket();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    while path.pop() && path.starts_with(world.root.path()) {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    // This program again, where the other user can reach it: a clone may be below a home that is its owner's alone.
    let me = world.root.path().join("stranger");
    std::fs::copy(std::env::current_exe().unwrap(), &me).unwrap();
    let mut command = Command::new(me);
    command
        .args(["--exact", "stranger", "--nocapture"])
        .env("WHARF_TEST_STRANGER", world.home.socket())
        .current_dir("/")
        .uid(65534)
        .gid(65534);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("403"), "{output:?}");
    world.end().await;
}

/// Runs in a process of another user; see above.
#[tokio::test]
async fn stranger() {
    let Some(socket) = std::env::var_os("WHARF_TEST_STRANGER") else { return };
    let mut stream = connect(Path::new(&socket));
    stream.write_all(head("GET", "/v1/daemon", "host: wharf\r\n\r\n").as_bytes()).await.unwrap();
    let answer = reply(stream).await;
    assert_eq!(answer.status, 403);
    assert_eq!(answer.problem().code, Code::Forbidden);
    println!("{}", answer.head);
    // The client itself refuses a daemon of somebody else.
    let failure = wharf_api::Client::connect(Path::new(&socket)).await.unwrap_err();
    assert_eq!(failure.code, Code::Forbidden);
}
