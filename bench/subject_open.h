/* subject_open.h - the device and the allocator of a process that measures. */
#ifndef GMD_BENCH_SUBJECT_OPEN_H
#define GMD_BENCH_SUBJECT_OPEN_H

#include "loops.h"
#include "protocol.h"

/* Loads both and binds what the loops call; for a setup that is_floor, an allocator that does
 * nothing. Once in a process. */
gmd_status bench_subject_open(const bench_setup *setup, bench_calls *calls, gmd_error *error);

#endif
