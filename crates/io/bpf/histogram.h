/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Same bucket layout as wirestorm_base::histogram.
 */
#ifndef WIRESTORM_HISTOGRAM_H
#define WIRESTORM_HISTOGRAM_H

#include <linux/types.h>

#define HISTOGRAM_SUB_BUCKET_BITS 5
#define HISTOGRAM_BUCKETS 1152

static inline __attribute__((always_inline)) __u32 bucket_of(__u64 value)
{
	__u32 exponent = 0;
	__u64 rest = value;

	if (value < (1 << HISTOGRAM_SUB_BUCKET_BITS))
		return value;
	if (rest >> 32) { exponent += 32; rest >>= 32; }
	if (rest >> 16) { exponent += 16; rest >>= 16; }
	if (rest >> 8) { exponent += 8; rest >>= 8; }
	if (rest >> 4) { exponent += 4; rest >>= 4; }
	if (rest >> 2) { exponent += 2; rest >>= 2; }
	if (rest >> 1) exponent += 1;

	__u32 shift = exponent - HISTOGRAM_SUB_BUCKET_BITS;
	__u64 bucket = (((__u64)shift + 1) << HISTOGRAM_SUB_BUCKET_BITS) +
		       ((value >> shift) - (1 << HISTOGRAM_SUB_BUCKET_BITS));

	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

#endif
