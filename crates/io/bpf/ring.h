/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The memory that a process and an XDP program share: one value of one memory-mapped array.
 * `src/xdp/layout.rs` holds the same layout; a test compares the two by size and offset.
 *
 * Each side writes its own cache lines: the process writes `user`, descriptors and buffers, the
 * program writes `kernel` and the histograms. The store is a separate array of slabs, for frames
 * that the process writes once and sends any number of times.
 */
#ifndef WIRESTORM_RING_H
#define WIRESTORM_RING_H

#include <linux/types.h>

#include "histogram.h"

/* A power of two. There are never more buffers than descriptors, so the ring cannot overflow. */
#define RING_DESCRIPTORS 16384

/* Space for the frame buffers; the process sets their distance before loading. */
#define BUFFERS_BYTES (24 << 20)

/* A live frame has to fit in one page with headroom, bookkeeping and the shared info. */
#define FRAME_BYTES_MAX 3400

/* Each stored frame lies within one slab and starts below SLAB_BYTES. The padding lets the program
 * read whole words and cache lines at the end. */
#define SLAB_SHIFT 20
#define SLAB_BYTES (1 << SLAB_SHIFT)
#define SLAB_DISTANCE (SLAB_BYTES + 4096)
#define SLABS_MAX 1024
#define STORED (1u << 31)

#define STAMPED (1u << 15)

struct descriptor {
	__u64 departure; /* CLOCK_MONOTONIC in ns; 0: as soon as possible */
	__u32 source;    /* STORED | slab << SLAB_SHIFT | offset; 0: the frame is in the buffer */
	__u16 buffer;
	__u16 length;    /* | STAMPED: the frame ends in the time of its departure */
};

/* Fields written by the process. */
struct user_side {
	__u64 produced;
	__u64 abort; /* nonzero: consume frames without sending, count them as unsent */
	__u64 resident; /* nonzero: send the resident streams */
	__u64 reserved[5];
};

/* Fields written by the sending program. */
struct kernel_side {
	__u64 consumed;
	__u64 redirected;
	__u64 redirected_bytes;
	__u64 refused; /* the program could not form or redirect the frame */
	__u64 unsent;
	__u64 idle_turns;
	__u64 start_delay;
	__u64 regained;
	/* Departure statistics, same as wirestorm_base::departure::DepartureRecord. */
	__u64 timed;
	__u64 first;
	__u64 last;
	__u64 due_before;
	__u64 shifted;
	__u64 lateness_max;
	__u64 gap_max;
	__u64 gap_error_max;
};

/* Fields written by the program on the device's transmit tracepoint. */
struct device_side {
	__u64 sent;
	__u64 dropped;
	__u64 last_error;
	__u64 reserved[5];
};

/* Without due times, the program reads the clock once for so many frames. Reading it takes half as
 * long as sending a frame, and a frame waits longer for the end of its batch. */
#define CLOCK_FRAMES 4

/* Fields of the resident streams. The process writes them while `user_side.resident` is zero, the
 * program otherwise. */
struct resident_side {
	__u64 sending; /* streams that are sending */
	__u64 left;    /* frames that all streams together may still send */
	__u64 until;   /* without due times: sending ends at this time */
	__u64 turn;    /* without due times: place of the stream whose turn it is */
	__u64 turn_left;
	/* For the program of a shape: stream, time of the departure, whether to leave the frame out. */
	__u64 stream;
	__u64 time;
	__u64 leaves_out;
};

/* State of the resident capture; written as `resident_side` is. See captured.h. */
struct capture_side {
	__u64 next;   /* index of the next frame */
	__u64 frames; /* frames of a pass */
	__u64 pass;   /* number of the pass, from 0 */
	__u64 passes_milli; /* passes with the same addresses, in thousandths; 0: addresses stay */
	__u64 iteration; /* of the addresses in this pass */
	/* Due time of the next frame, and what remains of it, in 1/units ns. */
	__u64 due;
	__u64 rest;
	__u64 units;
};

struct ring {
	struct user_side user;
	struct kernel_side kernel;
	struct device_side device;
	struct resident_side resident;
	struct capture_side capture;
	struct descriptor descriptors[RING_DESCRIPTORS];
	__u64 gaps[HISTOGRAM_BUCKETS];
	__u64 gap_errors[HISTOGRAM_BUCKETS];
	/* The padding at the end lets the program read a whole frame from the start of any buffer.
	 * */
	__u8 buffers[BUFFERS_BYTES + FRAME_BYTES_MAX];
};

#endif
