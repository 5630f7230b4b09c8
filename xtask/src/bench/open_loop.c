// The reference for `cargo xtask bench load`: wrk2's way of taking latencies, with the service done here instead of asked
// for over a socket. A plan of absolute times at a stated rate, made without regard to what is done; latency from the
// planned time; what is late is done late. Gaps are exponential. The service is the same chain of hash steps over a table.
// Written apart from the Rust generator on purpose, with a generator and percentiles of its own.
//
// open_loop CPU RATE SECONDS UNITS SEED -> p50 p90 p99 (ns, from the plan), mean service (ns), transactions
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { WORDS = 32 * 1024, STEPS = 32 };

static uint64_t table[WORDS];
static volatile uint64_t kept;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void serve(long units) {
    uint64_t x = kept;
    for (long u = 0; u < units; u++)
        for (int i = 0; i < STEPS; i++) {
            x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
            uint64_t *word = &table[x >> 49];
            x += *word;
            *word = x;
        }
    kept = x;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[1]), &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        perror("sched_setaffinity");
        return 1;
    }
    prctl(PR_SET_TIMERSLACK, 1);
    double rate = atof(argv[2]), seconds = atof(argv[3]);
    long units = atol(argv[4]);
    srand48(atol(argv[5]));
    for (int i = 0; i < WORDS; i++)
        table[i] = ((uint64_t)mrand48() << 32) ^ (uint64_t)mrand48();
    kept = 1;
    size_t most = (size_t)(rate * seconds * 2) + 1000, n = 0;
    int64_t *late = calloc(most, sizeof *late);
    // The first eighth is a ramp and does not count.
    int64_t start = now(), from = start + (int64_t)(seconds / 8 * 1e9), end = from + (int64_t)(seconds * 1e9);
    double since = 0, service = 0;
    while (n < most) {
        since += -log(1 - drand48()) / rate * 1e9;
        int64_t plan = start + (int64_t)since;
        if (plan >= end)
            break;
        while (now() < plan) {
            struct timespec t = {plan / 1000000000, plan % 1000000000};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        }
        int64_t begun = now();
        serve(units);
        int64_t done = now();
        if (plan >= from) {
            late[n++] = done - plan;
            service += done - begun;
        }
    }
    if (n < 100)
        return 1;
    qsort(late, n, sizeof *late, compare);
    printf("%lld %lld %lld %.0f %zu\n", (long long)late[n / 2], (long long)late[n * 9 / 10],
           (long long)late[n * 99 / 100], service / n, n);
}
