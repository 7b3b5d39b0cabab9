//! The thread that runs the sending program in the kernel until stopped.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Signal that ends a system call early. Its default action is to be ignored, so a late one is
/// harmless.
const WAKE_SIGNAL: libc::c_int = libc::SIGURG;

/// Time that a signal has to end the test run before it is sent again.
const WAKE_INTERVAL: Duration = Duration::from_millis(20);

/// `BPF_F_TEST_XDP_LIVE_FRAMES` (linux/bpf.h).
const TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;
/// `BPF_PROG_TEST_RUN` (linux/bpf.h).
const PROG_TEST_RUN: libc::c_int = 10;

/// A running sender.
pub(super) struct Sender {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    ended: mpsc::Receiver<io::Result<()>>,
}

impl Sender {
    /// Starts a thread that calls `prepare` with its thread ID, then runs the returned program and
    /// drops it when the run ends. The thread inherits the caller's network namespace. The kernel
    /// fills new pages with the frame `template`.
    pub(super) fn start<P: AsFd>(
        cpu: Option<usize>,
        template: Vec<u8>,
        batch: u32,
        prepare: impl FnOnce(u32) -> io::Result<P> + Send + 'static,
    ) -> io::Result<Self> {
        catch_wake_signal()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let (started, has_started) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let thread = std::thread::Builder::new().name("xdp-sender".into()).spawn(move || {
            if let Some(cpu) = cpu {
                pin_to(cpu);
            }
            // SAFETY: gettid has no preconditions.
            let thread_id = unsafe { libc::gettid() };
            let program = match prepare(thread_id.cast_unsigned()) {
                Ok(program) => program,
                Err(error) => {
                    let _ = started.send(Err(error));
                    return;
                }
            };
            let _ = started.send(Ok(()));
            let mut outcome = Ok(());
            while !stopping.load(Ordering::Acquire) {
                if let Err(error) = run_program(program.as_fd(), &template, batch) {
                    outcome = Err(error);
                    break;
                }
            }
            let _ = end.send(outcome);
        })?;
        let started = has_started.recv();
        let sender = Self { thread: Some(thread), stop, ended };
        match started {
            Ok(Ok(())) => Ok(sender),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("the sender's thread ended before it started")),
        }
    }

    /// Returns whether the thread has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Returns the error that ended the sender, if any.
    pub(super) fn error(&self) -> Option<io::Error> {
        match self.ended.try_recv() {
            Ok(Err(error)) => Some(error),
            Ok(Ok(())) | Err(mpsc::TryRecvError::Empty) => None,
            Err(mpsc::TryRecvError::Disconnected) => {
                Some(io::Error::other("the sender's thread is gone"))
            }
        }
    }

    /// Ends the run; returns once the kernel has released all frames (5 to 20 ms).
    pub(super) fn stop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        // A signal that arrives just before the system call starts has no effect, so repeat it.
        while !thread.is_finished() {
            // SAFETY: the thread is not joined yet, so its ID is valid.
            unsafe { libc::pthread_kill(thread.as_pthread_t(), WAKE_SIGNAL) };
            let _ = self.ended.recv_timeout(WAKE_INTERVAL);
        }
        let _ = thread.join();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Makes one test run with live frames until a signal, or for the maximum of 2^32 - 1 iterations.
fn run_program(program: BorrowedFd<'_>, template: &[u8], batch: u32) -> io::Result<()> {
    /// The part of `union bpf_attr` that belongs to `BPF_PROG_TEST_RUN` (linux/bpf.h).
    #[repr(C)]
    #[derive(Default)]
    struct TestRun {
        program: u32,
        result: u32,
        data_in_bytes: u32,
        data_out_bytes: u32,
        data_in: u64,
        data_out: u64,
        repeat: u32,
        duration: u32,
        context_in_bytes: u32,
        context_out_bytes: u32,
        context_in: u64,
        context_out: u64,
        flags: u32,
        cpu: u32,
        batch_size: u32,
        padding: u32,
    }
    let mut attributes = TestRun {
        program: program.as_raw_fd().cast_unsigned(),
        data_in_bytes: u32::try_from(template.len()).map_err(io::Error::other)?,
        data_in: template.as_ptr() as u64,
        repeat: u32::MAX,
        flags: TEST_XDP_LIVE_FRAMES,
        batch_size: batch,
        ..TestRun::default()
    };
    // SAFETY: the attributes have the kernel's layout and live through the call. The kernel only
    // reads the template's bytes, which live as long, and writes only to the attributes.
    let answer = unsafe {
        libc::syscall(libc::SYS_bpf, PROG_TEST_RUN, &raw mut attributes, size_of::<TestRun>())
    };
    if answer >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}

/// Installs an empty handler for the wake signal: an ignored signal would not interrupt a call.
fn catch_wake_signal() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: zero is a valid sigaction, and the empty handler is async-signal-safe. SA_RESTART
    // stays off so that the signal ends system calls.
    let answer = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(WAKE_SIGNAL, &raw const action, std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Pins the calling thread to one CPU; an error leaves its affinity unchanged.
fn pin_to(cpu: usize) {
    // SAFETY: zero is an empty set, CPU_SET stays within it for the checked index, and the set
    // lives through the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu < 8 * size_of::<libc::cpu_set_t>() {
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
        }
    }
}
