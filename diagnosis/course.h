/* course.h - how memory went over a recording: how much waited for other streams, how much was
 * taken of the device though less was needed than before, how much was idle to the end. */
#ifndef GMD_DIAGNOSIS_COURSE_H
#define GMD_DIAGNOSIS_COURSE_H

#include "gmd_iterations.h"
#include "gmd_recording.h"

typedef struct course {
    uint64_t pending; /* bytes freed that waited for another stream, where it was most */
    uint32_t pending_at;
    uint64_t taken_late; /* bytes, after the first quarter of the events and two iterations, taken
                            of the device for a size that was new while less was active than there
                            had been */
    uint64_t idle;   /* bytes that were reserved and not active throughout the second half of the
                        events and of the iterations */
    uint64_t needed; /* the most that was active then */
    uint64_t needed_always; /* the least */
    uint64_t asked_then;    /* bytes of all requests then */
    uint64_t reserved;      /* the most that was reserved in the last quarter */
    uint64_t asked;         /* bytes of all requests but small ones */
    bool is_ever_new; /* in most parts of the recording after its first quarter, a good part of what
                         is asked for is of sizes that no part before asked for */
} course;

/* Fails for want of host memory only. */
gmd_status course_find(course *found, const gmd_recording *recording,
                       const gmd_iterations *iterations, gmd_error *error);

#endif
