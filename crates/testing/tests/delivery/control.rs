//! Tests questions, approvals and interrupts while messages wait.

use wharf_engine::Answer;
use wharf_model::{Code, Manner, Progress, State, When};

use crate::ground::everywhere;
use crate::place::{Place, TEST_TIMEOUT, confirmed};

everywhere! {
    nothing_is_typed_at_a_question
    a_question_is_approved_once
    a_question_between_a_paste_and_its_key_is_answered_first
    a_turn_is_stopped_and_seen_to_stop
    a_message_may_stop_the_turn_first
}

async fn nothing_is_typed_at_a_question(place: Place) {
    place.fake("a", &["menu"]).await;
    confirmed(&place.send("a", "do it").await);
    place.state("a", State::Asking).await;
    let now = Manner { when: When::Now, ..Manner::default() };
    let receipt = place.send_so("a", "yes", now).await;
    assert_eq!((receipt.status, receipt.code), (Progress::Refused, Some(Code::Asking)), "{receipt:#?}");
    let late = Manner { expires: Some(crate::plain::soon(800)), ..Manner::default() };
    assert_eq!(place.send_so("a", "1", late).await.status, Progress::Expired);
    // A message that waits is typed once the question is answered.
    let waits = place.engine.session("a").await.unwrap().send("later", Manner::default()).await.unwrap();
    let answered = place.engine.session("a").await.unwrap().answer(Answer::Deny, TEST_TIMEOUT).await.unwrap();
    assert_eq!(
        (answered.choice.as_str(), answered.question.title.as_str()),
        ("No", "Do you want to proceed?")
    );
    let receipt = place.receipt(&waits.id).await;
    confirmed(&receipt);
    assert_eq!(place.got("a"), ["do it", "later"]);
    // The one key is the answer's own.
    assert_eq!(place.happened("a"), ["typed at the menu", "denied"]);
    place.end().await;
}

async fn a_question_is_approved_once(place: Place) {
    place.fake("a", &["menu"]).await;
    place.state("a", State::Idle).await;
    let nothing = place
        .engine
        .session("a")
        .await
        .unwrap()
        .answer(Answer::Approve(None), TEST_TIMEOUT)
        .await
        .unwrap_err();
    assert_eq!(nothing.code, Code::NotAsking);
    confirmed(&place.send("a", "do it").await);
    place.state("a", State::Asking).await;
    let answered =
        place.engine.session("a").await.unwrap().answer(Answer::Approve(None), TEST_TIMEOUT).await.unwrap();
    assert_eq!(answered.choice, "Yes");
    place.until_happened("a", "granted").await;
    place.state("a", State::Idle).await;
    assert_eq!(place.happened("a"), ["typed at the menu", "granted"]);
    place.end().await;
}

async fn a_question_between_a_paste_and_its_key_is_answered_first(place: Place) {
    place.fake("a", &["asks-at-paste"]).await;
    place.state("a", State::Idle).await;
    let sent = place.engine.session("a").await.unwrap().send("do it", Manner::default()).await.unwrap();
    place.state("a", State::Asking).await;
    let session = place.engine.session("a").await.unwrap();
    let answer = session.answer(Answer::Approve(None), TEST_TIMEOUT);
    let answered =
        tokio::time::timeout(TEST_TIMEOUT, answer).await.expect("the answer is not kept waiting").unwrap();
    assert_eq!(answered.choice, "Yes");
    let receipt = place.receipt(&sent.id).await;
    confirmed(&receipt);
    assert_eq!(place.got("a"), ["do it"]);
    place.end().await;
}

async fn a_turn_is_stopped_and_seen_to_stop(place: Place) {
    place.fake("a", &["plain", "--work", "60000"]).await;
    confirmed(&place.send("a", "work for a minute").await);
    place.state("a", State::Working).await;
    let stopped = place.engine.session("a").await.unwrap().interrupt(TEST_TIMEOUT).await.unwrap();
    assert_eq!(stopped.report.state, State::Idle);
    assert!(!stopped.keys.is_empty() && stopped.reason.ends_with("stopped its turn"), "{stopped:?}");
    place.until_happened("a", "interrupt").await;
    // Nothing to stop is no fault.
    let rested = place.engine.session("a").await.unwrap().interrupt(TEST_TIMEOUT).await.unwrap();
    assert_eq!(rested.report.state, State::Idle);
    assert!(rested.keys.is_empty(), "{rested:?}");
    assert_eq!(rested.reason, "it is idle, and has no turn to stop");
    place.end().await;
}

async fn a_message_may_stop_the_turn_first(place: Place) {
    place.fake("a", &["plain", "--work", "60000"]).await;
    confirmed(&place.send("a", "work for a minute").await);
    place.state("a", State::Working).await;
    let manner = Manner { interrupt: true, ..Manner::default() };
    confirmed(&place.send_so("a", "something else", manner).await);
    assert_eq!(place.got("a"), ["work for a minute", "something else"]);
    place.end().await;
}
