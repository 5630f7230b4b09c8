// One record per idle pair, for recordings: what the governor could know when it chose, and what ended the stay.
//
// Nothing is asked of the kernel: the tick's and the timers' own structures are read where they are, at the moment the state is entered.
#pragma once

// Completes the pair that ended last and hands it over. Late on purpose: what woke the CPU is known only afterwards
// (the interrupt of a state entered with interrupts off runs after the exit event).
INLINE void submit_pair(struct cpu_state *cpu)
{
	struct pair *p;
	if (!cpu->has_pair)
		return;
	cpu->has_pair = 0;
	if (!is_on(WINDOW_OPEN))
		return;
	p = ringbuf_reserve(&pairs, sizeof(*p), 0);
	if (!p) {
		cpu->n_lost++;
		return;
	}
	p->enter_ns = cpu->enter_ns;
	p->exit_ns = cpu->exit_ns;
	p->reference_ns = cpu->reference_ns;
	p->next_event_at_ns = cpu->next_event_at_ns;
	p->sleep_until_ns = cpu->sleep_until_ns;
	p->cpu = this_cpu();
	p->n_iowait = cpu->n_iowait;
	p->state = cpu->slot - 1;
	p->flags = cpu->flags;
	p->cause = cpu->cause ? cpu->cause : BY_INTERRUPT;
	p->unused = 0;
	ringbuf_submit(p, RB_NO_WAKEUP);
}

// The first timer of the clock base other than the tick's own; 0 for none. The tick is the leftmost node or it does not
// matter, so the second leftmost is at most one step away: the right child's leftmost (looked for two levels deep), or
// the parent.
INLINE s64 first_timer_but(struct hrtimer_clock_base *base, struct hrtimer *tick)
{
	struct rb_node *node = READ(base, active.rb_root.rb_leftmost);
	struct rb_node *next;
	if (!node)
		return 0;
	if ((void *)node == (void *)&tick->node.node) {
		next = READ(node, rb_right);
		if (next) {
			struct rb_node *left = READ(next, rb_left);
			if (left) {
				next = left;
				left = READ(next, rb_left);
				if (left)
					next = left;
			}
		} else {
			next = (struct rb_node *)(READ(node, __rb_parent_color) & ~3ul);
		}
		node = next;
		if (!node)
			return 0;
	}
	return READ((struct timerqueue_node *)node, expires);
}

// The governor's inputs, read where the kernel keeps them at the moment the state is entered.
INLINE void read_timers(struct cpu_state *cpu)
{
	struct tick_sched *tick = (struct tick_sched *)cpu->tick;
	struct hrtimer_clock_base *base;
	struct hrtimer_cpu_base *cpu_base;
	s64 programmed;
	if (cpu->rq) {
		struct rq *rq = (struct rq *)cpu->rq;
		cpu->n_iowait = READ(rq, nr_iowait.counter);
		cpu->flags |= HAS_IOWAIT;
	}
	if (!tick || !cpu->is_synced)
		return;
	base = READ(tick, sched_timer.base);
	if (!base)
		return;
	cpu_base = READ(base, cpu_base);
	if (!cpu_base)
		return;
	programmed = READ(cpu_base, expires_next);
	cpu->reference_ns = READ(tick, idle_entrytime);
	cpu->flags |= HAS_TIMERS;
	if (cpu->is_stopped) {
		// Stopped: the device waits for the next real timer. Stopped by this very choice: the governor saw a tick that
		// ran, and the device waited for it.
		s64 tick_at = READ(tick, last_tick);
		cpu->flags |= HAS_SLEEP_LENGTH | (cpu->was_stopped ? IS_STOPPED : 0);
		cpu->sleep_until_ns = programmed;
		cpu->next_event_at_ns =
			!cpu->was_stopped && tick_at < programmed && tick_at > 0 ? tick_at : programmed;
	} else {
		u64 wheel = READ(tick, timer_expires);
		s64 other;
		cpu->next_event_at_ns = programmed;
		if (!wheel) { // the next timer is within a tick: the tick is kept, and it or an earlier timer is all there is
			cpu->sleep_until_ns = programmed;
			cpu->flags |= HAS_SLEEP_LENGTH;
		} else if (wheel > cpu->reference_ns) { // else left over from an earlier pass: the governor did not ask
			other = first_timer_but(base, &tick->sched_timer);
			cpu->sleep_until_ns = other > 0 && other < (s64)wheel ? other : (s64)wheel;
			cpu->flags |= HAS_SLEEP_LENGTH;
		}
	}
}

INLINE void learn_tick(struct cpu_state *cpu, struct hrtimer *timer)
{
	if (!cpu->tick && tick_function && (u64)timer->function == tick_function)
		cpu->tick = (u64)timer - __builtin_preserve_field_info(((struct tick_sched *)0)->sched_timer, 0);
}

// Only for recordings: the tick's timer is armed at the end of each idle period, so every CPU is known soon.
SEC("tp_btf/hrtimer_start")
int on_timer_start(u64 *ctx)
{
	struct cpu_state *cpu = here();
	if (cpu && !cpu->tick)
		learn_tick(cpu, (void *)ctx[0]);
	return 0;
}

// Only for recordings.
SEC("tp_btf/tick_stop")
int on_tick_stop(u64 *ctx)
{
	struct cpu_state *cpu = here();
	if (cpu && (u32)ctx[0])
		cpu->is_stopped = 1;
	return 0;
}
