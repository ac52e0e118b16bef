//! What stands in the place of an agent's record may be anything: nothing is waited for, no link is followed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use wharf_agents::{AgentTranscript, Profiles, Told};

const CLAUDE: &str = r#"{"type":"user","cwd":"/project","sessionId":"s","timestamp":"2026-11-15T13:05:45Z","message":{"content":"hello"}}"#;
const GEMINI: &str =
    r#"{"id":"1","timestamp":"2026-11-15T13:05:45Z","type":"user","content":[{"text":"hello"}]}"#;
const OPENCODE: &str = r#"{"input":"hello","parts":[],"mode":"normal"}"#;

fn home() -> TempDir {
    tempfile::tempdir().expect("tempdir")
}

fn write(path: &Path, line: &str) {
    fs::create_dir_all(path.parent().expect("parent")).expect("dirs");
    fs::write(path, format!("{line}\n")).expect("write");
}

/// All that is told at once, found within a deadline that a loaded machine keeps. What waits for ever fails.
fn told(home: &Path, agent: &'static str, id: Option<&'static str>) -> Vec<Told> {
    let (done, answer) = mpsc::channel();
    let home = home.display().to_string();
    std::thread::spawn(move || {
        let lookup = move |name: &str| (name == "HOME").then(|| home.clone());
        let profile = Profiles::built_in().get(agent).expect(agent);
        let since = SystemTime::UNIX_EPOCH;
        let watched = AgentTranscript::watch(&profile, &lookup, Path::new("/project"), id, since);
        let _ = done.send(watched.expect("a transcript").poll());
    });
    answer.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|_| panic!("{agent}: it waits for ever"))
}

fn prompts(told: &[Told]) -> Vec<&str> {
    told.iter().filter_map(Told::prompt).collect()
}

/// What a session may put in the place of a file, the one that blocks first.
fn in_the_place_of(path: &Path, try_it: impl Fn(&str)) {
    fs::create_dir_all(path.parent().expect("parent")).expect("dirs");
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    try_it("a FIFO");
    for target in ["/dev/zero", "/dev/tty", "/proc/kmsg", "/nowhere"] {
        fs::remove_file(path).expect("remove");
        symlink(target, path).expect("link");
        try_it(target);
    }
    fs::remove_file(path).expect("remove");
    let socket = std::os::unix::net::UnixListener::bind(path).expect("socket");
    try_it("a socket");
    drop(socket);
    fs::remove_file(path).expect("remove");
    // A file of a tebibyte that takes no room.
    fs::File::create(path).and_then(|file| file.set_len(1 << 40)).expect("holes");
    try_it("a huge file");
}

#[test]
fn a_file_that_names_the_project_is_not_waited_for() {
    let home = home();
    let tmp = home.path().join(".gemini/tmp");
    write(&tmp.join("x/chats/session-1.jsonl"), GEMINI);
    write(&tmp.join("y/chats/session-2.jsonl"), GEMINI);
    in_the_place_of(&tmp.join("x/.project_root"), |what| {
        // The other conversation is read, whatever stands beside it.
        assert_eq!(prompts(&told(home.path(), "gemini", None)), ["hello"], "{what}");
    });
}

#[test]
fn a_conversation_that_is_no_file_is_not_waited_for() {
    let home = home();
    let projects = home.path().join(".claude/projects");
    write(&projects.join("x/b.jsonl"), CLAUDE);
    in_the_place_of(&projects.join("x/a.jsonl"), |what| {
        assert_eq!(prompts(&told(home.path(), "claude", None)), ["hello"], "{what}");
        assert_eq!(told(home.path(), "claude", Some("a")), [], "{what}");
    });
}

#[test]
fn a_list_that_is_no_file_is_not_waited_for() {
    let home = home();
    in_the_place_of(&home.path().join(".local/state/opencode/prompt-history.jsonl"), |what| {
        assert_eq!(told(home.path(), "opencode", None), [], "{what}");
    });
}

#[test]
fn no_link_below_the_agents_directory_is_followed() {
    let (home, elsewhere) = (home(), home());
    let real = elsewhere.path().join("real.jsonl");
    write(&real, CLAUDE);
    let projects = home.path().join(".claude/projects");
    fs::create_dir_all(projects.join("x")).expect("dirs");
    symlink(&real, projects.join("x/file.jsonl")).expect("link");
    symlink(elsewhere.path(), projects.join("directory")).expect("link");
    assert_eq!(told(home.path(), "claude", None), [], "links to a file and to a directory");
    assert_eq!(told(home.path(), "claude", Some("file")), [], "a link with the name of the conversation");
    fs::remove_dir_all(&projects).expect("remove");
    write(&elsewhere.path().join("x/a.jsonl"), CLAUDE);
    symlink(elsewhere.path(), &projects).expect("link");
    assert_eq!(told(home.path(), "claude", None), [], "a link on the way");
    // The agent's directory itself may be a link: the user keeps his settings where he likes.
    fs::remove_file(&projects).expect("remove");
    let kept = elsewhere.path().join("kept");
    fs::rename(home.path().join(".claude"), &kept).expect("rename");
    write(&kept.join("projects/x/a.jsonl"), CLAUDE);
    symlink(&kept, home.path().join(".claude")).expect("link");
    assert_eq!(prompts(&told(home.path(), "claude", None)), ["hello"]);
}

#[test]
fn an_id_is_no_pattern_and_no_path() {
    let home = home();
    write(&home.path().join(".claude/projects/x/abc.jsonl"), CLAUDE);
    write(&home.path().join(".claude/projects/y/deep/abc.jsonl"), CLAUDE);
    assert_eq!(prompts(&told(home.path(), "claude", Some("abc"))), ["hello"]);
    for id in ["*", "a*", "../x/abc", "deep/abc", "/abc", "**/abc", "..", "abc\0", ""] {
        assert_eq!(told(home.path(), "claude", Some(id)), [], "{id:?}");
    }
}

#[test]
fn a_list_of_many_lines_is_read_in_bounded_time() {
    let home = home();
    let list = home.path().join(".local/state/opencode/prompt-history.jsonl");
    write(&list, "");
    let at = home.path().display().to_string();
    let lookup = move |name: &str| (name == "HOME").then(|| at.clone());
    let profile = Profiles::built_in().get("opencode").expect("opencode");
    // Every start of the old list fits the new one nearly to its end: the dearest comparison.
    fs::write(&list, "1\n".repeat(200_000) + "2\n").expect("write");
    let now = SystemTime::now();
    let (done, answer) = mpsc::channel();
    let mut transcript =
        AgentTranscript::watch(&profile, &lookup, Path::new("/project"), None, now).expect("a transcript");
    fs::write(&list, "1\n".repeat(200_001) + OPENCODE + "\n").expect("write");
    std::thread::spawn(move || done.send(prompts(&transcript.poll()).join(" ")));
    let prompts = answer.recv_timeout(Duration::from_secs(30)).expect("it takes for ever");
    assert_eq!(prompts, "hello", "the newest entries stand at the end");
}
