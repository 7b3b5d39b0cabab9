//! Simulated TRex capture profiles: one of this project, and all of the TRex tree.
//!
//! `WIRESTORM_TREX_SCRIPTS` names the folder `scripts` of the TRex tree.

use std::path::{Path, PathBuf};

use wirestorm_base::rate::Decimal;
use wirestorm_base::time::Duration;
use wirestorm_control::emulation::{Part, SimulationOptions, WatchOptions, simulate};
use wirestorm_control::files::HostFiles;
use wirestorm_control::result::RunResult;
use wirestorm_plan::load;
use wirestorm_plan::trex::captures::CaptureProfile;
use wirestorm_plan::trex::stateful::StatefulOptions;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::require::skip;
use wirestorm_wire::capture::Records;
use wirestorm_wire::conversation::{Action, Conversation, ImportLimits, Importer, Side};

const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/web-and-mail.pcap");

/// Two conversations with addresses from the generator's pools.
const PROFILE: &str = "
- duration : 2.0
  generator :
          distribution : \"seq\"
          clients_start : \"16.0.0.1\"
          clients_end   : \"16.0.0.3\"
          servers_start : \"48.0.0.1\"
          servers_end   : \"48.0.0.5\"
  cap_info :
     - name: cap2/both.pcap
       cps : 2.5
       ipg : 4000
       rtt : 20000
       w   : 2
       multi_flow_enabled : true
       flows_dirs : [0, 0]
";

/// Simulates a profile: one flow of each template, or 2 s.
fn run(captures: &CaptureProfile, part: Part, output: Option<PathBuf>) -> RunResult {
    let options = SimulationOptions {
        files: std::sync::Arc::new(wirestorm_control::files::HostFiles),
        output,
        part,
        limit: None,
        duration: if part == Part::One {
            Duration::from_secs(3_600)
        } else {
            Duration::from_secs(2)
        },
        drain_timeout: Duration::from_secs(2),
        watch: WatchOptions::default(),
        round_trip: Duration::from_micros(20),
        flows_max: 10_000,
        seed: 1,
        folder: PathBuf::new(),
    };
    simulate(&captures.plan, &options).expect("a simulation").0
}

fn read(text: &str, folder: &Path) -> Result<CaptureProfile, String> {
    load::trex_captures(text, folder, &HostFiles, &StatefulOptions::default())
        .map_err(|errors| errors.to_string())
}

fn conversations(capture: &Path) -> Vec<Conversation> {
    let file = std::fs::read(capture).expect("a readable capture");
    let mut importer = Importer::new(ImportLimits::default());
    for record in Records::new(&file) {
        let (header, frame) = record.expect("a whole capture");
        importer.take(&header, frame).expect("a small capture");
    }
    importer.finish().flows.into_iter().map(|flow| flow.expect("a whole flow")).collect()
}

/// Returns the side and the data of each turn.
fn turns_of(conversation: &Conversation) -> Vec<(Side, Vec<u8>)> {
    let mut turns: Vec<(Side, Vec<u8>)> = Vec::new();
    for turn in &conversation.turns {
        let Action::Send(bytes) = &turn.act else { continue };
        match turns.last_mut() {
            Some((side, before)) if *side == turn.side => before.extend(bytes),
            _ => turns.push((turn.side, bytes.clone())),
        }
    }
    turns
}

#[test]
fn captures_are_replayed_at_the_rate_and_timing_of_the_profile() {
    let scratch = Scratch::new().expect("a folder");
    let folder = scratch.file("profiles");
    std::fs::create_dir_all(scratch.file("cap2")).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(CAPTURE, scratch.file("cap2/both.pcap")).unwrap();
    // The capture path is relative to the parent folder.
    let mut captures = read(PROFILE, &folder).expect("a profile");
    assert_eq!(captures.duration, Some(Duration::from_secs(2)));
    captures.plan.multiply(Decimal::parse("2").unwrap()).unwrap();
    let result = run(&captures, Part::Full, Some(scratch.file("out.pcap")));
    // Ten flows of each conversation in two seconds.
    let [clients, servers] = result.ports.as_slice() else { panic!("two ports") };
    assert_eq!(
        (
            clients.connections.as_ref().unwrap().flows.closed,
            servers.connections.as_ref().unwrap().flows.closed
        ),
        (20, 20)
    );
    assert_eq!(
        (
            clients.connections.as_ref().unwrap().flows.failed,
            servers.connections.as_ref().unwrap().flows.failed
        ),
        (0, 0)
    );
    let originals = conversations(Path::new(CAPTURE));
    let flows = conversations(&scratch.file("out.clients.pcap"));
    assert_eq!(flows.len(), 20);
    for (flow, number) in flows.iter().zip(0_u8..) {
        let original = originals.iter().find(|it| it.server.port() == flow.server.port());
        assert_eq!(turns_of(flow), turns_of(original.expect("the same port")));
        // Each client has two flows of both conversations before the next client.
        let client = format!("16.0.0.{}", number / 2 / 2 % 3 + 1);
        assert_eq!(flow.client.ip().to_string(), client, "flow {number}");
    }
    // Each turn of the mail starts `rtt` after the previous one, whatever the captured time was.
    // The greeting follows the client's acknowledgement.
    let mail = flows.iter().find(|flow| flow.server.port() == 110).expect("a mail");
    let gaps: Vec<u64> = mail
        .turns
        .iter()
        .filter(|turn| matches!(turn.act, Action::Send(_)))
        .map(|turn| turn.gap.as_nanos() / 1_000_000)
        .collect();
    let [greeting, others @ ..] = gaps.as_slice() else { panic!("a greeting") };
    assert!((39..=41).contains(greeting), "{gaps:?}");
    assert!(others.len() == 10 && others.iter().all(|gap| (19..=21).contains(gap)), "{gaps:?}");
}

#[test]
fn missing_capture_is_reported_with_all_searched_paths() {
    let scratch = Scratch::new().expect("a folder");
    let folder = scratch.file("profiles");
    std::fs::create_dir(&folder).unwrap();
    let error = read(PROFILE, &folder).unwrap_err();
    let places = ["cap2/both.pcap", "profiles/cap2/both.pcap"];
    assert!(error.contains("[0].cap_info[0].name: found no such capture; looked for "), "{error}");
    assert!(places.iter().all(|place| error.contains(place)), "{error}");
    let above = scratch.file("cap2/both.pcap");
    assert!(error.contains(&*above.to_string_lossy()), "{error}");
}

/// Expected outcome of TRex's own profiles: a part of the reason for rejected ones, and a part of
/// each note besides the TCP note.
const TREX: [(&str, Expected); 62] = {
    use Expected::{Loads, Noted, Refused};
    const PARTS: &str = "so each has its own part of the";
    const WITHIN: &str = "addresses and ports in payloads stay";
    const FLOWS: &str = "flows of its capture has this rate, independently";
    const TW: &str = "tw: ignored";
    const VLAN: &str = "vlan: clients with odd addresses";
    [
        ("asa_explot1", Loads),
        ("cluster_example", Refused("groups")),
        ("cur_flow", Noted(&[PARTS])),
        ("cur_flow_single", Loads),
        ("cur_flow_single_tw_8", Noted(&[TW])),
        ("dhcp_req_ack_plugin", Noted(&["mac_override_by_ip: ignored", WITHIN, FLOWS])),
        ("dns", Loads),
        ("dns_no_delay", Loads),
        ("dns_one_server", Loads),
        ("dns_single_server", Noted(&[PARTS])),
        ("dns_tw", Noted(&[TW])),
        ("dns_wlen", Loads),
        ("dns_wlen1", Loads),
        ("dns_wlen2", Noted(&[PARTS])),
        ("dns_wlength", Loads),
        ("dyn_pyld1", Noted(&["dyn_pyload: payloads stay"])),
        ("http", Noted(&[WITHIN, FLOWS])),
        ("http_plugin", Noted(&[WITHIN])),
        ("http_short", Noted(&[PARTS])),
        ("http_simple", Loads),
        ("http_simple_ipv6", Noted(&["used with --ipv6 only"])),
        ("http_very_long", Loads),
        ("imix_1518", Noted(&[PARTS])),
        ("imix_64", Noted(&[PARTS])),
        ("imix_64_100k", Noted(&[PARTS])),
        ("imix_64_fast", Loads),
        ("imix_9k", Noted(&[PARTS])),
        ("imix_9k_burst_10", Refused("found no such capture")),
        ("ipv4_load_balance", Noted(&[VLAN])),
        ("ipv6", Loads),
        ("ipv6_load_balance", Noted(&[VLAN])),
        ("jumbo", Loads),
        ("lb_ex1", Loads),
        ("limit_multi_pkt", Loads),
        ("limit_single_pkt", Loads),
        ("many_client_example", Loads),
        ("nat_test", Loads),
        ("per_template_gen1", Loads),
        ("per_template_gen2", Loads),
        ("per_template_gen3", Loads),
        ("per_template_gen4", Loads),
        ("per_template_gen5", Noted(&[WITHIN, FLOWS])),
        ("rtsp", Noted(&[WITHIN, FLOWS])),
        ("rtsp_full1", Refused("[0].generator: found nothing")),
        ("rtsp_full2", Noted(&[WITHIN, FLOWS])),
        ("rtsp_short1", Noted(&[WITHIN, FLOWS])),
        ("rtsp_short1_slow", Noted(&[WITHIN, FLOWS])),
        ("rtsp_short2", Noted(&[WITHIN, FLOWS])),
        ("rtsp_short3", Noted(&[WITHIN, FLOWS])),
        ("sfr", Noted(&[PARTS, PARTS])),
        ("sfr2", Loads),
        ("sfr3", Noted(&[PARTS, PARTS])),
        ("sfr4", Loads),
        (
            "sfr_agg_tcp14_udp11_http200msec_new_high_new_nir_profile",
            Refused("[0].generator: found nothing"),
        ),
        ("sfr_agg_tcp14_udp11_http200msec_new_high_new_nir_profile_ipg_mix", Noted(&[PARTS; 12])),
        ("short_tcp", Loads),
        ("sip_short1", Noted(&[WITHIN, FLOWS])),
        ("sip_short2", Noted(&[WITHIN, FLOWS])),
        ("test_pcap_mode1", Loads),
        ("test_pcap_mode2", Loads),
        ("tuple_gen", Refused("the fields of a generator alone")),
        ("wrong_ip", Loads),
    ]
};

/// Expected outcome of a profile.
enum Expected {
    Loads,
    Noted(&'static [&'static str]),
    Refused(&'static str),
}

#[test]
fn trex_profiles_run_or_are_rejected_with_a_reason() {
    let Some(scripts) = std::env::var_os("WIRESTORM_TREX_SCRIPTS").map(PathBuf::from) else {
        skip("WIRESTORM_TREX_SCRIPTS names no folder `scripts` of TRex's tree");
        return;
    };
    let folder = scripts.join("cap2");
    let mut wrong = Vec::new();
    for (name, expected) in TREX {
        let text = std::fs::read_to_string(folder.join(format!("{name}.yaml"))).expect(name);
        let outcome = match (read(&text, &folder), expected) {
            (Err(error), Expected::Refused(reason)) if error.contains(reason) => Ok(()),
            (Err(error), _) => Err(format!("refused: {error}")),
            (Ok(_), Expected::Refused(_)) => Err("not refused".into()),
            (Ok(captures), Expected::Loads) => is_said(&captures, &[]),
            (Ok(captures), Expected::Noted(notes)) => is_said(&captures, notes),
        };
        wrong.extend(outcome.err().map(|reason| format!("{name}: {reason}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks that one flow of each capture completes and that the result has these notes.
fn is_said(captures: &CaptureProfile, notes: &[&str]) -> Result<(), String> {
    let result = run(captures, Part::One, None);
    for port in &result.ports {
        for template in &port.templates {
            let count = |name: &str| template.flows[name];
            // Some captures end with a reset, which the other side expects.
            let over = count("closed") + count("aborted") + count("expected_resets");
            if over != 1 || port.connections.as_ref().unwrap().flows.failed > 0 {
                return Err(format!("{}, {}: {:?}", template.name, template.side, template.flows));
            }
        }
    }
    let about_tcp = "TCP captures are not sent packet by packet";
    let others: Vec<_> = result.notes.iter().filter(|note| !note.contains(about_tcp)).collect();
    let are_as_expected = others.len() == notes.len()
        && others.iter().zip(notes).all(|(note, expected)| note.contains(expected));
    if are_as_expected { Ok(()) } else { Err(format!("notes {others:#?}, expected {notes:#?}")) }
}
