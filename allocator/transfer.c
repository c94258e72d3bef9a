#include "transfer.h"

#include "gmd_cuda_scope.h"

#include "gmd_min.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES  ((uint64_t)8 << 20) /* of the image, copied through one buffer */
#define SHARE_CHUNKS 8                   /* fewer for a thread are not worth one */
#define THREADS_MAX  16

typedef struct job {
    const transfer *of;
    _Atomic uint64_t next_chunk;
    _Atomic bool is_refused;
} job;

typedef struct buffer {
    cudaStream_t stream;
    unsigned char *bytes;   /* page-locked */
    uint64_t offset, count; /* the part of the image that is under way; count 0: none */
} buffer;

/* --- one chunk --------------------------------------------------------------------------- */

/* The first range that ends beyond the offset. */
static size_t first_range(const transfer *t, uint64_t offset)
{
    size_t low = 0, high = t->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->ranges[middle].offset + t->ranges[middle].size > offset) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static bool copy_part(const transfer *t, const buffer *b, const image_range *r)
{
    uint64_t end = b->offset + b->count, range_end = r->offset + r->size;
    uint64_t from = gmd_max(r->offset, b->offset);
    uint64_t to = gmd_min(range_end, end);
    void *device = (void *)(uintptr_t)(r->address + (from - r->offset));
    unsigned char *host = b->bytes + (from - b->offset);
    return cuda_succeeded(
        t->is_to_host
            ? cudaMemcpyAsync(host, device, to - from, cudaMemcpyDeviceToHost, b->stream)
            : cudaMemcpyAsync(device, host, to - from, cudaMemcpyHostToDevice, b->stream));
}

static bool start_chunk(const transfer *t, buffer *b, uint64_t chunk)
{
    b->offset = chunk * CHUNK_BYTES;
    uint64_t left = t->image_bytes - b->offset;
    b->count = gmd_min(left, CHUNK_BYTES);
    if (!t->is_to_host) {
        memcpy(b->bytes, t->image + b->offset, b->count);
    }
    for (size_t i = first_range(t, b->offset);
         i < t->range_count && t->ranges[i].offset < b->offset + b->count; i++) {
        if (!copy_part(t, b, &t->ranges[i])) {
            return false;
        }
    }
    return true;
}

static bool finish_chunk(const transfer *t, buffer *b)
{
    if (!b->count) {
        return true;
    }
    bool is_copied = cuda_succeeded(cudaStreamSynchronize(b->stream));
    if (is_copied && t->is_to_host) {
        memcpy(t->image + b->offset, b->bytes, b->count);
    }
    b->count = 0;
    return is_copied;
}

/* --- one thread -------------------------------------------------------------------------- */

static bool open_buffer(buffer *b)
{
    void *bytes = NULL;
    if (!cuda_succeeded(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking))) {
        b->stream = NULL;
        return false;
    }
    b->bytes = cuda_succeeded(cudaMallocHost(&bytes, CHUNK_BYTES)) ? bytes : NULL;
    return b->bytes;
}

static void close_buffer(const buffer *b)
{
    if (b->stream) {
        cuda_succeeded(cudaStreamSynchronize(b->stream));
        cuda_succeeded(cudaStreamDestroy(b->stream));
    }
    if (b->bytes) {
        cuda_succeeded(cudaFreeHost(b->bytes));
    }
}

/* While one buffer's copy of the device runs, the host copies to or from the other. */
static bool copy_chunks(job *j, buffer buffers[2])
{
    uint64_t chunks = (j->of->image_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    for (int turn = 0; !atomic_load(&j->is_refused); turn = !turn) {
        buffer *b = &buffers[turn];
        if (!finish_chunk(j->of, b)) {
            return false;
        }
        uint64_t chunk = atomic_fetch_add(&j->next_chunk, 1);
        if (chunk >= chunks) {
            return finish_chunk(j->of, &buffers[!turn]);
        }
        if (!start_chunk(j->of, b, chunk)) {
            return false;
        }
    }
    return true; /* another thread's copy was refused */
}

static void *work(void *argument)
{
    job *j = argument;
    buffer buffers[2] = {{0}};
    cuda_scope scope;
    bool is_entered = cuda_scope_enter(&scope, j->of->device);
    bool is_copied = is_entered && open_buffer(&buffers[0]) && open_buffer(&buffers[1]) &&
                     copy_chunks(j, buffers);
    if (!is_copied) {
        atomic_store(&j->is_refused, true);
    }
    if (is_entered) {
        close_buffer(&buffers[0]);
        close_buffer(&buffers[1]);
        cuda_scope_leave(&scope);
    }
    return NULL;
}

/* --- all of them ------------------------------------------------------------------------- */

static size_t helper_count(const transfer *t)
{
    uint64_t most = t->image_bytes / (SHARE_CHUNKS * CHUNK_BYTES);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors > 0 && most > (uint64_t)processors - 1) {
        most = (uint64_t)processors - 1;
    }
    return gmd_min(most, THREADS_MAX - 1);
}

/* The caller is one of them: fewer threads than wanted, or none, only cost time. */
bool transfer_run(const transfer *t)
{
    if (!t->range_count) {
        return true;
    }
    job j = {.of = t};
    pthread_t helpers[THREADS_MAX];
    size_t wanted = helper_count(t), count = 0;
    sigset_t all, before; /* signals are the program's own threads' */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (count < wanted && pthread_create(&helpers[count], NULL, work, &j) == 0) {
        count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(&j);
    while (count) {
        pthread_join(helpers[--count], NULL);
    }
    return !atomic_load(&j.is_refused);
}
