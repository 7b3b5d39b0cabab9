//! The templates of an endpoint, for reports.

use super::findings::Told;

/// Whose the templates of an endpoint are, in their order.
#[derive(Clone, Debug)]
pub(in crate::emulation) struct Owner {
    pub(in crate::emulation) name: String,
    pub(in crate::emulation) group: Option<String>,
    pub(in crate::emulation) side: &'static str,
    pub(in crate::emulation) has_tls: bool,
    /// Whether its program follows messages of HTTP/1.1.
    pub(in crate::emulation) has_http1: bool,
    pub(in crate::emulation) has_http2: bool,
    pub(in crate::emulation) told: Told,
}
