#include "state.h"

#include <stdio.h>
#include <string.h>

static void add_to_title(struct gmd_page *page, const char *name)
{
    size_t used = strlen(page->title), length = strlen(name);
    if (page->untitled || used + length + 64 > sizeof page->title) {
        page->untitled++;
    } else {
        snprintf(page->title + used, sizeof page->title - used, "%s%s", used ? ", " : "", name);
    }
}

uint32_t page_add_input(struct gmd_page *page, const page_input *input)
{
    uint32_t number;
    gmd_json *json = document_add(&page->document, DOCUMENT_INPUTS, &number);
    gmd_json_string(json, "name", input->name);
    gmd_json_string(json, "kind", input->kind);
    gmd_json_string(json, "verdict", input->verdict);
    gmd_json_string(json, "summary", input->summary);
    gmd_json_end(json);
    add_to_title(page, input->name);
    return number;
}
