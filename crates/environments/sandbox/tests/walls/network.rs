//! How far the network reaches.

use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::Command;

use wharf_backend::conformance::left_out;
use wharf_model::Network;
use wharf_sandbox::{Namespace, Rules, STEP};

use crate::support::Ground;

/// A listener of the host, and a script that tries to reach it.
fn outside() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (listener, format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"))
}

const UDP: &str = "perl -MSocket -e 'socket(S, AF_INET, SOCK_DGRAM, 0) or die \"$!\\n\"; \
    send(S, \"x\", 0, sockaddr_in(9, inet_aton(\"192.0.2.1\"))) or die \"$!\\n\"; print \"sent\\n\"'";

#[tokio::test]
async fn open_is_the_hosts_own() {
    let ground = Ground::new();
    let (_listener, reach) = outside();
    assert_eq!(ground.prints(&reach).await, "reached\n");
}

#[tokio::test]
async fn off_is_no_network_at_all() {
    let mut ground = Ground::new();
    ground.sandbox.network = Network::Off;
    let (_listener, reach) = outside();
    assert!(ground.refused(&reach).await.contains("Operation not permitted"));
    assert!(ground.refused(UDP).await.contains("Operation not permitted"));
    let netlink = "perl -e 'socket(S, 16, 3, 0) or die \"$!\\n\"'";
    assert!(ground.refused(netlink).await.contains("Operation not permitted"));
}

#[tokio::test]
async fn a_loopback_is_its_own() {
    let mut ground = Ground::new();
    ground.sandbox.network = Network::Loopback;
    let (_listener, reach) = outside();
    // Refused and not unreachable: there is a loopback, and nobody of ours is on it.
    assert!(ground.refused(&reach).await.contains("Connection refused"));
    assert!(ground.refused(UDP).await.contains("unreachable"));
    let own = "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(0, INADDR_LOOPBACK)); \
        listen(S, 1); socket(C, AF_INET, SOCK_STREAM, 0); connect(C, getsockname(S)) or die \"$!\\n\"; print \"reached\\n\"'";
    assert_eq!(ground.prints(own).await, "reached\n");
}

#[tokio::test]
async fn bubblewrap_makes_a_loopback_too() {
    let ground = Ground::new();
    if Command::new("bwrap").arg("--version").output().is_err() {
        drop(ground);
        left_out("bubblewrap is not here");
    }
    let rules = Rules {
        write: vec![ground.path("inside").into()],
        network: Network::Loopback,
        namespace: Namespace::Bubblewrap,
        ..Rules::default()
    };
    let (_listener, reach) = outside();
    let run = |script: &str| {
        let mut command = Command::new(Ground::holder());
        command.arg(STEP).arg(serde_json::to_string(&rules).unwrap()).args(["--", "bash", "-c", script]);
        command.env("OUT", ground.path("outside")).output().unwrap()
    };
    let ran = run(&reach);
    assert!(String::from_utf8_lossy(&ran.stderr).contains("Connection refused"), "{ran:?}");
    assert!(!run("cat $OUT/file").status.success(), "the other rules hold there as well");
    assert_eq!(run("exit 7").status.code(), Some(7));
}

#[tokio::test]
async fn unix_sockets_are_closed_whatever_the_network() {
    let mut ground = Ground::new();
    let path = ground.path("inside/sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let script = "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die \"$!\\n\"; \
        connect(S, sockaddr_un(\"sock\")) or die \"connect: $!\\n\"; print \"reached\\n\"'";
    for network in [Network::Off, Network::Loopback, Network::Open] {
        ground.sandbox.network = network;
        let said = ground.refused(script).await;
        assert!(said.starts_with("Operation not permitted"), "{said}");
    }
    // Processes of the sandbox may still talk to each other.
    let pair =
        "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die \"$!\\n\"; print \"fine\\n\"'";
    assert_eq!(ground.prints(pair).await, "fine\n");
}

#[tokio::test]
async fn no_datagram_reaches_a_socket_of_the_host() {
    let mut ground = Ground::new();
    let socket = UnixDatagram::bind(ground.path("inside/log")).unwrap();
    socket.set_nonblocking(true).unwrap();
    // One end of a pair can be connected anew, or send to wherever it likes.
    for how in
        ["connect(A, sockaddr_un(\"log\")) && send(A, \"x\", 0)", "send(A, \"x\", 0, sockaddr_un(\"log\"))"]
    {
        for kind in ["SOCK_DGRAM", "SOCK_RAW", "SOCK_SEQPACKET", "SOCK_STREAM"] {
            let script = format!(
                "perl -MSocket -e 'socketpair(A, B, AF_UNIX, {kind}, 0) or die \"pair: $!\\n\"; {how} or die \"$!\\n\"'"
            );
            for network in [Network::Off, Network::Open] {
                ground.sandbox.network = network;
                let ran = ground.script(&script).await;
                let said = String::from_utf8_lossy(&ran.stderr).into_owned();
                assert_eq!(
                    socket.recv(&mut [0; 8]).unwrap_err().kind(),
                    std::io::ErrorKind::WouldBlock,
                    "{kind} {how}: {said}"
                );
            }
        }
    }
    let said =
        ground.refused("perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or die \"$!\\n\"'").await;
    assert!(said.contains("Operation not permitted"), "{said}");
}
