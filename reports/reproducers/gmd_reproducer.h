/* gmd_reproducer.h - a case as a program that needs no gmd: for the tracker of the allocator's
 * authors.
 *
 * The C program loads any allocator's library and makes the case's requests on real CUDA streams;
 * what of a verdict can be seen from outside it checks, and exits with 1. The Python script does
 * the same with PyTorch's own allocator. Both also run on the simulated device.
 *
 * Thread safety: pure functions of their arguments, apart from the stream. */
#ifndef GMD_REPRODUCER_H
#define GMD_REPRODUCER_H

#include "gmd_trace.h"

typedef struct gmd_reproducer {
    const gmd_trace *trace;
    /* What it shows, as gmd_identity_print() has it, or the oracle alone: "leak.allocations",
     * "leak"; NULL: not known, then any finding counts. */
    const char *verdict;
    const char *message;   /* the same for people */
    const char *origin;    /* "found by: gmd fuzz --seed 7"; NULL: not known */
    const char *allocator; /* SPEC of the command line; NULL: not known */
    const char *name;      /* of the file, without a folder */
} gmd_reproducer;

/* False: there can be no such program; `reason` says why. */
bool gmd_reproducer_fits_c(const gmd_reproducer *reproducer, char *reason, size_t size);
bool gmd_reproducer_fits_python(const gmd_reproducer *reproducer, char *reason, size_t size);

/* GMD_BAD_INPUT: it does not fit. GMD_FAILED: a write failed. */
gmd_status gmd_reproducer_write_c(const gmd_reproducer *reproducer, FILE *out, gmd_error *error);
gmd_status gmd_reproducer_write_python(const gmd_reproducer *reproducer, FILE *out,
                                       gmd_error *error);

/* Beside the case at `case_path` (NAME.gmd): NAME.c and NAME.py, those of them that fit. `name` is
 * not read. */
gmd_status gmd_reproducer_write_beside(const gmd_reproducer *reproducer, const char *case_path,
                                       gmd_error *error);

/* A case file says in its comments what it shows: "# VERDICT: MESSAGE" in the second line, where
 * VERDICT may be an oracle alone, and where it comes from in the third: "# ORIGIN --allocator
 * SPEC". Cuts the text of the file, which must outlive the result, into `verdict`, `message`,
 * `origin` and `allocator`; they stay as they are where it does not say. */
void gmd_reproducer_read_comments(gmd_reproducer *reproducer, char *text);

#endif
