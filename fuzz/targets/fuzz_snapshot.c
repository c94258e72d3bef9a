/* Any bytes are a snapshot, or an error that names a byte; what is accepted keeps its promises. */
#include "fuzz.h"

#include "gmd_history.h"
#include "gmd_snapshot.h"
#include "gmd_trace.h"
#include "gmd_trace_validity.h"

#include <string.h>

static void require_sound_segment(const gmd_snapshot *s, const gmd_snapshot_segment *g)
{
    uint64_t at = g->address, end = g->address + g->total_size;
    FUZZ_REQUIRE(end >= g->address);
    FUZZ_REQUIRE(g->device < GMD_MAX_DEVICES);
    FUZZ_REQUIRE(g->first_block <= s->block_count &&
                 g->block_count <= s->block_count - g->first_block);
    for (size_t i = 0; i < g->block_count; i++) {
        const gmd_snapshot_block *b = &s->blocks[g->first_block + i];
        FUZZ_REQUIRE(b->size > 0 && b->address >= at && b->size <= end - b->address);
        FUZZ_REQUIRE(b->state <= GMD_BLOCK_PENDING_FREE);
        at = b->address + b->size;
    }
}

static void require_sound_stack(const gmd_origins *origins, uint32_t stack)
{
    size_t count;
    const uint32_t *frames = gmd_origins_stack(origins, stack, &count);
    for (size_t i = 0; i < count; i++) {
        FUZZ_REQUIRE(frames[i] < gmd_origins_frame_count(origins));
    }
}

/* Every number refers to something that is there, and what is there was in the input. */
static void require_sound_origins(const gmd_origins *origins, size_t size)
{
    uint32_t texts = gmd_origins_text_count(origins), frames = gmd_origins_frame_count(origins);
    uint32_t stacks = gmd_origins_stack_count(origins);
    FUZZ_REQUIRE(texts <= size + 1 && frames <= size + 1 && stacks <= size + 1);
    for (uint32_t i = 0; i < texts; i++) {
        size_t length;
        const char *text = gmd_origins_text(origins, i, &length);
        FUZZ_REQUIRE((i == 0) == (length == 0) && length <= size * 2 && text[length] == 0);
    }
    for (uint32_t i = 0; i < frames; i++) {
        gmd_frame f = gmd_origins_frame(origins, i);
        FUZZ_REQUIRE(f.file < texts && f.function < texts);
    }
    for (uint32_t i = 0; i < stacks; i++) {
        require_sound_stack(origins, i);
    }
    for (uint32_t i = 0; i < gmd_origins_count(origins); i++) {
        gmd_origin o = gmd_origins_get(origins, i);
        FUZZ_REQUIRE(o.stack < stacks && o.metadata < texts && o.compile_context < texts);
        FUZZ_REQUIRE((i == 0) == (!o.stack && !o.metadata && !o.compile_context));
    }
}

static void require_sound_annotations(const gmd_snapshot *s)
{
    for (size_t i = 0; i < s->annotation_count; i++) {
        FUZZ_REQUIRE(s->annotations[i].name < gmd_origins_text_count(&s->origins));
        FUZZ_REQUIRE(s->annotations[i].stage <= GMD_ANNOTATION_OTHER);
        FUZZ_REQUIRE(s->annotations[i].device < GMD_MAX_DEVICES);
    }
}

static void require_sound(const gmd_snapshot *s, size_t size)
{
    uint32_t origins = gmd_origins_count(&s->origins);
    require_sound_origins(&s->origins, size);
    require_sound_annotations(s);
    FUZZ_REQUIRE(s->event_count + s->segment_count + s->block_count + s->annotation_count <=
                 size + 16);
    FUZZ_REQUIRE(s->device_count <= GMD_MAX_DEVICES);
    FUZZ_REQUIRE(s->has_events == (s->event_count > 0));
    for (size_t i = 0; i < s->event_count; i++) {
        FUZZ_REQUIRE(s->events[i].action <= GMD_ACTION_OTHER);
        FUZZ_REQUIRE(s->events[i].device < s->device_count && s->events[i].origin < origins);
    }
    for (size_t i = 0; i < s->block_count; i++) {
        FUZZ_REQUIRE(s->blocks[i].origin < origins);
    }
    for (size_t i = 0; i < s->segment_count; i++) {
        FUZZ_REQUIRE(s->segments[i].origin < origins);
        require_sound_segment(s, &s->segments[i]);
    }
}

/* The requests behind the events refer to what is there, or the history is refused. */
static void require_sound_history(const gmd_snapshot *s, const gmd_history_hints *hints)
{
    gmd_history h;
    gmd_error error = {""};
    gmd_status status = gmd_history_build(&h, s, hints, "input", &error);
    size_t most = hints->waits_again ? s->event_count * 3 : s->event_count; /* with its own */
    FUZZ_REQUIRE(status == GMD_OK ? h.trace.count <= most
                                  : status == GMD_BAD_INPUT && error.text[0]);
    FUZZ_REQUIRE(status != GMD_OK || !gmd_trace_violation(&h.trace));
    uint32_t calls = 0;
    for (size_t i = 0; i < h.trace.count; i++) {
        const gmd_request *r = &h.trace.requests[i];
        FUZZ_REQUIRE(r->op > GMD_OP_FREE || r->block < h.trace.blocks.count);
        FUZZ_REQUIRE(r->stream < h.trace.streams.count);
        FUZZ_REQUIRE(h.recorded[i].first_call == calls);
        calls += h.recorded[i].call_count;
    }
    FUZZ_REQUIRE(calls == h.call_count);
    gmd_history_free(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gmd_snapshot snapshot;
    gmd_error error = {""};
    gmd_status status = gmd_snapshot_parse(&snapshot, data, size, "input", &error);
    if (status == GMD_OK) {
        require_sound(&snapshot, size);
        require_sound_history(&snapshot,
                              &(gmd_history_hints){.recorded_retries = GMD_RETRIES_UNKNOWN});
        require_sound_history(&snapshot, &(gmd_history_hints){.limit_bytes = (uint64_t)64 << 20,
                                                              .recorded_retries = 1});
        require_sound_history(&snapshot,
                              &(gmd_history_hints){.recorded_retries = GMD_RETRIES_UNKNOWN,
                                                   .waits_again = true,
                                                   .frees_refused = true});
    } else {
        FUZZ_REQUIRE(status == GMD_BAD_INPUT && strncmp(error.text, "input: ", 7) == 0);
        FUZZ_REQUIRE(strstr(error.text, ": byte "));
        FUZZ_REQUIRE(!snapshot.events && !snapshot.segments && !snapshot.blocks && !snapshot.conf);
        FUZZ_REQUIRE(!snapshot.event_count && !snapshot.segment_count && !snapshot.block_count);
        FUZZ_REQUIRE(!snapshot.annotations && !snapshot.annotation_count);
        FUZZ_REQUIRE(gmd_origins_count(&snapshot.origins) == 1);
    }
    gmd_snapshot_free(&snapshot);
    return 0;
}
