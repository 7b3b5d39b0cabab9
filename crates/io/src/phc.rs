//! PTP hardware clocks, `/dev/ptp*` (`Documentation/driver-api/ptp.rst`).

use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::system::checked;

/// Readings of one call.
const SAMPLES: usize = 9;

/// A hardware clock.
#[derive(Debug)]
pub struct HardwareClock {
    file: File,
    path: PathBuf,
}

/// A reading of the device between two readings of `CLOCK_REALTIME`, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossReading {
    /// System clock before. The same as `after` if the hardware reads both clocks at once.
    pub before: i64,
    /// The device.
    pub device: i64,
    /// System clock after.
    pub after: i64,
}

/// Lists the hardware clocks of this machine.
pub fn devices() -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
    let is_clock = |name: &str| {
        let number = name.strip_prefix("ptp").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let clocks = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_clock));
    let mut paths: Vec<PathBuf> = clocks.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

impl HardwareClock {
    /// Opens a clock for reading.
    ///
    /// # Errors
    /// The device does not exist, or the process may not read it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, path: path.to_owned() })
    }

    /// Returns the name that the driver gives the clock, such as `KVM virtual PTP`.
    pub fn name(&self) -> Option<String> {
        let device = self.path.file_name()?.to_str()?;
        let name = fs::read_to_string(format!("/sys/class/ptp/{device}/clock_name")).ok()?;
        Some(name.trim().to_owned())
    }

    /// Reads the device and the system clock, some times one after the other.
    ///
    /// # Errors
    /// The file is no hardware clock, or its driver cannot be read.
    pub fn read(&self) -> io::Result<Vec<CrossReading>> {
        match self.read_precise() {
            Ok(reading) => Ok(vec![reading]),
            // The hardware cannot read both clocks at once.
            Err(_) => self.read_extended(),
        }
    }

    fn read_precise(&self) -> io::Result<CrossReading> {
        // SAFETY: the structure is made of integers, for which zero is valid.
        let mut offset: libc::ptp_sys_offset_precise =
            unsafe { MaybeUninit::zeroed().assume_init() };
        let (file, command) = (self.file.as_raw_fd(), libc::PTP_SYS_OFFSET_PRECISE);
        // SAFETY: the call writes one `struct ptp_sys_offset_precise`.
        checked(unsafe { libc::ioctl(file, command, &raw mut offset) })?;
        let system = nanoseconds(&offset.sys_realtime);
        Ok(CrossReading { before: system, device: nanoseconds(&offset.device), after: system })
    }

    fn read_extended(&self) -> io::Result<Vec<CrossReading>> {
        // SAFETY: the structure is made of integers, for which zero is valid.
        let mut offset: libc::ptp_sys_offset_extended =
            unsafe { MaybeUninit::zeroed().assume_init() };
        offset.n_samples = SAMPLES as libc::c_uint;
        let (file, command) = (self.file.as_raw_fd(), libc::PTP_SYS_OFFSET_EXTENDED);
        // SAFETY: the call reads and writes one `struct ptp_sys_offset_extended`.
        checked(unsafe { libc::ioctl(file, command, &raw mut offset) })?;
        let reading = |[before, device, after]: &[libc::ptp_clock_time; 3]| CrossReading {
            before: nanoseconds(before),
            device: nanoseconds(device),
            after: nanoseconds(after),
        };
        Ok(offset.ts.iter().take(SAMPLES).map(reading).collect())
    }
}

fn nanoseconds(time: &libc::ptp_clock_time) -> i64 {
    time.sec.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nsec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_is_no_clock_is_an_error() {
        let clock = HardwareClock::open(Path::new("/dev/null")).unwrap();
        let error = clock.read().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY), "{error}");
        assert_eq!(clock.name(), None);
        assert!(HardwareClock::open(Path::new("/dev/ptp-no-such")).is_err());
    }

    #[test]
    fn clocks_of_this_machine_can_be_read() {
        for path in devices() {
            let clock = HardwareClock::open(&path).unwrap();
            let readings = clock.read().unwrap();
            assert!(!readings.is_empty(), "{}", path.display());
            assert!(readings.iter().all(|it| it.before <= it.after), "{readings:?}");
        }
    }
}
