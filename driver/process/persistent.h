/* persistent.h - many inputs one after the other in one process: a fork costs as much as some
 * hundred requests, and most inputs show nothing.
 *
 * Between two inputs everything is freed, the cache emptied, and what an input sets is set back; an
 * allocator that exports gmd_restart is made anew, and can follow inputs to other headers. An
 * input that shows anything is only suspected, and ends the process: it may have come of an earlier
 * one. What is to be believed is what it shows in a process of its own. */
#ifndef PERSISTENT_H
#define PERSISTENT_H

#include "gmd_run_options.h"

#define PERSISTENT_MAX 512

#define PERSISTENT_CONF_MAX 256

typedef struct persistent_header {
    gmd_conditions conditions; /* without explicit choices; its settings are the ones here */
    char conf[PERSISTENT_CONF_MAX];
} persistent_header;

typedef struct persistent_entry {
    size_t first, count; /* of the requests of all inputs */
    uint32_t thread_count, block_count, stream_count;
    uint32_t first_function, function_count; /* of the names of all inputs */
    gmd_schedule interleave;                 /* by a seed, or unstated */
    bool has_header;                         /* another than the session was opened with */
    persistent_header header;
    uint64_t probed_refusal; /* after which the allocator is asked again, from 1; 0: never */
} persistent_entry;

/* What an oracle looked at and took, as gmd_oracle_result has it. */
typedef struct persistent_cost {
    uint64_t asked;
    double seconds;
} persistent_cost;

/* Shared between the process and its parent. */
typedef struct persistent_list {
    persistent_entry inputs[PERSISTENT_MAX];
    size_t count;
    uint32_t fresh[PERSISTENT_MAX]; /* of each that passed: features that nobody had seen before */
    bool is_fresh;                  /* the process has run nothing yet */
    _Atomic uint32_t passed;        /* inputs that showed nothing: also the one under way */
    uint64_t requests, faults_planted, faults_unfired, known; /* of those, together */
    persistent_cost costs[GMD_ORACLE_MAX];                    /* likewise, in the outcome's order */
    bool expects_lapses; /* given: threads that spin or block outside the scheduler lose their turn
                            soon */
    _Atomic int has_stopped; /* before the next input: the threads lost their turn too often */
    uint64_t lapses;
    uint64_t states[PERSISTENT_MAX]; /* of those that passed: gmd_persistent_result */
} persistent_list;

/* Memory of an input stays with the process for the next one. */
void persistent_keep_memory(void);

/* Plays the session's workload as one of many inputs of its process. False: it shows something. */
bool persistent_play(gmd_session *session);

/* Plays them up to the first that shows something. `trace` is the session's: its requests, counts
 * of names and interleaving become each input's. Its functions are those of all inputs. `opening`:
 * the outcome as the session was opened with; of the first input it is in force already. */
void persistent_play_all(gmd_session *session, const gmd_outcome *opening, gmd_trace *trace,
                         gmd_request *requests, persistent_list *list);

#endif
