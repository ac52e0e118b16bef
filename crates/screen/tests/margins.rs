//! Margins at the sides, and boxes of cells.

use wharf_model::Size;
use wharf_screen::{Format, Screen, What};

/// Five rows of five letters, on a screen of eight columns and six rows.
const LETTERS: &str = "abcde\r\nfghij\r\nklmno\r\npqrst\r\nuvwxy";
/// Margins around the middle nine of them.
const MIDDLE: &str = "\x1b[?69h\x1b[2;4s\x1b[2;4r";

fn shown(output: &str) -> Screen {
    let mut screen = Screen::new(Size { cols: 8, rows: 6 }, 100);
    let _ = screen.feed(output.as_bytes());
    screen
}

fn rows(output: &str) -> Vec<String> {
    let mut rows = shown(output).rows();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// The rows after a sequence has acted on the letters.
fn letters(then: &str) -> Vec<String> {
    rows(&format!("{LETTERS}{then}"))
}

fn middle(then: &str) -> Vec<String> {
    letters(&format!("{MIDDLE}{then}"))
}

/// Row and column of the cursor, from 1, with margins at columns 3 and 6.
fn cursor(then: &str) -> (u16, u16) {
    let (row, column) = shown(&format!("\x1b[?69h\x1b[3;6s{then}")).modes().cursor;
    (row + 1, column + 1)
}

#[test]
fn text_wraps_at_the_right_margin() {
    assert_eq!(rows("\x1b[?69h\x1b[3;6s\x1b[1;3Habcdefghij"), ["  abcd", "  efgh", "  ij"]);
    assert_eq!(rows("\x1b[?69h\x1b[2;4sabcdefgh"), ["abcd", " efg", " h"], "from before the left one");
    assert_eq!(rows("\x1b[?69h\x1b[3;5s\x1b[1;6Habcd"), ["     abc", "  d"], "from behind it, at the edge");
    assert_eq!(rows("\x1b[?69h\x1b[3;6s\x1b[?7l\x1b[1;3Habcdefg"), ["  abcg"], "not without wrapping");
    assert_eq!(rows("\x1b[?69h\x1b[3;5s\x1b[1;3H漢字"), ["  漢", "  字"], "a wide one needs two columns");
    assert_eq!(rows("\x1b[?69h\x1b[3;5s\x1b[?7l\x1b[1;3H漢字"), ["  漢"]);
    assert_eq!(
        rows("\x1b[?69h\x1b[3;6s\x1b[1;3Hx\x1b[9b"),
        ["  xxxx", "  xxxx", "  xx"],
        "repeated text too"
    );
    let screen = shown("\x1b[?69h\x1b[3;6s\x1b[1;3Habcdef");
    assert!(screen.visible().iter().all(|row| !row.wrapped), "there may be other text beside");
    assert_eq!(screen.all(), ["  abcd", "  ef"]);
}

#[test]
fn inserted_text_pushes_as_far_as_the_margin() {
    assert_eq!(middle("\x1b[4h\x1b[2;2Hxy")[1], "fxygj");
    assert_eq!(middle("\x1b[4h\x1b[2;5Hx")[1], "fghix", "outside it pushes nothing");
}

#[test]
fn without_the_mode_the_cursor_is_saved() {
    assert_eq!(rows("\x1b[2;3H\x1b[3;6s\x1b[Habcdefgh\x1b[ux"), ["abcdefgh", "  x"]);
    assert_eq!(rows("\x1b[?69h\x1b[3;6s\x1b[?69labcdefgh"), ["abcdefgh"], "margins go with the mode");
    assert_eq!(
        rows("\x1b[?69h\x1b[3;6s\x1b[sabcdefgh"),
        ["abcdefgh"],
        "and are all columns if none is given"
    );
    assert_eq!(cursor("\x1b[2;5H\x1b[?69l"), (2, 5), "the cursor stays");
    assert_eq!(cursor("\x1b[2;5H\x1b[3;6s"), (1, 1), "and goes home with new margins");
    assert_eq!(cursor("\x1b[2;5H\x1b[6;3s\x1b[4;4s"), (2, 5), "which must be two columns apart");
}

#[test]
fn controls_keep_to_the_margins() {
    assert_eq!(cursor("\x1b[2;5H\r"), (2, 3));
    assert_eq!(cursor("\x1b[2;2H\r"), (2, 1), "before the left one, to the edge");
    assert_eq!(cursor("\x1b[2;8H\r"), (2, 3));
    assert_eq!(cursor("\x1b[2;4H\x08\x08\x08"), (2, 3));
    assert_eq!(cursor("\x1b[2;2H\x08\x08"), (2, 1));
    assert_eq!(cursor("\x1b[2;3H\t"), (2, 6));
    assert_eq!(cursor("\x1b[2;7H\t"), (2, 8));
    assert_eq!(cursor("\x1b[3g\x1b[1;5H\x1bH\x1b[2;3H\t"), (2, 5));
    assert_eq!(cursor("\x1b[2;3H\x1b[9I"), (2, 6));
    assert_eq!(cursor("\x1b[2;6H\x1b[9Z"), (2, 1), "backwards they do not count");
    assert_eq!(cursor("\x1b[?6h\x1b[2;4H\x1b[9Z"), (2, 3), "but in origin mode");
    assert_eq!(cursor("\x1b[20h\x1b[2;5H\n"), (3, 3));
    assert_eq!(cursor("\x1b[2;5H\x1bE"), (3, 3));
    assert_eq!(cursor("\x1b[2;5H\x1b[2E"), (4, 3));
    assert_eq!(cursor("\x1b[2;5H\x1b[F"), (1, 3));
}

#[test]
fn a_step_back_goes_to_the_row_that_ran_on_at_the_margin() {
    let typed = "\x1b[?45h\x1b[?69h\x1b[3;6s\x1b[1;3Habcdef\x08\x08\x08\x08x";
    assert_eq!(rows(typed), ["  abxd", "  ef"]);
    assert_eq!(rows(&typed.replace("\x08\x08\x08\x08", "\x1b[4D")), ["  abxd", "  ef"]);
    assert_eq!(rows(&typed.replace("\x1b[?45h", "")), ["  abcd", "  xf"]);
    assert_eq!(rows("\x1b[?45h\x1b[?69h\x1b[3;6s\x1b[1;3Habcd\x08X"), ["  abcX"], "and from behind onto it");
    // What is known of it survives: a checkpoint, and text that moves up.
    let mut screen = shown("\x1b[?45h\x1b[?69h\x1b[3;6s\x1b[6;3Habcdef");
    screen = Screen::restore(&screen.checkpoint()).expect("a checkpoint");
    let _ = screen.feed(b"\x08\x08\x08x");
    assert_eq!(screen.rows()[4..], ["  abcx", "  ef"]);
}

#[test]
fn the_cursor_stops_at_the_margin_that_it_stands_within() {
    assert_eq!(cursor("\x1b[2;4H\x1b[9C"), (2, 6));
    assert_eq!(cursor("\x1b[2;7H\x1b[9C"), (2, 8));
    assert_eq!(cursor("\x1b[2;1H\x1b[9C"), (2, 6));
    assert_eq!(cursor("\x1b[2;5H\x1b[9D"), (2, 3));
    assert_eq!(cursor("\x1b[2;8H\x1b[9D"), (2, 3));
    assert_eq!(cursor("\x1b[2;2H\x1b[9D"), (2, 1));
    assert_eq!(cursor("\x1b[2;4H\x1b[9a"), (2, 8), "HPR knows no margins");
    assert_eq!(cursor("\x1b[2;4H\x1b[8G"), (2, 8));
    assert_eq!(cursor("\x1b[4;5H\x1b[2d"), (2, 5));
}

#[test]
fn in_origin_mode_places_count_from_both_margins() {
    let origin = "\x1b[2;4r\x1b[?6h";
    let at = |then: &str| cursor(&format!("{origin}{then}"));
    assert_eq!(at(""), (2, 3), "home");
    assert_eq!(at("\x1b[2;2H"), (3, 4));
    assert_eq!(at("\x1b[9;9H"), (4, 6));
    assert_eq!(at("\x1b[2;2f\x1b[9G"), (3, 6));
    assert_eq!(at("\x1b[2;2H\x1b[2`"), (3, 4));
    assert_eq!(at("\x1b[2;2H\x1b[3d"), (4, 4));
    assert_eq!(at("\x1b[2;2H\x1b[9a"), (3, 6));
    assert_eq!(at("\x1b[2;2H\x1b[r"), (1, 3), "home again, and all rows");
    assert_eq!(at("\x1b[?6l"), (1, 1));
    assert_eq!(cursor("\x1b[6;8H\x1b7\x1b[?6h\x1b7\x1b[?6l\x1b8"), (1, 3));
    assert_eq!(
        cursor("\x1b[s\x1b[?6h\x1b[6;8H\x1b7\x1b[3;6s\x1b[2;4r\x1b8"),
        (4, 6),
        "put back between them"
    );
}

#[test]
fn text_scrolls_between_the_margins_alone() {
    let up = ["abcde", "flmnj", "kqrso", "p   t", "uvwxy"];
    let down = ["abcde", "f   j", "kghio", "plmnt", "uvwxy"];
    assert_eq!(middle("\x1b[4;3H\n"), up);
    assert_eq!(middle("\x1b[4;3H\x1bD"), up);
    assert_eq!(middle("\x1b[4;3H\x1bE"), up);
    assert_eq!(middle("\x1b[S"), up, "wherever the cursor is");
    assert_eq!(middle("\x1b[2;3H\x1bM"), down);
    assert_eq!(middle("\x1b[T"), down);
    assert_eq!(middle("\x1b[99S"), ["abcde", "f   j", "k   o", "p   t", "uvwxy"]);
    assert_eq!(middle("\x1b[99T"), middle("\x1b[99S"));
    for outside in ["\x1b[4;1H\n", "\x1b[4;5H\x1bD", "\x1b[4;8H\x1bE", "\x1b[2;1H\x1bM", "\x1b[2;5H\x1bM"] {
        assert_eq!(middle(outside), letters(""), "{outside:?}");
    }
    assert_eq!(middle("\x1b[4;4Hzy"), ["abcde", "flmnj", "kqrzo", "py  t", "uvwxy"], "text that wraps too");
    let screen = shown("1\r\n2\r\n3\r\n4\r\n5\r\n6\x1b[?69h\x1b[1;4s\x1b[6;1H\n\n\n");
    assert_eq!(screen.rows(), ["4", "5", "6", "", "", ""]);
    assert_eq!(screen.all(), ["4", "5", "6"], "nothing goes into the scrollback");
}

#[test]
fn lines_and_characters_are_inserted_and_deleted_between_the_margins() {
    assert_eq!(middle("\x1b[3;3H\x1b[L"), ["abcde", "fghij", "k   o", "plmnt", "uvwxy"]);
    assert_eq!(middle("\x1b[3;3H\x1b[M"), ["abcde", "fghij", "kqrso", "p   t", "uvwxy"]);
    assert_eq!(middle("\x1b[3;3H\x1b[@")[2], "kl mo");
    assert_eq!(middle("\x1b[3;3H\x1b[P")[2], "kln o");
    assert_eq!(middle("\x1b[3;3H\x1b[99@")[2], "kl  o");
    assert_eq!(middle("\x1b[3;3H\x1b[99P")[2], "kl  o");
    for sequence in ["\x1b[L", "\x1b[M", "\x1b[@", "\x1b[P", "\x1b['}", "\x1b['~"] {
        for place in ["\x1b[3;1H", "\x1b[3;5H"] {
            assert_eq!(middle(&format!("{place}{sequence}")), letters(""), "{place:?} {sequence:?}");
        }
    }
    for sequence in ["\x1b[L", "\x1b[M", "\x1b['}", "\x1b['~"] {
        assert_eq!(middle(&format!("\x1b[1;3H{sequence}")), letters(""), "{sequence:?} above");
    }
    assert_eq!(middle("\x1b[3;3H\x1b[99X")[2], "kl", "what erases knows no margins");
    assert_eq!(middle("\x1b[3;3H\x1b[K")[2], "kl");
    assert_eq!(middle("\x1b[3;3Hxy\x1b[K")[2], "klx", "the one at the margin goes with the rest");
}

#[test]
fn columns_are_inserted_and_deleted() {
    assert_eq!(middle("\x1b[3;3H\x1b['}"), ["abcde", "fg hj", "kl mo", "pq rt", "uvwxy"]);
    assert_eq!(middle("\x1b[3;3H\x1b['~"), ["abcde", "fgi j", "kln o", "pqs t", "uvwxy"]);
    assert_eq!(letters("\x1b[1;2H\x1b[2'}"), ["a  bcde", "f  ghij", "k  lmno", "p  qrst", "u  vwxy"]);
    assert_eq!(letters("\x1b[1;2H\x1b[99'~"), ["a", "f", "k", "p", "u"]);
    let forward = ["abcde", "fhi j", "kmn o", "prs t", "uvwxy"];
    let back = ["abcde", "f ghj", "k lmo", "p qrt", "uvwxy"];
    assert_eq!(middle("\x1b[3;3H\x1b9\x1b9"), forward);
    assert_eq!(middle("\x1b[3;3H\x1b6\x1b6"), back);
    assert_eq!(middle("\x1b[5;4H\x1b9\x1b[1;2H\x1b6"), letters(""), "not above and below");
    assert_eq!(cursor("\x1b[2;5H\x1b9\x1b9"), (2, 6));
    assert_eq!(cursor("\x1b[2;4H\x1b6\x1b6"), (2, 3));
    assert_eq!(cursor("\x1b[2;7H\x1b9\x1b9"), (2, 8), "outside it goes on to the edge");
    assert_eq!(cursor("\x1b[2;2H\x1b6\x1b6"), (2, 1));
    assert_eq!(letters("\x1b[1;1H\x1b6"), [" abcde", " fghij", " klmno", " pqrst", " uvwxy"]);
}

#[test]
fn boxes_are_filled_erased_and_copied() {
    assert_eq!(letters("\x1b[42;2;2;4;4$x"), ["abcde", "f***j", "k***o", "p***t", "uvwxy"]);
    assert_eq!(letters("\x1b[2;2;4;4$z"), ["abcde", "f   j", "k   o", "p   t", "uvwxy"]);
    assert_eq!(letters("\x1b[1;1;2;2;1;4;4;1$v"), ["abcde", "fghij", "klmno", "pqrab", "uvwfg"]);
    assert_eq!(
        letters("\x1b[1;1;3;3;1;2;2;1$v"),
        ["abcde", "fabcj", "kfgho", "pklmt", "uvwxy"],
        "over itself"
    );
    assert_eq!(letters("\x1b[1;1;2;2;1;6;8;1$v")[5..], ["       a"], "as much as there is room for");
    assert_eq!(letters("\x1b[$z"), Vec::<String>::new(), "all of it");
    assert_eq!(middle("\x1b[42;1;1;2;2$x")[..2], ["**cde", "**hij"], "margins do not count");
    assert_eq!(
        middle("\x1b[?6h\x1b[42;1;1;2;2$x"),
        ["abcde", "f**ij", "k**no", "pqrst", "uvwxy"],
        "but here"
    );
    assert_eq!(middle("\x1b[?6h\x1b[42$x"), ["abcde", "f***j", "k***o", "p***t", "uvwxy"]);
    let screen = shown("\x1b[1;31m\x1b[42;1;1;1;2$x");
    assert_eq!(screen.capture(What::Screen, Format::Ansi), "\x1b[0;1;31m**\x1b[0m\n");
    // Half of a wide character is none.
    assert_eq!(rows("漢字漢字\x1b[42;1;2;1;3$x"), [" ** 漢字"]);
    assert_eq!(rows("漢字漢字\r\n\x1b[1;2;1;5;1;2;1;1$v"), ["漢字漢字", " 字"]);
    assert_eq!(rows("\r\n漢字漢字\x1b[?69h\x1b[2;5s\x1b[S"), ["  字", "      字"]);
}

#[test]
fn resets_take_the_margins_away() {
    for reset in ["\x1b[!p", "\x1bc", "\x1b[?3h", "\x1b[?3l", "\x1b#8\x1b[2J"] {
        let mut screen = shown(&format!("\x1b[?69h\x1b[3;6s{reset}"));
        let heard = screen.feed(b"\x1bP$qs\x1b\\\x1b[?69$p\x1b[Habcdefgh");
        assert_eq!(heard.replies, b"\x1bP1$r1;8s\x1b\\\x1b[?69;2$y", "{reset:?}");
        assert_eq!(screen.rows()[0], "abcdefgh", "{reset:?}");
    }
    let mut screen = shown("\x1b[?69h\x1b[3;6s\x1b[1;3Habcd");
    screen.resize(Size { cols: 10, rows: 6 });
    let heard = screen.feed(b"\x1bP$qs\x1b\\\x1b[?69$p");
    assert_eq!(
        heard.replies, b"\x1bP1$r1;10s\x1b\\\x1b[?69;1$y",
        "another size: all columns, and the mode stays"
    );
}

#[test]
fn a_repaint_and_a_checkpoint_have_the_margins() {
    for output in [
        format!("{LETTERS}{MIDDLE}\x1b[3;3H"),
        format!("{LETTERS}{MIDDLE}\x1b[?6h\x1b[2;2H\x1b7\x1b[3;1H"),
        format!("{LETTERS}{MIDDLE}\x1b[3;3Hxy"),
        format!("{LETTERS}{MIDDLE}\x1b[3;3Hxy\x1b7\x1b[1;1H"),
        format!("{LETTERS}\x1b[1;8Hz\x1b7{MIDDLE}\x1b[3;3Hxy"),
        format!("{LETTERS}\x1b[?1049h{LETTERS}{MIDDLE}\x1b[2;5H\x1b7\x1b[3;3H漢"),
        format!("\x1b)0\x1b[?47h{MIDDLE}"),
        format!("{LETTERS}\x1b[?69h"),
    ] {
        let mut screen = shown(&output);
        let mut painted = Screen::new(screen.size(), 100);
        let _ = painted.feed(&screen.repaint());
        let mut kept = Screen::restore(&screen.checkpoint()).expect("a checkpoint");
        for after in
            ["", "123456\x1b[S", "\x1b[?6$p\x1b[?69$p\x1bP$qs\x1b\\\x1b[6n", "\x1b8X\x1b[6n", "\x0e\x1b8lqqk"]
        {
            let heard = screen.feed(after.as_bytes());
            assert_eq!(painted.feed(after.as_bytes()), heard, "{output:?} {after:?}");
            assert_eq!(kept.feed(after.as_bytes()), heard, "{output:?} {after:?}");
            assert_eq!(painted.rows(), screen.rows(), "{output:?} {after:?}");
            assert_eq!(kept.rows(), screen.rows(), "{output:?} {after:?}");
            assert_eq!(painted.modes().cursor, screen.modes().cursor, "{output:?} {after:?}");
        }
    }
}

/// Such a terminal ignores the mode, and saves its cursor where margins are meant.
#[test]
fn a_repaint_is_right_for_a_terminal_without_such_margins() {
    let screen = shown(&format!("{LETTERS}{MIDDLE}\x1b[5;5H\x1b7\x1b[3;3H"));
    let repaint = String::from_utf8(screen.repaint()).expect("text");
    assert!(repaint.contains("\x1b[?69h"));
    let mut other = Screen::new(screen.size(), 100);
    let _ = other.feed(repaint.replace("\x1b[?69h", "").as_bytes());
    assert_eq!((other.rows(), other.modes().cursor), (screen.rows(), (2, 2)));
    let _ = other.feed(b"\x1b[r\x1b8");
    assert_eq!(other.modes().cursor, (4, 4), "what was saved is there");
    assert!(!String::from_utf8_lossy(&shown(LETTERS).repaint()).contains("\x1b[?69h"), "only where it is on");
}
