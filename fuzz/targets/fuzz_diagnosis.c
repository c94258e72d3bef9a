/* Any events, segments and annotations can be diagnosed: what is reported agrees with itself,
 * whatever a damaged or hostile snapshot says.
 *
 * A snapshot is made of the bytes directly, four to an event: addresses are few, so that blocks and
 * segments meet, overlap and contradict each other. What reads the file is fuzz_snapshot's subject.
 */
#include "fuzz.h"

#include "gmd_comparison.h"
#include "gmd_diagnosis.h"
#include "gmd_diagnosis_report.h"
#include "gmd_min.h"

#include <stdio.h>
#include <string.h>

enum { MOST_EVENTS = 4096, STACKS = 6 };
#define UNIT ((uint64_t)256 << 10) /* bytes */

/* --- a snapshot of bytes --------------------------------------------------------------------- */

static void require_added(bool added)
{
    FUZZ_REQUIRE(added);
}

static uint32_t add_stack(gmd_origins *origins, unsigned number)
{
    static const char *const files[] = {"train.py", "torch/nn/modules/module.py",
                                        "torch/nn/modules/rnn.py", "torch/utils/checkpoint.py"};
    uint32_t frames[2], file, function, stack, origin;
    require_added(gmd_origins_add_text(origins, "train", 5, &function));
    for (unsigned i = 0; i < 2; i++) {
        const char *name = files[i ? 0 : number % 4];
        require_added(gmd_origins_add_text(origins, name, strlen(name), &file));
        const gmd_frame frame = {file, function, number};
        require_added(gmd_origins_add_frame(origins, &frame, &frames[i]));
    }
    require_added(gmd_origins_add_stack(origins, frames, number % 3, &stack));
    require_added(gmd_origins_add(origins, &(gmd_origin){.stack = stack}, &origin));
    return origin;
}

static gmd_snapshot_event event_of(const uint8_t *bytes, size_t index, const uint32_t *origins)
{
    return (gmd_snapshot_event){
        .action = bytes[0] % (GMD_ACTION_OTHER + 1),
        .device = bytes[0] >> 7,
        .origin = origins[bytes[3] % STACKS],
        .address = (bytes[1] + 1u) * UNIT,
        .size = bytes[2] % 32u * UNIT / 2,
        .stream = bytes[3] >> 6,
        .time_us = index / 2,
    };
}

/* A tenth of the bytes says what is there at the end, segment by segment with a block in each. */
static void add_segments(gmd_snapshot *s, const uint8_t *bytes, size_t count)
{
    uint64_t at = UNIT;
    for (size_t i = 0; i + 1 < count; i += 2) {
        uint64_t size = (bytes[i] % 16u + 1) * UNIT, block = bytes[i + 1] % 16u * UNIT / 2;
        block = gmd_min(block, size);
        at += (bytes[i] >> 6u) * UNIT;
        s->segments[s->segment_count++] = (gmd_snapshot_segment){.address = at,
                                                                 .total_size = size,
                                                                 .first_block = s->block_count,
                                                                 .block_count = block > 0,
                                                                 .is_expandable = bytes[i] & 32,
                                                                 .pool_id = {0, bytes[i + 1] >> 7},
                                                                 .is_large = true};
        if (block) {
            s->blocks[s->block_count++] = (gmd_snapshot_block){.address = at,
                                                               .size = block,
                                                               .requested_size = block,
                                                               .state = bytes[i + 1] >> 5 & 1};
        }
        at += size;
    }
}

static void add_annotations(gmd_snapshot *s, size_t period)
{
    uint32_t step;
    require_added(gmd_origins_add_text(&s->origins, "Optimizer.step#SGD.step",
                                       strlen("Optimizer.step#SGD.step"), &step));
    for (size_t i = 0; period && i < s->event_count; i += period) {
        s->annotations[s->annotation_count] = (gmd_annotation){
            .time_us = i / 2, .name = step, .stage = (uint8_t)(s->annotation_count % 2)};
        s->annotation_count++;
    }
}

static void make_snapshot(gmd_snapshot *s, const uint8_t *data, size_t size)
{
    uint32_t origins[STACKS];
    size_t events = (size - size / 10) / 4;
    events = gmd_min(events, MOST_EVENTS);
    *s = (gmd_snapshot){.device_count = 2, .has_events = events > 0};
    s->events = malloc((events + 1) * sizeof *s->events);
    s->segments = calloc(size + 1, sizeof *s->segments);
    s->blocks = calloc(size + 1, sizeof *s->blocks);
    s->annotations = calloc(events + 1, sizeof *s->annotations);
    FUZZ_REQUIRE(s->events && s->segments && s->blocks && s->annotations);
    for (unsigned i = 0; i < STACKS; i++) {
        origins[i] = add_stack(&s->origins, i);
    }
    for (size_t i = 0; i < events; i++) {
        s->events[s->event_count++] = event_of(data + 4 * i, i, origins);
    }
    add_segments(s, data + size - size / 10, size / 10);
    add_annotations(s, size ? data[size / 2] % 32u : 0);
}

/* --- what must hold -------------------------------------------------------------------------- */

static void require_amounts(void *context, uint32_t moment, const gmd_amount *amount)
{
    const gmd_recording *r = context;
    FUZZ_REQUIRE(moment >= r->first && moment <= r->last);
    FUZZ_REQUIRE(amount->allocated <= amount->active);
    FUZZ_REQUIRE(amount->allocated <= r->peak.amount.allocated);
    FUZZ_REQUIRE(amount->reserved <= r->peak.amount.reserved);
}

static void require_holders(const gmd_facts *f)
{
    const gmd_holder_facts of = {&f->recording, &f->places, &f->iterations, &f->categories};
    gmd_error error = {""};
    for (int grouping = GMD_BY_LINE; grouping <= GMD_BY_STREAM; grouping++) {
        gmd_holders holders;
        FUZZ_REQUIRE(gmd_holders_find(&holders, &of, (gmd_grouping)grouping,
                                      f->recording.peak.allocated_at, &error) == GMD_OK);
        FUZZ_REQUIRE(holders.bytes == f->recording.peak.amount.allocated);
        gmd_holders_free(&holders);
    }
}

static void require_findings(const gmd_device_diagnosis *d)
{
    for (size_t i = 0; i < d->findings.count; i++) {
        const gmd_job_finding *finding = &d->findings.items[i];
        FUZZ_REQUIRE(finding->confidence > 0 && finding->confidence <= 1);
        FUZZ_REQUIRE(finding->evidence[0] && finding->fix[0]);
        FUZZ_REQUIRE(i == 0 || d->findings.items[i - 1].bytes >= finding->bytes);
    }
}

/* What cost the job something has a finding that explains it. */
static void require_ooms(const gmd_device_diagnosis *d)
{
    uint64_t count = d->ooms.left_out;
    for (size_t i = 0; i < d->ooms.count; i++) {
        count += 1 + (uint64_t)d->ooms.items[i].repeats;
        FUZZ_REQUIRE(d->ooms.items[i].change[0]);
    }
    FUZZ_REQUIRE(count == d->facts.recording.oom_count);
    FUZZ_REQUIRE(!gmd_ooms_costly(&d->ooms) || d->findings.count > 0);
}

static void require_ranks(const gmd_diagnosis *d)
{
    size_t count = 0;
    for (size_t i = 0; i < d->device_count; i++) {
        count += d->devices[i].findings.count;
    }
    FUZZ_REQUIRE(d->finding_count == count);
    for (size_t i = 1; i < d->finding_count; i++) {
        FUZZ_REQUIRE(d->findings[i - 1].finding->bytes >= d->findings[i].finding->bytes);
    }
}

static void require_reports(const gmd_diagnosis *d)
{
    const gmd_diagnosis_view view = {.columns = 80, .rows = 8};
    gmd_error error = {""};
    FILE *nowhere = fopen("/dev/null", "w");
    FUZZ_REQUIRE(nowhere);
    FUZZ_REQUIRE(gmd_diagnosis_write_text(d, &view, nowhere, &error) == GMD_OK);
    FUZZ_REQUIRE(gmd_diagnosis_write_json(d, 1, "0", nowhere, &error) == GMD_OK);
    fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gmd_snapshot snapshot;
    gmd_diagnosis diagnosis;
    gmd_error error = {""};
    make_snapshot(&snapshot, data, size);
    FUZZ_REQUIRE(gmd_diagnosis_make(&diagnosis, &snapshot, "input", &error) == GMD_OK);
    for (size_t i = 0; i < diagnosis.device_count; i++) {
        gmd_device_diagnosis *device = &diagnosis.devices[i];
        gmd_recording_walk(&device->facts.recording, require_amounts, &device->facts.recording);
        require_holders(&device->facts);
        require_findings(device);
        require_ooms(device);
    }
    require_ranks(&diagnosis);
    require_reports(&diagnosis);
    gmd_diagnosis_free(&diagnosis);
    return 0;
}
