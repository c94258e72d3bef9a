#include "sample.h"

#include <stdlib.h>
#include <string.h>

gmd_outcome sample_passing, sample_failing, sample_exact;

char *sample_text;

const char *const sample_hostile = "a <b> & \"c\" | \x01 \xFF \n]]> \xC3\xA9";

static void set_oracle(gmd_outcome *outcome, const char *name, gmd_oracle_fate fate,
                       const char *reason)
{
    gmd_oracle_result *result = &outcome->oracles[outcome->oracle_count++];
    snprintf(result->name, sizeof result->name, "%s", name);
    snprintf(result->reason, sizeof result->reason, "%s", reason);
    result->fate = fate;
}

static void add_phase(gmd_outcome *outcome, const char *label, uint64_t allocated,
                      uint64_t max_allocated, uint64_t reserved)
{
    gmd_phase *phase = &outcome->phases[outcome->phase_count++];
    *phase = (gmd_phase){.allocated = allocated,
                         .max_allocated = max_allocated,
                         .reserved = reserved,
                         .max_reserved = reserved};
    snprintf(phase->label, sizeof phase->label, "%s", label);
}

static void reset_passing(void)
{
    const uint64_t mib = 1 << 20;
    sample_passing = (gmd_outcome){.name = "growth",
                                   .kind = "scenario",
                                   .variant = "leak=true",
                                   .verdict = GMD_PASS,
                                   .requests = 2000,
                                   .device_calls = 12,
                                   .seconds = 0.25,
                                   .seed = 7,
                                   .has_stats = true,
                                   .stats = {.allocated_bytes = 5,
                                             .reserved_bytes_peak = INT64_MAX,
                                             .num_ooms = GMD_STAT_UNKNOWN}};
    set_oracle(&sample_passing, "overlap", GMD_ORACLE_PASSED, "");
    set_oracle(&sample_passing, "backing", GMD_ORACLE_PASSED, "");
    set_oracle(&sample_passing, "leak", GMD_ORACLE_SKIPPED, "no device figures");
    add_phase(&sample_passing, "model", 100 * mib, 110 * mib, 120 * mib);
    add_phase(&sample_passing, "step 1", 150 * mib, 1200 * mib, 1210 * mib);
    add_phase(&sample_passing, "step 2", 200 * mib + mib / 2, 1250 * mib, 1260 * mib);
}

static void reset_failing(void)
{
    sample_failing = (gmd_outcome){.name = "short.gmd",
                                   .kind = "trace",
                                   .verdict = GMD_FAIL,
                                   .requests = 18,
                                   .seconds = 0.001,
                                   .violation_count = 1};
    set_oracle(&sample_failing, "overlap", GMD_ORACLE_FAILED, "");
    set_oracle(&sample_failing, "size", GMD_ORACLE_PASSED, "");
    gmd_violation *violation = sample_failing.violations;
    *violation = (gmd_violation){.oracle = "overlap", .request = 17};
    gmd_identity_make(&violation->identity, GMD_KIND(overlap, shared),
                      GMD_PARTIES({"by", "b1 and b3"}, {"at", "alloc"}));
    snprintf(violation->message, sizeof violation->message, "b3 shares 512 B with b1");
    snprintf(violation->case_path, sizeof violation->case_path, "gmd-cases/overlap.gmd");
}

static void reset_exact(void)
{
    sample_exact = (gmd_outcome){.name = "real.pickle.gz",
                                 .kind = "history",
                                 .verdict = GMD_PASS,
                                 .requests = 10236,
                                 .seconds = 0.1,
                                 .notes = {"limit inferred: 2560 MiB"},
                                 .note_count = 1,
                                 .check = {.present = true,
                                           .exact = true,
                                           .requests = 10236,
                                           .matched = 10236,
                                           .device_events = 674,
                                           .end_state_checked = true,
                                           .blocks_compared = 93,
                                           .statistics_checked = true,
                                           .figures_compared = 24,
                                           .limit_bytes = (uint64_t)2560 << 20,
                                           .limit_inferred = true}};
    set_oracle(&sample_exact, "overlap", GMD_ORACLE_PASSED, "");
}

void sample_reset(void)
{
    reset_passing();
    reset_failing();
    reset_exact();
}

int sample_setup(void **state)
{
    (void)state;
    sample_reset();
    return 0;
}

int sample_teardown(void **state)
{
    (void)state;
    free(sample_text);
    sample_text = NULL;
    return 0;
}

static void put_hostile(char *field, size_t size)
{
    snprintf(field, size, "%s", sample_hostile);
}

#define PUT_HOSTILE(field) put_hostile((field), sizeof(field))

void sample_make_hostile(gmd_outcome *outcome)
{
    PUT_HOSTILE(outcome->name);
    PUT_HOSTILE(outcome->kind);
    PUT_HOSTILE(outcome->variant);
    PUT_HOSTILE(outcome->error);
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        PUT_HOSTILE(outcome->violations[i].oracle);
        PUT_HOSTILE(outcome->violations[i].identity.kind);
        gmd_identity_add(&outcome->violations[i].identity, "x", sample_hostile);
        PUT_HOSTILE(outcome->violations[i].message);
        PUT_HOSTILE(outcome->violations[i].case_path);
    }
    for (uint32_t i = 0; i < outcome->oracle_count; i++) {
        PUT_HOSTILE(outcome->oracles[i].name);
        PUT_HOSTILE(outcome->oracles[i].reason);
    }
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        PUT_HOSTILE(outcome->phases[i].label);
    }
    for (uint32_t i = 0; i < outcome->note_count; i++) {
        PUT_HOSTILE(outcome->notes[i]);
    }
    PUT_HOSTILE(outcome->check.first_difference.what);
    PUT_HOSTILE(outcome->check.first_difference.expected);
    PUT_HOSTILE(outcome->check.first_difference.got);
    PUT_HOSTILE(outcome->check.first_difference.text);
}

void sample_differ(void)
{
    gmd_check *check = &sample_exact.check;
    sample_exact.verdict = GMD_FAIL;
    check->exact = false;
    check->matched = 512;
    check->first_difference.present = true;
    check->first_difference.request = 512;
    snprintf(check->first_difference.what, sizeof check->first_difference.what, "address");
    snprintf(check->first_difference.text, sizeof check->first_difference.text, "alloc b9 1024 s1");
    snprintf(check->first_difference.expected, sizeof check->first_difference.expected, "0x10000");
    snprintf(check->first_difference.got, sizeof check->first_difference.got, "0x20000");
}

const gmd_report *sample_report(const char *command, const gmd_outcome *first,
                                const gmd_outcome *second, const gmd_outcome *third)
{
    static const gmd_outcome *outcomes[3];
    static gmd_report report;
    static const gmd_report_rule rules[] = {{"backing", "every live block lies in memory"},
                                            {"overlap", "no two live blocks share a byte"}};
    outcomes[0] = first;
    outcomes[1] = second;
    outcomes[2] = third;
    report = (gmd_report){.version = "0.1.0",
                          .command = command,
                          .allocator = "reference",
                          .device = "sim",
                          .seed = 7,
                          .rules = rules,
                          .rule_count = 2,
                          .outcomes = outcomes};
    while (report.outcome_count < 3 && outcomes[report.outcome_count]) {
        report.outcome_count++;
    }
    return &report;
}

char *sample_written(sample_writer *writer, const gmd_report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return NULL;
    }
    gmd_error error;
    gmd_status status = writer(report, out, &error);
    if (fclose(out) != 0 || status != GMD_OK) {
        free(text);
        return NULL;
    }
    return text;
}

static gmd_terminal chosen_terminal;

static gmd_status write_terminal(const gmd_report *report, FILE *out, gmd_error *error)
{
    (void)error;
    gmd_report_terminal(report, out, chosen_terminal);
    return GMD_OK;
}

char *sample_terminal(const gmd_report *report, gmd_terminal terminal)
{
    chosen_terminal = terminal;
    return sample_written(write_terminal, report);
}

unsigned sample_count(const char *text, const char *part)
{
    unsigned count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}
