//! Owners of an endpoint's templates, for reports.

use super::findings::ProgramNames;

/// Side of a plan's template that one template of an endpoint implements.
#[derive(Clone, Debug)]
pub(in crate::emulation) struct TemplateOwner {
    /// Name of the plan's template.
    pub(in crate::emulation) name: String,
    pub(in crate::emulation) group: Option<String>,
    /// `client` or `server`.
    pub(in crate::emulation) side: &'static str,
    pub(in crate::emulation) has_tls: bool,
    /// Whether the program receives HTTP/1.1 messages.
    pub(in crate::emulation) has_http1: bool,
    pub(in crate::emulation) has_http2: bool,
    /// Names and plan paths of the program.
    pub(in crate::emulation) names: ProgramNames,
}
