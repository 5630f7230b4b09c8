// Histograms by idle state and kind, one set per CPU: what every probe counts in.
//
// Slot 0 is "no state known", slot i + 1 is idle state i. A slot beyond the table (a state that was not there when the
// probe was loaded) counts as unknown. The loader sets how many entries there are: slots x kinds.
#pragma once
#include "hist.h"

const volatile u32 n_slots = 11; // idle states + 1; set before loading

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, 88); // set by the loader
	__type(key, u32);
	__type(value, struct hist);
} hists SEC(".maps");

INLINE void cell_add(u32 slot, u32 kind, u32 n_kinds, u64 ns)
{
	struct hist *h;
	u32 key;
	if (slot >= n_slots)
		slot = 0;
	key = slot * n_kinds + kind;
	h = map_lookup(&hists, &key);
	if (h)
		hist_add(h, ns);
}
