//! Printing to whoever may have stopped to read: the macros of the standard library panic there.

use std::fmt::Arguments;
use std::io::{self, Write};

/// As the standard library's, but what nobody reads any more is dropped.
macro_rules! print {
    ($($text:tt)*) => { $crate::printing::output(format_args!($($text)*)) };
}

/// As the standard library's, but what nobody reads any more is dropped.
macro_rules! println {
    ($($text:tt)*) => { $crate::printing::output(format_args!("{}\n", format_args!($($text)*))) };
}

/// As the standard library's, but what nobody reads any more is dropped.
macro_rules! eprint {
    ($($text:tt)*) => { $crate::printing::message(format_args!($($text)*)) };
}

/// As the standard library's, but what nobody reads any more is dropped.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::printing::message(format_args!("{}\n", format_args!($($text)*))) };
}

/// To standard output.
pub(crate) fn output(text: Arguments<'_>) {
    let _ = io::stdout().write_fmt(text);
}

/// To standard error.
pub(crate) fn message(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}
