#include "gmd_sequences.h"

#include "gmd_size.h"

/* --- codes ------------------------------------------------------------------------------- */

/* How many values each field of a request has. */
enum {
    STREAMS = GMD_ALPHABET_STREAMS,
    POOLS = GMD_ALPHABET_POOLS,
    ROUTES = 1 + STREAMS, /* 0: all streams */
    VALUES_NONE = 1,
    VALUES_EXPECT = 1,
    VALUES_NEW_BLOCK = 1,
    VALUES_BLOCK = GMD_SEQUENCE_MAX,
    VALUES_STREAM = STREAMS,
    VALUES_OWN_STREAM = STREAMS,
    VALUES_STREAM_OR_ALL = ROUTES,
    VALUES_OTHER_STREAM = STREAMS,
    VALUES_POOL = POOLS,
    VALUES_POOL_OPTIONS = 1,
    VALUES_FUNCTION = 1,
    VALUES_COUNT = 1,
    VALUES_ERROR = 1,
    VALUES_EVERY = 1,
    VALUES_BYTES = GMD_ALPHABET_SIZES,
    VALUES_BYTES_OR_NONE = 1,
    VALUES_DURATION = 1,
    VALUES_WORK_DURATION = 1,
    VALUES_FRACTION = 1,
    VALUES_DEVICE = 1,
    VALUES_DEVICE_NUMBER = 1,
};

#define VALUES_OF(field, syntax) [GMD_FIELD_##field] = VALUES_##field,
static const uint8_t values_of[GMD_FIELD_KINDS] = {GMD_FIELD_TABLE(VALUES_OF)};

/* The codes of an op are FIRST_op to LAST_op, ascending by the values of its fields, of which the
 * first counts most; where it is not in the alphabet there are none. 0 is no request. */
#define VALUES(...) VALUES_FILLED(__VA_ARGS__, NONE, NONE, NONE, NONE, NONE)
#define VALUES_FILLED(a, b, c, d, e, ...)                                                          \
    (VALUES_##a * VALUES_##b * VALUES_##c * VALUES_##d * VALUES_##e)
#define CODES(op, word, fields, needs, traits, step, weights)                                      \
    FIRST_##op, LAST_##op = FIRST_##op - 1 + (((traits)&GMD_IS_IN_ALPHABET) ? VALUES fields : 0),
enum { NO_REQUEST, GMD_REQUEST_TABLE(CODES) CODES_END };
_Static_assert(CODES_END <= UINT8_MAX, "a code is one byte");

#define FIRST(op, word, fields, needs, traits, step, weights) FIRST_##op,
static const uint8_t first_code[GMD_OP_COUNT + 1] = {GMD_REQUEST_TABLE(FIRST) CODES_END};

static uint8_t op_of(uint8_t code)
{
    uint8_t op = 0;
    while (code >= first_code[op + 1]) {
        op++;
    }
    return op;
}

/* Whether `code` right after `previous` is, in another order or made once, listed elsewhere. */
static bool is_listed_elsewhere(uint8_t previous, uint8_t code)
{
    uint8_t op = op_of(code);
    return op == op_of(previous) && ((gmd_op_is(op, GMD_IS_COMMUTING) && code <= previous) ||
                                     (gmd_op_is(op, GMD_IS_IDEMPOTENT) && code == previous));
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

static void set_field(const gmd_alphabet *alphabet, gmd_field field, uint32_t value, gmd_request *r)
{
    switch (field) {
    case GMD_FIELD_BLOCK:
        r->block = value;
        break;
    case GMD_FIELD_STREAM:
    case GMD_FIELD_OWN_STREAM:
        r->stream = 1 + value;
        break;
    case GMD_FIELD_STREAM_OR_ALL:
        r->stream = value ? value : GMD_ALL_STREAMS;
        break;
    case GMD_FIELD_OTHER_STREAM:
        r->other_stream = 1 + value;
        break;
    case GMD_FIELD_POOL:
        r->pool = value;
        break;
    case GMD_FIELD_BYTES:
        r->bytes = alphabet->sizes[value];
        break;
    case GMD_FIELD_WORK_DURATION:
        r->duration_ns = GMD_USUAL_WORK_NS;
        break;
    default:
        break;
    }
}

static gmd_request request_of(const gmd_alphabet *alphabet, uint8_t code, uint32_t new_block)
{
    gmd_request r = {.op = op_of(code)};
    uint32_t number = (uint32_t)code - first_code[r.op];
    r.block = gmd_op_has(r.op, GMD_FIELD_NEW_BLOCK) ? new_block : 0;
    for (size_t i = GMD_REQUEST_FIELDS; i-- > 0;) {
        gmd_field field = (gmd_field)gmd_request_rows[r.op].fields[i];
        set_field(alphabet, field, number % values_of[field], &r);
        number /= values_of[field];
    }
    return r;
}

void gmd_sequence_requests(const gmd_alphabet *alphabet, const gmd_sequence *sequence,
                           gmd_request *requests)
{
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < sequence->length; i++) {
        requests[i] = request_of(alphabet, sequence->codes[i], blocks);
        blocks += gmd_op_has(requests[i].op, GMD_FIELD_NEW_BLOCK);
    }
}

/* --- the walk ---------------------------------------------------------------------------- */

/* What the requests so far leave. */
typedef struct situation {
    uint32_t blocks, live; /* how many were allocated; which of them are live, as bits */
    uint32_t streams;      /* in use: the first so many */
    uint32_t owners;       /* as bits: block was allocated on the second stream */
    uint32_t users;        /* as bits: the other stream works on the block, unrecorded */
    uint32_t recorded;     /* as bits: record_stream named the other stream */
    uint32_t open;         /* 1 + the pool; 0: none */
    uint32_t captured;     /* streams, as bits; 0: no capture is under way */
    uint32_t graph_blocks; /* that the capture under way has come upon: those from here on */
    bool has_failed;       /* likewise */
    uint32_t holders[GMD_ALPHABET_POOLS], graphs[GMD_ALPHABET_POOLS];
    uint32_t failed; /* pools, as bits: there is nothing to launch of the latest capture */
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

/* --- what a capture makes do nothing: it is left out when a trace runs (docs/trace-format.md) ---
 */

static bool has_bit(uint32_t bits, uint32_t i)
{
    return bits >> i & 1;
}

static bool is_alloc_left_out(const situation *s, uint32_t stream)
{
    return s->captured && !has_bit(s->captured, stream);
}

static bool is_use_left_out(const situation *s, uint32_t block, uint32_t stream)
{
    bool is_graphs = s->captured && block >= s->graph_blocks;
    return has_bit(s->captured, stream)
               ? s->has_failed || !is_graphs
               : is_graphs || has_bit(s->captured, has_bit(s->owners, block));
}

/* A free on a stream that waits for another one before: both are captured, or none. */
static bool is_free_left_out(const situation *s, uint32_t block)
{
    uint32_t own = has_bit(s->owners, block), both = 1u << own | 1u << !own;
    bool is_graphs = block >= s->graph_blocks && (s->captured & both) == both;
    return s->captured && has_bit(s->users, block) && !is_graphs;
}

static bool is_wait_left_out(const situation *s, uint32_t waiting, uint32_t other)
{
    bool waits = has_bit(s->captured, waiting), is_waited_for = has_bit(s->captured, other);
    return waits ? !is_waited_for || s->has_failed : is_waited_for && s->has_failed;
}

/* On a captured stream it is the program's mistake: the capture has failed, which it does once. */
static bool is_sync_left_out(const situation *s, uint32_t stream)
{
    return s->captured && (s->has_failed || !has_bit(s->captured, stream));
}

/* --- one more request -------------------------------------------------------------------- */

static bool append_allocs(walk *w, const situation *s)
{
    bool goes_on = true;
    for (uint32_t size = 0; size < w->alphabet->size_count && goes_on; size++) {
        for (uint32_t stream = 0; stream < streams_to_name(w, s) && goes_on; stream++) {
            if (is_alloc_left_out(s, stream)) {
                continue;
            }
            situation after = with_stream(s, stream);
            after.live |= UINT32_C(1) << s->blocks;
            after.owners |= stream << s->blocks;
            after.blocks++;
            goes_on = append(w, FIRST_ALLOC + size * STREAMS + stream, &after);
        }
    }
    return goes_on;
}

static bool append_frees(walk *w, const situation *s)
{
    bool goes_on = true;
    for (uint32_t b = 0; b < s->blocks && goes_on; b++) {
        if (has_bit(s->live, b) && !is_free_left_out(s, b)) {
            situation after = *s;
            after.live &= ~(UINT32_C(1) << b);
            goes_on = append(w, FIRST_FREE + b, &after);
        }
    }
    return goes_on;
}

/* The situation after a use or a record of the block on `stream`. */
static situation with_user(const situation *s, uint32_t block, uint32_t stream, bool is_record)
{
    situation after = with_stream(s, stream);
    uint32_t bit = UINT32_C(1) << block;
    bool is_own = has_bit(s->owners, block) == stream;
    after.recorded |= is_record ? bit : 0;
    after.users = (after.users | (is_own ? 0 : bit)) & ~after.recorded;
    return after;
}

/* Uses on any stream; records on streams other than the block's own, which needs none. */
static bool append_of_blocks(walk *w, const situation *s, bool is_record)
{
    bool goes_on = true;
    for (uint32_t b = 0; b < s->blocks; b++) {
        for (uint32_t stream = 0; stream < streams_to_name(w, s) && goes_on; stream++) {
            bool is_own = has_bit(s->owners, b) == stream;
            if (has_bit(s->live, b) && !(is_record ? is_own : is_use_left_out(s, b, stream))) {
                situation after = with_user(s, b, stream, is_record);
                goes_on = append(w, (is_record ? FIRST_RECORD : FIRST_USE) + b * STREAMS + stream,
                                 &after);
            }
        }
    }
    return goes_on;
}

/* Who waits for what is captured is captured, too. */
static bool append_waits(walk *w, const situation *s)
{
    bool goes_on = true;
    for (uint32_t waiting = 0; waiting < streams_to_name(w, s); waiting++) {
        for (uint32_t other = 0; other < s->streams && goes_on; other++) {
            if (other != waiting && !is_wait_left_out(s, waiting, other)) {
                situation after = with_stream(s, waiting);
                after.captured |= has_bit(s->captured, other) ? 1u << waiting : 0;
                goes_on = append(w, FIRST_WAIT + waiting * STREAMS + other, &after);
            }
        }
    }
    return goes_on;
}

static bool append_syncs(walk *w, const situation *s)
{
    bool goes_on = true;
    for (uint32_t stream = 0; stream < s->streams && goes_on; stream++) {
        if (!is_sync_left_out(s, stream)) {
            situation after = *s;
            after.has_failed = s->captured;
            goes_on = append(w, FIRST_SYNC + 1 + stream, &after);
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
        goes_on = append(w, FIRST_BEGIN_POOL + pool * ROUTES + route, &after);
    }
    for (uint32_t stream = 0;
         w->alphabet->has_captures && stream < streams_to_name(w, s) && goes_on; stream++) {
        situation after = with_stream(s, stream);
        after.open = pool + 1;
        after.holders[pool]++;
        after.captured = 1u << stream;
        after.graph_blocks = s->blocks;
        goes_on = append(w, FIRST_BEGIN_CAPTURE + pool * STREAMS + stream, &after);
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

static bool append_end(walk *w, const situation *s)
{
    uint32_t pool = s->open - 1, bit = 1u << pool;
    situation after = *s;
    after.open = 0;
    if (!s->captured) {
        return append(w, FIRST_END_POOL + pool, &after);
    }
    after.captured = 0;
    after.has_failed = false;
    after.graphs[pool]++;
    after.failed = s->has_failed ? s->failed | bit : s->failed & ~bit;
    return append(w, FIRST_END_CAPTURE + pool, &after);
}

/* A pool that is open keeps one hold. Graphs beyond the holds that are left are gone. */
static bool append_releases(walk *w, const situation *s)
{
    bool goes_on = true;
    for (uint32_t pool = 0; pool < w->alphabet->pool_count && goes_on && !s->captured; pool++) {
        if (s->holders[pool] > (s->open == pool + 1)) {
            situation after = *s;
            uint32_t left = --after.holders[pool];
            after.graphs[pool] = s->graphs[pool] < left ? s->graphs[pool] : left;
            goes_on = append(w, FIRST_RELEASE_POOL + pool, &after);
        }
    }
    return goes_on;
}

static bool append_launches(walk *w, const situation *s)
{
    bool goes_on = true;
    for (uint32_t pool = 0; pool < w->alphabet->pool_count && !s->captured; pool++) {
        bool has_graph = s->graphs[pool] && !has_bit(s->failed, pool);
        for (uint32_t stream = 0; has_graph && stream < streams_to_name(w, s) && goes_on;
             stream++) {
            situation after = with_stream(s, stream);
            goes_on = append(w, FIRST_LAUNCH + pool * STREAMS + stream, &after);
        }
    }
    return goes_on;
}

static bool can_be(const walk *w, const situation *s, gmd_field field, uint32_t value)
{
    switch (field) {
    case GMD_FIELD_BLOCK:
        return has_bit(s->live, value);
    case GMD_FIELD_BYTES:
        return value < w->alphabet->size_count;
    case GMD_FIELD_STREAM:
    case GMD_FIELD_OWN_STREAM:
    case GMD_FIELD_OTHER_STREAM:
        return value < s->streams;
    case GMD_FIELD_STREAM_OR_ALL:
        return value <= s->streams;
    case GMD_FIELD_POOL:
        return s->holders[value];
    default:
        return true;
    }
}

static bool can_be_next(const walk *w, const situation *s, uint32_t op, uint32_t number)
{
    bool can = true;
    for (size_t i = GMD_REQUEST_FIELDS; i-- > 0 && can;) {
        gmd_field field = (gmd_field)gmd_request_rows[op].fields[i];
        can = can_be(w, s, field, number % values_of[field]);
        number /= values_of[field];
    }
    return can;
}

/* Requests that leave the situation as it is; a capture leaves them out. */
static bool append_plain(walk *w, const situation *s)
{
    bool goes_on = true;
    for (uint32_t op = 0; op < GMD_OP_COUNT && !s->captured; op++) {
        uint32_t codes = gmd_op_is(op, GMD_IS_PLAIN) ? first_code[op + 1] - first_code[op] : 0;
        for (uint32_t number = 0; number < codes && goes_on; number++) {
            if (can_be_next(w, s, op, number)) {
                goes_on = append(w, first_code[op] + number, s);
            }
        }
    }
    return goes_on;
}

static bool go_on(walk *w, const situation *s)
{
    return append_allocs(w, s) && append_frees(w, s) && append_of_blocks(w, s, false) &&
           append_of_blocks(w, s, true) && append_waits(w, s) && append_syncs(w, s) &&
           append_plain(w, s) && append_begins(w, s) && (!s->open || append_end(w, s)) &&
           append_releases(w, s) && append_launches(w, s);
}

bool gmd_sequences_each(const gmd_alphabet *alphabet, uint32_t length,
                        const gmd_sequence_visitor *visitor)
{
    walk w = {.alphabet = alphabet, .visitor = visitor, .length = length};
    return length == 0 || length > GMD_SEQUENCE_MAX || go_on(&w, &(situation){0});
}

/* --- without symmetry -------------------------------------------------------------------- */

static uint64_t unreduced(const gmd_alphabet *a, const situation *s, uint32_t length);

static uint64_t unreduced_begins(const gmd_alphabet *a, const situation *s, uint32_t pool,
                                 uint32_t rest)
{
    situation begun = *s, captured;
    begun.open = pool + 1;
    begun.holders[pool]++;
    captured = begun;
    captured.captured = 1;
    return (1 + a->stream_count) * unreduced(a, &begun, rest) +
           (a->has_captures ? a->stream_count * unreduced(a, &captured, rest) : 0);
}

static uint64_t unreduced_end(const gmd_alphabet *a, const situation *s, uint32_t rest)
{
    situation ended = *s;
    ended.graphs[s->open - 1] += s->captured;
    ended.open = ended.captured = 0;
    return unreduced(a, &ended, rest);
}

static uint64_t unreduced_release(const gmd_alphabet *a, const situation *s, uint32_t pool,
                                  uint32_t rest)
{
    situation released = *s;
    uint32_t left = --released.holders[pool];
    released.graphs[pool] = s->graphs[pool] < left ? s->graphs[pool] : left;
    return unreduced(a, &released, rest);
}

static uint64_t unreduced_on_pools(const gmd_alphabet *a, const situation *s, uint32_t rest)
{
    uint64_t sum = s->open ? unreduced_end(a, s, rest) : 0;
    for (uint32_t pool = 0; pool < a->pool_count; pool++) {
        bool is_open = s->open == pool + 1;
        bool is_to_release = !s->captured && s->holders[pool] > is_open;
        bool has_graph = !s->captured && s->graphs[pool];
        sum += s->open ? 0 : unreduced_begins(a, s, pool, rest);
        sum += is_to_release ? unreduced_release(a, s, pool, rest) : 0;
        sum += has_graph ? a->stream_count * unreduced(a, s, rest) : 0;
    }
    return sum;
}

static uint64_t choices_of(const gmd_alphabet *a, const situation *s, gmd_field field)
{
    uint64_t pools = 0;
    switch (field) {
    case GMD_FIELD_BLOCK:
        return s->blocks;
    case GMD_FIELD_BYTES:
        return a->size_count;
    case GMD_FIELD_STREAM:
    case GMD_FIELD_OWN_STREAM:
    case GMD_FIELD_OTHER_STREAM:
        return a->stream_count;
    case GMD_FIELD_STREAM_OR_ALL:
        return 1 + a->stream_count;
    case GMD_FIELD_POOL:
        for (uint32_t pool = 0; pool < a->pool_count; pool++) {
            pools += s->holders[pool] > 0;
        }
        return pools;
    default:
        return 1;
    }
}

static uint64_t plain_requests(const gmd_alphabet *a, const situation *s)
{
    uint64_t sum = 0;
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        uint64_t choices = gmd_op_is(op, GMD_IS_PLAIN) && gmd_op_is(op, GMD_IS_IN_ALPHABET);
        for (size_t i = 0; i < GMD_REQUEST_FIELDS; i++) {
            choices *= choices_of(a, s, (gmd_field)gmd_request_rows[op].fields[i]);
        }
        sum += choices;
    }
    return sum;
}

/* Only those of the situation's blocks that are live count. */
static uint64_t unreduced(const gmd_alphabet *a, const situation *s, uint32_t length)
{
    if (length == 0) {
        return 1;
    }
    uint64_t n = a->stream_count, live = s->blocks;
    situation after = *s;
    /* use, record, wait, sync, and what leaves the situation as it is */
    uint64_t same = live * n + live * (n - 1) + n * (n - 1) + n + plain_requests(a, s);
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
