/* text_parser.h - what the readers of a text trace's lines share: the state, messages, words. Every
 * `take` reads the next words of the line; what gives false has put the message into the state. */
#ifndef GMD_TRACE_TEXT_PARSER_H
#define GMD_TRACE_TEXT_PARSER_H

#include "gmd_names.h"
#include "gmd_pool_book.h"
#include "gmd_trace.h"

typedef struct gmd_token { /* points into the text */
    const char *text;
    size_t length; /* 0: the end of the line */
} gmd_token;

/* What a line may say about a block depends on the lines before it. */
typedef struct gmd_block_state {
    bool is_live;
    uint8_t device;
} gmd_block_state;

typedef struct gmd_parser {
    gmd_trace *trace;
    const char *file;
    unsigned line;
    const char *start, *at, *end; /* of the line, without its comment */
    uint8_t thread;
    bool has_devices, has_capacity, has_conf, has_schedule, has_interleave, has_streams;
    gmd_name_table blocks, streams, threads, functions, pools;
    gmd_block_state *states; /* trace->blocks.capacity entries at least */
    size_t state_capacity;
    gmd_pool_book pool_book;
    gmd_status status;
    gmd_error *error;
} gmd_parser;

/* --- messages ---------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) void gmd_text_note_failure(gmd_parser *p, const char *format,
                                                                 ...);
/* "expected WHAT, found WORD" */
void gmd_text_note_unexpected(gmd_parser *p, const char *expected, gmd_token found);

#define FAIL(...)       (gmd_text_note_failure(__VA_ARGS__), false)
#define UNEXPECTED(...) (gmd_text_note_unexpected(__VA_ARGS__), false)

bool gmd_text_fail_memory(gmd_parser *p);
/* Takes over the outcome of a function that knows nothing of lines. */
bool gmd_text_adopt(gmd_parser *p, gmd_status status);

/* --- words ------------------------------------------------------------------------------- */

static inline bool gmd_text_is_space(char c)
{
    return c == ' ' || c == '\t';
}

gmd_token gmd_text_next_token(gmd_parser *p);
bool gmd_text_token_is(gmd_token t, const char *word);
bool gmd_text_end_line(gmd_parser *p);
/* Terminated, as the number readers of base/ want it; false: longer than any number. */
bool gmd_text_copy_token(gmd_token t, char *text, size_t size);
bool gmd_text_take_size(gmd_parser *p, uint64_t *bytes);
bool gmd_text_read_duration(gmd_parser *p, gmd_token t, uint64_t *ns);
bool gmd_text_take_number(gmd_parser *p, const char *expected, uint64_t least, uint64_t most,
                          uint64_t *number);

/* --- names ------------------------------------------------------------------------------- */

/* The index of a name, which its first mention makes. */
bool gmd_text_name_index(gmd_parser *p, gmd_names *names, gmd_name_table *table, char letter,
                         uint32_t most, const char *what, gmd_token t, uint32_t *index);
bool gmd_text_stream_index(gmd_parser *p, gmd_token t, uint32_t *stream);
bool gmd_text_take_stream(gmd_parser *p, uint32_t *stream);
/* The id of a block that the line allocates, and of one that it uses. */
bool gmd_text_take_new_block(gmd_parser *p, uint32_t *block);
bool gmd_text_take_live_block(gmd_parser *p, gmd_request *request);
/* N, and [device N] */
bool gmd_text_take_device_number(gmd_parser *p, uint8_t *device);
bool gmd_text_take_device(gmd_parser *p, uint8_t *device);

/* --- text_fields.c ----------------------------------------------------------------------- */

bool gmd_text_take_field(gmd_parser *p, gmd_field field, gmd_request *r);

/* --- text_header.c: header lines --------------------------------------------------------- */

bool gmd_text_parse_devices(gmd_parser *p, gmd_request *unused);
bool gmd_text_parse_capacity(gmd_parser *p, gmd_request *unused);
bool gmd_text_parse_conf(gmd_parser *p, gmd_request *unused);
bool gmd_text_parse_schedule(gmd_parser *p, gmd_request *unused);
bool gmd_text_parse_interleave(gmd_parser *p, gmd_request *unused);
bool gmd_text_parse_streams(gmd_parser *p, gmd_request *unused);

#endif
