#include "known_conditions.h"

#include "gmd_min.h"
#include "gmd_sim.h"
#include "gmd_spelling.h"

#include <stddef.h>
#include <string.h>

/* A part of the line, of any length. */
typedef struct words {
    const char *at;
    size_t length;
} words;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next one of "A | B", without the spaces around it; of no length where nothing stands. False:
 * there is none, and `*at` is NULL then. */
static bool next_condition(const char **at, words *out)
{
    if (!*at) {
        return false;
    }
    const char *from = *at + strspn(*at, " \t\r");
    size_t length = strcspn(from, "|");
    *at = from[length] ? from + length + 1 : NULL;
    while (length && is_blank(from[length - 1])) {
        length--;
    }
    *out = (words){from, length};
    return true;
}

static bool are(words w, const char *text)
{
    return strlen(text) == w.length && memcmp(w.at, text, w.length) == 0;
}

/* What follows `keyword` and a space; of no length: the words begin otherwise, or nothing follows.
 */
static words after(words w, const char *keyword)
{
    size_t length = strlen(keyword);
    bool begins = w.length > length && memcmp(w.at, keyword, length) == 0 && w.at[length] == ' ';
    return begins ? (words){w.at + length + 1, w.length - length - 1} : (words){w.at, 0};
}

static bool are_in(words w, const char *text)
{
    for (const char *end = text + strlen(text); (size_t)(end - text) >= w.length; text++) {
        if (memcmp(text, w.at, w.length) == 0) {
            return true;
        }
    }
    return false;
}

bool conditions_have_end(const char *conditions)
{
    words w;
    conditions = *conditions ? conditions : NULL;
    while (next_condition(&conditions, &w)) {
        if (are(w, "end")) {
            return true;
        }
    }
    return false;
}

/* --- requests that a run has had or not -------------------------------------------------- */

static const struct {
    const char *words;
    size_t flag; /* where in known_context */
} requests[] = {{"destroy", offsetof(known_context, has_destroyed)},
                {"device", offsetof(known_context, has_second_device)},
                {"begin_pool", offsetof(known_context, has_begun_pool)},
                {"begin_capture", offsetof(known_context, has_captured)},
                {"leave_error", offsetof(known_context, has_left_error)}};

/* SIZE_MAX: it is no such condition. */
static size_t flag_of(words w)
{
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (are(w, requests[i].words)) {
            return requests[i].flag;
        }
    }
    return SIZE_MAX;
}

/* --- functions that can be made to fail -------------------------------------------------- */

#define FUNCTION_NAME(result, name, parameters, arguments) #name,
static const char *const functions[] = {GMD_SIM_CUDA_FUNCTIONS(FUNCTION_NAME)};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* The one that is spelt most like it; itself, where it is one. */
static const char *nearest_function(words name)
{
    const char *nearest = functions[0];
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        size_t away = gmd_spelling_distance(name.at, name.length, functions[i]);
        nearest = away < least ? functions[i] : nearest;
        least = gmd_min(away, least);
    }
    return nearest;
}

/* --- one condition ----------------------------------------------------------------------- */

static gmd_status check(words w, const char *path, size_t number, gmd_error *error)
{
    words function = after(w, "fault");
    const char *nearest = function.length ? nearest_function(function) : "";
    int shown = w.length < 80 ? (int)w.length : 80;
    if (function.length && !are(function, nearest)) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s:%zu: '%.*s': the simulated device has no such function; the nearest "
                        "name is %s",
                        path, number, shown, w.at, nearest);
    }
    bool is_one = function.length || after(w, "conf").length || are(w, "fault") || are(w, "end") ||
                  flag_of(w) != SIZE_MAX;
    if (!is_one) {
        return gmd_fail(
            error, GMD_BAD_INPUT,
            "%s:%zu: expected 'fault', 'fault FUNCTION', 'conf TEXT', 'destroy', 'device', "
            "'begin_pool', 'begin_capture', 'leave_error' or 'end' behind '|', found "
            "'%.*s'",
            path, number, shown, w.at);
    }
    return GMD_OK;
}

gmd_status conditions_check(const char *conditions, const char *path, size_t number,
                            gmd_error *error)
{
    words w;
    gmd_status status = GMD_OK;
    while (status == GMD_OK && next_condition(&conditions, &w)) {
        status = check(w, path, number, error);
    }
    return status;
}

static bool has_failed(const known_context *context, words function)
{
    for (uint32_t i = 0; i < context->fault_count; i++) {
        if (are(function, context->faults[i])) {
            return true;
        }
    }
    return false;
}

static bool is_met(const known_context *context, words w)
{
    words function = after(w, "fault"), setting = after(w, "conf");
    size_t flag = flag_of(w);
    return function.length    ? has_failed(context, function)
           : are(w, "fault")  ? context->fault_count > 0
           : setting.length   ? are_in(setting, context->conf)
           : flag != SIZE_MAX ? *(const bool *)((const char *)context + flag)
                              : true; /* the end */
}

bool conditions_are_met(const known_context *context, const char *conditions)
{
    words w;
    conditions = *conditions ? conditions : NULL;
    while (next_condition(&conditions, &w)) {
        if (!context || !is_met(context, w)) {
            return false;
        }
    }
    return true;
}
