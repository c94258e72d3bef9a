/* inline_records.h - the recorded streams of one block: the first few within the block's own
 * bookkeeping, more of them in an array that grows. With the caller's lock held. */
#ifndef INLINE_RECORDS_H
#define INLINE_RECORDS_H

#include "faulty.h"

#define RECORDS_INLINE 4

typedef struct record {
    cudaStream_t stream;
    cudaEvent_t event; /* of a stream that is gone; NULL: to be recorded at the free */
} record;

typedef struct inline_records {
    record first[RECORDS_INLINE];
    record *spill; /* the rest */
    uint32_t count, spill_capacity;
} inline_records;

/* Each stream counts once. With no room for it the host waits for the stream, which is enough for
 * all that it did so far. `inline_most`: further ones replace the last; `most`: they are left out;
 * 0: as many as there are. */
void records_add(inline_records *records, cudaStream_t stream, uint32_t inline_most, uint32_t most);

bool records_have_captured(const inline_records *records);

/* `stream` waits for all of them, or the host does (`on_host`); then there are none. */
void records_wait(inline_records *records, cudaStream_t stream, bool on_host);

/* Before a stream is destroyed: its work so far is kept as an event. */
void records_forget(inline_records *records, cudaStream_t stream);

bool is_stream_captured(cudaStream_t stream);

#endif
