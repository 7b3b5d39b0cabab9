//! Random streams, for tests that compare implementations (feature `strategy`).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use proptest::prelude::*;

use super::{
    Advance, ByteOrder, Checksum, Program, PseudoHeader, Speed, Step, Stream, Transmission, Values,
    Variable, Write,
};

fn values() -> impl Strategy<Value = Values> {
    let counter = (0..50_u128, 1..300_u128, 1..4_u128, any::<u8>(), any::<bool>(), any::<bool>());
    let counter = counter.prop_map(|(min, count, step, start, downwards, is_high)| {
        let min = if is_high { u128::from(u64::MAX) - min } else { min };
        let max = min + count * step - 1;
        let start = min + u128::from(start) % (max - min + 1);
        Values::Counter { start, min, max, step, downwards }
    });
    prop_oneof![
        4 => counter,
        2 => prop::collection::vec(any::<u128>(), 1..6).prop_map(Values::List),
        1 => (0..5_u128, any::<u128>(), any::<u64>())
            .prop_map(|(min, max, seed)| Values::Random { min, max: max.max(9), seed }),
        1 => any::<u64>().prop_map(|seed| Values::Weighted {
            choices: vec![(1, 3), (2, 0), (u128::MAX, 5)], seed,
        }),
    ]
}

fn variables() -> impl Strategy<Value = Vec<Variable>> {
    let one = (values(), prop::option::of(1..40_u64), any::<bool>());
    prop::collection::vec(one, 1..4).prop_map(|list| {
        let count = list.len();
        let variable = |(index, (values, restart_after, nested)): (usize, (_, Option<u64>, _))| {
            let advance = match nested && index + 1 < count {
                true => Advance::WhenWraps(index + 1),
                false => Advance::EveryFrame,
            };
            Variable { values, advance, restart_after: restart_after.and_then(NonZeroU64::new) }
        };
        list.into_iter().enumerate().map(variable).collect()
    })
}

fn writes() -> impl Strategy<Value = Vec<Step>> {
    let width = prop_oneof![Just(1_usize), Just(2), Just(3), Just(4), Just(8), Just(16)];
    let mask = prop_oneof![4 => Just(u128::MAX), 1 => any::<u128>()];
    let shift = prop_oneof![4 => Just(0), 1 => -20..20_i32];
    let one = (any::<usize>(), 12..74_usize, width, any::<u128>(), shift, mask, any::<bool>());
    let one = one.prop_map(|(variable, offset, width, add, shift, mask, is_little)| {
        let order = if is_little { ByteOrder::Little } else { ByteOrder::Network };
        Step::Write(Write { variable, offset, width, add, shift, mask, order })
    });
    prop::collection::vec(one, 0..4)
}

fn checksums() -> impl Strategy<Value = Vec<Step>> {
    let header = any::<bool>().prop_map(|is_present| {
        is_present.then_some(Checksum::Internet {
            offset: 24,
            start: 14,
            end: Some(34),
            pseudo_header: PseudoHeader::None,
            never_zero: false,
        })
    });
    let pseudo = prop_oneof![
        Just(PseudoHeader::None),
        Just(PseudoHeader::Ipv4 { header: 14, protocol: 17 }),
        Just(PseudoHeader::Ipv6 { header: 14, protocol: 6 }),
    ];
    let internet = (54..57_usize, 0..6_usize, any::<bool>(), pseudo, any::<bool>());
    let internet = internet.prop_map(|(start, behind, is_short, pseudo_header, never_zero)| {
        let end = is_short.then_some(69);
        Checksum::Internet { offset: start + behind, start, end, pseudo_header, never_zero }
    });
    let crc = (54..60_usize).prop_map(|start| Checksum::Crc32c { offset: start + 3, start });
    let transport =
        prop_oneof![3 => internet.prop_map(Some), 1 => crc.prop_map(Some), 1 => Just(None)];
    (header, transport).prop_map(|(header, transport)| {
        header.into_iter().chain(transport).map(Step::Checksum).collect()
    })
}

/// Generates streams of frames of 90 to 99 bytes, at top speed: all kinds of values, writes and
/// checksums, in some streams several lengths.
pub fn contents() -> impl Strategy<Value = Stream> {
    let parts = (
        prop::collection::vec(any::<u8>(), 90..100),
        variables(),
        writes(),
        prop::option::of((any::<usize>(), 0..100_u128, any::<bool>())),
        checksums(),
        any::<bool>(),
    );
    parts.prop_map(|(mut template, mut variables, mut steps, length, checksums, is_measured)| {
        for step in &mut steps {
            if let Step::Write(Write { variable, .. }) = step {
                *variable %= variables.len();
            }
        }
        if let Some((_, least, is_written)) = length {
            // All lengths leave room for headers and a signature.
            let values = (0..5).map(|more| 88 + (least + 7 * more) % 12).collect();
            steps.push(Step::Length { variable: variables.len() });
            variables.push(Variable::new(Values::List(values)));
            if is_written {
                steps.push(Step::WriteLength { offset: 16, less: 14 });
            }
        }
        if is_measured {
            let place = template.len() - 18;
            template[place..].fill(0);
        }
        steps.extend(checksums);
        Stream {
            name: String::new(),
            template,
            program: Program { variables, steps },
            transmission: Transmission::continuous(Speed::Max),
            is_measured,
            trailer: 0,
            is_marked: false,
            member: None,
        }
    })
}
