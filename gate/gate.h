/* gate.h - what the parts of the gate share: where they note what they do and what they find. */
#ifndef GMD_GATE_INTERNAL_H
#define GMD_GATE_INTERNAL_H

#include "gmd_gate.h"

#include "abilities.h"
#include "baseline.h"
#include "gmd_clock.h"
#include "gmd_findings.h"
#include "gmd_generate.h"
#include "gmd_random.h"

#define GMD_GATE_CONF_MAX 16

typedef struct gmd_gate_mark { /* beside each of `found.items` */
    char part[24], item[96];
    double seconds;
    bool is_round; /* the case file is a round: --rounds replays it */
} gmd_gate_mark;

typedef struct gmd_gate {
    const gmd_gate_options *options;
    gmd_gate_result *result;
    gmd_run_options run;                  /* for every run; what a trace states comes before it */
    gmd_abilities abilities;              /* of the allocator */
    gmd_profile_space space;              /* what can be asked of it and of the device */
    const char *confs[GMD_GATE_CONF_MAX]; /* settings that it takes, beside none */
    size_t conf_count;
    bool conf_is_fixed; /* --conf: confs[0] always, and never none */
    gmd_findings found;
    gmd_gate_mark *marks;
    size_t mark_count;
    gmd_gate_part *part; /* under way */
    gmd_gate_item *item; /* likewise; NULL: none */
    double start, item_start;
    gmd_baseline baseline;      /* as read; empty: there was none */
    bool wants_figures;         /* a baseline is given, to judge by or to write */
    bool is_other_machine;      /* than the baseline's: speed is not judged */
    uint64_t unconfirmed_hangs; /* only after other runs in one process */
    uint64_t lapses;            /* turns that threads lost to the watchdog */
    volatile sig_atomic_t gives_up;
    gmd_status status;
    gmd_error *error;
    char origin[256];
} gmd_gate;

/* Whether no further run is to be made: a failure of gmd, an interruption, enough found. */
bool gmd_gate_is_over(gmd_gate *gate);

/* An item begins. False: it is not asked for (--only), or the gate is over. Between this and the
 * end all runs and findings are its own. */
bool gmd_gate_begin(gmd_gate *gate, const char *name);
void gmd_gate_count(gmd_gate *gate, uint64_t runs, uint64_t requests, uint64_t known);
void gmd_gate_end(gmd_gate *gate);
/* An item that is not run. */
__attribute__((format(printf, 3, 4))) void gmd_gate_skip(gmd_gate *gate, const char *name,
                                                         const char *reason, ...);
/* For the reader, about the item under way; only the first one stays. */
__attribute__((format(printf, 2, 3))) void gmd_gate_note(gmd_gate *gate, const char *text, ...);

/* A run of `trace` ended with `violation`. */
void gmd_gate_found(gmd_gate *gate, gmd_runner *runner, const gmd_trace *trace,
                    const gmd_violation *violation);
/* It is found already; then it is counted, and needs no second look. */
bool gmd_gate_is_known(gmd_gate *gate, const gmd_violation *violation);
/* After others added to `found`: gives the new ones to the item under way. */
void gmd_gate_take_findings(gmd_gate *gate);
/* Ends the gate: gmd's own failure. */
void gmd_gate_fail(gmd_gate *gate, gmd_status status, const gmd_error *error);

void gmd_gate_tell(gmd_gate *gate, const char *doing);

/* The name is that of a part. */
gmd_gate_part *gmd_gate_part_named(const gmd_gate *gate, const char *name);

/* Runs the trace by itself and notes what it shows. False: it was refused. */
bool gmd_gate_play(gmd_gate *gate, gmd_runner *runner, const gmd_trace *trace);
/* Many of the same header in few processes; a suspect again by itself. */
void gmd_gate_run_persistent(gmd_gate *gate, gmd_runner *runner, gmd_persistent_input *traces,
                             size_t count);

/* A figure of the item under way: held against the baseline, and kept. */
void gmd_gate_measured(gmd_gate *gate, const char *name, const char *unit, gmd_gate_span now);
/* None of the item's figures could be measured; those of the baseline are lost. */
void gmd_gate_not_measured(gmd_gate *gate, const char *reason);
/* Before the first part and after the last one. */
gmd_status gmd_gate_open_baseline(gmd_gate *gate, gmd_error *error);
gmd_status gmd_gate_close_baseline(gmd_gate *gate, gmd_error *error);
__attribute__((format(printf, 2, 3))) void gmd_gate_note_baseline(gmd_gate *gate, const char *text,
                                                                  ...);

/* findings.c: the findings into the result. */
void gmd_gate_tell_findings(gmd_gate *gate);

/* The number of runs that the plan has for this gate. */
uint64_t gmd_gate_runs(const gmd_gate *gate, uint64_t full, uint64_t quick);

/* The battery's options, with the settings that were given, if any: for what is no case. */
gmd_run_options gmd_gate_options_as_given(const gmd_gate *gate);

/* The settings of a trace; NULL: none. False: no host memory. */
bool gmd_gate_set_conf(gmd_gate *gate, gmd_trace *trace, const char *conf);

/* The parts, in order. */
void gmd_gate_first(gmd_gate *gate);
void gmd_gate_cases(gmd_gate *gate);
void gmd_gate_scenarios(gmd_gate *gate);
void gmd_gate_faults(gmd_gate *gate);
void gmd_gate_random(gmd_gate *gate);
void gmd_gate_exhaustive(gmd_gate *gate);
void gmd_gate_rounds(gmd_gate *gate);
void gmd_gate_memory(gmd_gate *gate);
void gmd_gate_speed(gmd_gate *gate);

/* --deep: random sequences until the time is over. */
void gmd_gate_more(gmd_gate *gate);

/* One round from a file, judged by itself (--rounds). */
void gmd_gate_rounds_of_file(gmd_gate *gate, const char *path);

#endif
