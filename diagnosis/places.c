#include "gmd_places.h"

#include <stdlib.h>
#include <string.h>

/* Folders that hold what was installed, and packages by the name that a shortened path begins with.
 */
static const char *const installed_folders[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                                "\\site-packages\\"};
static const char *const packages[] = {
    "torch/",        "torchvision/", "torchaudio/", "torchtext/",   "torch_geometric/",
    "transformers/", "accelerate/",  "peft/",       "diffusers/",   "timm/",
    "deepspeed/",    "lightning/",   "triton/",     "xformers/",    "pytorch_lightning/",
    "flash_attn/",   "apex/",        "numpy/",      "bitsandbytes/"};
static const char *const library_sources[] = {".cpp", ".cc",  ".cu", ".cuh",
                                              ".h",   ".hpp", ".so", ".c"};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Names that are no files: "??", "<frozen importlib._bootstrap>", "<eval_with_key>.2". A notebook's
 * cell is the user's: "<ipython-input-3-...>". */
static bool is_no_file(const char *file)
{
    return !*file || *file == '?' || (*file == '<' && !begins_with(file, "<ipython-input"));
}

bool gmd_is_library_file(const char *file)
{
    if (is_no_file(file)) {
        return true;
    }
    for (size_t i = 0; i < sizeof installed_folders / sizeof *installed_folders; i++) {
        if (strstr(file, installed_folders[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        if (begins_with(file, packages[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof library_sources / sizeof *library_sources; i++) {
        if (ends_with(file, library_sources[i])) {
            return true;
        }
    }
    return false;
}

/* The innermost frame of the user's own; where there is none, the outermost of all. */
static uint32_t user_frame(const gmd_places *places, uint32_t stack)
{
    size_t count;
    const uint32_t *frames = gmd_origins_stack(places->origins, stack, &count);
    for (size_t i = 0; i < count; i++) {
        if (!places->is_library[frames[i]]) {
            return frames[i];
        }
    }
    return count ? frames[count - 1] : GMD_NO_PLACE;
}

/* What a file is, is said once for each text, not for each frame of it. */
static void classify_frames(gmd_places *places, uint8_t *is_known)
{
    enum { UNKNOWN, USERS, LIBRARYS };
    const gmd_origins *origins = places->origins;
    for (uint32_t frame = 0; frame < gmd_origins_frame_count(origins); frame++) {
        uint32_t file = gmd_origins_frame(origins, frame).file;
        if (is_known[file] == UNKNOWN) {
            bool is_library = gmd_is_library_file(gmd_origins_text(origins, file, NULL));
            is_known[file] = is_library ? LIBRARYS : USERS;
        }
        places->is_library[frame] = is_known[file] == LIBRARYS;
    }
}

gmd_status gmd_places_make(gmd_places *places, const gmd_origins *origins, gmd_error *error)
{
    uint32_t stacks = gmd_origins_stack_count(origins);
    uint8_t *is_known = calloc(gmd_origins_text_count(origins), sizeof *is_known);
    *places = (gmd_places){.origins = origins};
    places->is_library = calloc(gmd_origins_frame_count(origins), sizeof *places->is_library);
    places->user_frame_of = malloc(stacks * sizeof *places->user_frame_of);
    if (!is_known || !places->is_library || !places->user_frame_of) {
        free(is_known);
        gmd_places_free(places);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %u stacks", stacks);
    }
    classify_frames(places, is_known);
    for (uint32_t stack = 0; stack < stacks; stack++) {
        places->user_frame_of[stack] = user_frame(places, stack);
    }
    free(is_known);
    return GMD_OK;
}

void gmd_places_free(gmd_places *places)
{
    free(places->user_frame_of);
    free(places->is_library);
    *places = (gmd_places){0};
}

uint32_t gmd_places_frame(const gmd_places *places, uint32_t origin)
{
    return places->user_frame_of[gmd_origins_get(places->origins, origin).stack];
}

gmd_place gmd_places_get(const gmd_places *places, uint32_t frame)
{
    if (frame == GMD_NO_PLACE) {
        return (gmd_place){.file = "", .function = "", .is_library = true};
    }
    gmd_frame f = gmd_origins_frame(places->origins, frame);
    return (gmd_place){.file = gmd_origins_text(places->origins, f.file, NULL),
                       .function = gmd_origins_text(places->origins, f.function, NULL),
                       .line = f.line,
                       .is_library = places->is_library[frame]};
}

bool gmd_is_path_end(const char *path, const char *end)
{
    size_t length = strlen(path), end_length = strlen(end);
    return ends_with(path, end) && (length == end_length || path[length - end_length - 1] == '/');
}
