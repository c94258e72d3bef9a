/* gmd_input_format.h - the byte form of a request sequence (gmd_input.h), in numbers: what decoder,
 * encoder and mutator share.
 *
 * Header, 16 bytes:
 *    0  devices: 1 to 16; 0: not stated; above: 1 or 2
 *    1  capacity: a number in gmd_input_capacities (0: not stated), modulo their count
 *    2  schedule: a gmd_schedule_kind, modulo 6
 *    3  low 7 bits: interleaving: 0 none, 1 by a seed, 2 explicit, modulo 3; a search draws the
 * kind and its numbers from the seed (gmd_interleaving.h), and no other numbers are kept; top bit:
 *       the handles of destroyed streams and events come again
 *    4  seed of the schedule, 4 bytes
 *    8  seed of the interleaving, 4 bytes
 *   12  settings: a number in gmd_input_confs (0: none), modulo their count
 *   13  private pools: 1 to 64; 0: none, and a record of kind 15 is an allocation; above: 1 to 4
 *   14  streams, s0 among them: 1 to 32; 0: 4; above: 1 to 8
 *   15  threads, the main one among them: 1 to 16; 0 and above: 1
 *
 * Record, 8 bytes:
 *    0  low half: a gmd_op below GMD_INPUT_OPS, or one of GMD_RECORD_*; high half: thread, modulo
 *       their count
 *    1  low 5 bits: stream, modulo their count; high 3 bits: device, modulo their count
 *    2  target, 2 bytes: the block (0: the youngest live one, modulo the live ones); of a wait the
 *       other stream; of a fault the function; of a sync bit 0: all streams; of a pool its number,
 *       modulo their count
 *    4  value, 4 bytes: size, duration, fraction, or of a fault: its count in the low half (0: 1)
 *       and the error in the high half (0, or none of the device's: the usual one), or of a pool:
 *       a gmd_input_pool_act (gmd_input_pool_act_from)
 * Bit 0 of byte 1 of a fault says `every`. A destroy of stream 0, what needs a live block where
 * there is none, and what no pool allows there (gmd_pool_state.h) is left out.
 *
 * Sizes: the bytes below 2 GiB; with the top bit a boundary code (gmd_input_boundary). As a budget
 * all ones is none. Durations: nanoseconds; with the top bit microseconds. Fractions: billionths,
 * modulo 1,000,000,001.
 *
 * GMD_RECORD_WIDE goes before a record and gives what its fields are too narrow for: byte 1 is a
 * gmd_input_wide. GMD_RECORD_HEADER, before the first request, does so for the header: byte 1 has a
 * gmd_input_header_part in its low half. The high half says, for a number (6 bytes, added by
 * `or`), which 48 bits they are; for text and choices, how many of the 6 bytes count, modulo 7.
 *
 * A GMD_RECORD_HEADER with a part from GMD_PART_COUNT on is, anywhere, a request: of the op
 * GMD_INPUT_OPS_FURTHER + part - GMD_PART_COUNT, if there is one. The high half of byte 1 is then
 * its stream (2 bits) and its device (2 bits); the rest is as above.
 *
 * With the part GMD_PART_REPEAT it is a repeat, anywhere: the records after it, one more than the
 * high half of byte 1 says, are read turn after turn. Bytes 2-3: how many turns: 2 to the power of
 * bits 0-2, and bits 3-5 more; a GMD_WIDE_TARGET before it gives their number itself. Byte 4: what
 * is one more in each turn than in the one before, as bits of gmd_input_turn. All repeats of an
 * input together make at most GMD_INPUT_REPEATED_MAX records; one within another is left out. */
#ifndef GMD_INPUT_FORMAT_H
#define GMD_INPUT_FORMAT_H

#include "gmd_input.h"

#include "gmd_size.h"

enum {
    GMD_INPUT_AT_DEVICES = 0,
    GMD_INPUT_AT_CAPACITY = 1,
    GMD_INPUT_AT_SCHEDULE = 2,
    GMD_INPUT_AT_INTERLEAVE = 3,
    GMD_INPUT_AT_SCHEDULE_SEED = 4,
    GMD_INPUT_AT_INTERLEAVE_SEED = 8,
    GMD_INPUT_AT_CONF = 12,
    GMD_INPUT_AT_POOLS = 13,
    GMD_INPUT_AT_STREAMS = 14,
    GMD_INPUT_AT_THREADS = 15,

    GMD_INPUT_REUSES_HANDLES = 0x80, /* of the byte at GMD_INPUT_AT_INTERLEAVE */
    GMD_INPUT_MOVES_CLOCK = 0x40,    /* likewise */

    GMD_INPUT_OPS = 13,         /* ops below have a kind of record of their own */
    GMD_INPUT_OPS_FURTHER = 19, /* ops from here on are parts of GMD_RECORD_HEADER; those between
                                   are gmd_input_pool_acts of GMD_RECORD_POOL */

    GMD_RECORD_WIDE = 13,
    GMD_RECORD_HEADER = 14,
    GMD_RECORD_POOL = 15,

    GMD_INPUT_STREAMS_USUAL = 4,
    GMD_INPUT_STREAMS_NARROW = 32, /* as many as a record's byte can name */
    GMD_INPUT_THREADS_NARROW = 16,
    GMD_INPUT_DEVICES_NARROW = 8,
    GMD_INPUT_FURTHER_NARROW = 4, /* streams and devices, of a further op */
    GMD_INPUT_FAULT_MAX = 64,     /* as many as the simulated device holds */
    GMD_INPUT_TEXT_BYTES = 6,     /* of a record */
    GMD_INPUT_CONF_MAX = 4096,
    GMD_INPUT_REPEATED_MAX = 1 << 18,
};

#define GMD_INPUT_TOP_BIT    UINT32_C(0x80000000)
#define GMD_INPUT_NO_BUDGET  UINT32_MAX
#define GMD_INPUT_BILLION    UINT32_C(1000000000)
#define GMD_INPUT_CAPACITY   GMD_GIB /* what boundary codes take where none is stated */
#define GMD_INPUT_NUMBER_LOW ((UINT64_C(1) << 48) - 1)

typedef enum gmd_input_wide {
    GMD_WIDE_VALUE,  /* bytes 4-7: the high half of a 64-bit value; no boundary code, no unit. A
                        fraction has the double's bits, a fault the error */
    GMD_WIDE_STREAM, /* bytes 2-3: the stream */
    GMD_WIDE_PLACE,  /* byte 2: the device; byte 3: the thread */
    GMD_WIDE_TARGET, /* bytes 4-7: the target */
    GMD_WIDE_COUNT
} gmd_input_wide;

typedef enum gmd_input_header_part {
    GMD_PART_NONE,
    GMD_PART_CAPACITY,
    GMD_PART_SCHEDULE_SEED,
    GMD_PART_INTERLEAVE_SEED,
    GMD_PART_STREAMS,
    GMD_PART_THREADS,
    GMD_PART_CONF,
    GMD_PART_SCHEDULE_CHOICES,
    GMD_PART_INTERLEAVE_CHOICES,
    GMD_PART_COUNT,
    GMD_PART_REPEAT = 15
} gmd_input_header_part;

/* Numbers wrap around where there are not so many. */
typedef enum gmd_input_turn {
    GMD_TURN_STREAM = 1,  /* the stream */
    GMD_TURN_OTHER = 2,   /* the other stream, or the pool */
    GMD_TURN_DEVICE = 4,  /* the device */
    GMD_TURN_THREAD = 8,  /* the thread */
    GMD_TURN_OLDER = 16,  /* the block: by one older */
    GMD_TURN_YOUNGER = 32 /* the block: by one younger, until it is the youngest */
} gmd_input_turn;

_Static_assert(GMD_OP_COUNT <= GMD_INPUT_OPS_FURTHER + GMD_PART_REPEAT - GMD_PART_COUNT,
               "each kind of request has a record");

/* A boundary code, below its top bit: bits 0-2 what, bits 3-6 a step beside it, the others `pick`,
 * one of several. */
typedef enum gmd_input_boundary {
    GMD_BOUNDARY_USUAL,  /* 512 B, 4 KiB, 1, 2, 10, 20 MiB */
    GMD_BOUNDARY_MIB,    /* 1 + pick modulo 64, MiB */
    GMD_BOUNDARY_PART,   /* the limit over 1 + pick modulo 16 */
    GMD_BOUNDARY_SHARE,  /* 1 + pick modulo 64, of 64 parts of the limit */
    GMD_BOUNDARY_LEFT,   /* what is left below the limit */
    GMD_BOUNDARY_ALIKE,  /* the size of a live block, the youngest for 0 */
    GMD_BOUNDARY_ROUNDS, /* 512 times 1 + pick modulo 64 */
    GMD_BOUNDARY_HUGE,   /* close to 2^64, 2^63, 2^48; without a step */
    GMD_BOUNDARY_COUNT
} gmd_input_boundary;

/* The op of a record that is a part of GMD_RECORD_HEADER; GMD_OP_COUNT or above: it is no request.
 * Those on pools are gmd_input_pool_acts. */
static inline uint8_t gmd_input_further_op(const uint8_t *record)
{
    uint8_t part = record[1] & 15;
    uint32_t op = (uint32_t)GMD_INPUT_OPS_FURTHER + part - GMD_PART_COUNT;
    return part < GMD_PART_COUNT || gmd_op_is_on_pool(op) ? GMD_OP_COUNT : (uint8_t)op;
}

static inline bool gmd_input_is_repeat(const uint8_t *record)
{
    return (record[0] & 15) == GMD_RECORD_HEADER && (record[1] & 15) == GMD_PART_REPEAT;
}

/* Records of a turn. */
static inline size_t gmd_input_turn_length(const uint8_t *repeat)
{
    return (size_t)(repeat[1] >> 4) + 1;
}

static inline uint32_t gmd_input_turns(const uint8_t *repeat)
{
    return (UINT32_C(1) << (repeat[2] & 7)) + (repeat[2] >> 3 & 7U);
}

/* Bytes 0 and 1 of a request that is not on a pool. `stream` and `device` are cut off to what the
 * record has room for. */
static inline void gmd_input_put_op(uint8_t *record, uint8_t op, uint32_t thread, uint32_t stream,
                                    uint32_t device)
{
    bool is_further = op >= GMD_INPUT_OPS_FURTHER;
    uint32_t kind = is_further ? GMD_RECORD_HEADER : op;
    record[0] = (uint8_t)(kind | (thread & 15U) << 4);
    record[1] = (uint8_t)(is_further ? ((uint32_t)GMD_PART_COUNT + op - GMD_INPUT_OPS_FURTHER) |
                                           (stream & 3U) << 4 | (device & 3U) << 6
                                     : (stream & 31U) | (device & 7U) << 5);
}

static inline uint32_t gmd_input_boundary_code(gmd_input_boundary what, uint32_t step,
                                               uint32_t pick)
{
    return GMD_INPUT_TOP_BIT | (pick & 0xffffff) << 7 | (step & 15) << 3 | (uint32_t)what;
}

/* Tables; what is in them stays at its place, new entries come at the end. */
extern const uint64_t gmd_input_capacities[];
extern const uint32_t gmd_input_capacity_count;
extern const char *const gmd_input_confs[]; /* the first: NULL */
extern const uint32_t gmd_input_conf_count;
extern const uint64_t gmd_input_usual_sizes[];
extern const uint32_t gmd_input_usual_size_count;
extern const uint64_t gmd_input_huge_sizes[];
extern const uint32_t gmd_input_huge_size_count;
extern const int64_t gmd_input_steps[16];
extern const char *const gmd_input_functions[];
extern const uint32_t gmd_input_function_count, gmd_input_memory_function_count;

/* Little-endian numbers of 2, 4 and 6 bytes. */
static inline uint32_t gmd_input_get16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t gmd_input_get32(const uint8_t *at)
{
    return gmd_input_get16(at) | gmd_input_get16(at + 2) << 16;
}

static inline uint64_t gmd_input_get48(const uint8_t *at)
{
    return gmd_input_get32(at) | (uint64_t)gmd_input_get16(at + 4) << 32;
}

static inline void gmd_input_put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static inline void gmd_input_put32(uint8_t *at, uint32_t value)
{
    gmd_input_put16(at, value);
    gmd_input_put16(at + 2, value >> 16);
}

static inline void gmd_input_put48(uint8_t *at, uint64_t value)
{
    gmd_input_put32(at, (uint32_t)value);
    gmd_input_put16(at + 4, (uint32_t)(value >> 32));
}

#endif
