//! Arbitrary text as the value of each option: a result or an error with a message, never a panic.

use wirestorm_base::rate::Rate;
use wirestorm_plan::edit::EditWords;
use wirestorm_plan::replay::{
    parse_catch_up, parse_packet_list, parse_passes_milli, parse_percent, parse_seconds,
};
use wirestorm_plan::sides::parse_side_rule;
use wirestorm_plan::trex::{LowerOptions, lower};

use crate::drawn;

/// Checks one input.
pub fn run(input: &[u8]) {
    let Some(text) = drawn::<&str>(input) else { return };
    told(parse_side_rule(text));
    told(lower(text, &LowerOptions::simulator()));
    told(parse_packet_list(text));
    told(parse_catch_up(text));
    told(parse_seconds(text));
    told(parse_percent(text));
    told(parse_passes_milli(text));
    for scale in [1, 1_000_000] {
        told(Rate::parse_per_second(text, scale));
    }
    let word = || Some(text.to_owned());
    let words = |change: &dyn Fn(&mut EditWords)| {
        let mut words = EditWords::default();
        change(&mut words);
        told(words.meaning());
    };
    words(&|it| it.portmap = vec![text.to_owned()]);
    words(&|it| it.seed = word());
    words(&|it| it.pnat = text.split(' ').map(str::to_owned).collect());
    words(&|it| it.srcipmap = word());
    words(&|it| it.dstipmap = word());
    words(&|it| it.endpoints = word());
    words(&|it| it.tcp_sequence = word());
    words(&|it| {
        it.mtu = word();
        it.mtu_trunc = true;
    });
    words(&|it| it.ttl = word());
    words(&|it| it.tos = word());
    words(&|it| it.tclass = word());
    words(&|it| it.flowlabel = word());
    words(&|it| it.fixlen = word());
    words(&|it| {
        it.fuzz_seed = word();
        it.fuzz_factor = word();
    });
    words(&|it| it.enet_dmac = word());
    words(&|it| it.enet_smac = word());
    words(&|it| it.enet_subsmac = vec![text.to_owned()]);
    words(&|it| {
        it.enet_mac_seed = word();
        it.enet_mac_seed_keep_bytes = word();
    });
    words(&|it| {
        it.enet_vlan = Some("add".to_owned());
        it.enet_vlan_tag = word();
    });
    words(&|it| {
        it.enet_vlan = word();
        it.enet_vlan_tag = Some("7".to_owned());
        it.enet_vlan_pri = word();
        it.enet_vlan_cfi = word();
        it.enet_vlan_proto = word();
    });
}

/// Checks that an error has a message.
fn told<T, E: std::fmt::Display>(outcome: Result<T, E>) {
    if let Err(error) = outcome {
        assert!(!error.to_string().is_empty());
    }
}
