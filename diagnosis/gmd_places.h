/* gmd_places.h - the lines of a recorded program: which line of the user's own code an origin
 * stands for, and how frames are shown.
 *
 * A stack names the user's line among those of the libraries that it went through. The user's line
 * is the innermost frame that is not of a library: not of Python's own modules, PyTorch and what is
 * installed beside it (site-packages), C++ or CUDA. */
#ifndef GMD_PLACES_H
#define GMD_PLACES_H

#include "gmd_error.h"
#include "gmd_origins.h"

#include <stdbool.h>
#include <stdint.h>

#define GMD_NO_PLACE UINT32_MAX

/* A line of the program. Texts are of the origins; not terminated by what they contain. */
typedef struct gmd_place {
    const char *file, *function; /* "": not known */
    uint32_t line;
    bool is_library; /* the stack has no frame of the user's own */
} gmd_place;

typedef struct gmd_places {
    const gmd_origins *origins;
    uint32_t *user_frame_of; /* by stack: a frame; GMD_NO_PLACE: the stack has no frames */
    bool *is_library;        /* by frame */
} gmd_places;

/* The origins must stay as long as the places. */
gmd_status gmd_places_make(gmd_places *places, const gmd_origins *origins, gmd_error *error);
void gmd_places_free(gmd_places *places);

/* The frame that an origin stands for: the same number, the same line of the program. */
uint32_t gmd_places_frame(const gmd_places *places, uint32_t origin);
gmd_place gmd_places_get(const gmd_places *places, uint32_t frame);

/* Whether a file's frames are a library's. */
bool gmd_is_library_file(const char *file);

/* Whether a path ends with another: "/x/site-packages/torch/optim/sgd.py" with
 * "torch/optim/sgd.py". */
bool gmd_is_path_end(const char *path, const char *end);

#endif
