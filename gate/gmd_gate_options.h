/* gmd_gate_options.h - what a gate is asked to do, and whom it tells how far it has come. */
#ifndef GMD_GATE_OPTIONS_H
#define GMD_GATE_OPTIONS_H

#include "gmd_board.h"
#include "gmd_driver.h"

#include <signal.h>

typedef struct gmd_gate_progress {
    const char *part, *item;
    uint64_t runs, requests;
    size_t findings;
    double seconds;
    const char *doing; /* "running", "minimising", "measuring again" */
} gmd_gate_progress;

typedef struct gmd_gate_options {
    /* The allocator, its settings (conf NULL: those that it takes are tried), the seed, what is
     * known, where cases go, how long a request may take. */
    const gmd_run_options *run;
    uint32_t device_max; /* items with several devices use up to so many */
    bool is_quick, fails_fast;
    const char *only;        /* "PART" or "PART/ITEM"; NULL: all */
    const char *rounds_file; /* a .gmd file that is judged as a round, instead of the battery */
    double seconds; /* after the battery: more random sequences until that much time is over */
    const char *baseline;         /* a file of figures; NULL: correctness alone is judged */
    bool updates_baseline;        /* writes it rather than judging by it */
    const char *versus;           /* what speed is held against; NULL: as the baseline says, else
                                     the reference allocator */
    const char *const *histories; /* recorded ones, beside those that ship with gmd */
    size_t history_count;
    /* For the commands that are printed, as the user gave them, quoted: options that every run of
     * this allocator needs (--promise, --torch-dir, --known), and those of the battery (--devices,
     * --history). NULL: none. */
    const char *subject_words, *battery_words;
    const volatile sig_atomic_t *is_interrupted;               /* NULL: nobody interrupts */
    void (*progress)(void *, const gmd_gate_progress *status); /* NULL: nobody is told */
    void *context;
    void (*tell)(void *listener, const gmd_finding *finding); /* as in gmd_findings */
    void *listener;
} gmd_gate_options;

#endif
