#include "gmd_diff_input.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

/* --- what a diagnosis knows ------------------------------------------------------------------ */

static bool add_figures(gmd_diff_input *input, const gmd_recording *r, bool is_of_end)
{
    const gmd_amount *amount = is_of_end ? &r->at_end : &r->peak.amount;
    bool knows_reserved = r->snapshot->recorder == GMD_RECORDER_PYTORCH;
    return (!knows_reserved ||
            gmd_diff_input_add_figure(input, GMD_FIGURE_RESERVED, amount->reserved, true)) &&
           (!r->snapshot->has_events ||
            gmd_diff_input_add_figure(input, GMD_FIGURE_OOMS, r->oom_count, false));
}

gmd_status gmd_diff_input_of(gmd_diff_input *input, const gmd_diagnosis *diagnosis, bool is_of_end,
                             gmd_error *error)
{
    *input = (gmd_diff_input){.name = diagnosis->name};
    if (diagnosis->device_count == 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: nothing is in it: neither events nor segments",
                        diagnosis->name);
    }
    const gmd_facts *f = &diagnosis->devices[0].facts;
    const gmd_holder_facts of = {&f->recording, &f->places, &f->iterations, &f->categories};
    uint32_t moment = is_of_end ? f->recording.last : f->recording.peak.allocated_at;
    input->places = &f->places;
    gmd_status status = gmd_holders_find(&input->lines, &of, GMD_BY_LINE, moment, error);
    if (status == GMD_OK) {
        status = gmd_holders_find(&input->stacks, &of, GMD_BY_STACK, moment, error);
    }
    if (status == GMD_OK) {
        status = gmd_holders_find(&input->categories, &of, GMD_BY_CATEGORY, moment, error);
    }
    if (status == GMD_OK && !add_figures(input, &f->recording, is_of_end)) {
        status = gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", diagnosis->name);
    }
    if (status != GMD_OK) {
        gmd_diff_input_free(input);
    }
    return status;
}

/* --- one by one ------------------------------------------------------------------------------ */

static bool add_text(gmd_diff_input *input, const char *text, uint32_t *number)
{
    return gmd_origins_add_text(&input->origins, text, strlen(text), number);
}

static bool add_holder(gmd_holders *to, size_t *capacity, uint64_t key, uint64_t bytes)
{
    if (!GMD_GROW(&to->items, capacity, to->count + 1)) {
        return false;
    }
    to->items[to->count++] = (gmd_holder){.key = key, .bytes = bytes};
    return true;
}

bool gmd_diff_input_add_line(gmd_diff_input *input, const char *file, uint32_t line,
                             const char *function, uint64_t bytes)
{
    gmd_frame frame = {.line = line};
    uint32_t number;
    return add_text(input, file, &frame.file) && add_text(input, function, &frame.function) &&
           gmd_origins_add_frame(&input->origins, &frame, &number) &&
           add_holder(&input->lines, &input->line_capacity, number, bytes);
}

bool gmd_diff_input_add_category(gmd_diff_input *input, uint32_t category, uint64_t bytes)
{
    return add_holder(&input->categories, &input->category_capacity, category, bytes);
}

bool gmd_diff_input_add_figure(gmd_diff_input *input, const char *name, uint64_t value,
                               bool is_bytes)
{
    if (!GMD_GROW(&input->figures, &input->figure_capacity, input->figure_count + 1)) {
        return false;
    }
    gmd_diff_figure *figure = &input->figures[input->figure_count];
    *figure = (gmd_diff_figure){strdup(name), value, is_bytes};
    input->figure_count += figure->name != NULL;
    return figure->name != NULL;
}

gmd_status gmd_diff_input_finish(gmd_diff_input *input, uint64_t allocated, gmd_error *error)
{
    input->lines.bytes = input->stacks.bytes = input->categories.bytes = allocated;
    input->places = &input->own_places;
    return gmd_places_make(&input->own_places, &input->origins, error);
}

void gmd_diff_input_free(gmd_diff_input *input)
{
    for (size_t i = 0; i < input->figure_count; i++) {
        free(input->figures[i].name);
    }
    free(input->figures);
    gmd_holders_free(&input->lines);
    gmd_holders_free(&input->stacks);
    gmd_holders_free(&input->categories);
    gmd_places_free(&input->own_places);
    gmd_origins_free(&input->origins);
    *input = (gmd_diff_input){0};
}
