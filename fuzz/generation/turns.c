#include "turns.h"

#include "burst.h"

#include "gmd_min.h"
#include "gmd_size.h"

#define SECOND_NS    UINT64_C(1000000000)
#define OUTLASTS_NS  (2000 * SECOND_NS)
#define STEP_MAX     8   /* of a turn */
#define ROOM_USUAL   500 /* requests, and up to four times as many */
#define FEW          4
#define WRAP         (UINT32_C(1) << 16)
#define WRAPS_ONE_IN 800 /* of the phases: with more turns than 16 bits count */

/* --- what a turn is ---------------------------------------------------------------------- */

/* Which one of several (streams, threads, pools) a request names in which turn. */
typedef enum place_kind {
    PLACE_FIXED,
    PLACE_TURNING, /* one after the other */
    PLACE_LATE,    /* another one from some turn on, mostly the last */
    PLACE_ANY,
    PLACE_OWN /* the stream of the block */
} place_kind;

typedef struct place {
    place_kind kind;
    uint32_t first, count, other, from;
} place;

/* Which block. */
typedef enum which {
    WHICH_LATEST, /* the latest one that was made */
    WHICH_SAME,   /* that of the step before */
    WHICH_OLDEST,
    WHICH_FOLLOWING, /* of the phase before: each in turn */
    WHICH_ANY
} which;

typedef enum size_rule {
    SIZE_USUAL,
    SIZE_OTHER,
    SIZE_RISING,  /* by 512 B with each turn */
    SIZE_CLASSES, /* powers of two */
    SIZE_NOTHING,
    SIZE_TOO_LARGE
} size_rule;

typedef struct step {
    gmd_op op;
    which block;
    size_rule size;
    place stream, other; /* other: of a wait; the pool */
    uint64_t ns;
} step;

typedef struct phase {
    burst b;
    turns_program *program;
    step steps[STEP_MAX];
    uint32_t count, turns;
    place thread, device;
    uint32_t freeing; /* so many threads further on are the frees */
    gmd_generated_block chosen;
} phase;

static uint32_t at_turn(phase *f, const place *p, uint32_t turn)
{
    switch (p->kind) {
    case PLACE_TURNING:
        return (p->first + turn) % p->count;
    case PLACE_LATE:
        return turn < p->from ? p->first : p->other;
    case PLACE_ANY:
        return below(&f->b, p->count);
    default:
        return p->first;
    }
}

/* Many of them mostly come one after the other: that is what they are there for. */
static place draw_place(phase *f, uint32_t count)
{
    burst *b = &f->b;
    uint32_t kind = below(b, 20);
    bool has_all = count <= FEW || chance(b, 60);
    place p = {.kind = has_all && count > FEW && chance(b, 60) ? PLACE_TURNING
                       : kind < 11                             ? PLACE_FIXED
                       : kind < 15                             ? PLACE_TURNING
                       : kind < 18                             ? PLACE_LATE
                                                               : PLACE_ANY,
               .count = has_all ? count : FEW};
    p.first = below(b, p.count);
    p.other = below(b, p.count);
    p.from = chance(b, 50) ? f->turns - 1 : below(b, f->turns);
    return p;
}

static place draw_stream(phase *f)
{
    return draw_place(f, f->program->streams);
}

/* --- steps ------------------------------------------------------------------------------- */

static bool is_possible(const phase *f, gmd_op op)
{
    const gmd_generator *g = f->b.g;
    return !(gmd_request_rows[op].needs & ~gmd_profile_needs_met(g->profile, g->space)) &&
           !is_left_out(&f->b, op);
}

static step *add(phase *f, gmd_op op)
{
    if (!is_possible(f, op) || f->count == STEP_MAX) {
        return NULL;
    }
    step *s = &f->steps[f->count++];
    *s = (step){.op = op};
    return s;
}

static void add_alloc(phase *f)
{
    static const uint8_t of_20[] = {[SIZE_OTHER] = 2, [SIZE_RISING] = 1, [SIZE_CLASSES] = 1};
    step *s = add(f, GMD_OP_ALLOC);
    if (s) {
        uint32_t at = below(&f->b, 20), rule = SIZE_CLASSES;
        while (rule > SIZE_USUAL && at >= of_20[rule]) {
            at -= of_20[rule--];
        }
        s->size = (size_rule)rule;
        s->stream = draw_stream(f);
    }
}

static uint64_t draw_work(phase *f)
{
    burst *b = &f->b;
    bool outlasts = b->g->profile->conditions.moves_clock && chance(b, 40);
    return outlasts ? OUTLASTS_NS : chance(b, 30) ? SECOND_NS / 100000 : SECOND_NS;
}

/* Work on the block, mostly on its own stream; else it is mostly recorded there. */
static void add_use(phase *f, which block)
{
    place on = {.kind = PLACE_OWN};
    if (chance(&f->b, 30)) {
        on = draw_stream(f);
    }
    bool is_recorded = on.kind != PLACE_OWN && chance(&f->b, 70);
    step *record = is_recorded ? add(f, GMD_OP_RECORD) : NULL;
    if (record) {
        record->block = block;
        record->stream = on;
    }
    step *use = add(f, GMD_OP_USE);
    if (use) {
        use->block = record ? WHICH_SAME : block;
        use->stream = on;
        use->ns = draw_work(f);
    }
}

static void add_free(phase *f, which block)
{
    step *s = add(f, GMD_OP_FREE);
    if (s) {
        s->block = block;
    }
}

static void add_wait(phase *f)
{
    step *s = add(f, GMD_OP_WAIT);
    if (s) {
        s->stream = draw_stream(f);
        s->other = draw_stream(f);
    }
}

static void add_sync(phase *f)
{
    step *s = add(f, GMD_OP_SYNC);
    if (s) {
        s->stream = chance(&f->b, 40) ? (place){.first = GMD_ALL_STREAMS} : draw_stream(f);
    }
}

static void add_advance(phase *f)
{
    static const uint64_t seconds[] = {2, 6, 11, 31, 61, 601, 3601};
    step *s = add(f, GMD_OP_ADVANCE);
    burst *b = &f->b;
    if (s) {
        bool is_long = b->g->profile->conditions.moves_clock && chance(b, 70);
        s->ns = is_long         ? seconds[below(b, sizeof seconds / sizeof *seconds)] * SECOND_NS
                : chance(b, 50) ? SECOND_NS / 10000
                                : 2 * SECOND_NS;
    }
}

static void add_destroy(phase *f)
{
    step *s = add(f, GMD_OP_DESTROY);
    if (s) {
        s->stream = draw_stream(f);
    }
}

/* A block that is no block, or one that cannot be: served or refused, and freed. */
static void add_odd_alloc(phase *f)
{
    step *s = add(f, GMD_OP_ALLOC);
    if (s) {
        s->size = chance(&f->b, 50) ? SIZE_NOTHING : SIZE_TOO_LARGE;
        s->stream = draw_stream(f);
        add_free(f, WHICH_LATEST);
    }
}

/* --- phases ------------------------------------------------------------------------------ */

static void grow(phase *f)
{
    add_alloc(f);
    if (chance(&f->b, 60)) {
        add_use(f, WHICH_LATEST);
    }
}

static which draw_which(phase *f)
{
    static const which some[] = {WHICH_OLDEST, WHICH_OLDEST,    WHICH_FOLLOWING,
                                 WHICH_LATEST, WHICH_FOLLOWING, WHICH_ANY};
    return some[below(&f->b, sizeof some / sizeof *some)];
}

/* What was made before goes, and may have work to the last. */
static void shrink(phase *f)
{
    which block = draw_which(f);
    bool has_use = chance(&f->b, 40);
    if (has_use) {
        add_use(f, block);
    }
    add_free(f, has_use ? WHICH_SAME : block);
}

static void churn(phase *f)
{
    add_alloc(f);
    if (chance(&f->b, 60)) {
        add_use(f, WHICH_LATEST);
    }
    add_free(f, WHICH_LATEST);
}

/* The same more often than 16 bits count, with nothing pending: what an allocator looks through at
 * each request stays short. */
static void wrap(phase *f)
{
    put(&f->b,
        (gmd_request){.op = GMD_OP_SYNC, .stream = GMD_ALL_STREAMS, .device = f->program->device});
    add_alloc(f);
    add_free(f, WHICH_LATEST);
    f->turns = WRAP + 1 + below(&f->b, 64);
}

/* Each turn asks for what the turn before may have left. */
static void churn_and_look(phase *f)
{
    churn(f);
    add_alloc(f);
    if (chance(&f->b, 30)) {
        add_use(f, WHICH_LATEST);
    }
    if (chance(&f->b, 80)) {
        add_free(f, WHICH_LATEST);
    }
}

static void roll(phase *f)
{
    shrink(f);
    add_alloc(f);
}

/* One block again and again. */
static void work(phase *f)
{
    add_use(f, chance(&f->b, 60) ? WHICH_OLDEST : draw_which(f));
}

static void add_odd(phase *f)
{
    static void (*const odd[])(phase *) = {add_wait,    add_sync,    add_advance,  add_advance,
                                           add_destroy, add_destroy, add_odd_alloc};
    uint32_t which_one = below(&f->b, sizeof odd / sizeof *odd + 2);
    if (which_one < sizeof odd / sizeof *odd) {
        odd[which_one](f);
    } else {
        add(f, which_one % 2 ? GMD_OP_EMPTY_CACHE : GMD_OP_LEAVE_ERROR);
    }
}

/* What is rare otherwise, by itself or with a block that comes and goes. */
static void rarity(phase *f)
{
    if (chance(&f->b, 40)) {
        add_odd(f);
    }
    if (chance(&f->b, 70)) {
        churn(f);
    }
    add_odd(f);
}

static void add_on_pool(phase *f, gmd_op op, const place *stream, const place *pool)
{
    step *s = add(f, op);
    if (s) {
        s->stream = *stream;
        s->other = *pool;
    }
}

/* A pool, or a graph captured into one: with a block that stays or not, and given up or not. */
static void in_pools(phase *f)
{
    bool is_capture = is_possible(f, GMD_OP_BEGIN_CAPTURE) && chance(&f->b, 50);
    place stream = draw_stream(f), pool = draw_place(f, GMD_MAX_POOLS);
    stream.first += is_capture && !stream.first;
    stream = is_capture ? (place){.first = stream.first} : stream;
    add_on_pool(f, is_capture ? GMD_OP_BEGIN_CAPTURE : GMD_OP_BEGIN_POOL, &stream, &pool);
    add_alloc(f);
    if (f->count) {
        f->steps[f->count - 1].stream = stream;
    }
    if (chance(&f->b, 60)) {
        add_free(f, WHICH_LATEST);
    }
    add_on_pool(f, is_capture ? GMD_OP_END_CAPTURE : GMD_OP_END_POOL, &stream, &pool);
    if (is_capture && chance(&f->b, 30)) {
        add_on_pool(f, GMD_OP_LAUNCH, &stream, &pool);
    }
    if (chance(&f->b, 50)) {
        add_on_pool(f, GMD_OP_RELEASE_POOL, &stream, &pool);
    }
    if (chance(&f->b, 20)) {
        add_free(f, WHICH_OLDEST);
    }
}

/* What was made is freed, all of it mostly; and what was freed is asked for again. */
static bool follows(phase *f, int before)
{
    if ((int)f->program->before != before || chance(&f->b, 45)) {
        return false;
    }
    f->turns = chance(&f->b, 60) ? f->program->turns : f->turns;
    return true;
}

static void draw_steps(phase *f)
{
    static void (*const usual[])(phase *) = {grow,  grow,   grow,           shrink,         shrink,
                                             churn, churn,  churn_and_look, churn_and_look, roll,
                                             work,  rarity, rarity,         in_pools};
    uint32_t count = sizeof usual / sizeof *usual;
    void (*draw)(phase *) = usual[below(&f->b, count - !is_possible(f, GMD_OP_BEGIN_POOL))];
    if (follows(f, TURNS_GREW)) {
        draw = shrink;
    } else if (follows(f, TURNS_SHRANK)) {
        draw = grow;
    }
    draw(f);
    f->program->before = draw == grow ? TURNS_GREW : draw == shrink ? TURNS_SHRANK : TURNS_NOTHING;
    f->program->turns = f->turns;
}

/* --- carried out ------------------------------------------------------------------------- */

static uint64_t size_at(phase *f, size_rule rule, uint32_t turn)
{
    const turns_program *p = f->program;
    switch (rule) {
    case SIZE_OTHER:
        return p->sizes[1];
    case SIZE_RISING:
        return p->sizes[0] + turn * UINT64_C(512);
    case SIZE_CLASSES:
        return UINT64_C(512) << turn % 14;
    case SIZE_NOTHING:
        return 0;
    case SIZE_TOO_LARGE:
        return 2 * generator_limit(f->b.g->profile);
    default:
        return p->sizes[0];
    }
}

/* The first live one that was made as `block` or later; there may be none. */
static uint32_t find_live(const gmd_generator *g, uint32_t block)
{
    uint32_t low = 0, high = g->live_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        low = g->live[middle].block < block ? middle + 1 : low;
        high = g->live[middle].block < block ? high : middle;
    }
    return low;
}

/* False: there is none. It is `chosen`, at `index` among the live ones. */
static bool choose_block(phase *f, which block, uint32_t turn, uint32_t *index)
{
    const gmd_generator *g = f->b.g;
    switch (block) {
    case WHICH_SAME:
        *index = find_live(g, f->chosen.block);
        break;
    case WHICH_OLDEST:
        *index = 0;
        break;
    case WHICH_FOLLOWING:
        *index = find_live(g, f->program->first_block + turn);
        break;
    case WHICH_ANY:
        *index = g->live_count ? below(&f->b, g->live_count) : 0;
        break;
    default:
        *index = g->live_count - 1;
        break;
    }
    if (*index >= g->live_count) {
        return false;
    }
    f->chosen = g->live[*index];
    return true;
}

static void put_step_on_block(phase *f, const step *s, uint32_t turn)
{
    uint32_t index;
    if (!choose_block(f, s->block, turn, &index)) {
        return;
    }
    gmd_request r = {.op = (uint8_t)s->op,
                     .block = f->chosen.block,
                     .device = f->chosen.device,
                     .duration_ns = s->ns};
    if (s->op == GMD_OP_FREE) {
        r = generator_free(f->b.g, index);
    } else {
        r.stream = s->stream.kind == PLACE_OWN ? f->chosen.stream : at_turn(f, &s->stream, turn);
    }
    put(&f->b, r);
}

/* Pools are made in the order of their numbers. */
static void put_step_on_pool(phase *f, const step *s, uint32_t turn)
{
    uint32_t pool = at_turn(f, &s->other, turn), stream = at_turn(f, &s->stream, turn);
    pool = (uint32_t)gmd_min(pool, f->b.g->pool_count);
    put_on_pool(&f->b, s->op, f->program->device, (uint32_t)gmd_min(pool, GMD_MAX_POOLS - 1),
                stream);
}

static void put_step(phase *f, const step *s, uint32_t turn)
{
    uint32_t stream = at_turn(f, &s->stream, turn);
    gmd_request r = {.op = (uint8_t)s->op,
                     .device = (uint8_t)at_turn(f, &f->device, turn),
                     .stream = stream,
                     .duration_ns = s->ns};
    if (s->op == GMD_OP_ALLOC) {
        f->chosen = put_alloc(&f->b, size_at(f, s->size, turn), stream, r.device);
    } else if (gmd_op_has_block(r.op)) {
        put_step_on_block(f, s, turn);
    } else if (gmd_op_is_on_pool(r.op)) {
        put_step_on_pool(f, s, turn);
    } else {
        r.stream += gmd_op_has(r.op, GMD_FIELD_OWN_STREAM) && !stream;
        r.other_stream = gmd_op_has(r.op, GMD_FIELD_OTHER_STREAM) ? at_turn(f, &s->other, turn) : 0;
        r.stream = gmd_op_has_any(r.op, GMD_STREAM_FIELDS) ? r.stream : 0;
        r.device = gmd_op_has_any(r.op, GMD_DEVICE_FIELDS) ? r.device : 0;
        put(&f->b, r);
    }
}

/* Who captures does all that is done meanwhile. */
static void choose_thread(phase *f, const step *s, uint32_t turn)
{
    gmd_generator *g = f->b.g;
    if (!g->pools.capturing) {
        uint32_t thread = at_turn(f, &f->thread, turn) + (s->op == GMD_OP_FREE ? f->freeing : 0);
        g->thread = (uint8_t)(thread % g->profile->thread_count);
    }
}

static void put_turns(phase *f)
{
    gmd_generator *g = f->b.g;
    uint32_t first_block = g->next_block;
    for (uint32_t turn = 0; turn < f->turns && f->b.status == GMD_OK; turn++) {
        for (uint32_t i = 0; i < f->count; i++) {
            choose_thread(f, &f->steps[i], turn);
            put_step(f, &f->steps[i], turn);
        }
    }
    g->thread = g->pools.capturing ? g->thread : 0;
    if (g->next_block > first_block) {
        f->program->first_block = first_block;
    }
}

/* --- the whole --------------------------------------------------------------------------- */

/* How often counts come that have so many bits: of a small limit more often than of a large one. */
static uint32_t draw_turns(burst *b)
{
    static const uint8_t of_100[] = {12, 16, 19, 19, 13, 8, 6, 3, 3, 1};
    uint32_t at = below(b, 100), bits = 0;
    while (at >= of_100[bits]) {
        at -= of_100[bits++];
    }
    uint32_t power = UINT32_C(1) << bits;
    return chance(b, 30) ? power + below(b, 2) : power + below(b, power);
}

static uint64_t draw_size(burst *b)
{
    const gmd_profile *p = b->g->profile;
    return chance(b, 65)   ? UINT64_C(512) << below(b, 12)
           : chance(b, 50) ? p->palette[below(b, p->palette_count)]
                           : generator_choose_size(b->g, 0);
}

static void draw_threads_and_devices(phase *f)
{
    const gmd_profile *p = f->b.g->profile;
    f->thread = draw_place(f, p->thread_count);
    f->freeing = chance(&f->b, 30);
    f->device = (place){.first = f->program->device};
    if (p->conditions.device_count > 1 && chance(&f->b, 40)) {
        f->device = draw_place(f, p->conditions.device_count);
    }
}

void turns_begin(turns_program *program, gmd_generator *generator)
{
    burst b = {.g = generator};
    uint32_t streams = generator->profile->stream_count;
    *program = (turns_program){.device = generator_choose_device(generator),
                               .left = ROOM_USUAL << below(&b, 3)};
    if (generator->profile->many_room) {
        program->left = generator->profile->many_room;
    }
    program->streams = streams > FEW && chance(&b, 60) ? FEW : streams;
    program->sizes[0] = draw_size(&b);
    program->sizes[1] = draw_size(&b);
}

gmd_status turns_append(turns_program *program, gmd_generator *generator, gmd_trace *trace,
                        gmd_error *error)
{
    phase f = {.b = {.g = generator, .trace = trace, .error = error}, .program = program};
    burst *b = &f.b;
    generator->planned_count = 0; /* its block may go here */
    f.turns = draw_turns(b);
    bool is_wrapping = below(b, WRAPS_ONE_IN) == 0 && program->left >= ROOM_USUAL;
    if (is_wrapping) {
        wrap(&f);
    } else {
        draw_steps(&f);
    }
    draw_threads_and_devices(&f);
    if (!is_wrapping) {
        f.turns = (uint32_t)gmd_min(f.turns, program->left / (f.count + 1) + 1);
    }
    size_t before = trace->count;
    put_turns(&f);
    program->left -= (uint32_t)gmd_min(trace->count - before, program->left);
    return f.b.status;
}
