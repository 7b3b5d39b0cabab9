//! Print macros that ignore write errors.
//!
//! The macros of the standard library panic when the reader has closed the pipe.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Like [`std::print`], but ignores write errors.
macro_rules! print {
    ($($text:tt)*) => { $crate::printing::output(format_args!($($text)*)) };
}

/// Like [`std::println`], but ignores write errors.
macro_rules! println {
    ($($text:tt)*) => { $crate::printing::output(format_args!("{}\n", format_args!($($text)*))) };
}

/// Like [`std::eprint`], but ignores write errors.
macro_rules! eprint {
    ($($text:tt)*) => { $crate::printing::message(format_args!($($text)*)) };
}

/// Like [`std::eprintln`], but ignores write errors.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::printing::message(format_args!("{}\n", format_args!($($text)*))) };
}

/// Writes to standard output.
pub(crate) fn output(text: Arguments<'_>) {
    let _ = io::stdout().write_fmt(text);
}

/// Writes to standard error.
pub(crate) fn message(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}
