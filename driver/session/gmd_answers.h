/* gmd_answers.h - what an allocator answered to each request, so that another run of the same
 * requests can be held against it. */
#ifndef GMD_ANSWERS_H
#define GMD_ANSWERS_H

#include "gmd_oracle.h"

#define GMD_ANSWER_MAX                                                                             \
    ((size_t)1 << 16) /* requests: enough for a run of any allocator to differ                     \
                       */

typedef struct run_answer {
    uint64_t request; /* a hash of what was asked: a workload may ask otherwise by itself */
    uint64_t address; /* 0: nothing was allocated */
    uint64_t offset, range_size; /* of the address in the device's allocation, and that */
    uint64_t calls;              /* a hash of the memory that the device handed out and took back */
    bool is_refused;
    bool has_unmapped; /* while work had been queued in the run: see second_run.c */
    gmd_stats stats;
} run_answer;

typedef enum run_likeness {
    GMD_LIKE_ITSELF, /* the same allocator: the same addresses and calls */
    GMD_LIKE_PYTORCH /* another one of the same algorithm: the same places and statistics */
} run_likeness;

typedef struct run_answers { /* shared between processes; taken as used */
    bool compares;           /* with what an earlier run has left here */
    run_likeness likeness;
    _Atomic int has_ended;    /* nothing more is compared */
    _Atomic int is_different; /* at request number `compared`, whose answers are the following */
    size_t count, compared;
    run_answer first, second;
    run_answer list[GMD_ANSWER_MAX];
} run_answers;

/* What two runs differ in, taken over of that memory: the allocator may have written there. */
typedef struct answers_difference {
    bool is_there;
    size_t compared; /* requests that were answered alike */
    run_likeness likeness;
    run_answer first, second;
} answers_difference;

struct gmd_session;

/* After a request was carried out: keeps its answer, or compares it. False: there is nothing more
 * to compare, and the run may end. */
bool answers_note(run_answers *answers, const struct gmd_session *session,
                  const gmd_request *request, bool is_refused);

/* The next run is compared with the first. */
void answers_begin_comparison(run_answers *answers, run_likeness likeness);
/* How that ended. */
answers_difference answers_take(const run_answers *answers, run_likeness likeness);

/* What differs between the two: "the address 0x200 of ..."; for the message of a verdict. */
void answers_describe(const answers_difference *difference, char *text, size_t size);
/* In one word: "refusal", "place" or a statistic. */
const char *gmd_answers_token(const answers_difference *difference);

#endif
