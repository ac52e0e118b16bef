//! What a program tells its terminal beside what it paints.

use wharf_model::Size;
use wharf_screen::{
    Clipboard, ProgressReport, ProgressState, PromptMark, Screen, ShellPhase, Signal, StatusReport,
    StatusState,
};

fn screen() -> Screen {
    Screen::new(Size { cols: 20, rows: 5 }, 100)
}

/// The signals in some output, without their places.
fn signals(output: &str) -> Vec<Signal> {
    screen().feed(output.as_bytes()).signals.into_iter().map(|(_, signal)| signal).collect()
}

#[test]
fn titles_come_when_they_change() {
    assert_eq!(
        signals("\x1b]0;one\x07\x1b]2;one\x1b\\\x1b]2;two; three\x1b\\\x1bkfour\x1b\\"),
        ["one", "two; three", "four"].map(|title| Signal::Title(title.into()))
    );
    let mut screen = screen();
    let _ = screen.feed("\x1b]2;one\x07\x1b[22t\x1b]2;two\x07\x1b[23t".as_bytes());
    assert_eq!(screen.title(), "one", "put aside and taken back");
    let _ = screen.feed(b"\x1b]2;a\x01b\xc2\x9b31m\x07");
    assert_eq!(screen.title(), "ab31m", "no controls in a title");
    let _ = screen.feed(&[b"\x1b]2;".as_slice(), &b"x".repeat(50_000), b"\x07"].concat());
    assert_eq!(screen.title().len(), 4096);
}

#[test]
fn every_signal_says_where_it_was_completed() {
    let heard = screen().feed(b"ab\x07\x1b]2;t\x07\x1b[?1049h");
    let places: Vec<u64> = heard.signals.iter().map(|(at, _)| *at).collect();
    assert_eq!(places, [2, 8, 16]);
    let mut screen = screen();
    assert!(screen.feed(b"x\x1b]2;").signals.is_empty());
    assert_eq!(screen.feed(b"t\x1b\\").signals, [(1, Signal::Title("t".into()))]);
}

#[test]
fn the_bell_is_not_the_end_of_a_string() {
    assert_eq!(signals("\x07\x1b]0;t\x07\x07"), [Signal::Bell, Signal::Title("t".into()), Signal::Bell]);
}

#[test]
fn directories() {
    let path = "/home/a b/ü";
    assert_eq!(signals("\x1b]7;file://host/home/a%20b/%C3%BC\x07"), [Signal::Directory(path.into())]);
    assert_eq!(signals("\x1b]9;9;\"/x\"\x07"), [Signal::Directory("/x".into())]);
    assert_eq!(signals("\x1b]7;nonsense\x07"), []);
}

#[test]
fn notifications() {
    let told = |title: &str, body: &str| [Signal::Notification { title: title.into(), body: body.into() }];
    assert_eq!(signals("\x1b]9;hello; you\x07"), told("", "hello; you"));
    assert_eq!(signals("\x1b]777;notify;title;body; more\x1b\\"), told("title", "body; more"));
    assert_eq!(signals("\x1b]99;i=1:d=0;hello\x1b\\"), told("", "hello"));
    assert_eq!(signals("\x1b]9;2;not for us\x07\x1b]777;other;x\x07"), []);
}

#[test]
fn progress() {
    let of = |state, percent| Signal::Progress(Some(ProgressReport { state, percent }));
    assert_eq!(
        signals(
            "\x1b]9;4;1;40\x07\x1b]9;4;1;40\x07\x1b]9;4;3\x07\x1b]9;4;2;90\x07\x1b]9;4;4\x07\x1b]9;4;0\x07"
        ),
        [
            of(ProgressState::Normal, Some(40)),
            of(ProgressState::Indeterminate, None),
            of(ProgressState::Error, Some(90)),
            of(ProgressState::Paused, None),
            Signal::Progress(None),
        ]
    );
}

#[test]
fn marks_of_a_shell() {
    let mut screen = screen();
    let heard = screen.feed(b"\r\n\x1b]133;A\x07$ \x1b]133;B\x07ls\r\n\x1b]133;C\x07out\r\n");
    let marks =
        [PromptMark::PromptStart, PromptMark::InputStart, PromptMark::OutputStart].map(Signal::Prompt);
    assert_eq!(heard.signals.into_iter().map(|(_, signal)| signal).collect::<Vec<_>>(), marks);
    assert_eq!(screen.shell_phase(), Some(ShellPhase::Running));
    let marked = |screen: &Screen| screen.visible().iter().map(|row| row.mark).collect::<Vec<_>>();
    assert_eq!(marked(&screen)[..3], [None, Some(PromptMark::PromptStart), Some(PromptMark::OutputStart)]);
    let heard = screen.feed(b"\x1b]133;D;130\x07\x1b]133;D\x07");
    assert_eq!(heard.signals[0].1, Signal::Prompt(PromptMark::Done { exit: Some(130) }));
    assert_eq!(screen.shell_phase(), Some(ShellPhase::Done { exit: None }));
    // The mark moves with its row.
    let _ = screen.feed(b"\r\n\r\n");
    assert_eq!(marked(&screen)[0], Some(PromptMark::PromptStart));
}

#[test]
fn status_reports() {
    let status = StatusReport {
        state: StatusState::Blocked,
        id: String::new(),
        kind: Some("permission".into()),
        progress: Some(40),
        app: Some("codex".into()),
        message: Some("Deploy?".into()),
    };
    let mut screen = screen();
    let report = b"\x1b]7501;state=blocked:kind=permission:app=codex:progress=40:msg=RGVwbG95Pw==\x1b\\";
    assert_eq!(screen.feed(report).signals[0].1, Signal::Status(Some(status.clone())));
    assert_eq!(screen.status(), Some(&status));
    assert_eq!(screen.feed(report).signals, [], "nothing new");
    let _ = screen.feed(b"\x1b]7501;state=working:id=a/b\x07");
    assert_eq!(screen.status(), Some(&status), "a part of a program speaks for itself");
    let _ = screen.feed(b"\x1b]7501;idle\x07");
    assert_eq!(screen.status().map(|status| status.state), Some(StatusState::Idle));
    let _ = screen.feed(b"\x1b]7501;state=working\x07\x1b]133;A\x07");
    assert_eq!(screen.status(), None, "the shell is back");
    let _ = screen.feed(b"\x1b]7501;state=done\x07");
    assert_eq!(screen.feed(b"\x1b]7501;state=clear\x07").signals[0].1, Signal::Status(None));
    assert_eq!(screen.feed(b"\x1b]7501;state=odd\x07\x1b]7501;\x07").signals, []);
}

#[test]
fn the_clipboard_stays_shut() {
    let write = |payload: Option<&str>| {
        Signal::Clipboard(Clipboard { read: false, size: 4, payload: payload.map(str::to_owned) })
    };
    assert_eq!(signals("\x1b]52;c;aGk=\x07"), [write(None)]);
    let read = Signal::Clipboard(Clipboard { read: true, size: 0, payload: None });
    let mut screen = screen();
    screen.allow_clipboard(true);
    let heard = screen.feed(b"\x1b]52;c;aGk=\x07\x1b]52;c;?\x07");
    assert_eq!(
        heard.signals.into_iter().map(|(_, signal)| signal).collect::<Vec<_>>(),
        [write(Some("aGk=")), read]
    );
    assert!(heard.replies.is_empty(), "nobody may read it");
}

#[test]
fn links_screens_and_clearing() {
    assert_eq!(
        signals("\x1b]8;id=1;https://a.b/c;d\x07x\x1b]8;;\x07"),
        [Signal::Link("https://a.b/c;d".into())]
    );
    for mode in [47, 1047, 1049] {
        let output = format!("\x1b[?{mode}h\x1b[?{mode}h\x1b[?{mode}l");
        assert_eq!(signals(&output), [Signal::AltScreen(true), Signal::AltScreen(false)]);
    }
    assert_eq!(signals("\x1b[2J\x1b[3J\x1b[J"), [Signal::Cleared, Signal::Cleared]);
    assert_eq!(
        signals("\x1b]2;t\x07\x1b[?1049h\x1bc").split_off(2),
        [Signal::AltScreen(false), Signal::Title(String::new()), Signal::Cleared]
    );
}
