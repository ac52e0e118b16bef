//! Other processes, privileges, and ways around.

use wharf_backend::conformance::Bystander;

use crate::support::Ground;

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    let ground = Ground::new();
    let mut bystander = Bystander::start();
    let pid = bystander.pid();
    let launch = ground.apply(&["true"]).await.unwrap();
    let scoped = launch.spec.in_force.iter().any(|said| said.contains("no signals to processes outside"));
    if scoped {
        assert!(ground.refused(&format!("kill -9 {pid}")).await.contains("not permitted"));
    } else {
        println!("not tried: this kernel does not keep signals inside, and that was said");
    }
    bystander.must_live();
    for file in ["environ", "mem", "maps", "fd"] {
        ground.refused(&format!("cat /proc/{pid}/{file}/ 2>/dev/null || cat /proc/{pid}/{file}")).await;
    }
    // Its own are its own.
    assert_eq!(ground.prints("sleep 600 & kill $!; wait $!; echo $?").await, "143\n");
}

#[tokio::test]
async fn privileges_are_given_up() {
    let ground = Ground::new();
    let said = ground.prints("grep -E 'NoNewPrivs|Seccomp:|CapEff' /proc/self/status").await;
    let field = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(name)).expect("the kernel says it");
        line.rsplit(['\t', ' ']).next().expect("a value").to_owned()
    };
    assert_eq!(field("NoNewPrivs"), "1");
    assert_eq!(field("Seccomp"), "2");
    let capabilities = u64::from_str_radix(&field("CapEff"), 16).expect("a set");
    // 21 is the right to administer, 19 to trace, 2 to read whatever there is.
    assert_eq!(capabilities & (1 << 21 | 1 << 19 | 1 << 2), 0, "{capabilities:x}");
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
