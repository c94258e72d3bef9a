/* Any bytes are a text trace, or an error that names a line; what is accepted is written as a text
 * that reads back as the same requests, and that is written the same again. */
#include "fuzz.h"

#include "gmd_trace.h"

#include <string.h>

static char *write_text(const gmd_trace *trace, size_t *size)
{
    char *text = NULL;
    gmd_error error = {""};
    FILE *out = open_memstream(&text, size);
    FUZZ_REQUIRE(out);
    FUZZ_REQUIRE(gmd_trace_write(trace, out, &error) == GMD_OK);
    FUZZ_REQUIRE(fclose(out) == 0);
    return text;
}

static void require_same(const gmd_trace *a, const gmd_trace *b)
{
    FUZZ_REQUIRE(a->count == b->count && a->conditions.device_count == b->conditions.device_count);
    FUZZ_REQUIRE(a->conditions.capacity_bytes == b->conditions.capacity_bytes);
    FUZZ_REQUIRE(!a->conditions.conf == !b->conditions.conf &&
                 (!a->conditions.conf || strcmp(a->conditions.conf, b->conditions.conf) == 0));
    FUZZ_REQUIRE(gmd_placement_equal(&a->conditions.placement, &b->conditions.placement));
    FUZZ_REQUIRE(a->conditions.schedule.kind == b->conditions.schedule.kind &&
                 a->conditions.schedule.seed == b->conditions.schedule.seed);
    FUZZ_REQUIRE(a->conditions.schedule.choice_count == b->conditions.schedule.choice_count);
    FUZZ_REQUIRE(a->conditions.reuses_handles == b->conditions.reuses_handles);
    FUZZ_REQUIRE(a->conditions.moves_clock == b->conditions.moves_clock);
    FUZZ_REQUIRE(a->conditions.interleave.kind == b->conditions.interleave.kind);
    for (size_t i = 0; i < a->count; i++) {
        gmd_request x = a->requests[i], y = b->requests[i];
        FUZZ_REQUIRE(x.op == y.op && x.expect == y.expect && x.device == y.device);
        FUZZ_REQUIRE(x.block == y.block && x.stream == y.stream);
        FUZZ_REQUIRE(x.other_stream == y.other_stream && x.bytes == y.bytes);
    }
}

static void require_messages(const gmd_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        char text[40];
        FUZZ_REQUIRE(strlen(gmd_request_text(trace, &trace->requests[i], text, sizeof text)) > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gmd_trace trace, again;
    gmd_error error = {""};
    gmd_status status = gmd_trace_parse(&trace, (const char *)data, size, "input", &error);
    if (status != GMD_OK) {
        FUZZ_REQUIRE(status == GMD_BAD_INPUT && strncmp(error.text, "input:", 6) == 0);
        FUZZ_REQUIRE(!trace.requests && !trace.count && !trace.conditions.conf &&
                     !trace.conditions.schedule.choices);
        FUZZ_REQUIRE(!trace.blocks.items && !trace.streams.items && !trace.threads.items);
        return 0;
    }
    require_messages(&trace);
    size_t first_size, second_size;
    char *first = write_text(&trace, &first_size);
    FUZZ_REQUIRE(gmd_trace_parse(&again, first, first_size, "written", &error) == GMD_OK);
    require_same(&trace, &again);
    char *second = write_text(&again, &second_size);
    FUZZ_REQUIRE(first_size == second_size && memcmp(first, second, first_size) == 0);
    free(first);
    free(second);
    gmd_trace_free(&trace);
    gmd_trace_free(&again);
    return 0;
}
