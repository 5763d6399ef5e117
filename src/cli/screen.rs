//! What the user sees: data on stdout, messages on stderr. A reader that goes away is no fault of ours.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use skinbind::model::Warning;
use skinbind::{Error, Result};

/// A message on stderr.
pub fn say(text: &str) {
    // With stderr gone there is nobody left to tell.
    _ = writeln!(io::stderr().lock(), "{text}");
}

/// Each warning as a line on stderr.
pub fn warn(warnings: &[Warning]) {
    for warning in warnings {
        say(&format!("warning: {}", warning.message));
    }
}

/// Text on stdout.
///
/// # Errors
/// [`Error::Write`], but for a reader that has gone away.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Write { path: "standard output".into(), source: e })
        }
        _ => Ok(()),
    }
}

/// One JSON document on stdout.
///
/// # Errors
/// As [`print`].
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print(&json(value)?)
}

/// A value as JSON text that ends its line.
pub fn json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::format("JSON", e.to_string()))?;
    Ok(text + "\n")
}

/// Rows of a name and a value, the values in one column.
pub fn table(title: &str, rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, value)| {
        let gap = " ".repeat(width - name.chars().count() + 2);
        format!("  {name}{gap}{value}\n")
    });
    format!("{title}\n{}", lines.collect::<String>())
}

/// Columns under their heads: the first to the left, the others to the right.
pub fn columns(heads: &[&str], rows: &[Vec<String>]) -> String {
    let width_of = |c: usize| rows.iter().map(|r| r[c].chars().count()).chain([heads[c].chars().count()]).max();
    let widths: Vec<usize> = (0..heads.len()).map(|c| width_of(c).unwrap_or(0)).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::from(" ");
        for (c, cell) in cells.enumerate() {
            let gap = " ".repeat(widths[c] - cell.chars().count());
            text += &if c == 0 { format!(" {cell}{gap}") } else { format!("  {gap}{cell}") };
        }
        text.trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut heads.iter().copied());
    for row in rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

/// A file's name without folder and extension, to name things in outputs.
pub fn stem(path: &Path) -> String {
    path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_columns_line_up() {
        let text = table("mesh", &[("vertices", "12".into()), ("gr\u{f6}\u{df}e", "3".into())]);
        assert_eq!(text, "mesh\n  vertices  12\n  gr\u{f6}\u{df}e     3\n");
        let text = columns(&["bone", "mean"], &[vec!["a".into(), "0.125".into()], vec!["spine".into(), "1".into()]]);
        assert_eq!(text, "  bone    mean\n  a      0.125\n  spine      1\n");
    }
}
