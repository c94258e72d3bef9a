/* Any bytes are a file of RMM, pprof, torch.profiler or gmd's JSON, or an error that names its
 * place; what is accepted agrees with itself and can be told of. PyTorch's own snapshots are
 * fuzz_snapshot's subject. */
#include "fuzz.h"

#include "gmd_compared_result.h"
#include "gmd_history.h"
#include "gmd_memory_file.h"
#include "gmd_memory_timeline.h"
#include "gmd_timeline_report.h"
#include "gmd_trace_validity.h"

#include <string.h>

enum { MOST_DIAGNOSED = 20000 }; /* blocks: more take seconds, and are as good as these */

static void require_refused(gmd_status status, const gmd_error *error)
{
    FUZZ_REQUIRE(status == GMD_BAD_INPUT && strncmp(error->text, "input:", 6) == 0);
}

/* --- recordings ------------------------------------------------------------------------------ */

static void require_sound_blocks(const gmd_snapshot *s)
{
    size_t next = 0;
    for (size_t i = 0; i < s->segment_count; i++) {
        const gmd_snapshot_segment *segment = &s->segments[i];
        uint64_t at = segment->address;
        FUZZ_REQUIRE(segment->first_block == next && segment->device < s->device_count);
        for (size_t k = 0; k < segment->block_count; k++) {
            const gmd_snapshot_block *block = &s->blocks[next++];
            FUZZ_REQUIRE(block->address == at && block->size > 0);
            FUZZ_REQUIRE(block->origin < gmd_origins_count(&s->origins));
            at += block->size;
        }
        FUZZ_REQUIRE(at == segment->address + segment->total_size);
    }
    FUZZ_REQUIRE(next == s->block_count);
}

static void require_sound_events(const gmd_snapshot *s, size_t size)
{
    FUZZ_REQUIRE(s->event_count <= size);
    FUZZ_REQUIRE(s->has_events == (s->event_count > 0));
    for (size_t i = 0; i < s->event_count; i++) {
        const gmd_snapshot_event *e = &s->events[i];
        FUZZ_REQUIRE(e->size <= UINT64_MAX - e->address && e->device == 0);
    }
}

static void require_sound_history(const gmd_snapshot *s)
{
    gmd_history h;
    gmd_error error = {""};
    const gmd_history_hints hints = {.recorded_retries = GMD_RETRIES_UNKNOWN,
                                     .frees_refused = true};
    gmd_status status = gmd_history_build(&h, s, &hints, "input", &error);
    FUZZ_REQUIRE(status == GMD_OK || (status == GMD_BAD_INPUT && error.text[0]));
    FUZZ_REQUIRE(status != GMD_OK || !gmd_trace_violation(&h.trace));
    gmd_history_free(&h);
}

/* Takes the snapshot over. */
static void require_told(gmd_snapshot *s)
{
    gmd_diagnosis diagnosis;
    gmd_diff_input input;
    gmd_error error = {""};
    FUZZ_REQUIRE(gmd_diagnosis_make(&diagnosis, s, "input", &error) == GMD_OK);
    FUZZ_REQUIRE(diagnosis.finding_count == 0);
    gmd_status status = gmd_diff_input_of(&input, &diagnosis, false, &error);
    FUZZ_REQUIRE(status == (diagnosis.device_count ? GMD_OK : GMD_BAD_INPUT));
    gmd_diff_input_free(&input);
    gmd_diagnosis_free(&diagnosis);
}

static void read_recording(const uint8_t *data, size_t size)
{
    gmd_snapshot snapshot;
    gmd_error error = {""};
    gmd_status status = gmd_memory_file_parse(&snapshot, data, size, "input", &error);
    if (status != GMD_OK) {
        require_refused(status, &error);
        FUZZ_REQUIRE(!snapshot.events && !snapshot.segments && !snapshot.blocks);
        return;
    }
    require_sound_blocks(&snapshot);
    require_sound_events(&snapshot, size);
    require_sound_history(&snapshot);
    if (snapshot.block_count <= MOST_DIAGNOSED) {
        require_told(&snapshot);
    }
    gmd_snapshot_free(&snapshot);
}

/* --- others ---------------------------------------------------------------------------------- */

static void read_timeline(const uint8_t *data, size_t size)
{
    gmd_memory_timeline timeline;
    gmd_diff_input input;
    gmd_error error = {""};
    gmd_status status = gmd_memory_timeline_parse(&timeline, data, size, "input", &error);
    if (status != GMD_OK) {
        require_refused(status, &error);
        FUZZ_REQUIRE(!timeline.rows && !timeline.count);
        return;
    }
    size_t peak = gmd_timeline_peak(&timeline);
    FUZZ_REQUIRE(timeline.count <= size && (peak < timeline.count || !timeline.count));
    for (size_t i = 0; i < timeline.count; i++) {
        FUZZ_REQUIRE(gmd_timeline_allocated(&timeline.rows[i]) <= INT64_MAX);
        FUZZ_REQUIRE(gmd_timeline_allocated(&timeline.rows[i]) <=
                     gmd_timeline_allocated(&timeline.rows[peak]));
    }
    FUZZ_REQUIRE(gmd_timeline_compared(&input, &timeline, "input", false, &error) == GMD_OK);
    gmd_diff_input_free(&input);
    gmd_memory_timeline_free(&timeline);
}

static void read_result(const uint8_t *data, size_t size)
{
    for (int is_of_end = 0; is_of_end <= 1; is_of_end++) {
        gmd_diff_input input;
        gmd_error error = {""};
        gmd_status status =
            gmd_compared_result_parse(&input, (const char *)data, size, "input", is_of_end, &error);
        if (status != GMD_OK) {
            require_refused(status, &error);
        }
        FUZZ_REQUIRE(status == GMD_OK || (!input.figures && !input.lines.items));
        gmd_diff_input_free(&input);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    switch (gmd_memory_file_of(data, size)) {
    case GMD_FILE_RMM_LOG:
    case GMD_FILE_PPROF:
        read_recording(data, size);
        break;
    case GMD_FILE_TIMELINE:
        read_timeline(data, size);
        break;
    case GMD_FILE_RESULT:
        read_result(data, size);
        break;
    case GMD_FILE_SNAPSHOT:
    case GMD_FILE_HTML:
        break;
    }
    return 0;
}
