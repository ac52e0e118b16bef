use wharf_model::{Code, Progress};

use crate::place::{Place, confirmed};

async fn takes(words: &[&str], texts: &[&str]) {
    let place = Place::new().await;
    place.fake("a", words).await;
    for text in texts {
        confirmed(&place.send("a", text).await);
    }
    assert_eq!(place.got("a"), texts);
    place.end().await;
}

#[tokio::test]
async fn an_enter_that_is_swallowed_after_a_paste() {
    takes(&["swallow"], &["one", "two\nlines", &"long ".repeat(500)]).await;
}

#[tokio::test]
async fn a_first_enter_that_is_dropped() {
    let place = Place::new().await;
    place.fake("a", &["swallow-first-enter"]).await;
    let receipt = place.send("a", "hello").await;
    confirmed(&receipt);
    assert_eq!(receipt.attempts, 2);
    assert_eq!(place.got("a"), ["hello"]);
    place.end().await;
}

#[tokio::test]
async fn raw_mode_without_bracketed_paste() {
    takes(&["no-paste"], &["one line", "two\nlines"]).await;
}

#[tokio::test]
async fn a_full_screen_program() {
    takes(&["full-screen"], &["one", "two\nlines"]).await;
}

#[tokio::test]
async fn a_flood_in_every_turn() {
    takes(&["flood", "--flood", "3000000"], &["one", "two"]).await;
}

#[tokio::test]
async fn a_paste_that_is_shown_as_a_mark() {
    takes(&["collapse"], &["line\n".repeat(50).trim_end(), "short"]).await;
}

#[tokio::test]
async fn a_program_that_reads_slowly() {
    takes(&["slow-reader"], &["slow ".repeat(4_000).trim_end()]).await;
}

#[tokio::test]
async fn line_mode_takes_lines_and_nothing_longer() {
    let place = Place::new().await;
    place.stranger("a", &["cooked"]).await;
    confirmed(&place.send("a", "a line").await);
    let receipt = place.send("a", &"x".repeat(5_000)).await;
    assert_eq!((receipt.status, receipt.code), (Progress::Refused, Some(Code::Refused)), "{receipt:#?}");
    confirmed(&place.send("a", "another").await);
    assert_eq!(place.got("a"), ["a line", "another"]);
    place.end().await;
}

#[tokio::test]
async fn programs_that_no_profile_knows() {
    let place = Place::new().await;
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

#[tokio::test]
async fn silence_is_not_taken_for_consent() {
    let place = Place::new().await;
    place.fake("a", &["silent"]).await;
    let manner = wharf_model::Manner { expires: Some(crate::plain::soon(3_000)), ..Default::default() };
    let receipt = place.send_so("a", "anyone?", manner).await;
    // Its profile knows it by its composer, and it draws none: it never becomes ready.
    assert_eq!(receipt.status, Progress::Expired, "{receipt:#?}");
    place.end().await;
}

#[tokio::test]
async fn a_program_that_dies_after_reading() {
    let place = Place::new().await;
    place.fake("a", &["dies"]).await;
    let receipt = place.send("a", "last words").await;
    assert_eq!(
        (receipt.status, receipt.code),
        (Progress::Unconfirmed, Some(Code::Unconfirmed)),
        "{receipt:#?}"
    );
    let after = place.engine.send("a", "more".into(), wharf_model::Manner::default()).await.unwrap_err();
    assert_eq!(after.code, Code::Ended);
    place.end().await;
}

#[tokio::test]
async fn a_program_that_asks_its_terminal_first() {
    takes(&["queries"], &["hello"]).await;
}

#[tokio::test]
async fn plain_programs_take_messages_too() {
    let place = Place::new().await;
    place.start("cat", &["cat"]).await;
    confirmed(&place.send("cat", "meow").await);
    place.start("sh", &["sh", "-i"]).await;
    confirmed(&place.send("sh", "echo from-$((40+2))").await);
    let until = wharf_model::Until::Match("^from-42".to_owned());
    place.engine.until("sh", until, Some(crate::place::LONG)).await.unwrap();
    place.start("bash", &["bash", "--norc"]).await;
    confirmed(&place.send("bash", "echo from-$((41+2))").await);
    let until = wharf_model::Until::Match("^from-43".to_owned());
    place.engine.until("bash", until, Some(crate::place::LONG)).await.unwrap();
    place.end().await;
}
