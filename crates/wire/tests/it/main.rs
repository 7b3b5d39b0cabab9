//! Frames, conversations and capture files, with tshark as the reference.

mod capture_files;
mod common;
mod conversation;
mod fragments;
mod packets;
mod real_captures;
