/* snapshot_taken.h - events, blocks, annotations and frames are taken out of the pickle when their
 * dict is complete: as values of a tree they would take ten times the memory. What is not clearly
 * one of these, or is wrong, stays a dict, and is read or refused when its place in the snapshot is
 * known. */
#ifndef GMD_TRACE_SNAPSHOT_TAKEN_H
#define GMD_TRACE_SNAPSHOT_TAKEN_H

#include "snapshot_fields.h"

/* A pickle_taker's `take`; the context is the snapshot_reader. */
bool snapshot_take(void *context, uint64_t at, const pickle_value *pairs, size_t count,
                   uint64_t *number);

void snapshot_taken_free(snapshot_taken *taken);

/* gmd_snapshot_parse with or without taking anything: the snapshot is the same. */
gmd_status snapshot_parse_as(gmd_snapshot *snapshot, const uint8_t *data, size_t size,
                             const char *name, bool is_taking, gmd_error *error);

#endif
