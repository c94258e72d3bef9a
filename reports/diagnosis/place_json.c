#include "place_json.h"

void place_json_put(gmd_json *json, const gmd_places *places, uint32_t frame)
{
    gmd_place place = gmd_places_get(places, frame);
    gmd_json_string(json, "file", place.file);
    gmd_json_u64(json, "line", place.line);
    gmd_json_string(json, "function", place.function);
}

void place_json_put_frames(gmd_json *json, const gmd_places *places, uint32_t stack)
{
    size_t count;
    const uint32_t *frames = gmd_origins_stack(places->origins, stack, &count);
    gmd_json_array(json, "frames");
    for (size_t i = 0; i < count; i++) {
        gmd_json_row(json, NULL);
        place_json_put(json, places, frames[i]);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}
