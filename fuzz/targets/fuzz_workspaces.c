/* Any bytes are a table of workspaces, or an error that names a line; what is accepted has each
 * call once, finds it, and is written as a text that reads back as the same table. */
#include "fuzz.h"

#include "gmd_workspaces.h"

#include <string.h>

static char *write_text(const gmd_workspaces *table, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    FUZZ_REQUIRE(out);
    FUZZ_REQUIRE(gmd_workspaces_write(table, out));
    FUZZ_REQUIRE(fclose(out) == 0);
    return text;
}

static void require_found(const gmd_workspaces *table)
{
    for (size_t i = 0; i < gmd_workspaces_count(table); i++) {
        const gmd_workspace *item = gmd_workspaces_at(table, i);
        FUZZ_REQUIRE(gmd_workspaces_find(table, &item->call) == item);
    }
}

static void require_same(const gmd_workspaces *a, const gmd_workspaces *b)
{
    FUZZ_REQUIRE(gmd_workspaces_count(a) == gmd_workspaces_count(b));
    for (size_t i = 0; i < gmd_workspaces_count(a); i++) {
        const gmd_workspace *x = gmd_workspaces_at(a, i);
        const gmd_workspace *y = gmd_workspaces_find(b, &x->call);
        FUZZ_REQUIRE(y && x->bytes == y->bytes && x->tried == y->tried &&
                     x->reserve == y->reserve && x->has_tried == y->has_tried &&
                     x->has_reserve == y->has_reserve && x->is_held == y->is_held);
    }
}

static void require_refused(gmd_status status, const char *message)
{
    FUZZ_REQUIRE(status == GMD_BAD_INPUT && strncmp(message, "input:", 6) == 0);
    FUZZ_REQUIRE(strtoul(message + 6, NULL, 10) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gmd_workspaces *table, *again;
    gmd_error error = {""};
    gmd_status status = gmd_workspaces_parse(&table, (const char *)data, size, "input", &error);
    if (status != GMD_OK) {
        FUZZ_REQUIRE(!table);
        require_refused(status, error.text);
        return 0;
    }
    require_found(table);
    size_t first_size, second_size;
    char *first = write_text(table, &first_size);
    FUZZ_REQUIRE(gmd_workspaces_parse(&again, first, first_size, "written", &error) == GMD_OK);
    require_same(table, again);
    char *second = write_text(again, &second_size);
    FUZZ_REQUIRE(first_size == second_size && memcmp(first, second, first_size) == 0);
    free(first);
    free(second);
    gmd_workspaces_close(table);
    gmd_workspaces_close(again);
    return 0;
}
