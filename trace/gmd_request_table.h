/* gmd_request_table.h - what kinds of requests there are, and all that is known of a kind: its word
 * in the text, its fields, what it needs, and what it does to blocks and pools. The reader and the
 * writer of the text, the byte form of inputs, generator, mutator, minimiser and reproducers go by
 * it. A new kind is a row here, a function of the driver that carries it out
 * (gmd_session_carry_out), and its line in docs/trace-format.md.
 *
 * Thread safety: the table is constant. */
#ifndef GMD_REQUEST_TABLE_H
#define GMD_REQUEST_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* X(FIELD, how docs/trace-format.md writes it): what a request says, as its line has it. */
#define GMD_FIELD_TABLE(X)                                                                         \
    X(NONE, "")                                                                                    \
    X(EXPECT, "")      /* gmd_expect: `expect alloc` or `expect oom` in place of the word */       \
    X(NEW_BLOCK, "ID") /* of a block that is not allocated */                                      \
    X(BLOCK, "ID")     /* of one that is; the device is the block's */                             \
    X(STREAM, "STREAM")                                                                            \
    X(OWN_STREAM, "STREAM")      /* not the default one */                                         \
    X(STREAM_OR_ALL, "[STREAM]") /* without it GMD_ALL_STREAMS */                                  \
    X(OTHER_STREAM, "OTHER")                                                                       \
    X(POOL, "POOL")                                                                                \
    X(POOL_OPTIONS, "[+no_split] [+use_on_oom] [+own_memory]") /* a set of gmd_pool_option */      \
    X(FUNCTION, "FUNCTION")                                                                        \
    X(COUNT, "N")     /* from 1 */                                                                 \
    X(ERROR, "ERROR") /* from 1 */                                                                 \
    X(EVERY, "[every]")                                                                            \
    X(BYTES, "SIZE")                                                                               \
    X(BYTES_OR_NONE, "SIZE|none") /* GMD_NO_BUDGET */                                              \
    X(DURATION, "DURATION")                                                                        \
    X(WORK_DURATION, "[DURATION]") /* without it GMD_USUAL_WORK_NS */                              \
    X(FRACTION, "F")               /* from 0 to 1 */                                               \
    X(DEVICE, "[device N]")                                                                        \
    X(DEVICE_NUMBER, "N")

typedef enum gmd_field {
#define GMD_FIELD_NAME(field, syntax) GMD_FIELD_##field,
    GMD_FIELD_TABLE(GMD_FIELD_NAME)
#undef GMD_FIELD_NAME
        GMD_FIELD_KINDS
} gmd_field;

#define GMD_REQUEST_FIELDS 5 /* of one kind, at most */
#define GMD_USUAL_WORK_NS  UINT64_C(10000)

/* What must be there for a request to do anything, as bits. */
enum {
    GMD_NEEDS_RECORD_STREAM = 1u << 0, /* of the allocator: gmd_record_stream */
    GMD_NEEDS_FRACTION = 1u << 1,      /* gmd_set_memory_fraction */
    GMD_NEEDS_EMPTY_CACHE = 1u << 2,   /* gmd_empty_cache */
    GMD_NEEDS_POOLS = 1u << 3,         /* private pools */
    GMD_NEEDS_CAPTURES = 1u << 4,      /* of the device, too: streams captured into graphs */
    GMD_NEEDS_FAULTS = 1u << 5,        /* of the device, a simulated one: calls that can fail */
    GMD_NEEDS_BUDGETS = 1u << 6,       /* likewise: physical memory that can be held back */
    GMD_NEEDS_STREAMS = 1u << 7,       /* of the program: streams beside the default one */
    GMD_NEEDS_DEVICES = 1u << 8,       /* several devices */
    GMD_NEEDS_CHECKPOINTS = 1u << 9,   /* of the allocator: private pools that are kept as they are
                                          and brought back */
};

/* What it is to those who choose, order and drop requests, as bits. */
enum {
    GMD_IS_FREE = 1u << 0,    /* its block is not allocated any more */
    GMD_IS_FOR_ALL = 1u << 1, /* it changes what later requests of every thread meet: none moves
                                 past it, and a trace that is repeated has none */
    GMD_IS_IN_ALPHABET =
        1u << 2,                /* the exhaustive search has it (fuzz/generation/gmd_sequences.h) */
    GMD_IS_COMMUTING = 1u << 3, /* two in a row may change places, and twice is as good as once */
    GMD_IS_IDEMPOTENT = 1u << 4, /* twice in a row is as good as once */
    GMD_IS_PLAIN = 1u << 5,      /* it leaves blocks, streams and pools as they are; another one in
                                    the alphabet needs a function in fuzz/generation/sequences.c */
    GMD_IS_OPTIONAL = 1u << 6,   /* `gmd fuzz --without WORD` leaves it out */
};

/* What it does to the private pool that it names (gmd_pool_state.h). */
typedef enum gmd_pool_step {
    GMD_POOL_STEP_NONE,
    GMD_POOL_STEP_BEGIN,
    GMD_POOL_STEP_END,
    GMD_POOL_STEP_RELEASE,
    GMD_POOL_STEP_LAUNCH,
    GMD_POOL_STEP_CHECKPOINT,
    GMD_POOL_STEP_RESTORE,
} gmd_pool_step;

/* X(OP, word, (fields in the order of the line), needs, traits, pool step, weights)
 *
 * Weights: (how often a random sequence has it beside others; the percentage of sequences that
 * leave it out, on top of those that leave out any kind; how often a mutator inserts it beside
 * others, 0: not by itself).
 *
 * The order is the number, which the byte form of inputs knows (fuzz/input/gmd_input_format.h): new
 * rows come at the end, five at most. One that names a pool needs a gmd_input_pool_act as well. */
#define GMD_REQUEST_TABLE(X)                                                                       \
    X(ALLOC, "alloc", (EXPECT, NEW_BLOCK, BYTES, STREAM, DEVICE), 0, GMD_IS_IN_ALPHABET, NONE,     \
      (400, 0, 400))                                                                               \
    X(FREE, "free", (BLOCK), 0, GMD_IS_FREE | GMD_IS_IN_ALPHABET, NONE, (300, 0, 280))             \
    /* work on `stream` that reads and writes the block */                                         \
    X(USE, "use", (BLOCK, STREAM, WORK_DURATION), 0, GMD_IS_IN_ALPHABET | GMD_IS_COMMUTING, NONE,  \
      (120, 0, 110))                                                                               \
    X(RECORD, "record", (BLOCK, STREAM), GMD_NEEDS_RECORD_STREAM | GMD_NEEDS_STREAMS,              \
      GMD_IS_IN_ALPHABET | GMD_IS_OPTIONAL, NONE, (60, 0, 60))                                     \
    /* `stream` waits for all that is queued on `other_stream` now */                              \
    X(WAIT, "wait", (STREAM, OTHER_STREAM, DEVICE), GMD_NEEDS_STREAMS,                             \
      GMD_IS_IN_ALPHABET | GMD_IS_IDEMPOTENT | GMD_IS_OPTIONAL, NONE, (20, 0, 25))                 \
    /* the host waits for the stream, or for the device */                                         \
    X(SYNC, "sync", (STREAM_OR_ALL, DEVICE), 0,                                                    \
      GMD_IS_IN_ALPHABET | GMD_IS_COMMUTING | GMD_IS_OPTIONAL, NONE, (10, 0, 20))                  \
    /* the simulated clock moves */                                                                \
    X(ADVANCE, "advance", (DURATION), 0, 0, NONE, (20, 0, 25))                                     \
    X(EMPTY_CACHE, "empty_cache", (NONE), GMD_NEEDS_EMPTY_CACHE,                                   \
      GMD_IS_IN_ALPHABET | GMD_IS_PLAIN | GMD_IS_OPTIONAL, NONE, (10, 0, 20))                      \
    X(FRACTION, "fraction", (FRACTION, DEVICE), GMD_NEEDS_FRACTION,                                \
      GMD_IS_FOR_ALL | GMD_IS_OPTIONAL, NONE, (2, 80, 8))                                          \
    /* the count-th call from here fails; with `every`, so do all after it */                      \
    X(FAULT, "fault", (FUNCTION, COUNT, ERROR, EVERY), GMD_NEEDS_FAULTS,                           \
      GMD_IS_FOR_ALL | GMD_IS_OPTIONAL, NONE, (10, 80, 20))                                        \
    /* it becomes the thread's current one */                                                      \
    X(DEVICE, "device", (DEVICE_NUMBER), GMD_NEEDS_DEVICES, 0, NONE, (10, 0, 12))                  \
    /* a later use of the stream makes a new one */                                                \
    X(DESTROY, "destroy", (OWN_STREAM, DEVICE), GMD_NEEDS_STREAMS,                                 \
      GMD_IS_FOR_ALL | GMD_IS_OPTIONAL, NONE, (3, 70, 8))                                          \
    /* physical memory beyond it is refused */                                                     \
    X(BUDGET, "budget", (BYTES_OR_NONE, DEVICE), GMD_NEEDS_BUDGETS,                                \
      GMD_IS_FOR_ALL | GMD_IS_OPTIONAL, NONE, (5, 80, 12))                                         \
    /* requests of the stream, or all of the device, go to the pool */                             \
    X(BEGIN_POOL, "begin_pool", (POOL, STREAM_OR_ALL, POOL_OPTIONS, DEVICE), GMD_NEEDS_POOLS,      \
      GMD_IS_FOR_ALL | GMD_IS_IN_ALPHABET, BEGIN, (30, 0, 0))                                      \
    X(END_POOL, "end_pool", (POOL, DEVICE), GMD_NEEDS_POOLS, GMD_IS_FOR_ALL | GMD_IS_IN_ALPHABET,  \
      END, (30, 0, 0))                                                                             \
    /* work on the stream becomes a graph, and its requests go to the pool */                      \
    X(BEGIN_CAPTURE, "begin_capture", (POOL, STREAM, DEVICE),                                      \
      GMD_NEEDS_POOLS | GMD_NEEDS_CAPTURES | GMD_NEEDS_STREAMS,                                    \
      GMD_IS_FOR_ALL | GMD_IS_IN_ALPHABET, BEGIN, (40, 0, 0))                                      \
    /* the graph is made, and the pool is closed */                                                \
    X(END_CAPTURE, "end_capture", (POOL, DEVICE),                                                  \
      GMD_NEEDS_POOLS | GMD_NEEDS_CAPTURES | GMD_NEEDS_STREAMS,                                    \
      GMD_IS_FOR_ALL | GMD_IS_IN_ALPHABET, END, (60, 0, 0))                                        \
    /* the pool's latest graph runs on the stream */                                               \
    X(LAUNCH, "launch", (POOL, STREAM, DEVICE),                                                    \
      GMD_NEEDS_POOLS | GMD_NEEDS_CAPTURES | GMD_NEEDS_STREAMS,                                    \
      GMD_IS_FOR_ALL | GMD_IS_IN_ALPHABET, LAUNCH, (20, 0, 0))                                     \
    /* one begin's hold is taken back */                                                           \
    X(RELEASE_POOL, "release_pool", (POOL, DEVICE), GMD_NEEDS_POOLS,                               \
      GMD_IS_FOR_ALL | GMD_IS_IN_ALPHABET, RELEASE, (20, 0, 0))                                    \
    /* a call of the program's own fails, and it does not look at the error yet */                 \
    X(LEAVE_ERROR, "leave_error", (NONE), 0, GMD_IS_OPTIONAL, NONE, (4, 60, 6))                    \
    /* how the pool's memory is split and allocated now is kept */                                 \
    X(CHECKPOINT_POOL, "checkpoint_pool", (POOL, DEVICE), GMD_NEEDS_POOLS | GMD_NEEDS_CHECKPOINTS, \
      GMD_IS_FOR_ALL, CHECKPOINT, (20, 0, 0))                                                      \
    /* the pool is brought back to that */                                                         \
    X(RESTORE_POOL, "restore_pool", (POOL, DEVICE), GMD_NEEDS_POOLS | GMD_NEEDS_CHECKPOINTS,       \
      GMD_IS_FOR_ALL, RESTORE, (25, 0, 0))

typedef enum gmd_op {
#define GMD_REQUEST_OP(op, word, fields, needs, traits, step, weights) GMD_OP_##op,
    GMD_REQUEST_TABLE(GMD_REQUEST_OP)
#undef GMD_REQUEST_OP
        GMD_OP_COUNT
} gmd_op;

typedef struct gmd_request_row {
    const char *word;
    uint8_t fields[GMD_REQUEST_FIELDS]; /* gmd_field; GMD_FIELD_NONE: no more */
    uint8_t pool_step;                  /* gmd_pool_step */
    uint8_t rarity;                     /* a percentage */
    uint32_t field_set;                 /* the same fields, as bits */
    uint32_t needs, traits;
    uint16_t weight, record_weight;
} gmd_request_row;

extern const gmd_request_row gmd_request_rows[GMD_OP_COUNT];

/* As bits, where one of several is asked for. */
#define GMD_FIELD_BIT(field) (1u << (field))
#define GMD_BLOCK_FIELDS     (GMD_FIELD_BIT(GMD_FIELD_NEW_BLOCK) | GMD_FIELD_BIT(GMD_FIELD_BLOCK))
#define GMD_STREAM_FIELDS                                                                          \
    (GMD_FIELD_BIT(GMD_FIELD_STREAM) | GMD_FIELD_BIT(GMD_FIELD_OWN_STREAM) |                       \
     GMD_FIELD_BIT(GMD_FIELD_STREAM_OR_ALL))
#define GMD_BYTES_FIELDS (GMD_FIELD_BIT(GMD_FIELD_BYTES) | GMD_FIELD_BIT(GMD_FIELD_BYTES_OR_NONE))
#define GMD_DURATION_FIELDS                                                                        \
    (GMD_FIELD_BIT(GMD_FIELD_DURATION) | GMD_FIELD_BIT(GMD_FIELD_WORK_DURATION))
#define GMD_DEVICE_FIELDS (GMD_FIELD_BIT(GMD_FIELD_DEVICE) | GMD_FIELD_BIT(GMD_FIELD_DEVICE_NUMBER))

/* False, too, for what is no op. */
static inline bool gmd_op_has_any(uint32_t op, uint32_t field_set)
{
    return op < GMD_OP_COUNT && (gmd_request_rows[op].field_set & field_set);
}

static inline bool gmd_op_has(uint32_t op, gmd_field field)
{
    return gmd_op_has_any(op, GMD_FIELD_BIT(field));
}

static inline bool gmd_op_is(uint32_t op, uint32_t trait)
{
    return op < GMD_OP_COUNT && (gmd_request_rows[op].traits & trait);
}

static inline bool gmd_op_needs(uint32_t op, uint32_t need)
{
    return op < GMD_OP_COUNT && (gmd_request_rows[op].needs & need);
}

/* Whether its `block` is one of the trace's. */
static inline bool gmd_op_has_block(uint32_t op)
{
    return gmd_op_has_any(op, GMD_BLOCK_FIELDS);
}

static inline bool gmd_op_is_on_pool(uint32_t op)
{
    return gmd_op_has(op, GMD_FIELD_POOL);
}

static inline bool gmd_op_is_of_capture(uint32_t op)
{
    return gmd_op_needs(op, GMD_NEEDS_CAPTURES);
}

#endif
