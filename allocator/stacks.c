#include "stacks.h"
#include "gmd_grow.h"
#include "gmd_hash.h"
#include "gmd_min.h"

#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FRAMES = 128, MOST_TEXT = 16384, FIRST_SLOTS = 1024 };

#define MOST_BYTES ((size_t)64 << 20) /* of all stacks together */

static const char no_room[] = ":0:(a stack beyond those that there is room for)";

typedef struct known_stack {
    void *data; /* text, or return addresses */
    uint64_t hash;
    uint32_t size; /* bytes */
    bool is_text;
} known_stack;

struct stacks {
    pthread_mutex_t lock;
    gmd_stack_source *source;
    void *context;
    known_stack *known; /* stack n is known[n - 1] */
    uint32_t count, capacity;
    uint32_t *slots; /* by hash: numbers, 0 where empty; at most half full */
    uint32_t slot_mask;
    size_t bytes;
};

/* What is known of the thread's current request. */
static _Thread_local struct {
    uint32_t epoch, stack;
    bool is_asking; /* the source allocates or frees itself: such a request has no stack */
} caller;

static _Thread_local struct {
    const stacks *owner;
    uint32_t number;
} thread_note;

/* --- the stacks that are known ------------------------------------------------------------ */

/* Four words at a time, which do not wait for each other: texts are thousands of bytes. */
static uint64_t hash_fours(const unsigned char **byte, size_t *size)
{
    uint64_t words[4], hashes[4] = {1, 2, 3, 4};
    for (; *size >= sizeof words; *byte += sizeof words, *size -= sizeof words) {
        memcpy(words, *byte, sizeof words);
        for (size_t i = 0; i < 4; i++) {
            hashes[i] = gmd_hash_add(hashes[i], words[i]);
            hashes[i] ^= hashes[i] >> 29;
        }
    }
    return gmd_hash_add(gmd_hash_add(hashes[0], hashes[1]), gmd_hash_add(hashes[2], hashes[3]));
}

static uint64_t hash_of(const void *data, size_t size, bool is_text)
{
    const unsigned char *byte = data;
    uint64_t hash = size * 2 + is_text, word;
    hash = gmd_hash_add(hash, hash_fours(&byte, &size));
    hash ^= hash >> 29;
    for (; size >= sizeof word; byte += sizeof word, size -= sizeof word) {
        memcpy(&word, byte, sizeof word);
        hash = gmd_hash_add(hash, word);
        hash ^= hash >> 29;
    }
    for (; size; byte++, size--) {
        hash = gmd_hash_add(hash, *byte);
        hash ^= hash >> 29;
    }
    return hash;
}

static bool is_same(const known_stack *k, const void *data, size_t size, bool is_text)
{
    return k->size == size && k->is_text == is_text && memcmp(k->data, data, size) == 0;
}

/* Where a stack's number is, or would go. */
static uint32_t *find_slot(const stacks *s, uint64_t hash, const void *data, size_t size,
                           bool is_text)
{
    uint32_t at = (uint32_t)(hash >> 32) & s->slot_mask;
    while (s->slots[at]) {
        const known_stack *k = &s->known[s->slots[at] - 1];
        if (k->hash == hash && is_same(k, data, size, is_text)) {
            break;
        }
        at = (at + 1) & s->slot_mask;
    }
    return &s->slots[at];
}

static bool grow_slots(stacks *s)
{
    uint32_t mask = s->slots ? s->slot_mask * 2 + 1 : FIRST_SLOTS - 1;
    uint32_t *slots = calloc((size_t)mask + 1, sizeof *slots);
    if (!slots) {
        return false;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t at = (uint32_t)(s->known[i].hash >> 32) & mask;
        while (slots[at]) {
            at = (at + 1) & mask;
        }
        slots[at] = i + 1;
    }
    free(s->slots);
    s->slots = slots;
    s->slot_mask = mask;
    return true;
}

static bool reserve(stacks *s, size_t size)
{
    if (s->bytes + size > MOST_BYTES) {
        return false;
    }
    if (!GMD_GROW(&s->known, &s->capacity, s->count + 1)) {
        return false;
    }
    return (s->slots && s->count < s->slot_mask / 2) || grow_slots(s);
}

/* 0: no host memory. The lock is held. */
static uint32_t add(stacks *s, const void *data, size_t size, bool is_text)
{
    uint64_t hash = hash_of(data, size, is_text);
    uint32_t found = s->slots ? *find_slot(s, hash, data, size, is_text) : 0;
    if (found || !reserve(s, size)) {
        return found;
    }
    void *copy = malloc(size);
    if (!copy) {
        return 0;
    }
    memcpy(copy, data, size);
    s->known[s->count++] =
        (known_stack){.data = copy, .hash = hash, .size = (uint32_t)size, .is_text = is_text};
    s->bytes += size + sizeof *s->known;
    *find_slot(s, hash, data, size, is_text) = s->count;
    return s->count;
}

stacks *stacks_create(void)
{
    stacks *s = calloc(1, sizeof *s);
    if (!s) {
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    if (!add(s, no_room, sizeof no_room - 1, true)) {
        stacks_destroy(s);
        return NULL;
    }
    return s;
}

void stacks_destroy(stacks *s)
{
    if (!s) {
        return;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        free(s->known[i].data);
    }
    free(s->known);
    free(s->slots);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* --- taking them -------------------------------------------------------------------------- */

void stacks_set_source(stacks *s, gmd_stack_source *source, void *context)
{
    pthread_mutex_lock(&s->lock);
    s->source = source;
    s->context = context;
    pthread_mutex_unlock(&s->lock);
}

/* The first call loads the unwinder. */
void stacks_prepare(void)
{
    void *frame;
    backtrace(&frame, 1);
}

uint32_t stacks_new_epoch(void)
{
    static _Atomic uint32_t last;
    uint32_t epoch = atomic_fetch_add(&last, 1) + 1;
    return epoch ? epoch : stacks_new_epoch();
}

static uint32_t keep(stacks *s, const void *data, size_t size, bool is_text)
{
    if (!size) {
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    uint32_t stack = add(s, data, size, is_text);
    pthread_mutex_unlock(&s->lock);
    return stack ? stack : 1;
}

static uint32_t take_native(stacks *s)
{
    void *frames[MOST_FRAMES];
    int count = backtrace(frames, MOST_FRAMES);
    /* The first one is this function. */
    return keep(s, frames + 1, count > 1 ? (size_t)(count - 1) * sizeof *frames : 0, false);
}

static uint32_t take_told(stacks *s, gmd_stack_source *source, void *context)
{
    char text[MOST_TEXT];
    size_t length = source(context, text, sizeof text);
    return keep(s, text, gmd_min(length, sizeof text), true);
}

uint32_t stacks_keep(stacks *s)
{
    if (caller.is_asking) {
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    gmd_stack_source *source = s->source;
    void *context = s->context;
    pthread_mutex_unlock(&s->lock);
    caller.is_asking = true;
    uint32_t stack = source ? take_told(s, source, context) : take_native(s);
    caller.is_asking = false;
    return stack;
}

void stacks_take(stacks *s, uint32_t epoch, bool is_wanted)
{
    if (caller.is_asking) {
        return;
    }
    caller.epoch = epoch;
    caller.stack = 0;
    if (is_wanted) {
        caller.stack = stacks_keep(s);
    }
}

uint32_t stacks_current(uint32_t epoch)
{
    return caller.epoch == epoch ? caller.stack : 0;
}

/* --- notes -------------------------------------------------------------------------------- */

void stacks_set_note(stacks *s, const char *text)
{
    thread_note.owner = s;
    thread_note.number = keep(s, text, strlen(text), true);
}

uint32_t stacks_note(const stacks *s)
{
    return thread_note.owner == s ? thread_note.number : 0;
}

const char *stacks_note_text(stacks *s, uint32_t note, size_t *length)
{
    if (!note) {
        *length = 0;
        return "";
    }
    pthread_mutex_lock(&s->lock);
    const known_stack *k = note <= s->count ? &s->known[note - 1] : NULL;
    const char *text = k ? k->data : "";
    *length = k ? k->size : 0;
    pthread_mutex_unlock(&s->lock);
    return text;
}

/* --- telling them ------------------------------------------------------------------------- */

uint32_t stacks_count(stacks *s)
{
    pthread_mutex_lock(&s->lock);
    uint32_t count = s->count;
    pthread_mutex_unlock(&s->lock);
    return count;
}

void stacks_frames(stacks *s, uint32_t stack, stack_frame_fn *visit, void *context)
{
    pthread_mutex_lock(&s->lock);
    known_stack k = s->known[stack - 1]; /* its data stays where it is */
    pthread_mutex_unlock(&s->lock);
    if (k.is_text) {
        stacks_frames_of_text(k.data, k.size, visit, context);
    } else {
        stacks_frames_of_code(k.data, k.size / sizeof(void *), visit, context);
    }
}

typedef struct text_room {
    char *text;
    size_t used, size;
} text_room;

static void write_frame(void *context, const stack_frame *frame)
{
    text_room *room = context;
    if (frame->code) {
        stacks_name_code(frame->code, write_frame, room);
        return;
    }
    size_t left = room->size - room->used;
    int length = snprintf(room->text + room->used, left, "%.*s:%llu:%.*s\n",
                          (int)frame->file_length, frame->file, (unsigned long long)frame->line,
                          (int)frame->name_length, frame->name);
    room->used += length > 0 && (size_t)length < left ? (size_t)length : 0;
}

size_t stacks_text(stacks *s, uint32_t stack, char *text, size_t size)
{
    text_room room = {.size = size};
    room.text = text;
    if (stack && stack <= stacks_count(s)) {
        stacks_frames(s, stack, write_frame, &room);
    }
    return room.used;
}
