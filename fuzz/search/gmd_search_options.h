/* gmd_search_options.h - what a campaign (gmd_search.h) is asked for, and what it came to. */
#ifndef GMD_SEARCH_OPTIONS_H
#define GMD_SEARCH_OPTIONS_H

#include "gmd_corpus.h"
#include "gmd_fork_server.h"
#include "gmd_outcome.h"
#include "gmd_profile.h"
#include "gmd_runner.h"

#include <signal.h>

typedef struct gmd_search_status {
    uint64_t runs, requests, rounds; /* requests: with those of the minimiser's tries */
    uint64_t known;                  /* violations that did not count; likewise */
    double seconds;
    size_t findings;
    const char *doing;    /* "searching", "sweeping", "minimising" */
    size_t case_requests; /* minimising: how small it is by now */
    size_t inputs;        /* in the corpus */
    uint32_t features;    /* of the allocator's state, seen so far */
    double fresh_seconds; /* since the last new one */
} gmd_search_status;

typedef struct gmd_search_options {
    const gmd_run_options *run;
    gmd_profile_space space; /* gmd_search_find_space fills in what the allocator allows */
    uint64_t seed;
    double seconds;      /* 0: no limit */
    uint64_t runs;       /* 0: no limit */
    uint64_t round_runs; /* sequences of a round; 0: as a campaign has them */
    bool no_sweeps;      /* of faults, in every fourth round */
    bool ends_when_found;
    bool is_random; /* inputs are random bytes, and nothing else is done */
    /* What the search goes on from, with run->features; NULL: each round is drawn anew. What its
     * folder holds is read first, and now and then. */
    gmd_corpus *corpus;
    /* Makes a drawn profile into one of the kind that is wanted; NULL: it stays as it is. */
    void (*shape)(gmd_profile *profile, const void *kind);
    const void *kind;
    const volatile sig_atomic_t *is_interrupted;                      /* NULL: nobody interrupts */
    void (*progress)(void *context, const gmd_search_status *status); /* NULL: none */
    void *context;
} gmd_search_options;

typedef struct gmd_search_result {
    gmd_search_status status;
    gmd_judged judged;   /* what the oracles saw of it */
    bool is_interrupted; /* it would have gone on */
    uint64_t refused;    /* rounds whose settings the allocator or the device refuses */
    char refusal[512];   /* why, the first time */
    uint64_t cut_off;    /* runs that the end of the time ended; what they show is not known */
    gmd_fork_server_troubles troubles;
    unsigned replaced;    /* processes of the campaign that somebody ended */
    uint64_t unconfirmed; /* sequences that showed something only after others in one process */
    gmd_violation unconfirmed_first; /* what the first of them showed there */
    uint64_t interleaved, lapses;    /* sequences; turns that the watchdog took from a thread */
    uint64_t spins_since;            /* sequence from which on few are interleaved; 0: never */
    uint64_t faults_planted, faults_unfired; /* in the sequences that passed */
    size_t unreadable;                       /* files of the corpus that are no inputs */
    char unreadable_first[256];
    size_t unwritten; /* inputs that the folder of the corpus lacks */
    char unwritten_first[256];
} gmd_search_result;

#endif
