//! The event loop of all connections of this process: one thread.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle};

use crate::BusError;

/// Returns the event loop; starts it at the first call. It lives as long as the process.
pub(super) fn handle() -> Result<&'static Handle, BusError> {
    static LOOP: OnceLock<Result<Handle, String>> = OnceLock::new();
    LOOP.get_or_init(|| start().map_err(|error| error.to_string()))
        .as_ref()
        .map_err(|reason| BusError::server("event loop of the bus", reason.as_str()))
}

fn start() -> std::io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("bus".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}
