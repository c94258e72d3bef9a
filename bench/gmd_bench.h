/* gmd_bench.h - speed of allocators, side by side: each in a process of its own, on the same core,
 * in short rounds that take turns, so that what disturbs one disturbs the others too. */
#ifndef GMD_BENCH_H
#define GMD_BENCH_H

#include "gmd_bench_report.h"
#include "gmd_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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
    bool is_least;              /* there are more: counting was ended, because steps take long */
} gmd_bench_counted;

/* The instructions of the benchmark of that name, of the first allocator. */
gmd_status gmd_bench_count(const gmd_bench_options *options, const char *name,
                           gmd_bench_counted *counted, gmd_error *error);

uint32_t gmd_bench_failures(const gmd_bench_report *report);

gmd_status gmd_bench_write_table(const gmd_bench_report *report, FILE *out, gmd_error *error);
gmd_status gmd_bench_write_json(const gmd_bench_report *report, const char *version, FILE *out,
                                gmd_error *error);

#endif
