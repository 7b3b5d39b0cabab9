//! The edit options as text, and their combined meaning.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wirestorm_wire::packet::ethertype;

use super::error::EditError;
use super::parse::{
    ENTRIES_MAX, malformed, number, parse_captured_short, parse_endpoints, parse_mac_addresses,
    parse_mac_substitution, parse_port_map, parse_prefix_mappings, parse_time_to_live,
};
use serde::Deserialize;

use super::{EditOptions, Fuzz, MacSeed, Prefix, PrefixReplacement, VlanChange, VlanEdit, VlanTag};

/// Values of the edit options, as given on the command line, or in JSON with the same names:
/// `{"enet-dmac": "02:00:00:00:00:01", "portmap": ["80:8080"]}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EditArguments {
    /// `--portmap`, one entry per occurrence.
    pub portmap: Vec<String>,
    /// `--seed`.
    pub seed: Option<String>,
    /// `--pnat`; the second occurrence maps the addresses of the other side.
    pub pnat: Vec<String>,
    /// `--srcipmap`.
    pub srcipmap: Option<String>,
    /// `--dstipmap`.
    pub dstipmap: Option<String>,
    /// `--endpoints`.
    pub endpoints: Option<String>,
    /// `--tcp-sequence`.
    pub tcp_sequence: Option<String>,
    /// `--skipbroadcast`.
    pub skipbroadcast: bool,
    /// `--fixcsum`.
    pub fixcsum: bool,
    /// `--fixhdrlen`.
    pub fixhdrlen: bool,
    /// `--mtu`.
    pub mtu: Option<String>,
    /// `--mtu-trunc`.
    pub mtu_trunc: bool,
    /// `--efcs`.
    pub efcs: bool,
    /// `--ttl`.
    pub ttl: Option<String>,
    /// `--tos`.
    pub tos: Option<String>,
    /// `--tclass`.
    pub tclass: Option<String>,
    /// `--flowlabel`.
    pub flowlabel: Option<String>,
    /// `--fixlen`.
    pub fixlen: Option<String>,
    /// `--fuzz-seed`.
    pub fuzz_seed: Option<String>,
    /// `--fuzz-factor`.
    pub fuzz_factor: Option<String>,
    /// `--skipl2broadcast`.
    pub skipl2broadcast: bool,
    /// `--enet-dmac`.
    pub enet_dmac: Option<String>,
    /// `--enet-smac`.
    pub enet_smac: Option<String>,
    /// `--enet-subsmac`, one entry per occurrence.
    pub enet_subsmac: Vec<String>,
    /// `--enet-mac-seed`.
    pub enet_mac_seed: Option<String>,
    /// `--enet-mac-seed-keep-bytes`.
    pub enet_mac_seed_keep_bytes: Option<String>,
    /// `--enet-vlan`: `add`, `del`, `del-all`, `set` or `set-inner`.
    pub enet_vlan: Option<String>,
    /// `--enet-vlan-tag`.
    pub enet_vlan_tag: Option<String>,
    /// `--enet-vlan-cfi`.
    pub enet_vlan_cfi: Option<String>,
    /// `--enet-vlan-pri`.
    pub enet_vlan_pri: Option<String>,
    /// `--enet-vlan-proto`: `802.1q` or `802.1ad`.
    pub enet_vlan_proto: Option<String>,
}

const MTU_DEFAULT: u32 = 1500;
/// Maximum length of a capture record.
const MTU_MAX: u64 = 262_144;
const FUZZ_FACTOR_DEFAULT: u32 = 8;
const SEED: &str = "a number of 0 to 4294967295";

impl EditArguments {
    /// Parses the options.
    ///
    /// # Errors
    /// Returns an error for an invalid value, or for options that conflict or need another one.
    pub fn parse(&self) -> Result<EditOptions, EditError> {
        self.check_conflicts()?;
        let [source_addresses, destination_addresses] = self.addresses()?;
        Ok(EditOptions {
            remove_fcs: self.efcs,
            destination_mac: read(&self.enet_dmac, "enet-dmac", parse_mac_addresses)?,
            source_mac: read(&self.enet_smac, "enet-smac", parse_mac_addresses)?,
            substituted_macs: self.substituted_macs()?,
            mac_seed: self.mac_seed()?,
            keep_group_macs: self.skipl2broadcast,
            vlan: self.vlan()?,
            type_of_service: read(&self.tos, "tos", byte)?,
            traffic_class: read(&self.tclass, "tclass", byte)?,
            flow_label: read(&self.flowlabel, "flowlabel", |option, text| {
                number(option, text, 0..=0x000f_ffff, "a number of 0 to 1048575")
            })?,
            time_to_live: read(&self.ttl, "ttl", parse_time_to_live)?,
            port_map: self.port_map()?,
            tcp_sequence_seed: read(&self.tcp_sequence, "tcp-sequence", |option, text| {
                number(option, text, 1..=u64::from(u32::MAX), "a number of 1 to 4294967295")
            })?,
            fuzz: self.fuzz()?,
            truncated_frames: read(&self.fixlen, "fixlen", parse_captured_short)?,
            mtu_truncate: self.mtu_truncate()?,
            source_addresses,
            destination_addresses,
            address_seed: read(&self.seed, "seed", seed)?,
            keep_group_addresses: self.skipbroadcast,
            fix_header_length: self.fixhdrlen,
            fix_checksums: self.fixcsum,
        })
    }
}

/// Parses an optional value.
fn read<T>(
    word: &Option<String>,
    option: &'static str,
    parse: impl FnOnce(&'static str, &str) -> Result<T, EditError>,
) -> Result<Option<T>, EditError> {
    word.as_deref().map(|text| parse(option, text)).transpose()
}

fn byte(option: &'static str, text: &str) -> Result<u8, EditError> {
    number(option, text, 0..=255, "a number of 0 to 255")
}

fn seed(option: &'static str, text: &str) -> Result<u32, EditError> {
    number(option, text, 0..=u64::from(u32::MAX), SEED)
}

impl EditArguments {
    fn check_conflicts(&self) -> Result<(), EditError> {
        let pnat = !self.pnat.is_empty();
        let conflicts = [
            ("pnat", pnat, "srcipmap", self.srcipmap.is_some()),
            ("pnat", pnat, "dstipmap", self.dstipmap.is_some()),
            ("endpoints", self.endpoints.is_some(), "pnat", pnat),
            ("endpoints", self.endpoints.is_some(), "srcipmap", self.srcipmap.is_some()),
            ("endpoints", self.endpoints.is_some(), "dstipmap", self.dstipmap.is_some()),
            ("enet-mac-seed", self.enet_mac_seed.is_some(), "enet-dmac", self.enet_dmac.is_some()),
            ("enet-mac-seed", self.enet_mac_seed.is_some(), "enet-smac", self.enet_smac.is_some()),
            (
                "enet-mac-seed",
                self.enet_mac_seed.is_some(),
                "enet-subsmac",
                !self.enet_subsmac.is_empty(),
            ),
        ];
        for (option, is_set, other, other_is_set) in conflicts {
            if is_set && other_is_set {
                return Err(EditError::Conflict { option, other });
            }
        }
        Ok(())
    }

    /// Returns the mappings of source and destination addresses, each by side.
    fn addresses(&self) -> Result<[[Vec<PrefixReplacement>; 2]; 2], EditError> {
        if let Some([client, server]) = read(&self.endpoints, "endpoints", parse_endpoints)? {
            let (client, server) = (vec![all_to(client)], vec![all_to(server)]);
            return Ok([[client.clone(), server.clone()], [server, client]]);
        }
        let pnat = |text: &String| parse_prefix_mappings("pnat", text);
        match self.pnat.as_slice() {
            [] => {
                let source = read(&self.srcipmap, "srcipmap", parse_prefix_mappings)?;
                let destination = read(&self.dstipmap, "dstipmap", parse_prefix_mappings)?;
                let both = |list: Option<Vec<_>>| {
                    list.map_or_else(Default::default, |list| [list.clone(), list])
                };
                Ok([both(source), both(destination)])
            }
            [all] => {
                let all = pnat(all)?;
                Ok([[all.clone(), all.clone()], [all.clone(), all]])
            }
            // The first list maps client addresses, the second server addresses.
            [clients, servers] => {
                let (clients, servers) = (pnat(clients)?, pnat(servers)?);
                Ok([[clients.clone(), servers.clone()], [servers, clients]])
            }
            more => Err(EditError::TooMany { option: "pnat", found: more.len(), limit: 2 }),
        }
    }

    fn substituted_macs(&self) -> Result<Vec<super::MacSubstitution>, EditError> {
        const OPTION: &str = "enet-subsmac";
        let found = self.enet_subsmac.len();
        if found > ENTRIES_MAX {
            return Err(EditError::TooMany { option: OPTION, found, limit: ENTRIES_MAX });
        }
        self.enet_subsmac.iter().map(|text| parse_mac_substitution(OPTION, text)).collect()
    }

    fn mac_seed(&self) -> Result<Option<MacSeed>, EditError> {
        const KEEP: &str = "enet-mac-seed-keep-bytes";
        let keep = read(&self.enet_mac_seed_keep_bytes, KEEP, |option, text| {
            number(option, text, 1..=6, "a number of 1 to 6")
        })?;
        match (read(&self.enet_mac_seed, "enet-mac-seed", seed)?, keep) {
            (None, Some(_)) => Err(EditError::Needs { option: KEEP, needs: "enet-mac-seed" }),
            (seed, keep) => {
                Ok(seed.map(|seed| MacSeed { seed, keep_bytes: keep.unwrap_or_default() }))
            }
        }
    }

    fn port_map(&self) -> Result<Vec<super::PortReplacement>, EditError> {
        const OPTION: &str = "portmap";
        let mut all = Vec::new();
        for text in &self.portmap {
            all.extend(parse_port_map(OPTION, text)?);
            if all.len() > ENTRIES_MAX {
                let found = all.len();
                return Err(EditError::TooMany { option: OPTION, found, limit: ENTRIES_MAX });
            }
        }
        Ok(all)
    }

    fn fuzz(&self) -> Result<Option<Fuzz>, EditError> {
        let factor = read(&self.fuzz_factor, "fuzz-factor", |option, text| {
            number(option, text, 1..=u64::from(u32::MAX), "a number of 1 to 4294967295")
        })?;
        match (read(&self.fuzz_seed, "fuzz-seed", seed)?, factor) {
            (None, Some(_)) => Err(EditError::Needs { option: "fuzz-factor", needs: "fuzz-seed" }),
            // As in tcpreplay, a seed of zero turns fuzzing off.
            (None | Some(0), _) => Ok(None),
            (Some(seed), factor) => {
                Ok(Some(Fuzz { seed, factor: factor.unwrap_or(FUZZ_FACTOR_DEFAULT) }))
            }
        }
    }

    /// Returns the length to truncate to. Without `--mtu-trunc` the MTU has no effect.
    fn mtu_truncate(&self) -> Result<Option<u32>, EditError> {
        let mtu = read(&self.mtu, "mtu", |option, text| {
            number(option, text, 1..=MTU_MAX, "a number of 1 to 262144")
        })?;
        Ok(self.mtu_trunc.then_some(mtu.unwrap_or(MTU_DEFAULT)))
    }

    fn vlan(&self) -> Result<Option<VlanEdit>, EditError> {
        const OPTION: &str = "enet-vlan";
        let Some(word) = &self.enet_vlan else {
            return match self.vlan_field() {
                Some(option) => Err(EditError::Needs { option, needs: OPTION }),
                None => Ok(None),
            };
        };
        let change = self.vlan_change()?;
        let edit = match word.as_str() {
            "add" => {
                let Some(identifier) = change.identifier else {
                    return Err(EditError::Needs {
                        option: "enet-vlan=add",
                        needs: "enet-vlan-tag",
                    });
                };
                VlanEdit::Add(VlanTag {
                    ethertype: change.ethertype.unwrap_or(ethertype::VLAN),
                    identifier,
                    priority: change.priority.unwrap_or_default(),
                    drop_eligible: change.drop_eligible.unwrap_or_default(),
                })
            }
            "del" | "del-all" => {
                if let Some(option) = self.vlan_field() {
                    return Err(EditError::Needs { option, needs: "enet-vlan=add or set" });
                }
                if word == "del" { VlanEdit::DeleteOuter } else { VlanEdit::DeleteAll }
            }
            "set" | "set-inner" => {
                if change == VlanChange::default() {
                    return Err(EditError::Needs {
                        option: "enet-vlan=set",
                        needs: "enet-vlan-tag, -pri, -cfi or -proto",
                    });
                }
                if word == "set" { VlanEdit::SetOuter(change) } else { VlanEdit::SetInner(change) }
            }
            _ => {
                return Err(malformed(OPTION, word, "add, del, del-all, set or set-inner"));
            }
        };
        Ok(Some(edit))
    }

    /// Returns the first VLAN tag option that is set.
    fn vlan_field(&self) -> Option<&'static str> {
        let fields = [
            ("enet-vlan-tag", &self.enet_vlan_tag),
            ("enet-vlan-cfi", &self.enet_vlan_cfi),
            ("enet-vlan-pri", &self.enet_vlan_pri),
            ("enet-vlan-proto", &self.enet_vlan_proto),
        ];
        fields.into_iter().find(|(_, word)| word.is_some()).map(|(option, _)| option)
    }

    fn vlan_change(&self) -> Result<VlanChange, EditError> {
        let proto = |option, text: &str| match text {
            "802.1q" => Ok(ethertype::VLAN),
            "802.1ad" => Ok(ethertype::SERVICE_VLAN),
            _ => Err(malformed(option, text, "802.1q or 802.1ad")),
        };
        let cfi = |option, text: &str| number::<u8>(option, text, 0..=1, "0 or 1");
        Ok(VlanChange {
            ethertype: read(&self.enet_vlan_proto, "enet-vlan-proto", proto)?,
            identifier: read(&self.enet_vlan_tag, "enet-vlan-tag", |option, text| {
                number(option, text, 0..=4095, "a number of 0 to 4095")
            })?,
            priority: read(&self.enet_vlan_pri, "enet-vlan-pri", |option, text| {
                number(option, text, 0..=7, "a number of 0 to 7")
            })?,
            drop_eligible: read(&self.enet_vlan_cfi, "enet-vlan-cfi", cfi)?.map(|bit| bit == 1),
        })
    }
}

/// Maps every address of the same IP version to this one.
fn all_to(address: IpAddr) -> PrefixReplacement {
    let (unspecified, length) = match address {
        IpAddr::V4(_) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 32),
        IpAddr::V6(_) => (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
    };
    PrefixReplacement {
        from: Prefix { address: unspecified, length: 0 },
        to: Prefix { address, length },
    }
}
