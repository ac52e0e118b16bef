//! Tests delivery to agents that misbehave: lost keys, floods, slow reads, silence.

use wharf_model::{Code, Progress};

use crate::ground::everywhere;
use crate::place::{Place, confirmed};

everywhere! {
    an_enter_that_is_swallowed_after_a_paste
    a_first_enter_that_is_dropped
    raw_mode_without_bracketed_paste
    a_full_screen_program
    a_flood_in_every_turn
    a_paste_that_is_shown_as_a_mark
    a_program_that_reads_slowly
    line_mode_takes_lines_and_nothing_longer
    programs_that_no_profile_knows
    silence_is_not_taken_for_consent
    a_program_that_dies_after_reading
    a_program_that_asks_its_terminal_first
    plain_programs_take_messages_too
}

async fn takes(place: Place, words: &[&str], texts: &[&str]) {
    place.fake("a", words).await;
    for text in texts {
        confirmed(&place.send("a", text).await);
    }
    assert_eq!(place.got("a"), texts);
    place.end().await;
}

async fn an_enter_that_is_swallowed_after_a_paste(place: Place) {
    takes(place, &["swallow"], &["one", "two\nlines", &"long ".repeat(500)]).await;
}

async fn a_first_enter_that_is_dropped(place: Place) {
    place.fake("a", &["swallow-first-enter"]).await;
    let receipt = place.send("a", "hello").await;
    confirmed(&receipt);
    assert_eq!(receipt.attempts, 2);
    assert_eq!(place.got("a"), ["hello"]);
    place.end().await;
}

async fn raw_mode_without_bracketed_paste(place: Place) {
    takes(place, &["no-paste"], &["one line", "two\nlines"]).await;
}

async fn a_full_screen_program(place: Place) {
    takes(place, &["full-screen"], &["one", "two\nlines"]).await;
}

async fn a_flood_in_every_turn(place: Place) {
    takes(place, &["flood", "--flood", "3000000"], &["one", "two"]).await;
}

async fn a_paste_that_is_shown_as_a_mark(place: Place) {
    takes(place, &["collapse"], &["line\n".repeat(50).trim_end(), "short"]).await;
}

async fn a_program_that_reads_slowly(place: Place) {
    takes(place, &["slow-reader"], &["slow ".repeat(4_000).trim_end()]).await;
}

async fn line_mode_takes_lines_and_nothing_longer(place: Place) {
    place.stranger("a", &["cooked"]).await;
    confirmed(&place.send("a", "a line").await);
    let receipt = place.send("a", &"x".repeat(5_000)).await;
    assert_eq!((receipt.status, receipt.code), (Progress::Refused, Some(Code::Refused)), "{receipt:#?}");
    confirmed(&place.send("a", "another").await);
    assert_eq!(place.got("a"), ["a line", "another"]);
    place.end().await;
}

async fn programs_that_no_profile_knows(place: Place) {
    for mode in ["plain", "swallow", "full-screen", "no-paste"] {
        place.stranger(mode, &[mode]).await;
        confirmed(&place.send(mode, "hello there").await);
        assert_eq!(place.got(mode), ["hello there"], "{mode}");
    }
    let receipt = place.send("no-paste", "two\nlines").await;
    assert_eq!((receipt.status, receipt.code), (Progress::Refused, Some(Code::Refused)), "{receipt:#?}");
    place.stranger("silent", &["silent"]).await;
    let receipt = place.send("silent", "anyone?").await;
    assert_eq!(
        (receipt.status, receipt.code),
        (Progress::Unconfirmed, Some(Code::Unconfirmed)),
        "{receipt:#?}"
    );
    assert_eq!(place.got("silent"), ["anyone?"]);
    place.end().await;
}

async fn silence_is_not_taken_for_consent(place: Place) {
    place.fake("a", &["silent"]).await;
    let manner = wharf_model::Manner { expires: Some(crate::plain::soon(3_000)), ..Default::default() };
    let receipt = place.send_so("a", "anyone?", manner).await;
    // Its profile knows it by its composer, and it draws none: it never becomes ready.
    assert_eq!(receipt.status, Progress::Expired, "{receipt:#?}");
    place.end().await;
}

async fn a_program_that_dies_after_reading(place: Place) {
    place.fake("a", &["dies"]).await;
    let receipt = place.send("a", "last words").await;
    assert_eq!(
        (receipt.status, receipt.code),
        (Progress::Unconfirmed, Some(Code::Unconfirmed)),
        "{receipt:#?}"
    );
    let after = place
        .engine
        .session("a")
        .await
        .unwrap()
        .send("more", wharf_model::Manner::default())
        .await
        .unwrap_err();
    assert_eq!(after.code, Code::Ended);
    place.end().await;
}

async fn a_program_that_asks_its_terminal_first(place: Place) {
    takes(place, &["queries"], &["hello"]).await;
}

async fn plain_programs_take_messages_too(place: Place) {
    place.start("cat", &["cat"]).await;
    confirmed(&place.send("cat", "meow").await);
    place.start("sh", &["sh", "-i"]).await;
    confirmed(&place.send("sh", "echo from-$((40+2))").await);
    let until = wharf_model::Until::Match("^from-42".to_owned());
    place.engine.session("sh").await.unwrap().until(until, Some(crate::place::TEST_TIMEOUT)).await.unwrap();
    place.start("bash", &["bash", "--norc"]).await;
    confirmed(&place.send("bash", "echo from-$((41+2))").await);
    let until = wharf_model::Until::Match("^from-43".to_owned());
    place.engine.session("bash").await.unwrap().until(until, Some(crate::place::TEST_TIMEOUT)).await.unwrap();
    place.end().await;
}
