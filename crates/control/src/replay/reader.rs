//! The reader: a thread that reads captures ahead of the workers, decodes and indexes them.
//!
//! All workers get shared references to each chunk and return it by dropping them. The reader keeps
//! its own reference and fills a chunk again when that is the only one. The queue to each worker is
//! shorter than the pool, so at least one chunk is always on its way back. Small captures stay in
//! memory after the first pass.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use wirestorm_engine::replay::{
    Chunk, Feed, FeedItem, IndexError, Indexer, IndexerOptions, KeptChunks, Record,
};

use super::input::{Input, InputError};
use super::pair::Pair;
use super::reader_counters::{ReaderCounters, TruncatedFile};

/// Options of the reader.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// Captures, in order.
    pub inputs: Vec<Input>,
    /// Number of passes; `u64::MAX` for no limit.
    pub passes: u64,
    /// Whether to read all captures into memory before the first frame is sent.
    pub preload: bool,
    /// Whether to merge each pair of captures by time.
    pub in_pairs: bool,
    /// Options of the indexer.
    pub indexer: IndexerOptions,
}

/// Error that ended reading early.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file does not open.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Reading a file failed.
    #[error("{input}: byte {position}: cannot read: {error}")]
    Read {
        /// File.
        input: String,
        /// Position in bytes after decompression.
        position: u64,
        /// Error of the system or the decompressor.
        error: io::Error,
    },
    /// A record of a file is invalid.
    #[error("{input}: {error}")]
    Index {
        /// File.
        input: String,
        /// Error with packet number and position.
        error: IndexError,
    },
    /// A second pass over standard input.
    #[error("standard input can be read only once: use --preload-pcap to replay it in a loop")]
    StandardInputTwice,
}

/// Bytes of a chunk: several milliseconds of sending at any rate of a worker, and small enough for
/// the pool to fit into a core's share of the cache.
const CHUNK_BYTES: usize = 1 << 20;

/// Maximum number of chunks queued for a worker: 4 MiB of read-ahead.
const QUEUE_CHUNKS: usize = 4;

/// Chunks in the pool: one more than a full queue, one in use by the worker, one being filled.
const POOL_CHUNKS: usize = QUEUE_CHUNKS + 3;

/// Captures up to this size stay in memory after the first pass if there is a second.
pub(super) const KEEP_BYTES_MAX: u64 = 64 << 20;

/// Returns the size of all inputs together; `None` if it is not known.
pub(super) fn size(inputs: &[Input]) -> Option<u64> {
    inputs.iter().try_fold(0_u64, |sum, input| sum.checked_add(input.plain_length()?))
}

/// A running reader thread.
#[derive(Debug)]
pub struct Reader {
    thread: Option<JoinHandle<Result<(), ReadError>>>,
    stop: Arc<AtomicBool>,
    counters: Arc<ReaderCounters>,
}

impl From<TruncatedFile> for ReadError {
    fn from(TruncatedFile { input, reason }: TruncatedFile) -> Self {
        Self::Index { input, error: reason.into() }
    }
}

impl Reader {
    /// Starts the thread and returns one feed for each worker. Waits for the first chunk or, with
    /// `preload`, for all chunks.
    ///
    /// # Errors
    /// Fails if the thread does not start. [`Reader::finish`] returns errors of reading; records
    /// before the error are replayed.
    pub fn start(options: ReaderOptions) -> io::Result<(Self, Vec<ReaderFeed>)> {
        let workers = options.indexer.workers.max(1);
        let stop = Arc::new(AtomicBool::new(false));
        let counters = Arc::new(ReaderCounters::default());
        let (workers, receivers): (Vec<_>, Vec<_>) =
            (0..workers).map(|_| sync_channel(QUEUE_CHUNKS)).unzip();
        let mut feeds: Vec<ReaderFeed> = receivers
            .into_iter()
            .map(|receiver| ReaderFeed {
                receiver,
                kept: None,
                cursor: 0,
                passes_left: options.passes,
            })
            .collect();
        let is_preloaded = options.preload;
        let (ready, wait_ready) = sync_channel(1);
        let mut reading = Reading {
            indexer: Indexer::new(options.indexer.clone()),
            keeps_chunks: options.preload || (options.passes > 1 && are_small(&options.inputs)),
            kept: Vec::new(),
            pool: Vec::new(),
            rest: Vec::new(),
            workers,
            ready,
            stop: Arc::clone(&stop),
            counters: Arc::clone(&counters),
            options,
        };
        let thread =
            std::thread::Builder::new().name("reader".into()).spawn(move || reading.run())?;
        // The channel also closes when the thread ends for any other reason.
        let _ = wait_ready.recv();
        for feed in feeds.iter_mut().filter(|_| is_preloaded) {
            feed.take_kept();
        }
        Ok((Self { thread: Some(thread), stop, counters }, feeds))
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Arc<ReaderCounters> {
        &self.counters
    }

    /// Stops the thread. The caller must have dropped all feeds.
    ///
    /// # Errors
    /// Returns the error that ended reading early, if any.
    ///
    /// # Panics
    /// Panics if the reader thread panicked.
    pub fn finish(mut self) -> Result<(), ReadError> {
        self.stop.store(true, Ordering::Release);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

/// Message from the reader to a worker's feed.
#[derive(Clone, Debug)]
enum Message {
    Chunk(Arc<Chunk>),
    PassEnd,
    /// All chunks of a pass, for all remaining passes, or for one after an error.
    Kept {
        chunks: Arc<[Arc<Chunk>]>,
        is_once: bool,
    },
}

/// Returns whether all inputs together are small enough to stay in memory without preloading.
fn are_small(inputs: &[Input]) -> bool {
    size(inputs).is_some_and(|size| size <= KEEP_BYTES_MAX)
}

/// State of the reader thread.
struct Reading {
    options: ReaderOptions,
    indexer: Indexer,
    /// Whether chunks stay in memory instead of being reused.
    keeps_chunks: bool,
    kept: Vec<Arc<Chunk>>,
    pool: Vec<Arc<Chunk>>,
    /// Bytes at the end of a chunk that belong to the next one.
    rest: Vec<u8>,
    workers: Vec<SyncSender<Message>>,
    /// Signals that the first chunk or, with `preload`, all chunks are available.
    ready: SyncSender<()>,
    stop: Arc<AtomicBool>,
    counters: Arc<ReaderCounters>,
}

impl Reading {
    fn run(&mut self) -> Result<(), ReadError> {
        for pass in 0..self.options.passes {
            let outcome = self.pass();
            if self.options.preload {
                // After an error, replay the records before it once.
                self.send_kept(outcome.is_err());
                let _ = self.ready.try_send(());
                return outcome;
            }
            outcome?;
            if self.send(&Message::PassEnd).is_none() {
                break;
            }
            if self.keeps_chunks {
                self.send_kept(false);
                break;
            }
            if pass == 0 && self.options.passes > 1 && self.reads_standard_input() {
                return Err(ReadError::StandardInputTwice);
            }
        }
        Ok(())
    }

    fn send_kept(&mut self, is_once: bool) {
        let chunks = std::mem::take(&mut self.kept).into();
        self.send(&Message::Kept { chunks, is_once });
    }

    fn reads_standard_input(&self) -> bool {
        self.options.inputs.iter().any(Input::is_stream)
    }

    fn pass(&mut self) -> Result<(), ReadError> {
        self.indexer.start_pass();
        let step = if self.options.in_pairs { 2 } else { 1 };
        for file in (0..self.options.inputs.len()).step_by(step) {
            self.indexer.start_file(file as u32);
            self.rest.clear();
            let mut reader: Box<dyn Read + Send> = match &self.options.inputs[file..] {
                [first, second, ..] if self.options.in_pairs => {
                    Box::new(Pair::open([first, second], &self.counters)?)
                }
                [input, ..] => input.open()?,
                [] => break,
            };
            while self.chunk(file, &mut reader)?.is_some() {}
            if self.stop.load(Ordering::Acquire) {
                break;
            }
        }
        Ok(())
    }

    /// Reads one chunk of a file and sends it to the workers; `None` at the end of the file.
    fn chunk(
        &mut self,
        file: usize,
        reader: &mut (dyn Read + Send),
    ) -> Result<Option<()>, ReadError> {
        let is_pipe = self.options.inputs[file].is_stream();
        let mut shared = self.spare_chunk();
        // A spare chunk is new, or its only reference was in the pool.
        let chunk = Arc::get_mut(&mut shared).expect("a spare chunk has no other owner");
        chunk.records.clear();
        chunk.bytes.resize(chunk.bytes.len().max(CHUNK_BYTES).max(self.rest.len()), 0);
        chunk.bytes[..self.rest.len()].copy_from_slice(&self.rest);
        let mut filled = self.rest.len();
        let mut at_end = false;
        let outcome = loop {
            while !at_end && filled < chunk.bytes.len() {
                let count = match reader.read(&mut chunk.bytes[filled..]) {
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        let input = self.options.inputs[file].to_string();
                        let position = self.indexer.position() + filled as u64;
                        return Err(ReadError::Read { input, position, error });
                    }
                };
                at_end = count == 0;
                filled += count;
                self.counters.bytes.fetch_add(count as u64, Ordering::Relaxed);
                if is_pipe {
                    break;
                }
            }
            match self.indexer.index(chunk, filled, at_end) {
                // No complete record yet: it is longer than the chunk, or a pipe is slow.
                Ok(indexed) if !indexed.ended && chunk.records.is_empty() => {
                    let at_least = indexed.consumed + indexed.at_least;
                    let length = chunk.bytes.len().max(at_least);
                    chunk.bytes.resize(length, 0);
                    chunk.bytes.copy_within(indexed.consumed..filled, 0);
                    filled -= indexed.consumed;
                }
                outcome => break outcome,
            }
        };
        self.counters.records.fetch_add(chunk.records.len() as u64, Ordering::Relaxed);
        self.counters.flows_overflowed.store(self.indexer.flows_overflowed(), Ordering::Relaxed);
        self.counters.sides_overflowed.store(self.indexer.sides_overflowed(), Ordering::Relaxed);
        self.rest.clear();
        if let Ok(indexed) = &outcome {
            self.rest.extend_from_slice(&chunk.bytes[indexed.consumed..filled]);
        }
        let sent = self.dispatch(shared);
        match outcome {
            Ok(indexed) if indexed.ended => Ok(None),
            Ok(_) => Ok(sent),
            Err(IndexError::Capture(error))
                if self.counters.record_truncation(&self.options.inputs[file], &error) =>
            {
                Ok(None)
            }
            Err(error) => {
                let input = self.options.inputs[file].to_string();
                Err(ReadError::Index { input, error })
            }
        }
    }

    /// Returns a chunk that no worker uses.
    fn spare_chunk(&mut self) -> Arc<Chunk> {
        if !self.keeps_chunks {
            for position in 0..self.pool.len() {
                if Arc::get_mut(&mut self.pool[position]).is_some() {
                    return self.pool.swap_remove(position);
                }
            }
        }
        Arc::default()
    }

    /// Sends a filled chunk to all workers; `None` to stop reading.
    fn dispatch(&mut self, mut chunk: Arc<Chunk>) -> Option<()> {
        if self.keeps_chunks {
            if let Some(chunk) = Arc::get_mut(&mut chunk) {
                let end = chunk.records.iter().map(Record::end).max().unwrap_or(0);
                chunk.bytes.truncate(end);
                chunk.bytes.shrink_to_fit();
                chunk.records.shrink_to_fit();
                chunk.kept = (self.options.passes > 1).then_some(self.kept.len() as u32);
            }
            self.kept.push(Arc::clone(&chunk));
        } else if self.pool.len() < POOL_CHUNKS {
            self.pool.push(Arc::clone(&chunk));
        }
        if self.options.preload {
            return (!self.stop.load(Ordering::Acquire)).then_some(());
        }
        let sent = self.send(&Message::Chunk(chunk));
        let _ = self.ready.try_send(());
        sent
    }

    /// Sends a message to all remaining workers and waits for space in their queues. `None` if no
    /// worker is left or reading must stop.
    fn send(&mut self, message: &Message) -> Option<()> {
        self.workers.retain(|worker| worker.send(message.clone()).is_ok());
        (!self.workers.is_empty() && !self.stop.load(Ordering::Acquire)).then_some(())
    }
}

/// Receiving end of the reader for one worker.
#[derive(Debug)]
pub struct ReaderFeed {
    receiver: Receiver<Message>,
    kept: Option<Arc<[Arc<Chunk>]>>,
    /// Index of the next kept chunk.
    cursor: usize,
    passes_left: u64,
}

impl ReaderFeed {
    /// Takes the chunks of a preloaded capture.
    fn take_kept(&mut self) {
        if let Ok(Message::Kept { chunks, is_once }) = self.receiver.try_recv() {
            self.keep(chunks, is_once);
        }
    }

    fn keep(&mut self, chunks: Arc<[Arc<Chunk>]>, is_once: bool) {
        self.kept = Some(chunks);
        if is_once {
            self.passes_left = self.passes_left.min(1);
        }
    }
}

impl Feed for ReaderFeed {
    fn kept(&mut self) -> Option<KeptChunks> {
        let chunks = self.kept.clone().filter(|_| self.cursor == 0)?;
        Some(KeptChunks { chunks, passes: self.passes_left })
    }

    fn next(&mut self) -> FeedItem {
        if self.passes_left == 0 {
            return FeedItem::End;
        }
        if self.kept.is_none() {
            match self.receiver.try_recv() {
                Ok(Message::Chunk(chunk)) => return FeedItem::Chunk(chunk),
                Ok(Message::PassEnd) => {
                    self.passes_left -= 1;
                    return FeedItem::PassEnd;
                }
                Ok(Message::Kept { chunks, is_once }) => self.keep(chunks, is_once),
                Err(TryRecvError::Empty) => return FeedItem::Pending,
                Err(TryRecvError::Disconnected) => return FeedItem::End,
            }
        }
        let Some(kept) = &self.kept else { return FeedItem::Pending };
        if let Some(chunk) = kept.get(self.cursor) {
            self.cursor += 1;
            return FeedItem::Chunk(Arc::clone(chunk));
        }
        self.cursor = 0;
        self.passes_left = if kept.is_empty() { 0 } else { self.passes_left - 1 };
        FeedItem::PassEnd
    }
}
