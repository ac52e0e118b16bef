//! Tests `wharf port` for reserved ports.

use crate::support::Wharf;

#[test]
fn reserved_ports_are_told_while_the_session_lives() {
    // Ports of containers are published, and tried with the containers.
    let wharf = Wharf::on_this_host();
    wharf.start("one", &["-p", "auto", "-p", "auto:ADMIN"], &["sleep", "600"]);
    wharf.start("none", &[], &["sleep", "600"]);
    let ports = wharf.json(&["port", "one", "--json"]);
    let number = |variable: &str| {
        let all = ports.as_array().expect("a list");
        all.iter().find(|port| port["variable"] == variable).expect("it is there")["port"].to_string()
    };
    let (web, admin) = (number("PORT"), number("ADMIN"));
    assert_ne!(web, admin);
    let shown = wharf.ok(&["port", "one"]);
    assert!(shown.contains(&format!("{web}/tcp -> 127.0.0.1:{web} as PORT\n")), "{shown}");
    assert_eq!(wharf.ok(&["port", "one", &admin]), format!("127.0.0.1:{admin}\n"));
    assert_eq!(wharf.ok(&["port", "one", "ADMIN"]), format!("127.0.0.1:{admin}\n"));
    let ran = wharf.run(&["port", "one", "1"]);
    assert!(ran.code == 3 && ran.err.contains("hint:"), "{ran:#?}");
    assert_eq!(wharf.ok(&["port", "none"]), "");
    wharf.ok(&["kill", "one"]);
    assert_eq!(wharf.run(&["port", "one"]).code, 4);
}
