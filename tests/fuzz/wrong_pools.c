/* The reference allocator with a defect of private pools, named by the environment variable
 * GMD_DEFECT: what fuzz_differential must come upon. All else is the reference's, which this
 * library is linked with.
 *
 * - any_stream:         a pool that is begun for one stream takes the requests of all
 * - one_pool:           all pools are one, so that the memory of one serves another
 * - first_stream:       of a capture's streams the pool takes the requests of the first only
 * - graph_holds_nothing: when a capture is over its pool is released, while its graph works in it
 * - gives_back:         short of memory while a stream is captured, the cache goes back */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "gmd_abi.h"
#include "gmd_cuda.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { HELD_MAX = 64 };

typedef void *malloc_fn(size_t size, int device, cudaStream_t stream);
typedef void empty_cache_fn(void);
typedef int begin_fn(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context);
typedef int end_fn(int device, const uint64_t id[2], void **context);
typedef int release_fn(int device, const uint64_t id[2]);

/* The open pool, and what its caller gave. */
static struct {
    gmd_stream_filter *accepts;
    void *context;
    cudaStream_t first; /* that asked, if one has */
    uint64_t id[2];
    bool has_first, is_captured;
} opened;

static uint64_t
    released[HELD_MAX]; /* pools whose holder does not know it yet, once for each hold */
static int released_count;

static bool has_defect(const char *name)
{
    const char *defect = getenv("GMD_DEFECT");
    return defect && strcmp(defect, name) == 0;
}

static const uint64_t *name_of(const uint64_t id[2])
{
    static const uint64_t one[2] = {0, 1};
    return has_defect("one_pool") ? one : id;
}

static void *in_reference(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) {
        abort();
    }
    return function;
}

static int real_begin(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context)
{
    begin_fn *begin;
    *(void **)&begin = in_reference("gmd_begin_pool");
    return begin(device, name_of(id), accepts, context);
}

static int real_end(int device, const uint64_t id[2], void **context)
{
    end_fn *end;
    *(void **)&end = in_reference("gmd_end_pool");
    return end(device, name_of(id), context);
}

static int real_release(int device, const uint64_t id[2])
{
    release_fn *release;
    *(void **)&release = in_reference("gmd_release_pool");
    return release(device, name_of(id));
}

/* --- requests ---------------------------------------------------------------------------- */

static bool is_captured(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
           status != cudaStreamCaptureStatusNone;
}

/* The reference does not do it for an open pool of a graph: the pool is ended for the moment. */
static void give_back(int device)
{
    void *context;
    empty_cache_fn *empty_cache;
    *(void **)&empty_cache = in_reference("gmd_empty_cache");
    real_end(device, opened.id, &context);
    empty_cache();
    real_begin(device, opened.id, opened.accepts, context);
    real_release(device, opened.id);
}

EXPORT malloc_fn gmd_malloc;
void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    malloc_fn *serve;
    *(void **)&serve = in_reference("gmd_malloc");
    void *memory = serve(size, device, stream);
    bool gives_back = has_defect("gives_back");
    if ((gives_back || has_defect("graph_holds_nothing")) && is_captured(stream)) {
        opened.is_captured = true;
        if (!memory && gives_back) {
            give_back(device);
            memory = serve(size, device, stream);
        }
    }
    return memory;
}

/* --- pools ------------------------------------------------------------------------------- */

static bool accepts_first(void *context, cudaStream_t stream)
{
    (void)context;
    if (!opened.accepts(opened.context, stream)) {
        return false;
    }
    opened.first = opened.has_first ? opened.first : stream;
    opened.has_first = true;
    return stream == opened.first;
}

EXPORT begin_fn gmd_begin_pool;
int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context)
{
    memset(&opened, 0, sizeof opened);
    opened.accepts = accepts;
    opened.context = context;
    memcpy(opened.id, id, sizeof opened.id);
    if (accepts && has_defect("first_stream")) {
        accepts = accepts_first;
    }
    return real_begin(device, id, has_defect("any_stream") ? NULL : accepts, context);
}

EXPORT end_fn gmd_end_pool;
int gmd_end_pool(int device, const uint64_t id[2], void **context)
{
    int result = real_end(device, id, context);
    if (has_defect("graph_holds_nothing") && opened.is_captured && released_count < HELD_MAX) {
        real_release(device, id);
        released[released_count++] = id[1];
    }
    return result;
}

EXPORT release_fn gmd_release_pool;
int gmd_release_pool(int device, const uint64_t id[2])
{
    for (int i = 0; i < released_count; i++) {
        if (released[i] == id[1]) {
            released[i] = released[--released_count];
            return 0;
        }
    }
    return real_release(device, id);
}
