//! The flags that change frames on their way out, as they are typed.

use clap::Args;
use wirestorm_control::plan::edit::EditWords;

/// Declares the flags and their translation into words from one list.
macro_rules! edit_flags {
    ($(
        $(#[$attribute:meta])*
        $name:ident: $kind:ty,
    )*) => {
        /// Changes to frames on their way out.
        #[derive(Args, Debug, Default)]
        #[command(next_help_heading = "Edits")]
        pub(crate) struct EditFlags {
            $($(#[$attribute])* pub(crate) $name: $kind,)*
        }

        impl EditFlags {
            /// The words for the plan.
            pub(super) fn words(&self) -> EditWords {
                EditWords { $($name: self.$name.clone(),)* }
            }
        }
    };
}

edit_flags! {
    /// Destination MAC address; a second one for the server side: MAC,MAC.
    #[arg(long, value_name = "MAC")]
    enet_dmac: Option<String>,

    /// Source MAC address; a second one for the server side: MAC,MAC.
    #[arg(long, value_name = "MAC")]
    enet_smac: Option<String>,

    /// Replace one MAC address by another wherever it stands; several times.
    #[arg(long, value_name = "OLD,NEW")]
    enet_subsmac: Vec<String>,

    /// Other MAC addresses for all stations, the same for the same seed.
    #[arg(long, value_name = "SEED")]
    enet_mac_seed: Option<String>,

    /// Leave the first bytes of addresses as they are (with --enet-mac-seed).
    #[arg(long, value_name = "BYTES")]
    enet_mac_seed_keep_bytes: Option<String>,

    /// Leave broadcast and multicast MAC addresses as they are.
    #[arg(long)]
    skipl2broadcast: bool,

    /// VLAN tag: add, del, del-all, set or set-inner.
    #[arg(long, value_name = "ACTION")]
    enet_vlan: Option<String>,

    /// VLAN identifier.
    #[arg(long, value_name = "0-4095")]
    enet_vlan_tag: Option<String>,

    /// VLAN drop eligible (canonical format) bit.
    #[arg(long, value_name = "0-1")]
    enet_vlan_cfi: Option<String>,

    /// VLAN priority.
    #[arg(long, value_name = "0-7")]
    enet_vlan_pri: Option<String>,

    /// VLAN type: 802.1q or 802.1ad.
    #[arg(long, value_name = "TYPE")]
    enet_vlan_proto: Option<String>,

    /// Map addresses by prefix, both ways: 10.0.0.0/8:172.16.0.0/12; a second time for the
    /// server side.
    #[arg(short = 'N', long, value_name = "MAP")]
    pnat: Vec<String>,

    /// Map source addresses by prefix.
    #[arg(short = 'S', long, value_name = "MAP")]
    srcipmap: Option<String>,

    /// Map destination addresses by prefix.
    #[arg(short = 'D', long, value_name = "MAP")]
    dstipmap: Option<String>,

    /// All traffic between these two addresses; needs to know the sides.
    #[arg(short = 'e', long, value_name = "IP:IP")]
    endpoints: Option<String>,

    /// Other IP addresses for all hosts, the same for the same seed.
    #[arg(short = 's', long, value_name = "SEED")]
    seed: Option<String>,

    /// Leave broadcast and multicast IP addresses as they are.
    #[arg(short = 'b', long)]
    skipbroadcast: bool,

    /// Map ports: 80:8080, 8000,8080:80 or 1-100:49148; several times.
    #[arg(short = 'r', long, value_name = "MAP")]
    portmap: Vec<String>,

    /// Shift TCP sequence numbers by an amount that the seed decides.
    #[arg(long, value_name = "SEED")]
    tcp_sequence: Option<String>,

    /// Time to live and hop limit: N, +N or -N.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    ttl: Option<String>,

    /// IPv4 type of service.
    #[arg(long, value_name = "0-255")]
    tos: Option<String>,

    /// IPv6 traffic class.
    #[arg(long, value_name = "0-255")]
    tclass: Option<String>,

    /// IPv6 flow label.
    #[arg(long, value_name = "0-1048575")]
    flowlabel: Option<String>,

    /// Frames that the capture cut: pad, trunc or del.
    #[arg(short = 'F', long, value_name = "ACTION")]
    fixlen: Option<String>,

    /// Longest IP packet for --mtu-trunc.
    #[arg(short = 'm', long, value_name = "BYTES")]
    mtu: Option<String>,

    /// Cut longer packets to the MTU.
    #[arg(long)]
    mtu_trunc: bool,

    /// Take the last 4 bytes off every frame: they are its FCS.
    #[arg(short = 'E', long)]
    efcs: bool,

    /// Make all checksums right.
    #[arg(short = 'C', long)]
    fixcsum: bool,

    /// Make the IP length follow the frame.
    #[arg(long)]
    fixhdrlen: bool,

    /// Damage payloads, the same for the same seed; 0: not.
    #[arg(long, value_name = "SEED")]
    fuzz_seed: Option<String>,

    /// Damage one of N packets.
    #[arg(long, value_name = "N")]
    fuzz_factor: Option<String>,
}
