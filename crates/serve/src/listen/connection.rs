//! A bounded number of connections, each with bounded times.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, Version};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::tls::common_name;

/// Bounds of the connections of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Maximum number of open connections. More wait in the queue of the kernel.
    pub(crate) connections_max: usize,
    /// Maximum lifetime of a connection; `None` for no limit.
    pub(crate) lifetime_max: Option<Duration>,
}

/// Time for the TLS handshake, and for the head of a request. An idle connection ends after it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval of HTTP/2 pings, and the time for their answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum number of concurrent requests on an HTTP/2 connection.
const STREAMS_MAX: u32 = 128;
/// Pause after the system refused a connection, for example because no file descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Facts about the connection of a request.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Common name of the client certificate; `None` without one.
    pub(crate) certificate: Option<Arc<str>>,
}

/// Accepts connections until `stopped` is true.
pub(super) async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    bounds: Bounds,
    mut stopped: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(bounds.connections_max));
    let mut connections = JoinSet::new();
    loop {
        // Fails only if the semaphore is closed, which does not happen.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { break };
        // Forget those that have ended.
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Small responses must not wait for acknowledgements. After an error they do.
        let _ = stream.set_nodelay(true);
        let (tls, router, stopped) = (tls.clone(), router.clone(), stopped.clone());
        connections.spawn(async move {
            let stream = Bounded::new(stream, bounds.lifetime_max);
            serve(stream, tls, router, stopped).await;
            drop(slot);
        });
    }
    // A panic of a connection has been printed.
    while connections.join_next().await.is_some() {}
}

/// Serves one connection. Its errors concern the client alone.
async fn serve(
    stream: Bounded,
    tls: Option<TlsAcceptor>,
    router: Router,
    stopped: watch::Receiver<bool>,
) {
    let Some(tls) = tls else {
        return requests(stream, Peer { certificate: None }, router, stopped).await;
    };
    let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await else {
        return;
    };
    let chain = stream.get_ref().1.peer_certificates();
    let certificate = chain.and_then(|chain| common_name(chain.first()?)).map(Arc::from);
    requests(stream, Peer { certificate }, router, stopped).await;
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    peer: Peer,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).keep_alive_interval(PING_INTERVAL);
    http2.keep_alive_timeout(PING_INTERVAL).max_concurrent_streams(STREAMS_MAX);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        let is_http1 = request.version() < Version::HTTP_2;
        let is_read = Arc::new(AtomicBool::new(request.body().is_end_stream()));
        let mark = Arc::clone(&is_read);
        let response =
            router.clone().oneshot(request.map(|body| Body::new(Marked { body, is_read: mark })));
        async move {
            let mut response = response.await?;
            // The connection ends after a request that is not read to its end. Tell the client,
            // or its next request on the connection fails.
            if is_http1 && !is_read.load(Ordering::Relaxed) {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    connection.as_mut().graceful_shutdown();
    // The thread ends the remaining connections after a grace time.
    let _ = connection.await;
}

/// The body of a request, which sets `is_read` when it has been read to its end.
struct Marked {
    body: Incoming,
    is_read: Arc<AtomicBool>,
}

impl hyper::body::Body for Marked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A TCP connection that fails after its lifetime.
struct Bounded {
    stream: TcpStream,
    end: Option<Pin<Box<Sleep>>>,
}

impl Bounded {
    fn new(stream: TcpStream, lifetime_max: Option<Duration>) -> Self {
        Self { stream, end: lifetime_max.map(|time| Box::pin(sleep(time))) }
    }

    /// Returns an error after the end of the lifetime.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.end.as_mut().map(|end| end.as_mut().poll(context)) {
            Some(Poll::Ready(())) => Err(io::ErrorKind::TimedOut.into()),
            Some(Poll::Pending) | None => Ok(()),
        }
    }
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
