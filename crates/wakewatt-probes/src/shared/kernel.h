// The kernel structures we read: only the members used, found in the running kernel through its BTF.
//
// A name behind `___` is ours: the loader cuts it off. It lets us declare how a structure looked in another kernel.
#pragma once
#include "bpf.h"

typedef struct {
	int counter;
} atomic_t;

struct kernfs_node {
	u64 id; // since 5.5
} CORE;

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[0]; // since 6.1; the last member, really a flexible array
} CORE;

struct cgroup___until_6_0 {
	int level;
	u64 ancestor_ids[0];
} CORE;

struct css_set {
	struct cgroup *dfl_cgrp;
} CORE;

struct rq {
	atomic_t nr_iowait;
} CORE;

struct cfs_rq {
	struct rq *rq; // only with CONFIG_FAIR_GROUP_SCHED
} CORE;

struct sched_entity {
	struct cfs_rq *cfs_rq;
	unsigned char sched_delayed; // since 6.12: asleep, yet still on the run queue
} CORE;

struct task_struct {
	int on_rq;
	int wake_cpu;
	int nr_cpus_allowed;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	char comm[16];
	struct css_set *cgroups;
	struct sched_entity se;
} CORE;

struct irqaction {
	const char *name;
} CORE;

struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
} CORE;

struct rb_root_cached {
	struct rb_node *rb_leftmost;
} CORE;

struct timerqueue_head {
	struct rb_root_cached rb_root;
} CORE;

struct timerqueue_node {
	struct rb_node node;
	s64 expires;
} CORE;

struct hrtimer_cpu_base {
	s64 expires_next;
} CORE;

struct hrtimer_clock_base {
	struct hrtimer_cpu_base *cpu_base;
	struct timerqueue_head active;
} CORE;

struct hrtimer {
	struct timerqueue_node node;
	void *function;
	struct hrtimer_clock_base *base;
} CORE;

struct cpuidle_state_usage {
	u64 disable;
} CORE;

struct cpuidle_device {
	u32 poll_time_limit : 1; // since 4.20
	u64 last_residency_ns;	 // since 5.5
	struct cpuidle_state_usage states_usage[10];
} CORE;

struct cpuidle_device___until_5_4 {
	int last_residency; // in microseconds
} CORE;

struct tick_sched {
	struct hrtimer sched_timer;
	s64 last_tick;
	s64 idle_entrytime;
	u64 timer_expires;
} CORE;
