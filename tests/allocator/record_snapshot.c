/* record_snapshot FILE CONF LIMIT MODE: random requests on the reference allocator and the
 * simulated device, recorded by the allocator itself from the first one on. `gmd replay --check` of
 * the snapshot must be exact, whatever the settings: then nothing is missing in it, nothing in the
 * wrong order, and its blocks are what the events lead to.
 *
 * LIMIT: MiB of reserved memory, 0: none. MODE: `streams`, three of them and one thread; `uses`,
 * where blocks are used on other streams, too, and are freed before that is done, with stacks;
 * `threads`, four at a time, each on a stream of its own. */
#include "gmd_allocator.h"
#include "gmd_sim.h"
#include "gmd_size.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 3, LIVE = 64, THREADS = 4, REQUESTS = 4000 };

typedef struct live_block {
    void *address;
    cudaStream_t stream;
} live_block;

typedef struct job {
    gmd_allocator *allocator;
    cudaStream_t streams[STREAMS];
    unsigned stream_count;
    bool uses_elsewhere; /* and no empty_cache: a replay could not tell what it completed */
    uint64_t random;
    pthread_t thread;
} job;

static uint64_t next_random(job *j)
{
    j->random = j->random * 6364136223846793005u + 1442695040888963407u;
    return j->random >> 33;
}

static uint64_t next_size(job *j)
{
    static const uint64_t most[] = {4096, GMD_MIB, 8 * GMD_MIB, 48 * GMD_MIB};
    return next_random(j) % most[next_random(j) % 4] + 1;
}

static void use_elsewhere(job *j, live_block *b)
{
    cudaStream_t other = j->streams[next_random(j) % j->stream_count];
    if (other != b->stream) {
        gmd_allocator_record_stream(j->allocator, b->address, other);
        cudaMemsetAsync(b->address, 0, 1, other);
    }
}

static void *work(void *context)
{
    job *j = context;
    live_block live[LIVE] = {0};
    for (int i = 0; i < REQUESTS; i++) {
        live_block *b = &live[next_random(j) % LIVE];
        if (b->address) {
            gmd_allocator_free(j->allocator, b->address, 0, b->stream);
            b->address = NULL;
        } else {
            b->stream = j->streams[next_random(j) % j->stream_count];
            b->address = gmd_allocator_malloc(j->allocator, next_size(j), 0, b->stream);
            if (b->address && j->uses_elsewhere && next_random(j) % 8 == 0) {
                use_elsewhere(j, b);
            }
        }
        if (!j->uses_elsewhere && next_random(j) % 1000 == 0) {
            gmd_allocator_empty_cache(j->allocator);
        }
    }
    return NULL;
}

static void run(gmd_allocator *allocator, const char *mode)
{
    job jobs[THREADS];
    bool has_threads = strcmp(mode, "threads") == 0;
    unsigned job_count = has_threads ? THREADS : 1;
    for (unsigned i = 0; i < job_count; i++) {
        jobs[i] = (job){.allocator = allocator, .random = i + 1};
        jobs[i].uses_elsewhere = strcmp(mode, "uses") == 0;
        jobs[i].stream_count = has_threads ? 1 : STREAMS;
        for (unsigned k = 0; k < jobs[i].stream_count; k++) {
            cudaStreamCreateWithFlags(&jobs[i].streams[k], cudaStreamNonBlocking);
        }
    }
    for (unsigned i = 1; i < job_count; i++) {
        pthread_create(&jobs[i].thread, NULL, work, &jobs[i]);
    }
    work(&jobs[0]);
    for (unsigned i = 1; i < job_count; i++) {
        pthread_join(jobs[i].thread, NULL);
    }
}

static gmd_status record(gmd_allocator *allocator, const char *const *arguments, gmd_error *error)
{
    uint64_t limit = strtoull(arguments[3], NULL, 10) * GMD_MIB;
    size_t free_bytes, total;
    cudaMemGetInfo(&free_bytes, &total);
    if (limit && !gmd_allocator_set_memory_fraction(allocator, (double)limit / (double)total, 0)) {
        return gmd_fail(error, GMD_FAILED, "limit %s MiB", arguments[3]);
    }
    bool has_uses = strcmp(arguments[4], "uses") == 0;
    gmd_status status = gmd_allocator_record_history(
        allocator, UINT64_MAX, has_uses ? GMD_STACKS_ALL : GMD_STACKS_OFF, error);
    if (status == GMD_OK) {
        run(allocator, arguments[4]);
        status = gmd_allocator_dump_snapshot(allocator, arguments[1], error);
    }
    return status;
}

int main(int argc, char **argv)
{
    gmd_allocator *allocator = NULL;
    gmd_error error = {""};
    if (argc != 5) {
        fprintf(stderr, "usage: record_snapshot FILE CONF LIMIT MODE\n");
        return 2;
    }
    gmd_status status = gmd_allocator_create(&allocator, 1, argv[2], &error);
    if (status == GMD_OK) {
        status = record(allocator, (const char *const *)argv, &error);
    }
    gmd_allocator_destroy(allocator);
    if (status != GMD_OK) {
        fprintf(stderr, "record_snapshot: %s\n", error.text);
    }
    return status == GMD_OK ? 0 : 1;
}
