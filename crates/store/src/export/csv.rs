//! Comma-separated values (RFC 4180).

use std::borrow::Cow;
use std::io::{self, Write};

use super::{Cell, Table};

pub(super) fn write(table: &Table, mut output: impl Write) -> io::Result<()> {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    writeln!(output, "{}", names.join(","))?;
    for row in &table.rows {
        for (index, cell) in row.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(output, "{separator}")?;
            match cell {
                Cell::None => {}
                Cell::Text(text) => write!(output, "{}", quoted(text))?,
                Cell::Integer(integer) => write!(output, "{integer}")?,
                // The shortest text that reads as the same number.
                Cell::Real(real) => write!(output, "{real:?}")?,
            }
        }
        writeln!(output)?;
    }
    output.flush()
}

fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_with_separators_is_quoted() {
        let mut output = Vec::new();
        write(&super::super::tests::table(), &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("run,trial,started_unix_ns,test,"), "{text}");
        let first = "run,1,1795000000000000001,\"a \"\"test\"\", with a comma\",,0,0,,,0.1,,1000,,,\
                     0.3333333333333333,-5,,,,,,,,,";
        assert_eq!(lines[1], first);
        assert_eq!(lines[2].split(',').count(), lines[0].split(',').count());
    }
}
