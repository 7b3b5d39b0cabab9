//! The files of `/proc/net/pktgen`: the effects of writes, and the contents.

use std::collections::BTreeMap;

use super::device::{Device, Link, interface_of};
use super::error::{LowerError, PktgenError, Problem};
use super::lower::LoweredDevice;
use super::result::Counters;
use super::scan::Scanner;
use super::show;

/// Directory of these files in the kernel.
pub const DIRECTORY: &str = "/proc/net/pktgen/";

/// State of pktgen as in the kernel: threads, their devices, and the settings of each device.
#[derive(Clone, Debug)]
pub struct Pktgen {
    links: BTreeMap<String, Link>,
    threads: Vec<Thread>,
}

/// A thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Devices, the last added first.
    devices: Vec<Device>,
    result: String,
}

/// What the caller must do after a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the write changed a setting.
    Set,
    /// A file with this name is new.
    Added(String),
    /// The files with these names no longer exist.
    Removed(Vec<String>),
    /// Start all devices. The kernel's write returns after all have finished.
    Start,
    /// Stop all devices.
    Stop,
}

/// Maximum number of devices of all threads.
const DEVICES_MAX: usize = 256;

impl Pktgen {
    /// Creates the initial state: one thread per CPU (1 to 4096), and these interfaces.
    pub fn new(cpus: u32, links: BTreeMap<String, Link>) -> Self {
        let threads = vec![Thread::default(); cpus.clamp(1, 4096) as usize];
        Self { links, threads }
    }

    /// Updates the interfaces. Devices keep the state from when they were added.
    pub fn set_links(&mut self, links: BTreeMap<String, Link>) {
        self.links = links;
    }

    /// Returns the names of all files.
    pub fn files(&self) -> Vec<String> {
        let mut files = vec!["pgctrl".to_owned()];
        files.extend((0..self.threads.len()).map(|thread| format!("kpktgend_{thread}")));
        files.extend(self.devices().map(|(_, device)| device.name.clone()));
        files
    }

    /// Executes a write to a file: `pgctrl`, a thread's or a device's. The name may start with
    /// [`DIRECTORY`], and the text may end with a line feed, as from `echo`.
    ///
    /// # Errors
    /// Returns an error if the kernel's write fails. Also returns one if the write succeeds, and
    /// only sets a `Result:` that is not `OK`; [`Problem::errno`] distinguishes the two. In both
    /// cases nothing but the file's result changes.
    pub fn write(&mut self, file: &str, text: &str) -> Result<Effect, PktgenError> {
        let file = file.strip_prefix(DIRECTORY).unwrap_or(file);
        let outcome = if file == "pgctrl" {
            self.control(text)
        } else if let Some(thread) = self.thread_number(file) {
            self.thread_command(thread, text)
        } else {
            self.device_command(file, text)
        };
        outcome.map_err(|problem| PktgenError {
            file: file.to_owned(),
            command: text.trim().to_owned(),
            problem,
        })
    }

    /// Returns the contents of a file.
    ///
    /// # Errors
    /// [`Problem::NoSuchFile`].
    pub fn show(&self, file: &str) -> Result<String, PktgenError> {
        let file = file.strip_prefix(DIRECTORY).unwrap_or(file);
        if file == "pgctrl" {
            return Ok(show::VERSION.to_owned());
        }
        if let Some(thread) = self.thread_number(file) {
            return Ok(show::thread(&self.threads[thread].devices, &self.threads[thread].result));
        }
        match self.devices().find(|(_, device)| device.name == file) {
            Some((_, device)) => Ok(show::device(device)),
            None => Err(PktgenError {
                file: file.to_owned(),
                command: String::new(),
                problem: self.no_such_file(),
            }),
        }
    }

    /// Lowers all devices to streams, thread by thread.
    ///
    /// # Errors
    /// Returns an error for a device with unsupported settings.
    pub fn lower(&self) -> Result<Vec<LoweredDevice>, LowerError> {
        let devices = self.devices().enumerate();
        devices.map(|(index, (cpu, device))| LoweredDevice::new(device, cpu, index)).collect()
    }

    /// Marks all devices as running.
    pub fn mark_running(&mut self) {
        for device in self.devices_mut() {
            device.clear_counters();
            device.result = "Starting".to_owned();
            device.is_running = true;
        }
    }

    /// Updates the counters of a running device.
    pub fn progress(&mut self, name: &str, frames: u64, errors: u64) {
        if let Some(device) = self.devices_mut().find(|device| device.name == name) {
            device.progress(frames, errors);
        }
    }

    /// Marks all devices as stopped, after none could start.
    pub fn mark_not_started(&mut self) {
        for device in self.devices_mut() {
            device.result = "ERROR: not started".to_owned();
            device.is_running = false;
        }
    }

    /// Marks a device as stopped, and stores its result. Returns the text after `Result: `, or an
    /// empty string if the device was removed.
    pub fn finish(&mut self, lowered: &LoweredDevice, counters: &Counters) -> String {
        let device = self.devices_mut().find(|device| device.name == lowered.name);
        device.map(|device| device.finish(lowered, counters).to_owned()).unwrap_or_default()
    }

    fn control(&mut self, text: &str) -> Result<Effect, Problem> {
        // The kernel accepts only one line feed after the word.
        match text.strip_suffix('\n').unwrap_or(text) {
            "start" => Ok(Effect::Start),
            "stop" => Ok(Effect::Stop),
            "reset" => {
                let removed = self.devices().map(|(_, device)| device.name.clone()).collect();
                for thread in &mut self.threads {
                    thread.devices.clear();
                }
                Ok(Effect::Removed(removed))
            }
            other => Err(Problem::NoSuchCommand {
                found: other.to_owned(),
                expected: "start, stop, reset".to_owned(),
            }),
        }
    }

    fn thread_command(&mut self, number: usize, text: &str) -> Result<Effect, Problem> {
        let mut scan = Scanner::new(text);
        scan.skip_separators();
        let command = scan.word(39);
        scan.skip_separators();
        match command {
            "add_device" => {
                let name = scan.word(31);
                let outcome = self.check_new(name);
                let thread = &mut self.threads[number];
                match outcome {
                    Ok(link) => {
                        thread.devices.insert(0, Device::new(name, link));
                        thread.result = format!("OK: add_device={name}");
                        Ok(Effect::Added(name.to_owned()))
                    }
                    Err(problem) => {
                        thread.result = format!("ERROR: can not add device {name}");
                        Err(problem)
                    }
                }
            }
            "rem_device_all" => {
                let thread = &mut self.threads[number];
                thread.result = "OK: rem_device_all".to_owned();
                let removed = thread.devices.drain(..).map(|device| device.name).collect();
                Ok(Effect::Removed(removed))
            }
            "max_before_softirq" => {
                let result = "OK: Note! max_before_softirq is obsoleted -- Do not use";
                self.threads[number].result = result.to_owned();
                Ok(Effect::Set)
            }
            other => Err(Problem::NoSuchCommand {
                found: other.to_owned(),
                expected: "add_device, rem_device_all, max_before_softirq".to_owned(),
            }),
        }
    }

    /// Checks that a device of this name can be added. Returns the state of its interface.
    fn check_new(&self, name: &str) -> Result<Link, Problem> {
        let interface = interface_of(name);
        if self.devices().any(|(_, device)| device.name == name) {
            return Err(Problem::Busy { name: interface.to_owned() });
        }
        if self.devices().count() == DEVICES_MAX {
            return Err(Problem::TooMany { limit: DEVICES_MAX });
        }
        if name.contains('/') && !name.starts_with("netns/") {
            let expected = "the name of an interface, as in eth0, eth0@1 or netns/NAME:eth0@1";
            return Err(Problem::Malformed { found: name.to_owned(), expected });
        }
        match self.links.get(interface) {
            Some(link) if link.is_up => Ok(*link),
            Some(_) => Err(Problem::InterfaceDown { interface: interface.to_owned() }),
            None => Err(Problem::NoSuchInterface { interface: interface.to_owned() }),
        }
    }

    fn device_command(&mut self, file: &str, text: &str) -> Result<Effect, Problem> {
        let no_such_file = self.no_such_file();
        let device = self.devices_mut().find(|device| device.name == file).ok_or(no_such_file)?;
        match device.command(text) {
            Ok(()) => Ok(Effect::Set),
            Err(refusal) => {
                device.result = refusal.result.unwrap_or_else(|| device.result.clone());
                Err(refusal.problem)
            }
        }
    }

    fn thread_number(&self, file: &str) -> Option<usize> {
        let digits = file.strip_prefix("kpktgend_")?;
        let number: usize = digits.parse().ok()?;
        // Each thread has one name, so refuse `+1` and `01`.
        (number < self.threads.len() && number.to_string() == digits).then_some(number)
    }

    fn no_such_file(&self) -> Problem {
        // The number of threads is 1 to 4096.
        Problem::NoSuchFile { last_thread: self.threads.len() as u32 - 1 }
    }

    /// Iterates over all devices, with the CPU of their thread.
    fn devices(&self) -> impl Iterator<Item = (u32, &Device)> {
        (0..)
            .zip(&self.threads)
            .flat_map(|(cpu, thread)| thread.devices.iter().map(move |device| (cpu, device)))
    }

    fn devices_mut(&mut self) -> impl Iterator<Item = &mut Device> {
        self.threads.iter_mut().flat_map(|thread| &mut thread.devices)
    }
}
