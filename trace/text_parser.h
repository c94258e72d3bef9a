/* text_parser.h - what the readers of a text trace's lines share: the state, messages, words. Every
 * `take` reads the next words of the line; what gives false has put the message into the state. */
#ifndef GMD_TRACE_TEXT_PARSER_H
#define GMD_TRACE_TEXT_PARSER_H

#include "gmd_names.h"
#include "gmd_pool_state.h"
#include "gmd_trace.h"
#include "text_turn.h"

/* What a line may say about a block depends on the lines before it. */
typedef struct gmd_block_state {
    bool is_live;
    uint8_t device;
} gmd_block_state;

/* The repeat that the line is in. */
typedef struct text_repeat {
    const char *body; /* its first line; NULL: it is in none */
    unsigned line;    /* of the word `repeat` */
    size_t turns;
} text_repeat;

typedef struct text_parser {
    gmd_trace *trace;
    const char *file;
    unsigned line;
    const char *start, *at, *end; /* of the line, without its comment */
    const char *next;             /* the line after it */
    text_repeat repeat;
    size_t repeated_lines, repeated_bytes; /* of all repeats so far, for all their turns */
    text_words words;
    uint8_t thread;
    bool has_devices, has_capacity, has_conf, has_placement, has_handles, has_clock, has_schedule,
        has_interleave, has_streams;
    gmd_name_table blocks, streams, threads, functions, pools;
    gmd_block_state *states; /* trace->blocks.capacity entries at least */
    size_t state_capacity;
    gmd_pool_state pool_state;
    gmd_status status;
    gmd_error *error;
} text_parser;

/* --- messages ---------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) void text_note_failure(text_parser *p, const char *format,
                                                             ...);
/* "expected WHAT, found WORD" */
void text_note_unexpected(text_parser *p, const char *expected, text_token found);

#define FAIL(...)       (text_note_failure(__VA_ARGS__), false)
#define UNEXPECTED(...) (text_note_unexpected(__VA_ARGS__), false)

bool text_fail_memory(text_parser *p);
/* Takes over the outcome of a function that knows nothing of lines. */
bool text_adopt(text_parser *p, gmd_status status);

/* --- words ------------------------------------------------------------------------------- */

static inline bool text_is_space(char c)
{
    return c == ' ' || c == '\t';
}

text_token text_next_token(text_parser *p);
bool text_token_is(text_token t, const char *word);
bool text_end_line(text_parser *p);
/* Terminated, as the number readers of base/ want it; false: longer than any number. */
bool text_copy_token(text_token t, char *text, size_t size);
bool text_take_size(text_parser *p, uint64_t *bytes);
bool text_read_duration(text_parser *p, text_token t, uint64_t *ns);
bool text_take_number(text_parser *p, const char *expected, uint64_t least, uint64_t most,
                      uint64_t *number);

/* --- names ------------------------------------------------------------------------------- */

/* The index of a name, which its first mention makes. */
bool text_name_index(text_parser *p, gmd_names *names, gmd_name_table *table, char letter,
                     uint32_t most, const char *what, text_token t, uint32_t *index);
bool text_stream_index(text_parser *p, text_token t, uint32_t *stream);
bool text_take_stream(text_parser *p, uint32_t *stream);
/* The id of a block that the line allocates, and of one that it uses. */
bool text_take_new_block(text_parser *p, uint32_t *block);
bool text_take_live_block(text_parser *p, gmd_request *request);
/* N, and [device N] */
bool text_take_device_number(text_parser *p, uint8_t *device);
bool text_take_device(text_parser *p, uint8_t *device);

/* --- text_fields.c ----------------------------------------------------------------------- */

bool text_take_field(text_parser *p, gmd_field field, gmd_request *r);

/* --- text_repeat.c: `repeat N {` and `}` -------------------------------------------------- */

bool text_parse_repeat(text_parser *p, gmd_request *unused);
bool text_parse_repeat_end(text_parser *p, gmd_request *unused);
/* At the end of the text. */
bool text_repeat_is_over(text_parser *p);

/* --- text_header.c: header lines --------------------------------------------------------- */

bool text_parse_devices(text_parser *p, gmd_request *unused);
bool text_parse_capacity(text_parser *p, gmd_request *unused);
bool text_parse_conf(text_parser *p, gmd_request *unused);
bool text_parse_placement(text_parser *p, gmd_request *unused);
bool text_parse_handles(text_parser *p, gmd_request *unused);
bool text_parse_clock(text_parser *p, gmd_request *unused);
bool text_parse_schedule(text_parser *p, gmd_request *unused);
bool text_parse_interleave(text_parser *p, gmd_request *unused);
bool text_parse_streams(text_parser *p, gmd_request *unused);

#endif
