/* py_steps.h - a plan's steps as statements of Python (script.py.in has what they call). */
#ifndef GMD_REPRODUCERS_PY_STEPS_H
#define GMD_REPRODUCERS_PY_STEPS_H

#include "plan.h"
#include "reproducer.h"

typedef struct py_writer {
    const gmd_reproducer *reproducer;
    const plan *plan;
    FILE *out;
} py_writer;

/* As a reader wants it, and in every expression: 8 * 2**20, 2**10, 513. */
const char *py_bytes(uint64_t bytes, char text[32]);

const char *py_stream_name(const void *writer, uint8_t device, uint32_t stream, char text[80]);

/* Whether the statistics are checked after what may change them. */
bool py_checks_statistics(const py_writer *w);

/* Whether a capture may fail and the script goes on: else it could not run. */
bool py_guards_captures(const py_writer *w);

/* Whether it is noted which graphs can be launched: it is not certain, or changes. */
bool py_notes_graphs(const py_writer *w);

/* Whether it is known which failures of captures are the script's own doing. */
bool py_knows_spoilt(const py_writer *w);

/* Whether it asks for more than a tensor can have. */
bool py_has_huge_request(const gmd_trace *trace);

/* All requests, and what comes after them. */
void py_put_requests(const py_writer *w);

#endif
