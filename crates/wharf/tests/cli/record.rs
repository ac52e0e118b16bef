//! Tests that `wharf record export` has the output and no secret.

use serde_json::Value;

use crate::support::Wharf;

#[test]
fn a_recording_has_the_output_and_no_secret() {
    let wharf = Wharf::new();
    wharf.start("one", &["-e", "TOKEN=hunter2", "--size", "100x30"], &["sh", "-c", "echo hello; exit 3"]);
    wharf.run(&["wait", "one"]);
    wharf.ok(&["daemon", "stop"]);
    for (flags, version) in [(&[][..], 3), (&["--v2"][..], 2)] {
        let cast = wharf.ok(&[&["record", "export", "one"], flags].concat());
        let header: Value = serde_json::from_str(cast.lines().next().unwrap()).unwrap();
        assert_eq!(header["version"], version, "{header}");
        assert!(cast.contains("hello") && !cast.contains("hunter2"), "{cast}");
        for line in cast.lines() {
            serde_json::from_str::<Value>(line).unwrap();
        }
    }
    let file = wharf.home().join("one.cast");
    wharf.ok(&["record", "export", "one", "-o", file.to_str().unwrap()]);
    assert!(std::fs::read_to_string(file).unwrap().contains("hello"));
}
