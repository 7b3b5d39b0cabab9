//! Bytes as hexadecimal digits and text.

use core::fmt::{self, Formatter};

/// Formats bytes as `tcpdump -X` does, sixteen per line, without a newline at the end.
///
/// ```
/// # use wirestorm_wire::print::HexDump;
/// assert_eq!(
///     HexDump(b"GET / HTTP/1.1\r\n\x7f").to_string(),
///     "\t0x0000:  4745 5420 2f20 4854 5450 2f31 2e31 0d0a  GET./.HTTP/1.1..\n\
///      \t0x0010:  7f                                       ."
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HexDump<'a>(pub &'a [u8]);

impl fmt::Display for HexDump<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const WIDTH: usize = 16;
        for (row, bytes) in self.0.chunks(WIDTH).enumerate() {
            if row > 0 {
                f.write_str("\n")?;
            }
            write!(f, "\t0x{:04x}: ", row * WIDTH)?;
            for column in 0..WIDTH {
                if column % 2 == 0 {
                    f.write_str(" ")?;
                }
                match bytes.get(column) {
                    Some(byte) => write!(f, "{byte:02x}")?,
                    None => f.write_str("  ")?,
                }
            }
            f.write_str("  ")?;
            for byte in bytes {
                let shown = if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
                write!(f, "{shown}")?;
            }
        }
        Ok(())
    }
}
