//! A stop ends the whole tree, whatever it does, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use crate::conformance::{Bystander, Place, carrying, none_carry, until};

/// TERM, HUP and INT ignored; new sessions; double forks; orphans; emptied variables; and it keeps forking.
const HOSTILE: &str = r#"
trap '' TERM HUP INT
for i in 1 2 3; do
    setsid sh -c 'trap "" TERM HUP INT; while :; do (sleep 600 &); sleep 0.05; done' "$1" &
done
(setsid sh -c '(trap "" TERM HUP; sleep 600 & sleep 600) & exit' "$1" &)
(env -i setsid /bin/sh -c 'trap "" TERM HUP; while :; do sleep 1; done' "$1" &)
while :; do (sleep 600 &); sleep 0.05; done
"#;

/// No survivor, no bystander, in grace and a second.
pub async fn hostile_trees_end(place: Arc<Place>) {
    place.need(place.can().tree_kill, "promise that a stop ends the tree");
    place.need_host();
    let mut bystander = Bystander::start();
    let neighbour = place.sleeper().await;
    for _ in 0..3 {
        let mut launch = place.shell(HOSTILE);
        launch.argv.push(launch.token.as_str().into());
        let session = place.start(launch).await;
        until("the tree has grown", async || carrying(&session.token).len() >= 20).await;
        session.stop(Duration::from_millis(200)).await;
        none_carry(&session.token);
        bystander.must_live();
        assert!(neighbour.connection.status().borrow().exit.is_none(), "a neighbour was ended");
        assert!(!carrying(&neighbour.token).is_empty(), "a neighbour was ended");
    }
}

/// A kill at once is as thorough.
pub async fn hostile_trees_are_killed(place: Arc<Place>) {
    place.need(place.can().tree_kill, "promise that a stop ends the tree");
    place.need_host();
    let mut launch = place.shell(HOSTILE);
    launch.argv.push(launch.token.as_str().into());
    let session = place.start(launch).await;
    until("the tree has grown", async || carrying(&session.token).len() >= 20).await;
    session.stop(Duration::ZERO).await;
    none_carry(&session.token);
}

/// Politeness is for the whole tree: children get TERM and their grace too.
pub async fn children_get_their_grace(place: Arc<Place>) {
    place.need(place.can().tree_kill, "promise that a stop ends the tree");
    let script = "sh -c 'trap \"echo child done; exit\" TERM; echo up; while :; do sleep 0.05; done' & \
        trap 'wait; echo parent done; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let session = place.start(place.shell(script)).await;
    let mut transcript = session.transcript(0).await;
    transcript.until("up").await;
    transcript.until("up").await;
    let record = session.stop(Duration::from_secs(10)).await;
    assert_eq!(record.code, Some(0), "{}", session.lines().await);
    let lines = session.lines().await;
    assert!(lines.contains("child done") && lines.contains("parent done"), "{lines}");
}
