"""Histories of shapes that a reader could take quadratic time for, as pickles of a snapshot.

Each shape makes about n events; the same n, the same bytes. Addresses are where nothing else is.
"""
import pickle

MIB = 1 << 20
BASE = 0x7F0000000000
SEGMENT = 20 * MIB
RESERVATION = 1 << 30
# 2^64 divided by the golden ratio, odd (base/gmd_hash.h), and its inverse modulo 2^64.
MULTIPLIER = 0x9E3779B97F4A7C15
INVERSE = pow(MULTIPLIER, -1, 1 << 64)


class History:
    def __init__(self, devices=1):
        self.time_us = 0
        self.traces = [[] for _ in range(devices)]

    def event(self, action, address, size=SEGMENT, stream=0, device=0):
        self.time_us += 1
        self.traces[device].append({"action": action, "addr": address, "size": size, "stream": stream,
                                    "time_us": self.time_us, "frames": []})

    def alloc(self, address, stream=0, device=0, is_new=True):
        if is_new:
            self.event("segment_alloc", address, stream=stream, device=device)
        self.event("alloc", address, stream=stream, device=device)

    def free(self, address, stream=0, device=0):
        self.event("free_requested", address, stream=stream, device=device)
        self.event("free_completed", address, stream=stream, device=device)

    def pickled(self):
        return pickle.dumps({"segments": [], "device_traces": self.traces}, 4)


def at(i):
    return BASE + i * SEGMENT


def cache_given_back(n):
    """Everything is cached; one segment after the other goes, each before a request gets a new one:
    a retry under a limit would have given back the rest as well."""
    h, k = History(), n // 8
    for i in range(k):
        h.alloc(at(i))
    for i in range(k):
        h.free(at(i))
    for i in range(k):
        h.event("segment_free", at(i))
        h.alloc(at(k + i))
    return h.pickled()


def completions_in_a_run(n):
    """Thousands of frees are completed between two segments that are given back."""
    h, k = History(), n // 4
    for i in range(k):
        h.alloc(at(i))
    h.free(at(0))
    for i in range(1, k):
        h.event("free_requested", at(i))
    h.event("segment_free", at(0))
    for i in range(1, k):
        h.event("free_completed", at(i))
    h.event("segment_free", at(1))
    return h.pickled()


def frees_that_wait(n):
    """All frees wait for other streams, and each allocation completes one."""
    h, k = History(), n // 5
    for i in range(k):
        h.alloc(at(i))
    for i in range(k):
        h.event("free_requested", at(i))
    for i in range(k):
        h.event("free_completed", at(i))
        h.alloc(at(i), is_new=False)
    return h.pickled()


def expandable_maps(n):
    """Each allocation opens an expandable segment of its own."""
    h = History()
    for i in range(n // 2):
        h.event("segment_map", BASE + i * RESERVATION)
        h.event("alloc", BASE + i * RESERVATION)
    return h.pickled()


def colliding_addresses(n):
    """Addresses whose products with the multiplier are the first numbers."""
    h, addresses = History(), [(i * INVERSE) % (1 << 64) for i in range(1, n // 3)]
    addresses = [a for a in addresses if a < (1 << 64) - 512]
    for a in addresses:
        h.event("alloc", a, 512)
    for a in addresses:
        h.event("free_requested", a, 512)
        h.event("free_completed", a, 512)
    return h.pickled()


def streams(n):
    """Each stream allocates, frees, and uses its cached block again, in turns with all others."""
    h, k = History(), n // 80
    for i in range(k):
        h.alloc(at(i), stream=i + 1)
        h.free(at(i), stream=i + 1)
    for _ in range((n - 4 * k) // (3 * k)):
        for i in range(k):
            h.alloc(at(i), stream=i + 1, is_new=False)
            h.free(at(i), stream=i + 1)
    return h.pickled()


SHAPES = (cache_given_back, completions_in_a_run, frees_that_wait, expandable_maps,
          colliding_addresses, streams)
