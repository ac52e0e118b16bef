//! REP: the last character again, as often as it is asked for, at a cost that does not grow with the square of the screen.

use std::fmt::Write;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use wharf_model::Size;
use wharf_screen::Screen;

fn shown(size: Size, bytes: &str) -> Vec<u8> {
    let mut screen = Screen::new(size, 100);
    let _ = screen.feed(bytes.as_bytes());
    screen.checkpoint()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn it_shows_what_the_character_itself_would(
        inserts in any::<bool>(),
        wraps in any::<bool>(),
        sides in prop::option::of((1_u16..12, 1_u16..12)),
        rows in prop::option::of((1_u16..6, 1_u16..6)),
        at in (1_u16..8, 1_u16..14),
        c in prop::sample::select(vec!['x', '漢', 'é']),
        times in 1_usize..40,
        after in prop::sample::select(vec!["", "y", "漢", "\r\nz"]),
    ) {
        let size = Size { cols: 12, rows: 6 };
        // A wide character that insertion cuts at the right edge leaves a gap where it is typed, and none where it is repeated.
        // One that finds no room and may not wrap is not printed, so there is another to repeat.
        let c = if (inserts || !wraps) && c == '漢' { 'x' } else { c };
        // More than fills the screen is not done: it shows nothing new, but where the cursor stands.
        let columns = sides.filter(|(left, right)| left < right).map_or(12, |(left, right)| right + 1 - left);
        let times = times.min(usize::from(columns) * 6);
        let mut before = "ab漢cdefgh漢\r\nij漢\x1b[41mklm\x1b[0m漢漢n\r\nop\r\nqrstuvwxyz漢\r\n漢漢\r\n12".to_owned();
        if inserts {
            before = before.replace('漢', "..");
        }
        if let Some((left, right)) = sides {
            let _ = write!(before, "\x1b[?69h\x1b[{left};{right}s");
        }
        if let Some((top, bottom)) = rows {
            let _ = write!(before, "\x1b[{top};{bottom}r");
        }
        let _ = write!(before, "\x1b[{};{}H", at.0, at.1);
        before += if inserts { "\x1b[4h" } else { "" };
        before += if wraps { "" } else { "\x1b[?7l" };
        before.push(c);
        let repeated = format!("{before}\x1b[{times}b{after}");
        let printed = format!("{before}{}{after}", c.to_string().repeat(times));
        prop_assert_eq!(shown(size, &repeated), shown(size, &printed));
    }
}

#[test]
fn it_costs_no_more_than_the_screen_has_cells() {
    for (cols, rows) in [(80, 24), (2048, 20), (20, 2048), (128, 2048), (2048, 128)] {
        for set in [
            "x\x1b[4h",
            "\x1b[?69h\x1b[2;999s\x1b[999;3H漢",
            "\x1b[?69h\x1b[2;999s\x1b[4h\x1b[999;3H漢",
            "\x1b[2r漢",
        ] {
            let mut screen = Screen::new(Size { cols, rows }, 100);
            let set = set.replace("999s", &format!("{cols}s")).replace("999;", &format!("{rows};"));
            let _ = screen.feed(set.as_bytes());
            let begun = Instant::now();
            let _ = screen.feed(b"\x1b[65535b");
            // Moving all cells once takes some milliseconds here, and for every row or character seconds.
            assert!(begun.elapsed() < Duration::from_secs(1), "{cols}x{rows} {set:?}: {:?}", begun.elapsed());
        }
    }
}
