/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Streams whose frames the kernel makes without work of the process. The process compiles a program
 * for each shape of frames (`src/xdp/compiler.rs`), and writes a `struct stream` for each stream.
 * `src/xdp/layout.rs` holds the same layout; a test compares the two.
 */
#ifndef WIRESTORM_RESIDENT_H
#define WIRESTORM_RESIDENT_H

#include <linux/types.h>

/* Highest number of variables of a stream. */
#define CURSORS_MAX 6

/* Highest number of streams of a port, and of levels of a heap of them. */
#define STREAMS_MAX (1 << 16)
#define HEAP_LEVELS 17

/* Programs in the array: the ring's, then one for each shape. */
#define PROGRAM_RING 0
#define PROGRAM_SHAPES 1
#define PROGRAMS_MAX 64

/* A template up to this length is in its stream, a longer one in the store. */
#define SHORT_TEMPLATE 128

/* Frames that a stream without due times sends in a turn, as in wirestorm_engine::stream. */
#define TURN_FRAMES 8

/* State of a variable; see wirestorm_base::resident. */
struct cursor {
	__u64 place;
	__u64 cycle;
	__u64 places;
	__u64 wraps_beside;
	__u64 base;  /* counter: the value at place 0; list: index of its first value; random: seed */
	__u64 step;  /* random: number of values */
	__u64 min;   /* random: the smallest value */
	__u64 upper; /* counter, random: the upper 64 bits */
};

struct stream {
	__u64 left; /* frames still to send; none is sent after the last */
	__u64 sequence;
	__u32 number;
	__u32 shape;
	__u32 source; /* location of a long template in the store */
	__u32 reserved;
	/* Due time of the next frame, and the gap behind it: `gap` and `gap_rest / units` ns. */
	__u64 due;
	__u64 gap;
	__u64 gap_rest;
	__u64 units;
	__u64 rest;
	struct cursor cursors[CURSORS_MAX];
	__u8 template[SHORT_TEMPLATE];
};

/* A stream that is sending: the first turns are a heap by due time, or a circle without them. */
struct turn {
	__u64 due;
	__u32 stream;
	__u32 reserved;
};

/* A value of a list. */
struct value {
	__u64 lower;
	__u64 upper;
};

#endif
