#include "sarif.h"

#include "gmd_hash.h"
#include "gmd_report_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- results ----------------------------------------------------------------------------- */

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static const gmd_identity *identity_of(const gmd_violation *violation)
{
    return violation->identity.kind[0] ? &violation->identity : NULL;
}

static void visit_gate(const gmd_report *report, sarif_visit *visit, void *context)
{
    for (size_t i = 0; i < report->gate->finding_count; i++) {
        const gmd_gate_finding *f = &report->gate->findings[i];
        char place[sizeof f->part + sizeof f->item];
        snprintf(place, sizeof place, "%s/%s", f->part, f->item);
        sarif_result result = {.rule = violation_rule(&f->violation),
                               .identity = identity_of(&f->violation),
                               .message = f->violation.message,
                               .outcome = report->outcomes[0],
                               .place = place,
                               .case_path = or_null(f->violation.case_path),
                               .replay = or_null(f->replay),
                               .request = f->violation.request};
        visit(context, &result);
    }
}

static void visit_check(const gmd_outcome *outcome, sarif_visit *visit, void *context)
{
    const gmd_check *check = &outcome->check;
    char message[sizeof check->first_difference + 160];
    if (!check->present || check->exact || check->is_cut_off) {
        return; /* cut off: the violation that did it is a result already */
    }
    int used = snprintf(message, sizeof message, "%" PRIu64 " of %" PRIu64 " requests matched",
                        check->matched, check->requests);
    if (check->first_difference.present) {
        snprintf(message + used, sizeof message - (size_t)used,
                 "; first difference at request %" PRIu64 " (%s), %s: expected %s, got %s",
                 check->first_difference.request, check->first_difference.text,
                 check->first_difference.what, check->first_difference.expected,
                 check->first_difference.got);
    }
    sarif_result result = {
        .rule = "exact",
        .message = message,
        .outcome = outcome,
        .request = check->first_difference.present ? check->first_difference.request : UINT64_MAX};
    visit(context, &result);
}

static void visit_outcome(const gmd_outcome *outcome, sarif_visit *visit, void *context)
{
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        const gmd_violation *violation = &outcome->violations[i];
        sarif_result result = {.rule = violation_rule(violation),
                               .identity = identity_of(violation),
                               .message = violation->message,
                               .outcome = outcome,
                               .case_path = or_null(violation->case_path),
                               .request = violation->request};
        visit(context, &result);
    }
    visit_check(outcome, visit, context);
    if (outcome->violation_count == 0 && is_unexplained_failure(outcome)) {
        sarif_result result = {.rule = "run",
                               .message = "failed without a message",
                               .outcome = outcome,
                               .request = UINT64_MAX};
        visit(context, &result);
    }
}

void sarif_each(const gmd_report *report, sarif_visit *visit, void *context)
{
    if (report->gate && report->outcome_count) {
        visit_gate(report, visit, context);
        return;
    }
    for (size_t i = 0; i < report->outcome_count; i++) {
        visit_outcome(report->outcomes[i], visit, context);
    }
}

/* --- locations --------------------------------------------------------------------------- */

/* A file name as a URI reference (RFC 3986): a relative one stays relative, so that whoever reads
 * the report finds it from the folder in which gmd ran. */
static char *uri_of(const char *path)
{
    static const char scheme[] = "file://", digits[] = "0123456789ABCDEF";
    char *uri = calloc(1, sizeof scheme + 3 * strlen(path));
    char *at = uri;
    if (uri && *path == '/') {
        memcpy(at, scheme, sizeof scheme - 1);
        at += sizeof scheme - 1;
    }
    for (; uri && *path; path++) {
        unsigned char c = (unsigned char)*path;
        if (c < 0x80 && (isalnum(c) || strchr("-._~/", c))) {
            *at++ = (char)c;
        } else {
            *at++ = '%';
            *at++ = digits[c / 16];
            *at++ = digits[c % 16];
        }
    }
    return uri;
}

static void write_physical(gmd_json *json, const char *path)
{
    char *uri = uri_of(path);
    gmd_json_object(json, "physicalLocation");
    gmd_json_object(json, "artifactLocation");
    gmd_json_string(json, "uri", uri ? uri : "");
    gmd_json_end(json);
    gmd_json_object(json, "region"); /* code hosts refuse a place without a line */
    gmd_json_u64(json, "startLine", 1);
    gmd_json_end(json);
    gmd_json_end(json);
    free(uri);
}

/* The case that was written for a scenario; for a file that file. */
static const char *file_of(const sarif_result *result)
{
    const gmd_outcome *o = result->outcome;
    bool is_file = strcmp(o->kind, "trace") == 0 || strcmp(o->kind, "history") == 0;
    return !is_file ? result->case_path : *o->path ? o->path : o->name;
}

static void qualified_name(const sarif_result *result, char *text, size_t size)
{
    const gmd_outcome *o = result->outcome;
    if (result->place) {
        snprintf(text, size, "%s/%s", o->kind, result->place);
    } else {
        snprintf(text, size, "%s/%s%s%s", o->kind, o->name, *o->variant ? " " : "", o->variant);
    }
}

enum { NAME_LENGTH_MAX = 512 };

void sarif_locations(gmd_json *json, const sarif_result *result)
{
    char name[NAME_LENGTH_MAX];
    const char *file = file_of(result);
    qualified_name(result, name, sizeof name);
    gmd_json_array(json, "locations");
    gmd_json_object(json, NULL);
    if (file) {
        write_physical(json, file);
    }
    gmd_json_array(json, "logicalLocations");
    gmd_json_object(json, NULL);
    gmd_json_string(json, "name", result->place ? result->place : result->outcome->name);
    gmd_json_string(json, "fullyQualifiedName", name);
    gmd_json_string(json, "kind", result->outcome->kind);
    gmd_json_end(json);
    gmd_json_end(json);
    gmd_json_end(json);
    gmd_json_end(json);
    if (result->case_path && result->case_path != file) {
        gmd_json_array(json, "relatedLocations");
        gmd_json_object(json, NULL);
        write_physical(json, result->case_path);
        gmd_json_object(json, "message");
        gmd_json_string(json, "text", "the requests up to here as a case of their own");
        gmd_json_end(json);
        gmd_json_end(json);
        gmd_json_end(json);
    }
}

/* --- fingerprint ------------------------------------------------------------------------- */

/* FNV-1a of the text as reports have it, with U+FFFD for what is no UTF-8. The numbers of a
 * sentence are left out: they differ from one run to the next while the defect is still the same.
 */
static uint64_t hash(uint64_t sum, const char *text, bool is_sentence)
{
    const char *next = text;
    for (uint32_t c = gmd_utf8_next(&next); c; text = next, c = gmd_utf8_next(&next)) {
        if (c == GMD_REPLACEMENT_CHARACTER) {
            sum = gmd_hash_bytes(sum, "\xEF\xBF\xBD", 3);
        } else if (!is_sentence || c < '0' || c > '9') {
            sum = gmd_hash_bytes(sum, text, (size_t)(next - text));
        }
    }
    return gmd_hash_byte(sum, 0xff);
}

void sarif_fingerprint(gmd_json *json, const sarif_result *result)
{
    char text[24], name[NAME_LENGTH_MAX], cause[GMD_IDENTITY_TEXT] = "";
    qualified_name(result, name, sizeof name);
    uint64_t sum = hash(GMD_HASH_OF_NOTHING, result->rule, true);
    sum = hash(sum, name, true);
    if (result->identity) {
        gmd_identity_print(result->identity, cause);
    }
    sum = hash(sum, result->identity ? cause : result->message, !result->identity);
    snprintf(text, sizeof text, "%016" PRIx64, sum);
    gmd_json_object(json, "partialFingerprints");
    gmd_json_string(json, result->identity ? "gmdCause/v2" : "gmdCause/v1", text);
    gmd_json_end(json);
}
