/* gmd_advice.h - which settings of PyTorch's allocator a recorded job needs least memory with: its
 * history is replayed through the reference allocator on the simulated device, under one setting
 * after the other.
 *
 * An advice is exact where the job's requests are those that were recorded and each is answered as
 * it was then; else the job would have gone on to ask for something else, and it is an estimate. */
#ifndef GMD_ADVICE_H
#define GMD_ADVICE_H

#include "gmd_advised_leak.h"
#include "gmd_diagnosis.h"
#include "gmd_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GMD_ADVICE_CONF = 512 };

typedef struct gmd_advice_request {
    const char *path;
    const char *lib_directory; /* of gmd's own libraries */
    const char *const *confs;  /* to be compared; none: they are searched for */
    size_t conf_count;
    uint64_t capacity_bytes;  /* of the device; 0: not given */
    uint64_t limit_bytes;     /* of reserved memory, as the memory fraction; 0: not given */
    const char *without_line; /* "train.py:42": its requests are left out; NULL */
    double scale;             /* of the batch; 1: as recorded */
    uint64_t max_memory;  /* that reading it may take, in bytes; 0: gmd_memory_bound_default() */
    unsigned processes;   /* at most; 0: one for each core */
    size_t rows;          /* settings that are reported, beside those that are given */
    bool keeps_diagnosis; /* of the job as it was recorded, for who shows it beside the advice */
} gmd_advice_request;

typedef struct gmd_setting_advice {
    char conf[GMD_ADVICE_CONF]; /* PYTORCH_CUDA_ALLOC_CONF; "": the defaults */
    bool is_recorded;           /* the setting of the recorded job */
    bool fits;                  /* every request is served */
    bool exact;
    uint64_t peak_allocated, peak_reserved, retries;
    uint64_t ooms;              /* requests that are refused */
    uint64_t smallest_capacity; /* that it fits in; 0: none was found */
    uint64_t device_calls;      /* that take or give back memory */
    double device_seconds;      /* what these take: an estimate */
} gmd_setting_advice;

/* Where `memory_bytes` is from. */
typedef enum gmd_memory_kind {
    GMD_MEMORY_DEVICE,   /* nothing says how much there is: the simulated device's */
    GMD_MEMORY_RECORDED, /* the limit that the recorded job ran under */
    GMD_MEMORY_LIMIT,    /* given as a limit */
    GMD_MEMORY_CAPACITY, /* given as the device's */
} gmd_memory_kind;

typedef struct gmd_advice {
    const char *name;
    gmd_setting_advice *settings; /* best first; the baseline where none is worth a change */
    size_t count;
    gmd_advised_leak *leaks; /* most bytes first */
    size_t leak_count;
    uint64_t requests, events;
    uint64_t memory_bytes;
    gmd_memory_kind memory_kind;
    uint64_t lower_bound; /* of reserved memory with any setting */
    uint64_t peak_live;   /* of bytes in blocks */
    uint64_t recorded_peak_allocated, recorded_peak_reserved, recorded_ooms;
    uint32_t tried, replays;
    uint32_t device_count; /* of the snapshot; the advice is for `device`, whose peak is highest */
    uint8_t device;
    bool is_reproduced;     /* under the recorded setting the replay has the recorded peaks */
    bool is_changed;        /* the job, by the request */
    bool is_limit_inferred; /* GMD_MEMORY_RECORDED: from the history; else the recorder knew it */
    bool begins_late, has_private_pools;
    uint64_t left_out, scaled;          /* requests, by the request */
    gmd_diagnosis diagnosis;            /* if it was to be kept, in this place; else empty */
    char unknown_conf[GMD_ADVICE_CONF]; /* recorded, and not one of the reference allocator; "" */
} gmd_advice;

/* GMD_BAD_INPUT: the file, a setting or the line; the message says what was expected. On failure it
 * is left empty. Makes processes: call it where one thread runs. */
gmd_status gmd_advise(gmd_advice *advice, const gmd_advice_request *request, gmd_error *error);
void gmd_advice_free(gmd_advice *advice);

/* What the job has if nothing is done: the recorded settings, or the defaults where those are not
 * known to the reference allocator. NULL: not among the settings. */
const gmd_setting_advice *gmd_advice_baseline(const gmd_advice *advice);

/* To a thousandth of the memory. */
bool gmd_needs_the_same(const gmd_setting_advice *x, const gmd_setting_advice *y);

/* Whether a job that has the settings `now` needs less memory with others, or fits with these
 * alone. */
bool gmd_is_worth_a_change(const gmd_setting_advice *s, const gmd_setting_advice *now);

/* Whether any of the settings does. */
static inline bool gmd_advice_fits(const gmd_advice *advice)
{
    return advice->count > 0 && advice->settings[0].fits;
}

#endif
