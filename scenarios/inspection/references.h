/* references.h - what each thing of the engine holds, and how a path names it: the edges of
 * heap_graph.h. */
#ifndef GMD_REFERENCES_H
#define GMD_REFERENCES_H

#include "gmd_inspection.h"
#include "gmd_tensor.h"

enum vertex_kind { VERTEX_THING, VERTEX_NODE, VERTEX_STORAGE };

enum reference_form {
    FORM_NONE,    /* "": for the reader a tensor and its storage are one */
    FORM_TEXT,    /* "NAME" */
    FORM_DOT,     /* ".NAME" */
    FORM_NUMBER,  /* ".3" */
    FORM_ITEM,    /* "NAME[3]" */
    FORM_SUFFIX,  /* ".NAME3" */
    FORM_REVERSE, /* ".NAME3_reverse" */
    FORM_STATE,   /* ".state[3].NAME" */
};

struct reference {
    enum vertex_kind kind;
    void *to; /* struct thing, struct node or struct storage */
    gmd_step_kind step;
    enum reference_form form;
    const char *name; /* lives as long as what holds it */
    long long index;
    int cost; /* 0, 1 or 2: the shortest path is the one that a reader would take */
};

typedef void visit_reference_fn(void *context, const struct reference *reference);

/* Calls `visit` for each reference that the vertex holds; none of them is NULL. */
void references_each(enum vertex_kind kind, void *vertex, visit_reference_fn *visit, void *context);

/* The name in a path: "[3]"; for a NODE step the operation's name. */
const char *reference_text(const struct reference *reference, char text[96]);

#endif
