/* fields.h - the fields of a line in a table of workspaces: one description for reader and writer.
 */
#ifndef WORKSPACES_FIELDS_H
#define WORKSPACES_FIELDS_H

#include "gmd_workspaces.h"

#define WORKSPACE_FIELD_VALUES 4

typedef struct workspace_field {
    const char *name;
    size_t offset;            /* in gmd_workspace_call */
    size_t count;             /* of its numbers, written with 'x' between them */
    int64_t least, most;      /* of each number */
    const char *const *words; /* NULL, or what stands for the numbers from 0 on; ends with NULL */
    bool of_rnn, of_conv;
} workspace_field;

#define WORKSPACE_FIELDS 18
extern const workspace_field workspace_fields[WORKSPACE_FIELDS];

/* "conv backward_data" is the family and the direction of an operation. */
typedef struct workspace_op_name {
    const char *family, *direction;
    bool is_rnn;
} workspace_op_name;
extern const workspace_op_name workspace_op_names[GMD_WORKSPACE_OPS];

static inline bool workspace_field_belongs(const workspace_field *field, int64_t op)
{
    return workspace_op_names[op].is_rnn ? field->of_rnn : field->of_conv;
}

static inline int64_t *workspace_numbers(gmd_workspace_call *call, const workspace_field *field)
{
    return (int64_t *)(void *)((char *)call + field->offset);
}

#endif
