#include "planted.h"

#include "gmd_grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct planted_block {
    uint64_t address, size, requested;
    size_t segment;
    uint32_t origin;
    bool is_allocated, is_pending;
} planted_block;

typedef struct planted_segment {
    uint64_t address, size, filled; /* up to where blocks were put in it */
    uint64_t stream, pool;
    uint8_t device;
    bool is_expandable, is_given;
} planted_segment;

struct planted {
    gmd_snapshot snapshot;
    size_t event_capacity, annotation_capacity;
    planted_block *blocks; /* by number; a segment that serves again has a new one */
    size_t block_count, block_capacity;
    planted_segment *segments;
    size_t segment_count, segment_capacity;
    uint64_t next_address;
    uint64_t stream, pool;
    uint64_t device_free; /* as a refusal says */
    uint64_t time;
    uint32_t origin;
    uint8_t device;
    bool has_ended, frames_allocs_only, copies_frames;
};

planted *planted_new(void)
{
    planted *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->next_address = 0x700000000000;
    p->snapshot.has_events = true;
    p->snapshot.device_count = 1;
    return p;
}

static void release_segments(planted *p)
{
    free(p->snapshot.segments);
    free(p->snapshot.blocks);
    p->snapshot.segments = NULL;
    p->snapshot.blocks = NULL;
    p->snapshot.segment_count = p->snapshot.block_count = 0;
}

void planted_free(planted *p)
{
    release_segments(p);
    free(p->snapshot.events);
    free(p->snapshot.annotations);
    gmd_origins_free(&p->snapshot.origins);
    free(p->blocks);
    free(p->segments);
    free(p);
}

/* --- origins ------------------------------------------------------------------------------- */

static uint32_t add_frame(planted *p, const char *place, const char *function)
{
    const char *colon = strrchr(place, ':');
    gmd_frame frame = {.line = (uint32_t)strtoul(colon + 1, NULL, 10)};
    uint32_t number;
    gmd_origins *o = &p->snapshot.origins;
    assert_true(gmd_origins_add_text(o, place, (size_t)(colon - place), &frame.file));
    assert_true(gmd_origins_add_text(o, function, strlen(function), &frame.function));
    assert_true(gmd_origins_add_frame(o, &frame, &number));
    return number;
}

uint32_t planted_origin(planted *p, const char *frames)
{
    uint32_t numbers[16], number;
    size_t count = 0;
    char place[128], function[64];
    for (int length; count < 16 && sscanf(frames, "%127s %63s%n", place, function, &length) == 2;
         frames += length) {
        numbers[count++] = add_frame(p, place, function);
    }
    gmd_origin origin = {0};
    assert_true(gmd_origins_add_stack(&p->snapshot.origins, numbers, count, &origin.stack));
    assert_true(gmd_origins_add(&p->snapshot.origins, &origin, &number));
    return number;
}

void planted_at(planted *p, uint32_t origin)
{
    p->origin = origin;
}

void planted_on_stream(planted *p, uint64_t stream)
{
    p->stream = stream;
}

void planted_in_pool(planted *p, uint64_t pool)
{
    p->pool = pool;
}

gmd_snapshot_settings *planted_settings(planted *p)
{
    return &p->snapshot.settings;
}

void planted_on_device(planted *p, uint8_t device)
{
    p->device = device;
}

void planted_device_has_free(planted *p, uint64_t bytes)
{
    p->device_free = bytes;
}

/* --- events -------------------------------------------------------------------------------- */

static void add_event(planted *p, gmd_action action, uint64_t address, uint64_t size)
{
    gmd_snapshot *s = &p->snapshot;
    bool is_free = action == GMD_ACTION_FREE_REQUESTED || action == GMD_ACTION_FREE_COMPLETED;
    if (p->has_ended) {
        return;
    }
    assert_true(GMD_GROW(&s->events, &p->event_capacity, s->event_count + 1));
    s->events[s->event_count] =
        (gmd_snapshot_event){.action = (uint8_t)action,
                             .device = p->device,
                             .origin = is_free && p->frames_allocs_only ? 0 : p->origin,
                             .address = address,
                             .size = size,
                             .stream = p->stream,
                             .time_us = ++p->time};
    s->event_count++;
}

static bool is_free(const planted *p, size_t segment)
{
    for (size_t i = 0; i < p->block_count; i++) {
        const planted_block *b = &p->blocks[i];
        if (b->segment == segment && (b->is_allocated || b->is_pending)) {
            return false;
        }
    }
    return !p->segments[segment].is_given;
}

/* A free segment of that size, of the stream and pool; the count of them: there is none. */
static size_t find_free(const planted *p, uint64_t size)
{
    size_t i = 0;
    for (; i < p->segment_count; i++) {
        const planted_segment *s = &p->segments[i];
        if (s->size == size && s->stream == p->stream && s->pool == p->pool &&
            s->device == p->device && is_free(p, i)) {
            break;
        }
    }
    return i;
}

static void take_segment(planted *p, uint64_t size)
{
    bool is_expandable = p->snapshot.settings.is_expandable;
    gmd_action action = is_expandable ? GMD_ACTION_SEGMENT_MAP : GMD_ACTION_SEGMENT_ALLOC;
    uint64_t address = p->next_address;
    p->next_address += (size + 4 * GMD_MIB - 1) / (2 * GMD_MIB) * (2 * GMD_MIB);
    add_event(p, action, address, size);
    assert_true(GMD_GROW(&p->segments, &p->segment_capacity, p->segment_count + 1));
    p->segments[p->segment_count++] = (planted_segment){.address = address,
                                                        .size = size,
                                                        .stream = p->stream,
                                                        .pool = p->pool,
                                                        .device = p->device,
                                                        .is_expandable = is_expandable};
}

static uint64_t block_size(uint64_t size)
{
    return (size + 511) / 512 * 512;
}

static size_t put_block(planted *p, size_t segment, uint64_t size)
{
    planted_segment *s = &p->segments[segment];
    uint64_t address = s->address + s->filled;
    assert_true(s->filled + block_size(size) <= s->size);
    s->filled += block_size(size);
    add_event(p, GMD_ACTION_ALLOC, address, size);
    assert_true(GMD_GROW(&p->blocks, &p->block_capacity, p->block_count + 1));
    p->blocks[p->block_count] = (planted_block){.address = address,
                                                .size = block_size(size),
                                                .requested = size,
                                                .segment = segment,
                                                .origin = p->origin,
                                                .is_allocated = true};
    return p->block_count++;
}

size_t planted_alloc_in(planted *p, uint64_t segment_bytes, uint64_t size)
{
    size_t segment = find_free(p, segment_bytes);
    if (segment == p->segment_count) {
        take_segment(p, segment_bytes);
    }
    p->segments[segment].filled = 0;
    return put_block(p, segment, size);
}

size_t planted_alloc(planted *p, uint64_t size)
{
    return planted_alloc_in(p, block_size(size), size);
}

size_t planted_alloc_behind(planted *p, size_t block, uint64_t size)
{
    return put_block(p, p->blocks[block].segment, size);
}

void planted_request_free(planted *p, size_t block)
{
    planted_block *b = &p->blocks[block];
    assert_true(b->is_allocated);
    b->is_allocated = false;
    b->is_pending = true;
    add_event(p, GMD_ACTION_FREE_REQUESTED, b->address, b->size);
}

void planted_complete_free(planted *p, size_t block)
{
    planted_block *b = &p->blocks[block];
    assert_true(b->is_pending);
    b->is_pending = false;
    add_event(p, GMD_ACTION_FREE_COMPLETED, b->address, b->size);
}

void planted_free_block(planted *p, size_t block)
{
    uint32_t origin = p->origin;
    p->origin = p->copies_frames ? p->blocks[block].origin : origin;
    planted_request_free(p, block);
    planted_complete_free(p, block);
    p->origin = origin;
}

void planted_empty_cache(planted *p)
{
    for (size_t i = 0; i < p->segment_count; i++) {
        planted_segment *s = &p->segments[i];
        if (is_free(p, i)) {
            s->is_given = true;
            add_event(p, s->is_expandable ? GMD_ACTION_SEGMENT_UNMAP : GMD_ACTION_SEGMENT_FREE,
                      s->address, s->size);
        }
    }
}

void planted_refuse(planted *p, uint64_t size)
{
    planted_empty_cache(p);
    add_event(p, GMD_ACTION_OOM, p->device_free, size);
}

void planted_annotate(planted *p, const char *name, gmd_annotation_stage stage)
{
    gmd_snapshot *s = &p->snapshot;
    gmd_annotation a = {.time_us = p->time, .stage = (uint8_t)stage};
    assert_true(gmd_origins_add_text(&s->origins, name, strlen(name), &a.name));
    assert_true(GMD_GROW(&s->annotations, &p->annotation_capacity, s->annotation_count + 1));
    s->annotations[s->annotation_count++] = a;
}

void planted_frame_allocs_only(planted *p)
{
    p->frames_allocs_only = true;
}

void planted_copy_frames_to_frees(planted *p)
{
    p->copies_frames = true;
}

void planted_begin_late(planted *p)
{
    p->snapshot.event_count = p->snapshot.annotation_count = 0;
}

void planted_end_early(planted *p)
{
    p->has_ended = true;
}

/* --- the whole ----------------------------------------------------------------------------- */

static void add_blocks(planted *p, size_t segment)
{
    gmd_snapshot *s = &p->snapshot;
    for (size_t i = 0; i < p->block_count; i++) {
        const planted_block *b = &p->blocks[i];
        if (b->segment == segment && (b->is_allocated || b->is_pending)) {
            gmd_block_state state = b->is_allocated ? GMD_BLOCK_ALLOCATED : GMD_BLOCK_PENDING_FREE;
            s->blocks[s->block_count++] = (gmd_snapshot_block){.address = b->address,
                                                               .size = b->size,
                                                               .requested_size = b->requested,
                                                               .origin = b->origin,
                                                               .state = (uint8_t)state};
        }
    }
}

static void make_segments(planted *p)
{
    gmd_snapshot *s = &p->snapshot;
    release_segments(p);
    s->segments = calloc(p->segment_count + 1, sizeof *s->segments);
    s->blocks = calloc(p->block_count + 1, sizeof *s->blocks);
    assert_true(s->segments && s->blocks);
    for (size_t i = 0; i < p->segment_count; i++) {
        const planted_segment *from = &p->segments[i];
        size_t first = s->block_count;
        if (!from->is_given) {
            add_blocks(p, i);
            s->segments[s->segment_count++] =
                (gmd_snapshot_segment){.address = from->address,
                                       .total_size = from->size,
                                       .stream = from->stream,
                                       .pool_id = {0, from->pool},
                                       .first_block = first,
                                       .block_count = s->block_count - first,
                                       .device = from->device,
                                       .is_expandable = from->is_expandable,
                                       .is_large = true};
        }
    }
}

const gmd_snapshot *planted_snapshot(planted *p)
{
    make_segments(p);
    return &p->snapshot;
}

gmd_snapshot planted_take_snapshot(planted *p)
{
    make_segments(p);
    gmd_snapshot taken = p->snapshot;
    p->snapshot = (gmd_snapshot){0};
    return taken;
}

gmd_job_findings planted_findings(planted *p, uint8_t device)
{
    gmd_facts facts;
    gmd_job_findings findings;
    gmd_ooms ooms;
    gmd_error error;
    assert_int_equal(gmd_facts_make(&facts, planted_snapshot(p), device, &error), GMD_OK);
    assert_int_equal(gmd_ooms_find(&ooms, &facts, &error), GMD_OK);
    assert_int_equal(gmd_job_findings_find(&findings, &ooms, &facts, &error), GMD_OK);
    gmd_ooms_free(&ooms);
    gmd_facts_free(&facts);
    return findings;
}

void assert_found(planted *p, gmd_finding_class class)
{
    gmd_job_findings findings = planted_findings(p, 0);
    assert_int_equal(findings.count, 1);
    assert_string_equal(gmd_finding_class_name(findings.items[0].class),
                        gmd_finding_class_name(class));
    gmd_job_findings_free(&findings);
}

void assert_healthy(planted *p)
{
    gmd_job_findings findings = planted_findings(p, 0);
    const char *found =
        findings.count ? gmd_finding_class_name(findings.items[0].class) : "healthy";
    assert_string_equal(found, "healthy");
    gmd_job_findings_free(&findings);
}

/* --- a job that trains --------------------------------------------------------------------- */

planted_job planted_job_new(planted *p)
{
    enum { WEIGHT = 2 * GMD_MIB, BIAS = 4096 };
    planted_job job = {
        .p = p,
        .activation = 3 * GMD_MIB,
        .loop = planted_origin(p, "train.py:10 train train.py:99 <module>"),
        .call = planted_origin(p, "torch/nn/modules/linear.py:134 forward "
                                  "torch/nn/modules/module.py:1790 _call_impl train.py:11 train "
                                  "train.py:99 <module>"),
        .step = planted_origin(p, "torch/optim/sgd.py:127 step train.py:13 train "
                                  "train.py:99 <module>"),
        .zero = planted_origin(p, "torch/optim/optimizer.py:1066 zero_grad train.py:14 train "
                                  "train.py:99 <module>")};
    planted_at(p, planted_origin(p, "torch/nn/modules/module.py:1097 cuda train.py:5 train "
                                    "train.py:99 <module>"));
    for (int i = 0; i < PLANTED_LAYERS; i++) {
        job.weights[i] = planted_alloc(p, WEIGHT);
        job.biases[i] = planted_alloc(p, BIAS);
    }
    return job;
}

void planted_forward(planted_job *job)
{
    planted_at(job->p, job->loop);
    size_t batch = planted_alloc(job->p, job->activation / 2);
    planted_at(job->p, job->call);
    for (int i = 0; i < PLANTED_LAYERS; i++) {
        size_t temporary = planted_alloc(job->p, job->activation);
        job->activations[i] = planted_alloc(job->p, job->activation);
        planted_free_block(job->p, temporary);
    }
    planted_at(job->p, job->loop);
    planted_free_block(job->p, batch);
}

static void make_gradient(planted_job *job, int number, uint64_t size)
{
    size_t made = planted_alloc(job->p, size);
    if (job->has_gradients) { /* it is added to the one that is there */
        planted_free_block(job->p, made);
    } else {
        job->gradients[number] = made;
    }
}

void planted_backward(planted_job *job, bool keeps_graph)
{
    planted_at(job->p, 0);
    for (int i = PLANTED_LAYERS - 1; i >= 0; i--) {
        size_t of_activation = planted_alloc(job->p, job->activation);
        make_gradient(job, 2 * i, 2 * GMD_MIB);
        make_gradient(job, 2 * i + 1, 4096);
        planted_free_block(job->p, of_activation);
        if (!keeps_graph) {
            planted_free_block(job->p, job->activations[i]);
        }
    }
    job->has_gradients = true;
}

void planted_step(planted_job *job)
{
    planted_annotate(job->p, "Optimizer.step#SGD.step", GMD_ANNOTATION_START);
    planted_at(job->p, job->step);
    planted_free_block(job->p, planted_alloc(job->p, 1024));
    planted_annotate(job->p, "Optimizer.step#SGD.step", GMD_ANNOTATION_END);
}

void planted_zero_grad(planted_job *job)
{
    planted_annotate(job->p, "Optimizer.zero_grad#SGD.zero_grad", GMD_ANNOTATION_START);
    planted_at(job->p, job->zero);
    for (int i = 0; i < 2 * PLANTED_LAYERS && job->has_gradients; i++) {
        planted_free_block(job->p, job->gradients[i]);
    }
    job->has_gradients = false;
    planted_annotate(job->p, "Optimizer.zero_grad#SGD.zero_grad", GMD_ANNOTATION_END);
}

void planted_drop_graph(planted_job *job)
{
    planted_at(job->p, job->loop);
    for (int i = 0; i < PLANTED_LAYERS; i++) {
        planted_free_block(job->p, job->activations[i]);
    }
}

void planted_train(planted_job *job)
{
    planted_forward(job);
    planted_backward(job, false);
    planted_step(job);
    planted_zero_grad(job);
}

int planted_open_job(void **state)
{
    static planted_job job;
    job = planted_job_new(planted_new());
    *state = &job;
    return 0;
}

int planted_close_job(void **state)
{
    planted_free(((planted_job *)*state)->p);
    return 0;
}

int planted_open_script(void **state)
{
    *state = planted_new();
    return 0;
}

int planted_close_script(void **state)
{
    planted_free(*state);
    return 0;
}
