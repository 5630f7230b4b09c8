// What the idle governor was asked and what it answered, from its own functions: exact where `read_timers` rebuilds.
//
// Functions of the kernel are watched while they run, so nothing here guesses: the sleep length and the next event are what
// tick_nohz_get_sleep_length returned to the governor, the answer is what the governor's select returned, and what came of
// it is what its reflect was told. A select that no reflect follows was refused: a task became runnable, or the driver said no.
// A function that cannot be watched leaves its input to what `read_timers` and the tick's events know.
//
// Two ways to watch, the same handlers: fentry and fexit (a trampoline, arguments typed by BTF) where the kernel has them,
// else kprobes (registers of the architecture). Loaded only when asked for: each adds 0.1 to 1 us to each call.
#pragma once

// One copy for all that call it: the programs differ only in where their arguments stand.
#define SHARED static __attribute__((noinline))

enum { NO_CHOICE, ASKED, ANSWERED, LEARNING };
enum {
	HAS_ANSWER = 1,
	STOPS_TICK = 2,
	CHOICE_HAS_STOPPED = 4,
	CHOICE_IS_STOPPED = 8,
	CHOICE_HAS_IOWAIT = 16,
	HAS_LIMIT = 32,
	HAS_DISABLED = 64,
	CHOICE_HAS_TIMERS = 128,
	IS_ENTERED = 256,
	HAS_FIRED = 512,
	IS_FIRED = 1024,
	HAS_POLL_LIMIT = 2048,
	IS_POLL_LIMIT = 4096,
};
enum { MOST_STATES = 10 }; // CPUIDLE_STATE_MAX
enum { BY_menu = 1, BY_teo, BY_ladder, BY_haltpoll };

const volatile bool is_exact = 0;

// The record in the ring buffer; its twin is in choices.rs. Told from a pair by its length.
struct choice {
	u64 at_ns;
	s64 sleep_ns, next_event_ns, limit_ns, residency_ns;
	u32 cpu;
	u32 flags;
	u16 disabled, n_iowait;
	u8 answer, entered;
	u8 governor, unused;
	u64 unused_too; // longer than a pair
};

struct asking {
	struct choice choice;
	u64 device;  // struct cpuidle_device
	u64 stop_at; // where the governor answers about the tick
	u64 next_at; // where the next event is written to
	u32 phase;
	u32 unused;
};

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct asking);
} askings SEC(".maps");

INLINE struct asking *asking(u32 phase)
{
	u32 zero = 0;
	struct asking *a = map_lookup(&askings, &zero);
	return a && a->phase == phase ? a : 0;
}

SHARED void submit_choice(struct asking *a)
{
	struct cpu_state *cpu;
	struct choice *to;
	a->phase = NO_CHOICE;
	if (!is_on(WINDOW_OPEN))
		return;
	to = ringbuf_reserve(&pairs, sizeof(*to), 0);
	if (!to) {
		cpu = here();
		if (cpu)
			cpu->n_lost++;
		return;
	}
	*to = a->choice;
	ringbuf_submit(to, RB_NO_WAKEUP);
}

SHARED void select_entered(u64 device, u64 stop_at, u32 governor)
{
	u32 zero = 0;
	struct asking *a = map_lookup(&askings, &zero);
	struct cpuidle_device *d = (void *)device;
	if (!a)
		return;
	if (a->phase == ANSWERED) // nothing came of it
		submit_choice(a);
	__builtin_memset(&a->choice, 0, sizeof(a->choice));
	a->device = device;
	a->stop_at = stop_at;
	a->choice.cpu = this_cpu();
	a->choice.governor = governor;
	a->choice.at_ns = now_ns();
	if (exists(d->states_usage)) {
		// By the kernel's own size of an element: an index would go by ours.
		u64 at = device + __builtin_preserve_field_info(d->states_usage, 0);
		u32 size = __builtin_preserve_type_info(*(struct cpuidle_state_usage *)0, 1);
		u16 disabled = 0;
		at += __builtin_preserve_field_info(((struct cpuidle_state_usage *)0)->disable, 0);
		for (u32 i = 0; i < MOST_STATES; i++) {
			u64 is = 0;
			probe_read_kernel(&is, sizeof(is), (void *)(at + i * size));
			disabled |= (is != 0) << i;
		}
		a->choice.disabled = disabled;
		a->choice.flags = HAS_DISABLED;
	}
	a->phase = ASKED;
}

INLINE void sleep_told(u64 next_at, u64 sleep_ns)
{
	struct asking *a = asking(ASKED);
	if (!a)
		return;
	a->choice.sleep_ns = sleep_ns;
	// Now, not later: it lies on the governor's stack.
	if (!probe_read_kernel(&a->choice.next_event_ns, 8, (void *)next_at))
		a->choice.flags |= CHOICE_HAS_TIMERS;
}

INLINE void iowait_told(u64 n)
{
	struct asking *a = asking(ASKED);
	if (!a)
		return;
	a->choice.n_iowait = (u32)n > 0xffff ? 0xffff : n;
	a->choice.flags |= CHOICE_HAS_IOWAIT;
}

INLINE void stopped_told(u64 is)
{
	struct asking *a = asking(ASKED);
	if (a)
		a->choice.flags |= CHOICE_HAS_STOPPED | ((u8)is ? CHOICE_IS_STOPPED : 0);
}

INLINE void limit_told(u64 ns)
{
	struct asking *a = asking(ASKED);
	if (!a)
		return;
	a->choice.limit_ns = ns;
	a->choice.flags |= HAS_LIMIT;
}

SHARED void select_left(u64 answer)
{
	struct asking *a = asking(ASKED);
	struct cpu_state *cpu = here();
	u8 stops = 0;
	if (!a || !cpu)
		return;
	a->choice.answer = answer;
	if (!probe_read_kernel(&stops, 1, (void *)a->stop_at))
		a->choice.flags |= HAS_ANSWER | (stops ? STOPS_TICK : 0);
	// What it did not ask for, as far as it is known.
	if (!(a->choice.flags & CHOICE_HAS_STOPPED) && cpu->is_synced)
		a->choice.flags |= CHOICE_HAS_STOPPED | (cpu->is_stopped ? CHOICE_IS_STOPPED : 0);
	if (!(a->choice.flags & CHOICE_HAS_IOWAIT) && cpu->rq) {
		struct rq *rq = (struct rq *)cpu->rq;
		a->choice.n_iowait = READ(rq, nr_iowait.counter);
		a->choice.flags |= CHOICE_HAS_IOWAIT;
	}
	a->phase = ANSWERED;
}

// The state is about to be entered: where the sleep length cannot be watched, what was rebuilt of it.
INLINE void choice_entered(struct cpu_state *cpu)
{
	struct asking *a;
	if ((cpu->flags & (HAS_TIMERS | HAS_SLEEP_LENGTH)) != (HAS_TIMERS | HAS_SLEEP_LENGTH) || is_on(SLEEP_WATCHED))
		return;
	a = asking(ANSWERED);
	if (!a || (a->choice.flags & CHOICE_HAS_TIMERS))
		return;
	a->choice.sleep_ns = cpu->sleep_until_ns - (s64)cpu->reference_ns;
	a->choice.next_event_ns = cpu->next_event_at_ns - (s64)cpu->reference_ns;
	a->choice.flags |= CHOICE_HAS_TIMERS;
}

SHARED void reflect_entered(u64 device, u64 state)
{
	struct asking *a = asking(ANSWERED);
	struct cpuidle_device *d = (void *)device;
	if (!a)
		return;
	a->choice.entered = state;
	if (exists(d->last_residency_ns)) {
		a->choice.residency_ns = READ(d, last_residency_ns);
		a->choice.flags |= IS_ENTERED;
	} else if (exists(((struct cpuidle_device___until_5_4 *)0)->last_residency)) {
		struct cpuidle_device___until_5_4 *old = (void *)device;
		a->choice.residency_ns = 1000ll * READ(old, last_residency);
		a->choice.flags |= IS_ENTERED;
	}
	if (exists(d->poll_time_limit)) {
		// A bit field: eight bytes around it, then what BTF says of its place.
		u64 bits = 0;
		u32 offset = __builtin_preserve_field_info(d->poll_time_limit, 0);
		u32 size = __builtin_preserve_field_info(d->poll_time_limit, 1);
		if (size > 8)
			size = 8;
		probe_read_kernel(&bits, size, (void *)device + offset);
		bits <<= __builtin_preserve_field_info(d->poll_time_limit, 4);
		bits >>= __builtin_preserve_field_info(d->poll_time_limit, 5);
		a->choice.flags |= HAS_POLL_LIMIT | (bits ? IS_POLL_LIMIT : 0);
	}
	a->phase = LEARNING;
}

INLINE void fired_told(u64 is)
{
	struct asking *a = asking(LEARNING);
	if (a)
		a->choice.flags |= HAS_FIRED | ((u8)is ? IS_FIRED : 0);
}

SHARED void reflect_left(void)
{
	struct asking *a = asking(LEARNING);
	struct cpu_state *cpu = here();
	if (!a)
		return;
	if (!(a->choice.flags & HAS_FIRED) && cpu && (cpu->flags & HAS_TIMERS))
		a->choice.flags |= HAS_FIRED | (cpu->flags & IS_TICK_FIRED ? IS_FIRED : 0);
	submit_choice(a);
}

// Typed by BTF: arguments, then what is returned. A program is bound to one function, so each governor has its own four.
#define GOVERNOR(name)                                                                                                 \
	SEC("fentry/" #name) int name##_select_in(u64 *ctx) { select_entered(ctx[1], ctx[2], BY_##name); return 0; }   \
	SEC("fexit/" #name) int name##_select_out(u64 *ctx) { select_left(ctx[3]); return 0; }                         \
	SEC("fentry/" #name) int name##_reflect_in(u64 *ctx) { reflect_entered(ctx[0], ctx[1]); return 0; }            \
	SEC("fexit/" #name) int name##_reflect_out(u64 *ctx) { reflect_left(); return 0; }
GOVERNOR(menu)
GOVERNOR(teo)
GOVERNOR(ladder)
GOVERNOR(haltpoll)

SEC("fexit/sleep") int sleep_out(u64 *ctx) { sleep_told(ctx[0], ctx[1]); return 0; }
SEC("fexit/iowait") int iowait_out(u64 *ctx) { iowait_told(ctx[1]); return 0; }
SEC("fexit/stopped") int stopped_out(u64 *ctx) { stopped_told(ctx[0]); return 0; }
SEC("fexit/limit") int limit_out(u64 *ctx) { limit_told(ctx[1]); return 0; }
SEC("fexit/fired") int fired_out(u64 *ctx) { fired_told(ctx[0]); return 0; }

// By the registers of the architecture (arch/*/include/uapi/asm/ptrace.h): where the first three arguments and the
// returned value stand, as 64-bit words of struct pt_regs.
#if defined(ARCH_x86_64)
enum { ARGUMENT_0 = 14, ARGUMENT_1 = 13, ARGUMENT_2 = 12, RETURNED = 10 };
#elif defined(ARCH_aarch64)
enum { ARGUMENT_0 = 0, ARGUMENT_1 = 1, ARGUMENT_2 = 2, RETURNED = 0 };
#endif
#ifdef ARCH_HAS_REGISTERS
#define SELECT(name)                                                                                                   \
	SEC("kprobe/" #name) int k_##name##_select_in(u64 *r)                                                          \
	{                                                                                                              \
		select_entered(r[ARGUMENT_1], r[ARGUMENT_2], BY_##name);                                               \
		return 0;                                                                                              \
	}
SELECT(menu)
SELECT(teo)
SELECT(ladder)
SELECT(haltpoll)
SEC("kretprobe/select") int k_select_out(u64 *r) { select_left(r[RETURNED]); return 0; }
SEC("kprobe/reflect") int k_reflect_in(u64 *r) { reflect_entered(r[ARGUMENT_0], r[ARGUMENT_1]); return 0; }
SEC("kretprobe/reflect") int k_reflect_out(u64 *r) { reflect_left(); return 0; }
SEC("kprobe/sleep") int k_sleep_in(u64 *r)
{
	struct asking *a = asking(ASKED);
	if (a)
		a->next_at = r[ARGUMENT_0];
	return 0;
}
SEC("kretprobe/sleep") int k_sleep_out(u64 *r)
{
	struct asking *a = asking(ASKED);
	if (a)
		sleep_told(a->next_at, r[RETURNED]);
	return 0;
}
SEC("kretprobe/iowait") int k_iowait_out(u64 *r) { iowait_told(r[RETURNED]); return 0; }
SEC("kretprobe/stopped") int k_stopped_out(u64 *r) { stopped_told(r[RETURNED]); return 0; }
SEC("kretprobe/limit") int k_limit_out(u64 *r) { limit_told(r[RETURNED]); return 0; }
SEC("kretprobe/fired") int k_fired_out(u64 *r) { fired_told(r[RETURNED]); return 0; }
#endif
