#define _GNU_SOURCE /* sched_setaffinity, RUSAGE_THREAD */
#include "crew.h"

#include "clock.h"
#include "cores.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#define PAIRS_BETWEEN_LOOKS 64   /* at whether the round is over */
#define WARM_UP_PAIRS       1024 /* untimed, at the start of each round */
#define SPINS_BEFORE_YIELD  2000

/* All start together: the first pairs of a thread without rivals would be the cheapest. Where there
 * are fewer cores than threads, those that wait must give theirs away. */
static void wait_for_all(bench_crew *crew)
{
    atomic_fetch_add(&crew->ready, 1);
    for (uint32_t spins = 0; atomic_load(&crew->ready) < crew->count; spins++) {
        if (spins > SPINS_BEFORE_YIELD) {
            sched_yield();
        }
    }
}

static void work(bench_member *m)
{
    bench_crew *crew = m->crew;
    const bench_calls *calls = crew->calls;
    uint64_t bytes = crew->of->bytes, pairs = 0;
    m->is_refused = !bench_pairs(calls, bytes, m->stream, WARM_UP_PAIRS);
    wait_for_all(crew);
    long preemptions = bench_preemptions();
    uint64_t start = bench_now_ns();
    while (!m->is_refused && !atomic_load_explicit(&crew->stop, memory_order_relaxed)) {
        m->is_refused = !bench_pairs(calls, bytes, m->stream, PAIRS_BETWEEN_LOOKS);
        pairs += PAIRS_BETWEEN_LOOKS;
    }
    m->elapsed_ns = bench_now_ns() - start;
    m->pairs = pairs;
    m->is_disturbed = bench_preemptions() != preemptions;
}

static void *serve(void *context)
{
    bench_member *m = context;
    bench_crew *crew = m->crew;
    uint32_t round = 0;
    if (m->core >= 0) {
        bench_cores_pin(m->core);
    }
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (crew->round == round && !crew->is_over) {
            pthread_cond_wait(&crew->changed, &crew->lock);
        }
        if (crew->is_over) {
            break;
        }
        round = crew->round;
        pthread_mutex_unlock(&crew->lock);
        work(m);
        pthread_mutex_lock(&crew->lock);
        crew->done++;
        pthread_cond_broadcast(&crew->changed);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

gmd_status bench_crew_open(bench_crew *crew, const bench_calls *calls, const benchmark *of,
                           const int *cores, uint32_t core_count, gmd_error *error)
{
    memset(crew, 0, sizeof *crew);
    crew->calls = calls;
    crew->of = of;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->changed, NULL);
    while (crew->count < of->threads) {
        uint32_t i = crew->count;
        bench_member *m = &crew->members[i];
        *m = (bench_member){
            .crew = crew, .stream = calls->streams[i], .core = i < core_count ? cores[i] : -1};
        int failure = pthread_create(&m->thread, NULL, serve, m);
        if (failure) {
            bench_crew_close(crew);
            return gmd_fail(error, GMD_FAILED, "no thread %u of %u: %s", i + 1, of->threads,
                            strerror(failure));
        }
        crew->count++;
    }
    return GMD_OK;
}

static void run_round(bench_crew *crew, uint64_t duration_ns)
{
    const struct timespec tick = {.tv_nsec = 20000};
    struct timespec duration = {.tv_sec = (time_t)(duration_ns / 1000000000u),
                                .tv_nsec = (long)(duration_ns % 1000000000u)};
    atomic_store(&crew->ready, 0);
    atomic_store(&crew->stop, false);
    pthread_mutex_lock(&crew->lock);
    crew->done = 0;
    crew->round++;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    while (atomic_load(&crew->ready) < crew->count) {
        nanosleep(&tick, NULL);
    }
    nanosleep(&duration, NULL);
    atomic_store(&crew->stop, true);
    pthread_mutex_lock(&crew->lock);
    while (crew->done < crew->count) {
        pthread_cond_wait(&crew->changed, &crew->lock);
    }
    pthread_mutex_unlock(&crew->lock);
}

gmd_status bench_crew_measure(bench_crew *crew, uint64_t duration_ns, double *ns_per_op,
                              bool *is_disturbed, gmd_error *error)
{
    double pairs_per_ns = 0;
    run_round(crew, duration_ns);
    *is_disturbed = false;
    for (uint32_t i = 0; i < crew->count; i++) {
        const bench_member *m = &crew->members[i];
        if (m->is_refused) {
            return gmd_fail(error, GMD_FAILED, "malloc returned NULL on thread %u", i + 1);
        }
        if (m->elapsed_ns) {
            pairs_per_ns += (double)m->pairs / (double)m->elapsed_ns;
        }
        *is_disturbed = *is_disturbed || m->is_disturbed;
    }
    if (!(pairs_per_ns > 0)) {
        return gmd_fail(error, GMD_FAILED, "the threads got nothing done in %.1f ms",
                        (double)duration_ns / 1e6);
    }
    *ns_per_op = 1 / pairs_per_ns;
    return GMD_OK;
}

void bench_crew_close(bench_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->is_over = true;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < crew->count; i++) {
        pthread_join(crew->members[i].thread, NULL);
    }
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->lock);
}
