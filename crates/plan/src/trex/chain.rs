//! Chains of streams: which stream starts which, and how many times.

use wirestorm_base::rate::FixedStepTicker;
use wirestorm_base::time::Duration;
use wirestorm_model::stream::{Mode, Speed, Stream, Transmission};

use super::TrexError;

/// A stream with properties that only TRex's streams have.
pub(super) struct ChainedStream {
    pub(super) path: String,
    pub(super) stream: Stream,
    /// Number of ends after which the chain stops; 0: no limit.
    pub(super) action_count: u32,
    /// Whether the stream only takes time and sends nothing.
    pub(super) is_dummy: bool,
}

/// Removes streams that only take time, and converts the limits of chains.
///
/// TRex limits how many times a stream ends, [`Transmission`] how many times the next one starts.
/// Both are equal if no other stream starts the next one. A stream that only takes time becomes a
/// delay of the next stream.
pub(super) fn resolve(mut links: Vec<ChainedStream>) -> Result<Vec<Stream>, TrexError> {
    limit_starts(&mut links)?;
    while let Some(index) = links.iter().position(|link| link.is_dummy) {
        fold_dummy(&mut links, index)?;
    }
    Ok(links.into_iter().map(|link| link.stream).collect())
}

fn limit_starts(links: &mut [ChainedStream]) -> Result<(), TrexError> {
    for link in links.iter_mut().filter(|link| link.action_count == 1) {
        link.stream.transmission.next = None;
    }
    for index in 0..links.len() {
        let (action_count, next) =
            (links[index].action_count, links[index].stream.transmission.next);
        let (Some(next), 2..) = (next, action_count) else { continue };
        check_single_predecessor(links, index, next, "action_count")?;
        let target = &mut links[next].stream.transmission;
        target.starts_max = action_count - 1 + u32::from(target.self_start);
    }
    Ok(())
}

/// Returns an error if a stream other than `index` also starts `next`.
fn check_single_predecessor(
    links: &[ChainedStream],
    index: usize,
    next: usize,
    field: &'static str,
) -> Result<(), TrexError> {
    let also = links
        .iter()
        .enumerate()
        .find(|(other, link)| *other != index && link.stream.transmission.next == Some(next));
    let Some((_, also)) = also else { return Ok(()) };
    let what = format!(
        "stream {:?} is also started by {:?}, so the number of its starts is ambiguous: let that \
         one start a copy",
        links[next].stream.name, also.stream.name
    );
    Err(TrexError::unsupported(format!("{}.{field}", links[index].path), what))
}

/// Replaces a stream that only takes time by a delay of the next stream.
fn fold_dummy(links: &mut Vec<ChainedStream>, index: usize) -> Result<(), TrexError> {
    let Transmission { next, self_start, starts_max, .. } = links[index].stream.transmission;
    let spent = send_duration(&links[index].stream.transmission);
    let next = next.filter(|next| *next != index);
    let (Some(next), Some(spent)) = (next, spent) else {
        // No stream follows, or the stream never ends.
        remove(links, index, None);
        return Ok(());
    };
    check_single_predecessor(links, index, next, "next")?;
    let target = &mut links[next].stream.transmission;
    if target.self_start {
        let what = "it delays a stream that also starts by itself, without that delay: set the \
                    delay as isg, or use a copy of that stream";
        return Err(TrexError::unsupported(links[index].path.clone(), what));
    }
    target.start_delay = target.start_delay.saturating_add(spent);
    target.self_start = self_start;
    target.starts_max = match (target.starts_max, starts_max) {
        (0, limit) | (limit, 0) => limit,
        (a, b) => a.min(b),
    };
    remove(links, index, Some(next));
    Ok(())
}

/// Removes a stream. Streams that start it start `instead`.
fn remove(links: &mut Vec<ChainedStream>, index: usize, instead: Option<usize>) {
    links.remove(index);
    let moved = |to: usize| if to > index { to - 1 } else { to };
    for link in links {
        let next = &mut link.stream.transmission.next;
        let successor = if *next == Some(index) { instead } else { *next };
        *next = successor.map(moved);
    }
}

/// Returns the time from a stream's start to its last frame, or `None` if it never ends.
fn send_duration(transmission: &Transmission) -> Option<Duration> {
    let Speed::Frames(rate) = transmission.speed else { return Some(Duration::ZERO) };
    let span = |frames: u64| FixedStepTicker::new(rate, frames - 1).step();
    let sending = match transmission.mode {
        Mode::Continuous => return None,
        Mode::Time { duration: lasts } => lasts,
        Mode::Burst { frames } => span(frames),
        Mode::Bursts { frames, count, gap } => {
            let bursts_total = span(frames).as_nanos().saturating_mul(count);
            let between = gap.as_nanos().saturating_mul(count - 1);
            Duration::from_nanos(bursts_total.saturating_add(between))
        }
    };
    Some(transmission.start_delay.saturating_add(sending))
}
