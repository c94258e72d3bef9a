/* gmd_input.h - a request sequence as bytes, for fuzzing engines: any bytes are an input, every
 * input is a trace, and every trace that a fuzzer can run is an input.
 *
 * An input is a header of GMD_INPUT_HEADER bytes (memory of the devices, settings, schedules; what
 * is cut off is 0) and records of GMD_INPUT_RECORD bytes, one request each, so that inserting,
 * leaving out and moving requests is moving records, and a change of one byte changes one request.
 * What a record names is relative to what is there: `the 3rd youngest live block`. A record that
 * makes no sense where it stands is left out. Integers are little-endian.
 *
 * From bytes to a trace and back nothing that runs is lost: sizes, streams, devices, threads,
 * faults, budgets, settings and schedules are the same. Names and `expect` are not kept; blocks are
 * numbered by their allocations, threads by their first request, as a text does it.
 *
 * Thread safety: none is needed; there is no state. */
#ifndef GMD_INPUT_H
#define GMD_INPUT_H

#include "gmd_trace.h"

#define GMD_INPUT_HEADER 16
#define GMD_INPUT_RECORD 8

/* The most that an engine makes; histories are inputs of any length. */
#define GMD_INPUT_REQUESTS_MAX 4096
#define GMD_INPUT_BYTES_MAX    (GMD_INPUT_HEADER + GMD_INPUT_REQUESTS_MAX * GMD_INPUT_RECORD)

/* Makes `trace` what the bytes say; it is initialised (gmd_trace_init) or from an earlier call,
 * whose arrays are used again. Fails only for want of memory; the trace is then to be freed. Its
 * list of functions may end with some that no request names. */
gmd_status gmd_input_decode(const uint8_t *data, size_t size, gmd_trace *trace, gmd_error *error);

/* The bytes of a trace, which the caller frees. GMD_BAD_INPUT: it holds what inputs cannot. */
gmd_status gmd_input_encode(const gmd_trace *trace, uint8_t **data, size_t *size, gmd_error *error);

/* Whether a file's contents are a text trace: they begin with "gmd-trace". Else they are bytes. */
bool gmd_input_is_text(const uint8_t *contents, size_t size);

/* The contents of a file of either form; `trace` need not be initialised. */
gmd_status gmd_input_read(const uint8_t *contents, size_t size, const char *name, gmd_trace *trace,
                          gmd_error *error);

#endif
