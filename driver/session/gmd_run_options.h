/* gmd_run_options.h - what a run is to be: the allocator, the device, the workload, and what is
 * kept of it. */
#ifndef GMD_RUN_OPTIONS_H
#define GMD_RUN_OPTIONS_H

#include "gmd_error.h"
#include "gmd_feature_map.h"
#include "gmd_journal.h"
#include "gmd_known.h"
#include "gmd_outcome.h"
#include "gmd_runtime.h"
#include "gmd_sim.h"
#include "gmd_subject.h"
#include "gmd_timeline.h"
#include "gmd_trace.h"

#include <signal.h>

typedef struct gmd_session gmd_session;

/* The allocator under test. */
typedef struct gmd_run_subject {
    const char *allocator;     /* SPEC of the command line */
    const char *lib_directory; /* gmd's own libraries: libgmd_allocator.so, sim/ */
    const char *torch_adapter; /* for the SPEC torch: the library of gmd_torch_adapter */
    unsigned promises;         /* by the user, beside those that the allocator makes itself */
    bool has_all_quirks;       /* the reference allocator with the known deviations of PyTorch's */
} gmd_run_subject;

/* What it runs on, beside the conditions. */
typedef struct gmd_run_device {
    gmd_device_kind kind;
    bool limit_is_optional; /* an allocator without a memory fraction goes without */
    gmd_sim_placement placement;
    const gmd_sim_recorded *recorded; /* GMD_SIM_RECORDED */
    size_t recorded_count;
    const uint64_t *recorded_reservations; /* likewise, of addresses */
    size_t recorded_reservation_count;
} gmd_run_device;

/* How the verdict comes about. */
typedef struct gmd_run_judging {
    const gmd_known *known;              /* NULL: nothing is known */
    const struct gmd_contract *contract; /* that the driver, as its caller, keeps to
                                            (gmd_contract.h; what it promises is in `known` and the
                                            subject's promises); NULL: gmd's own */
    const char *left_out; /* an oracle that is off, to see what it costs; NULL: none */
    bool is_compared;     /* with a recording: nothing is asked that would show in the statistics */
    bool oracles_off;     /* for `replay --check` of speed only; reported as skipped */
    gmd_costs costs;      /* what each oracle looks at and takes: gmd_oracle_result */
} gmd_run_judging;

/* The process in which it runs. */
typedef struct gmd_run_process {
    double call_budget_s; /* a request that takes longer is a hang */
    double load_budget_s; /* likewise, for loading the allocator; 0: the same */
    bool shows_progress;  /* on standard error, while it runs */
    const volatile sig_atomic_t *is_interrupted; /* runs end with GMD_INTERRUPTED; NULL: never */
    bool is_second_run;          /* of the same requests: what may differ between processes does */
    struct run_answers *answers; /* where a run that is held against another keeps them; or NULL */
    const char *no_second_run;   /* why this run is held against no other; NULL: it is */
} gmd_run_process;

/* The case that is written of a run that fails. */
typedef struct gmd_run_cases {
    const char *directory; /* NULL: nowhere */
    uint32_t number;    /* in its name: of runs that are called alike, this one; 0, 1: not there */
    bool file_says_all; /* the workload's file, by itself, is run under these very conditions: where
                           it ends with what it shows it is the case, and none is written */
} gmd_run_cases;

/* Where what happens is noted. NULL: nowhere. */
typedef struct gmd_run_recording {
    gmd_feature_map *features; /* the states of inputs in persistent mode */
    gmd_timeline *timeline;    /* the requests */
    gmd_journal *journal;      /* what happened to the memory */
} gmd_run_recording;

/* All of it is borrowed. Thread safety: none; share it read-only. */
typedef struct gmd_run_options {
    gmd_run_subject subject;
    gmd_conditions conditions; /* devices and memory are the simulated device's, and must be stated.
                                  The interleaving comes before a trace's own. */
    gmd_run_device device;
    gmd_run_judging judging;
    gmd_run_process process;
    gmd_run_cases cases;
    gmd_run_recording recording;
    uint64_t seed;
    uint64_t interleave_seeds; /* gmd_run_interleavings: how many to try */
} gmd_run_options;

typedef struct gmd_workload {
    const char *name, *kind, *variant;   /* for the report: gmd_outcome */
    const char *path;                    /* likewise; NULL: it is no file */
    const gmd_trace *trace;              /* names for messages and cases; NULL: a live scenario */
    const struct gmd_recorded *recorded; /* of each request of the trace; NULL: none was recorded */
    /* Makes the requests, in the child. GMD_BAD_INPUT and GMD_FAILED end the run as an error. */
    gmd_status (*body)(void *context, gmd_session *session, gmd_error *error);
    void *context;
} gmd_workload;

/* The memory fraction whose product with `total`, cut to whole bytes, is `limit` exactly. */
double fraction_for(uint64_t limit, uint64_t total);

/* The options for a trace whose header states `stated`, which wins over what is given. No case is
 * written of the run, and no progress shown. It borrows from both. */
gmd_run_options gmd_options_under(const gmd_run_options *given, const gmd_conditions *stated);

/* Nothing is given of what traces that are run one after the other state, or have among their
 * requests: the limit, the settings, the orders. */
void gmd_options_leave_to_traces(gmd_run_options *options);

/* A real device has the memory it has: there the limit stands in for a capacity that a trace
 * states. */
void gmd_options_limit_for(gmd_run_options *options, uint64_t stated_capacity_bytes);

/* A request may take at most so long, where more is given: for runs of which many are made, or of
 * which many end without an answer. Loading takes as long as it takes. */
gmd_run_options gmd_options_hurried(const gmd_run_options *given, double call_budget_s);

/* Without oracles: for what a run tells beside its verdict. */
gmd_run_options gmd_options_unjudged(const gmd_run_options *given);

/* Whether the user does not want to wait any longer. */
static inline bool gmd_options_interrupted(const gmd_run_options *options)
{
    return options->process.is_interrupted && *options->process.is_interrupted;
}

/* The allocator under test, as the options name it. */
gmd_subject_source session_source(const gmd_run_options *options);

/* The interleaving in which the threads of this trace are to run: the options' before the trace's
 * own. NULL: one request after the other, or there is only one thread. */
const gmd_schedule *interleaving_of(const gmd_run_options *options, const gmd_trace *trace);

#endif
