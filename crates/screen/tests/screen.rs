//! What stands on the screen.

use wharf_model::Size;
use wharf_screen::{Format, Mouse, MouseEncoding, Screen, What};
use wharf_sequences::Queries;

fn sized(cols: u16, rows: u16, output: &str) -> Screen {
    let mut screen = Screen::new(Size { cols, rows }, 100);
    let _ = screen.feed(output.as_bytes());
    screen
}

fn plain(screen: &Screen, what: What) -> String {
    screen.capture(what, Format::Plain)
}

/// Rectangles that are erased by protection or change their looks, and boxes and columns that are not on the screen: nothing
/// of them is done, and nothing of them is printed.
#[test]
fn what_is_not_done_leaves_the_screen_alone() {
    let mut plain = Screen::new(Size { cols: 20, rows: 6 }, 10);
    let _ = plain.feed(b"one\r\ntwo\r\nthree");
    for sequence in [
        "\x1b[3;5;1;1;1;2;2;1$v",
        "\x1b[1;1;3;5;1;7;1;1$v",
        "\x1b[88;3;5;1;1$x",
        "\x1b[7;1;1;3;5$x",
        "\x1b[173;1;1;3;5$x",
        "\x1b[3;5;1;1$z",
        "\x1b[1;1;3;5${",
        "\x1b[1;1;3;5;1;4$r",
        "\x1b[1;1;3;5;1;4$t",
        "\x1b[2*x",
        "\x1b[1;1;1;1;3;5*y",
        "\x1b[99999;99999;99999;99999$x",
        "\x1b[88;99999;99999;99999;99999$x",
        "\x1b[99999;99999;99999;99999$z",
        "\x1b[?69h\x1b[?69l",
        "\x1b[?69h\x1b[5;5s\x1b[30s\x1b[9;2s\x1b[?69l",
        "\x1b[1;1;1;1'w",
    ] {
        let mut screen = Screen::new(Size { cols: 20, rows: 6 }, 10);
        let heard = screen.feed(format!("one\r\ntwo\r\nth{sequence}ree").as_bytes());
        assert!(heard.replies.is_empty(), "{sequence:?}");
        let seen = |screen: &Screen| (screen.rows(), screen.modes().cursor, screen.repaint());
        assert_eq!(seen(&screen), seen(&plain), "{sequence:?}");
    }
}

#[test]
fn text_wraps_and_is_joined_again() {
    let screen = sized(5, 3, "hello world\r\nend");
    assert_eq!(screen.rows(), [" worl", "d", "end"]);
    assert_eq!(screen.all(), ["hello world", "end"]);
    assert_eq!(screen.lines(1), ["end"]);
    let rows: Vec<_> = screen.visible().into_iter().map(|row| (row.text, row.wrapped)).collect();
    assert_eq!(rows, [(" worl".into(), true), ("d".into(), false), ("end".into(), false)]);
    assert_eq!(plain(&screen, What::All), "hello world\nend\n");
    assert_eq!(plain(&screen, What::Last(1)), "end\n");
    assert_eq!(plain(&screen, What::Screen), " worl\nd\nend\n");
}

#[test]
fn characters_of_every_width() {
    let text = "漢字 👨\u{200d}👩\u{200d}👧 ❤\u{fe0f} e\u{301} ┌─┐";
    assert_eq!(sized(40, 2, text).rows()[0], text);
    // A wide character that does not fit leaves a gap that is no space.
    let screen = sized(5, 3, "abcd漢x");
    assert_eq!(screen.rows(), ["abcd", "漢x", ""]);
    assert_eq!(screen.all(), ["abcd漢x"]);
    // Half of one is gone, so all of it is.
    assert_eq!(sized(10, 1, "漢字\x1b[2Gx").rows(), [" x字"]);
    assert_eq!(sized(10, 1, "漢字\x1b[1G\x1b[P").rows(), [" 字"]);
    assert_eq!(sized(10, 1, "漢字\x1b[3G\x1b[K").rows(), ["漢"]);
    assert_eq!(sized(10, 1, "漢字\x1b[4G\x1b[K").rows(), ["漢"]);
}

#[test]
fn broken_output_is_shown_as_such() {
    let mut screen = Screen::new(Size { cols: 20, rows: 2 }, 10);
    let _ = screen.feed(b"a\xffb\xe2\x82c\x00\x80\xc2\x9bd\x7fe\xed\xa0\x80");
    assert_eq!(screen.rows()[0], "a\u{fffd}b\u{fffd}cde\u{fffd}\u{fffd}");
}

#[test]
fn the_alternate_screen_is_kept_apart() {
    let mut screen = sized(10, 2, "one\r\ntwo\r\nthree\x1b[?1049h\x1b[Hvim");
    assert_eq!(screen.rows(), ["vim", ""]);
    assert_eq!(screen.all(), ["one", "two", "three"]);
    assert_eq!(plain(&screen, What::All), "one\ntwo\nthree\n── alternate screen ──\nvim\n");
    assert_eq!(plain(&screen, What::Last(1)), "vim\n");
    let json: serde_json::Value = serde_json::from_str(&screen.capture(What::All, Format::Json)).unwrap();
    assert_eq!(json["lines"][3]["marker"], true);
    let _ = screen.feed(b"\r\n1\r\n2\r\n3\r\n4");
    screen.resize(Size { cols: 20, rows: 3 });
    screen.resize(Size { cols: 4, rows: 2 });
    let _ = screen.feed(b"\x1b[?1049l");
    assert_eq!(screen.all(), ["one", "two", "three"], "nothing of the other has come in");
    let _ = screen.feed(b"!\x1b[?1049h");
    assert_eq!(screen.rows(), ["", ""], "and it begins empty");
}

#[test]
fn modes_follow_the_program() {
    let mut screen = sized(
        10,
        4,
        "\x1b[?2004;1;1004;1006h\x1b[?1002h\x1b=\x1b[?25l\x1b[>1u\x1b[>4;1m\x1b[?2026h\x1b[3;4H",
    );
    let modes = screen.modes();
    assert!(modes.bracketed_paste && modes.application_cursor && modes.application_keypad && modes.focus);
    assert!(modes.synchronized && modes.wrap && !modes.cursor_visible && !modes.alternate);
    assert_eq!((modes.mouse, modes.mouse_encoding), (Mouse::Drag, MouseEncoding::Sgr));
    assert_eq!((modes.kitty, modes.modify_other_keys, modes.cursor), (1, 1, (2, 3)));
    let _ = screen.feed(b"\x1b[?1049h\x1b[?1002l\x1b[?9h\x1b[?1016h\x1b[?2026l");
    let modes = screen.modes();
    assert!(modes.alternate && !modes.synchronized);
    assert_eq!((modes.mouse, modes.mouse_encoding, modes.kitty), (Mouse::Press, MouseEncoding::Pixels, 0));
    let _ = screen.feed(b"\x1bc");
    assert_eq!(screen.modes(), Screen::new(screen.size(), 0).modes());
}

#[test]
fn a_page_holds_nothing_that_runs() {
    let screen = sized(
        60,
        4,
        "<script>&\"'\x1b[1;31mred\x1b[m\x1b]8;;javascript:alert(1)\x07bad\x1b]8;;\x07 \x1b]8;;https://a.b/?\"><x\x07good\x1b]8;;\x07\r\n\x1b[7minverse",
    );
    let html = screen.capture(What::Screen, Format::Html);
    assert!(html.contains("&lt;script&gt;&amp;&quot;&#39;"), "{html}");
    assert!(html.contains("<span style=\"color:#cd0000;font-weight:bold;\">red</span>bad "), "{html}");
    assert!(html.contains("href=\"https://a.b/?&quot;&gt;&lt;x\">good</a>"), "{html}");
    assert!(html.contains("<span style=\"color:#000000;background:#e5e5e5;\">inverse</span>"), "{html}");
    assert!(!html.contains("javascript") && !html.contains("<script"), "{html}");
}

#[test]
fn colours_are_captured() {
    let output = "plain \x1b[1;32mbold green\x1b[m \x1b[48;5;17mdeep\x1b[m\x1b[K\r\n\x1b]8;;https://a.b\x07link\x1b]8;;\x07";
    let screen = sized(40, 3, output);
    let ansi = screen.capture(What::Screen, Format::Ansi);
    assert_eq!(
        ansi,
        "plain \x1b[0;1;32mbold green\x1b[0m \x1b[0;48;5;17mdeep\x1b[0m\n\x1b]8;;https://a.b\x1b\\link\x1b]8;;\x1b\\\n"
    );
    let json: serde_json::Value = serde_json::from_str(&screen.capture(What::Screen, Format::Json)).unwrap();
    let runs = &json["lines"][0]["runs"];
    assert_eq!(runs[1], serde_json::json!({"text": "bold green", "fg": "green", "bold": true}));
    assert_eq!(runs[3], serde_json::json!({"text": "deep", "bg": "#00005f"}));
    assert_eq!(json["lines"][1]["runs"][0]["link"], "https://a.b");
    assert_eq!(json["size"], serde_json::json!({"cols": 40, "rows": 3}));
    assert_eq!(json["modes"]["cursor"], serde_json::json!([1, 4]));
}

#[test]
fn the_cursor_keeps_its_place_in_the_text() {
    let mut screen = sized(20, 6, "first\r\nsecond line of text\r\nthird\r\n\r\nfifth\x1b[2;8H");
    for (cols, rows) in [(10, 6), (40, 6), (6, 4), (20, 3), (20, 6)] {
        screen.resize(Size { cols, rows });
        let (row, col) = screen.modes().cursor;
        let text: String = screen.rows()[usize::from(row)].chars().skip(col.into()).collect();
        assert!(
            "line of text".starts_with(text.trim_end()),
            "{cols}×{rows}: {text:?} in {:?}",
            screen.rows()
        );
    }
    assert_eq!(screen.all(), ["first", "second line of text", "third", "", "fifth"]);
}

#[test]
fn any_size_is_borne() {
    for (cols, rows) in [(0, 0), (1, 1), (1, 100), (65535, 65535), (65535, 1), (1, 65535), (80, 24)] {
        let mut screen = sized(cols, rows, "hello 漢字\r\n\x1b[999;999Hx\x1b[65535S\x1b[65535b");
        screen.resize(Size { cols: rows, rows: cols });
        let _ = screen.feed("again 漢字".as_bytes());
        assert!(!plain(&screen, What::All).is_empty());
        assert_eq!(screen.size(), Size { cols: rows, rows: cols });
    }
}

#[test]
fn hostile_output_costs_bounded_memory_and_time() {
    let mut screen = Screen::new(Size { cols: 80, rows: 24 }, 1000);
    // A million parameters; strings without an end; marks upon marks; titles and keyboards pushed for ever.
    let _ = screen.feed(&[b"\x1b[".as_slice(), &b"1;".repeat(1 << 20), b"m"].concat());
    let _ = screen.feed(&[b"\x1b]2;".as_slice(), &b"x".repeat(4 << 20), b"\x1b\\"].concat());
    let _ = screen.feed(&[b"\x1bPq".as_slice(), &b"#".repeat(4 << 20), b"\x1b\\"].concat());
    let _ = screen.feed(&[b"e".as_slice(), &"\u{301}".repeat(1 << 20).into_bytes()].concat());
    let _ = screen.feed(&b"\x1b[22t\x1b[>1u\x1b7\x1b]133;A\x07".repeat(10_000));
    let _ = screen.feed(&b"\x1b[3g\x1b[65535Z\x1b[65535I".repeat(10_000));
    let _ = screen.feed(b"\x1b[m");
    assert_eq!(screen.rows()[0].chars().count(), 33, "a letter and as many marks as a cell holds");
    assert_eq!(screen.title(), "");
    assert!(screen.checkpoint().len() < 64 << 10, "{}", screen.checkpoint().len());
}

#[test]
fn a_foreign_checkpoint_is_none() {
    let good = sized(10, 2, "hello").checkpoint();
    assert!(Screen::restore(&good).is_some());
    assert!(Screen::restore(b"").is_none());
    assert!(Screen::restore(b"wharf-screen 9\n{}\n").is_none());
    for cut in 0..good.len().min(40) {
        let _ = Screen::restore(&good[..cut]);
    }
}

#[test]
fn only_what_changed_is_told() {
    let mut screen = sized(10, 3, "a\r\nb\r\nc");
    let first = screen.since("");
    assert!(first.whole);
    assert_eq!(first.rows, [(0, "a".into()), (1, "b".into()), (2, "c".into())]);
    assert_eq!(screen.since(&first.cursor).rows, []);
    let _ = screen.feed(b"\x1b[2;1HB");
    let second = screen.since(&first.cursor);
    assert_eq!((second.rows, second.whole), (vec![(1, "B".to_owned())], false));
    assert_eq!(screen.since(&first.cursor).rows, [(1, "B".into())], "an older cursor still works");
    let _ = screen.feed(b"\x1b[3;1H\r\nd\r\ne");
    let third = screen.since(&second.cursor);
    assert_eq!(third.scrolled, ["a", "B"]);
    assert_eq!(third.rows, [(0, "c".into()), (1, "d".into()), (2, "e".into())]);
    for foreign in ["x", "1-2-3-4", &third.cursor[1..], "----"] {
        assert!(screen.since(foreign).whole, "{foreign}");
    }
    screen.resize(Size { cols: 12, rows: 3 });
    assert!(screen.since(&third.cursor).whole, "rows are others now");
    let other = sized(10, 3, "a").since(&third.cursor);
    assert!(other.whole, "another screen's cursor");
}

#[test]
fn clearing_an_empty_screen_leaves_no_lines_behind() {
    let screen = sized(10, 3, "\x1b[2J\x1b[2J\x1b[Htext\x1b[2J\x1b[H\x1b[2J");
    assert_eq!(screen.all(), ["text"]);
    assert_eq!(sized(10, 3, "one\r\ntwo\x1b[1J").rows(), ["", "", ""]);
}

#[test]
fn a_repaint_goes_on_where_output_stopped() {
    let mut screen = sized(20, 3, "text\x1b[3");
    let repaint = screen.repaint();
    let mut other = Screen::new(screen.size(), 100);
    for screen in [&mut screen, &mut other] {
        if screen.rows()[0].is_empty() {
            let _ = screen.feed(&repaint);
        }
        let _ = screen.feed(b"1mred");
    }
    assert_eq!(other.capture(What::All, Format::Ansi), screen.capture(What::All, Format::Ansi));
    assert_eq!(screen.repaint_last(0), other.repaint_last(0));
}

#[test]
fn a_screen_may_live_in_any_task() {
    fn sent<T: Send>(_: &T) {}
    sent(&sized(10, 3, ""));
}

#[test]
fn scrollback_full_of_questions_is_repainted_without_one() {
    let questions = "\x1b[c\x1b[6n\x1b]11;?\x07\x1b[?u\x1bP$qm\x1b\\\x1b]7501;?\x07\x1b[>q$ ls\r\n";
    let screen = sized(40, 5, &questions.repeat(80));
    for repaint in [screen.repaint(), screen.repaint_last(10)] {
        assert!(!Queries::new().scan(&repaint));
        let mut painted = Screen::new(screen.size(), 100);
        assert!(painted.feed(&repaint).replies.is_empty());
        assert_eq!(painted.rows(), screen.rows());
    }
}

#[test]
fn a_soft_reset_leaves_the_cursor_where_it_is() {
    let mut screen = sized(20, 5, "one\r\n\x1b[2;4r\x1b[3;7Hmid\x1b[?6h\x1b[2;5H\x1b[!p");
    assert_eq!(screen.modes().cursor, (2, 4), "row 3 is the second of the margins");
    let _ = screen.feed(b"x\x1b[5;1Hlast\x1b8home");
    assert_eq!(screen.rows(), ["home", "", "    x mid", "", "last"], "margins and the saved cursor are gone");
}

#[test]
fn what_the_alternate_screen_saved_is_there_at_the_next_visit() {
    let visits = |text: &str| {
        let mut screen = sized(20, 5, "shell\x1b[?1049h\x1b[3;7H\x1b7\x1b[H\x1b[?1049l");
        let _ = screen.feed(text.as_bytes());
        screen
    };
    assert_eq!(visits("\x1b[?1049h\x1b8").modes().cursor, (2, 6));
    assert_eq!(visits("\x1b[H\x1b8").modes().cursor, (0, 5), "the primary screen has its own");
    // A checkpoint keeps it.
    let mut kept = Screen::restore(&visits("").checkpoint()).unwrap();
    let _ = kept.feed(b"\x1b[?1049h\x1b8");
    assert_eq!(kept.modes().cursor, (2, 6));
    // A smaller screen has no such place.
    let mut small = visits("");
    small.resize(Size { cols: 4, rows: 2 });
    let _ = small.feed(b"\x1b[?1049h\x1b8");
    assert_eq!(small.modes().cursor, (1, 3));
    assert_eq!(visits("\x1bc\x1b[?1049h\x1b8").modes().cursor, (0, 0), "a full reset forgets it");
}

#[test]
fn a_pattern_for_adjusting_fills_the_screen_and_takes_margins_away() {
    let mut screen = sized(4, 3, "\x1b[2;3r\x1b[?6h\x1b[2;2H\x1b#8");
    assert_eq!((screen.rows(), screen.modes().cursor), (vec!["EEEE".to_owned(); 3], (0, 0)));
    let _ = screen.feed(b"\x1b[3;1H\n");
    assert_eq!(screen.rows(), ["EEEE", "EEEE", ""], "all of it scrolls");
}

#[test]
fn a_step_back_over_the_edge_goes_to_the_row_that_ran_on() {
    let typed = "\x1b[?45habcdefg\x08\x08\x08\x08x";
    assert_eq!(sized(5, 3, typed).rows(), ["abcxe", "fg", ""]);
    assert_eq!(sized(5, 3, &typed.replace("45h", "45l")).rows(), ["abcde", "xg", ""]);
    assert_eq!(
        sized(5, 3, "\x1b[?45hone\r\n\x08x").rows(),
        ["one", "x", ""],
        "the row above ended by itself"
    );
    // Behind the last column it goes back onto it; a step of several columns goes the same way.
    assert_eq!(sized(5, 3, "\x1b[?45habcde\x08X").rows(), ["abcdX", "", ""]);
    assert_eq!(sized(5, 3, &typed.replace("\x08\x08\x08\x08", "\x1b[4D")).rows(), ["abcxe", "fg", ""]);
    assert_eq!(sized(5, 3, "\x1b[?45habcdefg\x1b[9999Dx").rows(), ["xbcde", "fg", ""]);
}

#[test]
fn a_cursor_saved_where_a_wide_character_left_a_gap_is_kept_and_so_is_the_gap() {
    let output =
        "aa a aaaaaa a aaa aaa a a  a a  \té\x1b7a        \n👨\u{200d}👩\u{200d}👧👨\u{200d}👩\u{200d}👧    ";
    let screen = sized(12, 5, output);
    let again = Screen::restore(&screen.checkpoint()).expect("a checkpoint");
    assert_eq!(again.visible(), screen.visible());
}
