//! Programs that read lines: what they get, and when they are idle.

use crate::support::{Wharf, needs};

fn script(wharf: &Wharf, name: &str, text: &str) -> String {
    let file = wharf.home().join(name);
    std::fs::write(&file, text).expect("a script");
    file.to_str().expect("a path of letters").to_owned()
}

#[test]
fn a_script_of_an_interpreter_gets_its_lines() {
    let wharf = Wharf::on_this_host();
    let file = script(&wharf, "echoes.py", "while True: print('got', input('name? '))");
    wharf.start("a", &[], &["env", "python3", &file]);
    for text in ["first", "second"] {
        let ran = wharf.run(&["send", "a", text, "--timeout", "60"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        wharf.until_log("a", &format!("got {text}"));
    }
    wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "60"]);
}

#[test]
fn a_prompt_that_waits_for_input_is_idle() {
    let wharf = Wharf::on_this_host();
    // With an editor of lines, as sqlite3, psql, gdb and bc have it.
    let text = "import readline, time\nwhile True:\n  time.sleep(float(input('calc> ')))\n  print('done')";
    let file = script(&wharf, "calc.py", text);
    wharf.start("a", &[], &["python3", &file]);
    wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "60"]);
    for turn in 1..=2 {
        let ran = wharf.run(&["send", "a", "1.5", "--timeout", "60"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "60"]);
        let log = String::from_utf8_lossy(&wharf.log("a")).into_owned();
        assert_eq!(log.matches("done").count(), turn, "it is idle once it is done: {log:?}");
    }
}

#[test]
fn idle_after_a_message_means_that_its_command_is_over() {
    for argv in [["bash", "--norc"].as_slice(), &["dash"]] {
        let wharf = Wharf::on_this_host();
        wharf.start("a", &[], argv);
        for turn in 1..=5 {
            let ran = wharf.run(&["send", "a", &format!("sleep 0.7; touch made-{turn}"), "--timeout", "60"]);
            assert_eq!(ran.code, 0, "{ran:#?}");
            wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "60"]);
            assert!(wharf.home().join(format!("made-{turn}")).exists(), "{argv:?} in turn {turn}");
        }
    }
}

#[test]
fn idle_after_a_message_means_that_its_command_is_over_in_zsh_and_fish() {
    for argv in [["zsh", "-f"].as_slice(), &["fish", "-N"]] {
        needs(argv[0]);
        let wharf = Wharf::on_this_host();
        wharf.start("a", &[], argv);
        for turn in 1..=5 {
            let ran = wharf.run(&["send", "a", &format!("sleep 0.7; touch made-{turn}"), "--timeout", "60"]);
            assert_eq!(ran.code, 0, "{ran:#?}");
            wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "60"]);
            assert!(wharf.home().join(format!("made-{turn}")).exists(), "{argv:?} in turn {turn}");
        }
    }
}

/// In raw mode: waits for one key, then looks for more now and then, and shows what it got.
const POLLS: &str = "import fcntl, os, time, tty
tty.setraw(0)
os.write(1, b'press a key')
os.read(0, 1)
flags = fcntl.fcntl(0, fcntl.F_GETFL)
fcntl.fcntl(0, fcntl.F_SETFL, flags | os.O_NONBLOCK)
os.write(1, b'\\r\\npolls> ')
while True:
    time.sleep(0.05)
    try:
        keys = os.read(0, 100)
    except BlockingIOError:
        continue
    os.write(1, keys.replace(b'\\r', b'\\r\\ntook it\\r\\npolls> '))
";

#[test]
fn a_program_in_raw_mode_that_nobody_knows_gets_its_text_and_the_key() {
    let wharf = Wharf::on_this_host();
    let file = script(&wharf, "polls.py", POLLS);
    wharf.start("a", &[], &["python3", &file]);
    wharf.until_log("a", "press a key");
    // It is seen to wait for input, once.
    wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "60"]);
    wharf.ok(&["keys", "a", "x"]);
    wharf.until_log("a", "polls> ");
    for text in ["first", "second"] {
        let ran = wharf.run(&["send", "a", text, "--timeout", "20", "--json"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        wharf.until_log("a", &format!("polls> {text}\r\ntook it"));
    }
}

#[test]
fn nothing_is_said_to_be_read_of_a_program_in_raw_mode_that_does_not_read() {
    let wharf = Wharf::on_this_host();
    wharf.start("a", &[], &["sh", "-c", "stty raw -echo; printf ready; exec sleep 1000"]);
    wharf.until_log("a", "ready");
    let ran = wharf.run(&["send", "a", "hello", "--timeout", "60", "--json"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    let receipt: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let said = receipt["steps"].as_array().unwrap().iter().map(|step| step["evidence"].as_str().unwrap());
    let said: Vec<&str> = said.collect();
    assert!(said.iter().all(|said| !said.contains("read by") && !said.contains("has read")), "{said:#?}");
    assert!(said.last().unwrap().contains("stopped reading"), "{said:#?}");
}

#[test]
fn nothing_is_said_to_be_read_that_was_not() {
    let wharf = Wharf::on_this_host();
    wharf.start("a", &[], &["sleep", "1000"]);
    let ran = wharf.run(&["send", "a", "hello", "--timeout", "60", "--json"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    let receipt: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let said = receipt["steps"].as_array().unwrap().iter().map(|step| step["evidence"].as_str().unwrap());
    let said: Vec<&str> = said.collect();
    assert!(
        !said.iter().any(|evidence| evidence.contains("read by") || evidence.contains("has read")),
        "{said:#?}"
    );
    assert!(said.last().unwrap().contains("does not read"), "{said:#?}");
}

#[test]
fn a_program_that_takes_keys_and_shows_nothing_confirms_nothing() {
    let wharf = Wharf::on_this_host();
    wharf.start("a", &[], &["sh", "-c", "stty raw -echo; printf ready; exec cat > /dev/null"]);
    wharf.until_log("a", "ready");
    wharf.ok(&["wait", "a", "--until", "idle", "--timeout", "60"]);
    let ran = wharf.run(&["send", "a", "anyone?", "--timeout", "60"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert!(ran.err.contains("no proof"), "{ran:#?}");
}
