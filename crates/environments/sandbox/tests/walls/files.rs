//! Files outside are closed; those that were named are open.

use wharf_backend::conformance::left_out;

use crate::support::{Ground, prompt, run};

#[tokio::test]
async fn nothing_outside_is_changed() {
    let ground = Ground::new();
    for script in [
        "echo x > $OUT/new",
        "echo x >> $OUT/file",
        ": > $OUT/file",
        "truncate -s 0 $OUT/file",
        "rm $OUT/file",
        "mv $OUT/file $OUT/other",
        "mv $OUT/file .",
        "ln $OUT/file hard",
        "mkdir $OUT/dir",
        "ln -s x $OUT/link",
        "mkfifo $OUT/pipe",
        // Whatever it starts is in the sandbox as well.
        "setsid sh -c 'echo x > $OUT/new'",
    ] {
        let said = ground.refused(script).await;
        let known =
            ["Permission denied", "Operation not permitted", "Read-only file system", "cross-device link"];
        assert!(known.iter().any(|why| said.contains(why)), "{script}: {said}");
    }
    assert_eq!(std::fs::read_to_string(ground.path("outside/file")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(ground.path("outside")).unwrap().count(), 1);
}

#[tokio::test]
async fn modes_and_times_outside_stay_as_they_are() {
    let ground = Ground::new();
    let launch = ground.apply(&["true"]).await.unwrap();
    if launch.spec.in_force.iter().any(|said| said.contains("not covered")) {
        drop((launch, ground));
        left_out("no mount namespace can be had");
    }
    for script in
        ["chmod 777 $OUT/file", "touch -d yesterday $OUT/file", "chmod 777 $OUT", "chown 1 /etc/passwd"]
    {
        assert!(ground.refused(script).await.contains("Read-only file system"), "{script}");
    }
    assert_eq!(ground.prints("touch f; chmod 700 f; touch -d yesterday f; stat -c %a f").await, "700\n");
}

#[tokio::test]
async fn nothing_outside_is_read() {
    let ground = Ground::new();
    for script in ["cat $OUT/file", "ls $OUT", "ln -s $OUT/file link; cat link", "cp $OUT/file ."] {
        assert!(ground.refused(script).await.contains("Permission denied"), "{script}");
    }
}

#[tokio::test]
async fn the_directory_and_what_was_named_are_open() {
    let mut ground = Ground::new();
    let script =
        "echo x > new && mkdir d && mv new d/new && cat d/new && rm -r d && git init -q . && echo done";
    assert_eq!(ground.prints(script).await, "x\ndone\n");
    ground.sandbox.read = vec![ground.path("outside/file").into()];
    assert_eq!(ground.prints("cat $OUT/file").await, "secret");
    ground.refused("echo x > $OUT/file").await;
    ground.refused("ls $OUT").await;
    ground.sandbox.write = vec![ground.path("outside").into()];
    assert_eq!(ground.prints("echo x > $OUT/new; mv $OUT/new moved; cat moved; ls $OUT").await, "x\nfile\n");
}

#[tokio::test]
async fn there_is_a_place_for_temporary_files() {
    let ground = Ground::new();
    assert_eq!(ground.prints("f=$(mktemp) && echo x > $f && cat $f").await, "x\n");
    let mut launch = ground.launch(&["cat", "../home/prompt"]);
    std::fs::write(ground.path("home").join(prompt()), "do it").unwrap();
    launch.spec.prompt = Some("do it".into());
    let environment = ground.environment();
    let place = wharf_model::Capabilities::default();
    let launch = wharf_backend::Environment::apply(&environment, launch, &place).await.unwrap();
    assert_eq!(run(&launch).stdout, b"do it");
    // Nothing else of the session's own directory is for the command.
    std::fs::write(ground.path("home/ticket.json"), "values").unwrap();
    ground.refused("cat ../home/ticket.json").await;
}

#[tokio::test]
async fn devices_and_system_files_serve_as_always() {
    let ground = Ground::new();
    let script = "echo x > /dev/null; head -c 4 /dev/urandom | wc -c; cat /etc/passwd > /dev/null; \
        test -r /proc/self/status && ls /usr/bin > /dev/null && echo fine";
    assert_eq!(ground.prints(script).await, "4\nfine\n");
}

#[tokio::test]
async fn a_path_that_became_a_link_is_refused_and_not_followed() {
    let mut ground = Ground::new();
    std::fs::create_dir(ground.path("inside/given")).unwrap();
    ground.sandbox.write = vec![ground.path("inside/given").into()];
    let environment = ground.environment();
    let place = wharf_model::Capabilities::default();
    let apply = async |launch| wharf_backend::Environment::apply(&environment, launch, &place).await;
    let first = apply(ground.launch(&["bash", "-c", "rmdir given && ln -s $OUT given"])).await.unwrap();
    assert!(run(&first).status.success(), "it may change what is in its own directory");
    // As the next run of the session, by its ticket.
    let mut again = ground.launch(&["bash", "-c", "echo x > $OUT/new"]);
    again.spec.pins.clone_from(&first.spec.pins);
    let failure = apply(again).await.unwrap_err();
    assert_eq!(failure.code, wharf_model::Code::Forbidden, "{failure:?}");
    assert!(failure.message.contains("is now a link to"), "{failure:?}");
    // Whoever swaps it between the look and the step gains nothing.
    let mut ground = Ground::new();
    std::fs::create_dir(ground.path("given")).unwrap();
    ground.sandbox.write = vec![ground.path("given").into()];
    let late = apply(ground.launch(&["bash", "-c", "echo x > $OUT/new"])).await.unwrap();
    std::fs::remove_dir(ground.path("given")).unwrap();
    std::os::unix::fs::symlink(ground.path("outside"), ground.path("given")).unwrap();
    let ran = run(&late);
    assert!(!ran.status.success());
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("is not what the sandbox was to have"), "{said}");
    assert!(!ground.path("outside/new").exists());
}
