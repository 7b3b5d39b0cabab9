//! The command `wirestorm` as its users know it, in network namespaces of its own.

mod emulation;
mod links;
mod replay;
mod streams;
