#include "setting_choice.h"

#include "gmd_size.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST_SPLIT_MIB 21u /* PyTorch refuses 20 and less */
#define SIZES_TRIED     6

/* --- values ------------------------------------------------------------------------------------
 */

static int compare_sizes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void keep_each_once(setting_values *v)
{
    size_t kept = 0;
    qsort(v->sizes, v->size_count, sizeof *v->sizes, compare_sizes);
    for (size_t i = 0; i < v->size_count; i++) {
        if (kept == 0 || v->sizes[kept - 1] != v->sizes[i]) {
            v->sizes[kept++] = v->sizes[i];
        }
    }
    v->size_count = kept;
}

/* A request of that many MiB, or more, is oversize with max_split_size_mb at that value. */
static gmd_status list_sizes(setting_values *v, const job_steps *steps, gmd_error *error)
{
    v->sizes = malloc((steps->count + 1) * sizeof *v->sizes);
    if (!v->sizes) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %zu requests", steps->count);
    }
    for (size_t i = 0; i < steps->count; i++) {
        const job_step *step = &steps->items[i];
        uint64_t mib = step->op == GMD_OP_ALLOC ? step->bytes / GMD_MIB : 0;
        if (mib >= LEAST_SPLIT_MIB && mib < UINT32_MAX) {
            v->sizes[v->size_count++] = (uint32_t)mib;
        }
    }
    keep_each_once(v);
    return GMD_OK;
}

static void add_value(setting_values *v, setting_option option, uint32_t value)
{
    size_t *count = &v->counts[option];
    bool is_new = *count == 0 || v->items[option][*count - 1] != value;
    if (is_new && *count < VALUES_MAX) {
        v->items[option][(*count)++] = value;
    }
}

static void add_splits(setting_values *v)
{
    if (v->size_count) {
        add_value(v, OPTION_MAX_SPLIT, LEAST_SPLIT_MIB);
    }
    for (size_t i = 0; v->size_count && i < SIZES_TRIED; i++) {
        add_value(v, OPTION_MAX_SPLIT, v->sizes[i * (v->size_count - 1) / (SIZES_TRIED - 1)]);
    }
}

static bool has_request(const job_steps *steps, uint64_t above, uint64_t up_to)
{
    for (size_t i = 0; i < steps->count; i++) {
        const job_step *step = &steps->items[i];
        if (step->op == GMD_OP_ALLOC && step->bytes > above && step->bytes <= up_to) {
            return true;
        }
    }
    return false;
}

gmd_status setting_values_make(setting_values *values, const job_steps *steps, bool has_limit,
                               gmd_error *error)
{
    *values = (setting_values){0};
    gmd_status status = list_sizes(values, steps, error);
    if (status != GMD_OK) {
        return status;
    }
    add_value(values, OPTION_EXPANDABLE, 1);
    add_splits(values);
    for (uint32_t percent = 60; has_limit && percent <= 90; percent += 10) {
        add_value(values, OPTION_GC, percent);
    }
    for (uint32_t divisions = 2; divisions <= 16; divisions *= 2) {
        add_value(values, OPTION_ROUNDUP, divisions);
    }
    if (has_request(steps, GMD_MIB, 10 * GMD_MIB)) { /* for others it sizes no segment */
        add_value(values, OPTION_LARGE_SEGMENT, 12);
        add_value(values, OPTION_LARGE_SEGMENT, 32);
        add_value(values, OPTION_LARGE_SEGMENT, 64);
    }
    return GMD_OK;
}

void setting_values_free(setting_values *values)
{
    free(values->sizes);
    *values = (setting_values){0};
}

/* --- one choice --------------------------------------------------------------------------------
 */

static void put_option(setting_option option, uint32_t value, char *text, size_t size)
{
    switch (option) {
    case OPTION_EXPANDABLE:
        snprintf(text, size, "expandable_segments:True");
        return;
    case OPTION_MAX_SPLIT:
        snprintf(text, size, "max_split_size_mb:%" PRIu32, value);
        return;
    case OPTION_GC:
        snprintf(text, size, "garbage_collection_threshold:%.2f", value / 100.0);
        return;
    case OPTION_ROUNDUP:
        snprintf(text, size, "roundup_power2_divisions:%" PRIu32, value);
        return;
    default:
        snprintf(text, size, "large_segment_size_mb:%" PRIu32, value);
    }
}

void setting_choice_text(const setting_choice *choice, char conf[TRIAL_CONF])
{
    size_t length = 0;
    conf[0] = '\0';
    for (int i = 0; i < OPTION_KINDS; i++) {
        char text[64];
        if (choice->values[i]) {
            put_option((setting_option)i, choice->values[i], text, sizeof text);
            length += (size_t)snprintf(conf + length, TRIAL_CONF - length, "%s%s",
                                       length ? "," : "", text);
        }
    }
}

unsigned setting_choice_options(const setting_choice *choice)
{
    unsigned count = 0;
    for (int i = 0; i < OPTION_KINDS; i++) {
        count += choice->values[i] != 0;
    }
    return count;
}

bool setting_choice_is_sensible(const setting_choice *choice)
{
    return !choice->values[OPTION_EXPANDABLE] ||
           (!choice->values[OPTION_MAX_SPLIT] && !choice->values[OPTION_GC]);
}
