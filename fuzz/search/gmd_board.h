/* gmd_board.h - the findings that processes of one campaign share, so that each defect is minimised
 * and reported once. Plain memory that is mapped before the processes are forked.
 *
 * Thread safety: every function takes the board's lock, which outlives a process that dies with it.
 */
#ifndef GMD_BOARD_H
#define GMD_BOARD_H

#include "gmd_error.h"
#include "gmd_outcome.h"

#include <pthread.h>

enum { GMD_BOARD_MAX = 256 };

typedef struct gmd_finding {
    gmd_identity cause;
    gmd_violation violation; /* of the minimised case; its case_path is the file */
    uint64_t hits;           /* runs that ended with it */
    uint64_t run;            /* the first of them */
    double seconds;          /* until then, since the beginning of the search */
    size_t requests;         /* of the minimised case */
    double minimize_seconds; /* that it took to become so small */
    char unfinished[128];    /* why it may be larger than it need be; empty: it is the smallest */
    char unwritten[256]; /* why there is no file of the case; empty: there is, or none is wanted */
} gmd_finding;

typedef struct gmd_board {
    pthread_mutex_t lock;
    size_t count;
    gmd_finding items[GMD_BOARD_MAX];
} gmd_board;

gmd_status gmd_board_open(gmd_board **board, gmd_error *error);
void gmd_board_close(gmd_board *board); /* NULL is fine */

/* Counts a hit. False: nobody has found that yet. */
bool gmd_board_hit(gmd_board *board, const gmd_identity *cause);

/* True: it is the caller's to minimise and report, and others count it as found from now on. False:
 * it is somebody else's, or the board is full. */
bool gmd_board_claim(gmd_board *board, const gmd_identity *cause);

/* What came of a claim. */
void gmd_board_publish(gmd_board *board, const gmd_finding *finding);

#endif
