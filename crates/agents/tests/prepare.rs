//! Texts: what is made safe, what is refused, what an agent makes of them.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use wharf_agents::{Prepared, Profile, Profiles};
use wharf_model::Code;

fn profile(name: &str) -> Arc<Profile> {
    Profiles::built_in().get(name).expect(name)
}

fn prepared(agent: &str, text: &str) -> Prepared {
    profile(agent).prepare(text, false).expect(text)
}

#[test]
fn plain_text_goes_as_it_is() {
    for text in
        ["hello", "  two spaces  ", "a\tb", "one\ntwo", "$(rm -rf /) `x` \"q\" 'q'", "日本 é 👩‍👩‍👧", "-n", "a;"]
    {
        let prepared = prepared("claude", text);
        assert_eq!(prepared.text, text);
        assert!(prepared.notes.is_empty() && prepared.presses_before_submit.is_empty(), "{prepared:?}");
    }
    assert!(prepared("claude", "one\ntwo").needs_paste && prepared("claude", "a\tb").needs_paste);
    assert!(!prepared("claude", "hello").needs_paste);
}

#[test]
fn control_characters_go_and_line_ends_are_one_kind() {
    let prepared = prepared("codex", "a\u{1b}[31mred\u{1b}[201~b\r\nc\rd\u{7}\u{0}\u{9b}x\u{7f}");
    assert_eq!(prepared.text, "a[31mred[201~b\nc\ndx");
    assert_eq!(prepared.notes, ["control characters were taken out (6)"]);
}

#[test]
fn a_shell_command_is_refused_unless_it_is_meant() {
    for agent in ["claude", "codex", "gemini", "aider"] {
        for text in ["!ls", "  !ls", "\n!ls"] {
            let failure = profile(agent).prepare(text, false).expect_err(text);
            assert_eq!(failure.code, Code::Refused);
            assert!(failure.hint.expect("hint").contains("--raw"));
        }
        assert_eq!(profile(agent).prepare("!ls", true).expect("raw").text, "!ls");
    }
    assert_eq!(prepared("opencode", "!ls").text, "!ls", "pasted, it is text to it");
    assert_eq!(prepared("shell", "!ls").text, "!ls");
}

#[test]
fn what_would_take_the_enter_is_handled() {
    assert_eq!(prepared("claude", "ends in \\").text, "ends in \\ ");
    assert_eq!(prepared("gemini", "ends in \\").text, "ends in \\ ");
    assert_eq!(prepared("codex", "ends in \\").text, "ends in \\");
    assert_eq!(prepared("claude", "see @file").text, "see @file ");
    let opencode = prepared("opencode", "see @file");
    assert_eq!(opencode.text, "see @file");
    assert_eq!(opencode.presses_before_submit, ["Escape"]);
    assert!(prepared("opencode", "see @file now").presses_before_submit.is_empty());
    assert!(prepared("opencode", "mail a@b").presses_before_submit.is_empty());
}

#[test]
fn an_agents_own_commands_are_noted() {
    assert_eq!(prepared("claude", "/clear now").notes.len(), 1);
    assert!(prepared("claude", "/usr/bin is a path").notes.is_empty());
    assert!(prepared("opencode", "/clear").notes.is_empty());
}

#[test]
fn nothing_is_not_sent() {
    for text in ["", "  \n ", "\u{1b}"] {
        assert_eq!(profile("claude").prepare(text, false).expect_err("empty").code, Code::Refused);
    }
}

#[test]
fn what_the_agents_make_of_a_text() {
    assert_eq!(profile("claude").as_received(" e\u{301}\tx \n"), " \u{e9}    x");
    assert_eq!(profile("codex").as_received("  x\ty \n"), "x\ty");
    assert_eq!(profile("gemini").as_received(" a\u{200b}b\u{202e}\u{200d}c "), "ab\u{200d}c");
    for (text, received) in [
        (" x  ", " x  "),
        ("two\nlines\n", "two\nlines"),
        ("two\nlines\n   ", "two\nlines\n   "),
        (" one\ntwo\nthree\n", "one\ntwo\nthree "),
    ] {
        assert_eq!(profile("opencode").as_received(text), received, "{text:?}");
    }
    let (short, long) = ("x".repeat(150), "x".repeat(151));
    assert_eq!(profile("opencode").as_received(&short), short);
    assert_eq!(profile("opencode").as_received(&long), format!("{long} "));
    assert_eq!(profile("shell").as_received(" x "), " x ");
}

static ALL: LazyLock<Profiles> = LazyLock::new(Profiles::built_in);

proptest! {
    #[test]
    fn no_text_breaks_out_of_a_paste(text in "\\PC*|(\\x1b|\\[|2|0|1|~|\u{9b}|\n|\r|x)*", raw: bool) {
        for profile in ALL.iter() {
            if let Ok(prepared) = profile.prepare(&text, raw) {
                let ends = ["\u{1b}[201~", "\u{9b}201~"].iter().any(|end| prepared.text.contains(end));
                prop_assert!(!ends);
                if !raw {
                    prop_assert!(prepared.text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
                    // What was prepared once is safe.
                    let again = profile.prepare(&prepared.text, false).expect("again");
                    prop_assert_eq!(again.text.trim_end(), prepared.text.trim_end());
                }
            }
        }
    }
}
