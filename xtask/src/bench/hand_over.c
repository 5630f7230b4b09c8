// The reference for `cargo xtask bench cores`: two threads, one line, compare-and-swap, as core-to-core-latency's cas
// bench. Written apart from the Rust probe on purpose. Prints the median and the best batch, ns one way.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 120, WARM = 20, TRIPS = 500, LINES = 16, PAGE = 4096 };

static int cpus[2];
static char *pages;
static atomic_int ready;

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        perror("sched_setaffinity");
        exit(1);
    }
    struct sched_param p = {.sched_priority = 80};
    sched_setscheduler(0, SCHED_FIFO, &p);
}

static atomic_uint *line(int k) {
    return (atomic_uint *)(pages + (k % LINES) * PAGE + (k % LINES * 5 % 16) * 256);
}

static void turn(atomic_uint *word, unsigned from, unsigned to) {
    unsigned seen = from;
    while (!atomic_compare_exchange_strong(word, &seen, to))
        seen = from;
}

static void *follow(void *unused) {
    (void)unused;
    pin(cpus[1]);
    while (!atomic_load(&ready))
        sched_yield();
    for (int batch = 0; batch < BATCHES; batch++)
        for (int i = 0; i < TRIPS; i++)
            turn(line(batch), 1, 0);
    return NULL;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    cpus[0] = atoi(argv[1]);
    cpus[1] = atoi(argv[2]);
    // Two real-time spinners must not meet on one CPU: the follower is made first, since it would inherit CPU and
    // priority, and whatever happens an alarm ends the process.
    alarm(20);
    pthread_t follower;
    if (pthread_create(&follower, NULL, follow, NULL))
        return 1;
    pin(cpus[0]);
    pages = mmap(NULL, LINES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return 1;
    for (int k = 0; k < LINES; k++)
        atomic_store(line(k), 0);
    atomic_store(&ready, 1);
    static double times[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = now();
        for (int i = 0; i < TRIPS; i++)
            turn(line(batch), 0, 1);
        times[batch] = (now() - start) / (2 * TRIPS - 1);
    }
    pthread_join(follower, NULL);
    qsort(times + WARM, BATCHES - WARM, sizeof *times, compare);
    printf("%.2f %.2f\n", times[WARM + (BATCHES - WARM) / 2], times[WARM]);
    return 0;
}
