#include "setting_search.h"

#include "gmd_grow.h"
#include "gmd_min.h"
#include "gmd_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3, VARIED = 3, TRIED_MIN = 12, TRIED_MAX = 90 };

#define STEPS_TRIED UINT64_C(20000000) /* requests times settings: some seconds */

/* Long jobs are replayed under fewer settings. */
static size_t most_tried(const setting_search *s)
{
    uint64_t most = STEPS_TRIED / gmd_max(s->crew->plan->steps.count, 1);
    return gmd_max(gmd_min(most, TRIED_MAX), TRIED_MIN);
}

/* --- which is better ---------------------------------------------------------------------------
 */

/* Where the job fits, differences of less than a hundredth of the memory are none: then fewer and
 * cheaper calls of the device count, and then fewer options. Where it does not, what is missing is
 * memory, and each page counts. */
static uint64_t memory_rank(uint64_t bytes, bool fits)
{
    uint64_t unit = 1;
    while (fits && unit < bytes / 128) {
        unit *= 2;
    }
    return bytes ? bytes / unit * unit : UINT64_MAX;
}

static int compare_numbers(uint64_t x, uint64_t y)
{
    return (x > y) - (x < y);
}

static int compare_tried(const void *a, const void *b)
{
    const tried_setting *x = a, *y = b;
    const trial_result *p = &x->trial.result, *q = &y->trial.result;
    bool fits = p->refused == 0;
    int order = compare_numbers(!fits, q->refused != 0);
    order = order ? order
                  : compare_numbers(memory_rank(x->trial.smallest, fits),
                                    memory_rank(y->trial.smallest, fits));
    order = order ? order : compare_numbers(p->refused, q->refused);
    order = order ? order : compare_numbers((uint64_t)p->device_ns, (uint64_t)q->device_ns);
    order = order ? order
                  : compare_numbers(setting_choice_options(&x->choice),
                                    setting_choice_options(&y->choice));
    order = order ? order : (int)y->is_given - (int)x->is_given;
    return order ? order : strcmp(x->trial.conf, y->trial.conf);
}

static bool does_the_same(const tried_setting *x, const tried_setting *y)
{
    const trial_result *p = &x->trial.result, *q = &y->trial.result;
    return p->peak_allocated == q->peak_allocated && p->peak_reserved == q->peak_reserved &&
           p->retries == q->retries && p->refused == q->refused &&
           p->device_calls == q->device_calls &&
           (x->trial.smallest == y->trial.smallest || !x->trial.smallest || !y->trial.smallest);
}

static uint64_t best_smallest(const setting_search *s)
{
    uint64_t best = 0;
    for (size_t i = 0; i < s->count; i++) {
        uint64_t smallest = s->items[i].trial.smallest;
        best = smallest && (!best || smallest < best) ? smallest : best;
    }
    return best;
}

/* --- trials --------------------------------------------------------------------------------------
 */

static bool is_tried(const setting_search *s, const char *conf)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->items[i].trial.conf, conf) == 0) {
            return true;
        }
    }
    return false;
}

static gmd_status add(setting_search *s, const tried_setting *setting, gmd_error *error)
{
    if (is_tried(s, setting->trial.conf)) {
        return GMD_OK;
    }
    if (!GMD_GROW(&s->items, &s->capacity, s->count + 1)) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for settings");
    }
    s->items[s->count++] = *setting;
    return GMD_OK;
}

typedef struct attempt {
    bool finds_smallest; /* of settings whose smallest memory is not known; else all are replayed */
    uint64_t must_beat;
} attempt;

static bool is_due(const attempt *of, const trial *t)
{
    return !of->finds_smallest || !t->smallest;
}

/* Tries the settings from number `first` on. */
static gmd_status try_from(setting_search *s, size_t first, attempt of, gmd_error *error)
{
    size_t count = 0;
    trial *trials = malloc((s->count - first + 1) * sizeof *trials);
    if (!trials) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for settings");
    }
    for (size_t i = first; i < s->count; i++) {
        if (is_due(&of, &s->items[i].trial)) {
            trials[count] = s->items[i].trial;
            trials[count].memory = s->memory;
            trials[count].finds_smallest = of.finds_smallest;
            trials[count++].must_beat = of.must_beat;
        }
    }
    gmd_status status = crew_run(s->crew, trials, count, error);
    const trial *next = trials;
    for (size_t i = first; i < s->count && status == GMD_OK; i++) {
        if (is_due(&of, &s->items[i].trial)) {
            s->items[i].trial = *next;
            s->replays += next->replays;
            status =
                next->status == GMD_OK ? GMD_OK : gmd_fail(error, next->status, "%s", next->error);
            next++;
        }
    }
    free(trials);
    return status;
}

gmd_status search_given(setting_search *s, const char *const *confs, size_t count, gmd_error *error)
{
    size_t first = s->count;
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < count && status == GMD_OK; i++) {
        tried_setting given = {.is_given = true};
        int length = snprintf(given.trial.conf, sizeof given.trial.conf, "%s", confs[i]);
        status = length < TRIAL_CONF ? add(s, &given, error)
                                     : gmd_fail(error, GMD_BAD_INPUT,
                                                "settings '%.100s...': longer than %d characters",
                                                confs[i], TRIAL_CONF - 1);
    }
    return status == GMD_OK ? try_from(s, first, (attempt){.finds_smallest = true}, error) : status;
}

/* --- the search
 * ------------------------------------------------------------------------------------ */

static gmd_status add_choice(setting_search *s, const setting_choice *choice, gmd_error *error)
{
    tried_setting t = {.choice = *choice};
    setting_choice_text(choice, t.trial.conf);
    return setting_choice_is_sensible(choice) && s->count < most_tried(s) ? add(s, &t, error)
                                                                          : GMD_OK;
}

/* Each of its options with each other value. */
static gmd_status vary(setting_search *s, const setting_values *values, setting_choice base,
                       gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (int option = 0; option < OPTION_KINDS; option++) {
        for (size_t i = 0; i < values->counts[option] && status == GMD_OK; i++) {
            setting_choice one = base;
            one.values[option] = values->items[option][i];
            status = add_choice(s, &one, error);
        }
    }
    return status;
}

/* A value with which the others at their defaults change nothing is not tried any further. */
static void drop_what_does_nothing(const setting_search *s, setting_values *values,
                                   const tried_setting *defaults)
{
    for (int option = 0; option < OPTION_KINDS; option++) {
        size_t kept = 0;
        for (size_t i = 0; i < values->counts[option]; i++) {
            setting_choice one = {{0}};
            char conf[TRIAL_CONF];
            one.values[option] = values->items[option][i];
            setting_choice_text(&one, conf);
            bool does_nothing = false;
            for (size_t k = 0; k < s->count; k++) {
                does_nothing = does_nothing || (strcmp(s->items[k].trial.conf, conf) == 0 &&
                                                does_the_same(&s->items[k], defaults));
            }
            if (!does_nothing) {
                values->items[option][kept++] = values->items[option][i];
            }
        }
        values->counts[option] = kept;
    }
}

/* The sizes next to the best value of max_split_size_mb. */
static gmd_status refine(setting_search *s, const setting_values *values, gmd_error *error)
{
    const setting_choice best = s->items[0].choice;
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < values->size_count && best.values[OPTION_MAX_SPLIT]; i++) {
        bool is_next =
            (i + 1 < values->size_count && values->sizes[i + 1] == best.values[OPTION_MAX_SPLIT]) ||
            (i > 0 && values->sizes[i - 1] == best.values[OPTION_MAX_SPLIT]);
        setting_choice one = best;
        one.values[OPTION_MAX_SPLIT] = values->sizes[i];
        status = is_next && status == GMD_OK ? add_choice(s, &one, error) : status;
    }
    return status;
}

static void sort(setting_search *s)
{
    if (s->count) {
        qsort(s->items, s->count, sizeof *s->items, compare_tried);
    }
}

static gmd_status search_rounds(setting_search *s, setting_values *values, gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (int round = 0; round < ROUNDS && status == GMD_OK; round++) {
        setting_choice bases[VARIED] = {{{0}}};
        size_t first = s->count, base_count = round ? gmd_min(VARIED, s->count) : 1;
        for (size_t i = 0; round && i < base_count; i++) {
            bases[i] = s->items[i].choice;
        }
        for (size_t i = 0; i < base_count && status == GMD_OK; i++) {
            status = vary(s, values, bases[i], error);
        }
        status = status == GMD_OK && round ? refine(s, values, error) : status;
        const attempt beats = {.finds_smallest = true, .must_beat = best_smallest(s)};
        status = status == GMD_OK ? try_from(s, first, beats, error) : status;
        if (status == GMD_OK && round == 0) {
            tried_setting defaults = {0};
            for (size_t i = 0; i < s->count; i++) {
                defaults = *s->items[i].trial.conf ? defaults : s->items[i];
            }
            drop_what_does_nothing(s, values, &defaults);
        }
        sort(s);
    }
    return status;
}

gmd_status search_all(setting_search *s, gmd_error *error)
{
    setting_values values;
    gmd_status status =
        setting_values_make(&values, &s->crew->plan->steps, s->memory.limit_bytes != 0, error);
    if (status == GMD_OK) {
        status = search_rounds(s, &values, error);
        setting_values_free(&values);
    }
    return status;
}

/* --- what is reported -------------------------------------------------------------------- */

/* Sorted before. */
static void keep_the_best(setting_search *s, size_t most)
{
    size_t kept = 0, searched = 0;
    for (size_t i = 0; i < s->count; i++) {
        bool is_new = true;
        for (size_t k = 0; k < kept; k++) {
            is_new = is_new && !does_the_same(&s->items[k], &s->items[i]);
        }
        bool stays = s->items[i].is_given || (is_new && searched < most);
        searched += stays && !s->items[i].is_given;
        if (stays) {
            s->items[kept++] = s->items[i];
        }
    }
    s->count = kept;
}

gmd_status search_settle(setting_search *s, const trial_memory *memory, size_t most,
                         gmd_error *error)
{
    bool is_other = memory->capacity_bytes != s->memory.capacity_bytes ||
                    memory->limit_bytes != s->memory.limit_bytes;
    s->memory = *memory;
    gmd_status status = is_other ? try_from(s, 0, (attempt){0}, error) : GMD_OK;
    if (status == GMD_OK) {
        sort(s);
        keep_the_best(s, most);
        status = try_from(s, 0, (attempt){.finds_smallest = true}, error);
        sort(s);
    }
    return status;
}

void search_free(setting_search *s)
{
    free(s->items);
    s->items = NULL;
    s->count = s->capacity = 0;
}
