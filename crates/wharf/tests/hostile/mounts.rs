//! What is mounted is decided once: what a container puts in its place is not mounted the next time.

use crate::place::{COMMAND_TIMEOUT, Place, SECRET, UNTOUCHED, at};
use crate::support::until;

at! { a_mount_that_was_swapped_is_not_followed:
    docker = Place::new(Container(Docker)),
    podman = Place::new(Container(Podman)),
    docker_as_a_user = Place::of_user(Container(Docker)),
    shared = Place::new(Shared(Docker)),
}

fn a_mount_that_was_swapped_is_not_followed(place: &Place) {
    place.healthy("victim");
    let (outer, inner) = (place.make_dir("outer"), place.make_dir("outer/inner"));
    let (outer, inner) = (format!("{}:/outer", outer.display()), format!("{}:/inner", inner.display()));
    let (private, mark) = (place.text("private"), "/outer/mark");
    let words = [
        "swap",
        "/outer/inner",
        &private,
        "+",
        "fail",
        mark,
        "+",
        "reach",
        "secret",
        "/inner/secret",
        "victim",
        "/inner/untouched",
    ];
    place.start(
        "evil",
        &["-v", &outer, "-v", &inner, "--restart", "on-failure", "--restart-max", "3"],
        &words,
    );
    let over = || {
        let ran = place.within(COMMAND_TIMEOUT, &["show", "evil", "--json"]);
        let told = std::fs::read_to_string(place.path("reports/evil")).unwrap_or_default();
        assert!(!told.contains("read /inner/secret\""), "the second run sees the secret: {told}");
        // It is refused, or it runs again with what it had.
        told.contains("started again") || ran.out.contains("\"failed\"") || ran.out.contains("\"exited\"")
    };
    assert!(until(over), "it is neither refused nor started again");
    place.within(COMMAND_TIMEOUT, &["kill", "evil"]);
    // By hand too.
    place.within(COMMAND_TIMEOUT, &["restart", "evil"]);
    let ran = place.within(COMMAND_TIMEOUT, &["exec", "-T", "evil", "--", "cat", "/inner/secret"]);
    assert!(!ran.out.contains(SECRET), "{ran:#?}");
    place.must_be_untouched();
    place.must_be_well("victim");
    place.clear();
}

at! { a_made_up_work_tree_mounts_no_repository:
    docker = Place::new(Container(Docker)),
    podman = Place::new(Container(Podman)),
    docker_as_a_user = Place::of_user(Container(Docker)),
}

fn a_made_up_work_tree_mounts_no_repository(place: &Place) {
    let (tree, repository) = (place.make_dir("tree"), place.make_dir("repository"));
    for dir in ["repository/.git", "repository/.git/objects", "repository/.git/refs", "repository/.git/hooks"]
    {
        place.make_dir(dir);
    }
    place.write("repository/.git/HEAD", "ref: refs/heads/main\n");
    let config = place.write("repository/.git/config", UNTOUCHED);
    let (tree, git) = (tree.display().to_string(), repository.join(".git").display().to_string());
    place.attack("evil", &["-v", &tree, "-w", &tree], &["worktree", &tree, &git]);
    place.within(COMMAND_TIMEOUT, &["kill", "evil"]);
    place.within(COMMAND_TIMEOUT, &["restart", "evil"]);
    let script = format!("echo owned >> {git}/config; echo owned > {git}/hooks/post-checkout");
    place.within(COMMAND_TIMEOUT, &["exec", "-T", "evil", "--", "sh", "-c", &script]);
    // Another session of the same directory finds it so from the first.
    let program = place.program();
    place.start("second", &["-v", &tree, "-w", &tree], &["reach", "victim", &format!("{git}/config")]);
    place.within(COMMAND_TIMEOUT, &["exec", "-T", "second", "--", "sh", "-c", &script]);
    assert_eq!(std::fs::read_to_string(&config).expect("it is there"), UNTOUCHED, "{program}");
    assert!(!repository.join(".git/hooks/post-checkout").exists(), "a hook was planted");
    place.clear();
}
