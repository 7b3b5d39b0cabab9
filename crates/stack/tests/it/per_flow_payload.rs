//! Programs that write values and check received ones, on any network.

use wirestorm_base::time::Duration;
use wirestorm_model::program::{
    Composition, Delimiter, MessageFraming, MessagePart, Piece, TextVariable, Value, ValueFormat,
};
use wirestorm_stack::endpoint::Endpoint;
use wirestorm_stack::program::{
    Buffer, Buffers, Check, Contents, Extraction, Instruction, Program,
};

use crate::impaired::{Impairment, Side, World};

const MINUTE: Duration = Duration::from_secs(60);
/// Number of bytes before and after a key, more than a segment holds.
const AROUND: usize = 2_000;

fn key() -> TextVariable {
    TextVariable::new(0).unwrap()
}

/// Each side sends its own key within other bytes, and the other side repeats it.
fn side(speaks_first: bool, waits: bool) -> Side {
    let around = |piece| Composition {
        pieces: vec![
            Piece::Bytes(vec![b'.'; AROUND]),
            Piece::Bytes(b"<"[..].into()),
            piece,
            Piece::Bytes(b">"[..].into()),
            Piece::Bytes(vec![b'.'; AROUND]),
            Piece::Bytes(b"\n"[..].into()),
        ],
        ..Composition::default()
    };
    let key_value = Piece::Value(Value::Text(key()), ValueFormat::Plain);
    let contents = Contents {
        compositions: vec![
            Composition { pieces: vec![Piece::RandomText(500)], ..Composition::default() },
            around(key_value),
        ],
        rules: vec![MessageFraming::Until(Delimiter::new(b"\n").unwrap())],
        checks: vec![Check::Is(1)],
        extractions: vec![Extraction {
            text: key(),
            part: MessagePart::Between(b"<"[..].into(), b">"[..].into()),
        }],
        ..Contents::default()
    };
    let take = Instruction::Take { rule: 0, is_required: true };
    let send = Instruction::SendComposed { composition: 1 };
    let first = [
        Instruction::SetText { text: key(), composition: 0 },
        send,
        take,
        Instruction::Expect { check: 0 },
    ];
    let second = [take, Instruction::Extract { extraction: 0 }, send];
    let parts = if speaks_first { [&first[..], &second] } else { [&second[..], &first] };
    let begin = [Instruction::SendBlocking { waits }];
    let program = [&begin[..], parts[0], parts[1]].concat();
    Side { program, contents, sessions: None }
}

#[test]
fn written_values_are_matched_on_any_network() {
    for seed in 1..=25 {
        let waits = seed % 2 == 0;
        let sides = [side(true, waits), side(false, waits)];
        let mut world = World::new(sides, &Buffers::default(), [4, 4], Impairment::ROUGH, seed);
        world.run(MINUTE);
        for (side, endpoint) in [&world.client, &world.server].into_iter().enumerate() {
            let counters = endpoint.counters();
            assert_eq!(failures(endpoint), [], "seed {seed}, side {side}");
            assert_eq!((counters.closed, counters.failed(), counters.active), (4, 0, 0), "{seed}");
        }
    }
}

/// Location, cause and number of failures of an endpoint's template, and the length of the kept
/// excerpt.
fn failures(endpoint: &Endpoint) -> Vec<(u16, &'static str, u64, usize)> {
    let findings = &endpoint.tally(0).unwrap().findings;
    let all = findings.failures();
    all.map(|(at, cause, it)| (at, cause.as_str(), it.times, it.found.len())).collect()
}

#[test]
fn kept_part_of_a_long_message_is_bounded() {
    const LENGTH: u64 = 3_000_000;
    let mut buffers = Buffers::default();
    let page = buffers.push(Buffer::new(b"", LENGTH as u32, b"x"));
    let take = |is_awaited| Instruction::Take { rule: 0, is_required: is_awaited };
    let looks = Side {
        program: vec![take(true), Instruction::Expect { check: 0 }],
        contents: Contents {
            rules: vec![MessageFraming::Count(LENGTH)],
            compositions: vec![Composition {
                size: 70_000,
                fill: b"x".to_vec(),
                ..Composition::default()
            }],
            checks: vec![Check::Is(0)],
            ..Contents::default()
        },
        sessions: None,
    };
    let answers = Side {
        program: vec![Instruction::Send { buffer: page }],
        contents: Contents::default(),
        sessions: None,
    };
    let mut world = World::new([looks, answers], &buffers, [1, 1], Impairment::NONE, 1);
    world.run(MINUTE);
    assert_eq!(failures(&world.client), [(1, "not what was expected", 1, 40)]);
    let (_, _, failure) = world.client.tally(0).unwrap().findings.failures().next().unwrap();
    assert_eq!(failure.offset, Some(65_536));
    assert_eq!(world.client.tcp().rcvbyte, LENGTH);
}

#[test]
fn failed_flow_still_closes_properly_and_reports_missing_requests() {
    let mut buffers = Buffers::default();
    let [ask, leave, answer] =
        [b"GET / HTTP/1.1\r\n\r\n", &b"bye\n"[..], b"HTTP/1.0 200\r\n\r\nno"]
            .map(|text| buffers.push(Buffer::new(text, text.len() as u32, b"")));
    let take = Instruction::Take { rule: 0, is_required: true };
    let client = Side {
        program: vec![
            Instruction::SendBlocking { waits: false },
            Instruction::Send { buffer: ask },
            take,
            Instruction::ExpectOr { check: 0, to: 5 },
            take,
            Instruction::Send { buffer: leave },
            // Only the first failure of a flow is reported.
            Instruction::Expect { check: 0 },
        ],
        contents: Contents {
            rules: vec![MessageFraming::HttpHead],
            checks: vec![Check::KeepsConnection],
            messages: 3,
            ..Contents::default()
        },
        sessions: None,
    };
    let until = Delimiter::new(b"bye\n").unwrap();
    let server = Side {
        program: vec![
            Instruction::Send { buffer: answer },
            Instruction::Take { rule: 0, is_required: true },
        ],
        contents: Contents { rules: vec![MessageFraming::Until(until)], ..Contents::default() },
        sessions: None,
    };
    let mut world = World::new([client, server], &buffers, [2, 2], Impairment::NONE, 1);
    world.run(MINUTE);
    let cause = "the server closes the connection before the last request";
    assert_eq!(failures(&world.client), [(3, cause, 2, 16)]);
    assert_eq!(failures(&world.server), [], "the client closed properly");
    let messages = world.client.tally(0).unwrap().findings.messages();
    assert_eq!((messages.responses[1], messages.missing), (2, 4));
    assert_eq!(world.client.counters().program_failed, 2);
}

#[test]
fn programs_with_dangling_references_are_rejected() {
    let contents = || Contents {
        compositions: vec![Composition::default()],
        checks: vec![Check::Is(1)],
        ..Contents::default()
    };
    let is_program = |instruction| Program::with_contents(vec![instruction], contents()).is_some();
    assert!(is_program(Instruction::SendComposed { composition: 0 }));
    assert!(!is_program(Instruction::SendComposed { composition: 1 }));
    assert!(!is_program(Instruction::SetText { text: key(), composition: 1 }));
    assert!(!is_program(Instruction::Expect { check: 0 }), "its composition is missing");
    assert!(!is_program(Instruction::Expect { check: 1 }));
    assert!(!is_program(Instruction::ExpectOr { check: 0, to: 1 }));
    assert!(!is_program(Instruction::Extract { extraction: 0 }));
    assert!(!is_program(Instruction::Take { rule: 0, is_required: false }));
    assert!(Program::new(vec![Instruction::SendComposed { composition: 0 }]).is_none());
}
