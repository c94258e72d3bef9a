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
#include <stddef.h>
#include <stdint.h>

#define GMD_NO_PLACE UINT32_MAX

/* A line of the program. Texts are of the origins; not terminated by what they contain. */
typedef struct gmd_place {
    const char *file, *function; /* "": not known */
    uint32_t line;
    bool is_library; /* the stack has no frame of the user's own */
} gmd_place;

/* What a stack goes through, by the files and functions of its frames; a stack may have several. */
typedef enum gmd_part {
    GMD_PART_MODULE = 1 << 0,      /* a call of an nn.Module */
    GMD_PART_RECURRENT = 1 << 1,   /* torch.nn.RNN, LSTM, GRU and their cells */
    GMD_PART_OPTIMIZER = 1 << 2,   /* torch.optim */
    GMD_PART_CHECKPOINT = 1 << 3,  /* torch.utils.checkpoint */
    GMD_PART_FUNCTION = 1 << 4,    /* an autograd.Function of the program's own */
    GMD_PART_BACKWARD = 1 << 5,    /* the thread of backward(): no line of the program called it */
    GMD_PART_LAYER = 1 << 6,       /* a layer of torch.nn is made, moved or called */
    GMD_PART_CONSTRUCTOR = 1 << 7, /* the user's line is in an __init__() */
    GMD_PART_HOOK = 1 << 8,        /* torch.nn called the user's function, which is no forward();
                                      or the thread of backward() did */
    GMD_PART_EVALUATION =
        1 << 9, /* a function of the user's is named as one that evaluates or tests */
    GMD_PART_PYTHON = 1 << 10,     /* Python, not C++ alone */
    GMD_PART_INSIDE = 1 << 11,     /* the innermost Python is a library's */
    GMD_PART_GRAD = 1 << 12,       /* torch.autograd.grad() */
    GMD_PART_ACTIVATION = 1 << 13, /* ReLU, GELU and others, without parameters */
    GMD_PART_AUTOGRAD = 1 << 14,   /* torch.autograd's own Python: backward() or grad() is called */
} gmd_part;

typedef struct gmd_places {
    const gmd_origins *origins;
    uint32_t *user_frame_of; /* by stack: a frame; GMD_NO_PLACE: the stack has no frames */
    uint16_t *parts_of;      /* by stack: gmd_part */
    bool *is_library;        /* by frame */
    bool has_frames;         /* there are stacks; then what has none is of the thread of backward(),
                                which runs no Python */
    bool has_python;         /* stacks of Python: they show modules, if any are called */
    bool has_modules;        /* of nn.Module: else lines are all that stacks tell */
    bool has_autograd;       /* of nn.Module or of torch.autograd: frames of PyTorch's own Python */
} gmd_places;

/* The origins must stay as long as the places. */
gmd_status gmd_places_make(gmd_places *places, const gmd_origins *origins, gmd_error *error);
void gmd_places_free(gmd_places *places);

/* For a history without frames: those of its last moment alone tell of no thread and no module. */
void gmd_places_forget_frames(gmd_places *places);

/* The frame that an origin stands for: the same number, the same line of the program. */
uint32_t gmd_places_frame(const gmd_places *places, uint32_t origin);

/* A stack's innermost frame of Python, be it a library's; GMD_NO_PLACE: it has none. */
uint32_t gmd_places_python_frame(const gmd_places *places, uint32_t stack);

/* Whether two stacks go through the same calls, of modules or not, which two functions make that
 * are outside of any module. */
bool gmd_places_are_same_calls(const gmd_places *places, uint32_t stack, uint32_t other);

/* The user's frames that led to the innermost of a stack, the nearest first; how many, `most` at
 * most. */
size_t gmd_places_callers_in(const gmd_places *places, uint32_t stack, uint32_t *callers,
                             size_t most);

/* The user's frames that led to one, the nearest first, by the first stack whose innermost it is;
 * how many, `most` at most. */
size_t gmd_places_callers(const gmd_places *places, uint32_t frame, uint32_t *callers, size_t most);

gmd_place gmd_places_get(const gmd_places *places, uint32_t frame);

/* The parts that an origin's stack goes through. */
static inline unsigned gmd_places_parts(const gmd_places *places, uint32_t origin)
{
    return places->parts_of[gmd_origins_get(places->origins, origin).stack];
}

/* Whether a file's frames are a library's. */
bool gmd_is_library_file(const char *file);

/* Whether a path ends with another: "/x/site-packages/torch/optim/sgd.py" with
 * "torch/optim/sgd.py". */
bool gmd_is_path_end(const char *path, const char *end);

#endif
