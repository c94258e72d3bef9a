#include "gmd_cause.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* "17", "0x7f00", "1.5", "20MiB", and an index with its letter: "b3", "s1", "t2". */
static bool is_number(const char *word, size_t length)
{
    if (isdigit((unsigned char)word[0])) {
        return true;
    }
    bool has_letter = length > 1 && strchr("bst", word[0]);
    return has_letter && strspn(word + 1, "0123456789") == length - 1;
}

static size_t unit_length(const char *text)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i]);
        if (strncmp(text, units[i], length) == 0 && !is_word(text[length])) {
            return length;
        }
    }
    return 0;
}

/* "in request 7: alloc b3 20MiB s1" ends after "alloc". */
static const char *end_of_interest(const char *message)
{
    static const char marker[] = "in request ";
    const char *place = strstr(message, marker);
    const char *colon = place ? strchr(place, ':') : NULL;
    if (!colon || colon[1] != ' ') {
        return message + strlen(message);
    }
    const char *end = colon + 2;
    while (is_word(*end)) {
        end++;
    }
    return end;
}

static bool is_driver_function(const char *word)
{
    return word[0] == 'c' && word[1] == 'u' && isupper((unsigned char)word[2]);
}

/* Which of the driver's functions is missing, or is looked for first, is chance: "Can't find
 * cuMemMap", and PyTorch's "r.cuMemMap_ INTERNAL ASSERT FAILED". */
static bool is_missing_symbol(const char *message, const char *word, size_t word_length)
{
    static const char before[] = "Can't find ";
    size_t length = strlen(before);
    bool is_looked_for = word >= message + length && strncmp(word - length, before, length) == 0;
    const char *member = memchr(word, '.', word_length);
    return (is_looked_for && is_driver_function(word)) ||
           (member && is_driver_function(member + 1) && word[word_length - 1] == '_');
}

void gmd_cause_normalise(const char *message, char *out, size_t size)
{
    const char *at = message, *end = end_of_interest(message);
    size_t length = 0;
    while (at < end && length + 1 < size) {
        if (!is_word(*at)) {
            out[length++] = *at++;
            continue;
        }
        const char *word = at;
        while (at < end && is_word(*at)) {
            at++;
        }
        size_t word_length = (size_t)(at - word);
        if (word[word_length - 1] == '.' && word_length > 1) { /* the end of a sentence */
            word_length--;
            at--;
        }
        if (is_number(word, word_length) || is_missing_symbol(message, word, word_length)) {
            out[length++] = '#';
            at += unit_length(at);
            continue;
        }
        size_t room = size - 1 - length;
        size_t kept = word_length < room ? word_length : room;
        memcpy(out + length, word, kept);
        length += kept;
    }
    out[length] = '\0';
}

/* Which threads came into a deadlock, and by which requests, is chance: the locks are the cause, in
 * the order of their names. */
static bool name_locks(const char *message, char *out, size_t size)
{
    static const char marker[] = "the lock at ";
    char locks[4][80];
    size_t count = 0;
    for (const char *at = message; (at = strstr(at, marker)) && count < 4;) {
        at += strlen(marker);
        size_t length = strcspn(at, ", ;"), i = 0;
        char lock[80];
        snprintf(lock, sizeof lock, "%.*s", (int)length, at);
        while (i < count && strcmp(locks[i], lock) < 0) {
            i++;
        }
        if (i == count || strcmp(locks[i], lock) != 0) {
            memmove(locks + i + 1, locks + i, (count - i) * sizeof locks[0]);
            memcpy(locks[i], lock, sizeof lock);
            count++;
        }
    }
    size_t used = (size_t)snprintf(out, size, "deadlock");
    for (size_t i = 0; i < count && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, " %s", locks[i]);
    }
    return count > 0;
}

void gmd_cause_of(const gmd_violation *violation, gmd_cause *cause)
{
    snprintf(cause->oracle, sizeof cause->oracle, "%s", violation->oracle);
    bool is_deadlock = strncmp(violation->message, "deadlock: ", strlen("deadlock: ")) == 0;
    if (!is_deadlock || !name_locks(violation->message, cause->text, sizeof cause->text)) {
        gmd_cause_normalise(violation->message, cause->text, sizeof cause->text);
    }
}

bool gmd_cause_equal(const gmd_cause *a, const gmd_cause *b)
{
    return strcmp(a->oracle, b->oracle) == 0 && strcmp(a->text, b->text) == 0;
}

const gmd_violation *gmd_cause_find(const gmd_outcome *outcome, const gmd_cause *cause)
{
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        gmd_cause found;
        gmd_cause_of(&outcome->violations[i], &found);
        if (gmd_cause_equal(&found, cause)) {
            return &outcome->violations[i];
        }
    }
    return NULL;
}
