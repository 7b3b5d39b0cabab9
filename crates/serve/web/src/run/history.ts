// Rates over time, from the totals that the server sends.

import type { Progress } from '../documents.ts';

/** Samples that the page keeps; older ones are dropped. */
const SAMPLES_MAX = 900;
/** A page that opens this early after the start shows what came since then as its first interval. */
export const FIRST_NS = 5e9;
/** Bytes of FCS, and of preamble, start delimiter and inter-frame gap: IEEE 802.3. */
const FCS_BYTES = 4;
const WIRE_BYTES = 20;

export interface PortRates {
  txFrames: number;
  rxFrames: number;
  txBits: { l1: number; l2: number };
  rxBits: { l1: number; l2: number };
  established: number;
  active: number;
  failed: number;
}

export interface FlowRates {
  txFrames: number;
  rxFrames: number | null;
  /** Frames sent so far that have not arrived; null for a flow that is not measured. */
  missing: number | null;
  delayNs: number | null;
}

export interface Sample {
  seconds: number;
  ports: ReadonlyMap<string, PortRates>;
  flows: ReadonlyMap<string, FlowRates>;
  /** Frames of all measured flows that have not arrived. */
  missing: number | null;
  /** Mean delay of all measured flows, in nanoseconds. */
  delayNs: number | null;
  /** Mean round-trip time of probes, by source and destination. */
  probes: ReadonlyMap<string, number | null>;
}

export class History {
  readonly samples: Sample[] = [];
  last: Progress | null = null;

  /** Adds totals. Returns whether there is a new sample. */
  add(progress: Progress): boolean {
    const isFirst = this.last === null && progress.elapsed_ns < FIRST_NS;
    const before = isFirst ? atStart(progress) : this.last;
    this.last = progress;
    if (
      !before ||
      progress.elapsed_ns <= before.elapsed_ns ||
      !progress.ports.length ||
      !before.ports.length
    )
      return false;
    const seconds = (progress.elapsed_ns - before.elapsed_ns) / 1e9;
    // The last interval of a run may be too short for a rate.
    if (seconds < 0.05) return false;
    this.samples.push(sample(before, progress, seconds));
    if (this.samples.length > SAMPLES_MAX)
      this.samples.splice(0, this.samples.length - SAMPLES_MAX);
    return true;
  }

  get latest(): Sample | null {
    return this.samples.at(-1) ?? null;
  }
}

function sample(before: Progress, now: Progress, seconds: number): Sample {
  const ports = new Map<string, PortRates>();
  now.ports.forEach((port, at) => {
    const old = before.ports[at];
    if (!old) return;
    const txFrames = (port.tx_frames - old.tx_frames) / seconds;
    const rxFrames = (port.rx_frames - old.rx_frames) / seconds;
    ports.set(port.name, {
      txFrames,
      rxFrames,
      txBits: bits((port.tx_bytes - old.tx_bytes) / seconds, txFrames),
      rxBits: bits((port.rx_bytes - old.rx_bytes) / seconds, rxFrames),
      established: (port.connections.established - old.connections.established) / seconds,
      active: port.connections.active,
      failed: (port.connections.failed - old.connections.failed) / seconds,
    });
  });
  const flows = new Map<string, FlowRates>();
  let [missing, arrived, delays] = [0, 0, 0];
  now.flows.forEach((flow, at) => {
    const old = before.flows[at];
    if (!old) return;
    const tx = flow.tx_frames - old.tx_frames;
    const rx = flow.received ? flow.received.frames - (old.received?.frames ?? 0) : null;
    const delayNs = intervalMean(flow.received, old.received);
    if (rx !== null) {
      missing += notArrived(flow);
      arrived += rx;
      if (delayNs !== null) delays += delayNs * rx;
    }
    flows.set(flow.name, {
      txFrames: tx / seconds,
      rxFrames: rx === null ? null : rx / seconds,
      missing: rx === null ? null : notArrived(flow),
      delayNs,
    });
  });
  const isMeasured = now.flows.some((flow) => flow.received);
  return {
    seconds: now.elapsed_ns / 1e9,
    ports,
    flows,
    missing: isMeasured ? missing : null,
    delayNs: delays > 0 && arrived > 0 ? delays / arrived : null,
    probes: new Map(
      now.latency.slice(0, 8).map((it) => [`${it.port} to ${it.target}`, it.mean_ns ?? null]),
    ),
  };
}

type Received = NonNullable<Progress['flows'][number]['received']>;

/** Returns the mean of an interval from the means since the start. */
function intervalMean(
  now: Received | null | undefined,
  before: Received | null | undefined,
): number | null {
  if (now?.delay_mean_ns === null || now?.delay_mean_ns === undefined) return null;
  const frames = now.frames - (before?.frames ?? 0);
  if (frames <= 0) return null;
  const sum = now.delay_mean_ns * now.frames - (before?.delay_mean_ns ?? 0) * (before?.frames ?? 0);
  return Math.max(0, sum / frames);
}

/** Frames under way count until they arrive. Counters of two ports are not of one moment. */
function notArrived(flow: Progress['flows'][number]): number {
  return Math.max(0, flow.tx_frames - (flow.received?.frames ?? 0));
}

/** Returns the totals at the start of a run. */
function atStart(progress: Progress): Progress {
  const none = { established: 0, active: 0, failed: 0, tx_bytes: 0, rx_bytes: 0, retransmitted: 0 };
  return {
    ...progress,
    elapsed_ns: 0,
    ports: progress.ports.map((port) => ({
      ...port,
      tx_frames: 0,
      tx_bytes: 0,
      rx_frames: 0,
      rx_bytes: 0,
      connections: none,
    })),
    flows: progress.flows.map((flow) => ({ ...flow, tx_frames: 0, tx_bytes: 0, received: null })),
  };
}

function bits(bytes: number, frames: number): { l1: number; l2: number } {
  const l2 = 8 * (bytes + FCS_BYTES * frames);
  return { l2, l1: l2 + 8 * WIRE_BYTES * frames };
}
