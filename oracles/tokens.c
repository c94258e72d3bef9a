/* tokens.c - parties out of what others say: what stays the same from run to run. */
#include "gmd_tokens.h"

#include "gmd_min.h"

#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* --- an allocator's own words ------------------------------------------------------------ */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* A size is the same in every unit. */
static size_t unit_length(const char *text)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " bytes"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i]);
        if (strncmp(text, units[i], length) == 0 && !is_word(text[length])) {
            return length;
        }
    }
    return 0;
}

static bool is_driver_function(const char *word)
{
    return word[0] == 'c' && word[1] == 'u' && isupper((unsigned char)word[2]);
}

/* Which of the driver's functions is missing, or is looked for first, is chance: "Can't find
 * cuMemMap", and PyTorch's "r.cuMemMap_ INTERNAL ASSERT FAILED". */
static bool is_missing_symbol(const char *text, const char *word, size_t word_length)
{
    static const char before[] = "Can't find ";
    size_t length = strlen(before);
    bool is_looked_for = word >= text + length && strncmp(word - length, before, length) == 0;
    const char *member = memchr(word, '.', word_length);
    return (is_looked_for && is_driver_function(word)) ||
           (member && is_driver_function(member + 1) && word[word_length - 1] == '_');
}

/* What identifies an allocator's words: the condition of PyTorch's assertions, without the place in
 * its sources; its errors without the advice behind them; of other words the first line. */
static size_t telling_length(const char *text)
{
    static const char assertion[] = " INTERNAL ASSERT FAILED";
    size_t line = strcspn(text, "\n");
    const char *place = strstr(text, assertion);
    return place && (size_t)(place - text) < line ? (size_t)(place - text) + strlen(assertion)
                                                  : line;
}

/* Without numbers; `size` bytes of it, whatever character that ends in. */
static void copy_words(const char *text, char *words, size_t size)
{
    const char *at = text, *end = text + telling_length(text);
    size_t length = 0;
    while (at < end && length + 1 < size) {
        if (!is_word(*at)) {
            words[length++] = *at++;
            continue;
        }
        const char *word = at;
        while (at < end && is_word(*at)) {
            at++;
        }
        size_t word_length = (size_t)(at - word);
        if (isdigit((unsigned char)*word) || is_missing_symbol(text, word, word_length)) {
            words[length++] = '*';
            at += unit_length(at);
            continue;
        }
        size_t room = size - 1 - length;
        size_t kept = gmd_min(word_length, room);
        memcpy(words + length, word, kept);
        length += kept;
    }
    words[length] = '\0';
}

void gmd_error_token(const char *text, char token[GMD_PARTY_VALUE])
{
    enum { CHARACTER = 4 }; /* bytes, at most: the last one that may fit is whole */
    char words[GMD_PARTY_VALUE + CHARACTER];
    copy_words(text + strspn(text, " \t\r\n"), words, sizeof words);
    gmd_party_text(words, token);
}

/* --- others ------------------------------------------------------------------------------ */

void gmd_signal_token(int number, char token[GMD_SIGNAL_TOKEN])
{
    static const struct {
        int number;
        const char *name;
    } signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},
                   {SIGFPE, "SIGFPE"},   {SIGILL, "SIGILL"},   {SIGTERM, "SIGTERM"},
                   {SIGKILL, "SIGKILL"}, {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"},
                   {SIGINT, "SIGINT"},   {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"},
                   {SIGXCPU, "SIGXCPU"}};
    snprintf(token, GMD_SIGNAL_TOKEN, "%d", number);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        if (signals[i].number == number) {
            snprintf(token, GMD_SIGNAL_TOKEN, "%s", signals[i].name);
        }
    }
}

void gmd_request_token(const char *request, char token[GMD_REQUEST_TOKEN])
{
    snprintf(token, GMD_REQUEST_TOKEN, "%.*s", (int)strcspn(request, " "), request);
}

const char *gmd_call_text(const char *function, uint64_t address, uint64_t size,
                          char text[GMD_CALL_TEXT])
{
    if (!address && !size) {
        snprintf(text, GMD_CALL_TEXT, "%.64s", function);
    } else if (!size) {
        snprintf(text, GMD_CALL_TEXT, "%.64s(0x%" PRIx64 ")", function, address);
    } else {
        snprintf(text, GMD_CALL_TEXT, "%.64s(0x%" PRIx64 ", %" PRIu64 " B)", function, address,
                 size);
    }
    return text;
}
