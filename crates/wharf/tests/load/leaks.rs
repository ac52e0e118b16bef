//! Tests that two hundred sessions leave no process, descriptor, memory or file.

use crate::support::{Wharf, until};
use crate::tools::{cgroups, children, descriptors, memory, show};

#[test]
fn two_hundred_sessions_come_and_go_and_leave_nothing() {
    let wharf = Wharf::new();
    let cycle = |n: usize| {
        let name = format!("s{n}");
        let options: &[&str] = if n.is_multiple_of(2) { &[] } else { &["--no-tty"] };
        wharf.start(&name, options, &["sleep", "1000"]);
        let session = show(&wharf, &name);
        match n % 3 {
            0 => wharf.ok(&["stop", "-t", "5", &name]),
            1 => wharf.ok(&["kill", &name]),
            _ => String::new(),
        };
        wharf.ok(&["rm", "-f", &name]);
        assert_eq!(cgroups(&session), Vec::<String>::new(), "{name} left its cgroup");
    };
    // What grows once, when first needed, has grown.
    (0..30).for_each(cycle);
    let daemon = wharf.daemon_pid().unwrap();
    let quiet = || children(daemon).iter().flat_map(|(nursery, _)| children(*nursery)).count() == 2;
    assert!(until(quiet), "two spare holders and nothing else");
    let (before, resident) = (descriptors(daemon), memory(daemon, "VmRSS:"));
    (30..230).for_each(cycle);
    assert_eq!(wharf.daemon_pid(), Some(daemon), "it is the same daemon");
    assert!(until(quiet), "{:?}", children(daemon));
    assert!(
        until(|| descriptors(daemon).len() <= before.len()),
        "{before:#?} grew to {:#?}",
        descriptors(daemon)
    );
    let grown = memory(daemon, "VmRSS:").saturating_sub(resident);
    eprintln!("200 sessions: the daemon has {resident} kB and {grown} kB more");
    assert!(grown < 4 << 10, "the daemon grew by {grown} kB");
    for place in ["sessions", "names"] {
        assert_eq!(std::fs::read_dir(wharf.state().join(place)).unwrap().count(), 0, "{place}");
    }
    assert_eq!(wharf.ok(&["ls", "-q"]), "");
}
