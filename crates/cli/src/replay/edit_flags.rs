//! Flags of `wirestorm replay` and tcpreplay-edit that change frames before they are sent.

use clap::Args;
use wirestorm_control::plan::edit::EditArguments;

/// Declares the flags and their conversion to the plan's words from one list.
macro_rules! edit_flags {
    ($(
        $(#[$attribute:meta])*
        $name:ident: $kind:ty,
    )*) => {
        /// Flags that change frames before they are sent.
        #[derive(Args, Debug, Default)]
        #[command(next_help_heading = "Edits")]
        pub(crate) struct EditFlags {
            $($(#[$attribute])* pub(crate) $name: $kind,)*
        }

        impl EditFlags {
            /// Returns the values as words for the plan.
            pub(super) fn words(&self) -> EditArguments {
                EditArguments { $($name: self.$name.clone(),)* }
            }
        }
    };
}

edit_flags! {
    /// Destination MAC address; MAC,MAC: client side, server side
    #[arg(long, value_name = "MAC")]
    enet_dmac: Option<String>,

    /// Source MAC address; MAC,MAC: client side, server side
    #[arg(long, value_name = "MAC")]
    enet_smac: Option<String>,

    /// Replace a MAC address everywhere; repeatable
    #[arg(long, value_name = "OLD,NEW")]
    enet_subsmac: Vec<String>,

    /// Randomize MAC addresses with this seed
    #[arg(long, value_name = "SEED")]
    enet_mac_seed: Option<String>,

    /// Keep the first N bytes of MAC addresses (with --enet-mac-seed)
    #[arg(long, value_name = "BYTES")]
    enet_mac_seed_keep_bytes: Option<String>,

    /// Do not change broadcast and multicast MAC addresses
    #[arg(long)]
    skipl2broadcast: bool,

    /// VLAN action: add, del, del-all, set or set-inner
    #[arg(long, value_name = "ACTION")]
    enet_vlan: Option<String>,

    /// VLAN ID
    #[arg(long, value_name = "0-4095")]
    enet_vlan_tag: Option<String>,

    /// VLAN drop eligible indicator (CFI)
    #[arg(long, value_name = "0-1")]
    enet_vlan_cfi: Option<String>,

    /// VLAN priority (PCP)
    #[arg(long, value_name = "0-7")]
    enet_vlan_pri: Option<String>,

    /// VLAN tag type: 802.1q or 802.1ad
    #[arg(long, value_name = "TYPE")]
    enet_vlan_proto: Option<String>,

    /// Rewrite address prefixes: 10.0.0.0/8:172.16.0.0/12; second: server side
    #[arg(short = 'N', long, value_name = "MAP")]
    pnat: Vec<String>,

    /// Rewrite source address prefixes
    #[arg(short = 'S', long, value_name = "MAP")]
    srcipmap: Option<String>,

    /// Rewrite destination address prefixes
    #[arg(short = 'D', long, value_name = "MAP")]
    dstipmap: Option<String>,

    /// Rewrite all addresses to CLIENT:SERVER (needs --cachefile or --split)
    #[arg(short = 'e', long, value_name = "IP:IP")]
    endpoints: Option<String>,

    /// Randomize IP addresses with this seed
    #[arg(short = 's', long, value_name = "SEED")]
    seed: Option<String>,

    /// Do not change broadcast and multicast IP addresses
    #[arg(short = 'b', long)]
    skipbroadcast: bool,

    /// Rewrite ports: 80:8080, 8000,8080:80 or 1-100:49148; repeatable
    #[arg(short = 'r', long, value_name = "MAP")]
    portmap: Vec<String>,

    /// Shift TCP sequence numbers by a seeded offset
    #[arg(long, value_name = "SEED")]
    tcp_sequence: Option<String>,

    /// Set TTL and hop limit: N, +N or -N
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    ttl: Option<String>,

    /// Set the IPv4 TOS byte
    #[arg(long, value_name = "0-255")]
    tos: Option<String>,

    /// Set the IPv6 traffic class
    #[arg(long, value_name = "0-255")]
    tclass: Option<String>,

    /// Set the IPv6 flow label
    #[arg(long, value_name = "0-1048575")]
    flowlabel: Option<String>,

    /// Truncated packets: pad, trunc or del
    #[arg(short = 'F', long, value_name = "ACTION")]
    fixlen: Option<String>,

    /// MTU for --mtu-trunc
    #[arg(short = 'm', long, value_name = "BYTES")]
    mtu: Option<String>,

    /// Truncate packets to the MTU
    #[arg(long)]
    mtu_trunc: bool,

    /// Remove the FCS (last 4 bytes) of every frame
    #[arg(short = 'E', long)]
    efcs: bool,

    /// Recalculate all checksums
    #[arg(short = 'C', long)]
    fixcsum: bool,

    /// Set the IP length to match the frame
    #[arg(long)]
    fixhdrlen: bool,

    /// Corrupt payloads with this seed; 0: off
    #[arg(long, value_name = "SEED")]
    fuzz_seed: Option<String>,

    /// Corrupt one of N packets
    #[arg(long, value_name = "N")]
    fuzz_factor: Option<String>,
}
