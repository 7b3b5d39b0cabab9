//! Arbitrary text as the value of each option: a result or an error with a message, never a panic.

use wirestorm_base::rate::Rate;
use wirestorm_plan::edit::EditArguments;
use wirestorm_plan::replay::{
    parse_catch_up, parse_packet_list, parse_passes_milli, parse_percent, parse_seconds,
};
use wirestorm_plan::sides::parse_side_rule;
use wirestorm_plan::trex::{LowerOptions, lower};

use crate::arbitrary_input;

/// Checks one input.
pub fn run(input: &[u8]) {
    let Some(text) = arbitrary_input::<&str>(input) else { return };
    assert_message(parse_side_rule(text));
    assert_message(lower(text, &LowerOptions::simulator()));
    assert_message(parse_packet_list(text));
    assert_message(parse_catch_up(text));
    assert_message(parse_seconds(text));
    assert_message(parse_percent(text));
    assert_message(parse_passes_milli(text));
    for scale in [1, 1_000_000] {
        assert_message(Rate::parse_per_second(text, scale));
    }
    let word = || Some(text.to_owned());
    let words = |change: &dyn Fn(&mut EditArguments)| {
        let mut words = EditArguments::default();
        change(&mut words);
        assert_message(words.parse());
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
fn assert_message<T, E: std::fmt::Display>(outcome: Result<T, E>) {
    if let Err(error) = outcome {
        assert!(!error.to_string().is_empty());
    }
}
