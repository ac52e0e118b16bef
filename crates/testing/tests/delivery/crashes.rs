//! Tests that another engine delivers waiting messages and knows states again.

use wharf_model::{Manner, State};

use crate::ground::everywhere;
use crate::place::{Place, confirmed};

everywhere! {
    another_engine_delivers_what_waits
    states_are_known_again_after_a_new_start
}

async fn another_engine_delivers_what_waits(mut place: Place) {
    place.fake("a", &["plain", "--work", "1500"]).await;
    confirmed(&place.send("a", "first").await);
    place.state("a", State::Working).await;
    let waits = place.engine.session("a").await.unwrap().send("second", Manner::default()).await.unwrap();
    place.again().await;
    let receipt = place.receipt(&waits.id).await;
    confirmed(&receipt);
    assert_eq!(place.got("a"), ["first", "second"]);
    place.end().await;
}

async fn states_are_known_again_after_a_new_start(mut place: Place) {
    place.fake("a", &["menu"]).await;
    confirmed(&place.send("a", "do it").await);
    place.state("a", State::Asking).await;
    place.again().await;
    place.state("a", State::Asking).await;
    assert_eq!(place.happened("a"), [""; 0], "nothing was typed at the question");
    place.end().await;
}
