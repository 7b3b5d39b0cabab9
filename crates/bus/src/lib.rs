//! Messages between the machines of a test.
#![forbid(unsafe_code)]
