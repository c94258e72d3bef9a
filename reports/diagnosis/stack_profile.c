#include "gmd_stack_profile.h"

#include "gmd_pprof.h"
#include "gmd_protobuf.h"
#include "gmd_report_text.h"

#include <inttypes.h>

static gmd_status find_stacks(const gmd_facts *facts, gmd_holders *holders, gmd_error *error)
{
    const gmd_holder_facts of = {&facts->recording, &facts->places, &facts->iterations,
                                 &facts->categories};
    return gmd_holders_find(holders, &of, GMD_BY_STACK, facts->recording.peak.allocated_at, error);
}

/* --- pprof ----------------------------------------------------------------------------------- */

/* The strings of the file: those of the recording by their numbers, then these. */
enum { TEXT_OBJECTS, TEXT_COUNT, TEXT_SPACE, TEXT_BYTES, TEXT_NO_FRAMES, OWN_TEXTS };
static const char *const own_texts[OWN_TEXTS] = {"inuse_objects", "count", "inuse_space", "bytes",
                                                 GMD_PPROF_NO_FRAMES};

static uint64_t own_text(const gmd_facts *facts, int text)
{
    return gmd_origins_text_count(facts->places.origins) + (uint64_t)text;
}

static void put_value_type(const gmd_facts *facts, int type, int unit, FILE *out)
{
    gmd_message message = {0};
    gmd_message_u64(&message, PPROF_TYPE_TYPE, own_text(facts, type));
    gmd_message_u64(&message, PPROF_TYPE_UNIT, own_text(facts, unit));
    gmd_message_write(&message, PPROF_SAMPLE_TYPE, out);
}

/* A location's and a function's number is that of its frame, and 1 more; that behind the last frame
 * stands for stacks without any. */
static void put_sample(const gmd_facts *facts, const gmd_holder *holder, FILE *out)
{
    gmd_message message = {0};
    size_t count;
    const uint32_t *frames =
        gmd_origins_stack(facts->places.origins, (uint32_t)holder->key, &count);
    /* A stack that is too deep for a message loses its outermost frames, never its bytes. */
    gmd_message_u64(&message, PPROF_SAMPLE_VALUE, holder->blocks);
    gmd_message_u64(&message, PPROF_SAMPLE_VALUE, holder->bytes);
    for (size_t i = 0; i < count; i++) {
        gmd_message_u64(&message, PPROF_SAMPLE_LOCATION_ID, (uint64_t)frames[i] + 1);
    }
    if (count == 0) {
        gmd_message_u64(&message, PPROF_SAMPLE_LOCATION_ID,
                        (uint64_t)gmd_origins_frame_count(facts->places.origins) + 1);
    }
    gmd_message_write(&message, PPROF_SAMPLE, out);
}

static void put_frame(uint64_t number, uint64_t name, uint64_t file, uint64_t line, FILE *out)
{
    gmd_message line_message = {0}, location = {0}, function = {0};
    gmd_message_u64(&line_message, PPROF_LINE_FUNCTION_ID, number);
    gmd_message_u64(&line_message, PPROF_LINE_LINE, line);
    gmd_message_u64(&location, PPROF_LOCATION_ID, number);
    gmd_message_add(&location, PPROF_LOCATION_LINE, &line_message);
    gmd_message_write(&location, PPROF_LOCATION, out);
    gmd_message_u64(&function, PPROF_FUNCTION_ID, number);
    gmd_message_u64(&function, PPROF_FUNCTION_NAME, name);
    gmd_message_u64(&function, PPROF_FUNCTION_FILE, file);
    gmd_message_write(&function, PPROF_FUNCTION, out);
}

static void put_frames(const gmd_facts *facts, FILE *out)
{
    const gmd_origins *origins = facts->places.origins;
    uint32_t count = gmd_origins_frame_count(origins);
    for (uint32_t i = 0; i < count; i++) {
        gmd_frame frame = gmd_origins_frame(origins, i);
        put_frame((uint64_t)i + 1, frame.function, frame.file, frame.line, out);
    }
    put_frame((uint64_t)count + 1, own_text(facts, TEXT_NO_FRAMES), 0, 0, out);
}

static void put_text(const char *text, FILE *out)
{
    gmd_message message = {0};
    gmd_message_text(&message, PPROF_STRING_TABLE, text);
    fwrite(message.bytes, 1, message.size, out);
}

static void put_texts(const gmd_facts *facts, FILE *out)
{
    const gmd_origins *origins = facts->places.origins;
    for (uint32_t i = 0; i < gmd_origins_text_count(origins); i++) {
        put_text(gmd_origins_text(origins, i, NULL), out);
    }
    for (int i = 0; i < OWN_TEXTS; i++) {
        put_text(own_texts[i], out);
    }
}

gmd_status gmd_stack_profile_write_pprof(const gmd_facts *facts, FILE *out, gmd_error *error)
{
    gmd_holders holders;
    gmd_message default_type = {0};
    gmd_status status = find_stacks(facts, &holders, error);
    if (status != GMD_OK) {
        return status;
    }
    put_value_type(facts, TEXT_OBJECTS, TEXT_COUNT, out);
    put_value_type(facts, TEXT_SPACE, TEXT_BYTES, out);
    for (size_t i = 0; i < holders.count; i++) {
        put_sample(facts, &holders.items[i], out);
    }
    put_frames(facts, out);
    put_texts(facts, out);
    gmd_message_u64(&default_type, PPROF_DEFAULT_SAMPLE_TYPE, own_text(facts, TEXT_SPACE));
    fwrite(default_type.bytes, 1, default_type.size, out);
    gmd_holders_free(&holders);
    return gmd_finish_writing(out, "the pprof profile", error);
}

/* --- folded stacks --------------------------------------------------------------------------- */

/* The format has ';' between frames and a newline behind a stack; neither may be in a name. */
static void put_name(const char *text, FILE *out)
{
    for (uint32_t character; (character = gmd_utf8_next(&text)) != 0;) {
        gmd_utf8_put(character == ';' ? ':' : character < ' ' ? ' ' : character, out);
    }
}

static void put_stack(const gmd_facts *facts, const gmd_holder *holder, FILE *out)
{
    size_t count;
    const uint32_t *frames =
        gmd_origins_stack(facts->places.origins, (uint32_t)holder->key, &count);
    for (size_t i = count; i-- > 0;) {
        gmd_place place = gmd_places_get(&facts->places, frames[i]);
        put_name(place.function, out);
        fputs(" (", out);
        put_name(place.file, out);
        fprintf(out, ":%" PRIu32 ")%s", place.line, i ? ";" : "");
    }
    fprintf(out, "%s %" PRIu64 "\n", count ? "" : GMD_PPROF_NO_FRAMES, holder->bytes);
}

gmd_status gmd_stack_profile_write_folded(const gmd_facts *facts, FILE *out, gmd_error *error)
{
    gmd_holders holders;
    gmd_status status = find_stacks(facts, &holders, error);
    if (status != GMD_OK) {
        return status;
    }
    for (size_t i = 0; i < holders.count; i++) {
        put_stack(facts, &holders.items[i], out);
    }
    gmd_holders_free(&holders);
    return gmd_finish_writing(out, "the folded stacks", error);
}
