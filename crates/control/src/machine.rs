//! Facts about the machine that reports name: processor, memory, virtualisation, boot parameters.

use std::fs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Machine that executed a run. A field is empty or null if the kernel does not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MachineRecord {
    /// Processor model.
    pub cpu_model: String,
    /// Number of CPUs that are online, with those that the run may not use.
    pub cpus_online: u32,
    /// CPUs that the scheduler leaves alone (`isolcpus`), such as `2-7`.
    pub cpus_isolated: String,
    /// Frequency governor of the first CPU, such as `performance`.
    pub cpu_governor: String,
    /// Clock source of the kernel, such as `tsc`.
    pub clock_source: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Vendor and product of the machine.
    pub product: String,
    /// Hypervisor; null on physical hardware.
    pub hypervisor: Option<String>,
    /// Operating system.
    pub operating_system: String,
    /// Command line of the kernel.
    pub kernel_command_line: String,
}

impl MachineRecord {
    /// Reads the facts of this machine from `/proc`, `/sys` and `/etc/os-release`.
    pub fn read() -> Self {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let [vendor, product] =
            ["sys_vendor", "product_name"].map(|name| line(&format!("/sys/class/dmi/id/{name}")));
        let product = format!("{vendor} {product}").trim().to_owned();
        Self {
            cpu_model: cpu_model(&cpu),
            cpus_online: cpu.lines().filter(|line| key(line) == "processor").count() as u32,
            cpus_isolated: line("/sys/devices/system/cpu/isolated"),
            cpu_governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            memory_bytes: memory_bytes(&memory),
            hypervisor: hypervisor(&cpu, &line("/sys/hypervisor/type"), &product),
            product,
            operating_system: operating_system(&release),
            kernel_command_line: line("/proc/cmdline"),
        }
    }
}

/// Returns the first line of a file; empty if it cannot be read.
fn line(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Returns the name before the colon of a line of `/proc/cpuinfo` or `/proc/meminfo`.
fn key(line: &str) -> &str {
    line.split(':').next().unwrap_or_default().trim()
}

/// Returns the value of the first line with a name.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| key(line) == name)?;
    Some(line.split_once(':')?.1.trim())
}

/// x86 names the `model name`, 64-bit Arm only the implementer and part, others the `cpu`.
fn cpu_model(cpu: &str) -> String {
    if let Some(model) = value(cpu, "model name").or_else(|| value(cpu, "cpu")) {
        return model.to_owned();
    }
    match (value(cpu, "CPU implementer"), value(cpu, "CPU part")) {
        (Some(implementer), Some(part)) => format!("implementer {implementer}, part {part}"),
        _ => String::new(),
    }
}

fn memory_bytes(memory: &str) -> u64 {
    let kibibytes = value(memory, "MemTotal").and_then(|it| it.strip_suffix("kB"));
    kibibytes.and_then(|it| it.trim().parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
}

/// Recognises a guest by the CPU flag that hypervisors set, or by Xen's file.
fn hypervisor(cpu: &str, xen: &str, product: &str) -> Option<String> {
    if !xen.is_empty() {
        return Some(xen.to_owned());
    }
    let flags = value(cpu, "flags")?;
    if !flags.split(' ').any(|flag| flag == "hypervisor") {
        return None;
    }
    Some(if product.is_empty() { "unknown".to_owned() } else { product.to_owned() })
}

fn operating_system(release: &str) -> String {
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: &str = "processor\t: 0\nmodel name\t: Example CPU @ 2.00GHz\nflags\t\t: fpu tsc \
                       hypervisor\n\nprocessor\t: 1\nmodel name\t: Example CPU @ 2.00GHz\n";

    #[test]
    fn processor_and_memory_are_those_of_proc() {
        assert_eq!(cpu_model(CPU), "Example CPU @ 2.00GHz");
        assert_eq!(
            cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n"),
            "implementer 0x41, part 0xd40"
        );
        assert_eq!(memory_bytes("MemTotal:       2048 kB\nMemFree: 1 kB\n"), 2 << 20);
        assert_eq!(memory_bytes("nonsense"), 0);
        let machine = MachineRecord::read();
        assert!(machine.memory_bytes > 0 && machine.cpus_online > 0, "{machine:?}");
    }

    #[test]
    fn hypervisor_is_named_only_in_a_guest() {
        assert_eq!(hypervisor(CPU, "", "QEMU Standard PC").as_deref(), Some("QEMU Standard PC"));
        assert_eq!(hypervisor(CPU, "", "").as_deref(), Some("unknown"));
        assert_eq!(hypervisor("flags : fpu", "", "QEMU Standard PC"), None);
        assert_eq!(hypervisor("", "xen", "").as_deref(), Some("xen"));
        assert_eq!(operating_system("NAME=x\nPRETTY_NAME=\"Example 1\"\n"), "Example 1");
    }
}
