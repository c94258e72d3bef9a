#include "gmd_command.h"

#include <stdio.h>
#include <string.h>

static void put(gmd_command *c, const char *bytes, size_t count)
{
    if (c->is_cut || count >= c->size - c->length) {
        c->is_cut = true;
        return;
    }
    memcpy(c->text + c->length, bytes, count);
    c->length += count;
    c->text[c->length] = '\0';
}

static void put_text(gmd_command *c, const char *text)
{
    put(c, text, strlen(text));
}

gmd_command gmd_command_begin(char *text, size_t size, const char *start)
{
    gmd_command c = {.text = text, .size = size};
    text[0] = '\0';
    put_text(&c, start);
    return c;
}

void gmd_command_more(gmd_command *c, const char *words)
{
    if (words && *words) {
        put_text(c, " ");
        put_text(c, words);
    }
}

void gmd_command_word(gmd_command *c, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+,:=@%";
    put_text(c, " ");
    if (*word && strspn(word, plain) == strlen(word)) {
        put_text(c, word);
        return;
    }
    put_text(c, "'");
    for (const char *at = word; *at; at++) {
        if (*at == '\'') {
            put_text(c, "'\\''");
        } else {
            put(c, at, 1);
        }
    }
    put_text(c, "'");
}

void gmd_command_option(gmd_command *c, const char *option, const char *value)
{
    if (value && *value) {
        gmd_command_more(c, option);
        gmd_command_word(c, value);
    }
}

void gmd_command_end(gmd_command *c)
{
    if (c->is_cut) {
        snprintf(c->text, c->size, "# the command is too long to be shown here");
    }
}
