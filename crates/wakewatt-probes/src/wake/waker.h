// Who woke whom: for each waking in whose name it happened, added up by waker, woken process, its cgroup and idle state.
//
// A task wakes in its own name, unless its CPU is in a timer, an interrupt or a soft interrupt: then that is the waker, the innermost of them.
// Nothing tells interrupts without a handler of their own (those between CPUs) from the task that they came upon; in the idle task they are
// unknown. The chain is one waker deep. All of it is attached only where it was asked for.
#pragma once

enum { BY_NOBODY, BY_TASK, BY_HRTIMER, BY_IRQ, BY_SOFTIRQ };

// What this CPU is in.
struct context {
	u64 timer, outer_timer; // function of the timer; of the one that an interrupt came upon
	u32 irq, softirq;	// number + 1
};

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct context);
} contexts SEC(".maps");

struct waker_key {
	u64 waker;
	u32 kind, unused;
};
struct waker_name {
	char text[32];
};

struct {
	__uint(type, MAP_LRU_HASH);
	__uint(max_entries, 64); // set by the loader
	__type(key, struct waker_key);
	__type(value, struct waker_name);
} names SEC(".maps");

struct chain_key {
	u64 waker, cgroup;
	u32 kind, tgid, slot, unused;
};

// Full means full: what does not fit is missing from the sum, which is known elsewhere.
struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 64); // set by the loader
	__type(key, struct chain_key);
	__type(value, struct group);
} chains SEC(".maps");

INLINE struct context *context(void)
{
	u32 zero = 0;
	return map_lookup(&contexts, &zero);
}

INLINE void name(u32 kind, u64 who, const void *text)
{
	struct waker_key key = {.waker = who, .kind = kind};
	struct waker_name *found = map_lookup(&names, &key);
	if (!found) {
		struct waker_name fresh = {};
		map_update(&names, &key, &fresh, NOEXIST);
		found = map_lookup(&names, &key);
		if (!found)
			return;
	}
	probe_read_kernel_str(found->text, sizeof(found->text), text);
}

INLINE void note_waker(struct wake *wake)
{
	struct context *in = context();
	struct task_struct *task, *leader;
	u32 tgid;
	if (in && (in->timer || in->irq || in->softirq)) {
		wake->waker_kind = in->timer ? BY_HRTIMER : in->irq ? BY_IRQ : BY_SOFTIRQ;
		wake->waker = in->timer ? in->timer : in->irq ? in->irq - 1 : in->softirq - 1;
		return;
	}
	tgid = current_pid_tgid() >> 32;
	wake->waker_kind = tgid ? BY_TASK : BY_NOBODY;
	wake->waker = tgid;
	if (!tgid)
		return; // the idle task
	task = (struct task_struct *)current_task();
	leader = READ(task, group_leader);
	name(BY_TASK, tgid, &leader->comm);
}

INLINE void charge_chain(struct task_struct *task, struct wake *wake, u32 slot, u64 ns)
{
	struct chain_key key = {
		.waker = wake->waker,
		.cgroup = cgroup_of(task),
		.kind = wake->waker_kind,
		.tgid = task->tgid,
		.slot = slot,
	};
	struct group *chain = map_lookup(&chains, &key);
	if (!chain) {
		struct group fresh = {};
		map_update(&chains, &key, &fresh, NOEXIST);
		chain = map_lookup(&chains, &key);
		if (!chain)
			return;
	}
	// Named again at 1, 2, 4, 8 ... as in `charge`.
	if ((chain->n & (chain->n - 1)) == 0) {
		struct task_struct *leader = task->group_leader;
		name(BY_TASK, key.tgid, &leader->comm);
	}
	__sync_fetch_and_add(&chain->n, 1);
	__sync_fetch_and_add(&chain->sum_ns, ns);
}

SEC("tp_btf/hrtimer_expire_entry")
int on_timer_in(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct context *in = context();
	if (in)
		in->timer = (u64)timer->function;
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int on_timer_out(u64 *ctx)
{
	struct context *in = context();
	if (in)
		in->timer = 0;
	return 0;
}

// A timer runs inside an interrupt's handler, and an interrupt may come upon a timer that runs in a soft one.
SEC("tp_btf/irq_handler_entry")
int on_irq_in(u64 *ctx)
{
	struct irqaction *action = (void *)ctx[1];
	struct context *in = context();
	if (!in)
		return 0;
	in->irq = (u32)ctx[0] + 1;
	in->outer_timer = in->timer;
	in->timer = 0;
	name(BY_IRQ, (u32)ctx[0], action->name);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int on_irq_out(u64 *ctx)
{
	struct context *in = context();
	if (!in)
		return 0;
	in->irq = 0;
	in->timer = in->outer_timer;
	return 0;
}

SEC("tp_btf/softirq_entry")
int on_softirq_in(u64 *ctx)
{
	struct context *in = context();
	if (in)
		in->softirq = (u32)ctx[0] + 1;
	return 0;
}

SEC("tp_btf/softirq_exit")
int on_softirq_out(u64 *ctx)
{
	struct context *in = context();
	if (in)
		in->softirq = 0;
	return 0;
}
