#include "reading.h"

#include "values.h"

#include "gmd_clock.h"
#include "gmd_size.h"
#include "gmd_status_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* --- the option ------------------------------------------------------------------------------ */

enum { KEY_MAX_MEMORY = 0x7f0 };

static const struct argp_option reading_options[] = {
    {"max-memory", KEY_MAX_MEMORY, "SIZE", 0,
     "the most memory that reading a file may take (half of the machine's)", 11},
    {0},
};

static error_t parse_reading(int key, char *text, struct argp_state *state)
{
    cli_reading *reading = state->input;
    if (key != KEY_MAX_MEMORY) {
        return ARGP_ERR_UNKNOWN;
    }
    cli_need_size(state, "--max-memory", text, GMD_MIB, 16384 * GMD_GIB, &reading->max_bytes);
    return 0;
}

const struct argp cli_reading_argp = {.options = reading_options, .parser = parse_reading};

/* --- the status line ------------------------------------------------------------------------- */

enum { FIRST_AFTER_MS = 1000, AGAIN_AFTER_MS = 500 };

/* Resident, in bytes; getrusage() has what the program before this one in the process took, too. */
static uint64_t memory_taken(void)
{
    uint64_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%*u %" SCNu64, &pages) != 1) { /* NOLINT(cert-err34-c): the kernel's */
            pages = 0;
        }
        fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void tell(const cli_read *read, double seconds)
{
    char size[24];
    fprintf(stderr, GMD_STATUS_BEGIN "%3.0f s reading, %s of memory: %.200s" GMD_STATUS_END,
            seconds, gmd_format_size(memory_taken(), size), read->path);
}

static struct timespec after(int milliseconds)
{
    const long ms = 1000000, s = 1000 * ms; /* in nanoseconds */
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += milliseconds / 1000;
    at.tv_nsec += milliseconds % 1000 * ms;
    at.tv_sec += at.tv_nsec / s;
    at.tv_nsec %= s;
    return at;
}

static void *tell_on(void *context)
{
    cli_read *read = context;
    double begin = gmd_clock_s();
    bool has_told = false;
    pthread_mutex_lock(&read->lock);
    for (struct timespec at = after(FIRST_AFTER_MS); !read->has_ended; at = after(AGAIN_AFTER_MS)) {
        while (!read->has_ended &&
               pthread_cond_timedwait(&read->is_over, &read->lock, &at) != ETIMEDOUT) {
        }
        if (!read->has_ended) {
            tell(read, gmd_clock_s() - begin);
            has_told = true;
        }
    }
    pthread_mutex_unlock(&read->lock);
    if (has_told) {
        fputs(GMD_STATUS_CLEAR, stderr);
    }
    return NULL;
}

/* Where there can be no thread there is no line. */
static void begin_telling(cli_read *read)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&read->is_over, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&read->lock, NULL);
    read->has_teller = pthread_create(&read->teller, NULL, tell_on, read) == 0;
}

/* --- a file ---------------------------------------------------------------------------------- */

void cli_read_begin(cli_read *read, const cli_reading *reading, const char *path)
{
    *read = (cli_read){.path = path};
    if (reading->shows_progress) {
        begin_telling(read);
    }
    gmd_memory_bound_begin(&read->bound, reading->max_bytes);
}

gmd_status cli_read_end(cli_read *read, gmd_status status, gmd_error *error)
{
    status = gmd_memory_bound_end(&read->bound, read->path, status, error);
    if (read->has_teller) {
        pthread_mutex_lock(&read->lock);
        read->has_ended = true;
        pthread_cond_signal(&read->is_over);
        pthread_mutex_unlock(&read->lock);
        pthread_join(read->teller, NULL);
    }
    return status;
}
