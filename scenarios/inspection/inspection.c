#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "gmd_inspection.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

gmd_inspection *gmd_inspection_open(uint32_t wanted, const char *at, gmd_error *error)
{
    gmd_inspection *inspection = mmap(NULL, sizeof *inspection, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (inspection == MAP_FAILED) {
        gmd_fail(error, GMD_NO_MEMORY, "no memory to inspect the run: %s", strerror(errno));
        return NULL;
    }
    inspection->wanted = wanted;
    inspection->text_end = 1; /* text 0 is the empty one */
    snprintf(inspection->at, sizeof inspection->at, "%s", at ? at : "");
    return inspection;
}

void gmd_inspection_close(gmd_inspection *inspection)
{
    if (inspection) {
        munmap(inspection, sizeof *inspection);
    }
}

const char *gmd_holder_name(uint32_t holder)
{
    static const char *const names[GMD_HOLDERS] = {
        [GMD_HELD_BY_NAME] = "name",   [GMD_HELD_AS_GRAD] = "grad",
        [GMD_HELD_BY_STATE] = "state", [GMD_HELD_BY_GRAPH] = "graph",
        [GMD_HELD_BY_CYCLE] = "cycle", [GMD_HELD_BY_LIBRARY] = "library",
        [GMD_HELD_INSIDE] = "inside",
    };
    return holder < GMD_HOLDERS ? names[holder] : "?";
}

const char *gmd_inspection_text(const gmd_inspection *inspection, uint32_t text)
{
    bool is_terminated = inspection->texts[GMD_INSPECT_TEXT_MAX - 1] == '\0';
    return text < GMD_INSPECT_TEXT_MAX && is_terminated ? &inspection->texts[text] : "";
}

static uint32_t bounded(uint32_t count, uint32_t most)
{
    return count < most ? count : most;
}

const gmd_line_row *gmd_inspection_line(const gmd_inspection *inspection, uint32_t index)
{
    uint32_t count = bounded(inspection->line_count, GMD_INSPECT_LINE_MAX);
    return index < count ? &inspection->lines[index] : NULL;
}

const gmd_phase_row *gmd_inspection_phase(const gmd_inspection *inspection, uint32_t index)
{
    uint32_t count = bounded(inspection->phase_count, GMD_INSPECT_PHASE_MAX);
    return index < count ? &inspection->phases[index] : NULL;
}

const gmd_tensor_row *gmd_inspection_tensor(const gmd_inspection *inspection, uint32_t index)
{
    uint32_t count = bounded(inspection->tensor_count, GMD_INSPECT_TENSOR_MAX);
    return index < count ? &inspection->tensors[index] : NULL;
}

const gmd_step *gmd_inspection_step(const gmd_inspection *inspection, const gmd_tensor_row *row,
                                    uint32_t index)
{
    uint32_t count = bounded(inspection->step_count, GMD_INSPECT_STEP_MAX);
    bool exists =
        index < row->step_count && row->first_step < count && index < count - row->first_step;
    return exists ? &inspection->steps[row->first_step + index] : NULL;
}

/* Returns what follows the number of an item or submodule at the start of `text` ("[12" or ".4");
 * NULL where it starts with something else. */
static const char *behind_number(const char *text)
{
    const char *at = text + 1;
    if ((*text != '[' && *text != '.') || !isdigit((unsigned char)*at)) {
        return NULL;
    }
    while (isdigit((unsigned char)*at)) {
        at++;
    }
    return at;
}

typedef struct writer {
    char *out;
    size_t size, used;
} writer;

static void put(writer *w, const char *text)
{
    while (*text && w->used + 1 < w->size) {
        w->out[w->used++] = *text++;
    }
    w->out[w->used] = '\0';
}

/* Writes a star for each number of an item or submodule. */
static void put_without_numbers(writer *w, const char *text)
{
    while (*text && w->used + 2 < w->size) {
        const char *behind = behind_number(text);
        w->out[w->used++] = *text;
        if (behind) {
            w->out[w->used++] = '*';
        }
        text = behind ? behind : text + 1;
    }
    w->out[w->used] = '\0';
}

/* --- paths ------------------------------------------------------------------------------- */

static bool is_operation(const gmd_step *step)
{
    return step && (step->kind == GMD_STEP_NODE || step->kind == GMD_STEP_SKIPPED);
}

static bool is_number(const gmd_inspection *inspection, const gmd_step *step)
{
    const char *text = gmd_inspection_text(inspection, step->text);
    const char *behind = *text == '.' ? behind_number(text) : NULL;
    return behind && *behind == '\0';
}

/* Whether a pattern shows two names as one: a module in a module, or a link of a linked list. */
static bool repeats(const gmd_inspection *inspection, const gmd_step *step, const gmd_step *next)
{
    if (!next || step->kind != GMD_STEP_NAME || next->kind != GMD_STEP_NAME) {
        return false;
    }
    return (is_number(inspection, step) && is_number(inspection, next)) ||
           strcmp(gmd_inspection_text(inspection, step->text),
                  gmd_inspection_text(inspection, next->text)) == 0;
}

/* Writes both ends of the chain of operations that begins at step `first`, with "..." between them.
 * Returns the number of the step after it. */
static uint32_t put_chain(writer *w, const gmd_inspection *inspection, const gmd_tensor_row *row,
                          uint32_t first)
{
    const gmd_step *begin = gmd_inspection_step(inspection, row, first), *last = begin;
    uint32_t i = first + 1;
    for (; is_operation(gmd_inspection_step(inspection, row, i)); i++) {
        last = gmd_inspection_step(inspection, row, i);
    }
    if (begin->kind == GMD_STEP_NODE) {
        put(w, " -> ");
        put(w, gmd_inspection_text(inspection, begin->text));
        put(w, last != begin ? " -> ..." : "");
    } else {
        put(w, last != begin ? " -> ..." : " ... "); /* of operations, or of names on both sides */
    }
    if (last != begin && last->kind == GMD_STEP_NODE) {
        put(w, " -> ");
        put(w, gmd_inspection_text(inspection, last->text));
    }
    return i;
}

static void put_pattern(writer *w, const gmd_inspection *inspection, const gmd_tensor_row *row)
{
    const gmd_step *step;
    for (uint32_t i = 0; (step = gmd_inspection_step(inspection, row, i));) {
        if (is_operation(step)) {
            i = put_chain(w, inspection, row, i);
            continue;
        }
        uint32_t first = i;
        while (repeats(inspection, step, gmd_inspection_step(inspection, row, i + 1))) {
            i++;
        }
        put(w, step->kind == GMD_STEP_SAVED ? " -> " : "");
        put_without_numbers(w, gmd_inspection_text(inspection, step->text));
        put(w, i > first && !is_number(inspection, step) ? "*" : "");
        i++;
    }
}

const char *gmd_inspection_path(const gmd_inspection *inspection, const gmd_tensor_row *row,
                                bool as_pattern, char *text, size_t size)
{
    writer w = {text, size, 0};
    const gmd_step *step;
    text[0] = '\0';
    if (as_pattern) {
        put_pattern(&w, inspection, row);
        return text;
    }
    for (uint32_t i = 0; (step = gmd_inspection_step(inspection, row, i)); i++) {
        put(&w, step->kind == GMD_STEP_ROOT || step->kind == GMD_STEP_NAME ? "" : " -> ");
        put(&w, gmd_inspection_text(inspection, step->text));
    }
    return text;
}

uint32_t gmd_inspection_add_text(gmd_inspection *inspection, const char *text)
{
    size_t bytes = strlen(text) + 1;
    uint32_t at = inspection->text_end;
    if (bytes == 1 || at >= GMD_INSPECT_TEXT_MAX || bytes >= GMD_INSPECT_TEXT_MAX - at) {
        return 0;
    }
    memcpy(&inspection->texts[at], text, bytes);
    inspection->text_end += (uint32_t)bytes;
    return at;
}
