//! Any text as a project's `wharf.toml`: refused or taken without a panic, and one that nobody trusts only makes things more
//! careful.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wharf_agents::{Budget, Look, PROJECT_FILE, Profile, Profiles, ProjectFile};
use wharf_model::State;

static BUILT_IN: LazyLock<Profiles> = LazyLock::new(Profiles::built_in);

/// A few short rows: a pattern that takes too long for them is found by the fuzzer's own limit of time.
static ROWS: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..4).map(|row| format!("❯ {row}. {}", "aab ".repeat(6))).collect());

fuzz_target!(|data: &[u8]| {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
    fs::create_dir(dir.path().join(".git")).expect("a directory");
    fs::write(dir.path().join(PROJECT_FILE), data).expect("a file");
    let Some(Ok(file)) = ProjectFile::find(dir.path(), None) else {
        assert!(std::str::from_utf8(data).is_err() || data.len() > 64 << 10, "it is ours, and was not read");
        return;
    };
    // Each profile is read several times for one look, which takes long: one half is for those who trust the file.
    let trusted = data.len() % 2 == 1;
    let project = Profiles::consider(None, &file, trusted).expect("a project's file is no failure");
    let profiles = Profiles::load(None, Some(&project)).expect("what counts of it can be loaded");
    if !trusted {
        assert!(profiles.names().eq(BUILT_IN.names()), "an agent came, or went");
    }
    if project.changes.is_empty() {
        return;
    }
    let look = Look { rows: &ROWS, title: &ROWS[0], ..Look::default() };
    for profile in profiles.iter() {
        let budget = Budget::default();
        let asked = budget.look(|| (profile.recognise(&look), profile.question(&look))).1;
        if !trusted {
            let below = BUILT_IN.get(&profile.name).expect("it has the same name");
            only_more_careful(profile, &below);
            // Where the look was broken off nothing is read, and nobody types.
            assert!(budget.is_exceeded() || asked == below.question(&look), "another question is read");
        }
    }
});

/// Nothing about which program runs, which keys are pressed, what is a question and which files are touched is another.
fn only_more_careful(changed: &Profile, below: &Profile) {
    let decided = |profile: &Profile| {
        format!(
            "{:?}",
            (
                (&profile.name, &profile.title, &profile.base, &profile.programs, profile.attend),
                (&profile.launch, &profile.env, &profile.composer, &profile.questions),
                (&profile.keys.submit, &profile.keys.newline, &profile.keys.interrupt, &profile.keys.clear),
                (&profile.queue.submit, &profile.stream, &profile.transcript, &profile.hooks),
            )
        )
    };
    assert_eq!(decided(changed), decided(below));
    assert!((below.keys.pause..=below.keys.pause.max(10_000)).contains(&changed.keys.pause));
    assert!(changed.queue.hold_second || !below.queue.hold_second);
    assert!(!changed.queue.while_working || below.queue.while_working);
    for (name, rule) in &changed.rules {
        match below.rules.get(name) {
            Some(same) => assert_eq!(format!("{rule:?}"), format!("{same:?}")),
            None => {
                assert_eq!(rule.state, State::Asking, "a new rule tells more than that something is asked")
            }
        }
    }
    assert!(below.rules.keys().all(|name| changed.rules.contains_key(name)), "a rule went");
}
