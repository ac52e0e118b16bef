//! The sandbox: what it was given is decided once, and nothing else of this host is there.

use crate::place::{COMMAND_TIMEOUT, Place, at};

at! { a_path_of_a_sandbox_that_was_swapped_is_not_followed:
    root = Place::new(Sandbox),
    user = Place::of_user(Sandbox),
}

fn a_path_of_a_sandbox_that_was_swapped_is_not_followed(place: &Place) {
    let extra = place.make_dir("work/extra").display().to_string();
    let (private, untouched) = (place.text("private"), place.text("private/untouched"));
    let secret = place.text("private/secret");
    place.attack(
        "evil",
        &["--sandbox-write", &extra],
        &["swap", &extra, &private, "+", "reach", "secret", &secret, "victim", &untouched],
    );
    place.within(COMMAND_TIMEOUT, &["kill", "evil"]);
    place.within(COMMAND_TIMEOUT, &["restart", "evil"]);
    place.within(
        COMMAND_TIMEOUT,
        &["exec", "-T", "evil", "--", "sh", "-c", &format!("echo owned >> {untouched}")],
    );
    let told = std::fs::read_to_string(place.path("reports/evil")).unwrap_or_default();
    assert!(!told.contains(&format!("\"read {secret}\"")), "{told}");
    place.must_be_untouched();
    place.clear();
}

at! { a_copy_of_a_sandbox_whose_directory_was_swapped_leads_nowhere_else:
    root = Place::new(Sandbox).in_a_directory_below(),
    user = Place::of_user(Sandbox).in_a_directory_below(),
}

fn a_copy_of_a_sandbox_whose_directory_was_swapped_leads_nowhere_else(place: &Place) {
    let (above, dir, private) = (place.text("work"), place.text("work/sub"), place.text("private"));
    let file = place.write("file", "owned\n").display().to_string();
    let copies = place.make_dir("copies").display().to_string();
    let words = ["swap", &dir, &private];
    let told = place.attack("evil", &["--sandbox-write", &above], &words);
    assert!(told[0]["did"].as_array().is_some_and(|did| !did.is_empty()), "the attack itself: {told:?}");
    let from = ["evil:.", "evil:secret", "evil:./secret"];
    let into = ["evil:.", "evil:planted", "evil:untouched"];
    for (words, of) in from
        .iter()
        .map(|from| ([*from, copies.as_str()], "out of it"))
        .chain(into.iter().map(|into| ([file.as_str(), *into], "into it")))
    {
        let ran = place.within(COMMAND_TIMEOUT, &["cp", words[0], words[1]]);
        assert_eq!(ran.code, 5, "{of}: {words:?}: {ran:#?}");
        assert!(ran.err.contains("is now a link to"), "{of}: {words:?}: {ran:#?}");
    }
    let ran = place.within(COMMAND_TIMEOUT, &["cp", "evil:secret", "-"]);
    assert_eq!(ran.code, 5, "{ran:#?}");
    assert_eq!(std::fs::read_dir(&copies).expect("ours").count(), 0, "something was copied");
    place.must_be_untouched();
    place.clear();
}

at! { a_sandbox_without_network_has_no_socket_of_the_host:
    root = Place::new(Sandbox),
    user = Place::of_user(Sandbox),
}

fn a_sandbox_without_network_has_no_socket_of_the_host(place: &Place) {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
    let (path, aimed) = (place.text("work/host.sock"), place.text("work/host.dgram"));
    let listener = UnixListener::bind(&path).expect("a socket of the host");
    let datagrams = UnixDatagram::bind(&aimed).expect("a socket of the host");
    for socket in [&path, &aimed] {
        let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(socket, anybody).expect("ours");
    }
    let name = format!("hostile-{}", std::process::id());
    let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a name"));
    let words = ["reach", "socket", &path, "socket", &aimed];
    let told = place.attack("evil", &["--sandbox-network", "off"], &words);
    let did = told[0]["did"].to_string();
    for word in ["connect ", "aim a pair", "send to"] {
        assert!(!did.contains(word), "{did}");
    }
    for socket in [listener.set_nonblocking(true), datagrams.set_nonblocking(true)] {
        socket.expect("ours");
    }
    assert!(listener.accept().is_err(), "somebody has come");
    assert!(datagrams.recv(&mut [0; 8]).is_err(), "something was sent");
    drop(hidden);
    place.clear();
}
