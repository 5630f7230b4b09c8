/* A reference for `cargo xtask bench memory`: the method of multichase, in as few lines as it takes.
 * chase CPU SIZE STRIDE SECONDS: best of 5 samples of a shuffled ring, in nanoseconds per load, 2 MB pages by madvise. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[1]), &set);
    if (sched_setaffinity(0, sizeof set, &set)) return 3;
    size_t size = strtoull(argv[2], 0, 0), stride = strtoull(argv[3], 0, 0), n = size / stride;
    double sample_ns = atof(argv[4]) * 1e9, best = 1e300;
    char *region = aligned_alloc(2 << 20, (size + (2 << 20) - 1) >> 21 << 21);
    size_t *order = malloc(n * sizeof *order);
    if (!region || !order || !n) return 4;
    madvise(region, size, MADV_HUGEPAGE);
    memset(region, 0, size);
    srandom(1);
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t i = n - 1; i > 0; i--) {
        size_t k = (((size_t)random() << 31) ^ (size_t)random()) % (i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    for (size_t i = 0; i < n; i++)
        *(void **)(region + order[i] * stride) = region + order[(i + 1) % n] * stride;
    void **at = (void **)region;
    for (int sample = -1; sample < 5; sample++) {
        double start = now(), spent;
        size_t loads = 0;
        do {
            for (int i = 0; i < 4096; i++) {
#define S at = *at;
                S S S S S S S S S S S S S S S S
            }
            __asm__ volatile("" : "+r"(at));
            loads += 4096 * 16;
            spent = now() - start;
        } while (spent < sample_ns);
        if (sample >= 0 && spent / loads < best) best = spent / loads;
    }
    printf("%.4f\n", best);
    return 0;
}
