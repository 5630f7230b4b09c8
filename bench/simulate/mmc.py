#!/usr/bin/env python3
"""M/M/c in SimPy: the twin of what `cargo xtask bench simulate` times.

Usage: mmc.py CPUS RATE SERVICE_US REQUESTS SEED. Prints requests, mean time in microseconds, and seconds taken.
SimPy comes from PyPI (`pip install simpy`). Equal means (within the intervals) show that both simulate the same thing.
"""
import random
import sys
import time

import simpy


def main() -> None:
    cpus, rate, service_us, requests, seed = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    draw = random.Random(seed)
    env = simpy.Environment()
    servers = simpy.Resource(env, capacity=cpus)
    total = [0.0, 0]

    def request():
        came = env.now
        with servers.request() as turn:
            yield turn
            yield env.timeout(draw.expovariate(1e6 / service_us))
        total[0] += env.now - came
        total[1] += 1

    def source():
        for _ in range(requests):
            yield env.timeout(draw.expovariate(rate))
            env.process(request())

    env.process(source())
    begun = time.perf_counter()
    env.run()
    took = time.perf_counter() - begun
    print(f"{total[1]} {total[0] / total[1] * 1e6:.3f} {took:.6f}")


main()
