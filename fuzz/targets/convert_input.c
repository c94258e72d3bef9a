/* convert_input FROM TO - a request sequence in its other form: a .gmd text as the bytes that
 * fuzzing engines work on, and such bytes as text. Exit status: 0, or 2 with a message. */
#include "gmd_file.h"
#include "gmd_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static gmd_status write_bytes(const gmd_trace *trace, FILE *out, gmd_error *error)
{
    uint8_t *data;
    size_t size;
    gmd_status status = gmd_input_encode(trace, &data, &size, error);
    if (status == GMD_OK && fwrite(data, 1, size, out) != size) {
        status = gmd_fail(error, GMD_FAILED, "cannot be written: %s", strerror(errno));
    }
    free(data);
    return status;
}

static gmd_status convert(const char *from, const char *to, gmd_error *error)
{
    uint8_t *data;
    size_t size;
    gmd_trace trace;
    gmd_status status = gmd_file_read(from, &data, &size, error);
    if (status != GMD_OK) {
        return status;
    }
    bool is_text = gmd_input_is_text(data, size);
    status = gmd_input_read(data, size, from, &trace, error);
    free(data);
    if (status != GMD_OK) {
        return status;
    }
    FILE *out = fopen(to, "wb");
    if (!out) {
        status = gmd_fail(error, GMD_FAILED, "%s: %s", to, strerror(errno));
    } else {
        status = is_text ? write_bytes(&trace, out, error) : gmd_trace_write(&trace, out, error);
        if (fclose(out) != 0 && status == GMD_OK) {
            status = gmd_fail(error, GMD_FAILED, "%s: %s", to, strerror(errno));
        }
        if (status != GMD_OK) {
            remove(to);
        }
    }
    gmd_trace_free(&trace);
    return status;
}

int main(int argc, char **argv)
{
    gmd_error error = {""};
    if (argc != 3) {
        fprintf(stderr, "usage: %s FROM TO\n", argv[0]);
        return 2;
    }
    if (convert(argv[1], argv[2], &error) != GMD_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], error.text);
        return 2;
    }
    return 0;
}
