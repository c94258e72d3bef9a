#include "unrecorded.h"

#include "gmd_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

FILE *cli_unrecorded_open(gmd_error *error)
{
    FILE *calls = tmpfile();
    int flags = calls ? fcntl(fileno(calls), F_GETFL) : -1;
    if (flags < 0 || fcntl(fileno(calls), F_SETFL, flags | O_APPEND) < 0) {
        gmd_fail(error, GMD_FAILED, "--unrecorded: no temporary file: %s", strerror(errno));
        if (calls) {
            fclose(calls);
        }
        return NULL;
    }
    return calls;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of `text`, whose ends are overwritten. NULL: no memory. */
static char **split(char *text, size_t *count)
{
    size_t most = 1;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        most++;
    }
    char **lines = calloc(most, sizeof *lines), *rest = text;
    *count = 0;
    for (char *line = lines ? strsep(&rest, "\n") : NULL; line; line = strsep(&rest, "\n")) {
        if (*line) {
            lines[(*count)++] = line;
        }
    }
    return lines;
}

static gmd_status put_each_once(char *text, const char *path, gmd_error *error)
{
    size_t count;
    gmd_output output;
    char **lines = split(text, &count);
    if (!lines) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the list of calls");
    }
    gmd_status status = gmd_output_open(&output, path, error);
    if (status == GMD_OK) {
        qsort(lines, count, sizeof *lines, by_text);
        for (size_t i = 0; i < count; i++) {
            if (i == 0 || strcmp(lines[i], lines[i - 1]) != 0) {
                fprintf(output.stream, "%s\n", lines[i]);
            }
        }
        status = gmd_output_close(&output, status, error);
    }
    free(lines);
    return status;
}

static char *read_all(FILE *file)
{
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (text) {
        rewind(file);
        text[fread(text, 1, (size_t)size, file)] = '\0';
    }
    return text;
}

gmd_status cli_unrecorded_write(FILE *calls, const char *path, gmd_error *error)
{
    char *text = read_all(calls);
    bool is_read = text && !ferror(calls);
    fclose(calls);
    gmd_status status =
        is_read ? put_each_once(text, path, error)
                : gmd_fail(error, GMD_FAILED, "--unrecorded: the list of calls cannot be read");
    free(text);
    return status;
}
