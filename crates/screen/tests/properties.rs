//! What holds for any output at all.

use proptest::prelude::*;
use wharf_model::Size;
use wharf_screen::{Format, Heard, Screen, Signal, What};
use wharf_sequences::Queries;

const SIZE: Size = Size { cols: 12, rows: 5 };

/// Everything that can be seen of a screen.
fn seen(screen: &Screen) -> (String, Vec<(String, bool)>, Vec<String>) {
    let rows = screen.visible().into_iter().map(|row| (row.text, row.wrapped)).collect();
    (screen.capture(What::All, Format::Json), rows, screen.all())
}

/// Feeds pieces; signals count from the start of the output.
fn feed(screen: &mut Screen, pieces: &[&[u8]]) -> Heard {
    let mut all = Heard::default();
    let mut from = 0;
    for piece in pieces {
        let heard = screen.feed(piece);
        all.signals.extend(heard.signals.into_iter().map(|(at, signal)| (from + at, signal)));
        all.replies.extend(heard.replies);
        from += piece.len() as u64;
    }
    all
}

/// A piece of output such as programs make.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let small = || 0_u16..16;
    let csi = (
        prop_oneof![Just(""), Just("?"), Just(">"), Just("="), Just("<")],
        proptest::collection::vec(small(), 0..4),
        proptest::sample::select(b"@ABCDEFGHIJKLMPSTXZ`abcdefghlmnrstu".to_vec()),
    )
        .prop_map(|(marker, numbers, end)| {
            let numbers: Vec<_> = numbers.iter().map(u16::to_string).collect();
            format!("\x1b[{marker}{}{}", numbers.join(";"), end as char).into_bytes()
        });
    let modes = [
        1, 3, 5, 6, 7, 12, 25, 45, 47, 66, 69, 1000, 1002, 1003, 1004, 1006, 1015, 1047, 1048, 1049, 2004,
        2026,
    ];
    let mode = (proptest::sample::select(modes.to_vec()), any::<bool>())
        .prop_map(|(mode, on)| format!("\x1b[?{mode}{}", if on { 'h' } else { 'l' }).into_bytes());
    let colours =
        "0|1|2|3|4|4:3|7|8|9|21|22|24|27|31|42|91|102|38;5;200|48;5;17|38;2;1;2;3|48;2;9;8;7|58;5;3|59|39|49";
    let colours: Vec<_> = colours.split('|').collect();
    let colour = proptest::sample::select(colours).prop_map(|sgr| format!("\x1b[{sgr}m").into_bytes());
    let words = [
        "hello",
        "a",
        " ",
        "    ",
        "漢字",
        "é",
        "e\u{301}",
        "👨\u{200d}👩\u{200d}👧",
        "❤\u{fe0f}",
        "\r\n",
        "\n",
        "\r",
        "\t",
        "\x08",
        "\x07",
        "\x0e",
        "\x0f",
        "lqqk",
        "0123456789ab",
        "0123456789abcdef",
        "漢字漢字漢字漢",
        "\u{301}",
        "\u{ad}",
    ];
    let word = proptest::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    let others = [
        "\x1b7",
        "\x1b8",
        "\x1bD",
        "\x1bE",
        "\x1bM",
        "\x1bH",
        "\x1b(0",
        "\x1b(B",
        "\x1b)0",
        "\x1b#8",
        "\x1b=",
        "\x1b>",
        "\x1bc",
        "\x1b[!p",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b[20h",
        "\x1b[20l",
        "\x1b[2 q",
        "\x1b[5 q",
        "\x1b[2J",
        "\x1b[3J",
        "\x1b[K",
        "\x1b[1K",
        "\x1b[2K",
        "\x1b[2;4r",
        "\x1b[r",
        "\x1b[?69h\x1b[3;8s",
        "\x1b[?69h\x1b[5s",
        "\x1b[?69h\x1b[;11s",
        "\x1b[s",
        "\x1b6",
        "\x1b9",
        "\x1b[2'}",
        "\x1b[2'~",
        "\x1b[88;2;3;4;9$x",
        "\x1b[1;2;3;8$z",
        "\x1b[1;1;3;9;1;2;4;1$v",
        "\x1b[3g",
        "\x1b[?5W",
        "\x1b]2;title\x07",
        "\x1b]8;;https://a.b\x07",
        "\x1b]8;id=x;http://c\x07",
        "\x1b]8;;\x07",
        "\x1b]4;1;#123456\x07",
        "\x1b]104\x07",
        "\x1b]11;#010203\x07",
        "\x1b]111\x07",
        "\x1b]133;A\x07",
        "\x1b]9;4;1;5\x07",
        "\x1b]7501;state=idle\x07",
        "\x1b[>4;2m",
        "\x1b[>5u",
        "\x1b[<u",
        "\x1b[=3u",
        "\x1b[22t",
        "\x1b[23t",
        "\x1bP$qm\x1b\\",
        "\x1b[65535b",
        "\x1b[65535Z",
    ];
    let other = proptest::sample::select(others.to_vec()).prop_map(|other| other.as_bytes().to_vec());
    prop_oneof![
        4 => word,
        2 => "[a-z ]{1,30}".prop_map(String::into_bytes),
        2 => csi,
        1 => mode,
        1 => colour,
        2 => other,
        1 => proptest::collection::vec(any::<u8>(), 1..8),
    ]
}

/// Output that a failing test shows readably.
#[derive(Clone)]
struct Output(Vec<u8>);

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

fn output() -> impl Strategy<Value = Output> {
    proptest::collection::vec(fragment(), 0..60).prop_map(|fragments| Output(fragments.concat()))
}

/// Lines of text, as they are written, without what a terminal makes of them.
fn prose() -> impl Strategy<Value = Vec<String>> {
    let line = proptest::collection::vec(
        prop_oneof![6 => "[a-z]{1,9}", 1 => Just("漢字".to_owned()), 1 => Just("e\u{301}👍".to_owned())],
        0..8,
    );
    proptest::collection::vec(line.prop_map(|words| words.join(" ")), 0..12)
}

fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("WHARF_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn any_cut_gives_the_same(output in output(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let output = output.0;
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(output.len() + 1)).collect();
        cuts.extend([0, output.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| &output[cut[0]..cut[1]]).collect();
        let (mut whole, mut cut, mut single) = (Screen::new(SIZE, 20), Screen::new(SIZE, 20), Screen::new(SIZE, 20));
        let heard = feed(&mut whole, &[&output]);
        prop_assert_eq!(&feed(&mut cut, &pieces), &heard);
        let bytes: Vec<_> = output.chunks(1).collect();
        prop_assert_eq!(&feed(&mut single, &bytes), &heard);
        prop_assert_eq!(seen(&cut), seen(&whole));
        prop_assert_eq!(seen(&single), seen(&whole));
    }

    #[test]
    fn a_repaint_shows_the_same(output in output(), size in prop_oneof![Just((SIZE.cols, SIZE.rows)), (2_u16..14, 1_u16..7)]) {
        let mut screen = Screen::new(SIZE, 20);
        let _ = screen.feed(&output.0);
        screen.resize(Size { cols: size.0, rows: size.1 });
        let repaint = screen.repaint();
        let mut fresh = Screen::new(screen.size(), 20);
        let heard = fresh.feed(&repaint);
        prop_assert!(heard.replies.is_empty());
        prop_assert!(!Queries::new().scan(&repaint));
        for (_, signal) in &heard.signals {
            prop_assert!(matches!(signal, Signal::Title(_) | Signal::Link(_) | Signal::AltScreen(true)), "{:?}", signal);
        }
        let mut expected = screen.modes();
        expected.synchronized = false;
        prop_assert_eq!(fresh.modes(), expected);
        prop_assert_eq!(seen(&fresh).1, seen(&screen).1);
        prop_assert_eq!(seen(&fresh).2, seen(&screen).2);
        prop_assert_eq!(fresh.capture(What::All, Format::Ansi), screen.capture(What::All, Format::Ansi));
        prop_assert_eq!(fresh.title(), screen.title());
        // The margins on all sides, and their mode. What was unfinished is ended first.
        let margins = b"\x1b\\\x1bP$qr\x1b\\\x1bP$qs\x1b\\\x1b[?69$p\x1b[6n";
        prop_assert_eq!(fresh.feed(margins).replies, screen.feed(margins).replies);
    }

    #[test]
    fn a_checkpoint_goes_on_as_if_nothing_had_been(before in output(), after in output()) {
        let mut screen = Screen::new(SIZE, 20);
        let _ = screen.feed(&before.0);
        let mut again = Screen::restore(&screen.checkpoint()).expect("a checkpoint");
        prop_assert_eq!(seen(&again), seen(&screen));
        prop_assert_eq!(again.visible(), screen.visible());
        prop_assert_eq!(again.feed(&after.0), screen.feed(&after.0));
        prop_assert_eq!(seen(&again), seen(&screen));
        prop_assert_eq!(again.visible(), screen.visible());
    }

    #[test]
    fn no_size_loses_text(lines in prose(), sizes in proptest::collection::vec((2_u16..40, 1_u16..12), 1..5)) {
        let mut screen = Screen::new(SIZE, 5000);
        let _ = screen.feed(lines.join("\r\n").as_bytes());
        for (cols, rows) in sizes {
            screen.resize(Size { cols, rows });
            let mut expected: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
            while expected.last().is_some_and(|line| line.is_empty()) {
                expected.pop();
            }
            prop_assert_eq!(screen.all(), expected);
        }
    }

    #[test]
    fn no_size_loses_text_below_the_cursor(
        lines in prose(),
        (up, column) in (0_u16..6, 1_u16..14),
        sizes in proptest::collection::vec((2_u16..40, 1_u16..12), 1..5),
    ) {
        let mut screen = Screen::new(SIZE, 5000);
        let _ = screen.feed(format!("{}\x1b[{up}A\x1b[{column}G", lines.join("\r\n")).as_bytes());
        for (cols, rows) in sizes {
            screen.resize(Size { cols, rows });
            let text: String = screen.all().concat().split(' ').collect();
            let expected: String = lines.concat().split(' ').collect();
            prop_assert_eq!(text, expected);
        }
    }

    #[test]
    fn changes_add_up(pieces in proptest::collection::vec(output(), 1..5)) {
        let mut screen = Screen::new(SIZE, 200);
        let mut rows = vec![String::new(); SIZE.rows.into()];
        let mut cursor = String::new();
        for piece in pieces {
            let _ = screen.feed(&piece.0);
            let changes = screen.since(&cursor);
            prop_assert_eq!(changes.whole && changes.rows.len() == rows.len(), changes.whole);
            for (row, text) in changes.rows {
                rows[row] = text;
            }
            prop_assert_eq!(&rows, &screen.rows());
            cursor = changes.cursor;
            let nothing = screen.since(&cursor);
            prop_assert!(nothing.rows.is_empty() && nothing.scrolled.is_empty() && !nothing.whole);
        }
    }

    #[test]
    fn nothing_panics(output in proptest::collection::vec(any::<u8>(), 0..400), size in (0_u16..9, 0_u16..9), to in (0_u16..9, 0_u16..9)) {
        let mut screen = Screen::new(Size { cols: size.0, rows: size.1 }, 3);
        let _ = screen.feed(&output);
        screen.resize(Size { cols: to.0, rows: to.1 });
        let _ = screen.feed(&output);
        for format in [Format::Plain, Format::Ansi, Format::Html, Format::Json] {
            let _ = screen.capture(What::All, format);
        }
        let _ = screen.repaint();
    }
}
