/* M/M/1 with a binary heap and nothing else: the least that a simulation by events can cost. Prints requests, mean time in us, seconds. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t s[2] = {0x9e3779b97f4a7c15ull, 0xbf58476d1ce4e5b9ull};

static double unit(void) {
    uint64_t a = s[0], b = s[1];
    s[0] = b;
    a ^= a << 23;
    s[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
    return (double)((s[1] + b) >> 11) / 9007199254740992.0;
}

typedef struct { double at; int what; } event;
static event heap[16];
static int n;

static void push(double at, int what) {
    int i = n++;
    while (i > 0 && heap[(i - 1) / 2].at > at) { heap[i] = heap[(i - 1) / 2]; i = (i - 1) / 2; }
    heap[i].at = at; heap[i].what = what;
}

static event pop(void) {
    event first = heap[0], last = heap[--n];
    int i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && heap[child + 1].at < heap[child].at) child++;
        if (last.at <= heap[child].at) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

int main(int argc, char **argv) {
    double rate = argc > 1 ? atof(argv[1]) : 1400.0, service = (argc > 2 ? atof(argv[2]) : 500.0) / 1e6;
    long requests = argc > 3 ? atol(argv[3]) : 1000000, came = 0, done = 0;
    static double queue[1 << 20];
    long head = 0, tail = 0;
    double total = 0;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    push(-log(1 - unit()) / rate, 0);
    while (n > 0) {
        event e = pop();
        if (e.what == 0) {
            queue[tail++ & ((1 << 20) - 1)] = e.at;
            if (tail - head == 1) push(e.at - log(1 - unit()) * service, 1);
            if (++came < requests) push(e.at - log(1 - unit()) / rate, 0);
        } else {
            total += e.at - queue[head++ & ((1 << 20) - 1)];
            done++;
            if (tail > head) push(e.at - log(1 - unit()) * service, 1);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%ld %.3f %.6f\n", done, total / (double)done * 1e6, (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
    return 0;
}
