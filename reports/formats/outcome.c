#include "outcome.h"

#include "gmd_command.h"
#include "gmd_report_text.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *gmd_verdict_name(gmd_verdict verdict)
{
    switch (verdict) {
    case GMD_PASS:
        return "pass";
    case GMD_FAIL:
        return "fail";
    case GMD_UNFINISHED:
        return "interrupted";
    default: /* a value that cannot be is not a pass */
        return "error";
    }
}

const char *outcome_source(const gmd_outcome *outcome, char text[GMD_TITLE_TEXT])
{
    bool is_script = strcmp(outcome->kind, "scenario") == 0;
    bool has_ending = gmd_text_ends_with(outcome->name, ".lua");
    snprintf(text, GMD_TITLE_TEXT, "%s%s", outcome->name, is_script && !has_ending ? ".lua" : "");
    return text;
}

const char *oracle_fate_name(gmd_oracle_fate fate)
{
    switch (fate) {
    case GMD_ORACLE_PASSED:
        return "pass";
    case GMD_ORACLE_SKIPPED:
        return "skipped";
    default: /* a fate that cannot be is not a pass */
        return "fail";
    }
}

gmd_verdict gmd_report_verdict(const gmd_report *report)
{
    if (report->outcome_count == 0) {
        return GMD_ERROR;
    }
    gmd_verdict worst = GMD_PASS; /* they stand in this order */
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *o = report->outcomes[i];
        gmd_verdict one = is_error(o) && o->verdict != GMD_UNFINISHED ? GMD_ERROR : o->verdict;
        worst = one > worst ? one : worst;
    }
    return worst;
}

uint64_t report_requests(const gmd_report *report)
{
    uint64_t requests = 0;
    for (size_t i = 0; i < report->outcome_count; i++) {
        requests += report->outcomes[i]->requests;
    }
    return requests;
}

double report_seconds(const gmd_report *report)
{
    double seconds = 0;
    for (size_t i = 0; i < report->outcome_count; i++) {
        seconds += report->outcomes[i]->seconds;
    }
    return seconds;
}

double requests_per_second(const gmd_outcome *outcome)
{
    return outcome->seconds > 0 ? (double)outcome->requests / outcome->seconds : 0;
}

static bool is_alike(const gmd_report *report, size_t a, size_t b)
{
    const gmd_outcome *one = report->outcomes[a], *other = report->outcomes[b];
    return strcmp(one->name, other->name) == 0 && strcmp(one->kind, other->kind) == 0 &&
           strcmp(one->variant, other->variant) == 0 &&
           (!report->repeat_count || one->seed == other->seed) &&
           strcmp(one->placement, other->placement) == 0;
}

const char *gmd_outcome_title(const gmd_report *report, size_t index, char text[GMD_TITLE_TEXT])
{
    const gmd_outcome *o = report->outcomes[index];
    unsigned earlier = 0;
    for (size_t i = 0; i < index; i++) {
        earlier += is_alike(report, i, index);
    }
    int used =
        snprintf(text, GMD_TITLE_TEXT, "%s%s%s", o->name, *o->variant ? " " : "", o->variant);
    if (report->repeat_count) {
        used += snprintf(text + used, GMD_TITLE_TEXT - (size_t)used, " seed %" PRIu64, o->seed);
    }
    if (*o->placement) {
        used += snprintf(text + used, GMD_TITLE_TEXT - (size_t)used, " placement %s", o->placement);
    }
    if (earlier) {
        snprintf(text + used, GMD_TITLE_TEXT - (size_t)used, " #%u", earlier + 1);
    }
    return text;
}

bool gmd_report_replay(const gmd_report *report, const gmd_violation *violation, char *text,
                       size_t size)
{
    if (!report->replay_options || !*violation->case_path) {
        return false;
    }
    bool is_round = gmd_identity_is(&violation->identity, GMD_KIND(leak, host_memory)) ||
                    gmd_identity_is(&violation->identity, GMD_KIND(progress, growth));
    gmd_command command = gmd_command_begin(text, size, is_round ? "gmd gate --rounds" : "gmd run");
    gmd_command_word(&command, violation->case_path);
    gmd_command_more(&command, report->replay_options);
    if (report->hang_s > 0 && gmd_identity_is(&violation->identity, GMD_KIND(progress, hang))) {
        char seconds[32];
        snprintf(seconds, sizeof seconds, "%.0f", ceil(report->hang_s)); /* --timeout is whole */
        gmd_command_option(&command, "--timeout", seconds);
    }
    gmd_command_end(&command);
    return true;
}

bool is_error(const gmd_outcome *outcome)
{
    return outcome->verdict != GMD_PASS && outcome->verdict != GMD_FAIL;
}

bool is_unexplained_failure(const gmd_outcome *outcome)
{
    if (outcome->verdict != GMD_FAIL) {
        return false;
    }
    for (uint32_t i = 0; i < outcome->oracle_count; i++) {
        if (outcome->oracles[i].fate == GMD_ORACLE_FAILED) {
            return false;
        }
    }
    return !outcome->check.present || outcome->check.exact;
}

void figure_json(gmd_json *json, const char *key, uint64_t value)
{
    if (value == GMD_STAT_UNKNOWN) {
        gmd_json_null(json, key);
    } else {
        gmd_json_u64(json, key, value);
    }
}

void phase_figures_json(gmd_json *json, const gmd_phase *phase)
{
    figure_json(json, "allocated", phase->allocated);
    figure_json(json, "max_allocated", phase->max_allocated);
    figure_json(json, "reserved", phase->reserved);
    figure_json(json, "max_reserved", phase->max_reserved);
}

static uint64_t lower(uint64_t value, uint64_t by, uint64_t least)
{
    return value > by && value - by > least ? value - by : least;
}

bool phase_doubt(const gmd_phase *phase, gmd_phase *least, gmd_phase *most)
{
    bool is_known = phase->max_allocated != GMD_STAT_UNKNOWN && phase->reserved != GMD_STAT_UNKNOWN;
    *least = *most = *phase;
    if (!is_known ||
        !(phase->peak_less | phase->peak_more | phase->reserved_less | phase->reserved_more)) {
        return false;
    }
    least->max_allocated = lower(phase->max_allocated, phase->peak_less, phase->allocated);
    least->reserved = lower(phase->reserved, phase->reserved_less, phase->allocated);
    least->max_reserved = lower(phase->max_reserved, phase->reserved_less, least->max_allocated);
    most->max_allocated += phase->peak_more;
    most->reserved += phase->reserved_more;
    most->max_reserved += phase->reserved_more;
    return true;
}

/* A report that an older gmd wrote has neither. */
void identity_json(gmd_json *json, const gmd_identity *identity)
{
    if (!identity->kind[0]) {
        return;
    }
    gmd_json_string(json, "kind", identity->kind);
    gmd_json_row(json, "parties");
    for (uint32_t i = 0; i < identity->party_count; i++) {
        gmd_json_string(json, identity->parties[i].name, identity->parties[i].value);
    }
    gmd_json_end(json);
}

void moment_json(gmd_json *json, const gmd_violation *violation)
{
    gmd_json_u64(json, "request", violation->request);
    if (violation->is_at_end) {
        gmd_json_bool(json, "at_end", true);
    }
}

void limit_json(gmd_json *json, const gmd_violation *violation)
{
    char name[sizeof violation->limit];
    if (!*violation->limit) {
        return;
    }
    gmd_json_array(json, "limit");
    for (const char *at = violation->limit; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        gmd_json_string(json, NULL, name);
        at += length;
    }
    gmd_json_end(json);
}

void put_limit(const gmd_violation *violation, const char *indent, FILE *out)
{
    if (*violation->limit) {
        fprintf(out, "%sa limit, no defect: only beyond ", indent);
        gmd_utf8_put_line(violation->limit, out);
        fputs(" of the contract\n", out);
    }
}

const char *violation_rule(const gmd_violation *violation)
{
    return violation->identity.kind[0] ? violation->identity.kind : violation->oracle;
}

bool is_first_of_identity(const gmd_outcome *outcome, uint32_t index)
{
    const gmd_identity *identity = &outcome->violations[index].identity;
    for (uint32_t i = 0; i < index; i++) {
        if (gmd_identity_equal(&outcome->violations[i].identity, identity)) {
            return false;
        }
    }
    return true;
}

void put_known_line(const gmd_identity *identity, const char *indent, FILE *out)
{
    char line[GMD_IDENTITY_TEXT];
    if (identity->kind[0]) {
        gmd_identity_known_line(identity, line);
        fprintf(out, "%sfor --known: ", indent);
        gmd_utf8_put_line(line, out);
        putc('\n', out);
    }
}

void oracles_json(gmd_json *json, const gmd_oracle_result *oracles, uint32_t count)
{
    gmd_json_array(json, "oracles");
    for (uint32_t i = 0; i < count; i++) {
        const gmd_oracle_result *result = &oracles[i];
        gmd_json_row(json, NULL);
        gmd_json_string(json, "name", result->name);
        gmd_json_string(json, "verdict", oracle_fate_name(result->fate));
        if (result->fate == GMD_ORACLE_SKIPPED) {
            gmd_json_string(json, "reason", result->reason);
        }
        if (result->asked) {
            gmd_json_u64(json, "asked", result->asked);
            gmd_json_exact(json, "seconds", result->seconds);
        }
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

const gmd_case_listing *outcome_listing(const gmd_report *report, size_t index, size_t violation)
{
    const gmd_case_listing *list = report->listings ? report->listings[index] : NULL;
    return list && list[violation].count ? &list[violation] : NULL;
}

void listing_json(gmd_json *json, const gmd_case_listing *listing)
{
    if (!listing) {
        return;
    }
    gmd_json_array(json, "case_lines");
    for (uint32_t i = 0; i < listing->count; i++) {
        const gmd_case_line *line = &listing->lines[i];
        gmd_json_object(json, NULL);
        gmd_json_u64(json, "line", line->line);
        if (line->request != UINT64_MAX) {
            gmd_json_u64(json, "request", line->request);
        }
        gmd_json_string(json, "text", line->text);
        if (*line->answer) {
            gmd_json_string(json, "answer", line->answer);
        }
        gmd_json_bool(json, "failing", line->is_failing);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}
