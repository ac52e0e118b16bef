//! What paths of the host mean to a container is decided once: a swapped mount, a made-up repository, a planted hook.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::Bench;
use wharf_backend::conformance::{Transcript, within};
use wharf_backend::{Backend, Launch};
use wharf_model::{Code, MountedBy, Offset, PinKind, Ticket, Volume};

const TEST_TIMEOUT: Duration = Duration::from_secs(40);

support::on_both! {
    a_swapped_mount_is_refused_until_it_is_accepted
    a_made_up_repository_is_not_mounted
    git_works_in_a_work_tree_and_nothing_can_be_planted
    no_repository_of_a_submodule_can_be_planted
    a_work_tree_that_its_repository_does_not_name_is_not_mounted
    every_mount_is_named
    engine_sockets_are_refused
    what_wharf_keeps_is_hidden_below_a_mount
}

/// Runs a launch to its end: the code, the output and the ticket.
async fn ran(bench: &Bench, launch: Launch) -> (Option<i32>, String, Ticket) {
    let (ticket, connection) = bench.start(launch).await;
    let record = within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
    let output = Transcript::of(&*connection, Offset(0)).await.rest().await.seen;
    bench.clear(&ticket).await;
    (record.code, String::from_utf8_lossy(&output).into_owned(), ticket)
}

fn share(launch: &mut Launch, paths: &[&Path]) {
    let volume = |path: &&Path| Volume { source: (*path).into(), target: (*path).into(), read_only: false };
    launch.spec.container.as_mut().expect("a container").volumes = paths.iter().map(volume).collect();
}

/// The next run of a session, as its ticket has it.
fn again(bench: &Bench, ticket: &Ticket, script: &str) -> Launch {
    let mut launch = bench.shell(script);
    launch.id = ticket.id.clone();
    ticket.dir.as_path().clone_into(&mut launch.home);
    launch.run = ticket.run + 1;
    let argv = launch.spec.argv.clone();
    launch.spec = ticket.spec.clone();
    launch.spec.argv = argv;
    let _ = fs::rename(launch.home.join("exit.json"), launch.home.join(format!("exit.{}.json", ticket.run)));
    launch
}

async fn a_swapped_mount_is_refused_until_it_is_accepted(bench: Bench) {
    let (project, precious) = (bench.root().join("project"), bench.root().join("precious"));
    fs::create_dir_all(project.join("cache")).expect("a directory");
    fs::create_dir(&precious).expect("a directory");
    fs::write(precious.join("key"), "secret").expect("a file");
    let cache = project.join("cache");
    let mut launch = bench.shell("exit 0");
    launch.spec.dir = project.as_path().into();
    share(&mut launch, &[&project, &cache]);
    let (code, _, ticket) = ran(&bench, launch).await;
    assert_eq!((code, ticket.spec.pins.len()), (Some(0), 2));
    // As a session does that has the project in another container.
    fs::remove_dir(&cache).expect("it is empty");
    symlink(&precious, &cache).expect("a link");
    let script = format!("cat {}/key; true", cache.display());
    let failure = bench.open().start(again(&bench, &ticket, &script)).await.err().expect("it is another");
    assert_eq!(failure.code, Code::Forbidden, "{failure:?}");
    assert!(failure.message.contains("cache is now a link to"), "{failure:?}");
    assert!(failure.hint.is_some_and(|hint| hint.contains("--repin")));
    let mut accepted = again(&bench, &ticket, &script);
    accepted.spec.pins.clear();
    let (_, output, _) = ran(&bench, accepted).await;
    assert_eq!(output, "secret");
}

fn git(root: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments).env("HOME", root);
    let ran = git.current_dir(root).output().expect("git is here");
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

async fn a_made_up_repository_is_not_mounted(bench: Bench) {
    let (root, victim, evil) = (bench.root(), bench.root().join("victim/.git"), bench.root().join("evil"));
    git(root, &["init", "-q", "victim"]);
    fs::create_dir_all(evil.join("x/worktrees/y")).expect("a directory");
    fs::write(evil.join(".git"), "gitdir: x/worktrees/y\n").expect("a file");
    fs::write(evil.join("x/worktrees/y/commondir"), victim.to_str().expect("UTF-8")).expect("a file");
    fs::write(evil.join("x/worktrees/y/gitdir"), evil.join(".git").to_str().expect("UTF-8")).expect("a file");
    let script = format!("ls {0} && echo evil > {0}/hooks/pre-commit; true", victim.display());
    let mut launch = bench.shell(&script);
    launch.spec.dir = evil.as_path().into();
    share(&mut launch, &[&evil]);
    let (_, output, ticket) = ran(&bench, launch).await;
    assert!(!output.contains("HEAD"), "{output}");
    assert!(!victim.join("hooks/pre-commit").exists());
    let pin = ticket.spec.pins.iter().find(|pin| pin.kind == PinKind::Worktree).expect("it is told");
    assert!(pin.unused.as_ref().is_some_and(|why| why.contains("commondir")), "{pin:?}");
}

async fn a_work_tree_that_its_repository_does_not_name_is_not_mounted(bench: Bench) {
    let (root, evil) = (bench.root(), bench.root().join("evil"));
    git(root, &["init", "-q", "repository"]);
    git(root, &["-C", "repository", "commit", "-q", "--allow-empty", "-m", "first"]);
    git(root, &["-C", "repository", "worktree", "add", "-q", "../tree"]);
    // A cloned project that says the same as a real work tree of somebody else's.
    fs::create_dir(&evil).expect("a directory");
    fs::copy(root.join("tree/.git"), evil.join(".git")).expect("a file");
    let mut launch = bench.shell(&format!("ls {}; true", root.join("repository/.git").display()));
    launch.spec.dir = evil.as_path().into();
    share(&mut launch, &[&evil]);
    let (_, output, ticket) = ran(&bench, launch).await;
    assert!(!output.contains("HEAD"), "{output}");
    let pin = ticket.spec.pins.iter().find(|pin| pin.kind == PinKind::Worktree).expect("it is told");
    assert!(pin.unused.as_ref().is_some_and(|why| why.contains("in turn")), "{pin:?}");
    // What was none at the first start does not become one, whatever the session writes there.
    fs::remove_file(evil.join(".git")).expect("it is there");
    let mut launch = bench.shell("exit 0");
    launch.spec.dir = evil.as_path().into();
    share(&mut launch, &[&evil]);
    let (_, _, ticket) = ran(&bench, launch).await;
    fs::rename(root.join("tree/.git"), evil.join(".git")).expect("it is there");
    let own = root.join("repository/.git/worktrees/tree/gitdir");
    fs::write(own, evil.join(".git").to_str().expect("UTF-8")).expect("a file");
    let look = format!("ls {}; true", root.join("repository/.git").display());
    let (_, output, _) = ran(&bench, again(&bench, &ticket, &look)).await;
    assert!(!output.contains("HEAD"), "{output}");
}

/// What agents do all day.
const GIT_SCRIPT: &str = "set -e; export HOME=/tmp GIT_EDITOR=true
    git config --global user.name t; git config --global user.email t@example.org
    echo a > a; git add a; git commit -qm one; echo b > b; git add b; git commit -qm two
    git checkout -q -b side HEAD~1; echo c > c; git add c; git commit -qm three
    git rebase -q tree; git checkout -q tree; git merge -q side
    echo d >> a; git stash -q; git stash pop -q; git commit -qam four
    git checkout -q -b other HEAD~1; git cherry-pick tree > /dev/null
    git checkout -q tree; git tag v1; git reset -q --hard; git fsck
    echo done";

/// What a hostile one does, by every name that git on the host would believe.
const PLANT: &str =
    "cd \"$GIT\"; for at in . worktrees/tree worktrees/beside /run/wharf/repository/*; do (cd $at || exit
    for name in hooks info modules/m; do mkdir -p $name; rm -rf $name; mkdir -p $name; done 2> /dev/null
    printf '#!/bin/sh\\ntouch %s\\n' \"$MARK\" | tee hooks/pre-commit hooks/post-checkout hooks/post-commit
    chmod +x hooks/*
    printf '[core]\\n\\tfsmonitor = touch %s\\n' \"$MARK\" | tee config config.worktree config.new
    mv config.new config; mv -f config.new config.worktree; rm -f commondir; echo \"$TREE/evil\" > commondir
    ); done > /dev/null 2>&1
    cd \"$TREE\"; rm -f .git; echo 'gitdir: evil' > .git; mv worktrees x; true";

async fn git_works_in_a_work_tree_and_nothing_can_be_planted(bench: Bench) {
    let root = bench.root();
    git(root, &["init", "-q", "-b", "main", "repository"]);
    git(root, &["-C", "repository", "commit", "-q", "--allow-empty", "-m", "first"]);
    git(root, &["-C", "repository", "branch", "packed"]);
    git(root, &["-C", "repository", "pack-refs", "--all"]);
    for tree in ["../tree", "../beside"] {
        git(root, &["-C", "repository", "worktree", "add", "-q", tree]);
    }
    let (tree, repository) = (root.join("tree"), root.join("repository/.git"));
    let mut launch = bench.shell(GIT_SCRIPT);
    launch.spec.dir = tree.as_path().into();
    share(&mut launch, &[&tree]);
    let (code, output, ticket) = ran(&bench, launch).await;
    assert!(code == Some(0) && output.trim().ends_with("done"), "{code:?}: {output}");
    let log = git(root, &["-C", "tree", "log", "--format=%s"]);
    assert_eq!(log.lines().next(), Some("four"), "what is done there is there: {log}");
    let (mark, before) = (root.join("planted"), files(&repository));
    let mut hostile = again(&bench, &ticket, PLANT);
    hostile.spec.argv[2] = PLANT.into();
    hostile.argv = hostile.spec.argv.clone();
    for (name, path) in [("GIT", &repository), ("TREE", &tree), ("MARK", &mark)] {
        hostile.env.push((name.into(), path.as_path().into()));
    }
    drop(ran(&bench, hostile).await);
    assert_eq!(files(&repository), before, "the repository's own directory is as it was");
    for place in ["repository", "tree", "beside"] {
        git(root, &["-C", place, "status"]);
        git(root, &["-C", place, "commit", "-q", "--allow-empty", "-m", "on the host"]);
        git(root, &["-C", place, "checkout", "-q", "-b", &format!("new-{place}")]);
    }
    assert!(!mark.exists(), "something that was planted ran on the host");
    // What a session has no business with is refused, and nothing is lost by it.
    let packed = "git gc -q 2>&1; git branch -D packed 2>&1; git branch --format='%(refname:short)'";
    let (_, output, _) = ran(&bench, again(&bench, &ticket, packed)).await;
    assert!(output.lines().any(|line| line == "packed"), "{output}");
    assert!(git(root, &["-C", "repository", "branch", "--list"]).contains("tree"));
}

async fn no_repository_of_a_submodule_can_be_planted(bench: Bench) {
    let root = bench.root();
    git(root, &["config", "--global", "protocol.file.allow", "always"]);
    for name in ["library", "repository"] {
        git(root, &["init", "-q", "-b", "main", name]);
        git(root, &["-C", name, "commit", "-q", "--allow-empty", "-m", "first"]);
    }
    git(root, &["-C", "repository", "submodule", "--quiet", "add", "../library", "sub"]);
    git(root, &["-C", "repository", "commit", "-q", "-m", "a submodule"]);
    for tree in ["../tree", "../beside"] {
        git(root, &["-C", "repository", "worktree", "add", "-q", tree]);
    }
    let (own, mark) = (root.join("repository/.git/worktrees"), root.join("planted"));
    // Two work trees of one repository: each has a place for the repositories of its submodules.
    let script = "for own in \"$OWN/tree\" \"$OWN/beside\"; do at=$own/modules/sub
        rm -rf \"$own/modules\"; mkdir -p $at/hooks $at/objects $at/refs && echo 'ref: refs/heads/main' > $at/HEAD
        printf '[core]\\n\\tfsmonitor = touch %s\\n' \"$MARK\" > $at/config && echo \"planted in $own\"
        printf '#!/bin/sh\\ntouch %s\\n' \"$MARK\" > $at/hooks/post-checkout; chmod +x $at/hooks/post-checkout
        done; git status --short && echo works";
    let mut launch = bench.shell(script);
    launch.spec.dir = root.join("tree").as_path().into();
    share(&mut launch, &[&root.join("tree"), &root.join("beside")]);
    for (name, path) in [("OWN", &own), ("MARK", &mark)] {
        launch.env.push((name.into(), path.as_path().into()));
    }
    let (_, output, _) = ran(&bench, launch).await;
    assert!(!output.contains("planted in") && output.contains("works"), "{output}");
    for tree in ["tree", "beside"] {
        assert!(!own.join(tree).join("modules").exists(), "{tree}: it went with the container: {output}");
    }
    // On the host a tree can go as before, and its submodules can come.
    git(root, &["-C", "repository", "worktree", "remove", "../beside"]);
    git(root, &["-C", "tree", "submodule", "--quiet", "update", "--init"]);
    git(root, &["-C", "tree", "status"]);
    assert!(root.join("tree/sub/.git").exists() && own.join("tree/modules/sub/HEAD").exists());
    assert!(!mark.exists(), "something that was planted ran on the host");
}

/// The names in a repository's own directory and in its settings and hooks, with what is in them.
fn files(repository: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for dir in ["", "hooks", "info", "worktrees/beside"] {
        for entry in fs::read_dir(repository.join(dir)).into_iter().flatten().flatten() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            all.push((format!("{dir}/{}", entry.file_name().to_string_lossy()), bytes));
        }
    }
    all.sort();
    all
}

async fn every_mount_is_named(bench: Bench) {
    let shared = bench.root().join("shared");
    fs::create_dir(&shared).expect("a directory");
    fs::write(bench.root().join("key"), "k").expect("a file");
    let mut launch = bench.shell("cat /run/secrets/key");
    share(&mut launch, &[&shared]);
    launch.spec.dir = "/".into();
    let secret = wharf_model::Secret { name: "key".into(), source: bench.root().join("key").into() };
    launch.spec.container.as_mut().expect("a container").secrets = vec![secret];
    let (_, output, ticket) = ran(&bench, launch).await;
    assert_eq!(output, "k");
    let of = |target: &str| {
        let found = ticket.spec.mounts.iter().find(|mount| mount.target.lossy() == target);
        found.map(|mount| (mount.by, mount.read_only))
    };
    assert_eq!(of(shared.to_str().expect("UTF-8")), Some((MountedBy::User, false)));
    assert_eq!(of("/run/secrets/key"), Some((MountedBy::User, true)));
    assert_eq!(of("/run/wharf/holder"), Some((MountedBy::Wharf, true)));
    assert_eq!(of("/run/wharf/room"), Some((MountedBy::Wharf, false)));
    let root = rustix::process::geteuid().is_root();
    assert_eq!(ticket.spec.weakened.iter().any(|said| said.contains("the caller is root")), root);
}

async fn engine_sockets_are_refused(bench: Bench) {
    let socket = bench.engine.endpoint().socket().expect("a socket").to_owned();
    let other = bench.root().join("other");
    // A name that says nothing, of the same socket.
    let linked = fs::hard_link(&socket, &other).is_ok();
    let dir = socket.parent().expect("a directory").to_owned();
    let mut refused = vec![socket, dir, "/run".into(), "/var/run".into(), "/run/user".into(), "/proc".into()];
    refused.extend(linked.then_some(other));
    for path in refused.iter().filter(|path| path.exists()) {
        let mut launch = bench.shell("exit 0");
        launch.spec.dir = "/".into();
        let volume = Volume { source: path.as_path().into(), target: "/x".into(), read_only: true };
        launch.spec.container.as_mut().expect("a container").volumes = vec![volume];
        let failure = bench.open().start(launch).await.err().expect("it is refused");
        assert_eq!(failure.code, Code::Forbidden, "{}: {failure:?}", path.display());
        // At once, and not by the holder once the container has it.
        assert!(failure.message.contains("is not shared"), "{}: {failure:?}", path.display());
    }
}

async fn what_wharf_keeps_is_hidden_below_a_mount(bench: Bench) {
    // The directory that is mounted has the instance's own in it, as a home has.
    let state = bench.options().state;
    assert!(state.starts_with(bench.root()));
    let script = "exec 2> /dev/null; ls -A \"$STATE\"; cat \"$OWN/ticket.json\"; echo looked; \
                  echo evil > \"$STATE/planted\"; mkdir -p \"$OWN\"; echo '{}' > \"$OWN/ticket.json\"";
    for reuse in [false, true] {
        let mut launch = bench.shell(script);
        launch.env.push(("STATE".into(), state.as_path().into()));
        launch.env.push(("OWN".into(), launch.home.as_path().into()));
        launch.spec.container.as_mut().expect("a container").reuse = reuse;
        let (ticket, connection) = bench.start(launch).await;
        within(TEST_TIMEOUT, "the end", connection.wait()).await.expect("the end");
        let output = Transcript::of(&*connection, Offset(0)).await.rest().await.seen;
        assert_eq!(String::from_utf8_lossy(&output), "looked\n");
        assert!(!state.join("planted").exists());
        let kept = fs::read(ticket.dir.as_path().join("ticket.json")).expect("it is there");
        assert!(serde_json::from_slice::<Ticket>(&kept).is_ok_and(|kept| kept.id == ticket.id));
        bench.clear(&ticket).await;
    }
}
