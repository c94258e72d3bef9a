/* Data really moves: any bytes are a program of memsets and copies between device, page-locked and
 * pageable memory on several streams, under any schedule. Whatever touches a buffer is ordered
 * after what touched it before, by one of CUDA's means that the bytes choose; so what is in it at
 * the end is what a model on the host computes at once. */
#include "fuzz.h"

#include "gmd_sim.h"

#include <stdbool.h>
#include <string.h>

enum {
    DEVICE_BUFFERS = 4,
    PINNED_BUFFERS = 2,
    PAGEABLE_BUFFERS = 2,
    BUFFERS = DEVICE_BUFFERS + PINNED_BUFFERS + PAGEABLE_BUFFERS,
    BYTES = 200, /* of each */
    STREAMS = 6,
    LEGACY = 0,
    PER_THREAD = 1,
    BLOCKING = 4 /* streams from here on do not wait for the default stream */
};

typedef enum buffer_kind { ON_DEVICE, PINNED, PAGEABLE } buffer_kind;

typedef struct buffer {
    buffer_kind kind;
    unsigned char *memory;
    unsigned char expected[BYTES];
    cudaEvent_t touched; /* recorded behind what touched it last, on stream `by` */
    int by;              /* -1: the host knows that nothing touches it */
} buffer;

typedef struct program {
    const uint8_t *next, *end;
    buffer buffers[BUFFERS];
    cudaStream_t streams[STREAMS];
    uint8_t lives[STREAMS]; /* of a stream, to tell an earlier one */
    uint8_t life_by[BUFFERS];
} program;

static uint8_t take(program *p)
{
    return p->next < p->end ? *p->next++ : 0;
}

static unsigned take_below(program *p, unsigned bound)
{
    return take(p) % bound;
}

/* --- set up ------------------------------------------------------------------------------ */

static void start_device(program *p)
{
    static const gmd_sim_schedule schedules[] = {GMD_SIM_TIMED, GMD_SIM_EAGER, GMD_SIM_LAZY,
                                                 GMD_SIM_SEEDED, GMD_SIM_EXPLICIT};
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.backed = true;
    config.capacity_bytes = (uint64_t)64 << 20;
    config.placement = take(p) & 1 ? GMD_SIM_REUSE_FIRST : GMD_SIM_ASCENDING;
    config.schedule = schedules[take_below(p, 5)];
    config.schedule_seed = take(p);
    config.choices = p->next;
    config.choice_count = (size_t)(p->end - p->next);
    FUZZ_REQUIRE(gmd_sim_reset(&config) == 0);
}

static void make_stream(program *p, unsigned which)
{
    unsigned flags = which < BLOCKING ? cudaStreamDefault : cudaStreamNonBlocking;
    FUZZ_REQUIRE(cudaStreamCreateWithFlags(&p->streams[which], flags) == cudaSuccess);
    p->lives[which]++;
}

static void make_buffer(buffer *b, buffer_kind kind)
{
    static unsigned char pageable[BUFFERS][BYTES];
    b->kind = kind;
    b->by = -1;
    void *memory = NULL;
    if (kind == ON_DEVICE) {
        FUZZ_REQUIRE(cudaMalloc(&memory, BYTES) == cudaSuccess);
        FUZZ_REQUIRE(cudaMemset(memory, 0, BYTES) == cudaSuccess);
        FUZZ_REQUIRE(cudaStreamSynchronize(NULL) == cudaSuccess);
        memset(b->expected, 0, BYTES);
    } else if (kind == PINNED) {
        FUZZ_REQUIRE(cudaMallocHost(&memory, BYTES) == cudaSuccess);
        memset(memory, 0, BYTES);
    }
    b->memory = memory;
    if (kind == PAGEABLE) {
        static unsigned next_pageable;
        b->memory = pageable[next_pageable++ % BUFFERS];
        memset(b->memory, 0, BYTES);
    }
    FUZZ_REQUIRE(b->memory);
}

static void set_up(program *p)
{
    start_device(p);
    p->streams[PER_THREAD] = cudaStreamPerThread;
    for (unsigned i = PER_THREAD + 1; i < STREAMS; i++) {
        make_stream(p, i);
    }
    for (unsigned i = 0; i < BUFFERS; i++) {
        buffer *b = &p->buffers[i];
        make_buffer(b, i < DEVICE_BUFFERS                    ? ON_DEVICE
                       : i < DEVICE_BUFFERS + PINNED_BUFFERS ? PINNED
                                                             : PAGEABLE);
        unsigned flags = i & 1 ? cudaEventDisableTiming : cudaEventDefault;
        FUZZ_REQUIRE(cudaEventCreateWithFlags(&b->touched, flags) == cudaSuccess);
    }
}

/* --- order ------------------------------------------------------------------------------- */

static bool is_implied(const program *p, const buffer *b, int stream)
{
    bool is_same_life = p->life_by[b - p->buffers] == p->lives[b->by];
    if (b->by == stream) {
        return is_same_life;
    }
    return (b->by == LEGACY && stream < BLOCKING) ||
           (stream == LEGACY && b->by < BLOCKING && is_same_life);
}

static void wait_on_host(program *p, buffer *b)
{
    switch (take_below(p, 4)) {
    case 0:
        FUZZ_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        break;
    case 1:
        if (p->life_by[b - p->buffers] == p->lives[b->by]) {
            FUZZ_REQUIRE(cudaStreamSynchronize(p->streams[b->by]) == cudaSuccess);
            break;
        } /* the stream is gone: its event is not */
        FUZZ_REQUIRE(cudaEventSynchronize(b->touched) == cudaSuccess);
        break;
    case 2:
        if (cudaEventQuery(b->touched) == cudaSuccess) {
            break;
        }
        FUZZ_REQUIRE(cudaEventSynchronize(b->touched) == cudaSuccess);
        break;
    default:
        FUZZ_REQUIRE(cudaEventSynchronize(b->touched) == cudaSuccess);
    }
    b->by = -1;
}

/* What `stream` does from now on comes after what touched the buffer. */
static void order(program *p, buffer *b, int stream)
{
    unsigned how = b->by < 0 ? 0 : take_below(p, 8);
    if (b->by < 0 || (how < 3 && is_implied(p, b, stream))) {
        return;
    }
    if (how < 6) {
        FUZZ_REQUIRE(cudaStreamWaitEvent(p->streams[stream], b->touched, 0) == cudaSuccess);
    } else {
        wait_on_host(p, b);
    }
}

static void touch(program *p, buffer *b, int stream)
{
    if (b->kind != PAGEABLE) {
        FUZZ_REQUIRE(cudaEventRecord(b->touched, p->streams[stream]) == cudaSuccess);
        b->by = stream;
        p->life_by[b - p->buffers] = p->lives[stream];
    }
}

/* --- what programs do -------------------------------------------------------------------- */

static void fill(program *p)
{
    buffer *b = &p->buffers[take_below(p, DEVICE_BUFFERS + PINNED_BUFFERS)];
    int stream = (int)take_below(p, STREAMS), value = take(p);
    unsigned from = take_below(p, BYTES), size = take_below(p, BYTES - from + 1);
    order(p, b, stream);
    cudaError_t result = stream == LEGACY && (value & 1)
                             ? cudaMemset(b->memory + from, value, size)
                             : cudaMemsetAsync(b->memory + from, value, size, p->streams[stream]);
    FUZZ_REQUIRE(result == cudaSuccess);
    memset(b->expected + from, value, size);
    touch(p, b, stream);
}

static enum cudaMemcpyKind kind_of(program *p, const buffer *to, const buffer *from)
{
    if (take(p) & 1) {
        return cudaMemcpyDefault;
    }
    if (to->kind == ON_DEVICE) {
        return from->kind == ON_DEVICE ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    }
    return from->kind == ON_DEVICE ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

static void copy(program *p)
{
    unsigned which = take_below(p, BUFFERS), other = take_below(p, BUFFERS - 1);
    buffer *to = &p->buffers[which], *from = &p->buffers[other < which ? other : other + 1];
    unsigned at = take_below(p, BYTES), source = take_below(p, BYTES);
    unsigned size = take_below(p, BYTES - (at > source ? at : source) + 1);
    int stream = (int)take_below(p, STREAMS);
    enum cudaMemcpyKind kind = kind_of(p, to, from);
    order(p, from, stream);
    order(p, to, stream);
    cudaError_t result = stream == LEGACY && (take(p) & 1)
                             ? cudaMemcpy(to->memory + at, from->memory + source, size, kind)
                             : cudaMemcpyAsync(to->memory + at, from->memory + source, size, kind,
                                               p->streams[stream]);
    FUZZ_REQUIRE(result == cudaSuccess);
    memcpy(to->expected + at, from->expected + source, size);
    touch(p, from, stream);
    touch(p, to, stream);
}

/* The host's own memory: pageable memory is the host's again when a copy from or to it returns. */
static void write_on_host(program *p)
{
    buffer *b = &p->buffers[DEVICE_BUFFERS + take_below(p, PINNED_BUFFERS + PAGEABLE_BUFFERS)];
    unsigned from = take_below(p, BYTES), size = take_below(p, BYTES - from + 1);
    int value = take(p);
    if (b->by >= 0) {
        wait_on_host(p, b);
    }
    memset(b->memory + from, value, size);
    memset(b->expected + from, value, size);
}

static void check(program *p, buffer *b)
{
    unsigned char found[BYTES];
    if (b->by >= 0) {
        wait_on_host(p, b);
    }
    if (b->kind == ON_DEVICE) {
        FUZZ_REQUIRE(gmd_sim_peek((uintptr_t)b->memory, found, BYTES) == 0);
    } else {
        memcpy(found, b->memory, BYTES);
    }
    FUZZ_REQUIRE(memcmp(found, b->expected, BYTES) == 0);
}

static void replace_memory(program *p)
{
    buffer *b = &p->buffers[take_below(p, DEVICE_BUFFERS + PINNED_BUFFERS)];
    FUZZ_REQUIRE((b->kind == ON_DEVICE ? cudaFree(b->memory) : cudaFreeHost(b->memory)) ==
                 cudaSuccess);
    memset(b->expected, 0, BYTES);
    make_buffer(b, b->kind);
}

static void replace_stream(program *p)
{
    unsigned which = PER_THREAD + 1 + take_below(p, STREAMS - PER_THREAD - 1);
    FUZZ_REQUIRE(cudaStreamDestroy(p->streams[which]) == cudaSuccess);
    make_stream(p, which);
}

static void step(program *p)
{
    switch (take_below(p, 16)) {
    case 0:
    case 1:
    case 2:
        fill(p);
        break;
    case 3:
        write_on_host(p);
        break;
    case 4:
        check(p, &p->buffers[take_below(p, BUFFERS)]);
        break;
    case 5:
        gmd_sim_advance((uint64_t)take(p) * 50);
        break;
    case 6:
        replace_stream(p);
        break;
    case 7:
        replace_memory(p);
        break;
    case 8:
        FUZZ_REQUIRE(gmd_sim_launch(p->streams[take_below(p, STREAMS)], (uint64_t)take(p) * 100,
                                    NULL, 0) == cudaSuccess);
        break;
    default:
        copy(p);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    program p = {.next = data, .end = data + size};
    set_up(&p);
    while (p.next < p.end) {
        step(&p);
    }
    for (unsigned i = 0; i < BUFFERS; i++) {
        check(&p, &p.buffers[i]);
    }
    FUZZ_REQUIRE(gmd_sim_misuse_count() == 0);
    return 0;
}
