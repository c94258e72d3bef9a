/* taken.h - what the parent takes over of the memory that it shares with the process of the
 * allocator under test, which may have written anywhere in it: numbers out of range, texts without
 * an end. Nothing else of that memory is believed.
 *
 * All of it is copied first, and then the copy is checked: a process that the allocator has left
 * behind may still write. Thread safety: one thread for each. */
#ifndef GMD_TAKEN_H
#define GMD_TAKEN_H

#include "gmd_journal.h"
#include "gmd_shared.h"
#include "gmd_timeline.h"

typedef struct taken_run {
    gmd_outcome outcome;
    int stage; /* run_stage, or another number */
    bool is_finished;
    bool is_in_request; /* `current`, number `current_index` */
    gmd_request current;
    uint64_t current_index;
    char place[sizeof((shared_run *)0)->place];
    bool has_thrown; /* the three that follow */
    bool thrown_is_bad_alloc;
    char thrown_type[sizeof((gmd_thrown *)0)->type], thrown_what[sizeof((gmd_thrown *)0)->what];
    bool is_freeing_wrongly; /* `wrong_free` */
    gmd_wrong_free wrong_free;
    size_t request_count; /* of a live workload; they are taken one by one (take_request) */
    const gmd_request *requests;
} taken_run;

/* As many of the lists as `to` counts. */
void copy_lists(gmd_outcome *to, const gmd_outcome *from);

/* False: something there can only have been written by the allocator. Nothing of it counts then. */
bool take_run(taken_run *taken, const shared_run *shared);
/* The outcome alone. */
bool take_outcome(gmd_outcome *taken, const shared_run *shared);

/* The same of what is kept beside the outcome, which stays where it is and is nobody else's from
 * now on. NULL: it is not kept. */
void take_timeline(gmd_timeline *timeline);
void take_journal(gmd_journal *journal);

/* Request number `index`, which is below `taken->request_count`. False: it was written over. */
bool take_request(const taken_run *taken, size_t index, gmd_request *out);

#endif
