/* perfetto_places.h - where the memory of a slice was asked for, as its arguments: `line`, the
 * user's own, and `stack`, the innermost frame first.
 *
 * Thousands of slices share some hundred frames: each is written once, and slices refer to it by a
 * number (Perfetto's interned data). */
#ifndef GMD_REPORTS_PERFETTO_PLACES_H
#define GMD_REPORTS_PERFETTO_PLACES_H

#include "gmd_places.h"
#include "gmd_protobuf.h"
#include "gmd_report.h"

#include <stdio.h>

/* Fields of a packet, and of what is in it. */
enum {
    PACKET_SEQUENCE = 10,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    TRACE_PACKET = 1,
    EVENT_ANNOTATION = 4,
    ANNOTATION_TEXT = 6,
    ANNOTATION_NAME = 10,
    ANNOTATION_ITEM = 12,
    ANNOTATION_INTERNED = 17,
};
enum { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2, SEQUENCE = 1 };

typedef struct perfetto_places {
    const gmd_origins *origins; /* of the recorded history; NULL: requests come from lines */
    gmd_places places;
    uint8_t *is_written;         /* by frame */
    char source[GMD_TITLE_TEXT]; /* what the lines are of */
} perfetto_places;

/* To be freed all the same where there is no host memory. */
gmd_status perfetto_places_begin(perfetto_places *p, const gmd_report *report, FILE *out,
                                 gmd_error *error);
void perfetto_places_free(perfetto_places *p);

/* The outcome whose slices follow. */
void perfetto_places_of_run(perfetto_places *p, const gmd_outcome *outcome);

/* Adds the arguments; what they refer to is written before. */
void perfetto_places_add(perfetto_places *p, gmd_message *event, const gmd_timeline_entry *entry,
                         FILE *out);

#endif
