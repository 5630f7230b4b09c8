// What our eBPF programs need of the kernel's interface, and no more.
//
// Numbers are those of the user interface (include/uapi/linux/bpf.h) and never change. Kernel structures are declared
// with only the members we read; `preserve_access_index` makes clang record each access, and the loader corrects the
// offsets from the running kernel's BTF (CO-RE). `exists()` asks that BTF whether a member is there at all.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static __attribute__((always_inline)) inline
#define CORE __attribute__((preserve_access_index))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

// Is the member in this kernel's BTF?
#define exists(member) __builtin_preserve_field_info(member, 2)

#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name

enum {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	MAP_PERCPU_ARRAY = 6,
	MAP_LRU_HASH = 9,
	MAP_RINGBUF = 27,
	MAP_TASK_STORAGE = 29,
};
enum { MAP_F_NO_PREALLOC = 1 };
enum { STORAGE_CREATE = 1 };
enum { RB_NO_WAKEUP = 1 };
enum { NOEXIST = 1 };

struct task_struct;

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const now_ns)(void) = (void *)5;
static u32 (*const this_cpu)(void) = (void *)8;
static u64 (*const current_pid_tgid)(void) = (void *)14;
static u64 (*const current_task)(void) = (void *)35;
static long (*const probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static void *(*const ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void *(*const task_storage_get)(void *map, struct task_struct *task, void *value, u64 flags) = (void *)156;

// Reads one member through a pointer the verifier does not follow; zero when the address is bad.
#define READ(from, member)                                                                                             \
	({                                                                                                             \
		typeof((from)->member) value_ = 0;                                                                     \
		probe_read_kernel(&value_, sizeof(value_), &(from)->member);                                           \
		value_;                                                                                                \
	})
