// A log-linear histogram of nanoseconds, small enough to keep one per CPU, idle state and wake class.
//
// Unit 16 ns; eight steps per doubling, so a bucket is at most 12.5 % wide; 240 buckets end at 34 s. The same rule, in
// Rust, is in core/src/samples/kernel_histogram.rs, and a test runs both over the same values.
#pragma once
#include "bpf.h"

#define N_BUCKETS 240

struct hist {
	u64 n;
	u64 sum_ns;
	u64 max_ns;
	u32 buckets[N_BUCKETS];
};

INLINE u32 log2_of(u32 v)
{
	u32 r, shift;
	r = (v > 0xffff) << 4;
	v >>= r;
	shift = (v > 0xff) << 3;
	v >>= shift;
	r |= shift;
	shift = (v > 0xf) << 2;
	v >>= shift;
	r |= shift;
	shift = (v > 0x3) << 1;
	v >>= shift;
	r |= shift;
	return r | (v >> 1);
}

INLINE u32 bucket_of(u64 ns)
{
	u64 units = ns >> 4;
	u32 v, e;
	if (units > 0x7fffffff)
		return N_BUCKETS - 1;
	v = units;
	if (v < 8)
		return v;
	e = log2_of(v) - 3;
	return (e << 3) + (v >> e);
}

INLINE void hist_add(struct hist *h, u64 ns)
{
	u32 i = bucket_of(ns);
	h->n++;
	h->sum_ns += ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
	if (i < N_BUCKETS)
		h->buckets[i]++;
}
