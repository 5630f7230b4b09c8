#!/usr/bin/env python3
"""Twenty-six nodes of case K0 that export over HTTP, one path each: k0-nodes.py PORT NODES STATE.

Three sleep too deep, two have low clocks, three are merely busier. A node whose file in STATE says that it has the change no longer sleeps deep; where
STATE/harm exists the change makes every node's work dearer by a third instead. Counters go on in real time, so a store sees what it would of machines.
"""
import http.server
import os
import sys
import threading
import time

port, n_nodes, state = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
DEEP, SLOW, BUSY = {2, 9, 21}, {5, 16}, {7, 12, 23}
done = {node: [0.0, 0.0, 0.0, 0.0] for node in range(n_nodes)}  # requests, user, system, idle
lock = threading.Lock()


def name(node):
    return "fake-%03d" % node


def has_change(node):
    path = os.path.join(state, name(node))
    return os.path.exists(path) and os.path.getsize(path) > 0


def live():
    last = time.monotonic()
    while True:
        time.sleep(0.25)
        now = time.monotonic()
        passed, last = now - last, now
        is_harmful = os.path.exists(os.path.join(state, "harm"))
        with lock:
            for node, so_far in done.items():
                per_s = (50.0 + (node % 5) * 4.0) * (1.5 if node in BUSY else 1.0)
                changed = has_change(node)
                cost = 0.044 if node in DEEP and not changed else 0.041 if node in SLOW else 0.02
                cost *= 1.0 + 0.04 * ((node * 7919 % 26) / 26.0 - 0.5)
                if changed and is_harmful:
                    cost *= 1.33
                busy = per_s * cost
                share = 0.35 if node in DEEP and not changed else 0.2
                for at, rate in enumerate((per_s, busy * (1 - share), busy * share, 4.0 - busy)):
                    so_far[at] += rate * passed


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        node = int(self.path.rsplit("-", 1)[1])
        with lock:
            requests, user, system, idle = done[node]
        lines = ["http_requests_total %f" % requests]
        lines += ['node_cpu_seconds_total{cpu="0",mode="%s"} %f' % pair for pair in (("user", user), ("system", system), ("idle", idle))]
        lines += ['node_cpu_scaling_frequency_hertz{cpu="0"} %e' % (1.02e9 if node in SLOW else 2.1e9), "node_memory_MemTotal_bytes 2.06e+11"]
        deep = "no" if node in DEEP and not has_change(node) else "yes"
        lines += ['wakewatt_settings_info{processor="Xeon Gold 6230",idle_governor="%s"} 1' % ("menu" if deep == "no" else "other")]
        body = ("\n".join(lines) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


threading.Thread(target=live, daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", port), Page).serve_forever()
