/* history.h - one device of a snapshot as columns of a page: events, blocks, segments, stacks.
 *
 * Event 0 is before the first one that was recorded, event i after the i-th of the device; so what
 * was there from the start has event 0, and each number is that of a moment (gmd_recording.h) where
 * the snapshot has one device. */
#ifndef GMD_REPORTS_PAGE_HISTORY_H
#define GMD_REPORTS_PAGE_HISTORY_H

#include "document.h"
#include "stacks.h"

#include "gmd_diagnosis.h"
#include "gmd_error.h"

/* What the events are of. */
typedef struct history_source {
    bool is_job;          /* a program that trains: what blocks are for is inferred */
    bool counts_requests; /* the simulated device: times are the numbers of requests */
    bool is_run;          /* its first event is the first there was, however it ended */
    bool lacks_events;    /* then: there were more than are kept */
    const char *workload; /* what was run; histories of one can be compared. NULL: a recording */
} history_source;

typedef struct history {
    document *to;
    const gmd_device_diagnosis *device;
    const gmd_facts *facts;
    uint32_t number; /* among those of the page */
    char prefix[16]; /* of the names of its columns */
    uint64_t address_base;
    history_source source;
    uint32_t *event_of; /* by moment */
    uint32_t *block_of; /* by lifetime: its block */
    uint32_t event_count;
    gmd_interned streams; /* recorded handles */
    stacks stacks;
} history;

/* A moment on the axis that a person looks for. */
typedef struct history_mark {
    uint32_t event;
    const char *label, *kind; /* kind: "violation" */
} history_mark;

/* Puts the columns; `number` is the one that history_write() will give it. The device's diagnosis
 * must stay as long as the history. */
gmd_status history_make(history *h, document *to, const gmd_device_diagnosis *device,
                        uint32_t number, history_source source, gmd_error *error);

/* Adds it to the list of histories. */
void history_write(history *h, const char *name, uint32_t input, const history_mark *marks,
                   size_t mark_count);
void history_free(history *h);

/* Whether its events have times that passed. */
bool history_has_time(const history *h);

#endif
