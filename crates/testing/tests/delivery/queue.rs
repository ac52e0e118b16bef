//! Tests the queue: many senders, repeated keys, cancelled messages, ended sessions.

use wharf_engine::Await;
use wharf_model::{Code, Manner, Progress, State};

use crate::ground::everywhere;
use crate::place::{Place, TEST_TIMEOUT, confirmed};

everywhere! {
    many_senders_at_once_never_mix
    a_key_sends_once
    a_message_is_taken_back_before_it_is_typed
    messages_of_a_session_that_ends_are_told
}

async fn many_senders_at_once_never_mix(place: Place) {
    place.fake("a", &["plain", "--work", "30"]).await;
    let sent = (0..8).map(|n| {
        let engine = place.engine.clone();
        tokio::spawn(async move {
            let text = format!("message {n} {}", "filler ".repeat(n * 10));
            let text = text.trim_end().to_owned();
            let receipt =
                engine.session("a").await.unwrap().send(text.clone(), Manner::default()).await.unwrap();
            (
                text,
                engine
                    .session_of_message(&receipt.id)
                    .await
                    .unwrap()
                    .await_receipt(&receipt.id, Await::Confirmed, TEST_TIMEOUT)
                    .await
                    .unwrap(),
            )
        })
    });
    let sent: Vec<_> = sent.collect();
    let mut texts = Vec::new();
    for sent in sent {
        let (text, receipt) = sent.await.unwrap();
        confirmed(&receipt);
        texts.push(text);
    }
    let mut got = place.got("a");
    got.sort();
    texts.sort();
    assert_eq!(got, texts);
    place.end().await;
}

async fn a_key_sends_once(place: Place) {
    place.fake("a", &["plain"]).await;
    let keyed = Manner { key: Some("k1".to_owned()), ..Manner::default() };
    let first = place.send_so("a", "once", keyed.clone()).await;
    let second = place.send_so("a", "once", keyed).await;
    confirmed(&first);
    assert_eq!(first, second);
    assert_eq!(place.got("a"), ["once"]);
    assert_eq!(place.engine.session("a").await.unwrap().messages().await.unwrap(), [first]);
    place.end().await;
}

async fn a_message_is_taken_back_before_it_is_typed(place: Place) {
    place.fake("a", &["plain", "--work", "60000"]).await;
    confirmed(&place.send("a", "long work").await);
    place.state("a", State::Working).await;
    let waits = place.engine.session("a").await.unwrap().send("never mind", Manner::default()).await.unwrap();
    let receipt = place.engine.session_of_message(&waits.id).await.unwrap().cancel(&waits.id).await.unwrap();
    assert_eq!((receipt.status, receipt.code), (Progress::Cancelled, Some(Code::Cancelled)));
    place.engine.session("a").await.unwrap().interrupt(TEST_TIMEOUT).await.unwrap();
    confirmed(&place.send("a", "next").await);
    assert_eq!(place.got("a"), ["long work", "next"]);
    place.end().await;
}

async fn messages_of_a_session_that_ends_are_told(place: Place) {
    place.fake("a", &["plain", "--work", "60000"]).await;
    confirmed(&place.send("a", "long work").await);
    let waits = place.engine.session("a").await.unwrap().send("never", Manner::default()).await.unwrap();
    place.engine.session("a").await.unwrap().kill("the test").await.unwrap();
    let receipt = place.receipt(&waits.id).await;
    assert_eq!((receipt.status, receipt.code), (Progress::Refused, Some(Code::Ended)), "{receipt:#?}");
    place.end().await;
}
