//! Wire formats and capture formats: capture files, packet views, checksums, flows.
//!
//! This crate is pure: bytes go in, bytes and values come out. It opens no file. It allocates
//! nothing per packet, except to reassemble fragments. No input can make it panic.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod capture;
pub mod checksum;
pub mod conversation;
pub mod dissect;
pub mod flow;
pub mod fragment;
pub mod kernel_frame;
pub mod layout;
pub mod mark;
pub mod packet;
pub mod pattern;
pub mod prefix;
pub mod print;
