//! Tests `wharf write`, `keys`, `escape` and `interrupt`, on terminals and pipes.

use crate::support::{Wharf, until};

#[test]
fn text_keys_and_interrupts_arrive() {
    let wharf = Wharf::new();
    let script = "trap 'echo caught' INT; echo ready; while :; do IFS= read -r x && echo \"<$x>\"; done";
    wharf.start("one", &[], &["bash", "-c", script]);
    wharf.until_log("one", "ready");
    wharf.ok(&["write", "one", "two", "words"]);
    wharf.ok(&["keys", "one", "x", "Enter"]);
    wharf.until_log("one", "<two wordsx>");
    wharf.ok(&["keys", "-l", "one", "C-c", "is text"]);
    wharf.ok(&["keys", "one", "Enter"]);
    wharf.until_log("one", "<C-c is text>");
    wharf.ok(&["interrupt", "one"]);
    wharf.until_log("one", "caught");
    let ran = wharf.run(&["keys", "one", "Nonsense"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
}

#[test]
fn escape_is_one_byte() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "stty raw -echo; echo ready; head -c 1 | od -An -tx1"]);
    wharf.until_log("one", "ready");
    wharf.ok(&["escape", "one"]);
    wharf.until_log("one", "1b");
}

#[test]
fn standard_input_goes_into_pipes_whole() {
    let wharf = Wharf::new();
    wharf.start("one", &["--no-tty"], &["sh", "-c", "wc -c"]);
    let megabytes = vec![b'x'; 3 << 20];
    let ran = wharf.run_with(&["write", "--eof", "one", "-"], &megabytes);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(wharf.run(&["wait", "one"]).code, 0);
    assert_eq!(String::from_utf8(wharf.log("one")).unwrap().trim(), (3 << 20).to_string());
}

#[test]
fn pipes_are_interrupted_by_the_signal() {
    let wharf = Wharf::new();
    wharf.start(
        "one",
        &["--no-tty"],
        &["sh", "-c", "trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done"],
    );
    wharf.until_log("one", "ready");
    wharf.ok(&["interrupt", "one"]);
    assert_eq!(wharf.run(&["wait", "one"]).code, 5);
}

#[test]
fn a_session_that_has_ended_takes_no_input() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["true"]);
    wharf.run(&["wait", "one"]);
    let ran = wharf.run(&["write", "one", "x"]);
    assert_eq!(ran.code, 4, "{ran:#?}");
}

#[test]
fn arrows_are_sent_as_the_application_wants_them() {
    let wharf = Wharf::new();
    let reads = "stty raw -echo; printf '\\033[?1hready'; exec cat >> typed";
    wharf.start("one", &[], &["sh", "-c", reads]);
    wharf.until_log("one", "ready");
    wharf.ok(&["keys", "one", "Up", "Home", "x", "PgUp", "Left"]);
    let typed = || std::fs::read_to_string(wharf.home().join("typed")).unwrap_or_default();
    assert!(until(|| typed().ends_with('D')), "{:?}", typed());
    assert_eq!(typed(), "\u{1b}OA\u{1b}OHx\u{1b}[5~\u{1b}OD");
}
