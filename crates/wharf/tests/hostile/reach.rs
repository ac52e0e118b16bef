//! What a process inside can reach by itself.

use serde_json::Value;
use wharf_backend::conformance::needs_namespaces;
use wharf_container::Flavour;

use crate::place::{COMMAND_TIMEOUT, Kind, Place, at};

at! { nothing_of_the_host_is_reached_from_inside:
    docker = Place::new(Container(Docker)),
    podman = Place::new(Container(Podman)),
    shared = Place::new(Shared(Docker)),
    far = Place::new(Far(Docker)),
    sandbox = Place::new(Sandbox),
    docker_as_a_user = Place::of_user(Container(Docker)),
    sandbox_as_a_user = Place::of_user(Sandbox),
    podman_as_a_user = Place::of_user(Container(Podman)),
}

fn nothing_of_the_host_is_reached_from_inside(place: &Place) {
    place.healthy("victim");
    let state = place.wharf.state();
    let of = |name: &str| state.join(name).display().to_string();
    let victim = state.join("names/victim").canonicalize().expect("the victim's directory");
    let (secret, untouched) = (place.text("private/secret"), place.text("private/untouched"));
    let (sock, ticket) =
        (victim.join("sock").display().to_string(), victim.join("ticket.json").display().to_string());
    let (daemon, events, store) = (of("daemon.sock"), of("events.sock"), of("store.db"));
    let (sessions, root) = (of("sessions"), state.display().to_string());
    let words = [
        "reach", "secret", &secret, "victim", &untouched, "socket", &daemon, "socket", &sock, "secret",
        &ticket, "secret", &store, "dir", &sessions, "dir", &root, "socket", &events,
    ];
    let told = place.attack("evil", &[], &words);
    must_have_reached_nothing(place, &told[0]);
    // A further command there is kept to the same.
    let ran = place.within(
        COMMAND_TIMEOUT,
        &[&["exec", "-T", "evil", "--", &place.program(), "--once"][..], &words].concat(),
    );
    let line = ran.out.lines().find(|line| line.starts_with('{'));
    let told: Value = serde_json::from_str(line.unwrap_or_else(|| panic!("{ran:#?}"))).expect("JSON");
    must_have_reached_nothing(place, &told);
    place.must_be_untouched();
    place.must_be_well("victim");
    place.clear();
}

/// The victim's directory, by its name among the others.
fn victim(place: &Place) -> String {
    let path = place.wharf.state().join("names/victim").canonicalize().expect("the victim's directory");
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// What may be possible: a container has processes of its own, and the sandbox of a user is that user's.
#[track_caller]
fn must_have_reached_nothing(place: &Place, told: &Value) {
    let did: Vec<&str> = told["did"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let container = matches!(place.kind, Kind::Container(_) | Kind::Shared(_) | Kind::Far(_));
    let may = |what: &str| {
        what.ends_with("processes may be signalled")
            // Its own first process, and its own holder: whoever ends them ends its own session.
            || (container && (what.contains("the first process") || what.contains("the parent")))
            || (container && what.starts_with("open the terminal"))
            || what == "signal the parent"
            // Whoever has users of its own has nothing of the host by that; Docker refuses it, Podman and a sandbox do not.
            || (!matches!(place.kind, Kind::Container(Flavour::Docker)) && what == "make users of its own")
    };
    // What a sandbox sees in the place of the state has its own session in it, and none of the others.
    let others: Vec<String> =
        ["daemon.sock", "store.db", "names"].map(str::to_owned).into_iter().chain([victim(place)]).collect();
    let may = |what: &str| {
        may(what)
            || (place.kind == Kind::Sandbox
                && what.split_once(": ").is_some_and(|(list, names)| {
                    list.starts_with("list ")
                        && !names.split(' ').any(|name| others.iter().any(|other| other == name))
                }))
    };
    let reached: Vec<&&str> = did.iter().filter(|what| !may(what)).collect();
    assert!(reached.is_empty(), "{:?}: it could {reached:?}", place.kind);
}

at! { a_sandbox_over_the_home_does_not_see_the_state:
    root = Place::new(Sandbox).in_the_home(),
    user = Place::of_user(Sandbox).in_the_home(),
}

fn a_sandbox_over_the_home_does_not_see_the_state(place: &Place) {
    needs_namespaces();
    place.healthy("victim");
    let state = place.wharf.state();
    let of = |name: &str| state.join(name).display().to_string();
    let victim = state.join("names/victim").canonicalize().expect("the victim's directory");
    let of_victim = |name: &str| victim.join(name).display().to_string();
    let (daemon, events, store, sessions, root) =
        (of("daemon.sock"), of("events.sock"), of("store.db"), of("sessions"), of(""));
    let (sock, ticket) = (of_victim("sock"), of_victim("ticket.json"));
    let words = [
        "reach", "socket", &daemon, "socket", &events, "socket", &sock, "secret", &ticket, "secret", &store,
        "victim", &ticket, "dir", &sessions, "dir", &root,
    ];
    let told = place.attack("evil", &[], &words);
    must_have_reached_nothing(place, &told[0]);
    let program = place.program();
    let args = [&["exec", "-T", "evil", "--", &program, "--once"][..], &words].concat();
    let ran = place.within(COMMAND_TIMEOUT, &args);
    let line = ran.out.lines().find(|line| line.starts_with('{'));
    let told: Value = serde_json::from_str(line.unwrap_or_else(|| panic!("{ran:#?}"))).expect("JSON");
    must_have_reached_nothing(place, &told);
    place.must_be_well("victim");
    place.clear();
}

at! { the_api_asked_from_inside_does_nothing_for_a_session_that_has_no_rights:
    docker = Place::new(Container(Docker)),
    far = Place::new(Far(Docker)),
    sandbox = Place::new(Sandbox),
    local = Place::new(Local),
    local_as_a_user = Place::of_user(Local),
    podman = Place::new(Container(Podman)),
    shared = Place::new(Shared(Docker)),
}

fn the_api_asked_from_inside_does_nothing_for_a_session_that_has_no_rights(place: &Place) {
    place.healthy("victim");
    let ran = place.within(COMMAND_TIMEOUT, &["show", "victim", "--json"]);
    let shown: Value = serde_json::from_str(&ran.out).expect("JSON");
    let id = shown["id"].as_str().expect("an id");
    let daemon = place.wharf.state().join("daemon.sock").display().to_string();
    let words = ["api", &daemon, "victim", id];
    let mut told = place.attack("evil", &[], &words);
    // A further command there has no more rights than the session.
    let program = place.program();
    let args = [&["exec", "-T", "evil", "--", &program, "--once"][..], &words].concat();
    let ran = place.within(COMMAND_TIMEOUT, &args);
    let line = ran.out.lines().find(|line| line.starts_with('{'));
    told.push(serde_json::from_str(line.unwrap_or_else(|| panic!("{ran:#?}"))).expect("JSON"));
    for told in told {
        let did = told["did"].as_array().expect("a list");
        assert!(did.is_empty(), "{:?}: it could {did:?}", place.kind);
        // On this host without isolation the socket is there, and each request was refused by itself.
        let failed: Vec<&str> =
            told["failed"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let refused = failed.iter().filter(|what| what.contains(": 403")).count();
        // Who is refused may be hung up on before all of it was sent.
        let cut = failed.iter().filter(|what| what.contains("os error 32")).count();
        let expected = if place.kind == Kind::Local { failed.len() - cut } else { 0 };
        let some = place.kind != Kind::Local || refused > 0;
        assert!(!failed.is_empty() && some && refused == expected, "{:?}: {failed:?}", place.kind);
    }
    place.must_be_well("victim");
    place.clear();
}

at! { nobody_speaks_for_another_session:
    docker = Place::new(Container(Docker)),
    shared = Place::new(Shared(Podman)),
    sandbox = Place::new(Sandbox),
    local = Place::new(Local),
    podman = Place::new(Container(Podman)),
    far = Place::new(Far(Docker)),
}

fn nobody_speaks_for_another_session(place: &Place) {
    place.healthy("victim");
    let ran = place.within(COMMAND_TIMEOUT, &["show", "victim", "--json"]);
    let shown: Value = serde_json::from_str(&ran.out).expect("JSON");
    let id = shown["id"].as_str().expect("an id");
    place.attack("evil", &[], &["speak", "forged", id]);
    let events = place.ok(&["events", "victim", "--json"]);
    assert!(!events.contains("forged"), "{events}");
    if place.kind == Kind::Sandbox {
        // A channel belongs to its session, whatever is said on it: the lie is the liar's own.
        let own = place.ok(&["events", "evil", "--json"]);
        assert!(own.contains("forged"), "{own}");
    }
    place.clear();
}
