#include "gmd_threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*work)(void *context); /* NULL: nothing to do, or done */
    void *context;
    bool is_ending;
};

static void *serve(void *argument)
{
    worker *w = argument;
    pthread_mutex_lock(&w->lock);
    while (!w->is_ending) {
        if (w->work) {
            w->work(w->context);
            w->work = NULL;
            pthread_cond_broadcast(&w->changed);
        } else {
            pthread_cond_wait(&w->changed, &w->lock);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static gmd_status start(worker **out, gmd_error *error)
{
    worker *w = calloc(1, sizeof *w);
    if (!w) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a thread");
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    int result = pthread_create(&w->thread, NULL, serve, w);
    if (result != 0) {
        free(w);
        return gmd_fail(error, GMD_FAILED, "a thread cannot be started: %s", strerror(result));
    }
    *out = w;
    return GMD_OK;
}

gmd_status threads_call(host_threads *threads, unsigned index, void (*work)(void *context),
                        void *context, gmd_error *error)
{
    if (index == threads->current) {
        work(context);
        return GMD_OK;
    }
    worker **w = &threads->workers[index];
    gmd_status status = *w ? GMD_OK : start(w, error);
    if (status != GMD_OK) {
        return status;
    }
    threads->current = index;
    pthread_mutex_lock(&(*w)->lock);
    (*w)->work = work;
    (*w)->context = context;
    pthread_cond_broadcast(&(*w)->changed);
    while ((*w)->work) {
        pthread_cond_wait(&(*w)->changed, &(*w)->lock);
    }
    pthread_mutex_unlock(&(*w)->lock);
    threads->current = 0;
    return GMD_OK;
}

void threads_join(host_threads *threads)
{
    for (unsigned i = 0; i < GMD_MAX_THREADS; i++) {
        worker *w = threads->workers[i];
        if (w) {
            pthread_mutex_lock(&w->lock);
            w->is_ending = true;
            pthread_cond_broadcast(&w->changed);
            pthread_mutex_unlock(&w->lock);
            pthread_join(w->thread, NULL);
            pthread_cond_destroy(&w->changed);
            pthread_mutex_destroy(&w->lock);
            free(w);
            threads->workers[i] = NULL;
        }
    }
}
