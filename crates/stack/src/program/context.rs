//! Resources of the endpoint that programs share.

use super::findings::ProgramResults;
use super::{Buffers, Statistics};
use crate::content::SessionCounters;
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;
use wirestorm_base::random::Random;

/// Steps after which a program yields: one that never waits must not block the others.
pub(super) const STEPS_MAX: u32 = 1_000;

/// Resources of the endpoint that programs share.
pub(crate) struct ProgramContext<'a> {
    pub(crate) buffers: &'a Buffers,
    pub(crate) random: &'a mut Random,
    pub(crate) statistics: &'a mut Statistics,
    pub(crate) findings: &'a mut ProgramResults,
    pub(crate) counters: &'a mut TcpCounters,
    pub(crate) sessions: &'a mut SessionCounters,
    pub(crate) now: Now,
}
