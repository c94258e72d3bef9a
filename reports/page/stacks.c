#include "stacks.h"

#include <stdlib.h>

gmd_status stacks_begin(stacks *s, document *to, const gmd_places *places, const char *prefix,
                        gmd_error *error)
{
    column_set *c = &to->columns;
    size_t frames = gmd_origins_frame_count(places->origins);
    *s = (stacks){.to = to,
                  .places = places,
                  .node_of = calloc(gmd_origins_stack_count(places->origins), sizeof *s->node_of),
                  .frame_of = calloc(frames, sizeof *s->frame_of),
                  .line_of = calloc(frames, sizeof *s->line_of),
                  .parent = columns_new(c, prefix, "k.parent", COLUMN_DELTA),
                  .frame = columns_new(c, prefix, "k.frame", COLUMN_DELTA),
                  .frame_file = columns_new(c, prefix, "f.file", COLUMN_DELTA),
                  .frame_line = columns_new(c, prefix, "f.line", COLUMN_DELTA),
                  .frame_name = columns_new(c, prefix, "f.name", COLUMN_DELTA),
                  .frame_user = columns_new(c, prefix, "f.user", COLUMN_VARINT),
                  .line_file = columns_new(c, prefix, "l.file", COLUMN_DELTA),
                  .line_line = columns_new(c, prefix, "l.line", COLUMN_DELTA),
                  .line_name = columns_new(c, prefix, "l.name", COLUMN_DELTA)};
    if (!s->node_of || !s->frame_of || !s->line_of) {
        stacks_free(s);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the stacks of the page");
    }
    return GMD_OK;
}

static uint32_t string_of(stacks *s, uint32_t text)
{
    size_t length;
    const char *bytes = gmd_origins_text(s->places->origins, text, &length);
    return document_string(s->to, bytes, length);
}

static uint32_t frame_of(stacks *s, uint32_t frame)
{
    if (!s->frame_of[frame]) {
        column_set *c = &s->to->columns;
        gmd_frame of = gmd_origins_frame(s->places->origins, frame);
        columns_put(c, s->frame_file, string_of(s, of.file));
        columns_put(c, s->frame_line, of.line);
        columns_put(c, s->frame_name, string_of(s, of.function));
        columns_put(c, s->frame_user, !s->places->is_library[frame]);
        s->frame_of[frame] = ++s->frame_count;
    }
    return s->frame_of[frame] - 1;
}

/* The child of a node (0: the root) that a frame leads to, and 1 more. */
static uint32_t child_of(stacks *s, uint32_t parent, uint32_t frame)
{
    const uint32_t key[] = {parent, frame};
    uint32_t number = 0, before = s->nodes.count;
    if (!gmd_interned_add(&s->nodes, key, sizeof key, &number)) {
        s->to->has_failed = true;
        return 0;
    }
    if (number == before) {
        columns_put(&s->to->columns, s->parent, parent);
        columns_put(&s->to->columns, s->frame, frame);
    }
    return number + 1;
}

uint32_t stacks_node(stacks *s, uint32_t origin)
{
    uint32_t stack = gmd_origins_get(s->places->origins, origin).stack, node = 0;
    size_t count;
    const uint32_t *frames = gmd_origins_stack(s->places->origins, stack, &count);
    if (!s->node_of[stack]) {
        for (size_t i = count; i-- > 0;) {
            node = child_of(s, node, frame_of(s, frames[i]));
        }
        s->node_of[stack] = node;
    }
    return s->node_of[stack];
}

uint32_t stacks_line_of_frame(stacks *s, uint32_t frame)
{
    if (frame == GMD_NO_PLACE) {
        return 0;
    }
    if (!s->line_of[frame]) {
        column_set *c = &s->to->columns;
        gmd_frame of = gmd_origins_frame(s->places->origins, frame);
        columns_put(c, s->line_file, string_of(s, of.file));
        columns_put(c, s->line_line, of.line);
        columns_put(c, s->line_name, string_of(s, of.function));
        s->line_of[frame] = ++s->line_count;
    }
    return s->line_of[frame];
}

uint32_t stacks_line(stacks *s, uint32_t origin)
{
    return stacks_line_of_frame(s, gmd_places_frame(s->places, origin));
}

void stacks_free(stacks *s)
{
    free(s->node_of);
    free(s->frame_of);
    free(s->line_of);
    gmd_interned_free(&s->nodes);
    *s = (stacks){0};
}
