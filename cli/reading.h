/* reading.h - files that a command reads: how much memory that may take (--max-memory), and a
 * status line where it takes longer than a second. */
#ifndef CLI_READING_H
#define CLI_READING_H

#include "gmd_error.h"
#include "gmd_memory_bound.h"

#include <argp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct cli_reading { /* zero-initialised: the default bound, quiet */
    uint64_t max_bytes;      /* --max-memory; 0: not given */
    bool shows_progress;
} cli_reading;

/* The option, as an argp child whose input is a cli_reading. */
extern const struct argp cli_reading_argp;

typedef struct cli_read { /* one that is under way */
    gmd_memory_bound bound;
    const char *path;
    pthread_t teller;
    pthread_mutex_t lock;
    pthread_cond_t is_over;
    bool has_teller, has_ended;
} cli_read;

void cli_read_begin(cli_read *read, const cli_reading *reading, const char *path);

/* Gives the status of the reading, or that it takes more memory than it may. */
gmd_status cli_read_end(cli_read *read, gmd_status status, gmd_error *error);

#endif
