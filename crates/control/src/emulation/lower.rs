//! From a plan's words to what endpoints do.

use wirestorm_plan::emulation::{self, EmulationPlan, Step};
use wirestorm_stack::endpoint::{
    AddressRange, IpSettings, LinkHeader, Listen, Load, Role, Template, Transport, Tuples,
};
use wirestorm_stack::program::{Buffer, Buffers, Instruction, Program, Variable};
use wirestorm_stack::tcp::congestion::Algorithm;
use wirestorm_stack::tcp::settings::Settings;
use wirestorm_wire::packet::{MacAddress, ethertype};

use super::error::EmulationError;

/// What the endpoint of one port does.
pub(super) struct Duties {
    pub(super) templates: Vec<Template>,
    pub(super) buffers: Buffers,
    /// Whether it makes connections.
    pub(super) connects: bool,
}

/// What a plan has a port do. `clients`: for each template its clients' addresses, and where their
/// frames go from which Ethernet address.
pub(super) fn duties(
    plan: &EmulationPlan,
    port: usize,
    own: MacAddress,
    clients: &[Option<(emulation::AddressRange, MacAddress)>],
) -> Result<Duties, EmulationError> {
    let mut duties = Duties { templates: Vec::new(), buffers: Buffers::default(), connects: false };
    for (template, client) in plan.templates.iter().zip(clients) {
        let transport = Transport::Tcp(settings(&template.tcp));
        let mut add = |steps: &[Step], side: &str, role| {
            let path = || format!("{}.{side}.program", template.path);
            let program = program(steps, &mut duties.buffers, path)?;
            let ip = IpSettings::default();
            duties.templates.push(Template { program, transport, ip, role });
            Ok::<_, EmulationError>(())
        };
        if let Some(asked) = template.client.as_ref().filter(|client| client.transmit == port)
            && let Some((addresses, destination)) = client
        {
            let tuples = Tuples {
                clients: range(addresses),
                servers: range(&asked.servers),
                server_port: asked.server_port,
                client_ports: asked.ports.clone(),
            };
            let kind = if addresses.first.is_ipv4() { ethertype::IPV4 } else { ethertype::IPV6 };
            let header = [&destination.0[..], &own.0, &kind.to_be_bytes()].concat();
            // Fourteen bytes are an Ethernet header.
            let Some(link) = LinkHeader::new(&header) else { continue };
            let load = match asked.load {
                emulation::Load::Rate(rate) => Load::Constant { rate },
                emulation::Load::Poisson(rate) => Load::Poisson { rate },
                emulation::Load::Hold(flows) => Load::Hold { flows },
            };
            let role = Role::Client { tuples, link, load, limit: asked.limit };
            add(&asked.program, "client", role)?;
            duties.connects = true;
        }
        if let Some(asked) = template.server.as_ref().filter(|server| server.transmit == port) {
            let listen = Listen::at(asked.listen);
            add(&asked.program, "server", Role::Server { listen })?;
        }
    }
    Ok(duties)
}

fn range(range: &emulation::AddressRange) -> AddressRange {
    AddressRange { first: range.first, count: range.count }
}

fn settings(asked: &emulation::Tcp) -> Settings {
    let usual = Settings::default();
    Settings {
        maximum_segment_size: asked.mss.unwrap_or(usual.maximum_segment_size),
        initial_window: asked.initial_window.unwrap_or(usual.initial_window),
        receive_buffer: asked.receive_buffer.unwrap_or(usual.receive_buffer),
        window_scaling: asked.window_scaling.unwrap_or(usual.window_scaling),
        timestamps: asked.timestamps.unwrap_or(usual.timestamps),
        sack: asked.sack.unwrap_or(usual.sack),
        rack: asked.rack.unwrap_or(usual.rack),
        ecn: asked.ecn.unwrap_or(usual.ecn),
        no_delay: asked.no_delay.unwrap_or(usual.no_delay),
        congestion: match asked.congestion {
            Some(emulation::Congestion::NewReno) => Algorithm::NewReno,
            Some(emulation::Congestion::Cubic) => Algorithm::Cubic,
            None => usual.congestion,
        },
        delayed_ack_ms: asked.delayed_ack_ms.unwrap_or(usual.delayed_ack_ms),
        time_wait_ms: asked.time_wait_ms.unwrap_or(usual.time_wait_ms),
        keepalive_ms: asked.keepalive_ms.unwrap_or(usual.keepalive_ms),
        ..usual
    }
}

fn program(
    steps: &[Step],
    buffers: &mut Buffers,
    path: impl Fn() -> String,
) -> Result<Program, EmulationError> {
    let mut instructions = Vec::new();
    lower(steps, 0, buffers, &mut instructions);
    let found = instructions.len();
    let most = Program::LENGTH_MAX;
    Program::new(instructions).ok_or_else(|| EmulationError::TooLong { path: path(), found, most })
}

/// Appends what steps within so many loops are.
fn lower(steps: &[Step], depth: usize, buffers: &mut Buffers, instructions: &mut Vec<Instruction>) {
    for step in steps {
        match step {
            Step::Send { text, size, fill } => {
                let buffer = buffers.push(Buffer::new(text, *size, fill));
                instructions.push(Instruction::Send { buffer });
            }
            Step::Receive(bytes) => {
                instructions.push(Instruction::Receive { bytes: *bytes, clear: true });
            }
            Step::Delay { min, max } => {
                let micros = |time: &wirestorm_base::time::Duration| {
                    u32::try_from(time.as_nanos() / 1_000).unwrap_or(u32::MAX)
                };
                let (min, max) = (micros(min), micros(max));
                instructions.push(if min == max {
                    Instruction::Delay { micros: min }
                } else {
                    Instruction::DelayUniform { min, max }
                });
            }
            Step::WaitForClose => instructions.push(Instruction::WaitForPeerClose),
            Step::Reset => instructions.push(Instruction::Reset),
            Step::Blocking(waits) => {
                instructions.push(Instruction::SendBlocking { waits: *waits });
            }
            Step::Repeat { times, steps } => {
                // Plans have fewer loops within each other than there are variables.
                let counter = times.and_then(|times| Some((Variable::new(depth)?, times)));
                if let Some((variable, value)) = counter {
                    instructions.push(Instruction::Set { variable, value });
                }
                // Where there is no such place, the program is too long, which is said.
                let to = u16::try_from(instructions.len()).unwrap_or(u16::MAX);
                lower(steps, depth + 1, buffers, instructions);
                instructions.push(match counter {
                    Some((variable, _)) => Instruction::CountDown { variable, to },
                    None => Instruction::Jump { to },
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_base::time::Duration;

    #[test]
    fn loops_count_down_and_begin_behind_where_they_are_set() {
        let delay =
            |us| Step::Delay { min: Duration::from_micros(us), max: Duration::from_micros(us) };
        let inner = Step::Repeat { times: Some(3), steps: vec![Step::Receive(1)] };
        let steps = [Step::Repeat { times: None, steps: vec![delay(5), inner] }, Step::Reset];
        let mut instructions = Vec::new();
        lower(&steps, 0, &mut Buffers::default(), &mut instructions);
        let variable = Variable::new(1).unwrap();
        assert_eq!(
            instructions,
            [
                Instruction::Delay { micros: 5 },
                Instruction::Set { variable, value: 3 },
                Instruction::Receive { bytes: 1, clear: true },
                Instruction::CountDown { variable, to: 2 },
                Instruction::Jump { to: 0 },
                Instruction::Reset,
            ]
        );
    }
}
