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
        gmd_fail(error, GMD_NO_MEMORY, "no memory to look inside the run: %s", strerror(errno));
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

const char *gmd_category_name(uint32_t category)
{
    static const char *const names[GMD_CATEGORIES] = {
        [GMD_TEMPORARY] = "temporary", [GMD_ACTIVATION] = "activation",
        [GMD_INPUT] = "input",         [GMD_GRADIENT] = "gradient",
        [GMD_PARAMETER] = "parameter", [GMD_OPTIMIZER_STATE] = "optimizer_state",
        [GMD_WORKSPACE] = "workspace",
    };
    return category < GMD_CATEGORIES ? names[category] : "?";
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

/* Behind the number of an item or submodule that `text` begins with: "[12" or ".4"; NULL: it begins
 * with something else. */
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

/* Appends `text` at `*used`; with `numbers_left_out` a star for each number. */
static void append(char *out, size_t size, size_t *used, const char *text, bool numbers_left_out)
{
    while (*text && *used + 2 < size) {
        const char *behind = numbers_left_out ? behind_number(text) : NULL;
        out[(*used)++] = *text;
        if (behind) {
            out[(*used)++] = '*';
        }
        text = behind ? behind : text + 1;
    }
    out[*used] = '\0';
}

/* The operations of the path, those left out included as one. */
static uint32_t operations_of(const gmd_inspection *inspection, const gmd_tensor_row *row)
{
    const gmd_step *step;
    uint32_t count = 0;
    for (uint32_t i = 0; (step = gmd_inspection_step(inspection, row, i)); i++) {
        count += step->kind == GMD_STEP_NODE || step->kind == GMD_STEP_SKIPPED;
    }
    return count;
}

static bool is_number_step(const gmd_inspection *inspection, const gmd_step *step)
{
    const char *text = gmd_inspection_text(inspection, step->text);
    const char *behind = step->kind == GMD_STEP_NAME && *text == '.' ? behind_number(text) : NULL;
    return behind && *behind == '\0';
}

/* A chain of operations, or of modules in modules, is one way of holding, however long it is. */
static bool is_within_chain(const gmd_inspection *inspection, const gmd_tensor_row *row, uint32_t i)
{
    const gmd_step *step = gmd_inspection_step(inspection, row, i);
    const gmd_step *before = i > 0 ? gmd_inspection_step(inspection, row, i - 1) : NULL;
    return before && is_number_step(inspection, step) && is_number_step(inspection, before);
}

const char *gmd_inspection_path(const gmd_inspection *inspection, const gmd_tensor_row *row,
                                bool as_pattern, char *text, size_t size)
{
    size_t used = 0;
    const gmd_step *step;
    uint32_t operation = 0, operations = operations_of(inspection, row);
    text[0] = '\0';
    for (uint32_t i = 0; (step = gmd_inspection_step(inspection, row, i)); i++) {
        bool is_operation = step->kind == GMD_STEP_NODE || step->kind == GMD_STEP_SKIPPED;
        operation += is_operation;
        bool is_inner = is_operation ? operation > 1 && operation < operations
                                     : is_within_chain(inspection, row, i);
        if (as_pattern && is_inner) {
            continue;
        }
        bool is_apart = step->kind != GMD_STEP_ROOT && step->kind != GMD_STEP_NAME;
        bool ends_chain = as_pattern && is_operation && operation > 1;
        append(text, size, &used, ends_chain ? " -> ... -> " : is_apart ? " -> " : "", false);
        append(text, size, &used, gmd_inspection_text(inspection, step->text), as_pattern);
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
