/* gmd_workspaces.h - tables of the workspaces that cuDNN took for its calls, as recorded on a GPU
 * (docs/workspaces.md): read from a text, looked up by call.
 *
 * A table is not changed after it is made, so that threads may share one. */
#ifndef GMD_WORKSPACES_H
#define GMD_WORKSPACES_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum gmd_workspace_op {
    GMD_CONV_FORWARD,
    GMD_CONV_BACKWARD_DATA,
    GMD_CONV_BACKWARD_WEIGHT,
    GMD_RNN_FORWARD,
    GMD_RNN_BACKWARD,
    GMD_WORKSPACE_OPS
};

/* In the order of their words in fields.c. */
enum gmd_workspace_dtype { GMD_WS_FLOAT32, GMD_WS_FLOAT64, GMD_WS_FLOAT16, GMD_WS_BFLOAT16 };
enum gmd_workspace_rnn { GMD_WS_LSTM, GMD_WS_GRU };

/* What a workspace depends on. Members of the other family of operations are 0. All have one type,
 * so that there is no padding, and a call is hashed and compared as bytes. */
typedef struct gmd_workspace_call {
    int64_t op, dtype;
    /* convolutions; pairs are height, width */
    int64_t input[4], weight[4], stride[2], padding[2], dilation[2], groups;
    int64_t channels_last, benchmark;
    /* RNNs */
    int64_t kind, batch, length, features, hidden, layers, directions, packed, training;
} gmd_workspace_call;

typedef struct gmd_workspace {
    gmd_workspace_call call;
    uint64_t bytes;
    uint64_t tried;   /* with benchmark: the largest that the trials asked for */
    uint64_t reserve; /* RNNs in training: what is kept for the way back */
    bool has_tried, has_reserve;
    bool is_held; /* to judge models by: none is made from it */
    size_t line;
} gmd_workspace;

typedef struct gmd_workspaces gmd_workspaces;

/* `name` stands for the text in messages: "NAME:LINE: what was expected". */
gmd_status gmd_workspaces_parse(gmd_workspaces **table, const char *text, size_t size,
                                const char *name, gmd_error *error);
/* Likewise a file, which may be packed with gzip. */
gmd_status gmd_workspaces_read(gmd_workspaces **table, const char *path, gmd_error *error);
/* The table that gmd is built with. */
gmd_status gmd_workspaces_builtin(gmd_workspaces **table, gmd_error *error);
void gmd_workspaces_close(gmd_workspaces *table); /* NULL is fine */

/* NULL: it was not recorded. `table` may be NULL. */
const gmd_workspace *gmd_workspaces_find(const gmd_workspaces *table,
                                         const gmd_workspace_call *call);

/* The workspace of a convolution that was recorded with other batches only: between the next
 * smaller and the next larger one in proportion to the batch; beyond the last of them as it grows
 * with the batch from there. False: no other batch was recorded, or cuDNN tries its algorithms,
 * where time decides. `table` may be NULL. */
bool gmd_workspaces_interpolate(const gmd_workspaces *table, const gmd_workspace_call *call,
                                uint64_t *bytes);

/* What the calls that are most like a convolution say of its workspace: the nearest of them, and
 * the least and the most of some. None is held, is the call itself, or tries algorithms. False: no
 * call is like it, or it tries them itself. `table` may be NULL. */
typedef struct gmd_workspace_guess {
    uint64_t bytes, least, most;
} gmd_workspace_guess;
bool gmd_workspaces_nearest(const gmd_workspaces *table, const gmd_workspace_call *call,
                            gmd_workspace_guess *guess);

/* Adds a call of which nothing is known to `*table`, which is made if it is NULL; true: it is the
 * first time. Without host memory it is true, too. */
bool gmd_workspaces_note(gmd_workspaces **table, const gmd_workspace_call *call);

size_t gmd_workspaces_count(const gmd_workspaces *table);
const gmd_workspace *gmd_workspaces_at(const gmd_workspaces *table, size_t index);

/* Writes it so that gmd_workspaces_parse() reads the same table. False: the write failed. */
bool gmd_workspaces_write(const gmd_workspaces *table, FILE *out);
/* One call as it stands in a table, without what was recorded of it. */
void gmd_workspace_call_put(const gmd_workspace_call *call, FILE *out);

#endif
