/* A reference for `cargo xtask bench memory`: STREAM's copy and triad, one thread, in pages of 4 kB.
 * stream CPU BYTES PASSES: best bytes per second of copy and of triad, as STREAM counts them (no write allocate).
 * To be compiled with -fno-tree-loop-distribute-patterns: otherwise the copy becomes a call of memcpy, which takes
 * stores past the cache when the array is long enough, and that is another measurement. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static double *array(size_t bytes) {
    double *a = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a == MAP_FAILED) exit(4);
    madvise(a, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < bytes / sizeof *a; i++) a[i] = 1.0;
    return a;
}

static __attribute__((noinline)) void copy(double *restrict c, const double *restrict a, size_t n) {
    for (size_t i = 0; i < n; i++) c[i] = a[i];
}

static __attribute__((noinline)) void triad(double *restrict a, const double *restrict b, const double *restrict c, double s, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[1]), &set);
    if (sched_setaffinity(0, sizeof set, &set)) return 3;
    size_t bytes = strtoull(argv[2], 0, 0), n = bytes / sizeof(double);
    double *a = array(bytes), *b = array(bytes), *c = array(bytes);
    double best_copy = 0, best_triad = 0;
    for (int pass = 0; pass < atoi(argv[3]); pass++) {
        double t0 = now();
        copy(c, a, n);
        double t1 = now();
        triad(a, b, c, 0.5, n);
        double t2 = now();
        if (pass == 0) continue;
        if (2 * bytes / (t1 - t0) > best_copy) best_copy = 2 * bytes / (t1 - t0);
        if (3 * bytes / (t2 - t1) > best_triad) best_triad = 3 * bytes / (t2 - t1);
    }
    printf("%.0f %.0f\n", best_copy, best_triad);
    return 0;
}
