/* gmd_judge.h - runs the oracles and keeps their verdicts. */
#ifndef GMD_JUDGE_H
#define GMD_JUDGE_H

#include "gmd_known.h"
#include "gmd_oracle.h"
#include "gmd_outcome.h"

typedef enum judge_hook {
    GMD_HOOK_AFTER_ALLOC,
    GMD_HOOK_BEFORE_FREE,
    GMD_HOOK_ON_CANARY_FINDING,
    GMD_HOOK_AFTER_REQUEST,
    GMD_HOOK_AFTER_REFUSAL,
    GMD_HOOK_AFTER_WRONG_FREE,
    GMD_HOOK_AFTER_PEAK_RESET,
    GMD_HOOK_WHEN_OVER,
    GMD_HOOK_AT_END,
    GMD_HOOK_COUNT
} judge_hook;

typedef void hook_fn(void *state, const gmd_view *view, gmd_judge *judge);

/* One oracle's hook, with its state: the lists below hold only what is to be called. */
typedef struct listener {
    hook_fn *hook;
    void *state;
    const gmd_oracle *oracle;
    gmd_oracle_result *result;
} listener;

/* What each oracle costs. Measured, the first moments are timed, and all that are rare; of the
 * others one in JUDGE_TIMED_EACH, at random, which counts for as many. Sampled, one in
 * JUDGE_SAMPLED_EACH of all moments, over all runs of the process: timing one takes longer than
 * most oracles. */
typedef struct judge_costs {
    gmd_costs how;
    uint32_t timed;       /* moments of each request, so far */
    uint32_t until;       /* the next one that is timed */
    uint64_t random;      /* state */
    double clock_seconds; /* that reading the clock takes: no oracle's cost */
} judge_costs;

enum { JUDGE_TIMED_FIRST = 256, JUDGE_TIMED_EACH = 64, JUDGE_SAMPLED_EACH = 512 };
#define JUDGE_PREEMPTED_SECONDS 1e-5

struct gmd_judge {
    gmd_outcome *outcome;
    const gmd_known *known;
    const gmd_oracle *speaking; /* whose hook is running */
    uint64_t request_index;
    bool is_at_end;
    int device; /* of the moment that is judged */
    judge_costs costs;
    struct state_features *features; /* where preconditions are noted; NULL: nowhere */
    void *states[GMD_ORACLE_MAX];
    listener listeners[GMD_HOOK_COUNT][GMD_ORACLE_MAX];
    uint32_t listener_count[GMD_HOOK_COUNT];
};

typedef struct judge_options {
    const gmd_known *known; /* NULL: nothing is known */
    const char *conf;       /* the allocator's settings; NULL: none */
    const char *left_out;   /* an oracle that is off; NULL: none */
    bool oracles_off;       /* all of them are */
    gmd_costs costs;
} judge_options;

/* `judge`: zeroed, or of an earlier run of this process. Asks every oracle that the options leave
 * on whether it can see what it needs; GMD_NO_MEMORY when one's state cannot be made. */
gmd_status judge_open(gmd_judge *judge, gmd_outcome *outcome, const gmd_view *view,
                      const judge_options *options, gmd_error *error);
void judge_close(gmd_judge *judge);

void judge_ask(gmd_judge *judge, judge_hook hook, const gmd_view *view);

/* A violation in the name of an oracle whose hook is not running (progress, an unmet expectation);
 * parties as of gmd_violation_add. */
void outcome_violation(gmd_outcome *outcome, const gmd_known *known, gmd_kind kind,
                       const gmd_given_party *parties, uint64_t request, const char *message);

/* The same after the last of so many requests. */
void outcome_violation_at_end(gmd_outcome *outcome, const gmd_known *known, gmd_kind kind,
                              const gmd_given_party *parties, uint64_t requests,
                              const char *message);

/* On standard error, for a process that ends with it. */
void outcome_tell(const gmd_outcome *outcome);

/* The run could not be carried out. */
void outcome_error(gmd_outcome *outcome, gmd_status status, const gmd_error *error);

#endif
