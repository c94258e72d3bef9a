#include "compared_line.h"

#include "gmd_text.h"

#include <inttypes.h>

void compared_line_put(const gmd_compared_row *row, void (*put_text)(const char *, FILE *),
                       FILE *out)
{
    gmd_place place = gmd_places_get(row->named_by, (uint32_t)row->key);
    if (!*place.file) {
        fputs("no frames of the program", out);
        return;
    }
    put_text(gmd_file_name(place.file), out);
    fprintf(out, ":%" PRIu32 "%s", place.line, *place.function ? " " : "");
    put_text(place.function, out);
}
