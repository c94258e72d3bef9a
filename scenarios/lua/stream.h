/* stream.h - streams as things that scripts hold; the engine itself knows their numbers only. */
#ifndef GMD_STREAM_H
#define GMD_STREAM_H

#include "gmd_engine.h"

typedef struct gmd_stream {
    gmd_thing thing;
    uint32_t number; /* 0: the default stream */
} gmd_stream;

extern const gmd_thing_class gmd_stream_class;

#endif
