/* write_sarif.c - SARIF 2.1.0 (OASIS Standard, 2020-03-27), which code hosts show beside the
 * change: each oracle and each kind of verdict is a rule, each violation a result.
 *
 * What could not be judged is a notification of the invocation: an error where a run was not
 * carried out, a note where an oracle could not see what it needs. */
#include "sarif.h"

#include "gmd_report_text.h"

#include <string.h>

enum { RULE_MAX = 64 + GMD_KIND_COUNT };

typedef struct rules {
    struct {
        const char *id, *description;
    } items[RULE_MAX];
    uint32_t count;
} rules;

typedef struct sarif {
    gmd_json json;
    rules rules;
} sarif;

static uint32_t rule_index(const rules *r, const char *id)
{
    uint32_t i = 0;
    while (i < r->count && strcmp(r->items[i].id, id) != 0) {
        i++;
    }
    return i;
}

static void add_rule(rules *r, const char *id, const char *description)
{
    if (r->count < RULE_MAX && rule_index(r, id) == r->count) {
        r->items[r->count].id = id;
        r->items[r->count++].description = description;
    }
}

/* A rule that no oracle stands for; its id outlives the visit, for it is text of the report. */
static void add_rule_of(void *context, const sarif_result *result)
{
    add_rule(context, result->rule, "a check of the run itself");
}

static void collect_rules(rules *r, const gmd_report *report)
{
    for (size_t i = 0; i < report->rule_count; i++) {
        add_rule(r, report->rules[i].name, report->rules[i].holds_when);
    }
    for (size_t i = 0; i < GMD_KIND_COUNT; i++) {
        add_rule(r, gmd_kinds[i].name, gmd_kinds[i].meaning);
    }
    add_rule(r, "exact", "the allocator does what was recorded");
    add_rule(r, "run", "the run ends without a failure");
    sarif_each(report, add_rule_of, r);
}

static void write_message(gmd_json *json, const char *key, const char *text)
{
    gmd_json_object(json, key);
    gmd_json_string(json, "text", text);
    gmd_json_end(json);
}

static void write_tool(sarif *s, const gmd_report *report)
{
    gmd_json *json = &s->json;
    gmd_json_object(json, "tool");
    gmd_json_object(json, "driver");
    gmd_json_string(json, "name", "gmd");
    gmd_json_string(json, "version", report->version);
    gmd_json_array(json, "rules");
    for (uint32_t i = 0; i < s->rules.count; i++) {
        gmd_json_object(json, NULL);
        gmd_json_string(json, "id", s->rules.items[i].id);
        write_message(json, "shortDescription", s->rules.items[i].description);
        gmd_json_end(json);
    }
    gmd_json_end(json);
    gmd_json_end(json);
    gmd_json_end(json);
}

static void write_notification(gmd_json *json, const char *level, const char *rule,
                               const char *text)
{
    gmd_json_object(json, NULL);
    gmd_json_string(json, "level", level);
    if (rule) {
        gmd_json_object(json, "associatedRule");
        gmd_json_string(json, "id", rule);
        gmd_json_end(json);
    }
    write_message(json, "message", text);
    gmd_json_end(json);
}

static void write_notifications(gmd_json *json, const gmd_outcome *o)
{
    char text[sizeof o->name + sizeof o->error + sizeof o->variant + 64];
    if (is_error(o)) {
        snprintf(text, sizeof text, "%s%s%s: %s", o->name, *o->variant ? " " : "", o->variant,
                 o->error);
        write_notification(json, "error", NULL, text);
    }
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        if (o->oracles[i].fate == GMD_ORACLE_SKIPPED) {
            snprintf(text, sizeof text, "%s%s%s: %s was not judged: %s", o->name,
                     *o->variant ? " " : "", o->variant, o->oracles[i].name, o->oracles[i].reason);
            write_notification(json, "note", o->oracles[i].name, text);
        }
    }
}

static void write_figure(gmd_json *json, const char *name, uint64_t figure)
{
    if (figure != GMD_STAT_UNKNOWN) {
        gmd_json_u64(json, name, figure);
    }
}

/* What each run came to, which no result tells where nothing is wrong. */
static void write_figures(gmd_json *json, const gmd_report *report)
{
    gmd_json_array(json, "runs");
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *o = report->outcomes[i];
        if (!o->has_stats) {
            continue;
        }
        gmd_json_object(json, NULL);
        gmd_json_string(json, "name", o->name);
        gmd_json_string(json, "variant", o->variant);
        write_figure(json, "num_ooms", o->stats.num_ooms);
        write_figure(json, "num_alloc_retries", o->stats.num_alloc_retries);
        write_figure(json, "allocated_bytes_peak", o->stats.allocated_bytes_peak);
        write_figure(json, "reserved_bytes_peak", o->stats.reserved_bytes_peak);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void write_invocation(gmd_json *json, const gmd_report *report)
{
    gmd_json_array(json, "invocations");
    gmd_json_object(json, NULL);
    if (report->command_line) {
        gmd_json_string(json, "commandLine", report->command_line);
    }
    gmd_json_bool(json, "executionSuccessful", gmd_report_verdict(report) <= GMD_FAIL);
    gmd_json_array(json, "toolExecutionNotifications");
    if (report->outcome_count == 0) {
        write_notification(json, "error", NULL, "nothing was run");
    }
    for (size_t i = 0; i < report->outcome_count; i++) {
        write_notifications(json, report->outcomes[i]);
    }
    gmd_json_end(json);
    gmd_json_object(json, "properties");
    gmd_json_string(json, "command", report->command);
    gmd_json_string(json, "allocator", report->allocator);
    gmd_json_string(json, "device", report->device);
    gmd_json_u64(json, "seed", report->seed);
    write_figures(json, report);
    gmd_json_end(json);
    gmd_json_end(json);
    gmd_json_end(json);
}

static void write_result(void *context, const sarif_result *result)
{
    sarif *s = context;
    gmd_json *json = &s->json;
    uint32_t rule = rule_index(&s->rules, result->rule);
    gmd_json_object(json, NULL);
    gmd_json_string(json, "ruleId", result->rule);
    if (rule < s->rules.count) {
        gmd_json_u64(json, "ruleIndex", rule);
    }
    gmd_json_string(json, "level", "error");
    write_message(json, "message", *result->message ? result->message : "no message");
    sarif_locations(json, result);
    sarif_fingerprint(json, result);
    gmd_json_object(json, "properties");
    if (result->request != UINT64_MAX) {
        gmd_json_u64(json, "request", result->request);
    }
    if (result->replay) {
        gmd_json_string(json, "replay", result->replay);
    }
    gmd_json_end(json);
    gmd_json_end(json);
}

gmd_status gmd_report_sarif(const gmd_report *report, FILE *out, gmd_error *error)
{
    sarif s = {.rules = {.count = 0}};
    collect_rules(&s.rules, report);
    gmd_json_start(&s.json, out);
    gmd_json_object(&s.json, NULL);
    gmd_json_string(&s.json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    gmd_json_string(&s.json, "version", "2.1.0");
    gmd_json_array(&s.json, "runs");
    gmd_json_object(&s.json, NULL);
    write_tool(&s, report);
    write_invocation(&s.json, report);
    gmd_json_array(&s.json, "results");
    sarif_each(report, write_result, &s);
    gmd_json_end(&s.json);
    gmd_json_end(&s.json);
    gmd_json_end(&s.json);
    gmd_json_end(&s.json);
    gmd_json_finish(&s.json);
    return gmd_finish_writing(out, "the SARIF report", error);
}
