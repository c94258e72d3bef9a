/* gmd_runner.h - runs traces, each as its own header says, and keeps a process warm for as long as
 * the header stays the same. Thread safety: none. */
#ifndef GMD_RUNNER_H
#define GMD_RUNNER_H

#include "gmd_driver.h"
#include "gmd_fork_server.h"

/* What judged any of many runs, with what it looked at and took in all of them; an oracle that
 * judged none of them is skipped, with the reason of the first. */
typedef struct gmd_judged {
    gmd_oracle_result oracles[GMD_ORACLE_MAX];
    uint32_t count;
} gmd_judged;

/* Adds the list of one more run, or of several. */
void gmd_judged_add(gmd_judged *to, const gmd_oracle_result *oracles, uint32_t count);

typedef struct gmd_runner {
    const gmd_run_options *given; /* for what a trace's header does not state */
    gmd_run_options options;      /* in force in the fork server */
    gmd_conditions header;        /* of the traces that it was opened for; owned */
    gmd_fork_server *server;
    gmd_outcome
        *own; /* of the latest run in a process of its own; NULL: the fork server makes them */
    double deadline_s;                 /* no run goes on beyond it (gmd_clock_s); 0: none */
    uint64_t runs, requests, known;    /* so far; known: violations that did not count */
    gmd_judged judged;                 /* likewise */
    gmd_fork_server_troubles troubles; /* likewise */
} gmd_runner;

void gmd_add_troubles(gmd_fork_server_troubles *sum, const gmd_fork_server_troubles *more);

void gmd_runner_init(gmd_runner *runner, const gmd_run_options *given);
void gmd_runner_close(gmd_runner *runner);

/* From now on gmd_runner_run makes each run as gmd_run_isolated does, with the oracles that hold it
 * against a second run (determinism, reference), or no longer. It takes several times as long. */
gmd_status gmd_runner_isolate(gmd_runner *runner, bool is_isolated, gmd_error *error);

/* Runs the trace; the outcome is valid until the next call. GMD_BAD_INPUT: the device or the
 * allocator refuses the header. GMD_INTERRUPTED: runner->given says so; nothing more is run. An
 * outcome that is GMD_ERROR tells of requests that it refuses. */
gmd_status gmd_runner_run(gmd_runner *runner, const gmd_trace *trace, const gmd_outcome **outcome,
                          gmd_error *error);

/* The same, with the list of calls of gmd_fork_server_log. */
gmd_status gmd_runner_log(gmd_runner *runner, const gmd_trace *trace, const gmd_outcome **outcome,
                          const gmd_logged_call **calls, size_t *call_count, bool *is_complete,
                          gmd_error *error);

/* What the allocator exports for private pools: a run of no requests, which fails as it would. */
typedef struct gmd_pool_abilities {
    bool are_there, have_checkpoints, have_options; /* the pools */
} gmd_pool_abilities;

gmd_status gmd_runner_find_pools(gmd_runner *runner, gmd_pool_abilities *pools, gmd_error *error);

/* Many traces with the header of the first (gmd_fork_server_run_persistent), or where the allocator
 * exports gmd_restart, each with its own. */
gmd_status gmd_runner_run_persistent(gmd_runner *runner, const gmd_persistent_input *traces,
                                     size_t count, gmd_persistent_result *result, gmd_error *error);

/* The process that is warm for the one is so for the other. On a real device the schedule does not
 * count: its work is over when it is over. */
bool gmd_runner_shares_process(const gmd_runner *runner, const gmd_conditions *a,
                               const gmd_conditions *b);

/* The next run starts a new process: `given` or what it points to has changed. */
void gmd_runner_renew(gmd_runner *runner);

/* Writes what `options` says and the trace does not into the trace: devices, capacity, settings,
 * schedule, and the limit as a memory fraction, the first request of each device. */
gmd_status gmd_trace_absorb_options(gmd_trace *trace, const gmd_run_options *options,
                                    gmd_error *error);

/* A deep copy; `to` need not be initialised. */
gmd_status gmd_trace_copy(gmd_trace *to, const gmd_trace *from, gmd_error *error);

#endif
