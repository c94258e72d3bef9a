/* page.h - the HTML page that a command writes (--html FILE). */
#ifndef GMD_CLI_PAGE_H
#define GMD_CLI_PAGE_H

#include "gmd_page.h"

/* Adds the command's inputs. */
typedef gmd_status cli_page_fill(gmd_page *page, const void *context, gmd_error *error);

gmd_status cli_page_write_to(FILE *out, cli_page_fill *fill, const void *context, gmd_error *error);

/* NULL: no page is asked for. The file is there whole or not at all. */
gmd_status cli_page_write(const char *path, cli_page_fill *fill, const void *context,
                          gmd_error *error);

/* Writes the JSON result that a page is made of. */
typedef gmd_status cli_page_json(const void *context, FILE *out, gmd_error *error);

/* The tables of a result. */
gmd_status cli_page_add_json(gmd_page *page, cli_page_json *write, const void *context,
                             gmd_error *error);

#endif
