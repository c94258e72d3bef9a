/* gmd_ooms.h - each out-of-memory of a recorded job: what was asked for, what was free and why it
 * did not serve, what the cause was, and how the job went on.
 *
 * PyTorch records an OOM after it has given its cache back to the device and asked again, so what
 * is still free then lies beside blocks that are in use. */
#ifndef GMD_OOMS_H
#define GMD_OOMS_H

#include "gmd_facts.h"
#include "gmd_free_memory.h"
#include "gmd_job_finding.h"
#include "gmd_oom_outcomes.h"

/* One list: names are those in JSON, with what each means. ALLOCATOR is pytorch#189504. */
#define GMD_OOM_CAUSES(CAUSE)                                                                      \
    CAUSE(LEAK, "leak", "what had leaked until then would have been enough")                       \
    CAUSE(CAPACITY, "capacity", "the live blocks and the request do not fit on the device")        \
    CAUSE(FRAGMENTATION, "fragmentation", "in one piece, the free memory would have been enough")  \
    CAUSE(LIMIT, "limit", "the device had the memory, and a limit forbade its use")                \
    CAUSE(ALLOCATOR, "allocator", "a free block would have served")

typedef enum gmd_oom_cause {
#define GMD_OOM_CAUSE_NUMBER(name, text, sentence) GMD_OOM_##name,
    GMD_OOM_CAUSES(GMD_OOM_CAUSE_NUMBER)
#undef GMD_OOM_CAUSE_NUMBER
        GMD_OOM_CAUSE_COUNT
} gmd_oom_cause;

#define GMD_NOT_KNOWN UINT64_MAX

enum { GMD_OOM_CHANGE_TEXT = 240 };

typedef struct gmd_oom {
    uint32_t moment;
    uint32_t origin; /* of the request */
    uint64_t requested, stream;
    uint64_t device_free; /* as the device said; GMD_NOT_KNOWN */
    uint64_t beside;      /* held beside PyTorch, by the driver and others; GMD_NOT_KNOWN */
    gmd_free_memory free; /* why each free part did not serve; its keepers */
    uint64_t needed;      /* bytes that the device was asked for */
    uint64_t headroom;    /* bytes that it could have given, for all that is known */
    uint64_t allowed;     /* bytes that the job once had reserved: no limit is below them */
    uint64_t largest;     /* bytes: the largest request that would have been served; at least */
    uint64_t missing;     /* bytes of device memory that would have let it pass: what the device
                             lacks, where that is the cause and is known; else at most */
    uint64_t leaked;      /* bytes that had leaked until then */
    gmd_oom_cause cause;
    gmd_oom_outcome outcome;
    uint32_t repeats; /* further OOMs of the same line, size and outcome, not looked at one by one
                       */
    char change[GMD_OOM_CHANGE_TEXT]; /* the smallest change that would have let it pass */
} gmd_oom;

#define GMD_NO_OOM UINT32_MAX

typedef struct gmd_oom_event {
    uint32_t moment;
    uint32_t item; /* that it is, or repeats; GMD_NO_OOM: it is left out */
} gmd_oom_event;

typedef struct gmd_ooms { /* in order; of equal line, size and outcome the first only */
    gmd_oom *items;
    size_t count;
    gmd_oom_event *events; /* each, in order */
    size_t event_count;
    uint64_t left_out; /* of further lines and sizes: there were too many */
    uint64_t lost;     /* how many cost an iteration */
} gmd_ooms;

gmd_status gmd_ooms_find(gmd_ooms *ooms, const gmd_facts *facts, gmd_error *error);
void gmd_ooms_free(gmd_ooms *ooms);

/* Judges them again by what was found to leak. */
void gmd_ooms_know_leaks(gmd_ooms *ooms, const gmd_facts *facts, const gmd_job_finding *leaks,
                         size_t leak_count);

/* The leak that a block of a line is part of; `leak_count`: of none. */
size_t gmd_leak_of(const gmd_job_finding *leaks, size_t leak_count, uint32_t frame);

/* Takes the device to have `capacity` bytes, and works out what others held of it. */
gmd_status gmd_ooms_know_capacity(gmd_ooms *ooms, uint64_t capacity, gmd_error *error);

/* The OOM that cost the job something, which a finding has to explain: that which ended it, or the
 * one that cost iterations most often. NULL: the job worked around all that there were. */
const gmd_oom *gmd_ooms_costly(const gmd_ooms *ooms);

/* Free bytes that would have served, had they not lain in several places. */
uint64_t gmd_oom_scattered(const gmd_oom *oom);

/* Whether a memory limit refused it, as the device had the memory. Then the limit is of at least
 * `*least` bytes of reserved memory, and of less than `*below`; `*least` is 0 where the job once
 * had more: the limit was lowered. */
bool gmd_oom_is_limited(const gmd_oom *oom, uint64_t *least, uint64_t *below);

const char *gmd_oom_cause_name(gmd_oom_cause cause);
const char *gmd_oom_cause_sentence(gmd_oom_cause cause);

#endif
