#include "gmd_memory_file.h"

#include "gmd_file.h"
#include "pprof.h"
#include "rmm_log.h"

#include <stdlib.h>
#include <string.h>

/* --- which it is ----------------------------------------------------------------------------- */

static size_t skip_spaces(const uint8_t *data, size_t size)
{
    size_t at = 0;
    while (at < size &&
           (data[at] == ' ' || data[at] == '\t' || data[at] == '\r' || data[at] == '\n')) {
        at++;
    }
    return at;
}

/* No pickle begins with what a text of JSON or HTML begins with. */
gmd_memory_file gmd_memory_file_of(const uint8_t *data, size_t size)
{
    size_t at = skip_spaces(data, size);
    uint8_t first = at < size ? data[at] : 0;
    if (first == '{' || first == '[' || first == '<') {
        return first == '{' ? GMD_FILE_RESULT : first == '[' ? GMD_FILE_TIMELINE : GMD_FILE_HTML;
    }
    if (pprof_is(data, size)) {
        return GMD_FILE_PPROF;
    }
    return rmm_log_is(data, size) ? GMD_FILE_RMM_LOG : GMD_FILE_SNAPSHOT;
}

/* --- what it holds --------------------------------------------------------------------------- */

gmd_status gmd_memory_file_parse(gmd_snapshot *snapshot, const uint8_t *data, size_t size,
                                 const char *name, gmd_error *error)
{
    *snapshot = (gmd_snapshot){0};
    switch (gmd_memory_file_of(data, size)) {
    case GMD_FILE_RESULT:
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s: is JSON, expected a recording; results that gmd wrote are compared "
                        "by gmd diff",
                        name);
    case GMD_FILE_TIMELINE:
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s: is a memory timeline of torch.profiler, which has neither blocks nor "
                        "events: gmd diagnose tells of it, and gmd diff compares two",
                        name);
    case GMD_FILE_HTML:
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s: is an HTML page; of torch.profiler's memory timeline it has a picture "
                        "only: export_memory_timeline(\"NAME.json\") writes the figures",
                        name);
    case GMD_FILE_RMM_LOG:
        return rmm_log_parse(snapshot, data, size, name, error);
    case GMD_FILE_PPROF:
        return pprof_parse(snapshot, data, size, name, error);
    case GMD_FILE_SNAPSHOT:
        break;
    }
    return gmd_snapshot_parse(snapshot, data, size, name, error);
}

gmd_status gmd_snapshot_read(gmd_snapshot *snapshot, const char *path, gmd_error *error)
{
    uint8_t *data;
    size_t size;
    *snapshot = (gmd_snapshot){0};
    gmd_status status = gmd_file_read_any_size(path, &data, &size, error);
    if (status == GMD_OK) {
        status = gmd_memory_file_parse(snapshot, data, size, path, error);
        free(data);
    }
    return status;
}
