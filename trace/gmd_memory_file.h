/* gmd_memory_file.h - which of the formats that gmd reads a file has, by its content, whatever it
 * is called. */
#ifndef GMD_MEMORY_FILE_H
#define GMD_MEMORY_FILE_H

#include "gmd_error.h"
#include "gmd_snapshot.h"

#include <stddef.h>
#include <stdint.h>

typedef enum gmd_memory_file {
    GMD_FILE_SNAPSHOT, /* PyTorch's; also what is none of the others */
    GMD_FILE_RMM_LOG,
    GMD_FILE_PPROF,    /* a heap profile */
    GMD_FILE_TIMELINE, /* a JSON array: torch.profiler's (gmd_memory_timeline.h) */
    GMD_FILE_HTML,
    GMD_FILE_RESULT, /* a JSON object: what gmd writes with --json */
} gmd_memory_file;

gmd_memory_file gmd_memory_file_of(const uint8_t *data, size_t size);

/* Reads a recording of any format that has one, from memory (not compressed). `name` is used in
 * messages. */
gmd_status gmd_memory_file_parse(gmd_snapshot *snapshot, const uint8_t *data, size_t size,
                                 const char *name, gmd_error *error);

#endif
