//! Edits of Ethernet addresses.

use alloc::sync::Arc;

use wirestorm_wire::packet::MacAddress;

use super::frame::Frame;
use super::random::Random;
use wirestorm_model::edit::{EditOptions, MacSubstitution};

const DESTINATION: usize = 0;
const SOURCE: usize = 6;

/// New Ethernet addresses.
#[derive(Clone, Debug)]
pub(super) struct LinkEdits {
    destination: Option<[MacAddress; 2]>,
    source: Option<[MacAddress; 2]>,
    substitutions: Arc<[MacSubstitution]>,
    /// Mask for the bytes of an address, and the number of leading bytes to keep.
    mask: Option<([u8; 6], usize)>,
    keep_groups: bool,
}

impl LinkEdits {
    pub(super) fn new(options: &EditOptions) -> Self {
        Self {
            destination: options.destination_mac,
            source: options.source_mac,
            substitutions: options.substituted_macs.as_slice().into(),
            mask: options
                .mac_seed
                .map(|seed| (Random::mac_mask(seed.seed), usize::from(seed.keep_bytes))),
            keep_groups: options.keep_group_macs,
        }
    }

    #[inline]
    pub(super) fn edit(&self, frame: &mut Frame) {
        if let Some(new) = self.destination
            && let Some(old) = frame.mac_at(DESTINATION)
            && !(self.keep_groups && old.is_multicast())
            && !is_ip_multicast_mac(old)
        {
            frame.write(DESTINATION, &address_of_side(new, frame).0);
        }
        if let Some(new) = self.source {
            frame.write(SOURCE, &address_of_side(new, frame).0);
        }
        if self.mask.is_some() || !self.substitutions.is_empty() {
            self.replace(frame, 0);
            if let Some(inner) = frame.inner_ethernet() {
                self.replace(frame, inner);
            }
        }
    }

    /// Replaces both addresses of the Ethernet header at `at`, by substitution or by mask.
    fn replace(&self, frame: &mut Frame, at: usize) {
        for at in [at + DESTINATION, at + SOURCE] {
            let Some(old) = frame.mac_at(at) else { return };
            if self.keep_groups && old.is_multicast() {
                continue;
            }
            let substitution = self.substitutions.iter().find(|entry| entry.from == old);
            if let Some(substitution) = substitution {
                frame.write(at, &substitution.to.0);
            } else if let Some((mask, keep)) = &self.mask
                && !old.is_multicast()
            {
                let mut new = old.0;
                for (byte, mask) in new.iter_mut().zip(mask).skip(*keep) {
                    *byte = (*byte ^ mask).wrapping_sub(*byte & mask);
                }
                frame.write(at, &new);
            }
        }
    }
}

#[inline]
fn address_of_side([primary, secondary]: [MacAddress; 2], frame: &Frame) -> MacAddress {
    if frame.side == 0 { primary } else { secondary }
}

/// Returns whether an address maps an IP multicast group (RFC 1112 section 6.4, RFC 2464 section
/// 7). Members of the group ignore frames with another address.
const fn is_ip_multicast_mac(address: MacAddress) -> bool {
    matches!(address.0, [0x01, 0x00, 0x5e, 0..=0x7f, _, _] | [0x33, 0x33, ..])
}
