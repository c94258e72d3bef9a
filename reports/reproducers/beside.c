/* beside.c - the C program and the Python script of a case, beside the case. */
#include "gmd_output.h"
#include "gmd_reproducer.h"
#include "gmd_text.h"

#include <string.h>

typedef gmd_status writer(const gmd_reproducer *reproducer, FILE *out, gmd_error *error);

static gmd_status write_to(const gmd_reproducer *reproducer, const char *stem, int stem_length,
                           const char *ending, writer *write, gmd_error *error)
{
    char path[4400];
    int length = snprintf(path, sizeof path, "%.*s%s", stem_length, stem, ending);
    gmd_reproducer named = *reproducer;
    gmd_output out;
    named.name = gmd_file_name(path);
    if (length >= (int)sizeof path) {
        return gmd_fail(error, GMD_BAD_INPUT, "%.200s...: the name of the file is too long", path);
    }
    gmd_status status = gmd_output_open(&out, path, error);
    if (status == GMD_OK) {
        status = write(&named, out.stream, error);
        status = gmd_output_close(&out, status, error);
    }
    return status;
}

gmd_status gmd_reproducer_write_beside(const gmd_reproducer *reproducer, const char *case_path,
                                       gmd_error *error)
{
    char reason[200];
    size_t stem = strlen(case_path);
    stem -= stem > 4 && strcmp(case_path + stem - 4, ".gmd") == 0 ? 4 : 0;
    gmd_status status = GMD_OK;
    if (gmd_reproducer_fits_c(reproducer, reason, sizeof reason)) {
        status = write_to(reproducer, case_path, (int)stem, ".c", gmd_reproducer_write_c, error);
    }
    if (status == GMD_OK && gmd_reproducer_fits_python(reproducer, reason, sizeof reason)) {
        status =
            write_to(reproducer, case_path, (int)stem, ".py", gmd_reproducer_write_python, error);
    }
    return status;
}
