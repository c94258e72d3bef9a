/* completion.h - what an entry does when it completes. */
#ifndef GMD_SIM_COMPLETION_H
#define GMD_SIM_COMPLETION_H

#include "stream_table.h"

/* The first entry of `s` ends: has its effect, and is gone. */
void complete_first(stream *s, uint64_t end_ns);

#endif
