//! Programs that the kernel runs with a scheduler's lock held allocate nothing: said in the source, held here.
//!
//! sched_waking holds the task's pi_lock, sched_wakeup_new and sched_switch the run queue's lock. Before Linux 6.4 making a
//! task's storage there is a kmalloc, which may wake kswapd, which takes these locks.
#![allow(clippy::unwrap_used)]

/// Where storage is made, and which program that is.
fn makers(source: &str) -> Vec<&str> {
    let mut at = "";
    let mut found = Vec::new();
    for line in source.lines() {
        // A function's first line names it.
        if let Some(rest) = line.strip_prefix("int on_").or(line.strip_prefix("INLINE void ")) {
            at = rest.split('(').next().unwrap();
        }
        let code = line.split("//").next().unwrap();
        if code.contains("STORAGE_CREATE") && !code.contains("is_making_room ? STORAGE_CREATE : 0") {
            found.push(at);
        }
    }
    found
}

#[test]
fn a_tasks_storage_is_made_where_no_lock_is_held() {
    let wake = include_str!("../src/wake/wake.bpf.c");
    assert_eq!(makers(wake), ["make_room"]);
    let mut at = "";
    let callers: Vec<&str> = wake
        .lines()
        .filter_map(|line| {
            at = line.strip_prefix("int ").and_then(|rest| rest.split('(').next()).unwrap_or(at);
            line.trim().starts_with("make_room(").then_some(at)
        })
        .collect();
    assert_eq!(callers, ["on_new_task", "on_old_task"], "a fork and the iterator");
    assert!(makers(include_str!("../src/icmp/icmp.bpf.c")).is_empty());
    assert_eq!(makers("int on_waking(u64 *ctx)\n\tx(STORAGE_CREATE);"), ["waking"]);
}
