/* references.h - what each thing of the engine holds, with the words for it: the edges of the graph
 * in which retention is looked for. */
#ifndef GMD_REFERENCES_H
#define GMD_REFERENCES_H

#include "gmd_inspection.h"
#include "gmd_tensor.h"

typedef enum gmd_vertex_kind { GMD_IS_THING, GMD_IS_NODE, GMD_IS_STORAGE } gmd_vertex_kind;

typedef enum gmd_reference_form {
    GMD_FORM_NONE,    /* "": a tensor and its storage are one for the reader */
    GMD_FORM_TEXT,    /* "NAME" */
    GMD_FORM_DOT,     /* ".NAME" */
    GMD_FORM_NUMBER,  /* ".3" */
    GMD_FORM_ITEM,    /* "NAME[3]" */
    GMD_FORM_SUFFIX,  /* ".NAME3" */
    GMD_FORM_REVERSE, /* ".NAME3_reverse" */
    GMD_FORM_STATE,   /* ".state[3].NAME" */
} gmd_reference_form;

typedef struct gmd_reference {
    gmd_vertex_kind kind;
    void *to; /* gmd_thing, gmd_node or gmd_storage */
    gmd_step_kind step;
    gmd_reference_form form;
    const char *name; /* lives as long as what holds it */
    long long index;
    int cost; /* 0, 1 or 2: the shortest path is the one that a reader would take */
} gmd_reference;

typedef void gmd_visit_reference(void *context, const gmd_reference *reference);

/* Calls `visit` for each reference that the vertex holds; none of them is NULL. */
void gmd_references_each(gmd_vertex_kind kind, void *vertex, gmd_visit_reference *visit,
                         void *context);

/* The words for it: "[3]"; for a NODE step the operation's name. */
const char *gmd_reference_text(const gmd_reference *reference, char text[96]);

#endif
