#include "gmd_schedule.h"

#include "gmd_size.h"
#include "quote.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct words { /* what is left of the text */
    const char *at, *end;
} words;

typedef struct word {
    const char *text;
    size_t length;
} word;

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* An empty word: there are no more. */
static word next_word(words *w)
{
    while (w->at < w->end && is_space(*w->at)) {
        w->at++;
    }
    word found = {.text = w->at};
    while (w->at < w->end && !is_space(*w->at)) {
        w->at++;
    }
    found.length = (size_t)(w->at - found.text);
    return found;
}

static bool word_is(word found, const char *name)
{
    return found.length == strlen(name) && memcmp(found.text, name, found.length) == 0;
}

static gmd_status unexpected(const char *expected, word found, gmd_error *error)
{
    char quoted[QUOTE_BYTES];
    return gmd_fail(error, GMD_BAD_INPUT, "expected %s, found %s", expected,
                    found.length ? quote_text(found.text, found.length, quoted)
                                 : "the end of the line");
}

static bool read_number(word found, uint64_t *number)
{
    char text[32];
    if (!found.length || found.length >= sizeof text) {
        return false;
    }
    memcpy(text, found.text, found.length);
    text[found.length] = '\0';
    return gmd_parse_u64(text, number);
}

static gmd_status parse_seed(gmd_schedule *schedule, words *w, gmd_error *error)
{
    word found = next_word(w);
    if (!read_number(found, &schedule->seed)) {
        return unexpected("a seed, a whole number", found, error);
    }
    schedule->kind = GMD_SCHEDULE_SEEDED;
    return GMD_OK;
}

static gmd_status parse_count(uint32_t *count, words *w, uint64_t most, const char *expected,
                              gmd_error *error)
{
    uint64_t number;
    word found = next_word(w);
    if (!read_number(found, &number) || number < 1 || number > most) {
        return unexpected(expected, found, error);
    }
    *count = (uint32_t)number;
    return GMD_OK;
}

static gmd_status expect_word(words *w, const char *name, const char *expected, gmd_error *error)
{
    word found = next_word(w);
    return word_is(found, name) ? GMD_OK : unexpected(expected, found, error);
}

/* What follows `bounded` or `pct`. */
static gmd_status parse_points(gmd_schedule *schedule, words *w, gmd_schedule_kind kind,
                               gmd_error *error)
{
    gmd_status status = parse_count(&schedule->depth, w, GMD_SCHEDULE_DEPTH_MAX,
                                    kind == GMD_SCHEDULE_PCT ? "a depth from 1 to 16"
                                                             : "a number of preemptions, 1 to 16",
                                    error);
    if (status == GMD_OK) {
        status = expect_word(w, "steps", "'steps'", error);
    }
    if (status == GMD_OK) {
        status =
            parse_count(&schedule->steps, w, UINT32_MAX, "a number of steps, 1 or more", error);
    }
    if (status == GMD_OK) {
        status = expect_word(w, "seed", "'seed'", error);
    }
    if (status == GMD_OK) {
        status = parse_seed(schedule, w, error);
        schedule->kind = kind;
    }
    return status;
}

static gmd_status parse_choices(gmd_schedule *schedule, words *w, gmd_error *error)
{
    size_t most = (size_t)(w->end - w->at) / 2 + 1; /* each takes a space and a digit */
    schedule->choices = malloc(most);
    if (!schedule->choices) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %zu choices", most);
    }
    word found = next_word(w);
    do {
        uint64_t choice;
        if (!read_number(found, &choice) || choice > UINT8_MAX) {
            return unexpected("a choice from 0 to 255", found, error);
        }
        schedule->choices[schedule->choice_count++] = (uint8_t)choice;
        found = next_word(w);
    } while (found.length);
    schedule->kind = GMD_SCHEDULE_EXPLICIT;
    return GMD_OK;
}

static gmd_status parse_clocked(gmd_schedule *schedule, word found, gmd_error *error)
{
    if (word_is(found, "timed")) {
        schedule->kind = GMD_SCHEDULE_TIMED;
    } else if (word_is(found, "eager")) {
        schedule->kind = GMD_SCHEDULE_EAGER;
    } else if (word_is(found, "lazy")) {
        schedule->kind = GMD_SCHEDULE_LAZY;
    } else {
        return unexpected("'timed', 'eager', 'lazy', 'seed N' or 'explicit C...'", found, error);
    }
    return GMD_OK;
}

static gmd_status parse(gmd_schedule *schedule, const char *text, size_t length, bool is_of_device,
                        gmd_error *error)
{
    words w = {text, text + length};
    *schedule = (gmd_schedule){0};
    word first = next_word(&w), rest;
    gmd_status status;
    if (word_is(first, "seed")) {
        status = parse_seed(schedule, &w, error);
    } else if (word_is(first, "explicit")) {
        status = parse_choices(schedule, &w, error);
    } else if (is_of_device) {
        status = parse_clocked(schedule, first, error);
    } else if (word_is(first, "bounded")) {
        status = parse_points(schedule, &w, GMD_SCHEDULE_BOUNDED, error);
    } else if (word_is(first, "pct")) {
        status = parse_points(schedule, &w, GMD_SCHEDULE_PCT, error);
    } else {
        status = unexpected("'seed N', 'bounded C steps K seed N', 'pct D steps K seed N' or "
                            "'explicit C...'",
                            first, error);
    }
    if (status == GMD_OK && (rest = next_word(&w)).length) {
        status = unexpected("the end of the line", rest, error);
    }
    if (status != GMD_OK) {
        gmd_schedule_free(schedule);
    }
    return status;
}

gmd_status gmd_schedule_parse(gmd_schedule *schedule, const char *text, size_t length,
                              gmd_error *error)
{
    return parse(schedule, text, length, true, error);
}

gmd_status gmd_interleave_parse(gmd_schedule *schedule, const char *text, size_t length,
                                gmd_error *error)
{
    return parse(schedule, text, length, false, error);
}

void gmd_schedule_write(const gmd_schedule *schedule, FILE *out)
{
    static const char *const names[] = {
        [GMD_SCHEDULE_UNSTATED] = "",       [GMD_SCHEDULE_TIMED] = "timed",
        [GMD_SCHEDULE_EAGER] = "eager",     [GMD_SCHEDULE_LAZY] = "lazy",
        [GMD_SCHEDULE_SEEDED] = "seed",     [GMD_SCHEDULE_EXPLICIT] = "explicit",
        [GMD_SCHEDULE_BOUNDED] = "bounded", [GMD_SCHEDULE_PCT] = "pct"};
    fputs(names[schedule->kind], out);
    if (schedule->kind == GMD_SCHEDULE_SEEDED) {
        fprintf(out, " %" PRIu64, schedule->seed);
    } else if (gmd_schedule_is_seeded(schedule)) {
        fprintf(out, " %" PRIu32 " steps %" PRIu32 " seed %" PRIu64, schedule->depth,
                schedule->steps, schedule->seed);
    }
    for (size_t i = 0; i < schedule->choice_count; i++) {
        fprintf(out, " %u", schedule->choices[i]);
    }
}

gmd_status gmd_schedule_copy(gmd_schedule *to, const gmd_schedule *from, gmd_error *error)
{
    *to = *from;
    to->choices = NULL;
    if (!from->choice_count) {
        return GMD_OK;
    }
    to->choices = malloc(from->choice_count);
    if (!to->choices) {
        *to = (gmd_schedule){0};
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %zu choices", from->choice_count);
    }
    memcpy(to->choices, from->choices, from->choice_count);
    return GMD_OK;
}

void gmd_schedule_free(gmd_schedule *schedule)
{
    free(schedule->choices);
    *schedule = (gmd_schedule){0};
}
