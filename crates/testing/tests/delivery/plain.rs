//! Tests delivery to an agent that behaves: whole, once, and without control bytes.

use wharf_model::{Code, Manner, Progress, State};

use crate::ground::everywhere;
use crate::place::{Place, confirmed};

everywhere! {
    messages_arrive_whole_and_once
    a_message_sent_before_it_is_ready_waits
    control_bytes_never_reach_the_terminal
    text_may_be_left_in_the_composer
    a_draft_in_the_composer_is_deleted_first_where_the_sender_says_so
    states_follow_the_agent
}

async fn messages_arrive_whole_and_once(place: Place) {
    place.fake("a", &["plain", "--work", "50"]).await;
    let long_lines: Vec<String> = (0..200).map(|n| format!("line {n} with some words in it")).collect();
    let texts = [
        "one line".to_owned(),
        "two\nlines".to_owned(),
        "x".repeat(2_000),
        "$(touch /tmp/no) `id` \"quoted\" 'single' \\ ; & | > <".to_owned(),
        "ünïcödé 漢字 👩‍👩‍👧‍👦 e\u{301} \u{202e}rtl".to_owned(),
        "a\ttab and trailing spaces  ".to_owned(),
        "word ".repeat(4_000),
        long_lines.join("\n"),
    ];
    for text in &texts {
        confirmed(&place.send("a", text).await);
    }
    assert_eq!(place.got("a"), texts);
    place.end().await;
}

async fn a_message_sent_before_it_is_ready_waits(place: Place) {
    place.fake("a", &["slow-start", "--delay", "1500"]).await;
    confirmed(&place.send("a", "early").await);
    assert_eq!(place.got("a"), ["early"]);
    place.end().await;
}

async fn control_bytes_never_reach_the_terminal(place: Place) {
    place.fake("a", &["plain"]).await;
    let receipt = place.send("a", "before\u{1b}[201~\u{3}\u{4}after\r\nnext").await;
    confirmed(&receipt);
    assert_eq!(place.got("a"), ["before[201~after\nnext"]);
    assert!(receipt.steps.iter().any(|step| step.evidence.contains("control characters")), "{receipt:#?}");
    place.end().await;
}

async fn text_may_be_left_in_the_composer(place: Place) {
    place.fake("a", &["plain"]).await;
    let draft = Manner { no_submit: true, ..Manner::default() };
    confirmed(&place.send_so("a", "half a thought", draft).await);
    assert_eq!(place.got("a"), [""; 0]);
    // A draft is somebody's: a message does not join it.
    let late = Manner { expires: Some(soon(700)), ..Manner::default() };
    let receipt = place.send_so("a", "another", late).await;
    assert_eq!((receipt.status, receipt.code), (Progress::Expired, Some(Code::Expired)), "{receipt:#?}");
    place.engine.session("a").await.unwrap().press(&["Enter".to_owned()]).await.unwrap();
    confirmed(&place.send("a", "next").await);
    assert_eq!(place.got("a"), ["half a thought", "next"]);
    place.end().await;
}

async fn a_draft_in_the_composer_is_deleted_first_where_the_sender_says_so(place: Place) {
    place.fake("a", &["plain"]).await;
    let draft = Manner { no_submit: true, ..Manner::default() };
    confirmed(&place.send_so("a", "half a thought", draft).await);
    let clear = Manner { clear_draft: true, ..Manner::default() };
    confirmed(&place.send_so("a", "a whole one", clear).await);
    assert_eq!(place.got("a"), ["a whole one"], "the draft was joined, or submitted");
    place.end().await;
}

async fn states_follow_the_agent(place: Place) {
    place.fake("a", &["plain", "--work", "1500"]).await;
    place.state("a", State::Idle).await;
    confirmed(&place.send("a", "work").await);
    place.state("a", State::Working).await;
    place.state("a", State::Idle).await;
    let mut events = place.engine.session("a").await.unwrap().events(0).await.unwrap();
    let mut states = Vec::new();
    while let Some(event) = events.next(false).await.unwrap() {
        if event.kind == "state" {
            states.push(event.data["state"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(states, ["idle", "working", "idle"]);
    place.end().await;
}

pub(crate) fn soon(millis: u64) -> wharf_model::Millis {
    let now = wharf_model::Millis::from(std::time::SystemTime::now());
    wharf_model::Millis(now.0 + millis)
}
