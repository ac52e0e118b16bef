//! Tests `wharf approve` and `deny`, and the dialogs that are answered at a start.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::support::Wharf;

/// An agent of the user's own, with a profile of the user's own.
const PROFILE: &str = r#"
name = "asker"
title = "Asker"
programs = ["asker"]
attend = true

[question.run]
title = '^(Run .*\?)$'
choice = '^ *(?P<mark>>)? *(?P<n>\d)\. (?P<label>.*)$'
keys = ["{n}", "Enter"]
allow = '^Yes$'
always = '^Yes, always$'
deny = '^No$'
"#;

const ASKER_SCRIPT: &str = "
for i in 1 2 3; do
    printf 'Run rm -rf %s?\\n 1. Yes\\n 2. Yes, always\\n 3. No\\n' $i
    read answer
    printf '\\033[2J\\033[Hgot <%s>\\n' $answer
done
exec cat
";

fn asker(wharf: &Wharf) {
    asker_with(wharf, &[], "");
}

/// The same, with options, and with a line of shell that it runs first.
pub(crate) fn asker_with(wharf: &Wharf, options: &[&str], first: &str) {
    use std::os::unix::fs::PermissionsExt;
    let profiles = wharf.home().join(".config/wharf/profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    std::fs::write(profiles.join("asker.toml"), PROFILE).unwrap();
    let program = wharf.home().join("asker");
    std::fs::write(&program, format!("#!/bin/sh\n{first}{ASKER_SCRIPT}")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    wharf.start("one", options, &[program.to_str().unwrap()]);
}

#[test]
fn a_question_is_answered_and_shown() {
    let wharf = Wharf::new();
    asker(&wharf);
    wharf.ok(&["wait", "one", "--until", "asking", "--timeout", "20"]);
    let typed = wharf.run(&["send", "one", "this would answer it", "--when", "now", "--json"]);
    assert_eq!(typed.code, 9, "{typed:#?}");
    let told = wharf.ok(&["approve", "one"]);
    assert!(told.contains("asked     Run rm -rf 1?") && told.contains("answered  Yes\n"), "{told}");
    wharf.until_log("one", "got <1>");
    wharf.ok(&["wait", "one", "--until", "match=rm -rf 2", "--timeout", "20"]);
    let told = wharf.json(&["approve", "one", "2", "--json"]);
    assert_eq!(
        (&told["choice"], &told["question"]["title"]),
        (&"Yes, always".into(), &"Run rm -rf 2?".into())
    );
    wharf.until_log("one", "got <2>");
    wharf.ok(&["wait", "one", "--until", "match=rm -rf 3", "--timeout", "20"]);
    assert!(wharf.ok(&["deny", "one"]).contains("answered  No"));
    wharf.until_log("one", "got <3>");
    for verb in ["approve", "deny"] {
        let ran = wharf.run(&[verb, "one"]);
        assert_eq!(ran.code, 9, "{ran:#?}");
        assert!(ran.err.contains("hint: "), "{ran:#?}");
    }
}

/// An agent that asks two things before it begins: whether to update, and then something else.
fn starter(wharf: &Wharf, name: &str, second: &str, options: &[&str]) {
    use std::os::unix::fs::PermissionsExt;
    let profiles = wharf.home().join(".config/wharf/profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    let question = |name: &str, title: &str, answer: &str| {
        format!(
            "[question.{name}]\ntitle = '^({title})$'\nchoice = '^ *(?P<n>\\d)\\. (?P<label>.*)$'\n\
             keys = ['{{n}}', 'Enter']\nstartup = true\nanswer = '{answer}'\n"
        )
    };
    let profile = format!(
        "name = 'starter'\nprograms = ['starter']\nattend = true\n{}{}{}{}",
        question("update", "Update available!", "^Skip$"),
        question("folder", "Do you trust this folder\\?", "^Yes$"),
        question("start", "How do you want to begin\\?", "^(With|Ask|Go) .*first$"),
        question("colours", "Which colours\\?", "^(Dark|Light)$"),
    );
    std::fs::write(profiles.join("starter.toml"), profile).unwrap();
    let program = wharf.home().join("starter");
    let text = format!(
        "#!/bin/sh\nprintf 'Update available!\\n 1. Update now\\n 2. Skip\\n'; read answer\n\
         printf '\\033[2J\\033[Hupdate <%s>\\n' $answer\n{second}; read answer\n\
         printf '\\033[2J\\033[Hsecond <%s>\\n' $answer\nexec cat\n"
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    wharf.start(name, options, &[program.to_str().unwrap()]);
}

#[test]
fn a_dialog_at_the_start_is_answered_only_when_asked_and_never_one_about_trust() {
    let wharf = Wharf::on_this_host();
    let trust = "printf 'Do you trust this folder?\\n 1. Yes\\n 2. No\\n'";
    starter(&wharf, "asked", trust, &["--answer-startup"]);
    wharf.until_log("asked", "update <2>");
    wharf.ok(&["wait", "asked", "--until", "match=trust this folder", "--timeout", "20"]);
    wharf.ok(&["wait", "asked", "--until", "asking", "--timeout", "20"]);
    let told = wharf.ok(&["events", "asked", "--kind", "startup.answered", "--json"]);
    assert!(told.lines().count() == 1 && told.contains("\"choice\":\"Skip\""), "{told}");
    // A person's answer is the first one that it gets.
    wharf.ok(&["approve", "asked", "2"]);
    wharf.until_log("asked", "second <2>");
    // Where two choices fit, none was declared.
    let colours = "printf 'Which colours?\\n 1. Dark\\n 2. Light\\n'";
    starter(&wharf, "unsure", colours, &["--answer-startup"]);
    wharf.until_log("unsure", "update <2>");
    wharf.ok(&["wait", "unsure", "--until", "match=Which colours", "--timeout", "20"]);
    wharf.ok(&["wait", "unsure", "--until", "asking", "--timeout", "20"]);
    // Without being asked for, nothing is answered.
    starter(&wharf, "plain", colours, &[]);
    wharf.ok(&["wait", "plain", "--until", "asking", "--timeout", "20"]);
    wharf.ok(&["approve", "plain", "1"]);
    wharf.until_log("plain", "update <1>");
    assert_eq!(wharf.ok(&["events", "plain", "--kind", "startup.answered", "--json"]), "");
    for name in ["asked", "unsure"] {
        let log = String::from_utf8_lossy(&wharf.log(name)).into_owned();
        assert!(!log.contains("second <1>"), "{log}");
    }
}

#[test]
fn a_dialog_at_the_start_about_a_login_or_permissions_is_never_answered() {
    let wharf = Wharf::on_this_host();
    // One word of a choice is enough, whatever the profile declares. The last one is about neither, and shows that the rest would
    // have been answered.
    for (name, first, choice) in [
        ("login", "With a login first", 2),
        ("sign", "With your browser: sign in first", 2),
        ("permission", "Ask for permissions first", 2),
        ("tools", "Ask before tools are allowed, first", 2),
        ("neither", "Go on with the tour first", 1),
    ] {
        let second = format!("printf 'How do you want to begin?\\n 1. {first}\\n 2. Later\\n'");
        starter(&wharf, name, &second, &["--answer-startup"]);
        wharf.until_log(name, "update <2>");
        if choice == 2 {
            wharf.ok(&["wait", name, "--until", "match=How do you want", "--timeout", "20"]);
            wharf.ok(&["wait", name, "--until", "asking", "--timeout", "20"]);
            wharf.ok(&["approve", name, "2"]);
        }
        // The first answer that it gets, from whomever.
        wharf.until_log(name, &format!("second <{choice}>"));
        let told = wharf.ok(&["events", name, "--kind", "startup.answered", "--json"]);
        assert_eq!(told.lines().count(), 3 - choice, "{name}: {told}");
    }
}
