/* snapshot_test.h - snapshots built opcode by opcode. */
#ifndef GMD_SNAPSHOT_TEST_H
#define GMD_SNAPSHOT_TEST_H

#include "gmd_snapshot.h"
#include "trace_test.h"

/* The one pickle of a test, with these opcodes in it. */
pickle_text *start_snapshot(const char *opcodes);
/* A snapshot of one device up to its events, which the caller puts and ends with "eeu.". */
pickle_text *start_events(void);
/* A snapshot of segments only, which the caller puts and ends with "eu.". */
pickle_text *start_segments(void);

void put_event(pickle_text *p, const char *action, uint64_t address, uint64_t size, uint64_t stream,
               uint64_t time_us);
void put_block(pickle_text *p, uint64_t address, uint64_t size, const char *state);
/* A segment up to its list of blocks, which the caller puts and ends with "eu". */
void open_segment(pickle_text *p, uint64_t address, uint64_t size);
void put_empty_segments(pickle_text *p);
/* The keys "segments", which is empty, and "device_traces" up to its devices. */
void open_traces(pickle_text *p);

/* Reads it; what is returned is the caller's. */
gmd_snapshot parse_snapshot(const pickle_text *p);
void assert_snapshot_empty(const gmd_snapshot *s);
/* With a message that names a byte and has this in it. */
void assert_snapshot_refused(const pickle_text *p, const char *part);

#endif
