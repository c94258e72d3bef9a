#include "page.h"

#include "version.h"

#include "gmd_output.h"

#include <stdlib.h>

gmd_status cli_page_write_to(FILE *out, cli_page_fill *fill, const void *context, gmd_error *error)
{
    gmd_page *page;
    gmd_status status = gmd_page_open(&page, error);
    if (status == GMD_OK) {
        status = fill(page, context, error);
    }
    if (status == GMD_OK) {
        status = gmd_page_write(page, GMD_VERSION, out, error);
    }
    gmd_page_free(page);
    return status;
}

gmd_status cli_page_write(const char *path, cli_page_fill *fill, const void *context,
                          gmd_error *error)
{
    gmd_output out;
    if (!path) {
        return GMD_OK;
    }
    gmd_status status = gmd_output_open(&out, path, error);
    if (status == GMD_OK) {
        status = cli_page_write_to(out.stream, fill, context, error);
        status = gmd_output_close(&out, status, error);
    }
    return status;
}

gmd_status cli_page_add_json(gmd_page *page, cli_page_json *write, const void *context,
                             gmd_error *error)
{
    char *text = NULL;
    size_t size = 0;
    gmd_page_verdict ignored;
    FILE *out = open_memstream(&text, &size);
    gmd_status status = out ? write(context, out, error)
                            : gmd_fail(error, GMD_NO_MEMORY, "no host memory for the page");
    if (out && fclose(out) != 0 && status == GMD_OK) {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for the page");
    }
    if (status == GMD_OK) {
        status = gmd_page_add_result(page, text, size, "the result", &ignored, error);
    }
    free(text);
    return status;
}
