/* gmd_inspection.h - what was seen inside a run of a scenario: a line profile, the tensors that are
 * alive, who holds them, and the memory by category at each phase (docs/looking-inside.md).
 *
 * It is plain data of fixed size with no pointers in it: the run happens in a child process, with
 * an allocator that may do anything, and writes into memory that it shares with its parent. Readers
 * go through the functions below, which trust no number in it. Lists that are full count what they
 * left out. Thread safety: none; read it when the run is over. */
#ifndef GMD_INSPECTION_H
#define GMD_INSPECTION_H

#include "gmd_category.h"
#include "gmd_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which reports are wanted. */
enum {
    GMD_INSPECT_LINES = 1,
    GMD_INSPECT_TENSORS = 2,
    GMD_INSPECT_RETENTION = 4,
    GMD_INSPECT_TIMELINE = 8,
    GMD_INSPECT_ALL = 15,
};

#define GMD_INSPECT_LINE_MAX   16384
#define GMD_INSPECT_PHASE_MAX  2048
#define GMD_INSPECT_TENSOR_MAX 65536
#define GMD_INSPECT_STEP_MAX   524288
#define GMD_INSPECT_TEXT_MAX   ((uint32_t)32 << 20)
#define GMD_INSPECT_PATH_MAX   16 /* steps of one path; longer ones leave out their middle */
#define GMD_INSPECT_NONE       UINT32_MAX
#define GMD_INSPECT_UNKNOWN    UINT64_MAX /* a figure that the allocator does not keep */

/* One line of the script: the largest figures while it ran, over all its executions, with the
 * functions that it calls. */
typedef struct gmd_line_row {
    uint32_t line, code; /* code: a text */
    uint64_t times;      /* executed; 0: never, the rest means nothing */
    uint64_t active_peak, reserved_peak;
    uint64_t active, reserved; /* after its last execution */
    int64_t change;            /* of active bytes, over all executions */
} gmd_line_row;

/* Bytes that the allocator uses for each category. */
typedef struct gmd_phase_row {
    uint32_t label; /* a text */
    uint64_t end[GMD_CATEGORIES];
    uint64_t peak[GMD_CATEGORIES]; /* at the moment of the phase with the largest sum */
} gmd_phase_row;

/* What holds a block, and what of that is visible in Python. */
typedef enum gmd_tensor_holder {
    GMD_HELD_BY_NAME,    /* a tensor that variables, lists, objects or modules lead to */
    GMD_HELD_AS_GRAD,    /* the .grad of such a tensor */
    GMD_HELD_BY_STATE,   /* an optimizer's state */
    GMD_HELD_BY_GRAPH,   /* saved for backward(); no name leads to a tensor over it */
    GMD_HELD_BY_CYCLE,   /* objects that only hold each other: until the cyclic collector runs */
    GMD_HELD_BY_LIBRARY, /* workspaces of cuBLAS */
    GMD_HELD_INSIDE,     /* by an operation or expression under way */
    GMD_HOLDERS
} gmd_tensor_holder;

typedef enum gmd_step_kind {
    GMD_STEP_ROOT,    /* a variable, or a description in brackets in place of one */
    GMD_STEP_NAME,    /* "[3]", ".data", ".4.0.weight": written right after what it belongs to */
    GMD_STEP_NODE,    /* an operation of the graph: "NllLossBackward" */
    GMD_STEP_SAVED,   /* "saved[0]" */
    GMD_STEP_SKIPPED, /* so many steps left out: "24 operations" */
} gmd_step_kind;

typedef struct gmd_step {
    uint32_t kind, text; /* gmd_step_kind, a text */
} gmd_step;

/* A tensor, or a block that no tensor stands for any more. Owners of a block come by size, each
 * followed by the other tensors over the same block. */
typedef struct gmd_tensor_row {
    uint32_t shape,
        dtype;       /* texts: "[2, 3]", "float32"; a lone block has those of its first tensor */
    uint32_t shares; /* index of the row that has the block; GMD_INSPECT_NONE: itself */
    uint32_t first_step, step_count;
    uint32_t line;          /* of the script, where the block was allocated; 0: not known */
    uint32_t holder;        /* gmd_tensor_holder */
    uint32_t category;      /* gmd_category, of the block */
    bool is_tensor;         /* false: a block without a tensor */
    uint64_t asked, used;   /* bytes, of the block */
    uint64_t element_bytes; /* of the tensor's own elements */
} gmd_tensor_row;

typedef struct gmd_held {
    uint64_t blocks, asked, used;
} gmd_held;

typedef struct gmd_inspection {
    /* set before the run */
    uint32_t wanted; /* GMD_INSPECT_... */
    char at[64];     /* tensors as they are at the end of this phase; "": of the script */
    /* filled in by the run */
    bool is_complete;    /* the script came to its end, or to an error */
    bool was_reached;    /* `at` */
    bool no_memory;      /* the host's memory ran out: what follows is incomplete */
    bool uses_are_known; /* the allocator keeps statistics; else `used` is what was asked for */
    char taken_at[64];   /* the phase; "": the end of the script, or where it ran out of memory */
    uint64_t allocated, reserved; /* there */
    gmd_held held[GMD_HOLDERS];   /* there */
    gmd_held small, large;        /* blocks that use up to 511 bytes more than asked for; 512 and
                                     more */
    uint32_t line_count, phase_count, tensor_count, step_count, text_end;
    uint64_t phases_dropped, tensors_dropped;
    gmd_line_row lines[GMD_INSPECT_LINE_MAX];
    gmd_phase_row phases[GMD_INSPECT_PHASE_MAX];
    gmd_tensor_row tensors[GMD_INSPECT_TENSOR_MAX];
    gmd_step steps[GMD_INSPECT_STEP_MAX];
    char texts[GMD_INSPECT_TEXT_MAX];
} gmd_inspection;

/* In memory that children of fork share; NULL with a message: there is none. */
gmd_inspection *gmd_inspection_open(uint32_t wanted, const char *at, gmd_error *error);
void gmd_inspection_close(gmd_inspection *inspection); /* NULL is fine */

/* --- reading ----------------------------------------------------------------------------- */

const char *gmd_holder_name(uint32_t holder); /* "graph" */

const char *gmd_inspection_text(const gmd_inspection *inspection, uint32_t text);
/* NULL: there is no such index. */
const gmd_line_row *gmd_inspection_line(const gmd_inspection *inspection, uint32_t index);
const gmd_phase_row *gmd_inspection_phase(const gmd_inspection *inspection, uint32_t index);
const gmd_tensor_row *gmd_inspection_tensor(const gmd_inspection *inspection, uint32_t index);
const gmd_step *gmd_inspection_step(const gmd_inspection *inspection, const gmd_tensor_row *row,
                                    uint32_t index);

/* "losses[3] -> MulBackward -> saved[0]", cut to `size`. `as_pattern`: one text for all that is
 * held in the same way, without the numbers of items and the middle of chains of operations:
 * "losses[*]
 * -> NllLossBackward -> ... -> MulBackward -> saved[*]". Gives `text`. */
const char *gmd_inspection_path(const gmd_inspection *inspection, const gmd_tensor_row *row,
                                bool as_pattern, char *text, size_t size);

/* --- writing ----------------------------------------------------------------------------- */

/* Keeps a copy; an empty text where there is no room. */
uint32_t gmd_inspection_add_text(gmd_inspection *inspection, const char *text);

#endif
