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

const PROGRAM: &str = "#!/bin/sh
for i in 1 2 3; do
    printf 'Run rm -rf %s?\\n 1. Yes\\n 2. Yes, always\\n 3. No\\n' $i
    read answer
    printf '\\033[2J\\033[Hgot <%s>\\n' $answer
done
exec cat
";

fn asker(wharf: &Wharf) {
    use std::os::unix::fs::PermissionsExt;
    let profiles = wharf.home().join(".config/wharf/profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    std::fs::write(profiles.join("asker.toml"), PROFILE).unwrap();
    let program = wharf.home().join("asker");
    std::fs::write(&program, PROGRAM).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    wharf.start("one", &[], &[program.to_str().unwrap()]);
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
