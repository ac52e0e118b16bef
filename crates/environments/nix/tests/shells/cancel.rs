//! Whoever goes away takes the builders along, and whoever waited for the same shell takes over.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wharf_backend::conformance::{carrying, until};

use crate::support::{Ground, captured, prepared};

/// A flake whose shell takes as long to build as a file is missing, with processes in sessions of their own.
fn slow(ground: &Ground, mark: &str) -> PathBuf {
    let (began, go) = (ground.path("began"), ground.path("go"));
    let script = format!(
        "export PATH=/usr/bin:/bin; setsid sleep 600.{mark} & (trap \"\" TERM; exec sleep 600.{mark}) & \
         echo > {}; while [ ! -e {} ]; do sleep 0.05; done; echo > $out; kill %1 %2; kill -9 %2; exit 0",
        began.display(),
        go.display()
    );
    let tool = format!(
        "TOOL = derivation {{ name = \"tool\"; inherit system; builder = \"/bin/bash\"; args = [ \"-c\" ''{script}'' ]; }};"
    );
    ground.flake("flake", &tool)
}

async fn there(path: &Path) {
    until("the build has begun", async || path.exists()).await;
}

#[tokio::test]
async fn cancelling_ends_the_builders() {
    let ground = Arc::new(Ground::new());
    let mark = format!("7{}", std::process::id());
    let dir = slow(&ground, &mark);
    let task = {
        let ground = Arc::clone(&ground);
        tokio::spawn(async move { prepared(&ground.environment(), &ground.launch(&dir, "true")).await })
    };
    there(&ground.path("began")).await;
    until("the sleepers are there", async || carrying(&format!("600.{mark}")).len() >= 2).await;
    task.abort();
    assert!(task.await.is_err_and(|error| error.is_cancelled()));
    until("nothing of the build is left", async || {
        carrying(&format!("600.{mark}")).is_empty()
            && carrying(&ground.path("store").to_string_lossy()).is_empty()
    })
    .await;
}

#[tokio::test]
async fn the_same_shell_is_built_once_for_all() {
    let ground = Arc::new(Ground::new());
    let mark = format!("8{}", std::process::id());
    let dir = slow(&ground, &mark);
    let environment = ground.environment();
    let ask = || {
        let (ground, environment, dir) = (Arc::clone(&ground), Arc::clone(&environment), dir.clone());
        tokio::spawn(async move { prepared(&environment, &ground.launch(&dir, "true")).await })
    };
    let first = ask();
    there(&ground.path("began")).await;
    let others: Vec<_> = (0..4).map(|_| ask()).collect();
    std::fs::write(ground.path("go"), "").unwrap();
    assert!(captured(&first.await.unwrap().unwrap()));
    for other in others {
        assert!(!captured(&other.await.unwrap().unwrap()));
    }
}

#[tokio::test]
async fn another_takes_over_when_the_first_goes_away() {
    let ground = Arc::new(Ground::new());
    let mark = format!("9{}", std::process::id());
    let dir = slow(&ground, &mark);
    let environment = ground.environment();
    let ask = || {
        let (ground, environment, dir) = (Arc::clone(&ground), Arc::clone(&environment), dir.clone());
        tokio::spawn(async move { prepared(&environment, &ground.launch(&dir, "true")).await })
    };
    let first = ask();
    there(&ground.path("began")).await;
    let second = ask();
    std::fs::remove_file(ground.path("began")).unwrap();
    first.abort();
    there(&ground.path("began")).await;
    std::fs::write(ground.path("go"), "").unwrap();
    assert!(captured(&second.await.unwrap().unwrap()));
}
