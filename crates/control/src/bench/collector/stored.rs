//! Count of the records that a collector has stored, by a command.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};

use wirestorm_base::time::Duration;
use wirestorm_io::clock;
use wirestorm_method::trial::TrialError;

use super::super::stop::StopSignal;

/// Longest duration of one command.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval at which the end of a command is checked.
const POLL: Duration = Duration::from_millis(5);
/// Wait between two counts.
const INTERVAL: Duration = Duration::from_millis(200);
/// Bytes of output that are read. A number is shorter.
const OUTPUT_MAX: u64 = 4_096;

/// Counts the records that a collector has stored so far.
pub(super) struct StoredRecords {
    command: String,
    quiet: Duration,
}

impl StoredRecords {
    /// `quiet` is the time without further records after which a trial ends.
    pub(super) const fn new(command: String, quiet: Duration) -> Self {
        Self { command, quiet }
    }

    /// Returns the number of records that the collector has stored so far.
    pub(super) fn count(&self, stop: &StopSignal) -> Result<u64, TrialError> {
        let failed = |text: String| {
            TrialError::Failed(format!("--received-command {:?}: {text}", self.command))
        };
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (status, output, errors) = finish(child, stop, failed)?;
        if !status.success() {
            let errors = errors.trim();
            return Err(failed(format!(
                "{status}{}{errors}",
                if errors.is_empty() { "" } else { ": " }
            )));
        }
        let text = output.trim();
        text.parse().map_err(|_| {
            failed(format!("expected the number of stored records on stdout, found {text:?}"))
        })
    }

    /// Waits until the collector has stored `sent` records since it had `before`, or until no
    /// further ones come. Returns the stored records.
    pub(super) fn wait(
        &self,
        before: u64,
        sent: u64,
        stop: &StopSignal,
    ) -> Result<u64, TrialError> {
        let mut stored = 0;
        let mut changed = clock::now();
        loop {
            let now_stored = self.count(stop)?.checked_sub(before).ok_or_else(|| {
                TrialError::Failed(format!(
                    "--received-command {:?}: the number of stored records became less than \
                     {before}; print the number since the start of the collector",
                    self.command
                ))
            })?;
            let now = clock::now();
            if now_stored != stored {
                (stored, changed) = (now_stored, now);
            }
            if stored >= sent || now.saturating_since(changed) >= self.quiet {
                return Ok(stored);
            }
            if stop.wait(INTERVAL) {
                return Err(TrialError::Stopped);
            }
        }
    }
}

/// Waits for a command; returns its status, output and errors. Kills it after [`PATIENCE`], and at a
/// stop.
fn finish(
    mut child: Child,
    stop: &StopSignal,
    failed: impl Fn(String) -> TrialError,
) -> Result<(ExitStatus, String, String), TrialError> {
    let readers = (child.stdout.take().map(read), child.stderr.take().map(read));
    let started = clock::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => return Err(failed(error.to_string())),
        }
        let is_stopped = stop.wait(POLL);
        if is_stopped || clock::now().saturating_since(started) > PATIENCE {
            // It may have ended meanwhile.
            let _ = child.kill();
            let _ = child.wait();
            return Err(match is_stopped {
                true => TrialError::Stopped,
                false => failed(format!("no end within {} s", PATIENCE.as_secs_f64())),
            });
        }
    };
    // A terminal sends SIGINT to the command too.
    if stop.is_stopped() {
        return Err(TrialError::Stopped);
    }
    let text = |reader: Option<std::thread::JoinHandle<String>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    Ok((status, text(readers.0), text(readers.1)))
}

/// Reads the start of a stream on a thread, and the rest without keeping it.
fn read(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // An error ends the text, which is then no number.
        let _ = stream.by_ref().take(OUTPUT_MAX).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(command: &str) -> StoredRecords {
        StoredRecords::new(command.into(), Duration::from_millis(1))
    }

    fn error(command: &str) -> String {
        stored(command).count(&StopSignal::default()).unwrap_err().to_string()
    }

    #[test]
    fn command_prints_a_number_or_its_error_is_reported() {
        assert_eq!(stored("echo ' 42'").count(&StopSignal::default()), Ok(42));
        assert!(error("echo many").contains("found \"many\""));
        assert!(error("echo broken >&2; exit 3").contains("3: broken"));
    }

    #[test]
    fn count_is_that_since_the_start_of_the_trial() {
        let stop = StopSignal::default();
        assert_eq!(stored("echo 42").wait(40, 2, &stop), Ok(2));
        assert_eq!(stored("echo 42").wait(40, 3, &stop), Ok(2), "no further records come");
        assert!(stored("echo 1").wait(40, 3, &stop).is_err());
    }

    #[test]
    fn stop_ends_a_command() {
        let stop = StopSignal::default();
        stop.stop();
        assert_eq!(stored("sleep 600").count(&stop), Err(TrialError::Stopped));
    }
}
