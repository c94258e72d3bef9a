#include "gmd_board.h"

#include <errno.h>
#include <sys/mman.h>

gmd_status gmd_board_open(gmd_board **board, gmd_error *error)
{
    pthread_mutexattr_t attributes;
    gmd_board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *board = NULL;
    if (b == MAP_FAILED) {
        return gmd_fail(error, GMD_NO_MEMORY, "no memory to share findings in");
    }
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&b->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    *board = b;
    return GMD_OK;
}

void gmd_board_close(gmd_board *board)
{
    if (board) {
        pthread_mutex_destroy(&board->lock);
        munmap(board, sizeof *board);
    }
}

/* An entry is counted when it is whole, so that a process that died in between did no harm. */
static void lock(gmd_board *b)
{
    if (pthread_mutex_lock(&b->lock) == EOWNERDEAD) {
        pthread_mutex_consistent(&b->lock);
    }
}

static gmd_finding *find(gmd_board *b, const gmd_identity *cause)
{
    for (size_t i = 0; i < b->count; i++) {
        if (gmd_identity_equal(&b->items[i].cause, cause)) {
            return &b->items[i];
        }
    }
    return NULL;
}

bool gmd_board_hit(gmd_board *b, const gmd_identity *cause)
{
    lock(b);
    gmd_finding *f = find(b, cause);
    if (f) {
        f->hits++;
    }
    pthread_mutex_unlock(&b->lock);
    return f != NULL;
}

bool gmd_board_claim(gmd_board *b, const gmd_identity *cause)
{
    lock(b);
    bool is_free = !find(b, cause) && b->count < GMD_BOARD_MAX;
    if (is_free) {
        b->items[b->count] = (gmd_finding){.cause = *cause, .hits = 1};
        b->count++;
    }
    pthread_mutex_unlock(&b->lock);
    return is_free;
}

void gmd_board_publish(gmd_board *b, const gmd_finding *finding)
{
    lock(b);
    gmd_finding *f = find(b, &finding->cause);
    if (f) {
        uint64_t hits = f->hits;
        *f = *finding;
        f->hits = hits;
    }
    pthread_mutex_unlock(&b->lock);
}
