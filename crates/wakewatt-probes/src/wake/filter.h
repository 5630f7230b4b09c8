// Whose wake-ups are wanted: those of a command and its children, of a control group, or everybody's.
#pragma once

INLINE bool is_in_cgroup(struct task_struct *task)
{
	struct cgroup *cgroup = task->cgroups->dfl_cgrp;
	u64 id = 0;
	if (cgroup->level < (int)filter_cgroup_level)
		return 0;
	if (exists(cgroup->ancestors)) {
		struct cgroup *at = 0;
		probe_read_kernel(&at, sizeof(at), (void *)&cgroup->ancestors + filter_cgroup_level * 8);
		if (at) {
			struct kernfs_node *kn = READ(at, kn);
			id = kn ? READ(kn, id) : 0;
		}
	} else {
		struct cgroup___until_6_0 *old = (void *)cgroup;
		probe_read_kernel(&id, sizeof(id), (void *)&old->ancestor_ids + filter_cgroup_level * 8);
	}
	return id == filter_cgroup;
}

INLINE bool is_wanted(struct task_struct *task)
{
	u32 tgid = task->tgid;
	if (filter == FILTER_PROCESSES)
		return map_lookup(&followed, &tgid) != 0;
	if (filter == FILTER_CGROUP)
		return is_in_cgroup(task);
	return 1;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0];
	struct task_struct *child = (void *)ctx[1];
	struct cpu_state *cpu;
	u32 from = parent->tgid, to = child->tgid;
	u8 yes = 1;
	if (from == to || !map_lookup(&followed, &from))
		return 0;
	if (map_update(&followed, &to, &yes, 0)) {
		cpu = here();
		if (cpu)
			cpu->n_unclassed++; // more processes at once than the map holds
	}
	return 0;
}

// Process ids are used again: one that is free belongs to nobody we follow.
SEC("tp_btf/sched_process_free")
int on_free(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 tgid = task->tgid;
	if ((u32)task->pid == tgid)
		map_delete(&followed, &tgid);
	return 0;
}
