#include "perfetto_places.h"

#include "gmd_report_text.h"
#include "outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTERNED_TEXT = 29, TEXT_NUMBER = 1, TEXT_BYTES = 2 }; /* fields */

/* A packet has room for 4096 bytes. What lies further out than these is left out. */
enum { FRAME_TEXT = 700, MOST_STACK_BYTES = 2048 };

/* --- frames ---------------------------------------------------------------------------------- */

static uint64_t number_of(uint32_t frame)
{
    return (uint64_t)frame + 1; /* 0 is none */
}

static void write_frame(perfetto_places *p, uint32_t frame, FILE *out)
{
    gmd_message text = {0}, interned = {0}, packet = {0};
    char words[FRAME_TEXT];
    gmd_place place = gmd_places_get(&p->places, frame);
    if (p->is_written[frame]) {
        return;
    }
    p->is_written[frame] = 1;
    snprintf(words, sizeof words, "%s:%" PRIu32 " %s", place.file, place.line, place.function);
    gmd_message_u64(&text, TEXT_NUMBER, number_of(frame));
    gmd_message_text(&text, TEXT_BYTES, words);
    gmd_message_add(&interned, INTERNED_TEXT, &text);
    gmd_message_u64(&packet, PACKET_SEQUENCE, SEQUENCE);
    gmd_message_add(&packet, PACKET_INTERNED, &interned);
    gmd_message_write(&packet, TRACE_PACKET, out);
}

static gmd_message argument(const char *name)
{
    gmd_message annotation = {0};
    gmd_message_text(&annotation, ANNOTATION_NAME, name);
    return annotation;
}

static void add_origin(perfetto_places *p, gmd_message *event, uint32_t origin, FILE *out)
{
    size_t count;
    uint32_t user = gmd_places_frame(&p->places, origin);
    const uint32_t *frames =
        gmd_origins_stack(p->origins, gmd_origins_get(p->origins, origin).stack, &count);
    if (user == GMD_NO_PLACE || count == 0) {
        return;
    }
    gmd_message line = argument("line"), stack = argument("stack");
    write_frame(p, user, out);
    gmd_message_u64(&line, ANNOTATION_INTERNED, number_of(user));
    gmd_message_add(event, EVENT_ANNOTATION, &line);
    for (size_t i = 0; i < count && stack.size < MOST_STACK_BYTES; i++) {
        gmd_message item = {0};
        write_frame(p, frames[i], out);
        gmd_message_u64(&item, ANNOTATION_INTERNED, number_of(frames[i]));
        gmd_message_add(&stack, ANNOTATION_ITEM, &item);
    }
    gmd_message_add(event, EVENT_ANNOTATION, &stack);
}

/* --- lines ----------------------------------------------------------------------------------- */

static void add_line(const perfetto_places *p, gmd_message *event, uint32_t number)
{
    gmd_message line = argument("line"), stack = argument("stack"), item = {0};
    char words[GMD_TITLE_TEXT + 16];
    snprintf(words, sizeof words, "%s:%" PRIu32, p->source, number);
    gmd_message_text(&line, ANNOTATION_TEXT, words);
    gmd_message_add(event, EVENT_ANNOTATION, &line);
    gmd_message_text(&item, ANNOTATION_TEXT, words);
    gmd_message_add(&stack, ANNOTATION_ITEM, &item);
    gmd_message_add(event, EVENT_ANNOTATION, &stack);
}

/* --- the whole ------------------------------------------------------------------------------- */

/* Numbers are of no sequence before. */
static void write_clearing(FILE *out)
{
    gmd_message packet = {0};
    gmd_message_u64(&packet, PACKET_SEQUENCE, SEQUENCE);
    gmd_message_u64(&packet, PACKET_FLAGS, FLAG_STATE_CLEARED);
    gmd_message_write(&packet, TRACE_PACKET, out);
}

gmd_status perfetto_places_begin(perfetto_places *p, const gmd_report *report, FILE *out,
                                 gmd_error *error)
{
    *p = (perfetto_places){0};
    if (!report->recorded) {
        return GMD_OK;
    }
    p->origins = &report->recorded->origins;
    gmd_status status = gmd_places_make(&p->places, p->origins, error);
    p->is_written = calloc(gmd_origins_frame_count(p->origins), sizeof *p->is_written);
    if (status == GMD_OK && !p->is_written) {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for the Perfetto trace");
    }
    if (status == GMD_OK) {
        write_clearing(out);
    }
    return status;
}

void perfetto_places_free(perfetto_places *p)
{
    gmd_places_free(&p->places);
    free(p->is_written);
    *p = (perfetto_places){0};
}

void perfetto_places_of_run(perfetto_places *p, const gmd_outcome *outcome)
{
    outcome_source(outcome, p->source);
}

/* The timeline is in memory that the allocator under test can write to. */
void perfetto_places_add(perfetto_places *p, gmd_message *event, const gmd_timeline_entry *entry,
                         FILE *out)
{
    if (!p->origins && entry->line) {
        add_line(p, event, entry->line);
    } else if (p->origins && entry->origin && entry->origin < gmd_origins_count(p->origins)) {
        add_origin(p, event, entry->origin, out);
    }
}
