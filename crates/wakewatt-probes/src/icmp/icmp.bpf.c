// Where the kernel spends the time of an ICMP echo: which CPU, when, and out of which idle state.
//
// An echo is answered by the kernel itself, so no process can be asked. All stamps are of one clock and one host:
//  net_dev_start_xmit        request or reply handed to the device
//  netif_rx                  a software device (veth, loopback) takes the packet in: still on the sender's CPU
//  napi_gro_receive_entry,
//  netif_receive_skb_entry   a driver's poll takes the packet in: its interrupt has already woken this CPU
//  netif_receive_skb         the stack begins to process it, after RPS may have woken another CPU for it
//  sched_waking, sched_switch  the requesting thread is woken, and runs
//  cpu_idle                  which state each CPU is in, since when
//
// Both sides may be on this machine (namespaces share the kernel), or be the same (loopback). They are told apart by
// what is done with what: request out and reply in are the requester's, and must be in its namespace; request in and
// reply out are the responder's, and belong to the last namespace that took the request in, so that a bridge or router
// between two namespaces is not taken for the responder. A host that forwards the request on is not one either.
//
// Idle state of a stamp: the state its CPU was in, at any time since the stamp before it. So a CPU that was asleep when
// the packet was queued for it has the state, and one that was awake has none (slot 0).
#include "cells.h"
#include "kernel.h"
#include "net.h"

char program_license[] SEC("license") = "Dual MIT/GPL";

enum { REQUESTER = 1, RESPONDER = 2 };
enum { TO_PROCESSING, TO_REPLY, IN_INTERRUPT, N_PARTS };
enum { IN_POLL = 1 };

// Set before loading; the verifier then removes what is not used.
const volatile bool is_requester = 0; // follow own echoes one by one; else count what this namespace answers
const volatile u32 own_tgid = 0;
const volatile u32 own_netns = 0;
const volatile u32 own_id = 0; // network order

enum { JUST_LEFT_NS = 20000 };

struct cpu_state {
	u64 enter_ns, exit_ns; // of the last idle pair; exit 0 while inside
	u32 slot, is_idle;
	struct echo_key in_hand; // the own reply this CPU is processing
	u32 has_in_hand, unused;
};

struct stamp {
	u64 at_ns;
	u32 cpu, slot;
};

// One echo seen from one side; its twin is in mod.rs.
struct echo {
	struct stamp sent, arrival, processing, waking, running;
	u32 netns, flags;
};

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

struct {
	__uint(type, MAP_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct echo_key);
	__type(value, struct echo);
} echoes SEC(".maps");

// The thread that was woken by an own reply and does not run yet; there is one requesting thread.
struct awaited {
	struct echo_key key;
	u32 pid, unused;
};
struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct awaited);
} awaited SEC(".maps");

INLINE struct cpu_state *here(void)
{
	u32 zero = 0;
	return map_lookup(&cpus, &zero);
}

// The state this CPU was in at any time since `since`, which another CPU (or this one) stamped.
INLINE u32 slot_since(struct cpu_state *cpu, struct stamp *since)
{
	if (!cpu || !cpu->slot)
		return 0;
	if (since->cpu == this_cpu()) // the stamp was taken here, awake: only a later sleep counts
		return cpu->enter_ns > since->at_ns ? cpu->slot : 0;
	return cpu->is_idle || cpu->exit_ns >= since->at_ns ? cpu->slot : 0;
}

// The state this CPU is in, or has just left for this interrupt; the idle loop runs without one too.
INLINE u32 arrival_slot(struct cpu_state *cpu, u64 now)
{
	if ((u32)current_pid_tgid() || !cpu->slot)
		return 0;
	return cpu->is_idle || now - cpu->exit_ns < JUST_LEFT_NS ? cpu->slot : 0;
}

INLINE void put(struct stamp *stamp, u64 now, u32 slot)
{
	stamp->at_ns = now;
	stamp->cpu = this_cpu();
	stamp->slot = slot;
}

INLINE void count(u32 slot, u32 part, u64 ns)
{
	cell_add(slot, part, N_PARTS, ns);
}

SEC("tp_btf/cpu_idle")
int on_cpu_idle(u64 *ctx)
{
	u32 state = (u32)ctx[0];
	struct cpu_state *cpu = here();
	if (!cpu)
		return 0;
	if (state == 0xffffffff) {
		cpu->is_idle = 0;
		cpu->exit_ns = now_ns();
		return 0;
	}
	cpu->is_idle = 1;
	cpu->slot = state + 1;
	cpu->exit_ns = 0;
	cpu->enter_ns = now_ns();
	return 0;
}

// The packet comes in. First sight counts; a later hop into another namespace begins anew.
INLINE void arrive(struct sk_buff *skb, bool is_polled)
{
	struct echo_key key = {};
	struct cpu_state *cpu;
	struct echo fresh = {};
	struct echo *echo;
	u32 netns, kind = echo_of(skb, 1, &key);
	u64 now;
	if (kind == ECHO_NONE || (is_requester && key.id != own_id))
		return;
	now = now_ns();
	netns = netns_of(skb);
	if (!is_requester && netns != own_netns)
		return;
	key.side = kind == ECHO_REQUEST ? RESPONDER : REQUESTER;
	echo = map_lookup(&echoes, &key);
	cpu = here();
	if (!cpu)
		return;
	if (kind == ECHO_REPLY) {
		if (is_requester && echo && netns == own_netns && !echo->arrival.at_ns) {
			put(&echo->arrival, now, arrival_slot(cpu, now));
			echo->flags |= is_polled ? IN_POLL : 0;
		}
		return;
	}
	if (echo && echo->netns == netns && !echo->sent.at_ns)
		return; // already seen on a device below
	fresh.netns = netns;
	fresh.flags = is_polled ? IN_POLL : 0;
	// What the interrupt that brought the packet woke this CPU from: known only of the idle task.
	put(&fresh.arrival, now, arrival_slot(cpu, now));
	map_update(&echoes, &key, &fresh, 0);
}

SEC("tp_btf/netif_rx")
int on_netif_rx(u64 *ctx)
{
	arrive((void *)ctx[0], 0);
	return 0;
}

SEC("tp_btf/napi_gro_receive_entry")
int on_gro_receive(u64 *ctx)
{
	arrive((void *)ctx[0], 1);
	return 0;
}

SEC("tp_btf/netif_receive_skb_entry")
int on_receive_entry(u64 *ctx)
{
	arrive((void *)ctx[0], 1);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int on_processing(u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];
	struct echo_key key = {};
	struct cpu_state *cpu;
	struct echo *echo;
	u32 kind = echo_of(skb, 1, &key);
	if (kind == ECHO_NONE || (is_requester && key.id != own_id))
		return 0;
	key.side = kind == ECHO_REQUEST ? RESPONDER : REQUESTER;
	echo = map_lookup(&echoes, &key);
	cpu = here();
	if (!echo || !cpu || echo->netns != netns_of(skb) || !echo->arrival.at_ns || echo->processing.at_ns)
		return 0;
	put(&echo->processing, now_ns(), slot_since(cpu, &echo->arrival));
	if (kind == ECHO_REPLY) {
		cpu->in_hand = key;
		cpu->has_in_hand = 1;
	}
	return 0;
}

// A reply leaves: what the responder needed is known.
INLINE void replied(struct echo *echo)
{
	struct stamp *processing = &echo->processing;
	put(&echo->sent, now_ns(), 0);
	if (is_requester || !processing->at_ns)
		return;
	count(processing->slot, TO_PROCESSING, processing->at_ns - echo->arrival.at_ns);
	count(processing->slot, TO_REPLY, echo->sent.at_ns - processing->at_ns);
	// Woken by the interrupt itself: how long ago it left the state we cannot know, only that it did.
	if ((echo->flags & IN_POLL) && echo->arrival.slot)
		count(echo->arrival.slot, IN_INTERRUPT, 0);
}

SEC("tp_btf/net_dev_start_xmit")
int on_xmit(u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];
	struct echo_key key = {};
	struct echo fresh = {};
	struct echo *echo;
	u32 netns, kind = echo_of(skb, 0, &key);
	if (kind == ECHO_NONE || (is_requester && key.id != own_id))
		return 0;
	netns = netns_of(skb);
	key.side = RESPONDER;
	echo = map_lookup(&echoes, &key);
	if (kind == ECHO_REPLY) {
		if (echo && echo->netns == netns && !echo->sent.at_ns)
			replied(echo);
		return 0;
	}
	// A request that came in and goes out again is forwarded: this host will not be the one to answer.
	if (echo && echo->netns == netns && !echo->sent.at_ns)
		map_delete(&echoes, &key);
	if (!is_requester || netns != own_netns)
		return 0;
	key.side = REQUESTER;
	echo = map_lookup(&echoes, &key);
	if (echo && !echo->arrival.at_ns)
		return 0; // already seen on a device above
	fresh.netns = netns;
	put(&fresh.sent, now_ns(), 0);
	map_update(&echoes, &key, &fresh, 0);
	return 0;
}

SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct cpu_state *cpu;
	struct awaited *waiting;
	struct echo *echo;
	u32 zero = 0;
	if ((u32)task->tgid != own_tgid)
		return 0;
	cpu = here();
	waiting = map_lookup(&awaited, &zero);
	if (!cpu || !waiting || !cpu->has_in_hand)
		return 0;
	cpu->has_in_hand = 0;
	// Still on its run queue: it had not gone to sleep yet and will not be switched in for this.
	if (task->on_rq && !(exists(task->se.sched_delayed) && task->se.sched_delayed))
		return 0;
	echo = map_lookup(&echoes, &cpu->in_hand);
	if (!echo || echo->waking.at_ns)
		return 0;
	put(&echo->waking, now_ns(), 0);
	waiting->key = cpu->in_hand;
	waiting->pid = task->pid;
	return 0;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *next = (void *)ctx[2];
	struct awaited *waiting;
	struct echo *echo;
	u32 zero = 0;
	if ((u32)next->tgid != own_tgid)
		return 0;
	waiting = map_lookup(&awaited, &zero);
	if (!waiting || waiting->pid != (u32)next->pid)
		return 0;
	waiting->pid = 0;
	echo = map_lookup(&echoes, &waiting->key);
	if (echo && echo->waking.at_ns && !echo->running.at_ns)
		put(&echo->running, now_ns(), slot_since(here(), &echo->waking));
	return 0;
}
