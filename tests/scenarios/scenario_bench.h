/* scenario_bench.h - runs scripts of the tests against a sink that keeps accounts. */
#ifndef SCENARIO_BENCH_H
#define SCENARIO_BENCH_H

#include "gmd_scenario_inspect.h"
#include "gmd_test.h"

#define BENCH_BLOCKS (1 << 20)
#define BENCH_PHASES 1024
#define BENCH_FREED  8

#define ASKED_SIZE 1600 /* of the text of what a phase asked for */

typedef struct bench_phase {
    char label[128];
    uint64_t allocated, max_allocated;
    uint64_t requested, max_requested; /* not rounded */
    /* "+4096 -4096": bytes allocated and freed since the phase before, in order */
    char asked[ASKED_SIZE];
} bench_phase;

typedef struct bench_bound {
    bool is_reserved, leaks;
    uint64_t bytes, peak; /* peak: of allocated bytes, from where it was stated */
} bench_bound;

/* Bytes are rounded to 512 as PyTorch's allocator does. */
typedef struct bench {
    gmd_status status;
    gmd_error error;
    bool out_of_memory;
    uint64_t allocated, max_allocated, requests, hash;
    uint64_t requested, max_requested;
    uint64_t largest; /* request */
    size_t phase_count;
    bench_phase phases[BENCH_PHASES];
    uint64_t bytes[BENCH_BLOCKS]; /* of each block ever allocated; 0 when it is freed */
    char asked[ASKED_SIZE];       /* since the last phase */
    size_t bound_count;
    bench_bound bounds[8];
    gmd_workspace_use workspaces;
    uint64_t with_lines;             /* requests that came with the script's line */
    uint64_t freed[BENCH_FREED];     /* bytes of the latest freed blocks, the latest first */
    uint32_t freed_ids[BENCH_FREED]; /* and which blocks those are, in the order of allocation */
    bool broken;                     /* a block was freed twice, or an id used again */
    /* set before the run */
    uint64_t limit;      /* bytes that can be allocated at once; 0: any number */
    uint64_t stop_after; /* requests; 0: never */
    uint64_t after_stop; /* requests that came all the same */
    uint64_t seed;
    gmd_inspection *inspection;            /* what is seen inside; NULL: nobody looks */
    const struct gmd_workspaces *recorded; /* of cuDNN; NULL: what gmd is built with */
    bool has_no_statistics;
    bool is_blind;      /* cuda.memory() is nil */
    struct bench *next; /* of those that are not freed */
} bench;

/* Runs `text`, put behind a scenario { } of its own on line 1, so that its first line is line 2. */
bench *bench_run(const char *text);
bench *bench_run_limited(const char *text, uint64_t limit_bytes);
bench *bench_run_stopped(const char *text, uint64_t stop_after);

/* The same, and looks inside the run; `limit_bytes` 0: none. */
bench *bench_run_inspected(const char *text, gmd_inspection *inspection, uint64_t limit_bytes);

/* The same as bench_run(), with the workspaces of this table. */
bench *bench_run_recorded(const char *text, const struct gmd_workspaces *table);

/* The same with max_instructions. */
bench *bench_run_budget(const char *text, const char *instructions);

/* Runs a scenario of the project's folder; `params` is "leak=false iterations=3". */
bench *bench_run_named(const char *name, const char *params, uint64_t seed);

bench *bench_run_named_limited(const char *name, const char *params, uint64_t limit_bytes);

/* The same with its own parameters and seed 0, and looks inside. */
bench *bench_run_named_inspected(const char *name, gmd_inspection *inspection);

/* The same, where nobody knows how much memory is allocated. */
bench *bench_run_named_blind(const char *name);

/* Runs the file text as it is. */
bench *bench_run_file_text(const char *text);
bench *bench_run_file_inspected(const char *text, gmd_inspection *inspection);

/* Bytes allocated (and, second, the peak) at the end of the phase; fails the test if there is none.
 */
uint64_t bench_at(const bench *run, const char *label);
uint64_t bench_peak_at(const bench *run, const char *label);

/* What was asked for in the phase, in order: "+4096 -4096". */
const char *bench_asked_in(const bench *run, const char *label);

/* What TEST_F(bench, ...) leaves is freed after it. */
void bench_free(bench *run);
int bench_free_all(void **state);

FIXTURE(bench, NULL, bench_free_all);

/* Fails the test when the run failed, with its message. */
void bench_assert_ok(const bench *run);
/* Fails the test unless the run was refused with a message that contains `part`. */
void bench_assert_refused(const bench *run, const char *part);

#endif
