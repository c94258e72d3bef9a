/* gmd_subject.h - the allocator under test: a shared library found by its SPEC and bound by name to
 * the ABI of gmd_abi.h. */
#ifndef GMD_SUBJECT_H
#define GMD_SUBJECT_H

#include "gmd_abi.h"
#include "gmd_cuda.h"
#include "gmd_error.h"

typedef struct gmd_subject {
    void *library;
    char path[4096];
    /* A pointer for each function of the ABI, without gmd_: get_stats and so on. The two that
     * every allocator has are never NULL, the others where the library does not have them;
     * begin_pool, end_pool and release_pool are all there or none, and so are, with them,
     * checkpoint_pool, restore_pool and drop_checkpoint. */
#define GMD_SUBJECT_POINTER(returns, name, parameters, unlocks, meaning) returns(*name) parameters;
    GMD_ABI_FUNCTIONS(GMD_SUBJECT_POINTER)
#undef GMD_SUBJECT_POINTER
    uint64_t promised_alignment; /* bytes */
} gmd_subject;

/* Which of the optional functions an allocator under test has, by their names without gmd_. */
typedef struct gmd_abilities {
#define GMD_ABILITY(returns, name, parameters, unlocks, meaning) bool name;
    GMD_ABI_OPTIONAL(GMD_ABILITY)
#undef GMD_ABILITY
} gmd_abilities;

gmd_abilities gmd_subject_abilities(const gmd_subject *subject);

/* Which allocator, and where it comes from. */
typedef struct gmd_subject_source {
    const char *spec;          /* `reference`, `cudamalloc`, `cudamallocasync`, `torch`, `PATH.so`,
                                  `PATH.so:MALLOC,FREE` */
    const char *lib_directory; /* gmd's own libraries */
    const char *torch_adapter; /* `torch`: the library of gmd_torch_adapter; else NULL */
    const char *conf;          /* settings that will be given to gmd_configure; NULL: none */
} gmd_subject_source;

/* Checks the form of a SPEC and that its file exists, without loading anything: bad usage is
 * reported before a child process is made. */
gmd_status gmd_subject_check(const gmd_subject_source *source, gmd_error *error);

/* The library's file was compiled with -fsanitize=thread: its accesses to memory are seen
 * (gmd_accesses.h). False also where the SPEC is not understood, or the file cannot be read. */
bool gmd_subject_is_instrumented(const gmd_subject_source *source);

/* Loads it. The CUDA runtime that it is to run on must be loaded already (gmd_runtime_open), and is
 * the only one afterwards: an allocator that brings another is refused. */
gmd_status gmd_subject_open(gmd_subject *subject, const gmd_subject_source *source,
                            gmd_error *error);

#endif
