/* gmd_corpus.h - the inputs that a campaign goes on from: those that brought the allocator into a
 * state that no earlier one had. In memory, and as text traces in a folder, where other campaigns
 * and other processes of this one find them.
 *
 * Thread safety: none; processes may share a folder. */
#ifndef GMD_CORPUS_H
#define GMD_CORPUS_H

#include "gmd_random.h"
#include "gmd_trace.h"

typedef struct gmd_corpus_entry {
    uint8_t *bytes; /* gmd_input.h */
    size_t size;
    uint32_t fresh;  /* features that it was the first to have */
    uint32_t chosen; /* how often something was made of it */
} gmd_corpus_entry;

typedef struct gmd_corpus { /* zero-initialised: empty, and in memory only */
    gmd_corpus_entry *entries;
    size_t count, capacity;
    const char *folder; /* NULL: none */
    uint64_t *known;    /* by hash of the text: open addressing, 0 is empty */
    size_t known_count, known_capacity;
    size_t unwritten; /* inputs that could not be written to the folder */
    char unwritten_first[256];
} gmd_corpus;

/* Takes an input in, and writes it to the folder under a name made of its contents. One that is
 * there already, or that inputs cannot hold, is left out; one that cannot be written is counted. */
gmd_status gmd_corpus_add(gmd_corpus *corpus, const gmd_trace *trace, uint32_t fresh,
                          gmd_error *error);

/* Asks for one entry more often than for another the more was new with it and the less often it
 * came so far. NULL: the corpus is empty. */
gmd_corpus_entry *gmd_corpus_choose(gmd_corpus *corpus, gmd_random *random);

/* Reads what is in the folder and not in the corpus, and hands out each as a trace, which is the
 * callee's to free; it decides whether to take it in (gmd_corpus_add). A file that is no input is
 * skipped and counted in `unreadable`; the first such is named in `error`. */
typedef gmd_status gmd_corpus_visit_fn(void *context, gmd_trace *trace);
gmd_status gmd_corpus_read(gmd_corpus *corpus, gmd_corpus_visit_fn *visit, void *context,
                           size_t *unreadable, gmd_error *error);

/* For assertions: the sentence that does not hold; NULL: all does. */
const char *gmd_corpus_violation(const gmd_corpus *corpus);

void gmd_corpus_free(gmd_corpus *corpus);

#endif
