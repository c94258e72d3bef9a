/* outcome.h - questions about outcomes that more than one report writer asks. */
#ifndef GMD_REPORTS_OUTCOME_H
#define GMD_REPORTS_OUTCOME_H

#include "gmd_json.h"
#include "gmd_report.h"

uint64_t report_requests(const gmd_report *report);
double report_seconds(const gmd_report *report);

/* The file that the lines of an outcome's requests are of. */
const char *outcome_source(const gmd_outcome *outcome, char text[GMD_TITLE_TEXT]);

/* Requests for each second; 0 where no time was measured. */
double requests_per_second(const gmd_outcome *outcome);

/* "pass", "fail" or "skipped", of a gmd_oracle_fate. */
const char *oracle_fate_name(gmd_oracle_fate fate);

/* What each oracle said, as the key "oracles" of an open object. */
void oracles_json(gmd_json *json, const gmd_oracle_result *oracles, uint32_t count);

/* The run could not be carried out; also for a verdict that is none. */
bool is_error(const gmd_outcome *outcome);

/* The run failed, but no oracle is marked as failed and no check differs: nothing else in a report
 * would show it. */
bool is_unexplained_failure(const gmd_outcome *outcome);

/* Bound number `index` of the outcome and whether it was held, for people (bounds.c). */
enum { BOUND_TEXT = 256 };
const char *bound_text(const gmd_outcome *outcome, uint32_t index, char text[BOUND_TEXT]);

/* A figure under a key; null for GMD_STAT_UNKNOWN, which nobody kept and is no large number. */
void figure_json(gmd_json *json, const char *key, uint64_t value);

/* The four figures of a phase, as keys of an open object. */
void phase_figures_json(gmd_json *json, const gmd_phase *phase);

/* How low and how high a phase's figures may be, as far as estimated workspaces decide them. False:
 * they do not. */
bool phase_doubt(const gmd_phase *phase, gmd_phase *least, gmd_phase *most);

/* The keys "kind" and "parties" of an open violation. */
void identity_json(gmd_json *json, const gmd_identity *identity);

/* The key "request" of an open violation, and "at_end" after the last one. */
void moment_json(gmd_json *json, const gmd_violation *violation);

/* The clauses beyond which only it shows, where it is a limit. */
void limit_json(gmd_json *json, const gmd_violation *violation);
void put_limit(const gmd_violation *violation, const char *indent, FILE *out);

/* What reports name the verdict by: its kind; the oracle in results of an older gmd, which have no
 * kind. */
const char *violation_rule(const gmd_violation *violation);

/* No violation before number `index` is the same defect. */
bool is_first_of_identity(const gmd_outcome *outcome, uint32_t index);

/* "    for --known: leak.streams", the line of a known list that covers it and no other; nothing
 * where there is no kind. */
void put_known_line(const gmd_identity *identity, const char *indent, FILE *out);

/* The case of violation number `violation` of outcome number `index`, or of that finding of the
 * gate. NULL: there is none. */
const gmd_case_listing *outcome_listing(const gmd_report *report, size_t index, size_t violation);

/* The key "case_lines" of an open violation or finding, where there are lines. */
void listing_json(gmd_json *json, const gmd_case_listing *listing);

#endif
