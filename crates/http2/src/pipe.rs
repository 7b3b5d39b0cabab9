//! In-memory connection for the `h2` library: two byte queues and a waker that sets a flag.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes from the peer to the library and back. One thread uses both ends, so the lock never
/// blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pipe(Arc<Mutex<Queues>>);

#[derive(Debug, Default)]
pub(crate) struct Queues {
    /// Bytes from the peer that the library has not read yet.
    received: VecDeque<u8>,
    /// Bytes to send to the peer.
    pub(crate) due: VecDeque<u8>,
}

impl Pipe {
    pub(crate) fn queues(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends bytes from the peer.
    pub(crate) fn receive(&self, bytes: &[u8]) {
        self.queues().received.extend(bytes);
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let received = &mut self.queues().received;
        if received.is_empty() {
            // No waker is needed: the caller polls the library after it adds bytes.
            return Poll::Pending;
        }
        let length = received.len().min(to.remaining());
        let (first, second) = received.as_slices();
        let from_first = length.min(first.len());
        to.put_slice(&first[..from_first]);
        to.put_slice(&second[..length - from_first]);
        received.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.queues().due.extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Flag that a polled future sets to request another poll.
#[derive(Debug)]
pub(crate) struct WakeFlag {
    flag: Arc<Flag>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Default for WakeFlag {
    fn default() -> Self {
        let flag = Arc::new(Flag::default());
        Self { waker: Waker::from(Arc::clone(&flag)), flag }
    }
}

impl WakeFlag {
    /// Returns the context to poll with.
    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Returns whether a wake-up occurred since the last call.
    pub(crate) fn take(&self) -> bool {
        self.flag.0.swap(false, Ordering::Relaxed)
    }
}
