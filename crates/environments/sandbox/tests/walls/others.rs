//! Other processes, privileges, and ways around.

use wharf_backend::conformance::{Bystander, left_out};

use crate::support::{Ground, run};

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    let ground = Ground::new();
    let mut bystander = Bystander::start();
    let pid = bystander.pid();
    let launch = ground.apply(&["true"]).await.unwrap();
    let scoped = launch.spec.in_force.iter().any(|said| said.contains("no signals to processes outside"));
    if scoped {
        assert!(ground.refused(&format!("kill -9 {pid}")).await.contains("not permitted"));
        bystander.must_live();
    }
    for file in ["environ", "mem", "maps", "fd"] {
        ground.refused(&format!("cat /proc/{pid}/{file}/ 2>/dev/null || cat /proc/{pid}/{file}")).await;
    }
    // Its own are its own.
    assert_eq!(ground.prints("sleep 600 & kill $!; wait $!; echo $?").await, "143\n");
    if !scoped {
        drop((bystander, launch, ground));
        left_out("this kernel does not keep signals inside");
    }
}

#[tokio::test]
async fn limits_and_priorities_of_others_stay_as_they_are() {
    let ground = Ground::new();
    let mut bystander = Bystander::start();
    let pid = bystander.pid();
    let facts = |pid: i32| -> Vec<String> {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("it lives");
        let status = read("status");
        let allowed =
            status.lines().find(|line| line.starts_with("Cpus_allowed:")).expect("a line").to_owned();
        let nice =
            read("stat").rsplit(')').next().expect("fields").split(' ').nth(17).expect("nice").to_owned();
        vec![read("limits"), allowed, nice]
    };
    let before = facts(pid);
    for script in [
        format!("prlimit --pid {pid} --nofile=1:1"),
        format!("prlimit --pid {pid} --cpu=1:1"),
        format!("taskset -p 1 {pid}"),
        format!("chrt --idle -p 0 {pid}"),
        format!("renice -n 19 -p {pid}"),
        "renice -n 19 -u $(id -u)".to_owned(),
        "renice -n 19 -g 0".to_owned(),
        format!("ionice -c 3 -p {pid}"),
    ] {
        ground.refused(&script).await;
    }
    assert_eq!(facts(pid), before);
    bystander.must_live();
    // Its own are its own, and those of others may be looked at.
    let own = "ulimit -S -n 100; ulimit -n; nice -n 5 nice; ionice -c 3 true && echo yes";
    assert_eq!(ground.prints(own).await, "100\n5\nyes\n");
    ground.prints(&format!("prlimit --pid {pid} --nofile >/dev/null")).await;
}

/// A process without any privilege. Of one that has some, the kernel itself keeps those who have none, and shows nothing of us.
struct Plain(std::process::Child);

impl Plain {
    fn start() -> Self {
        let root = std::os::unix::fs::MetadataExt::uid(
            &std::fs::metadata("/proc/self").expect("this process is there"),
        ) == 0;
        let without: &[&str] =
            if root { &["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"] } else { &[] };
        let words = [without, &["sleep", "600"]].concat();
        let plain = Self(
            std::process::Command::new(words[0])
                .args(&words[1..])
                .spawn()
                .expect("setpriv and sleep are there"),
        );
        let asleep = || std::fs::read_to_string(plain.file("comm")).is_ok_and(|name| name == "sleep\n");
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !asleep() {
            assert!(std::time::Instant::now() < until, "it never became what it should be");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        plain
    }

    fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.0.id())
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn where_others_run_stays_as_it_is_though_they_have_no_privilege_either() {
    let ground = Ground::new();
    let plain = Plain::start();
    let status = std::fs::read_to_string(plain.file("status")).unwrap();
    assert!(status.contains("CapPrm:\t0000000000000000"), "{status}");
    let pid = plain.0.id();
    for script in [format!("taskset -p 1 {pid}"), format!("chrt --idle -p 0 {pid}")] {
        let said = ground.refused(&script).await;
        assert!(said.contains("Operation not permitted"), "{script}: {said}");
    }
}

#[tokio::test]
async fn a_descriptor_that_came_along_by_mistake_is_gone() {
    let ground = Ground::new();
    let read = ["bash", "-c", "cat <&7"];
    // A rule on files does not hold for what is open already.
    let with_it = |mut launch: wharf_backend::Launch| {
        let open = ["bash", "-c", "exec 7<\"$OUT/file\"; exec \"$@\"", "bash"].map(wharf_model::Text::from);
        launch.argv.splice(0..0, open);
        run(&launch)
    };
    let outside = with_it(ground.launch(&read));
    assert_eq!(String::from_utf8_lossy(&outside.stdout), "secret", "{outside:?}");
    let inside = with_it(ground.apply(&read).await.unwrap());
    assert!(!inside.status.success() && inside.stdout.is_empty(), "{inside:?}");
    assert!(String::from_utf8_lossy(&inside.stderr).contains("Bad file descriptor"), "{inside:?}");
}

#[tokio::test]
async fn shared_memory_of_the_host_is_not_there() {
    let made = std::process::Command::new("ipcmk").args(["-M", "4096"]).output().expect("ipcmk runs");
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    let id = text.trim().rsplit(' ').next().expect("a number").to_owned();
    let ground = Ground::new();
    let seen = ground.script(&format!("ipcs -m -i {id}; perl -e 'shmread({id}, $x, 0, 1) or exit 7'")).await;
    let removed = std::process::Command::new("ipcrm").args(["-m", &id]).status().expect("ipcrm runs");
    assert!(removed.success(), "{text}");
    assert_eq!(seen.status.code(), Some(7), "{seen:?}");
}

#[tokio::test]
async fn privileges_are_given_up() {
    let ground = Ground::new();
    let said = ground.prints("grep -E 'NoNewPrivs|Seccomp:|Cap' /proc/self/status").await;
    let field = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(name)).expect("the kernel says it");
        line.rsplit(['\t', ' ']).next().expect("a value").to_owned()
    };
    assert_eq!(field("NoNewPrivs"), "1");
    assert_eq!(field("Seccomp"), "2");
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
}

#[tokio::test]
async fn no_namespace_gives_privileges_back() {
    let ground = Ground::new();
    for script in [
        "unshare -U true",
        "unshare -Ur sh -c 'grep CapEff /proc/self/status'",
        "unshare -n true",
        // CLONE_NEWUSER and SIGCHLD, by both calls that make processes.
        "perl -e 'exit(syscall(56, 0x10000011, 0, 0, 0, 0) < 0 ? 1 : 0)'",
        "perl -e '$a = pack(\"Q11\", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0); \
            exit(syscall(435, $a, 88) < 0 ? 1 : 0)'",
    ] {
        ground.refused(script).await;
    }
    // Threads and processes are made as always.
    assert_eq!(ground.prints("(echo a); echo b | cat").await, "a\nb\n");
}

#[tokio::test]
async fn no_way_leads_around() {
    let ground = Ground::new();
    for script in [
        "mount -t tmpfs none .",
        "unshare -Urm sh -c 'mount -t tmpfs none .'",
        "chroot . /bin/true",
        "nsenter -t 1 -m true",
        "perl -e 'syscall(425, 1, 0) < 0 and die \"$!\\n\"'",
        "perl -e 'syscall(0x40000000 + 41, 1, 1, 0) < 0 and die \"$!\\n\"'",
    ] {
        ground.refused(script).await;
    }
}
