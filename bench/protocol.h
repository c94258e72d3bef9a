/* protocol.h - what `gmd bench` and the processes that measure say to each other, over a socket
 * that keeps messages apart (SOCK_SEQPACKET).
 *
 * The worker is sent a bench_setup and answers; then for each benchmark PREPARE, MEASURE (once for
 * each round) and FINISH, or COUNT, each answered by one bench_reply. The end of the socket is the
 * end of the worker. Both are parts of one build: the structures need no form of their own. */
#ifndef GMD_BENCH_PROTOCOL_H
#define GMD_BENCH_PROTOCOL_H

#include "catalogue.h"

#include "gmd_error.h"
#include "gmd_runtime.h"

#include <stdbool.h>
#include <stdint.h>

#define BENCH_SOCKET 3 /* the worker's end */

typedef struct bench_setup {
    bool is_floor; /* measures the loops themselves: an allocator that does nothing, no device */
    gmd_device_kind device;
    uint32_t device_count;
    uint64_t capacity_bytes;
    char spec[4096], lib_directory[4096], torch_adapter[4096]; /* the last: empty, or a path */
    bool has_conf, conf_is_optional;
    char conf[4096];
    uint32_t core_count;
    int cores[BENCH_THREAD_MAX]; /* benchmarks with one thread run on the first one */
} bench_setup;

/* COUNT needs no PREPARE: it counts the instructions of some operations in a loop of its own. */
typedef enum bench_verb { BENCH_PREPARE, BENCH_MEASURE, BENCH_COUNT, BENCH_FINISH } bench_verb;

typedef struct bench_request {
    bench_verb verb;
    uint32_t index; /* into bench_catalogue */
    uint64_t seed;
    uint64_t round_ns; /* how long the timed part of a round is to be */
} bench_request;

typedef enum bench_answer {
    BENCH_DONE,
    BENCH_SKIPPED, /* the allocator lacks something; `text` says what */
    BENCH_FAILED,  /* `text` says why */
    BENCH_REFUSED, /* the worker cannot start: `status` and `text` */
} bench_answer;

typedef struct bench_reply {
    bench_answer answer;
    gmd_status status;
    double ns_per_op;
    double instructions_per_op; /* of COUNT */
    bool is_stepped, is_least;  /* of COUNT: counted step by step; there are more */
    uint64_t elapsed_ns;        /* of the timed part */
    bool is_disturbed;          /* the kernel ran something else on the core meanwhile */
    char text[768];
} bench_reply;

#endif
