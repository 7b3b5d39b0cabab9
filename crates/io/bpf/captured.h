/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A capture whose frames the kernel sends without work of the process: the process writes a `struct
 * captured` for each frame of a pass. `src/xdp/layout.rs` holds the same layout; a test compares the
 * two.
 */
#ifndef WIRESTORM_CAPTURED_H
#define WIRESTORM_CAPTURED_H

#include <linux/types.h>

/* What changes in a frame with the addresses of a pass; see wirestorm_base::resident::Moving. */
#define MOVES_ADDRESSES 1
#define MOVES_PORTS 2
#define HAS_CHECKSUM 4
#define NEVER_ZERO 8

struct captured {
	__u32 source; /* location in the store */
	__u16 length;
	__u16 flags;
	/* Offsets in the frame. */
	__u16 source_address;
	__u16 destination_address;
	__u16 ports;
	__u16 checksum;
};

/* Time between the due times of two frames: `gap + rest / units` ns. */
struct captured_gap {
	__u64 gap;
	__u64 rest;
};

#endif
