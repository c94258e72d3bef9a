/* stacks.h - where the memory of a history was asked for: its stacks as a tree, frames and lines,
 * each once, as columns of the page. */
#ifndef GMD_REPORTS_PAGE_STACKS_H
#define GMD_REPORTS_PAGE_STACKS_H

#include "document.h"

#include "gmd_error.h"
#include "gmd_places.h"

typedef struct stacks {
    document *to;
    const gmd_places *places;
    uint32_t *node_of;  /* by stack of the origins: its node, and 1 more; 0: none yet */
    uint32_t *frame_of; /* by frame of the origins: that of the page, and 1 more; 0: none yet */
    uint32_t *line_of;  /* likewise: the line of the page */
    gmd_interned nodes; /* each its parent's node and 1 more, and its frame */
    uint32_t frame_count, line_count;
    size_t parent, frame;                                  /* columns of nodes */
    size_t frame_file, frame_line, frame_name, frame_user; /* of frames */
    size_t line_file, line_line, line_name;                /* of lines */
} stacks;

gmd_status stacks_begin(stacks *s, document *to, const gmd_places *places, const char *prefix,
                        gmd_error *error);

/* The node of an origin's innermost frame, and 1 more; 0: it has no frames. */
uint32_t stacks_node(stacks *s, uint32_t origin);

/* The line of the program that an origin, or a frame of the origins, stands for, and 1 more; 0:
 * none was recorded. */
uint32_t stacks_line(stacks *s, uint32_t origin);
uint32_t stacks_line_of_frame(stacks *s, uint32_t frame);

void stacks_free(stacks *s);

#endif
