//! What a program asks its terminal, and what it is told.

use wharf_model::Size;
use wharf_screen::Screen;
use wharf_sequences::Queries;

fn reply(output: &str) -> String {
    let mut screen = Screen::new(Size { cols: 80, rows: 24 }, 100);
    String::from_utf8(screen.feed(output.as_bytes()).replies).expect("answers are text")
}

/// Every question, and its answer on a fresh screen.
fn table() -> Vec<(&'static str, &'static str)> {
    vec![
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[0c", "\x1b[?62;22c"),
        ("\x1bZ", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>1;277;0c"),
        ("\x1b[=c", "\x1bP!|00000000\x1b\\"),
        ("\x1b[>q", "\x1bP>|wharf(0.1.0)\x1b\\"),
        ("\x1b[>0q", "\x1bP>|wharf(0.1.0)\x1b\\"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[6n", "\x1b[1;1R"),
        ("\x1b[?6n", "\x1b[?1;1R"),
        ("\x1b[?15n", "\x1b[?13n"),
        ("\x1b[?996n", "\x1b[?997;1n"),
        ("\x1b[?2004$p", "\x1b[?2004;2$y"),
        ("\x1b[?7$p", "\x1b[?7;1$y"),
        ("\x1b[?2026$p", "\x1b[?2026;2$y"),
        ("\x1b[?9999$p", "\x1b[?9999;0$y"),
        // The width and locked keys are for nobody to switch on.
        ("\x1b[?3$p", "\x1b[?3;4$y"),
        ("\x1b[?69$p", "\x1b[?69;2$y"),
        ("\x1b[?8$p", "\x1b[?8;3$y"),
        ("\x1b[2$p", "\x1b[2;4$y"),
        ("\x1b[12$p", "\x1b[12;3$y"),
        ("\x1b[4$p", "\x1b[4;2$y"),
        ("\x1b[33$p", "\x1b[33;0$y"),
        ("\x1b[x", "\x1b[2;1;1;128;128;1;0x"),
        ("\x1b[14t", "\x1b[4;480;800t"),
        ("\x1b[16t", "\x1b[6;20;10t"),
        ("\x1b[18t", "\x1b[8;24;80t"),
        ("\x1b[19t", "\x1b[9;24;80t"),
        ("\x1b[11t", "\x1b[1t"),
        ("\x1b[?u", "\x1b[?0u"),
        ("\x1b[?4m", "\x1b[>4;0m"),
        ("\x1b[?1;1;0S", "\x1b[?1;3;0S"),
        ("\x1b]10;?\x07", "\x1b]10;rgb:e5e5/e5e5/e5e5\x07"),
        ("\x1b]11;?\x1b\\", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
        ("\x1b]12;?\x07", "\x1b]12;rgb:e5e5/e5e5/e5e5\x07"),
        ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b]4;0;?;255;?\x07", "\x1b]4;0;rgb:0000/0000/0000\x07\x1b]4;255;rgb:eeee/eeee/eeee\x07"),
        ("\x1b]10;?;?\x07", "\x1b]10;rgb:e5e5/e5e5/e5e5\x07\x1b]11;rgb:0000/0000/0000\x07"),
        ("\x1b]7501;?\x1b\\", "\x1b]7501;?\x1b\\"),
        ("\x1bP$qm\x1b\\", "\x1bP1$r0m\x1b\\"),
        ("\x1bP$qr\x1b\\", "\x1bP1$r1;24r\x1b\\"),
        ("\x1bP$qs\x1b\\", "\x1bP1$r1;80s\x1b\\"),
        ("\x1bP$q q\x1b\\", "\x1bP1$r2 q\x1b\\"),
        ("\x1bP$qz\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1bP+q436f\x1b\\", "\x1bP1+r436F=323536\x1b\\"),
        ("\x1bP+q6162\x1b\\", "\x1bP0+r\x1b\\"),
        // Titles are never told.
        ("\x1b[21t", "\x1b]l\x1b\\"),
        ("\x1b[20t", "\x1b]L\x1b\\"),
    ]
}

#[test]
fn every_question_is_answered() {
    for (question, answer) in table() {
        assert_eq!(reply(question), answer, "{question:?}");
    }
}

#[test]
fn a_question_is_found_without_a_screen() {
    for (question, _) in table() {
        let around = format!("text\x1b[1m{question}\x1b[mmore");
        assert!(Queries::new().scan(around.as_bytes()), "{question:?}");
        for cut in 1..question.len() {
            let mut queries = Queries::new();
            let found = [&question[..cut], &question[cut..]].map(|piece| queries.scan(piece.as_bytes()));
            assert!(found[0] || found[1], "{question:?} cut at {cut}");
        }
    }
    let harmless = "text\x1b[31m\x1b[2J\x1b]0;t?\x07\x1b]11;#000\x07\x1b[?2004h\x1b[>4;1m\x1b[>1u\x1b[22t\x1b7\x1b[s\x05\x1b[1 q\x1b_Gx\x1b\\";
    assert!(!Queries::new().scan(harmless.as_bytes()));
}

#[test]
fn nothing_else_is_answered() {
    let silent = [
        "\x05",
        "\x1b[1c",
        "\x1b[8;50;100t",
        "\x1b]52;c;?\x07",
        "\x1b]1337;ReportCellSize\x07",
        "\x1b]0;?\x07",
        "\x1b[1;1;1;1;1;1*y",
        "\x1b_Gi=1,a=q;AAAA\x1b\\",
        "\x1b]4;999;?\x07",
        "\x1b]4;x;?\x07",
    ];
    for output in silent {
        assert_eq!(reply(output), "", "{output:?}");
    }
}

#[test]
fn a_title_cannot_be_typed_back() {
    let answer = reply("\x1b]2;rm -rf /\x07\x1b]1;rm -rf /\x07\x1b[21t\x1b[20t\x1b[22t\x1b[23t\x1b[21t");
    assert!(!answer.contains("rm"), "{answer:?}");
}

#[test]
fn every_mode_that_programs_switch_says_how_it_is() {
    for mode in [
        1, 5, 6, 7, 9, 12, 25, 45, 47, 66, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 1042,
        1047, 1049, 2004, 2026, 2031,
    ] {
        for (switch, value) in [('h', 1), ('l', 2)] {
            let asked = format!("\x1b[?{mode}{switch}\x1b[?{mode}$p");
            assert_eq!(reply(&asked), format!("\x1b[?{mode};{value}$y"), "{asked:?}");
        }
    }
}

#[test]
fn the_answer_is_that_of_the_moment() {
    assert_eq!(reply("ab\r\ncd\x1b[6n"), "\x1b[2;3R");
    assert_eq!(reply("\x1b[3;10r\x1b[?6h\x1b[2;5H\x1b[6n"), "\x1b[2;5R", "counted from the margin");
    assert_eq!(
        reply("\x1b[?69h\x1b[5;20s\x1b[?6h\x1b[2;3H\x1b[6n\x1bP$qs\x1b\\"),
        "\x1b[2;3R\x1bP1$r5;20s\x1b\\"
    );
    assert_eq!(reply("\x1b[>5u\x1b[?u\x1b[?1049h\x1b[?u\x1b[?1049l\x1b[?u"), "\x1b[?5u\x1b[?0u\x1b[?5u");
    assert_eq!(reply("\x1b[=1u\x1b[=4;2u\x1b[?u\x1b[=1;3u\x1b[?u\x1b[<u\x1b[?u"), "\x1b[?5u\x1b[?4u\x1b[?0u");
    assert_eq!(reply("\x1b[?2004h\x1b[?2004$p\x1b[?1016h\x1b[?1016$p"), "\x1b[?2004;1$y\x1b[?1016;1$y");
    assert_eq!(reply("\x1b]11;#102030\x07\x1b]11;?\x07"), "\x1b]11;rgb:1010/2020/3030\x07");
    assert_eq!(reply("\x1b]11;#102030\x07\x1b]111\x07\x1b]11;?\x07"), "\x1b]11;rgb:0000/0000/0000\x07");
    assert_eq!(reply("\x1b[1;38;5;9m\x1bP$qm\x1b\\"), "\x1bP1$r0;1;38;5;9m\x1b\\");
    assert_eq!(reply("\x1b[5 q\x1bP$q q\x1b\\"), "\x1bP1$r5 q\x1b\\");
}
