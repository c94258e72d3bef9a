/* contestant.h - one allocator of a comparison: a worker process, started when it is needed. */
#ifndef GMD_BENCH_CONTESTANT_H
#define GMD_BENCH_CONTESTANT_H

#include "protocol.h"

#include <sys/types.h>

typedef struct bench_contestant {
    bench_setup setup;
    const char *program; /* the worker's */
    double patience_s;   /* for an answer */
    pid_t process;       /* 0: none */
    int socket;
} bench_contestant;

/* Starts the worker unless it runs. GMD_BAD_INPUT: the allocator or the device is not usable. */
gmd_status bench_contestant_start(bench_contestant *c, gmd_error *error);

/* Asks and waits for the answer. A worker that dies or does not answer is ended, and the answer is
 * BENCH_FAILED with the reason. */
void bench_contestant_ask(bench_contestant *c, const bench_request *request, bench_reply *reply);

void bench_contestant_stop(bench_contestant *c);

#endif
