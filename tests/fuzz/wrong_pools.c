/* The reference allocator with a defect of private pools, named by the environment variable
 * GMD_DEFECT: what fuzz_differential must come upon. All else is the reference's, which this
 * library is linked with.
 *
 * - any_stream: a pool that is begun for one stream takes the requests of all
 * - one_pool:   all pools are one, so that the memory of one serves another */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "gmd_abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int begin_fn(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context);
typedef int end_fn(int device, const uint64_t id[2], void **context);
typedef int release_fn(int device, const uint64_t id[2]);

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

EXPORT begin_fn gmd_begin_pool;
EXPORT end_fn gmd_end_pool;
EXPORT release_fn gmd_release_pool;

int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context)
{
    begin_fn *begin;
    *(void **)&begin = in_reference("gmd_begin_pool");
    return begin(device, name_of(id), has_defect("any_stream") ? NULL : accepts, context);
}

int gmd_end_pool(int device, const uint64_t id[2], void **context)
{
    end_fn *end;
    *(void **)&end = in_reference("gmd_end_pool");
    return end(device, name_of(id), context);
}

int gmd_release_pool(int device, const uint64_t id[2])
{
    release_fn *release;
    *(void **)&release = in_reference("gmd_release_pool");
    return release(device, name_of(id));
}
