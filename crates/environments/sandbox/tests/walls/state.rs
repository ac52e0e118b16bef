//! Wharf's own directories are out of reach, wherever they are.

use std::fs;

use crate::support::Ground;

#[tokio::test]
async fn the_state_directory_is_not_there_even_in_its_own_directory() {
    let ground = Ground::new();
    let state = ground.path("inside/deep/state/wharf");
    fs::create_dir_all(state.join("sessions/other")).unwrap();
    fs::write(state.join("sessions/other/ticket.json"), "token").unwrap();
    fs::hard_link(state.join("sessions/other/ticket.json"), ground.path("inside/harmless")).unwrap();
    fs::remove_file(ground.path("inside/harmless")).unwrap();
    let ground = ground.with_state(&state);
    let there = "deep/state/wharf/sessions/other/ticket.json";
    for script in [
        format!("cat {there}"),
        "ls deep/state/wharf/sessions/other".to_owned(),
        format!("ln {there} mine"),
        format!("echo x > {there}"),
        "echo x > deep/state/wharf/new".to_owned(),
        "rm -r deep/state/wharf/sessions".to_owned(),
        // Not by putting another in its place either.
        "mv deep away".to_owned(),
        "mv deep/state away".to_owned(),
        "mv deep/state/wharf away".to_owned(),
        // Nor by way of who is outside.
        format!("cat /proc/$PPID/root{}/{there}", ground.path("inside").display()),
        format!("cat /proc/1/root{}/{there}", ground.path("inside").display()),
        format!("cat /proc/$PPID/cwd/{there}"),
    ] {
        ground.refused(&script).await;
    }
    assert_eq!(fs::read_to_string(state.join("sessions/other/ticket.json")).unwrap(), "token");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
    // What is the session's own is there all the same.
    assert_eq!(
        ground.prints("echo x > deep/mine; cat deep/mine; f=$(mktemp); echo y > $f; cat $f").await,
        "x\ny\n"
    );
}

#[tokio::test]
async fn the_configuration_is_not_for_it_to_write() {
    let ground = Ground::new();
    let config = ground.path("inside/.config/wharf");
    let ground = ground.with_config(&config);
    for script in [
        "echo x > .config/wharf/config.toml",
        "mkdir -p .config/wharf/profiles",
        "mv .config .other",
        "rm -r .config/wharf",
        "chmod 777 .config/wharf",
    ] {
        ground.refused(script).await;
    }
    assert_eq!(fs::read_dir(&config).unwrap().count(), 0);
    assert_eq!(ground.prints("echo x > .config/other; cat .config/other").await, "x\n");
}
