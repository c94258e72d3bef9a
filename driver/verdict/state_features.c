#include "gmd_state_features.h"

#include <string.h>

enum { SIGNED_CALLS = 6 }; /* of one request: those after them are much like these */

enum {
    FAMILY_FIRST = 0x100, /* above those that name oracles */
    FAMILY_CALLS = FAMILY_FIRST + GMD_FEATURE_CALLS,
    FAMILY_EDGE = FAMILY_FIRST + GMD_FEATURE_CALL_PAIRS,
    FAMILY_FULLNESS = FAMILY_FIRST + GMD_FEATURE_FULLNESS,
    FAMILY_PENDING = FAMILY_FIRST + GMD_FEATURE_PENDING,
    FAMILY_PLACE = FAMILY_FIRST + GMD_FEATURE_PLACES,
    FAMILY_USES = FAMILY_FIRST + GMD_FEATURE_USES,
    FAMILY_REFUSALS = FAMILY_FIRST + GMD_FEATURE_REFUSALS,
};

static gmd_feature_kind kind_of(uint32_t family)
{
    return family < FAMILY_FIRST ? GMD_FEATURE_JUDGED : (gmd_feature_kind)(family - FAMILY_FIRST);
}

static uint32_t mix(uint32_t a, uint32_t b)
{
    uint32_t h = a * 0x9e3779b1u ^ b;
    h = (h ^ h >> 15) * 0x85ebca77u;
    return h ^ h >> 13;
}

void features_add(state_features *f, uint32_t family, uint32_t member)
{
    uint32_t at = mix(mix(family, member), 0x27d4eb2fu) >> (32 - GMD_FEATURE_BITS);
    if (!atomic_load_explicit(&f->map->seen[at], memory_order_relaxed) &&
        !atomic_exchange_explicit(&f->map->seen[at], 1, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&f->map->count, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&f->map->of_kind[kind_of(family)], 1, memory_order_relaxed);
        f->fresh++;
    }
}

void features_start(state_features *f, gmd_feature_map *map)
{
    *f = (state_features){.map = map};
}

/* --- calls ------------------------------------------------------------------------------- */

/* A hash of the name's text, since addresses differ from process to process. */
static call_name read_name(const char *function)
{
    static const char made[] = "cudaEventCreate";
    call_name name = {.function = function,
                      .weight = 1,
                      .is_creation = strncmp(function, made, sizeof made - 1) == 0};
    for (const char *c = function; *c; c++) {
        name.hash = name.hash * 31 + (unsigned char)*c;
        name.weight *= 31;
    }
    return name;
}

/* Names are few and static, and an allocator makes ten calls for a request. */
static const call_name *find_name(state_features *f, const char *function)
{
    call_name *name = &f->names[((uintptr_t)function >> 3) % GMD_CALL_NAMES];
    if (name->function != function) {
        *name = read_name(function);
    }
    return name;
}

static uint32_t sign_call(const call_name *name, int result)
{
    uint32_t ending = result == cudaSuccess ? 0 : result == cudaErrorNotReady ? 1 : 2;
    return ending * name->weight + name->hash;
}

/* The same call many times over is as good as once. */
void features_call(state_features *f, const gmd_sim_call *call)
{
    const call_name *name = find_name(f, call->function);
    if (name->is_creation && call->result == cudaSuccess) {
        return; /* whether there is an event left from an earlier input is no news */
    }
    uint32_t signature = sign_call(name, call->result);
    f->kinds |= 1u << (signature % 16);
    if (signature != f->last_call && f->call_count < SIGNED_CALLS) {
        f->call_count++;
        f->calls = mix(f->calls, signature);
    }
    f->last_call = signature;
}

static void note_calls(state_features *f, const gmd_view *v)
{
    uint32_t what = (uint32_t)v->request->op << 1 | v->out_of_memory;
    uint32_t kind = mix(f->kinds, what);
    features_add(f, FAMILY_CALLS, mix(f->calls, what));
    if (f->kinds && f->previous_kinds) {
        features_add(f, FAMILY_EDGE, mix(f->previous, kind));
    }
    f->previous = kind;
    f->previous_kinds = f->kinds;
    f->kinds = f->calls = f->last_call = f->call_count = 0;
}

/* --- figures ----------------------------------------------------------------------------- */

static uint32_t class_of(uint64_t n) /* 0, 1, 2 to 3, 4 to 7, ... */
{
    return n ? 64 - (uint32_t)__builtin_clzll(n) : 0;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    bool are_known = a != GMD_STAT_UNKNOWN && b != GMD_STAT_UNKNOWN;
    return are_known && a > b ? a - b : 0;
}

/* Bytes count by factors of four, so that a class is not left with every small block. */
static void note_fullness(state_features *f, const gmd_view *v)
{
    const gmd_stats *s = v->stats.now;
    uint64_t held = s ? s->reserved_bytes : v->figures.now ? v->figures.now->physical_bytes : 0;
    uint64_t taken = s ? s->active_bytes : v->live.bytes;
    uint32_t cached = class_of(difference(held, taken)) / 2;
    uint64_t segments = s && s->segment_count != GMD_STAT_UNKNOWN ? s->segment_count : 0;
    uint32_t split = s ? class_of(difference(s->inactive_split_bytes, 0)) / 2 : 0;
    features_add(f, FAMILY_FULLNESS, mix(cached, class_of(segments)));
    features_add(f, FAMILY_FULLNESS, mix(mix(split, 99), class_of(v->live.count)));
    if (s) {
        uint32_t pending = class_of(difference(s->active_bytes, s->allocated_bytes)) / 2;
        features_add(f, FAMILY_PENDING, mix(pending, mix(v->request->op, cached)));
    }
}

static void note_refusals(state_features *f, const gmd_view *v)
{
    const gmd_stats *s = v->stats.now;
    bool has_retried = s && f->has_begun && s->num_alloc_retries != f->retries;
    f->retries = s ? s->num_alloc_retries : 0;
    f->has_begun = true;
    f->ooms += v->out_of_memory;
    if (has_retried || v->out_of_memory) {
        features_add(f, FAMILY_REFUSALS,
                     mix((uint32_t)has_retried << 1 | v->out_of_memory, class_of(f->ooms)));
    }
}

/* --- places ------------------------------------------------------------------------------ */

typedef enum relation { APART, EXACT, AT_START, AT_END, INSIDE, OVER } relation;

static relation relate(const gmd_live_block *b, const gmd_live_block *freed)
{
    uint64_t end = b->address + b->bytes, old_end = freed->address + freed->bytes;
    if (end <= freed->address || b->address >= old_end) {
        return APART;
    }
    bool has_start = b->address == freed->address, has_end = end == old_end;
    return has_start && has_end                                 ? EXACT
           : b->address < freed->address || end > old_end + 512 ? OVER
           : has_start                                          ? AT_START
           : has_end                                            ? AT_END
                                                                : INSIDE;
}

static void note_place(state_features *f, const gmd_view *v)
{
    const gmd_live_block *b = v->block;
    uint32_t shown = 0, found = 0;
    uint32_t count = f->freed_count < GMD_FREED_BLOCKS ? f->freed_count : GMD_FREED_BLOCKS;
    for (uint32_t i = 0; i < count; i++) {
        const gmd_live_block *old = &f->freed[i];
        relation r = old->device == b->device ? relate(b, old) : APART;
        if (r != APART && found++ < 2) {
            shown = mix(shown, (uint32_t)r << 1 | (old->stream == b->stream));
        }
    }
    features_add(f, FAMILY_PLACE, mix(shown, found < 4 ? found : 4));
}

static void note_free(state_features *f, const gmd_view *v)
{
    uint32_t uses = v->uses.count < 4 ? (uint32_t)v->uses.count : 4;
    uint32_t recorded = v->uses.recorded_count < 4 ? v->uses.recorded_count : 4;
    features_add(f, FAMILY_USES, uses << 3 | recorded);
    f->freed[f->freed_count++ % GMD_FREED_BLOCKS] = *v->block;
}

void features_request(state_features *f, const gmd_view *v)
{
    note_calls(f, v);
    note_fullness(f, v);
    note_refusals(f, v);
    if (v->block && v->request->op == GMD_OP_ALLOC) {
        note_place(f, v);
    } else if (v->block && v->request->op == GMD_OP_FREE) {
        note_free(f, v);
    }
}
