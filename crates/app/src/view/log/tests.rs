use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{Clarity, FAILURE_LINES_MAX, Keep, Piece, Raw, WEIGHT_MAX, says_failure};

fn whole(bytes: &[u8]) -> Piece {
    super::piece(
        &Raw { before: b"", bytes, from: 0, more: false, live: false, weight_max: WEIGHT_MAX },
        Keep::First,
    )
}

/// The lines, each style in brackets.
fn shown(bytes: &[u8]) -> Vec<String> {
    let line = |line: &super::Line| {
        line.spans.iter().fold(String::new(), |text, span| match span.class.as_str() {
            "" => text + &span.text,
            class => format!("{text}[{class}|{}]", span.text),
        })
    };
    whole(bytes).lines.iter().map(line).collect()
}

#[track_caller]
fn check(bytes: &[u8], expected: &[&str]) {
    assert_eq!(shown(bytes), expected, "{}", bytes.escape_ascii());
}

#[test]
fn colors_and_faces_become_names() {
    check(b"\x1b[31mred\x1b[0m plain \x1b[1;92mgood\x1b[m", &["[a-red|red] plain [a-bright-green b|good]"]);
    check(b"\x1b[2mdim\x1b[22;3mit\x1b[23;4mun\x1b[24mno", &["[dim|dim][i|it][u|un]no"]);
    check(b"\x1b[31mstays\nred\x1b[39m", &["[a-red|stays]", "[a-red|red]"]);
}

#[test]
fn other_colors_become_the_nearest() {
    check(b"\x1b[38;5;9mx\x1b[38;5;196mx\x1b[38;5;244mx", &["[a-bright-red|xx][a-bright-black|x]"]);
    check(b"\x1b[38;2;0;200;10mx\x1b[38:2::0:0:240my\x1b[38:5:3mz", &["[a-green|x][a-blue|y][a-yellow|z]"]);
    // A background, and what follows it in the same sequence.
    check(b"\x1b[48;2;255;255;255;31mx\x1b[48;5;1;32my", &["[a-red|x][a-green|y]"]);
    check(b"\x1b[38;5mx\x1b[38;5;999my\x1b[38;9;1mz", &["xy[b|z]"]);
}

#[test]
fn a_line_is_what_a_terminal_would_show_in_the_end() {
    check(b" 10%\r 50%\r100%\ndone\r\n", &["100%", "done"]);
    check(b"downloading\rok\x1b[K\n", &["ok"]);
    check(b"abc\x08\x08X\n", &["aXc"]);
    check(b"gone\x1b[2K\rhere\n", &["here"]);
    check(b"abc\x1b[5Gx\n", &["abc x"]);
    check(b"abcd\x1b[2D\x1b[1K\n", &["   d"]);
}

#[test]
fn what_a_terminal_would_obey_is_left_out() {
    check(b"\x1b]0;a title\x07text", &["text"]);
    check(b"\x1b]8;;https://evil.test/\x1b\\a link\x1b]8;;\x1b\\", &["a link"]);
    check(b"\x1b[2J\x1b[H\x1b[?25l\x1b[>4;31mtext\x1b[6n\x1bc", &["text"]);
    check(b"\x1bP1$qm\x1b\\text\x1b_apc\x1b\\\x1b^pm\x1b\\", &["text"]);
    // Nothing that is not finished hides the next line.
    check(b"\x1b]0;open\nnext\x1b[3\nlast", &["", "next", "last"]);
}

#[test]
fn controls_and_broken_text_are_seen_and_do_nothing() {
    check(b"a\0b\x7fc\x07d", &["a\u{2400}b\u{2421}cd"]);
    check(b"\xff\xc3<b>\xe2\x82", &["\u{fffd}\u{fffd}<b>\u{fffd}"]);
    check("a\u{202e}b\u{9b}31mc".as_bytes(), &["a<U+202E>b<U+009B>31mc"]);
    check(b"\xc3\x1b[31mred", &["\u{fffd}[a-red|red]"]);
}

#[test]
fn a_very_long_line_is_clipped_and_says_by_how_much() {
    let piece = whole(&vec![b'x'; 1 << 20]);
    assert_eq!((piece.lines.len(), piece.lines[0].clipped), (1, (1 << 20) - 4000));
    assert_eq!(piece.lines[0].text().len(), 4000);
    let bar = whole(&[&vec![b'x'; 5000][..], b"\rdone\x1b[K"].concat());
    assert_eq!((bar.lines[0].text(), bar.lines[0].clipped), ("done".to_owned(), 0));
}

#[test]
fn a_piece_begins_and_ends_with_a_line() {
    let text = b"one\ntwo\nthree\nfour";
    let raw = |from: usize, to: usize, live| Raw {
        before: &text[..from],
        bytes: &text[from..to],
        from: from as u64,
        more: to < text.len(),
        live,
        weight_max: WEIGHT_MAX,
    };
    let lines = |piece: &Piece| piece.lines.iter().map(super::Line::text).collect::<Vec<_>>();
    let last = super::piece(&raw(5, 18, false), Keep::Last);
    assert_eq!((lines(&last), last.from, last.next), (vec!["three".to_owned(), "four".to_owned()], 8, 18));
    let first = super::piece(&raw(4, 12, false), Keep::First);
    assert_eq!((lines(&first), first.from, first.next), (vec!["two".to_owned()], 4, 8));
    let growing = super::piece(&raw(8, 18, true), Keep::First);
    assert_eq!((growing.lines[1].open, growing.next), (true, 14));
    let middle = super::piece(&raw(9, 12, true), Keep::Last);
    assert_eq!((lines(&middle), middle.from, middle.next), (vec!["hre".to_owned()], 9, 12));
}

#[test]
fn a_line_that_fills_a_piece_is_gone_on_with() {
    let raw =
        |before, bytes, from| Raw { before, bytes, from, more: true, live: true, weight_max: WEIGHT_MAX };
    let first = super::piece(&raw(b"", "ab\u{e9}\u{e9}".as_bytes().split_last().unwrap().1, 0), Keep::First);
    assert_eq!((first.lines[0].text().as_str(), first.next), ("ab\u{e9}", 4));
    // Its end is not known, so it goes on in the style it was in, even inside a sequence.
    let second = super::piece(&raw(b"\x1b[31mab\x1b[1", b";4mx", 9), Keep::First);
    assert_eq!(second.lines[0].spans, [super::Span { class: "a-red b u".to_owned(), text: "x".to_owned() }]);
}

#[test]
fn a_piece_has_no_more_lines_than_a_page_has_room_for() {
    let empty = b"\n".repeat(48 << 10);
    let colored = "\u{1b}[1;31m<\u{1b}[2;32m&\n".repeat(4 << 10).into_bytes();
    let one_line = "\u{1b}[1;31m<\u{1b}[2;32m&".repeat(4 << 10).into_bytes();
    for bytes in [empty, colored, one_line] {
        let raw =
            Raw { before: b"", bytes: &bytes, from: 0, more: false, live: false, weight_max: WEIGHT_MAX };
        for keep in [Keep::First, Keep::Last] {
            let piece = super::piece(&raw, keep);
            let weight: usize = piece.lines.iter().map(super::Line::weight).sum();
            assert!(weight <= WEIGHT_MAX && !piece.lines.is_empty(), "{weight}");
            let is_cut = piece.lines.len() > 1;
            match keep {
                Keep::First => assert_eq!((piece.from, piece.next < bytes.len() as u64), (0, is_cut)),
                Keep::Last => assert_eq!((piece.from > 0, piece.next), (is_cut, bytes.len() as u64)),
            }
        }
    }
}

#[test]
fn a_line_that_changes_its_style_very_often_is_clipped_and_says_by_how_much() {
    let piece = whole("\u{1b}[31mr\u{1b}[32mg".repeat(1000).as_bytes());
    let [line] = &piece.lines[..] else { panic!("{piece:?}") };
    assert!(line.weight() < 25_000 && line.text().len() > 500, "{}", line.weight());
    assert_eq!(line.text().len() + line.clipped, 2000);
}

#[test]
fn the_first_failure_is_marked_with_what_belongs_to_it() {
    let mut piece = whole(b"ok\n\x1b[31mE  assert 1 == 2\x1b[0m\nerror: no\nfine\nerror again\n");
    assert_eq!(piece.mark_failure().as_deref(), Some("b3"));
    assert_eq!(
        piece.lines.iter().map(|line| line.hit).collect::<Vec<_>>(),
        [false, true, true, false, false]
    );
    let mut many = whole(&b"error\n".repeat(100));
    many.mark_failure();
    assert_eq!(many.lines.iter().filter(|line| line.hit).count(), FAILURE_LINES_MAX);
    assert_eq!(whole(b"all good\n").mark_failure(), None);
}

#[test]
fn what_is_clear_goes_before_what_is_only_talked_about() {
    let mut piece = whole(
        b"I'll reproduce the failure first\nok\n\x1b[31;1m\xe2\x9c\x97 a test\x1b[0m (3 ms)\n at x.ts:3\n",
    );
    piece.mark_failure();
    assert_eq!(piece.lines.iter().map(|line| line.hit).collect::<Vec<_>>(), [false, false, true, false]);
    assert_eq!(whole(b"ok\nso that is the last failure\n").mark_failure().as_deref(), Some("b3"));
}

#[test]
fn words_of_failure_are_told_from_their_denial() {
    for clear in [
        "error[E0308]: mismatched types",
        "Tests: 1 failed, 41 passed",
        "thread 'main' panicked at src/main.rs",
        "Traceback (most recent call last):",
        "ValueError: x",
        "2026-03-10T12:00:00Z worker-1 ERROR no room",
        "FAILED tests/a.py",
    ] {
        assert_eq!(says_failure(clear), Some(Clarity::Clear), "{clear}");
    }
    assert_eq!(says_failure("this looks like the old failure"), Some(Clarity::Vague));
    for fine in ["test result: ok. 3 passed; 0 failed", "no errors", "terror", ""] {
        assert_eq!(says_failure(fine), None, "{fine}");
    }
}

/// Output as hostile programs write it: text, sequences and fragments of both.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        any::<Vec<u8>>(),
        "[a-z <>&\"']{0,12}".prop_map(String::into_bytes),
        "\\PC{0,6}".prop_map(String::into_bytes),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\x1b[31m".to_vec()),
        Just(b"\x1b[38;2;1".to_vec()),
        Just(b"\x1b]8;;x".to_vec()),
        Just(b"\x1b[65535C".to_vec()),
        Just(b"\x1b[1K".to_vec()),
        vec(0_u8..0x20, 0..4),
    ];
    vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn anything_is_shown_without_control_characters(bytes in output(), place in any::<usize>()) {
        let place = place % (bytes.len() + 1);
        let (before, rest) = bytes.split_at(place);
        for keep in [Keep::First, Keep::Last] {
            for (more, live) in [(false, false), (false, true), (true, true)] {
                let raw = Raw { before, bytes: rest, from: place as u64, more, live, weight_max: 2000 };
                let piece = super::piece(&raw, keep);
                prop_assert!(piece.from >= raw.from && piece.next <= raw.from + rest.len() as u64);
                for line in &piece.lines {
                    prop_assert!(!line.text().chars().any(|letter| letter.is_control() && letter != '\t'));
                }
            }
        }
    }

    #[test]
    fn plain_text_is_shown_as_it_is(text in "[ -~\u{a1}-\u{2ff}\n\t]{0,400}") {
        let lines: Vec<String> = whole(text.as_bytes()).lines.iter().map(super::Line::text).collect();
        let expected: Vec<&str> = text.split_terminator('\n').collect();
        prop_assert_eq!(lines, expected);
    }

    #[test]
    fn pieces_make_up_the_whole(text in "[a-z\n]{0,300}", size in 8_usize..40) {
        let bytes = text.as_bytes();
        let (mut at, mut lines) = (0, Vec::new());
        while at < bytes.len() {
            let to = bytes.len().min(at + size);
            let raw = Raw {
                before: &bytes[..at],
                bytes: &bytes[at..to],
                from: at as u64,
                more: to < bytes.len(),
                live: false,
                weight_max: 700,
            };
            let piece = super::piece(&raw, Keep::First);
            prop_assert!(piece.next > at as u64, "it goes on");
            at = usize::try_from(piece.next).unwrap();
            lines.extend(piece.lines.iter().map(super::Line::text));
        }
        prop_assert_eq!(lines.concat(), text.replace('\n', ""));
    }
}
