//! Flags that name the sources of the clock's error.

use std::path::PathBuf;

use clap::Args;
use wirestorm_control::plan::traffic::parse_time;
use wirestorm_control::sync::sources::SourceOptions;

const HEADING: &str = "Clock sources";

/// Where to look for sources.
#[derive(Args, Debug)]
pub(crate) struct SourceFlags {
    /// Socket of chronyd
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/run/chrony/chronyd.sock",
        help_heading = HEADING
    )]
    chrony: PathBuf,

    /// UDP port of chronyd on this machine, if the socket does not answer
    #[arg(long, value_name = "PORT", default_value_t = 323, help_heading = HEADING)]
    chrony_port: u16,

    /// Socket of ptp4l; repeatable, the first that answers counts
    #[arg(
        long,
        value_name = "PATH",
        default_values = ["/var/run/ptp4l", "/var/run/ptp4lro"],
        num_args = 1,
        help_heading = HEADING
    )]
    ptp4l: Vec<PathBuf>,

    /// PTP domain of ptp4l
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = HEADING)]
    domain: u8,

    /// Error of the hardware clocks (/dev/ptp*), which the kernel does not know
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    phc_error: Option<String>,
}

impl SourceFlags {
    /// Returns where to look for sources.
    ///
    /// # Errors
    /// A time is not valid.
    pub(crate) fn options(&self) -> Result<SourceOptions, String> {
        let expected = "expected a time with its unit, such as 40us";
        let time = |text: &String| {
            parse_time(text).ok_or_else(|| format!("--phc-error {text:?}: {expected}"))
        };
        Ok(SourceOptions {
            chrony: self.chrony.clone(),
            chrony_port: self.chrony_port,
            ptp4l: self.ptp4l.clone(),
            domain: self.domain,
            phc_error_ns: self.phc_error.as_ref().map(time).transpose()?.map(|it| it.as_nanos()),
        })
    }
}
