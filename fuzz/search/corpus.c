#include "gmd_corpus.h"

#include "gmd_assert.h"
#include "gmd_grow.h"
#include "gmd_hash.h"
#include "gmd_input.h"
#include "gmd_output.h"
#include "gmd_temporary.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MAX = 50000, CANDIDATES = 4 };
#define FILE_MAX ((off_t)4 << 20) /* a larger file is no input for a fuzzer */
#define AS_FILE                                                                                    \
    UINT64_C(0x5bd1e995a7c3f0d2) /* the name of a file that was read, taken in or not              \
                                  */

/* --- what is known ----------------------------------------------------------------------- */

static uint64_t hash_of(const void *bytes, size_t size)
{
    uint64_t h = gmd_hash_bytes(GMD_HASH_OF_NOTHING, bytes, size);
    return h ? h : 1;
}

static uint64_t *slot_of(uint64_t *slots, size_t capacity, uint64_t hash)
{
    size_t at = (size_t)(hash >> 7) & (capacity - 1);
    while (slots[at] && slots[at] != hash) {
        at = (at + 1) & (capacity - 1);
    }
    return &slots[at];
}

const char *gmd_corpus_violation(const gmd_corpus *c)
{
    size_t known = 0;
    if (c->known_capacity & (c->known_capacity - 1) || c->known_count > c->known_capacity) {
        return "the table of what is known has a power of two of places, and is never full";
    }
    for (size_t i = 0; i < c->known_capacity; i++) {
        known += c->known[i] != 0;
        if (c->known[i] && slot_of(c->known, c->known_capacity, c->known[i]) != &c->known[i]) {
            return "what is known is found in the table";
        }
    }
    for (size_t i = 0; i < c->count; i++) {
        if (!c->entries[i].bytes || c->entries[i].size < GMD_INPUT_HEADER) {
            return "each entry is an input";
        }
    }
    return known != c->known_count     ? "the table counts what is known"
           : c->count > c->known_count ? "each entry is known"
           : c->count > c->capacity    ? "the list of entries has room for them"
                                       : NULL;
}

/* Checked as often as the table grows: a walk for each input would cost the square of them. */
static bool grow_known(gmd_corpus *c)
{
    size_t capacity = c->known_capacity ? c->known_capacity * 2 : 1024;
    uint64_t *slots = calloc(capacity, sizeof *slots);
    if (!slots) {
        return false;
    }
    for (size_t i = 0; i < c->known_capacity; i++) {
        if (c->known[i]) {
            *slot_of(slots, capacity, c->known[i]) = c->known[i];
        }
    }
    free(c->known);
    c->known = slots;
    c->known_capacity = capacity;
    GMD_ASSERT_VALID(gmd_corpus_violation(c));
    return true;
}

/* False: it was there before, or there is no host memory to remember it. */
static bool is_new(gmd_corpus *c, uint64_t hash)
{
    if (c->known_count * 2 >= c->known_capacity && !grow_known(c)) {
        return false;
    }
    uint64_t *slot = slot_of(c->known, c->known_capacity, hash);
    bool is_there = *slot != 0;
    *slot = hash;
    c->known_count += !is_there;
    return !is_there;
}

/* --- taking in --------------------------------------------------------------------------- */

static gmd_status write_text(const gmd_trace *trace, char **text, size_t *size, gmd_error *error)
{
    FILE *out = open_memstream(text, size);
    gmd_status status = out ? gmd_trace_write(trace, out, error)
                            : gmd_fail(error, GMD_NO_MEMORY, "no host memory for an input");
    bool is_short = out && fclose(out) != 0;
    return status == GMD_OK && is_short
               ? gmd_fail(error, GMD_NO_MEMORY, "no host memory for an input")
               : status;
}

static bool write_file(const char *path, const char *text, size_t size)
{
    FILE *out = fopen(path, "we");
    bool is_written = out && fwrite(text, 1, size, out) == size;
    return out && fclose(out) == 0 && is_written;
}

/* Under another name first: who shares the folder sees whole files only. A full disk costs those
 * who share it the input, and this campaign nothing. */
static void save(gmd_corpus *c, uint64_t hash, const char *text, size_t size)
{
    char name[24], path[PATH_MAX], part[PATH_MAX];
    snprintf(name, sizeof name, "%016" PRIx64 ".gmd", hash);
    if (!is_new(c, hash_of(name, strlen(name)) ^ AS_FILE)) {
        return; /* another process had the same input, and this one has read it */
    }
    snprintf(path, sizeof path, "%.3900s/%s", c->folder, name);
    snprintf(part, sizeof part, "%.3900s/.%016" PRIx64 ".%ld", c->folder, hash, (long)getpid());
    gmd_temporary_announce(part);
    if (!write_file(part, text, size) || rename(part, path) != 0) {
        int reason = errno;
        unlink(part);
        if (!c->unwritten++) {
            snprintf(c->unwritten_first, sizeof c->unwritten_first, "%.200s: %s", path,
                     strerror(reason));
        }
    }
    gmd_temporary_forget(part);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): they are the corpus's to free from now on */
static gmd_status keep(gmd_corpus *c, uint8_t *bytes, size_t size, uint32_t fresh, gmd_error *error)
{
    if (!GMD_GROW(&c->entries, &c->capacity, c->count + 1)) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the corpus");
    }
    c->entries[c->count++] = (gmd_corpus_entry){.bytes = bytes, .size = size, .fresh = fresh};
    return GMD_OK;
}

gmd_status gmd_corpus_add(gmd_corpus *c, const gmd_trace *trace, uint32_t fresh, gmd_error *error)
{
    char *text = NULL;
    uint8_t *bytes = NULL;
    size_t text_size = 0, size = 0;
    if (c->count == ENTRIES_MAX) {
        return GMD_OK;
    }
    gmd_error reason = {""};
    gmd_status status = gmd_input_encode(trace, &bytes, &size, &reason);
    if (status != GMD_OK) {
        return status == GMD_BAD_INPUT ? GMD_OK : gmd_fail(error, status, "%s", reason.text);
    }
    status = write_text(trace, &text, &text_size, error);
    uint64_t hash = status == GMD_OK ? hash_of(text, text_size) : 0;
    bool is_kept = false;
    if (status == GMD_OK && is_new(c, hash)) {
        status = keep(c, bytes, size, fresh, error);
        is_kept = status == GMD_OK;
        if (is_kept && c->folder) {
            save(c, hash, text, text_size);
        }
    }
    if (!is_kept) {
        free(bytes);
    }
    free(text);
    return status;
}

/* --- choosing ---------------------------------------------------------------------------- */

gmd_corpus_entry *gmd_corpus_choose(gmd_corpus *c, gmd_random *random)
{
    gmd_corpus_entry *best = NULL;
    for (int i = 0; i < CANDIDATES && c->count; i++) {
        gmd_corpus_entry *e = &c->entries[gmd_random_below(random, c->count)];
        bool is_better = !best || (uint64_t)(e->fresh + 1) * (best->chosen + 1) >
                                      (uint64_t)(best->fresh + 1) * (e->chosen + 1);
        best = is_better ? e : best;
    }
    if (best) {
        best->chosen++;
    }
    return best;
}

/* --- reading ----------------------------------------------------------------------------- */

static gmd_status read_file(const char *path, uint8_t **contents, size_t *size, gmd_error *error)
{
    struct stat info;
    FILE *in = stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= FILE_MAX
                   ? fopen(path, "rb")
                   : NULL;
    if (!in) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: expected a readable file of at most 4 MiB",
                        path);
    }
    *contents = malloc((size_t)info.st_size + 1);
    *size = *contents ? fread(*contents, 1, (size_t)info.st_size, in) : 0;
    fclose(in);
    return *contents ? GMD_OK : gmd_fail(error, GMD_NO_MEMORY, "no host memory for %s", path);
}

static gmd_status visit_file(const char *path, gmd_corpus_visit_fn *visit, void *context,
                             gmd_error *error)
{
    uint8_t *contents = NULL;
    size_t size = 0;
    gmd_trace trace;
    gmd_status status = read_file(path, &contents, &size, error);
    if (status == GMD_OK) {
        status = gmd_input_read(contents, size, path, &trace, error);
    }
    if (status == GMD_OK) {
        status = visit(context, &trace);
    }
    free(contents);
    return status;
}

gmd_status gmd_corpus_read(gmd_corpus *c, gmd_corpus_visit_fn *visit, void *context,
                           size_t *unreadable, gmd_error *error)
{
    struct dirent **names;
    if (c->folder && gmd_output_folder(c->folder) != 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: the folder cannot be made: %s", c->folder,
                        strerror(errno));
    }
    int count = c->folder ? scandir(c->folder, &names, NULL, alphasort) : 0;
    *unreadable = 0;
    if (count < 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: cannot be read: %s", c->folder, strerror(errno));
    }
    gmd_status status = GMD_OK;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        gmd_error reason = {""};
        const char *name = names[i]->d_name;
        snprintf(path, sizeof path, "%.3800s/%.250s", c->folder, name);
        if (status == GMD_OK && name[0] != '.' &&
            is_new(c, hash_of(name, strlen(name)) ^ AS_FILE)) {
            status = visit_file(path, visit, context, &reason);
            if (status == GMD_BAD_INPUT) {
                status = GMD_OK;
                if (!(*unreadable)++) {
                    *error = reason;
                }
            } else if (status != GMD_OK) {
                *error = reason;
            }
        }
        free(names[i]);
    }
    if (c->folder) {
        free(names);
    }
    return status;
}

void gmd_corpus_free(gmd_corpus *c)
{
    GMD_ASSERT_VALID(gmd_corpus_violation(c));
    for (size_t i = 0; i < c->count; i++) {
        free(c->entries[i].bytes);
    }
    free(c->entries);
    free(c->known);
    *c = (gmd_corpus){.folder = c->folder};
}
