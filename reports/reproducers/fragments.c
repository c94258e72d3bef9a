#include "fragments.h"

#include "gmd_grow.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct fragment {
    char *names, *text; /* names: between spaces */
    bool is_apart;      /* an empty line comes before the first part from here on */
    bool is_needed;
} fragment;

typedef struct fragments {
    fragment *items;
    size_t count, capacity;
} fragments;

/* --- flags and keys ---------------------------------------------------------------------- */

void fragment_flag(fragment_choice *choice, const char *flag, bool holds)
{
    if (holds && choice->flag_count < FLAGS_MOST) {
        choice->flags[choice->flag_count++] = flag;
    }
}

void fragment_key(fragment_choice *choice, const char *key, const char *value)
{
    if (choice->key_count < KEYS_MOST) {
        choice->keys[choice->key_count].key = key;
        choice->keys[choice->key_count++].value = value;
    }
}

static bool holds(const fragment_choice *choice, const char *flag, size_t length)
{
    bool is_denied = *flag == '!', is_set = false;
    flag += is_denied;
    length -= is_denied;
    for (size_t i = 0; i < choice->flag_count; i++) {
        is_set = is_set || (strlen(choice->flags[i]) == length &&
                            strncmp(choice->flags[i], flag, length) == 0);
    }
    return is_set != is_denied;
}

/* "a|b&!c": any of the alternatives, each of which needs all of its flags. */
static bool all_hold(const fragment_choice *choice, const char *flags)
{
    bool is_alternative = true;
    for (;;) {
        size_t length = strcspn(flags, "&|\n");
        is_alternative = is_alternative && holds(choice, flags, length);
        char end = flags[length];
        if (end != '&' && is_alternative) {
            return true;
        }
        if (end != '&' && end != '|') {
            return false;
        }
        is_alternative = is_alternative || end == '|';
        flags += length + 1;
    }
}

static void put_with_keys(const fragment_choice *choice, const char *text, size_t length, FILE *out)
{
    for (size_t i = 0; i < length; i++) {
        size_t k = 0;
        for (; text[i] == '@' && k < choice->key_count; k++) {
            size_t key = strlen(choice->keys[k].key);
            if (strncmp(text + i + 1, choice->keys[k].key, key) == 0 && text[i + 1 + key] == '@') {
                fputs(choice->keys[k].value, out);
                i += key + 1;
                break;
            }
        }
        if (text[i] != '@' || k == choice->key_count) {
            fputc(text[i], out);
        }
    }
}

/* --- the library ------------------------------------------------------------------------- */

/* A line of a fragment, where its flags hold, without them. */
static void put_line(const fragment_choice *choice, const char *mark, const char *line,
                     size_t length, FILE *out)
{
    char sign[8];
    snprintf(sign, sizeof sign, "%s?", mark);
    const char *flags = strstr(line, sign);
    if (flags && flags < line + length) {
        if (!all_hold(choice, flags + strlen(sign))) {
            return;
        }
        length = (size_t)(flags - line);
        while (length > 0 && line[length - 1] == ' ') {
            length--;
        }
    }
    put_with_keys(choice, line, length, out);
    fputc('\n', out);
}

static bool begin_fragment(fragments *all, const fragment_choice *choice, const char *names,
                           size_t length, bool is_apart)
{
    size_t size;
    if (!GMD_GROW(&all->items, &all->capacity, all->count + 1)) {
        return false;
    }
    fragment *f = &all->items[all->count++];
    *f = (fragment){.is_apart = is_apart};
    FILE *text = open_memstream(&f->names, &size);
    if (!text) {
        return false;
    }
    fputc(' ', text);
    put_with_keys(choice, names, length, text);
    fputc(' ', text);
    return fclose(text) == 0;
}

static bool read_library(fragments *all, const char *library, const char *mark,
                         const fragment_choice *choice)
{
    size_t mark_length = strlen(mark), size;
    bool is_apart = false, is_whole = true;
    FILE *text = NULL;
    for (const char *line = library; is_whole && *line;) {
        size_t length = strcspn(line, "\n");
        bool is_marked = strncmp(line, mark, mark_length) == 0;
        if (is_marked && line[mark_length] == '=') {
            is_apart = true;
        } else if (is_marked && line[mark_length] == ':') {
            is_whole = !text || fclose(text) == 0;
            is_whole = is_whole && begin_fragment(all, choice, line + mark_length + 1,
                                                  length - mark_length - 1, is_apart);
            text = is_whole ? open_memstream(&all->items[all->count - 1].text, &size) : NULL;
            is_whole = text != NULL;
            is_apart = false;
        } else if (text) {
            put_line(choice, mark, line, length, text);
        }
        line += length + (line[length] == '\n');
    }
    return (!text || fclose(text) == 0) && is_whole;
}

/* --- what is needed ---------------------------------------------------------------------- */

static bool has_name(const fragment *f, const char *name, size_t length)
{
    for (const char *at = f->names; (at = strstr(at, " ")); at++) {
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] == ' ') {
            return true;
        }
    }
    return false;
}

static size_t name_length(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') {
        length++;
    }
    return length;
}

/* The quote that ends the string at `text`. */
static const char *string_end(const char *text)
{
    const char *end = text + 1;
    while (*end && *end != '"') {
        end += *end == '\\' && end[1] ? 2 : 1;
    }
    return end;
}

/* Behind a comment or a string that begins at `text`, in which names mean nothing; `text`: none
 * does. */
static const char *skip_words(const char *text, bool is_c)
{
    const char *end = NULL;
    size_t closing = 1;
    if (is_c && strncmp(text, "/*", 2) == 0) {
        end = strstr(text + 2, "*/");
        closing = 2;
    } else if (!is_c && strncmp(text, "\"\"\"", 3) == 0) {
        end = strstr(text + 3, "\"\"\"");
        closing = 3;
    } else if (!is_c && *text == '#') {
        end = strchr(text, '\n');
    } else if (*text == '"') {
        end = string_end(text);
        closing = *end != 0;
    } else {
        return text;
    }
    return end ? end + closing : text + strlen(text);
}

/* What stands in Python's f"..." is searched, too. */
static void need_those_in(fragments *all, const char *text, bool is_c)
{
    const char *formatted_end = NULL;
    for (char before = 0; *text; before = text[-1]) {
        bool is_inside = formatted_end && text <= formatted_end;
        if (!is_c && !is_inside && before == 'f' && *text == '"') {
            formatted_end = string_end(text);
            is_inside = true;
        }
        const char *behind = is_inside ? text : skip_words(text, is_c);
        size_t length = behind > text ? 0 : name_length(text);
        for (size_t i = 0; length && i < all->count; i++) {
            fragment *f = &all->items[i];
            if (!f->is_needed && has_name(f, text, length)) {
                f->is_needed = true;
                need_those_in(all, f->text, is_c);
            }
        }
        text = behind > text ? behind : text + (length ? length : 1);
    }
}

static void put_needed(const fragments *all, FILE *out)
{
    bool is_apart = false;
    for (size_t i = 0; i < all->count; i++) {
        const fragment *f = &all->items[i];
        is_apart = is_apart || f->is_apart;
        if (f->is_needed) {
            fputs(is_apart && *f->text != '\n' ? "\n" : "", out);
            fputs(f->text, out);
            is_apart = false;
        }
    }
}

bool fragments_write(const char *library, const char *mark, const fragment_choice *choice,
                     const char *body, FILE *out)
{
    fragments all = {0};
    bool is_read = read_library(&all, library, mark, choice);
    if (is_read) {
        need_those_in(&all, body, mark[0] == '/');
        put_needed(&all, out);
    }
    for (size_t i = 0; i < all.count; i++) {
        free(all.items[i].names);
        free(all.items[i].text);
    }
    free(all.items);
    return is_read;
}
