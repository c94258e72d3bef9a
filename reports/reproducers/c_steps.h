/* c_steps.h - a plan's steps as statements of C (program.c.in has what they call). */
#ifndef GMD_REPRODUCERS_C_STEPS_H
#define GMD_REPRODUCERS_C_STEPS_H

#include "plan.h"
#include "reproducer.h"

typedef struct c_writer {
    const gmd_reproducer *reproducer;
    const plan *plan;
    const plan *refusal; /* up to the last request for memory; NULL: no refusal is questioned */
    FILE *out;
} c_writer;

/* A call that is to fail is counted among the allocator's: the device must be told which calls are
 * the program's own. */
bool c_marks_calls(const c_writer *w);

/* What the program looks for. */
typedef enum c_check {
    C_CHECK_ORDER,   /* of work on different streams, outside of captures */
    C_CHECK_CONTENT, /* of blocks */
    C_CHECK_FILLED,  /* blocks are written to when they are had */
    C_CHECK_EACH,    /* something is checked after each request */
    C_CHECK_FAILURE, /* work may fail: it is waited for at the end */
    C_CHECK_FREED,   /* everything is freed at the end */
    C_CHECK_BEFORE,  /* something is noted before each call of the allocator */
    C_CHECK_AFTER,   /* something is checked after each call of the allocator */
} c_check;

bool c_checks(const c_writer *w, c_check check);

/* The statements around each call of the allocator, where C_CHECK_BEFORE and C_CHECK_AFTER hold. */
const char *c_before(const c_writer *w);
const char *c_after(const c_writer *w);

/* Each allocation has a name, and each stream of each device. */
const char *c_block_name(const void *writer, uint32_t allocation, char text[80]);
const char *c_stream_name(const void *writer, uint8_t device, uint32_t stream, char text[80]);

/* Each line of the text behind `indent`. */
void c_put_indented(const char *lines, const char *indent, FILE *out);

/* A call of main(): of the function for a device, or for the only one. */
void c_put_for_device(const c_writer *w, const char *function, uint32_t device);

/* The functions before main(), and main() from the requests on. */
void c_put_threads(const c_writer *w);
void c_put_requests(const c_writer *w);

#endif
