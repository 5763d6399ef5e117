//! Text for XML files: escaped names and lists of numbers.

use std::fmt::Write;

/// A text as it may stand in an attribute or between tags. Characters that XML can not hold become replacement characters.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => _ = write!(out, "&#{};", c as u32),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Numbers with blanks between them, as the shortest decimals that give the same f32: readers of these formats hold no more.
pub(super) fn numbers(values: impl IntoIterator<Item = f64>) -> String {
    let mut out = String::new();
    for value in values {
        let gap = if out.is_empty() { "" } else { " " };
        // Writing to a string does not fail.
        _ = write!(out, "{gap}{}", value as f32);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_through_xml_and_numbers_read_back() {
        assert_eq!(escape("a<b>&\"c\"\n\u{1}\u{e4}"), "a&lt;b&gt;&amp;&quot;c&quot;&#10;\u{fffd}\u{e4}");
        let values = [0.1, -2.0, 1e-7, f64::from(f32::MAX)];
        let back: Vec<f32> = numbers(values).split(' ').map(|w| w.parse().unwrap()).collect();
        assert_eq!(back, values.map(|v| v as f32));
    }
}
