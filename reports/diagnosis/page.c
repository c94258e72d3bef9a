/* page.c - places, moments, amounts and holders, as text on a screen. */
#include "page.h"

#include "gmd_min.h"
#include "gmd_report_text.h"
#include "gmd_size.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- text ------------------------------------------------------------------------------------ */

void page_line_begin(page_line *line, const page *p)
{
    line->page = *p;
    line->page.out = gmd_held_text_begin(&line->held, p->out);
}

/* Sentences have a width in a file, too. */
static gmd_terminal sentences(const page *p)
{
    return (gmd_terminal){.columns = p->view->columns};
}

/* Goes on from `column`, and begins lines that follow with the indent. */
static int flow(const page *p, int column, int indent, const char *text)
{
    gmd_put_flowing(p->out, sentences(p), indent, &column, text);
    return column;
}

void page_line_end_at(page_line *line, const page *p, int column, int indent)
{
    gmd_held_text_put(&line->held, sentences(p), column, indent);
}

void page_line_end(page_line *line, const page *p, int first_indent, int indent)
{
    fprintf(p->out, "%*s", first_indent, "");
    page_line_end_at(line, p, first_indent, indent);
}

static const char *file_name(const char *path, bool whole)
{
    return whole ? path : gmd_file_name(path);
}

void page_put_line(const page *p, uint32_t frame)
{
    gmd_place place = gmd_places_get(&p->facts->places, frame);
    gmd_utf8_put_line(file_name(place.file, p->view->all_frames), p->out);
    fprintf(p->out, ":%" PRIu32, place.line);
}

static const char no_frames[] = "no frames of the program";

/* `gap`: what stands before the function. */
static void put_place(const page *p, uint32_t frame, const char *gap)
{
    gmd_place place = gmd_places_get(&p->facts->places, frame);
    if (frame == GMD_NO_PLACE) {
        fputs(no_frames, p->out);
        return;
    }
    page_put_line(p, frame);
    if (*place.function) {
        fprintf(p->out, "%sin ", gap);
        gmd_utf8_put_line(place.function, p->out);
    }
}

/* "train.py:37 in train" */
void page_put_place(const page *p, uint32_t frame)
{
    put_place(p, frame, " ");
}

int page_put_place_at(const page *p, int column, uint32_t frame)
{
    char gap[64] = " ", number[32];
    if (frame == GMD_NO_PLACE) {
        return flow(p, column, column, no_frames);
    }
    gmd_place place = gmd_places_get(&p->facts->places, frame);
    const char *file = file_name(place.file, p->view->all_frames);
    int before = gmd_text_width(file) + snprintf(number, sizeof number, ":%" PRIu32, place.line);
    int function = *place.function ? gmd_text_width("in ") + gmd_text_width(place.function) : 0;
    bool has_room = column + before + 1 + function <= p->view->columns;
    if (function && !has_room) {
        snprintf(gap, sizeof gap, "\n%*s", column, "");
    }
    put_place(p, frame, gap);
    return function == 0 ? column + before
           : has_room    ? column + before + 1 + function
                         : column + function;
}

/* "event 9,312, iteration 3 of 6" */
void page_put_moment(const page *p, uint32_t moment)
{
    char number[32];
    const gmd_iterations *it = &p->facts->iterations;
    uint32_t iteration = gmd_iteration_of(it, moment);
    if (moment == GMD_BEFORE) {
        fputs("before the first event", p->out);
        return;
    }
    fprintf(p->out, "event %s", gmd_format_count(moment - 1, number));
    if (it->count && iteration == GMD_SET_UP) {
        fputs(", before the first iteration", p->out);
    } else if (it->count && iteration < gmd_iterations_shown(it)) {
        fprintf(p->out, ", iteration %" PRIu32 " of %" PRIu32, iteration + 1,
                gmd_iterations_shown(it));
    } else if (it->count && iteration < it->count) {
        fputs(", after the last iteration", p->out);
    }
}

/* --- who holds the memory -------------------------------------------------------------------- */

static gmd_holder_facts holder_facts(const gmd_facts *facts)
{
    return (gmd_holder_facts){&facts->recording, &facts->places, &facts->iterations,
                              &facts->categories};
}

enum { HOLDER_COLUMNS = 29 }; /* of a row, before its line */

static gmd_status put_lines(const page *p, uint32_t moment, uint32_t rows)
{
    const gmd_holder_facts of = holder_facts(p->facts);
    gmd_holders holders;
    char bytes[24], count[32];
    gmd_grouping grouping = p->view->all_frames ? GMD_BY_FRAME : GMD_BY_LINE;
    gmd_status status = gmd_holders_find(&holders, &of, grouping, moment, p->error);
    if (status != GMD_OK) {
        return status;
    }
    size_t shown = gmd_min(holders.count, rows);
    for (size_t i = 0; i < shown; i++) {
        const gmd_holder *h = &holders.items[i];
        fprintf(p->out, "  %10s %7s %-6s  ", gmd_format_size(h->bytes, bytes),
                gmd_format_count(h->blocks, count), h->blocks == 1 ? "block" : "blocks");
        page_put_place_at(p, HOLDER_COLUMNS, (uint32_t)h->key);
        fputc('\n', p->out);
    }
    if (shown < holders.count) {
        fprintf(p->out, "  and %s line%s more\n", gmd_format_count(holders.count - shown, count),
                holders.count - shown == 1 ? "" : "s");
    }
    gmd_holders_free(&holders);
    return GMD_OK;
}

static gmd_status put_categories(const page *p, uint32_t moment)
{
    const gmd_holder_facts of = holder_facts(p->facts);
    gmd_holders holders;
    char text[400] = "", bytes[24];
    size_t length = 0;
    gmd_status status = gmd_holders_find(&holders, &of, GMD_BY_CATEGORY, moment, p->error);
    if (status != GMD_OK) {
        return status;
    }
    for (size_t i = 0; i < holders.count && length < sizeof text; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s %s", i ? ", " : "",
                                   gmd_category_name((gmd_category)holders.items[i].key),
                                   gmd_format_size(holders.items[i].bytes, bytes));
    }
    if (*text) {
        gmd_put_wrapped(p->out, p->view->columns, 2, text);
    }
    gmd_holders_free(&holders);
    return GMD_OK;
}

gmd_status page_put_holders(const page *p, uint32_t moment, uint32_t rows)
{
    gmd_status status = put_lines(p, moment, rows);
    return status == GMD_OK && page_is_of_pytorch(p) ? put_categories(p, moment) : status;
}

/* --- memory that is free ---------------------------------------------------------------------- */

void page_put_amount(const page *p, uint64_t bytes, const char *text)
{
    char size[24];
    fprintf(p->out, "  %10s  ", gmd_format_size(bytes, size));
    flow(p, PAGE_AMOUNT, PAGE_AMOUNT, text);
    fputc('\n', p->out);
}

void page_put_causes(const page *p, const gmd_free_memory *free_memory)
{
    for (int cause = 0; cause < GMD_FREE_CAUSE_COUNT; cause++) {
        if (free_memory->by_cause[cause]) {
            page_put_amount(p, free_memory->by_cause[cause],
                            gmd_free_cause_sentence(free_memory, (gmd_free_cause)cause));
        }
    }
}

/* "20.0 MiB for train.py:37 in train" */
void page_put_request(const page *p, uint64_t requested, uint32_t origin)
{
    char bytes[24];
    uint32_t frame = gmd_places_frame(&p->facts->places, origin);
    fputs(gmd_format_size(requested, bytes), p->out);
    if (frame != GMD_NO_PLACE) {
        fputs(" for ", p->out);
        page_put_place(p, frame);
    }
}
