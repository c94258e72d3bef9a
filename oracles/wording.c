#include "wording.h"

#include <inttypes.h>
#include <stdio.h>

const char *block_text(const gmd_view *view, uint64_t born, uint64_t bytes, uint64_t address,
                       char text[BLOCK_TEXT])
{
    char name[GMD_BLOCK_NAME] = "";
    bool has_name = view->ask.block_name && view->ask.block_name(view->ask.context, born, name);
    snprintf(text, BLOCK_TEXT, "block %s%sof %s at 0x%" PRIx64, name, has_name ? " " : "",
             BYTES(bytes), address);
    return text;
}
