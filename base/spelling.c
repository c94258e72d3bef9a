#include "gmd_spelling.h"

#include "gmd_min.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MOST = sizeof((gmd_near *)0)->best / sizeof((gmd_near *)0)->best[0] };

/* The distances of the first characters of both names: of one more character of `a` each row. */
typedef struct rows {
    size_t before[GMD_SPELLING_MAX + 1], last[GMD_SPELLING_MAX + 1], next[GMD_SPELLING_MAX + 1];
} rows;

static void add_row(rows *r, const char *a, size_t i, const char *b, size_t columns)
{
    r->next[0] = i;
    for (size_t j = 1; j <= columns; j++) {
        size_t changed = r->last[j - 1] + (a[i - 1] != b[j - 1]);
        size_t one_more = gmd_min(r->last[j], r->next[j - 1]) + 1;
        r->next[j] = gmd_min(changed, one_more);
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
            r->next[j] = gmd_min(r->next[j], r->before[j - 2] + 1);
        }
    }
    memcpy(r->before, r->last, sizeof r->last);
    memcpy(r->last, r->next, sizeof r->next);
}

size_t gmd_spelling_distance(const char *a, size_t a_length, const char *b)
{
    rows r;
    size_t columns = strlen(b);
    if (columns > GMD_SPELLING_MAX || a_length > GMD_SPELLING_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= columns; j++) {
        r.last[j] = r.before[j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        add_row(&r, a, i, b, columns);
    }
    return r.last[columns];
}

void gmd_near_begin(gmd_near *near, const char *name)
{
    *near = (gmd_near){.name = name};
}

/* A third of the name may differ; and the beginning of a name is like the name. */
static size_t away(const char *name, const char *candidate)
{
    size_t length = strlen(name), other = strlen(candidate);
    size_t distance = gmd_spelling_distance(name, length, candidate);
    if (distance <= gmd_max(length / 3, 1) && distance < other) {
        return distance;
    }
    bool begins =
        gmd_min(length, other) >= 3 && strncmp(name, candidate, gmd_min(length, other)) == 0;
    return begins && distance != SIZE_MAX ? distance : SIZE_MAX;
}

void gmd_near_offer(gmd_near *near, const char *candidate)
{
    size_t distance = away(near->name, candidate), at = near->count;
    if (distance == SIZE_MAX) {
        return;
    }
    for (size_t i = 0; i < near->count; i++) {
        if (strcmp(near->best[i].name, candidate) == 0) {
            return;
        }
    }
    while (at > 0 && near->best[at - 1].distance > distance) {
        at--;
    }
    if (at == MOST) {
        return;
    }
    near->count = gmd_min(near->count + 1, MOST);
    memmove(&near->best[at + 1], &near->best[at], (near->count - at - 1) * sizeof near->best[0]);
    snprintf(near->best[at].name, sizeof near->best[at].name, "%s", candidate);
    near->best[at].distance = distance;
}

const char *gmd_near_text(gmd_near *near)
{
    size_t used = 0;
    near->text[0] = '\0';
    for (size_t i = 0; i < near->count; i++) {
        const char *joint = i == 0 ? " (did you mean " : i + 1 < near->count ? ", " : " or ";
        used += (size_t)snprintf(near->text + used, sizeof near->text - used, "%s%s", joint,
                                 near->best[i].name);
    }
    if (near->count > 0) {
        snprintf(near->text + used, sizeof near->text - used, "?)");
    }
    return near->text;
}
