//! What is kept is not collected; what was collected all the same is captured again.

use wharf_backend::Environment;

use crate::support::{Ground, captured, host, prepared};

#[tokio::test]
async fn garbage_collection_keeps_what_is_kept() {
    let ground = Ground::new();
    let tool = "TOOL = derivation { name = \"tool\"; inherit system; builder = \"/bin/bash\"; \
        args = [ \"-c\" \"echo tool > $out\" ]; };";
    let dir = ground.flake("flake", tool);
    let environment = ground.environment();
    let launch = environment.apply(ground.launch(&dir, "true"), &host()).await.unwrap();
    let tool = launch.env.iter().find(|(name, _)| name.as_bytes() == b"TOOL").unwrap().1.clone();
    ground.run("nix-store", &["--gc"]);
    assert_eq!(std::fs::read_to_string(tool.as_path()).unwrap(), "tool\n", "what the shell needs is there");
    assert!(!captured(&prepared(&environment, &launch_of(&ground, &dir)).await.unwrap()));

    // By hand, past what holds it.
    for entry in std::fs::read_dir(ground.home().state().join("environments/nix")).unwrap() {
        for link in std::fs::read_dir(entry.unwrap().path()).unwrap().map(|link| link.unwrap().path()) {
            if link.is_symlink() {
                std::fs::remove_file(link).unwrap();
            }
        }
    }
    ground.run("nix-store", &["--gc"]);
    assert!(!tool.as_path().exists());
    assert!(captured(&prepared(&environment, &launch_of(&ground, &dir)).await.unwrap()));
    assert!(tool.as_path().exists());
}

fn launch_of(ground: &Ground, dir: &std::path::Path) -> wharf_backend::Launch {
    ground.launch(dir, "true")
}
