// What each wake-up cost, and the idle state its CPU was leaving: counted in the kernel, event by event nothing leaves it.
//
// Tracepoints, all with typed arguments (tp_btf: no kprobes needed):
//  cpu_idle             which state this CPU asked for, since when; until when
//  sched_waking         somebody made a task runnable: when, and on which CPU that somebody ran
//  sched_switch         the task runs: on this CPU; the difference is its wake-up latency, judged by what *this* CPU did
//                       meanwhile, because the task may run elsewhere than the waker thought
//  hrtimer_expire_entry how late a timer was, and whether the CPU had left its state by then
//  sched_migrate_task   a task that waited in another CPU's queue was not kept waiting by an idle state of this one
//  sched_process_fork   makes room for the new task's waking (before 6.4); follows the children of a traced command
//  sched_process_free   forgets them
//  iter/task            makes that room for the tasks that are already there (before 6.4)
//  interrupts, timers   only for who woke whom (waker.h): in whose name a waking happens
//
// Four wake classes, because the exit latency is not always inside waking -> switch:
//  remote      woken from another CPU while this one was in the state: the exit is inside
//  irq_before  woken by an interrupt here, handled before the exit event (HLT, POLL, C1 with interrupts on): inside
//  irq_after   woken by an interrupt here that ran after the exit event (states entered with interrupts off): the exit
//              was already over when the task was woken, so it is NOT inside
//  busy        the CPU was not idle: it ran something, or ran the idle loop without entering a state, or was between two
//              states, or the task waited elsewhere and was pulled here
//              A task bound to the CPU that wakes it will wait for a busy one: it is counted when it is woken
// A state counts only if it was entered since the CPU last ran a task: the idle loop is often left before it enters one,
// and the state of an earlier idle period has nothing to do with that wake-up. A task woken from afar while the CPU was
// just entering (the waking is a little older than the entry) pays the entry and the exit: that is `remote`.
// With `is_recording` also one record per idle pair goes to a ring buffer, without waking its reader; with `is_exact` another one
// per question to the idle governor (exact.h).
//
// Before 6.4 room for a task's waking is not made while it is woken: sched_waking and sched_wakeup_new run with the task's,
// or the run queue's, lock held, and the kernel allocates there with kmalloc, which may wake kswapd: it would want the
// same lock. A fork and the iterator hold none. Where the iterator cannot be used (refused, or a PID namespace) it is made
// there all the same, and the trace says so. From 6.4 on it comes from lists of the allocator for eBPF.
// Nothing here loops, and nothing is keyed by process id on the hot path. Per-CPU arrays and task storage need no locks.
// The hot path is sched_waking and sched_switch between tasks: storage, one clock reading, a count.
#include "cells.h"
#include "kernel.h"

char program_license[] SEC("license") = "Dual MIT/GPL";

enum { REMOTE, IRQ_BEFORE, IRQ_AFTER, BUSY, TIMER_INSIDE, TIMER_AFTER, IDLE_LENGTH, N_CLASSES };
// Of wake-ups onto a busy CPU all are counted and one in 2^3 is timed: there the clock is half of what we cost.
enum { BUSY_SHIFT = 3 };
enum { ON_RQ_MIGRATING = 2 }; // kernel/sched/sched.h
enum { FILTER_NONE, FILTER_PROCESSES, FILTER_CGROUP };
// What ended a pair, as far as this CPU saw it.
enum { BY_UNKNOWN, BY_TICK, BY_TIMER, BY_INTERRUPT, BY_REMOTE, BY_POLLED };
enum { IS_FIRST = 1, IS_STOPPED = 2, IS_TICK_FIRED = 4, HAS_TIMERS = 8, HAS_IOWAIT = 16, HAS_SLEEP_LENGTH = 32 };

// Set before loading; the verifier then removes what is not used.
const volatile u32 own_tgid = 0;
const volatile u32 filter = FILTER_NONE;
const volatile u64 filter_cgroup = 0;
const volatile u32 filter_cgroup_level = 0;
const volatile bool is_recording = 0;
const volatile bool is_by_cgroup = 0;
const volatile bool is_by_waker = 0;
const volatile bool is_making_room = 0;	    // while waking: from 6.4 on, or without the iterator
const volatile bool is_brief = 0;	    // wake-ups only: neither processes nor how long stays were
const volatile bool is_empty = 0;	    // only to measure what being attached costs
const volatile u32 polling_state = 0xffff;  // index of the state that spins
const volatile u64 tick_function = 0;	    // address of the tick's timer function; 0 when hidden

struct cpu_state {
	u64 enter_ns, exit_ns; // of the last idle pair; exit 0 while inside
	u32 slot;	       // its state + 1
	u32 is_idle;
	u64 tick;	       // struct tick_sched of this CPU, once seen
	u64 rq;		       // struct rq of this CPU, once seen
	// the pair to be recorded
	u64 reference_ns;
	s64 next_event_at_ns, sleep_until_ns;
	u32 has_pair;
	u16 n_iowait;
	u8 flags, cause;
	u32 is_stopped, is_first;
	u32 has_stay;  // a state was entered since a task ran here
	u32 is_synced; // a task was seen to come or go here, so is_stopped is known
	u32 random;
	u32 n_refused; // rooms there was no memory for at once
	u32 was_stopped; // the tick, when the last state was left: what the next choice sees
	u32 has_early_tick; // it fired in the idle loop before a state was entered: the kernel tells it after the next stay
	u64 n_busy;
	u64 n_unclassed, n_own, n_lost, n_early, n_self_woken_idle;
};

struct wake {
	u64 at_ns;
	u64 waker; // waker.h
	u32 by_cpu;
	u8 is_moved; // it waited in the queue of a CPU and was moved to another's
	u8 is_drawn; // to be timed, though it waits for a busy CPU
	u16 waker_kind;
};

struct process_key {
	u32 tgid, slot;
};
struct process {
	u64 n, sum_ns;
	char comm[16];
};

// The record in the ring buffer; its twin is in pairs.rs.
struct pair {
	u64 enter_ns, exit_ns;
	u64 reference_ns;
	s64 next_event_at_ns, sleep_until_ns;
	u32 cpu;
	u16 n_iowait;
	u8 state, flags;
	u32 cause;
	u32 unused;
};

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

struct {
	__uint(type, MAP_TASK_STORAGE);
	__uint(map_flags, MAP_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wake);
} wakes SEC(".maps");

struct {
	__uint(type, MAP_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct process_key);
	__type(value, struct process);
} processes SEC(".maps");

// A cgroup by the kernel's number, the inode of its folder.
struct group_key {
	u64 cgroup;
	u32 slot, unused;
};
struct group {
	u64 n, sum_ns;
};

struct {
	__uint(type, MAP_LRU_HASH);
	__uint(max_entries, 64); // set by the loader
	__type(key, struct group_key);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u8);
} followed SEC(".maps");

struct {
	__uint(type, MAP_RINGBUF);
	__uint(max_entries, 4096); // set by the loader
} pairs SEC(".maps");

// What is known only once everything is attached, or goes on and off with the windows.
enum { WINDOW_OPEN, SLEEP_WATCHED, N_SWITCHES };
struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, N_SWITCHES);
	__type(key, u32);
	__type(value, u32);
} switches SEC(".maps");

INLINE bool is_on(u32 which)
{
	u32 *value = map_lookup(&switches, &which);
	return value && *value;
}

INLINE struct cpu_state *here(void)
{
	u32 zero = 0;
	return map_lookup(&cpus, &zero);
}

INLINE void add(u32 slot, u32 class, u64 ns)
{
	cell_add(slot, class, N_CLASSES, ns);
}

INLINE u64 cgroup_of(struct task_struct *task)
{
	struct cgroup *cgroup = task->cgroups->dfl_cgrp;
	struct kernfs_node *kn = READ(cgroup, kn);
	return kn ? READ(kn, id) : 0;
}

#include "pair.h"
#include "exact.h"
#include "filter.h"
#include "waker.h"

SEC("tp_btf/cpu_idle")
int on_cpu_idle(u64 *ctx)
{
	u32 state = (u32)ctx[0];
	struct cpu_state *cpu = here();
	u64 now;
	if (!cpu)
		return 0;
	now = now_ns();
	if (state == 0xffffffff) {
		if (!cpu->is_idle)
			return 0; // entered before we were attached
		cpu->is_idle = 0;
		cpu->exit_ns = now;
		if (!is_brief)
			add(cpu->slot, IDLE_LENGTH, now - cpu->enter_ns);
		if (is_recording) {
			cpu->has_pair = 1;
			cpu->was_stopped = cpu->is_stopped;
		}
		return 0;
	}
	if (is_recording) {
		submit_pair(cpu);
		cpu->flags = (cpu->is_first ? IS_FIRST : 0) | (cpu->has_early_tick ? IS_TICK_FIRED : 0);
		cpu->is_first = 0;
		cpu->has_early_tick = 0;
		cpu->cause = BY_UNKNOWN;
		cpu->n_iowait = 0;
		cpu->reference_ns = 0;
		cpu->next_event_at_ns = 0;
		cpu->sleep_until_ns = 0;
		read_timers(cpu);
		if (is_exact)
			choice_entered(cpu);
	}
	cpu->is_idle = 1;
	cpu->has_stay = 1;
	cpu->slot = state + 1;
	cpu->exit_ns = 0;
	cpu->enter_ns = now;
	return 0;
}

// A generator, not a counter: wake-ups have periods too (Numerical Recipes, ranqd1).
INLINE bool is_drawn(struct cpu_state *cpu)
{
	cpu->random = cpu->random * 1664525 + 1013904223;
	return !(cpu->random >> (32 - BUSY_SHIFT));
}

// It may run on this CPU only, which runs something: it will wait for a busy CPU, whatever comes. A kernel thread of a CPU, mostly.
INLINE bool waits_here(struct task_struct *task)
{
	return exists(task->wake_cpu) && task->nr_cpus_allowed == 1 && (u32)task->wake_cpu == this_cpu() &&
	       (u32)current_pid_tgid() != 0;
}

INLINE bool is_own(struct task_struct *task)
{
	return (u32)task->tgid == own_tgid;
}

INLINE void woken(struct task_struct *task)
{
	struct cpu_state *cpu;
	struct wake *wake;
	bool is_busy = !is_recording && waits_here(task);
	if (is_busy) {
		cpu = here();
		if (!cpu)
			return;
		if (!is_drawn(cpu)) { // counted at once: spares the clock and the task's room
			if (is_own(task))
				cpu->n_own++;
			else if (filter == FILTER_NONE || is_wanted(task))
				cpu->n_busy++;
			return;
		}
	}
	wake = task_storage_get(&wakes, task, 0, is_making_room ? STORAGE_CREATE : 0);
	if (!wake) {
		cpu = here();
		if (cpu)
			cpu->n_unclassed++;
		return;
	}
	wake->by_cpu = this_cpu();
	wake->is_moved = 0;
	wake->is_drawn = is_busy;
	if (is_by_waker)
		note_waker(wake);
	wake->at_ns = now_ns();
}

SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	if (is_empty)
		return 0;
	struct task_struct *task = (void *)ctx[0];
	// Still on its run queue: it had not gone to sleep yet and will not be switched in for this.
	if (task->on_rq && !(exists(task->se.sched_delayed) && task->se.sched_delayed))
		return 0;
	woken(task);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int on_wakeup_new(u64 *ctx)
{
	woken((void *)ctx[0]);
	return 0;
}

INLINE void make_room(struct task_struct *task)
{
	struct cpu_state *cpu;
	if (task_storage_get(&wakes, task, 0, STORAGE_CREATE))
		return;
	cpu = here();
	if (cpu)
		cpu->n_refused++;
}

// In the context of the parent, without a lock, before the child is first woken.
SEC("tp_btf/sched_process_fork")
int on_new_task(u64 *ctx)
{
	make_room((void *)ctx[1]);
	return 0;
}

// Read by the loader, in its own context. Where there is no memory its wake-ups are counted as unclassed, until the next.
SEC("iter/task")
int on_old_task(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[1];
	if (task)
		make_room(task);
	return 0;
}

INLINE void charge(struct task_struct *task, u32 slot, u64 ns)
{
	struct process_key key = {.tgid = task->tgid, .slot = slot};
	struct process *p = map_lookup(&processes, &key);
	if (!p) {
		struct process fresh = {};
		map_update(&processes, &key, &fresh, NOEXIST);
		p = map_lookup(&processes, &key);
		if (!p)
			return;
	}
	// Named again at 1, 2, 4, 8 ... wake-ups: the first is often before the exec that gives it its name.
	if ((p->n & (p->n - 1)) == 0) {
		struct task_struct *leader = task->group_leader;
		probe_read_kernel_str(p->comm, sizeof(p->comm), &leader->comm);
	}
	__sync_fetch_and_add(&p->n, 1);
	__sync_fetch_and_add(&p->sum_ns, ns);
}

// Of the task that was woken: its cgroup pays, whoever woke it.
INLINE void charge_group(struct task_struct *task, u32 slot, u64 ns)
{
	struct group_key key = {.cgroup = cgroup_of(task), .slot = slot};
	struct group *g;
	g = map_lookup(&groups, &key);
	if (!g) {
		struct group fresh = {};
		map_update(&groups, &key, &fresh, NOEXIST);
		g = map_lookup(&groups, &key);
		if (!g)
			return;
	}
	__sync_fetch_and_add(&g->n, 1);
	__sync_fetch_and_add(&g->sum_ns, ns);
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	bool was_idle = prev->pid == 0;
	struct cpu_state *cpu;
	struct wake *wake;
	u64 at, latency;
	u32 class, slot, me;

	if (is_empty)
		return 0;
	if (next->pid == 0) {
		cpu = here();
		if (!cpu)
			return 0;
		cpu->has_stay = 0;
		if (!is_recording)
			return 0;
		cpu->is_first = 1;
		cpu->is_synced = 1;
		if (!cpu->rq && exists(next->se.cfs_rq) && exists(((struct cfs_rq *)0)->rq)) {
			struct cfs_rq *cfs = READ(next, se.cfs_rq);
			cpu->rq = cfs ? (u64)READ(cfs, rq) : 0;
		}
		return 0;
	}
	wake = task_storage_get(&wakes, next, 0, 0);
	at = wake ? wake->at_ns : 0;
	cpu = here();
	if (!cpu)
		return 0;
	if (is_recording && was_idle) {
		if (at && cpu->has_pair && wake->by_cpu != this_cpu() && at <= cpu->exit_ns && !wake->is_moved)
			cpu->cause = cpu->slot == polling_state + 1 ? BY_POLLED : BY_REMOTE;
		submit_pair(cpu);
		cpu->is_synced = 1;
		cpu->was_stopped = 0;
		cpu->is_stopped = 0; // the tick runs again outside idle (a full-dynticks CPU may say so anew)
	}
	if (!at)
		return 0;
	wake->at_ns = 0;
	me = this_cpu();
	class = BUSY;
	slot = 0;
	if (was_idle && cpu->has_stay && !wake->is_moved) {
		bool is_from_here = wake->by_cpu == me;
		if (cpu->exit_ns && at > cpu->exit_ns) {
			if (is_from_here) // else: between two states, and awake
				class = IRQ_AFTER;
		} else if (!is_from_here) {
			class = REMOTE;
		} else if (at >= cpu->enter_ns) {
			class = IRQ_BEFORE;
		}
		if (class != BUSY)
			slot = cpu->slot;
	}
	if (is_own(next)) {
		// The observer's own wake-ups are counted apart, never mixed in.
		cpu->n_own++;
		if (class != BUSY)
			cpu->n_self_woken_idle++;
		return 0;
	}
	if (filter != FILTER_NONE && !is_wanted(next))
		return 0;
	if (class == BUSY) {
		cpu->n_busy++;
		if (!wake->is_drawn && !is_drawn(cpu))
			return 0;
	}
	latency = now_ns() - at;
	add(slot, class, latency);
	if (class == REMOTE || class == IRQ_BEFORE) { // the exit is inside
		if (!is_brief)
			charge(next, slot, latency);
		if (is_by_cgroup)
			charge_group(next, slot, latency);
		if (is_by_waker)
			charge_chain(next, wake, slot, latency);
	}
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int on_timer(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];
	s64 *now = (void *)ctx[1];
	struct cpu_state *cpu;
	bool is_tick;
	s64 late;
	if ((u32)current_pid_tgid() != 0)
		return 0; // not the idle task: the CPU was busy
	cpu = here();
	if (!cpu)
		return 0;
	is_tick = tick_function && (u64)timer->function == tick_function;
	if (!cpu->has_stay) { // in the idle loop, but in no state yet
		cpu->has_early_tick |= is_tick;
		return 0;
	}
	if (is_recording) {
		learn_tick(cpu, timer);
		if (is_tick)
			cpu->flags |= IS_TICK_FIRED;
		if (!cpu->cause || is_tick)
			cpu->cause = is_tick ? BY_TICK : BY_TIMER;
	}
	probe_read_kernel(&late, sizeof(late), now);
	late -= timer->node.expires;
	if (late < 0) { // within its slack, because another timer fired
		cpu->n_early++;
		return 0;
	}
	add(cpu->slot, cpu->is_idle ? TIMER_INSIDE : TIMER_AFTER, late);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int on_migrate(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct wake *wake;
	if (task->on_rq != ON_RQ_MIGRATING)
		return 0; // being woken: the scheduler only chooses a CPU
	wake = task_storage_get(&wakes, task, 0, 0);
	if (wake)
		wake->is_moved = 1;
	return 0;
}
