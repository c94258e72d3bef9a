#include "trials.h"

const trial trials[] = {
    {GMD_CLAUSE_COUNT,
     "capacity 1GiB\n"
     "alloc a 1000 s1\nuse a s1\nfree a\nalloc b 4MiB s1\nuse b s1\nfree b\n"
     "alloc c 3000000 s1\nalloc d 1000 s1\nfree d\nfree c\n",
     0},
    {GMD_CLAUSE_COUNT,
     "capacity 1GiB\n"
     "alloc a 20MiB s0\nalloc b 512 s0\nuse a s0\nfree a\nalloc c 10MiB s0\nuse c s0\nfree b\n"
     "alloc d 10MiB s0\nfree c\nfree d\n",
     0},
    {GMD_CLAUSE_COUNT,
     "capacity 1GiB\n"
     "alloc a 1MiB s1\nalloc b 1MiB s2\nuse a s1\nuse b s2\nfree a\nfree b\n"
     "alloc c 1MiB s2\nuse c s2\nalloc d 1MiB s1\nuse d s1\nfree c\nfree d\nempty_cache\n",
     0},

    {GMD_CLAUSE_ALIGNMENT,
     "capacity 1GiB\nalloc a 1 s1\nalloc b 16 s1\nalloc c 100 s1\nalloc d 128 s1\n"
     "alloc e 3000 s1\nalloc f 1MiB s1\nfree c\nalloc g 20 s1\nfree f\nfree g\nfree e\nfree d\n"
     "free b\nfree a\n",
     0},

    {GMD_CLAUSE_OUT_OF_MEMORY, "capacity 64MiB\nalloc a 1MiB s1\nalloc b 100MiB s1\nfree a\n", 0},
    {GMD_CLAUSE_OUT_OF_MEMORY,
     "capacity 64MiB\nalloc a 70MiB s1\nalloc b 200MiB s0\nalloc c 1000 s1\nfree c\n", 0},

    {GMD_CLAUSE_ZERO_BYTES, "capacity 1GiB\nalloc a 0 s1\nfree a\n", 0},
    {GMD_CLAUSE_ZERO_BYTES,
     "capacity 1GiB\nalloc a 0 s1\nalloc b 0 s1\nalloc c 1000 s1\nuse c s1\nfree a\nfree c\n"
     "alloc d 1000 s1\nuse d s1\nfree b\nfree d\n",
     0},

    {GMD_CLAUSE_DEVICES, "devices 2\ncapacity 1GiB\nalloc a 1MiB s1 device 1\nuse a s1\nfree a\n",
     0},
    {GMD_CLAUSE_DEVICES,
     "devices 2\ncapacity 1GiB\nalloc a 1MiB s1\nalloc b 1MiB s1 device 1\ndevice 1\nfree a\n"
     "device 0\nfree b\nalloc c 1MiB s1 device 1\nuse c s1\nalloc d 1MiB s1\nuse d s1\nfree c\n"
     "free d\nempty_cache\n",
     0},

    {GMD_CLAUSE_PENDING_ERRORS,
     "capacity 1GiB\nleave_error\nalloc a 1MiB s1\nleave_error\nfree a\nleave_error\n"
     "empty_cache\n",
     0},
    {GMD_CLAUSE_PENDING_ERRORS, "capacity 64MiB\nleave_error\nalloc a 100MiB s1\n", 0},

    {GMD_CLAUSE_STREAMS,
     "capacity 1GiB\nalloc a 1MiB s1\nuse a s1\ndestroy s1\nfree a\nalloc b 1MiB s2\nuse b s2\n"
     "free b\n",
     0},
    {GMD_CLAUSE_STREAMS,
     "capacity 1GiB\nalloc a 1MiB s1\nuse a s1\nfree a\ndestroy s1\nalloc b 1MiB s2\nuse b s2\n"
     "free b\nempty_cache\nalloc c 1MiB s1\nuse c s1\nfree c\n",
     0},
    {GMD_CLAUSE_STREAMS,
     "capacity 64MiB\nhandles reused\nalloc a 40MiB s1\nuse a s1\nfree a\ndestroy s1\n"
     "alloc b 40MiB s2\nuse b s2\ndestroy s2\nfree b\nalloc c 50MiB s3\nuse c s3\nfree c\n",
     0},

    {GMD_CLAUSE_OTHER_STREAMS,
     "capacity 1GiB\nalloc a 1MiB s1\nuse a s2 1ms\nrecord a s2\nfree a\nalloc b 1MiB s1\n"
     "use b s1\nsync\nfree b\n",
     0},
    {GMD_CLAUSE_OTHER_STREAMS,
     "capacity 1GiB\nalloc a 20MiB s1\nuse a s2 1ms\nrecord a s2\nuse a s3 2ms\nrecord a s3\n"
     "free a\nalloc b 10MiB s1\nuse b s1\nalloc c 10MiB s2\nuse c s2\nfree b\nfree c\n"
     "empty_cache\n",
     0},

    {GMD_CLAUSE_THREADS,
     "capacity 1GiB\nalloc a 1MiB s1\nalloc b 1MiB s1\nthread t1\nfree a\nalloc c 1MiB s1\n"
     "thread main\nfree b\nalloc d 1MiB s1\nthread t1\nuse c s1\nfree c\nthread main\nuse d s1\n"
     "free d\n",
     32},
    {GMD_CLAUSE_THREADS,
     "capacity 64MiB\nalloc a 20MiB s1\nalloc b 20MiB s2\nthread t1\nfree a\nalloc c 30MiB s1\n"
     "thread t2\nfree b\nalloc d 30MiB s2\nempty_cache\nthread main\nalloc e 1000 s1\nfree e\n",
     32},

    {GMD_CLAUSE_POOL, "capacity 140GiB\nexpect alloc a 20GiB s1\nfree a\n", 0},
    {GMD_CLAUSE_POOL, "capacity 2GiB\nalloc a 1GiB s1\nalloc b 700MiB s1\nfree a\nfree b\n", 0},

    {GMD_CLAUSE_PRESSURE,
     "capacity 128MiB\nalloc a 30MiB s1\nalloc b 30MiB s1\nalloc c 30MiB s1\nfree a\nfree b\n"
     "free c\nexpect alloc d 60MiB s1\nfree d\n",
     0},
    {GMD_CLAUSE_PRESSURE,
     "capacity 64MiB\nalloc a 20MiB s1\nalloc b 20MiB s1\nfree a\nfree b\nalloc c 50MiB s1\n"
     "free c\n",
     0},
    {GMD_CLAUSE_PRESSURE,
     "capacity 64MiB\nalloc a 30MiB s1\nuse a s1\nfree a\nalloc b 50MiB s2\nuse b s2\nfree b\n"
     "alloc c 512 s3\nalloc d 50MiB s3\nfree d\nfree c\n",
     0},
};
const size_t trial_count = sizeof trials / sizeof *trials;

const char failing_trial[] = "capacity 128MiB\n"
                             "alloc a 1000 s1\nalloc b 3MiB s1\nalloc c 24MiB s1\nuse b s2 10us\n"
                             "record b s2\nfree b\nfree c\nalloc d 30MiB s1\nuse d s2 10us\n"
                             "free d\nalloc e 20MiB s2\nfree a\nempty_cache\nalloc f 90MiB s2\n"
                             "free e\nfree f\n";
