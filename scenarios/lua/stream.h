/* stream.h - streams as things that scripts hold; the engine itself knows their numbers only. */
#ifndef GMD_STREAM_H
#define GMD_STREAM_H

#include "gmd_engine.h"

struct stream {
    struct thing thing;
    uint32_t number; /* 0: the default stream */
};

extern const struct thing_class stream_class;

#endif
