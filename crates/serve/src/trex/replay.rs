//! `push_remote`: sending a capture that was uploaded to the server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wirestorm_api::run::WhenLeaseEnds;
use wirestorm_control::StartAt;
use wirestorm_control::backend::Backend;
use wirestorm_control::base::departure::DeparturePolicy;
use wirestorm_control::base::pace::Pace;
use wirestorm_control::base::rate::{Decimal, Rate};
use wirestorm_control::base::time::Duration;
use wirestorm_control::files::HostFiles;
use wirestorm_control::host::Access;
use wirestorm_control::model::sides::{SideRule, SidesOptions};
use wirestorm_control::plan::edit::EditOptions;
use wirestorm_control::plan::replay::{Limits, ReplayPlan, SideAssignment, Target};
use wirestorm_control::replay::Callbacks;
use wirestorm_control::run::Plan;
use wirestorm_store::record::RecordKind;

use super::Trex;
use super::events::Event;
use super::ownership::identity;
use super::parameters::{Parameters, done};
use super::port::Owner;
use super::rpc::{Answer, RpcError};
use super::transmission::{Begun, Transmission};
use crate::server::{HostRequest, LoadSource, Resolved};

/// Largest number of conversations whose sides are remembered.
const CONVERSATIONS_MAX: usize = 1 << 20;
/// Tolerance of the rate in parts per million, for the note in the result.
const TOLERANCE_PPM: u32 = 10_000;

pub(super) fn push_remote(trex: &Arc<Trex>, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let owner = trex.owner(port).ok_or_else(|| RpcError::execution("the port has no owner"))?;
    let plan = read_plan(trex, port, parameters)?;
    let ports: Vec<usize> = match parameters.flag_or("is_dual", false)? {
        false => vec![port],
        true => {
            let other = trex.checked_port(port ^ 1)?;
            let handler = parameters.text_or("slave_handler", "")?;
            if trex.owner(other).is_none_or(|owner| owner.handler != handler) {
                return Err(RpcError::execution("incorrect or missing slave port handler"));
            }
            vec![port, other]
        }
    };
    for port in &ports {
        trex.state().ports[*port].check_idle("push_remote")?;
        trex.begin_comparing(*port);
    }
    let run = host(trex, plan, &ports, &owner)?;
    let mut state = trex.state();
    for (port, run) in ports.iter().zip(run) {
        state.ports[*port].replay = Some(run);
    }
    trex.publish(&mut state, ports.into_iter().map(Event::PortStarted));
    drop(state);
    // A short capture may have ended by now.
    trex.settle();
    done()
}

fn read_plan(
    trex: &Trex,
    port: usize,
    parameters: &Parameters<'_>,
) -> Result<ReplayPlan, RpcError> {
    let path = Path::new(parameters.text("pcap_filename")?);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let capture = trex.server.capture_path(&name).map_err(|error| {
        RpcError::execution(format!("{}: upload it to the server as a capture", error.message))
    })?;
    let (gap_us, speedup) = (parameters.number("ipg_usec")?, parameters.number("speedup")?);
    let count = parameters.u32("count")?;
    let duration_s = parameters.number("duration")?;
    let is_dual = parameters.flag_or("is_dual", false)?;
    let wrong = |what: &str, value: f64| RpcError::parameters(format!("invalid {what}: {value}"));
    let pace = if gap_us < 0.0 {
        let multiplier = Decimal::parse(&format!("{speedup:.6}"));
        let multiplier = multiplier.ok().filter(|decimal| decimal.digits > 0);
        let multiplier = multiplier.ok_or_else(|| wrong("speedup", speedup))?;
        Pace::Capture { multiplier, gap_max: Duration::MAX }
    } else {
        let gap_ns = gap_us * 1e3 / speedup;
        match gap_ns.is_finite() && gap_ns >= 1.0 {
            false => Pace::TopSpeed,
            true => {
                let rate = Rate::new(1, Duration::from_nanos(gap_ns as u64));
                Pace::Packets { rate: rate.map_err(|_| wrong("ipg_usec", gap_us))?, group: 1 }
            }
        }
    };
    let interface = |port: usize| trex.interfaces[port].name.to_string();
    Ok(ReplayPlan {
        captures: vec![capture],
        target: Target::Interfaces {
            primary: interface(port),
            secondary: is_dual.then(|| interface(port ^ 1)),
        },
        sides: match is_dual {
            false => SideAssignment::Single,
            true => SideAssignment::Rules(SidesOptions {
                rule: SideRule::First,
                reverse: false,
                non_ip_is_primary: true,
                conversations_max: CONVERSATIONS_MAX,
            }),
        },
        edits: EditOptions::default(),
        show: None,
        one_at_a_time: false,
        pace,
        policy: DeparturePolicy::default(),
        limits: Limits {
            passes: if count == 0 { u64::MAX } else { count.into() },
            packets: u64::MAX,
            duration: match duration_s > 0.0 {
                true => Duration::from_nanos((duration_s * 1e9) as u64),
                false => Duration::MAX,
            },
        },
        pass_delay: Duration::ZERO,
        preload: false,
        flows: None,
        unique: None,
        include: None,
        exclude: Vec::new(),
        original_length: false,
        receive: None,
        workers: 1,
        tolerance_ppm: TOLERANCE_PPM,
        // Who names an interface as a port of the server has allowed it.
        force_interface: true,
    })
}

/// Starts the run. Returns it once for each port.
fn host(
    trex: &Arc<Trex>,
    plan: ReplayPlan,
    ports: &[usize],
    owner: &Owner,
) -> Result<Vec<Arc<Transmission>>, RpcError> {
    let interfaces: Vec<String> =
        ports.iter().map(|port| trex.interfaces[*port].name.to_string()).collect();
    let resolved = Resolved {
        load: LoadSource::Fixed,
        plan: Plan::Replay {
            plan: Box::new(plan),
            backend: Backend::Auto,
            hooks: Callbacks::default(),
        },
        kind: RecordKind::Replay,
        interfaces: interfaces.clone(),
        flows: Arc::default(),
        source: "trex".to_owned(),
        text: None,
    };
    let request = HostRequest {
        origin: None,
        resolved,
        name: None,
        command: vec!["trex".to_owned(), "push_remote".to_owned()],
        access: Access::Shared,
        start: Some(StartAt::Now),
        when_lease_ends: WhenLeaseEnds::Continue,
    };
    let user = identity(&owner.user, owner.session);
    let run = trex.server.host_run(&user, request, Arc::new(HostFiles));
    let run = run.map_err(|error| RpcError::execution(error.message))?;
    let of_port = |(port, interface): (&usize, String)| {
        let begun = Begun {
            run: Arc::clone(&run),
            owner: format!("{}/{}", owner.user, owner.session),
            receiver: None,
            streams: BTreeMap::new(),
            flows: BTreeMap::new(),
            members: Vec::new(),
            tagged: Vec::new(),
            options: trex.lower_options(*port),
            bits_l1: 0.0,
            has_end: true,
        };
        Arc::new(Transmission::new(interface, begun))
    };
    Ok(ports.iter().zip(interfaces).map(of_port).collect())
}
