/* gmd_bench.h - speed of allocators, side by side: each in a process of its own, on the same core,
 * in short rounds that take turns, so that what disturbs one disturbs the others too. */
#ifndef GMD_BENCH_H
#define GMD_BENCH_H

#include "gmd_error.h"
#include "gmd_runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GMD_BENCH_ALLOCATOR_MAX 5
#define GMD_BENCH_CORE_MAX      8
#define GMD_BENCH_NOTE_MAX      16

typedef struct gmd_bench_options {
    const char
        *allocators[GMD_BENCH_ALLOCATOR_MAX]; /* the first is what the others are held against */
    uint32_t allocator_count;
    const char *filter; /* a part of the names of the benchmarks to run; NULL: all */
    bool is_whole_name; /* the filter is: of one benchmark */
    gmd_device_kind device;
    uint32_t device_count;
    uint64_t capacity_bytes;
    const char *conf;          /* settings, for every allocator that takes any; NULL: none */
    const char *lib_directory; /* gmd's own libraries, and the worker */
    const char *torch_adapter; /* for `torch` */
    double seconds;            /* of measuring, for each benchmark and allocator */
    double patience_s;         /* longer, and a step of a benchmark hangs */
    uint64_t seed;
    bool shows_progress;
} gmd_bench_options;

typedef struct gmd_bench_interval {
    double median, low, high; /* the true median lies within in 95 of 100 cases */
} gmd_bench_interval;

typedef enum gmd_bench_state {
    GMD_BENCH_MEASURED,
    GMD_BENCH_SKIPPED, /* `reason`: what the allocator lacks */
    GMD_BENCH_FAILED,  /* `reason`: what went wrong; there are no figures */
} gmd_bench_state;

typedef struct gmd_bench_result { /* of one benchmark and allocator */
    gmd_bench_state state;
    char reason[768];
    gmd_bench_interval ns_per_op;
    bool has_ratio;
    gmd_bench_interval ratio;   /* of the time to the first allocator's, round by round */
    uint32_t rounds, disturbed; /* all, and those in which the core was taken away */
} gmd_bench_result;

typedef struct gmd_bench_row {
    const char *name, *operation;
    gmd_bench_result results[GMD_BENCH_ALLOCATOR_MAX];
    bool has_floor;
    double
        floor_ns; /* the loop itself, with an allocator that does nothing; it is not subtracted */
} gmd_bench_row;

typedef struct gmd_bench_machine {
    char processor[128], governor[32];
    uint32_t core_count;
    int cores[GMD_BENCH_CORE_MAX]; /* the first one for all that has one thread */
    double load_before, load_after;
} gmd_bench_machine;

typedef struct gmd_bench_report {
    const gmd_bench_options *options;
    gmd_bench_row *rows;
    size_t row_count;
    gmd_bench_machine machine;
    char notes[GMD_BENCH_NOTE_MAX][256];
    uint32_t note_count;
    double seconds;
} gmd_bench_report;

/* Whether any benchmark has `filter` in its name; `names` gets all of them, for a message. */
bool gmd_bench_is_known(const char *filter, char *names, size_t size);

/* GMD_BAD_INPUT: an allocator or the device is not usable. What goes wrong in a benchmark is in its
 * result. The options must live as long as the report. */
gmd_status gmd_bench_run(const gmd_bench_options *options, gmd_bench_report *report,
                         gmd_error *error);
void gmd_bench_report_free(gmd_bench_report *report);

typedef struct gmd_bench_counted {
    gmd_bench_state state;
    char reason[768];
    double instructions_per_op; /* of user space */
    bool is_stepped;            /* step by step: this machine offers no counter of instructions */
    bool is_least;              /* there are more: it was ended, as steps take long */
} gmd_bench_counted;

/* The instructions of the benchmark of that name, of the first allocator. */
gmd_status gmd_bench_count(const gmd_bench_options *options, const char *name,
                           gmd_bench_counted *counted, gmd_error *error);

uint32_t gmd_bench_failures(const gmd_bench_report *report);

gmd_status gmd_bench_write_table(const gmd_bench_report *report, FILE *out, gmd_error *error);
gmd_status gmd_bench_write_json(const gmd_bench_report *report, const char *version, FILE *out,
                                gmd_error *error);

#endif
