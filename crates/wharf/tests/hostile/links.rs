//! Links in the places that Wharf looks at.

use crate::place::{COMMAND_TIMEOUT, Place, at};

at! { a_link_for_the_socket_leads_to_no_other_session:
    docker = Place::new(Container(Docker)),
    podman = Place::new(Container(Podman)),
    shared = Place::new(Shared(Docker)),
    docker_as_a_user = Place::of_user(Container(Docker)),
    podman_as_a_user = Place::of_user(Container(Podman)),
}

fn a_link_for_the_socket_leads_to_no_other_session(place: &Place) {
    place.healthy("victim");
    let sock = place.wharf.state().join("names/victim/sock").canonicalize().expect("the victim's socket");
    let told = place.attack("evil", &[], &["place", "sock", "link", &sock.display().to_string()]);
    assert_eq!(told[0]["failed"].as_array().map(Vec::len), Some(0), "the attack itself: {told:?}");
    let made = place.text("private/made");
    for daemon in ["the daemon that was there", "the next one"] {
        // Each may fail, and none may reach the victim.
        place.within(
            COMMAND_TIMEOUT,
            &["exec", "-T", "evil", "--", "sh", "-c", &format!("echo owned > {made}")],
        );
        place.within(COMMAND_TIMEOUT, &["write", "evil", "owned\n"]);
        place.within(COMMAND_TIMEOUT, &["keys", "evil", "o", "w", "n", "e", "d", "Enter"]);
        place.within(COMMAND_TIMEOUT, &["send", "evil", "owned", "--no-wait"]);
        place.within(COMMAND_TIMEOUT, &["env", "evil"]);
        place.within(COMMAND_TIMEOUT, &["stats", "evil"]);
        place.must_be_well("victim");
        place.must_be_untouched();
        if daemon == "the daemon that was there" {
            place.wharf.kill_daemon();
            place.ok(&["ls"]);
        }
    }
    place.within(COMMAND_TIMEOUT, &["signal", "evil", "INT"]);
    place.within(COMMAND_TIMEOUT, &["stop", "evil", "--timeout", "5"]);
    place.within(COMMAND_TIMEOUT, &["kill", "evil"]);
    place.must_be_well("victim");
    place.must_be_untouched();
    place.clear();
}

at! { links_in_the_log_show_no_file_of_the_host:
    docker = Place::new(Container(Docker)),
    podman = Place::new(Container(Podman)),
    shared = Place::new(Shared(Docker)),
    docker_as_a_user = Place::of_user(Container(Docker)),
    podman_as_a_user = Place::of_user(Container(Podman)),
}

fn links_in_the_log_show_no_file_of_the_host(place: &Place) {
    let secret = place.text("private/secret");
    place.healthy("victim");
    let words = ["place", "log/*.log", "link", &secret, "+", "place", "exit.json", "link", &secret];
    let more = [
        "+",
        "place",
        "prompt",
        "link",
        &secret,
        "+",
        "place",
        "log/00000000000000000001.log",
        "link",
        &secret,
    ];
    place.attack("evil", &[], &[&words[..], &more].concat());
    let looks: &[&[&str]] = &[
        &["logs", "evil"],
        &["logs", "evil", "--from", "0"],
        &["logs", "evil", "-n", "5"],
        &["logs", "evil", "--timestamps"],
        &["capture", "evil", "--all"],
        &["record", "evil"],
        &["show", "evil"],
        &["show", "evil", "--json"],
        &["explain", "evil"],
    ];
    for _ in 0..2 {
        for look in looks {
            // `within` looks for the secret in what is printed.
            place.within(COMMAND_TIMEOUT, look);
        }
        place.wharf.kill_daemon();
        place.ok(&["ls"]);
    }
    // The end is read from the record, and the log is moved or removed: neither reads or takes away what is pointed to.
    place.within(COMMAND_TIMEOUT, &["kill", "evil"]);
    for look in looks {
        place.within(COMMAND_TIMEOUT, look);
    }
    place.within(COMMAND_TIMEOUT, &["rm", "evil"]);
    place.must_be_untouched();
    place.must_be_well("victim");
    place.clear();
}
