#include "sequences.h"

#include "gmd_size.h"

/* --- codes ------------------------------------------------------------------------------- */

/* Ascending by kind; within a kind by the numbers that follow it. 0 is no request. */
enum {
    STREAMS = GMD_ALPHABET_STREAMS,
    POOLS = GMD_ALPHABET_POOLS,
    ROUTES = 1 + STREAMS, /* what a pool is begun for: all streams, or one of them */
    ALLOC = 1,            /* size, stream */
    FREE = ALLOC + GMD_ALPHABET_SIZES * STREAMS, /* block */
    USE = FREE + GMD_SEQUENCE_MAX,               /* block, stream */
    RECORD = USE + GMD_SEQUENCE_MAX * STREAMS,   /* block, stream */
    WAIT = RECORD + GMD_SEQUENCE_MAX * STREAMS,  /* the stream that waits, the other */
    SYNC = WAIT + STREAMS * STREAMS,             /* stream */
    EMPTY_CACHE = SYNC + STREAMS,
    BEGIN_POOL = EMPTY_CACHE + 1,           /* pool, route */
    END_POOL = BEGIN_POOL + POOLS * ROUTES, /* pool */
    RELEASE_POOL = END_POOL + POOLS,        /* pool */
};

#define USE_DURATION_NS UINT64_C(10000)

static bool is_use(uint8_t code)
{
    return code >= USE && code < RECORD;
}

static bool is_sync(uint8_t code)
{
    return code >= SYNC && code < EMPTY_CACHE;
}

static bool is_wait(uint8_t code)
{
    return code >= WAIT && code < SYNC;
}

/* Whether `code` right after `previous` is, in another order or made once, listed elsewhere. */
static bool is_listed_elsewhere(uint8_t previous, uint8_t code)
{
    bool commute = (is_use(previous) && is_use(code)) || (is_sync(previous) && is_sync(code));
    return (commute && code <= previous) || (is_wait(code) && code == previous);
}

uint64_t gmd_sequence_key(const gmd_sequence *sequence)
{
    uint64_t key = 0;
    for (uint32_t i = 0; i < sequence->length; i++) {
        key = key << 8 | sequence->codes[i];
    }
    return key;
}

void gmd_alphabet_for(gmd_alphabet *alphabet, uint64_t capacity_bytes)
{
    const uint64_t candidates[GMD_ALPHABET_SIZES] = {
        512, GMD_MIB + 1, capacity_bytes / 8 * 3 / 512 * 512, capacity_bytes};
    *alphabet = (gmd_alphabet){.stream_count = STREAMS};
    for (size_t i = 0; i < GMD_ALPHABET_SIZES; i++) {
        uint64_t before = alphabet->size_count ? alphabet->sizes[alphabet->size_count - 1] : 0;
        if (candidates[i] > before && candidates[i] <= capacity_bytes) {
            alphabet->sizes[alphabet->size_count++] = candidates[i];
        }
    }
}

/* --- requests ---------------------------------------------------------------------------- */

static gmd_request request_on_pool(uint8_t code)
{
    gmd_request r = {.op = GMD_OP_RELEASE_POOL, .pool = (uint32_t)code - RELEASE_POOL};
    if (code < END_POOL) {
        uint32_t route = (uint32_t)(code - BEGIN_POOL) % ROUTES;
        r = (gmd_request){.op = GMD_OP_BEGIN_POOL,
                          .pool = (uint32_t)(code - BEGIN_POOL) / ROUTES,
                          .stream = route ? route : GMD_ALL_STREAMS};
    } else if (code < RELEASE_POOL) {
        r = (gmd_request){.op = GMD_OP_END_POOL, .pool = (uint32_t)code - END_POOL};
    }
    return r;
}

static gmd_request request_of(const gmd_alphabet *alphabet, uint8_t code, uint32_t new_block)
{
    gmd_request r = {.op = GMD_OP_EMPTY_CACHE};
    if (code < FREE) {
        r = (gmd_request){.op = GMD_OP_ALLOC,
                          .block = new_block,
                          .bytes = alphabet->sizes[(code - ALLOC) / STREAMS],
                          .stream = 1 + (code - ALLOC) % STREAMS};
    } else if (code < USE) {
        r = (gmd_request){.op = GMD_OP_FREE, .block = (uint32_t)(code - FREE)};
    } else if (code < RECORD) {
        r = (gmd_request){.op = GMD_OP_USE,
                          .block = (uint32_t)(code - USE) / STREAMS,
                          .stream = 1 + (uint32_t)(code - USE) % STREAMS,
                          .duration_ns = USE_DURATION_NS};
    } else if (code < WAIT) {
        r = (gmd_request){.op = GMD_OP_RECORD,
                          .block = (uint32_t)(code - RECORD) / STREAMS,
                          .stream = 1 + (uint32_t)(code - RECORD) % STREAMS};
    } else if (code < SYNC) {
        r = (gmd_request){.op = GMD_OP_WAIT,
                          .stream = 1 + (uint32_t)(code - WAIT) / STREAMS,
                          .other_stream = 1 + (uint32_t)(code - WAIT) % STREAMS};
    } else if (code < EMPTY_CACHE) {
        r = (gmd_request){.op = GMD_OP_SYNC, .stream = 1 + (uint32_t)(code - SYNC)};
    } else if (code >= BEGIN_POOL) {
        r = request_on_pool(code);
    }
    return r;
}

void gmd_sequence_requests(const gmd_alphabet *alphabet, const gmd_sequence *sequence,
                           gmd_request *requests)
{
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < sequence->length; i++) {
        requests[i] = request_of(alphabet, sequence->codes[i], blocks);
        blocks += requests[i].op == GMD_OP_ALLOC;
    }
}

/* --- the walk ---------------------------------------------------------------------------- */

/* What the requests so far leave. */
typedef struct situation {
    uint32_t blocks, live; /* how many were allocated; which of them are live, as bits */
    uint32_t streams;      /* in use: the first so many */
    uint32_t owners;       /* as bits: block was allocated on the second stream */
    uint32_t open;         /* 1 + the pool; 0: none */
    uint32_t holders[GMD_ALPHABET_POOLS];
} situation;

typedef struct walk {
    const gmd_alphabet *alphabet;
    const gmd_sequence_visitor *visitor;
    uint32_t length;
    gmd_sequence sequence;
} walk;

static bool go_on(walk *w, const situation *s);

static bool append(walk *w, uint32_t code, const situation *after)
{
    gmd_sequence *q = &w->sequence;
    if (q->length && is_listed_elsewhere(q->codes[q->length - 1], (uint8_t)code)) {
        return true;
    }
    q->codes[q->length++] = (uint8_t)code;
    bool goes_on = true;
    if (q->length == w->length) {
        goes_on = w->visitor->visit(w->visitor->context, q);
    } else if (!w->visitor->enter || w->visitor->enter(w->visitor->context, q)) {
        goes_on = go_on(w, after);
    }
    q->length--;
    return goes_on;
}

/* Streams that may be named: those in use and one more. */
static uint32_t streams_to_name(const walk *w, const situation *s)
{
    return s->streams < w->alphabet->stream_count ? s->streams + 1 : s->streams;
}

static situation with_stream(const situation *s, uint32_t stream)
{
    situation after = *s;
    after.streams = stream >= s->streams ? stream + 1 : s->streams;
    return after;
}

static bool append_allocs(walk *w, const situation *s)
{
    bool goes_on = true;
    for (uint32_t size = 0; size < w->alphabet->size_count && goes_on; size++) {
        for (uint32_t stream = 0; stream < streams_to_name(w, s) && goes_on; stream++) {
            situation after = with_stream(s, stream);
            after.live |= UINT32_C(1) << s->blocks;
            after.owners |= stream << s->blocks;
            after.blocks++;
            goes_on = append(w, ALLOC + size * STREAMS + stream, &after);
        }
    }
    return goes_on;
}

static bool append_frees(walk *w, const situation *s)
{
    bool goes_on = true;
    for (uint32_t b = 0; b < s->blocks && goes_on; b++) {
        if (s->live >> b & 1) {
            situation after = *s;
            after.live &= ~(UINT32_C(1) << b);
            goes_on = append(w, FREE + b, &after);
        }
    }
    return goes_on;
}

/* Uses on any stream, records on another than the block's own, of which it needs none. */
static bool append_of_blocks(walk *w, const situation *s, bool is_record)
{
    bool goes_on = true;
    for (uint32_t b = 0; b < s->blocks; b++) {
        for (uint32_t stream = 0; stream < streams_to_name(w, s) && goes_on; stream++) {
            bool is_own = (s->owners >> b & 1) == stream;
            if ((s->live >> b & 1) && !(is_record && is_own)) {
                situation after = with_stream(s, stream);
                goes_on = append(w, (is_record ? RECORD : USE) + b * STREAMS + stream, &after);
            }
        }
    }
    return goes_on;
}

static bool append_waits(walk *w, const situation *s)
{
    bool goes_on = true;
    for (uint32_t waiting = 0; waiting < streams_to_name(w, s); waiting++) {
        for (uint32_t other = 0; other < s->streams && goes_on; other++) {
            if (other != waiting) {
                situation after = with_stream(s, waiting);
                goes_on = append(w, WAIT + waiting * STREAMS + other, &after);
            }
        }
    }
    return goes_on;
}

static bool append_begin(walk *w, const situation *s, uint32_t pool)
{
    bool goes_on = true;
    for (uint32_t route = 0; route <= streams_to_name(w, s) && goes_on; route++) {
        situation after = route ? with_stream(s, route - 1) : *s;
        after.open = pool + 1;
        after.holders[pool]++;
        goes_on = append(w, BEGIN_POOL + pool * ROUTES + route, &after);
    }
    return goes_on;
}

/* Those that are held, and a new one: it gets the first name that is free. */
static bool append_begins(walk *w, const situation *s)
{
    bool goes_on = true, is_new_named = false;
    for (uint32_t pool = 0; pool < w->alphabet->pool_count && goes_on && !s->open; pool++) {
        bool is_new = !s->holders[pool];
        if (!is_new || !is_new_named) {
            goes_on = append_begin(w, s, pool);
        }
        is_new_named = is_new_named || is_new;
    }
    return goes_on;
}

/* A pool that is open keeps one hold. */
static bool append_ends_and_releases(walk *w, const situation *s)
{
    bool goes_on = true;
    if (s->open) {
        situation after = *s;
        after.open = 0;
        goes_on = append(w, END_POOL + s->open - 1, &after);
    }
    for (uint32_t pool = 0; pool < w->alphabet->pool_count && goes_on; pool++) {
        if (s->holders[pool] > (s->open == pool + 1)) {
            situation after = *s;
            after.holders[pool]--;
            goes_on = append(w, RELEASE_POOL + pool, &after);
        }
    }
    return goes_on;
}

static bool go_on(walk *w, const situation *s)
{
    bool goes_on = append_allocs(w, s) && append_frees(w, s) && append_of_blocks(w, s, false) &&
                   append_of_blocks(w, s, true) && append_waits(w, s);
    for (uint32_t stream = 0; stream < s->streams && goes_on; stream++) {
        goes_on = append(w, SYNC + stream, s);
    }
    return goes_on && append(w, EMPTY_CACHE, s) && append_begins(w, s) &&
           append_ends_and_releases(w, s);
}

bool gmd_sequences_each(const gmd_alphabet *alphabet, uint32_t length,
                        const gmd_sequence_visitor *visitor)
{
    walk w = {.alphabet = alphabet, .visitor = visitor, .length = length};
    return length == 0 || length > GMD_SEQUENCE_MAX || go_on(&w, &(situation){0});
}

/* --- without symmetry -------------------------------------------------------------------- */

static uint64_t unreduced(const gmd_alphabet *a, const situation *s, uint32_t length);

static uint64_t unreduced_on_pools(const gmd_alphabet *a, const situation *s, uint32_t rest)
{
    uint64_t sum = 0;
    for (uint32_t pool = 0; pool < a->pool_count; pool++) {
        bool is_open = s->open == pool + 1;
        situation begun = *s, ended = *s, released = *s;
        begun.open = pool + 1;
        begun.holders[pool]++;
        ended.open = 0;
        released.holders[pool]--;
        sum += s->open ? 0 : (1 + a->stream_count) * unreduced(a, &begun, rest);
        sum += is_open ? unreduced(a, &ended, rest) : 0;
        sum += s->holders[pool] > is_open ? unreduced(a, &released, rest) : 0;
    }
    return sum;
}

/* Of the situation's blocks only those that are live count. */
static uint64_t unreduced(const gmd_alphabet *a, const situation *s, uint32_t length)
{
    if (length == 0) {
        return 1;
    }
    uint64_t n = a->stream_count, live = s->blocks;
    situation after = *s;
    /* use, record, wait, sync, empty_cache */
    uint64_t same = live * n + live * (n - 1) + n * (n - 1) + n + 1;
    uint64_t sum = same * unreduced(a, s, length - 1);
    after.blocks = s->blocks + 1;
    sum += a->size_count * n * unreduced(a, &after, length - 1);
    after.blocks = s->blocks - 1;
    sum += live ? live * unreduced(a, &after, length - 1) : 0;
    return sum + (a->pool_count ? unreduced_on_pools(a, s, length - 1) : 0);
}

uint64_t gmd_sequences_unreduced(const gmd_alphabet *alphabet, uint32_t length)
{
    return length > GMD_SEQUENCE_MAX ? 0 : unreduced(alphabet, &(situation){0}, length);
}
