//! Output that costs much to follow: others have their turn meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wharf_engine::{Format, What};
use wharf_model::Size;

use crate::place::{Place, named};

#[tokio::test]
async fn output_that_changes_every_cell_takes_nobody_elses_turn() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = named("a", &["fake:echo"]);
    spec.size = Size { cols: 512, rows: 512 };
    engine.start(spec).await.unwrap();
    // Somebody looks, so that its output is followed.
    engine.session("a").await.unwrap().capture(What::Screen, Format::Plain).await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let others = tokio::spawn({
        let over = Arc::clone(&over);
        async move {
            let (mut longest, mut last) = (Duration::ZERO, Instant::now());
            while !over.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            longest
        }
    });
    let begun = Instant::now();
    // Each of them fills the screen.
    engine.session("a").await.unwrap().write(&b"\x1b#8".repeat(400), Duration::from_secs(60)).await.unwrap();
    while !engine
        .session("a")
        .await
        .unwrap()
        .capture(What::Screen, Format::Plain)
        .await
        .unwrap()
        .starts_with("EEEE")
    {
        tokio::task::yield_now().await;
    }
    let took = begun.elapsed();
    over.store(true, Ordering::Relaxed);
    let longest = others.await.unwrap();
    assert!(longest < took / 4, "others waited {longest:?} of {took:?}");
    engine.session("a").await.unwrap().stop(None, "x").await.unwrap();
    engine.close().await;
}
