//! Configurations as clients send them, and the frames that they make.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read fixtures and write captures"
)]

mod devices;
mod egress;
mod frames;
mod headers;
mod limits;
mod support;
