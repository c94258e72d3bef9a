/* gmd_fork_server.h - many runs of many inputs, each in a process of its own.
 *
 * A fork server is a process that has set up the device, loaded the allocator under test and
 * applied its settings, and then stands still. Each run is a fork of it: it starts from the same
 * state in a fraction of a millisecond, and neither a crash nor a corrupted heap outlives it. What
 * is found is what gmd_run_isolated finds in the same requests under the same options.
 *
 * A real driver does not survive a fork: there each run opens the device by itself, which takes
 * half a second, and persistent mode goes on in one process for as long as nothing is found.
 *
 * A fork server that is gone, or was stopped, is replaced, and its run made again; only one that
 * ends again and again without an answer is an error. Processes that the allocator leaves behind
 * are ended: this process becomes a subreaper (prctl), and ends what it comes by while a fork
 * server is open.
 *
 * Thread safety: one thread for each fork server. */
#ifndef GMD_FORK_SERVER_H
#define GMD_FORK_SERVER_H

#include "gmd_call_log.h"
#include "gmd_driver.h"
#include "gmd_probe.h"

#define GMD_FORK_SERVER_REQUEST_MAX ((size_t)1 << 22) /* of one input */

typedef struct gmd_fork_server gmd_fork_server;

/* Starts the process. `options` and what they point to must outlive the fork server. An allocator
 * that crashes while it is loaded is no failure: every run then gives that as its outcome. */
gmd_status gmd_fork_server_open(gmd_fork_server **server, const gmd_run_options *options,
                                gmd_error *error);

/* Runs the requests of `trace`; its header lines are not looked at, but for `interleave`. The
 * outcome is valid until the next call. */
gmd_status gmd_fork_server_run(gmd_fork_server *server, const gmd_trace *trace,
                               const gmd_outcome **outcome, gmd_error *error);

/* The same, and keeps a list of the calls that the allocator makes. The list is valid until the
 * next call. `is_complete` is false where there were more than fit (about a million). */
gmd_status gmd_fork_server_log(gmd_fork_server *server, const gmd_trace *trace,
                               const gmd_outcome **outcome, const gmd_logged_call **calls,
                               size_t *call_count, bool *is_complete, gmd_error *error);

/* One of many inputs for a process. The only line of its header that counts is an `interleave` by a
 * seed; all of them do where the fork server follows headers (gmd_fork_server_follow). */
typedef struct gmd_persistent_input {
    gmd_trace trace;
    uint64_t probed_refusal; /* the refusal after which it ends with questions, from 1; 0: none */
    bool expects_lapses;     /* of the first: its threads are known to spin or block outside the
                                scheduler */
} gmd_persistent_input;

typedef struct gmd_persistent_result {
    size_t passed;   /* inputs, from the first, that showed nothing */
    bool is_suspect; /* the next one did, or ended the process; if not, there was no room for it, or
                        its threads lost their turn to the watchdog too often */
    const gmd_outcome *outcome; /* of that; valid until the next call. What its oracles cost is of
                                   all inputs, those that passed and that one. */
    const uint32_t *fresh;      /* of each that passed: the features that no input had before (with
                                   options->features); likewise */
    uint64_t requests, faults_planted, faults_unfired; /* of the inputs that passed */
    uint64_t known;                                    /* violations, likewise */
    /* For each that passed, a hash of what is seen of the allocator after the last request: current
     * statistics, and where live blocks lie in their device allocations. 0: it ended with
     * questions. Valid until the next call. */
    const uint64_t *states;
    uint64_t lapses; /* likewise: turns lost to the watchdog (docs/interleaving.md) */
} gmd_persistent_result;

/* From now on, inputs that run in persistent mode do so under their own headers, with `given`,
 * which must outlive the fork server, for what these do not state. False: the allocator exports no
 * gmd_restart, and they run under the fork server's options. */
bool gmd_fork_server_follow(gmd_fork_server *server, const gmd_run_options *given);
/* It follows to the header of this one. */
bool gmd_fork_server_can_follow(const gmd_fork_server *server, const gmd_trace *trace);

/* Runs many inputs in one process, up to the first that shows something. That is a suspicion: it
 * may come of an earlier input, and counts when gmd_fork_server_run shows it. */
gmd_status gmd_fork_server_run_persistent(gmd_fork_server *server,
                                          const gmd_persistent_input *traces, size_t count,
                                          gmd_persistent_result *result, gmd_error *error);

/* No run goes on beyond it (gmd_clock_s): the outcome of one that is ended so is_cut_off. 0: none.
 */
void gmd_fork_server_set_deadline(gmd_fork_server *server, double deadline_s);

/* What went wrong beside the runs. */
typedef struct gmd_fork_server_troubles {
    uint64_t restarts;    /* of the fork server */
    uint64_t left_behind; /* processes that the allocator left, and that were ended */
} gmd_fork_server_troubles;

/* Since the last call. */
gmd_fork_server_troubles gmd_fork_server_take_troubles(gmd_fork_server *server);

/* Ends its processes, before it is closed: then all troubles are known. */
void gmd_fork_server_end(gmd_fork_server *server);
void gmd_fork_server_close(gmd_fork_server *server); /* NULL is allowed */

#endif
