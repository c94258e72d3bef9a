#include "crew.h"

#include "replayer.h"

#include "gmd_min.h"
#include "gmd_size.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE_BYTES (2 * GMD_MIB) /* what the device hands out at least */

enum { PROCESS_MAX = 64 };

typedef struct crew_shared {
    _Atomic size_t next; /* trial that nobody has begun */
    _Atomic size_t done;
    trial trials[];
} crew_shared;

/* --- the smallest memory --------------------------------------------------------------------- */

typedef struct search {
    const crew *crew;
    replayer *replayer;
    trial *trial;
    gmd_error *error;
} search;

/* Fits: every request is served. */
static gmd_status try_memory(search *s, uint64_t bytes, bool *fits, uint64_t *peak)
{
    trial_result result;
    const trial_memory memory = {.capacity_bytes = bytes,
                                 .limit_bytes = s->crew->has_limit ? bytes : 0};
    s->trial->replays++;
    gmd_status status = replayer_run(s->replayer, s->trial->conf, &memory, true, &result, s->error);
    *fits = status == GMD_OK && result.refused == 0;
    *peak = result.peak_reserved;
    return status;
}

static uint64_t in_pages(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* A memory that it fits in. 0: there is none of interest. */
static gmd_status find_enough(search *s, uint64_t *enough)
{
    bool fits;
    uint64_t peak, beat = s->trial->must_beat;
    *enough = beat > PAGE_BYTES ? beat - PAGE_BYTES : s->crew->most_memory;
    gmd_status status = try_memory(s, *enough, &fits, &peak);
    if (status == GMD_OK && fits && gmd_min(in_pages(peak), *enough) < *enough) {
        uint64_t first = *enough; /* as much as was reserved is enough, as a rule */
        *enough = in_pages(peak);
        status = try_memory(s, *enough, &fits, &peak);
        *enough = fits ? *enough : first;
        fits = true;
    }
    *enough = fits ? *enough : 0;
    return status;
}

static gmd_status find_smallest(search *s)
{
    uint64_t low = s->crew->plan->bounds.reserved, high, peak;
    gmd_status status = find_enough(s, &high);
    low = low > PAGE_BYTES ? in_pages(low) - PAGE_BYTES : 0; /* it does not fit in that */
    while (status == GMD_OK && high && high - gmd_min(low, high) > PAGE_BYTES) {
        bool fits;
        uint64_t middle = low + (high - low) / 2 / PAGE_BYTES * PAGE_BYTES;
        status = try_memory(s, middle, &fits, &peak);
        if (fits) {
            high = middle;
        } else {
            low = middle;
        }
    }
    s->trial->smallest = status == GMD_OK ? high : 0;
    return status;
}

/* --- a process -------------------------------------------------------------------------------- */

static void carry_out(const crew *c, replayer *r, trial *t)
{
    gmd_error error = {""};
    search s = {.crew = c, .replayer = r, .trial = t, .error = &error};
    t->replays = 1;
    t->status = replayer_run(r, t->conf, &t->memory, false, &t->result, &error);
    if (t->status == GMD_OK && t->finds_smallest) {
        t->status = find_smallest(&s);
    }
    snprintf(t->error, sizeof t->error, "%s", error.text);
}

__attribute__((noreturn)) static void work(const crew *c, crew_shared *shared, size_t count)
{
    replayer r;
    gmd_error error = {""};
    gmd_status status =
        replayer_open(&r, &c->plan->steps, &c->plan->places, c->lib_directory, &error);
    for (size_t i; (i = atomic_fetch_add(&shared->next, 1)) < count;) {
        trial *t = &shared->trials[i];
        if (status == GMD_OK) {
            carry_out(c, &r, t);
        } else {
            t->status = status;
            snprintf(t->error, sizeof t->error, "%s", error.text);
        }
        atomic_fetch_add(&shared->done, 1);
    }
    replayer_close(&r);
    _exit(0);
}

/* --- all of them -------------------------------------------------------------------------------
 */

static void wait_for(const pid_t *processes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        int how;
        while (waitpid(processes[i], &how, 0) < 0 && errno == EINTR) {
        }
    }
}

static gmd_status work_together(const crew *c, crew_shared *shared, size_t count, gmd_error *error)
{
    pid_t processes[PROCESS_MAX];
    unsigned started = 0;
    size_t wanted = gmd_min(gmd_min(c->processes, PROCESS_MAX), count);
    fflush(NULL); /* or a child would print what is buffered here once more */
    while (started < wanted) {
        pid_t process = fork();
        if (process == 0) {
            work(c, shared, count);
        }
        if (process < 0) {
            break;
        }
        processes[started++] = process;
    }
    wait_for(processes, started);
    if (!started) {
        return gmd_fail(error, GMD_FAILED, "fork: %s", strerror(errno));
    }
    return atomic_load(&shared->done) == count
               ? GMD_OK
               : gmd_fail(error, GMD_FAILED,
                          "a process that replayed the job ended before its end");
}

gmd_status crew_run(const crew *c, trial *trials, size_t count, gmd_error *error)
{
    if (!count) {
        return GMD_OK;
    }
    size_t bytes = sizeof(crew_shared) + count * sizeof *trials;
    crew_shared *shared =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return gmd_fail(error, GMD_NO_MEMORY, "no memory to share between processes");
    }
    memcpy(shared->trials, trials, count * sizeof *trials);
    gmd_status status = work_together(c, shared, count, error);
    if (status == GMD_OK) {
        memcpy(trials, shared->trials, count * sizeof *trials);
    }
    munmap(shared, bytes);
    return status;
}
