//! Texts that fit in a row of a list, whatever their letters weigh on a page. The whole text stands on the page that
//! the row leads to.

/// What a letter may weigh, in bytes of a page and on average: most weigh one, and `<` weighs five.
const LETTER_WEIGHT: usize = 2;

/// What a letter weighs in the text of a page, where five of them are written as `&#60;` is.
const fn weight(letter: char) -> usize {
    match letter {
        '<' | '>' | '&' | '"' | '\'' => 5,
        other => other.len_utf8(),
    }
}

/// How many bytes of the letters fit, at most so many letters.
fn fitting(letters: impl Iterator<Item = char>, letters_max: usize) -> usize {
    let (mut heavy, mut bytes) = (0, 0);
    for letter in letters.take(letters_max) {
        heavy += weight(letter);
        if heavy > letters_max * LETTER_WEIGHT {
            break;
        }
        bytes += letter.len_utf8();
    }
    bytes
}

/// A text of at most so many letters; where its end was cut off it says so.
pub(crate) fn end(text: &str, letters_max: usize) -> String {
    match fitting(text.chars(), letters_max) {
        whole if whole == text.len() => text.to_owned(),
        kept => format!("{}…", text[..kept].trim_end()),
    }
}

/// A text of at most so many letters. What is too long loses its middle: a name differs from its likes at the end.
pub(crate) fn middle(text: &str, letters_max: usize) -> String {
    if fitting(text.chars(), letters_max) == text.len() {
        return text.to_owned();
    }
    let tail = letters_max.saturating_sub(1) / 3;
    let head = letters_max.saturating_sub(1) - tail;
    let begins = &text[..fitting(text.chars(), head)];
    let ends = &text[text.len() - fitting(text.chars().rev(), tail)..];
    format!("{}…{}", begins.trim_end(), ends.trim_start())
}

#[cfg(test)]
mod tests {
    use super::{end, middle, weight};

    #[test]
    fn a_long_text_is_cut_between_letters_and_says_so() {
        assert_eq!(end("äöü", 3), "äöü");
        assert_eq!(end("äöü x", 4), "äöü…");
        assert_eq!(middle("äöü", 3), "äöü");
        assert_eq!(middle("refs/heads/feature/42", 10), "refs/h…/42");
        for text in ["<".repeat(512), "\u{10ffff}".repeat(300), "\"a".repeat(256), "é".repeat(300)] {
            for short in [end(&text, 60), middle(&text, 60)] {
                assert!(short.chars().map(weight).sum::<usize>() <= 60 * 2 + 3, "{short}");
                assert!(short.chars().count() <= 61 && short.contains('…'), "{short}");
            }
        }
    }
}
