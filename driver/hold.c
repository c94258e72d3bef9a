#include "hold.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LONGEST_NS 50000000 /* of the host's clock: who waits for held work waits no longer */

struct gmd_holds {
    cudaError_t (*launch)(cudaStream_t stream, void (*function)(void *), void *data);
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t now_ns;   /* of the trace's clock */
    uint64_t releases; /* so far */
    uint64_t waiting;  /* host functions queued or running */
};

typedef struct hold {
    gmd_holds *holds;
    uint64_t until_ns, releases; /* it ends at that time, or with the next release */
} hold;

gmd_status gmd_holds_open(gmd_holds **holds, const gmd_runtime *runtime, gmd_error *error)
{
    *holds = NULL;
    void *library = dlopen(runtime->path, RTLD_NOW | RTLD_NOLOAD);
    void *launch = library ? dlsym(library, "cudaLaunchHostFunc") : NULL;
    if (!launch) {
        return GMD_OK;
    }
    gmd_holds *h = calloc(1, sizeof *h);
    if (!h) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a device's pending work");
    }
    memcpy(&h->launch, &launch, sizeof launch); /* ISO C has no cast from object to function */
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&h->lock, NULL);
    *holds = h;
    return GMD_OK;
}

static void wait_until_released(void *data)
{
    hold *one = data;
    gmd_holds *h = one->holds;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += LONGEST_NS;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_mutex_lock(&h->lock);
    bool is_over = false;
    while (!is_over && h->releases == one->releases && h->now_ns < one->until_ns) {
        is_over = pthread_cond_timedwait(&h->changed, &h->lock, &end) != 0;
    }
    h->waiting--;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    free(one);
}

cudaError_t gmd_hold(gmd_holds *h, cudaStream_t stream, uint64_t duration_ns)
{
    hold *one = h ? malloc(sizeof *one) : NULL;
    if (!one) { /* without it the work only ends sooner */
        return cudaSuccess;
    }
    pthread_mutex_lock(&h->lock);
    *one = (hold){.holds = h, .until_ns = h->now_ns + duration_ns, .releases = h->releases};
    h->waiting++;
    pthread_mutex_unlock(&h->lock);
    cudaError_t result = h->launch(stream, wait_until_released, one);
    if (result != cudaSuccess) {
        pthread_mutex_lock(&h->lock);
        h->waiting--;
        pthread_mutex_unlock(&h->lock);
        free(one);
    }
    return result;
}

void gmd_holds_advance(gmd_holds *h, uint64_t duration_ns)
{
    if (h) {
        pthread_mutex_lock(&h->lock);
        h->now_ns += duration_ns;
        pthread_cond_broadcast(&h->changed);
        pthread_mutex_unlock(&h->lock);
    }
}

void gmd_holds_release(gmd_holds *h)
{
    if (h) {
        pthread_mutex_lock(&h->lock);
        h->releases++;
        pthread_cond_broadcast(&h->changed);
        pthread_mutex_unlock(&h->lock);
    }
}

/* Host functions still queued behind other work come one after the other; each is let go at once,
 * since the count of releases has moved. On a device that has died none comes any more. */
void gmd_holds_close(gmd_holds *h)
{
    if (!h) {
        return;
    }
    gmd_holds_release(h);
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 2;
    pthread_mutex_lock(&h->lock);
    int timed_out = 0;
    while (h->waiting && !timed_out) {
        timed_out = pthread_cond_timedwait(&h->changed, &h->lock, &end);
    }
    bool is_idle = h->waiting == 0;
    pthread_mutex_unlock(&h->lock);
    if (is_idle) { /* else what is left may still look at it */
        pthread_cond_destroy(&h->changed);
        pthread_mutex_destroy(&h->lock);
        free(h);
    }
}
