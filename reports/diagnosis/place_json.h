/* place_json.h - places of programs in JSON. */
#ifndef GMD_REPORTS_PLACE_JSON_H
#define GMD_REPORTS_PLACE_JSON_H

#include "gmd_json.h"
#include "gmd_places.h"

/* The members "file", "line" and "function" of the open object. */
void place_json_put(gmd_json *json, const gmd_places *places, uint32_t frame);

/* The member "frames": those of the stack, the innermost first. */
void place_json_put_frames(gmd_json *json, const gmd_places *places, uint32_t stack);

#endif
