/* gmd_bench_report.h - what `gmd bench` is asked to measure, and what it has measured. */
#ifndef GMD_BENCH_REPORT_H
#define GMD_BENCH_REPORT_H

#include "gmd_runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMD_BENCH_ALLOCATOR_MAX 5
#define GMD_BENCH_CORE_MAX      8
#define GMD_BENCH_NOTE_MAX      16

typedef struct gmd_bench_options {
    const char
        *allocators[GMD_BENCH_ALLOCATOR_MAX]; /* the first is what the others are held against */
    uint32_t allocator_count;
    const char *filter; /* a part of the names of the benchmarks to run; NULL: all */
    bool is_whole_name; /* the filter is the whole name of one benchmark */
    gmd_device_kind device;
    uint32_t device_count;
    uint64_t capacity_bytes;
    const char *conf;          /* settings, for every allocator that takes any; NULL: none */
    const char *lib_directory; /* gmd's own libraries, and the worker */
    const char *torch_adapter; /* for `torch` */
    double seconds;            /* of measuring, for each benchmark and allocator */
    double patience_s;         /* a step of a benchmark that takes longer hangs */
    uint64_t seed;
    bool shows_progress;
} gmd_bench_options;

typedef struct gmd_bench_interval {
    double median, low, high; /* the true median lies between these in 95 of 100 cases */
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
    int cores[GMD_BENCH_CORE_MAX]; /* benchmarks with one thread run on the first one */
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

#endif
