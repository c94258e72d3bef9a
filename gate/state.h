/* state.h - what the parts of a gate share: what they are given, and where they note what they run
 * and find. It knows none of them. */
#ifndef GMD_GATE_STATE_H
#define GMD_GATE_STATE_H

#include "gmd_gate_options.h"
#include "gmd_gate_result.h"

#include "baseline.h"
#include "plan.h"

#include "gmd_findings.h"
#include "gmd_fork_server.h"
#include "gmd_generate.h"
#include "gmd_subject.h"

typedef struct finding_mark { /* beside each of `found.items` */
    char part[24], item[96];
    double seconds;
    bool is_round; /* the case file is a round: --rounds replays it */
} finding_mark;

typedef struct gate_state {
    const gmd_gate_options *options;
    gmd_gate_result *result;
    gmd_run_options run;         /* for every run; what a trace states comes before it */
    gmd_abilities abilities;     /* of the allocator */
    bool waits_unjudged;         /* abilities.h */
    gmd_profile_space space;     /* what can be asked of it and of the device */
    const char *confs[CONF_MAX]; /* settings that it takes, beside none */
    size_t conf_count;
    bool conf_is_fixed; /* --conf: confs[0] always, and never none */
    gmd_findings found;
    finding_mark *marks;
    size_t mark_count, mark_capacity;
    gmd_gate_part *part; /* under way */
    gmd_gate_item *item; /* likewise; NULL: none */
    double start, item_start;
    gate_baseline baseline;     /* as read; empty: there was none */
    bool wants_figures;         /* a baseline is given, to judge by or to write */
    bool is_other_machine;      /* than the baseline's: speed is not judged */
    uint64_t unconfirmed_hangs; /* only after other runs in one process */
    volatile sig_atomic_t gives_up;
    gmd_status status;
    gmd_error *error;
    char origin[256];
} gate_state;

/* --- when it is over --------------------------------------------------------------------- */

/* Ends the gate: gmd's own failure. GMD_OK is none; only the first failure stays. GMD_INTERRUPTED
 * is no failure, and ends it, too. */
void gate_fail(gate_state *gate, gmd_status status, const gmd_error *error);
/* The same, where there is no host memory for `what`. */
void gate_out_of_memory(gate_state *gate, const char *what);
/* Ends the gate before all is judged; only the first reason stays. */
void gate_give_up(gate_state *gate, const char *why);
/* Whether no further run is to be made: a failure of gmd, an interruption, enough found. */
bool gate_is_over(gate_state *gate);

/* --- parts and items --------------------------------------------------------------------- */

/* --only: "cases" or "cases/general/rmm2489"; without it all are asked for. */
bool gate_asks_for_part(const gate_state *gate, const char *part);
bool gate_asks_for_item(const gate_state *gate, const char *part, const char *item);

/* The name is that of a part. */
gmd_gate_part *gate_part_named(const gate_state *gate, const char *name);

/* An item begins. False: it is not asked for (--only), or the gate is over. Until its end all runs
 * and findings are its own. */
bool gate_begin_item(gate_state *gate, const char *name);
void gate_end_item(gate_state *gate);
/* An item that is not run. */
__attribute__((format(printf, 3, 4))) void gate_skip_item(gate_state *gate, const char *name,
                                                          const char *reason, ...);
/* Runs and requests of the item under way, and violations in them that are known. */
void gate_count(gate_state *gate, uint64_t runs, uint64_t requests, uint64_t known);
/* What oracles looked at and took in runs. */
void gate_add_costs(gate_state *gate, const gmd_oracle_result *oracles, uint32_t count);
/* What went wrong beside the runs. */
void gate_add_troubles(gate_state *gate, const gmd_fork_server_troubles *troubles);
/* For the reader, about the item under way; only the first note stays. */
__attribute__((format(printf, 2, 3))) void gate_note(gate_state *gate, const char *text, ...);

/* Tells whoever watches how far the gate is: `doing` as in gmd_gate_progress. */
void gate_tell(gate_state *gate, const char *doing);

/* --- the plan, for this gate ------------------------------------------------------------- */

/* Runs of a full gate or of a quick one. */
uint64_t gate_budget(const gate_state *gate, plan_budget budget);

#endif
