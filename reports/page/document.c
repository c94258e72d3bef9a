#include "document.h"

#include "page_template.h"
#include "payload.h"

#include "gmd_report_text.h"
#include "gmd_xml.h"

#include <stdlib.h>
#include <string.h>

static const char *const list_names[] = {"inputs", "findings", "tables", "histories"};

static gmd_status no_memory(gmd_error *error)
{
    return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the page");
}

gmd_status document_begin(document *d, gmd_error *error)
{
    *d = (document){0};
    for (int i = 0; i < DOCUMENT_LISTS; i++) {
        document_part *part = &d->lists[i];
        FILE *out = open_memstream(&part->text, &part->size);
        if (!out) {
            document_free(d);
            return no_memory(error);
        }
        gmd_json_start(&part->json, out);
        gmd_json_array(&part->json, NULL);
    }
    return GMD_OK;
}

gmd_json *document_add(document *d, document_list list, uint32_t *number)
{
    document_part *part = &d->lists[list];
    if (number) {
        *number = part->count;
    }
    part->count++;
    gmd_json_object(&part->json, NULL);
    return &part->json;
}

uint32_t document_string(document *d, const char *text, size_t length)
{
    uint32_t number = 0;
    if (!gmd_interned_add(&d->strings, text, length, &number)) {
        d->has_failed = true;
    }
    return number;
}

/* --- the container --------------------------------------------------------------------------- */

static bool end_lists(document *d)
{
    bool ok = true;
    for (int i = 0; i < DOCUMENT_LISTS; i++) {
        document_part *part = &d->lists[i];
        if (part->json.out) {
            gmd_json_end(&part->json);
            gmd_json_finish(&part->json);
            ok = !ferror(part->json.out) && ok;
            ok = fclose(part->json.out) == 0 && ok;
            part->json.out = NULL;
        }
    }
    return ok;
}

static void put_json_string(FILE *out, const char *key, const char *text)
{
    gmd_json json;
    fprintf(out, "\"%s\": ", key);
    gmd_json_start(&json, out);
    gmd_json_string(&json, NULL, text);
    gmd_json_finish(&json);
    fputs(", ", out);
}

static void put_strings(const document *d, FILE *out)
{
    gmd_json json;
    gmd_json_start(&json, out);
    gmd_json_array(&json, NULL);
    for (uint32_t i = 0; i < d->strings.count; i++) {
        size_t length;
        gmd_json_string(&json, NULL, gmd_interned_bytes(&d->strings, i, &length));
    }
    gmd_json_end(&json);
    gmd_json_finish(&json);
}

static void put_json(const document *d, const char *version, const char *title, FILE *out)
{
    gmd_json json;
    fputs("{\"format\": 1, ", out);
    put_json_string(out, "gmd", version);
    put_json_string(out, "title", title);
    for (int i = 0; i < DOCUMENT_LISTS; i++) {
        fprintf(out, "\"%s\": %s, ", list_names[i], d->lists[i].text);
    }
    fputs("\"strings\": ", out);
    put_strings(d, out);
    fputs(", \"columns\": ", out);
    gmd_json_start(&json, out);
    columns_json(&d->columns, &json, NULL);
    gmd_json_finish(&json);
    fputs("}", out);
}

static void put_container(const document *d, const char *text, size_t size, payload *to)
{
    static const char magic[] = "GMDPAGE1", padding[8] = {0};
    unsigned char length[4];
    for (int i = 0; i < 4; i++) {
        length[i] = (unsigned char)(size >> 8 * i);
    }
    payload_add(to, magic, strlen(magic));
    payload_add(to, length, sizeof length);
    payload_add(to, text, size);
    payload_add(to, padding, (8 - (strlen(magic) + sizeof length + size) % 8) % 8);
    for (size_t i = 0; i < d->columns.count; i++) {
        payload_add(to, d->columns.items[i].bytes, d->columns.items[i].size);
    }
}

static gmd_status put_data(const document *d, const char *version, const char *title, FILE *out,
                           gmd_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *json = open_memstream(&text, &size);
    payload *to = malloc(sizeof *to);
    bool ok = json && to;
    if (ok) {
        put_json(d, version, title, json);
        ok = !ferror(json);
    }
    ok = (!json || fclose(json) == 0) && ok;
    gmd_status status = !ok                 ? no_memory(error)
                        : size > UINT32_MAX ? gmd_fail(error, GMD_BAD_INPUT,
                                                       "the page would have over 4 GiB of texts")
                                            : GMD_OK;
    if (status == GMD_OK && !payload_begin(to, out)) {
        status = no_memory(error);
    } else if (status == GMD_OK) {
        put_container(d, text, size, to);
        payload_end(to);
    }
    free(to);
    free(text);
    return status;
}

/* --- HTML ------------------------------------------------------------------------------------ */

/* Writes the template up to the marker, which the build has made sure is there, and gives what
 * follows. */
static const char *put_up_to(const char *template, const char *marker, FILE *out)
{
    const char *at = strstr(template, marker);
    fwrite(template, 1, (size_t)(at - template), out);
    return at + strlen(marker);
}

gmd_status document_write(document *d, const char *version, const char *title, FILE *out,
                          gmd_error *error)
{
    if (!end_lists(d) || d->has_failed || d->columns.has_failed) {
        return no_memory(error);
    }
    const char *rest = put_up_to((const char *)page_template, "<!-- gmd:title -->", out);
    gmd_put_xml(title, out);
    rest = put_up_to(rest, "<!-- gmd:data -->", out);
    fputs("<script id=\"gmd-data\" type=\"text/plain\">", out);
    gmd_status status = put_data(d, version, title, out, error);
    fputs("</script>", out);
    fputs(rest, out);
    return status == GMD_OK ? gmd_finish_writing(out, "the page", error) : status;
}

void document_free(document *d)
{
    for (int i = 0; i < DOCUMENT_LISTS; i++) {
        if (d->lists[i].json.out) {
            fclose(d->lists[i].json.out);
        }
        free(d->lists[i].text);
    }
    columns_free(&d->columns);
    gmd_interned_free(&d->strings);
    *d = (document){0};
}
