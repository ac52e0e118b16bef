//! Tests that fork bombs are ended, with and without a limit on processes.

use std::time::Duration;

use crate::support::{Wharf, until};
use crate::tools::{Bystander, MARK, marked, show, within};

/// A tree of 256, of which all but the first move on from pid to pid. Should all else fail, it ends by itself in a minute.
const BOMB: &str = r"
use POSIX;
$SIG{TERM} = $SIG{HUP} = 'IGNORE';
my ($first, $end) = ($$, time + 60);
for (1..8) { fork() }
sleep 1 while $$ == $first && time < $end;
while (time < $end) { my $pid = fork(); if ($pid) { POSIX::_exit(0) } select(undef, undef, undef, 0.2) }
";

fn bomb(options: &[&str], argv: &[&str], most: usize) {
    let wharf = Wharf::new();
    let mut bystander = Bystander::new();
    wharf.start("neighbour", &[], &["sleep", "1000"]);
    for round in 0..3 {
        let mark = format!("bomb-{}-{round}", std::process::id());
        let mark_option = format!("{MARK}={mark}");
        wharf.start("one", &[options, &["-e", &mark_option]].concat(), argv);
        assert!(until(|| marked(&mark).len() >= most / 2), "{} processes", marked(&mark).len());
        within(Duration::from_secs(1), "ls", || wharf.ok(&["ls"]));
        within(Duration::from_millis(1_600), "a stop", || wharf.ok(&["stop", "-t", "0.5", "one"]));
        assert_eq!(marked(&mark), Vec::<i32>::new(), "round {round} left processes");
        assert_eq!(show(&wharf, "one")["exit"]["survivors"], 0);
        bystander.must_live();
        assert!(crate::support::is_live(&show(&wharf, "neighbour")));
        wharf.ok(&["rm", "one"]);
    }
}

#[test]
fn a_fork_bomb_of_256_ends() {
    bomb(&[], &["perl", "-e", BOMB], 200);
}

#[test]
fn a_fork_bomb_without_an_end_ends_where_processes_are_limited() {
    crate::limits::need_limits();
    // Above the shell's own pace of dying, far below what would hurt the machine.
    bomb(&["--pids", "200"], &["bash", "-c", "trap '' TERM HUP; f() { f | f & f; }; f"], 100);
}
