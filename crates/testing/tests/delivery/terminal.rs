//! Tests that terminal queries are answered once, and that changes are small.

use std::time::{Duration, Instant};

use wharf_engine::{Format, What};

use crate::ground::everywhere;
use crate::place::{Place, TEST_TIMEOUT};

everywhere! {
    a_terminal_that_nobody_looks_at_answers_once
    a_flood_full_of_questions_is_answered_within_reason
    what_changed_is_a_few_rows_and_not_a_dump
}

/// A program that asks its terminal where the cursor is and what it is, and keeps all that is typed at it.
const ASKS: &str = "stty raw -echo; printf 'hello \\033[6n\\033[c'; exec cat >> typed";

async fn typed(place: &Place, wanted: usize) -> Vec<u8> {
    let file = place.dir().join("typed");
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let typed = std::fs::read(&file).unwrap_or_default();
        if typed.len() >= wanted || Instant::now() > deadline {
            return typed;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn a_terminal_that_nobody_looks_at_answers_once(mut place: Place) {
    place.start("a", &["sh", "-c", ASKS]).await;
    let answer = typed(&place, 10).await;
    assert!(answer.starts_with(b"\x1b[1;7R\x1b[?"), "{:?}", String::from_utf8_lossy(&answer));
    // Looking, another engine and a rebuilt screen read the same bytes again, and type nothing.
    for _ in 0..3 {
        let screen =
            place.engine.session("a").await.unwrap().capture(What::Screen, Format::Plain).await.unwrap();
        assert!(screen.starts_with("hello"), "{screen:?}");
        place.engine.session("a").await.unwrap().capture(What::All, Format::Plain).await.unwrap();
        place.engine.session("a").await.unwrap().repaint().await.unwrap();
        place.again().await;
    }
    place.engine.session("a").await.unwrap().write(b"end", TEST_TIMEOUT).await.unwrap();
    let all = typed(&place, answer.len() + 3).await;
    assert_eq!(all, [&answer[..], b"end"].concat());
    place.end().await;
}

async fn a_flood_full_of_questions_is_answered_within_reason(place: Place) {
    let flood = "stty raw -echo; i=0; while [ $i -lt 3000 ]; do printf 'text %s \\033[5n\\r\\n' $i; i=$((i+1)); done; exec cat >> typed";
    place.start("a", &["sh", "-c", flood]).await;
    let until = wharf_model::Until::Match("text 2999".to_owned());
    place.engine.session("a").await.unwrap().until(until, Some(TEST_TIMEOUT)).await.unwrap();
    // Each question has one answer at most, and nothing else is typed.
    place.engine.session("a").await.unwrap().write(b"end", TEST_TIMEOUT).await.unwrap();
    let deadline = Instant::now() + TEST_TIMEOUT;
    let all = loop {
        let all = typed(&place, 3).await;
        if all.ends_with(b"end") {
            break all;
        }
        assert!(Instant::now() < deadline, "the end never came");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let answers = all.len().saturating_sub(3) / 4;
    assert_eq!(all, [&b"\x1b[0n".repeat(answers)[..], b"end"].concat());
    assert!(answers <= 3_000, "{answers} answers to 3,000 questions");
    place.end().await;
}

async fn what_changed_is_a_few_rows_and_not_a_dump(place: Place) {
    place
        .start("a", &["sh", "-c", "i=0; while [ $i -lt 20 ]; do echo line $i; i=$((i+1)); done; exec cat"])
        .await;
    let until = wharf_model::Until::Match("line 19".to_owned());
    place.engine.session("a").await.unwrap().until(until, Some(TEST_TIMEOUT)).await.unwrap();
    let first = place.engine.session("a").await.unwrap().screen_since(None).await.unwrap();
    assert!(first.whole && first.rows.len() >= 20, "{first:#?}");
    place.engine.session("a").await.unwrap().write(b"typed\n", TEST_TIMEOUT).await.unwrap();
    let mut rows = Vec::new();
    let mut cursor = first.cursor;
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !rows.iter().any(|text| text == "typed") {
        assert!(Instant::now() < deadline, "{rows:?}");
        let next =
            place.engine.session("a").await.unwrap().screen_change(&cursor, TEST_TIMEOUT).await.unwrap();
        assert!(!next.whole);
        rows.extend(next.rows.into_iter().map(|row| row.text));
        cursor = next.cursor;
    }
    assert!(rows.len() <= 6, "{rows:?}");
    place.end().await;
}
