#define _POSIX_C_SOURCE 200809L /* gmd_clock.h */
#include "gmd_judge.h"

#include "gmd_clock.h"
#include "gmd_log.h"
#include "gmd_random.h"
#include "gmd_state_features.h"
#include "gmd_utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static gmd_oracle_result *result_of(gmd_outcome *outcome, const char *oracle)
{
    for (uint32_t i = 0; i < outcome->oracle_count; i++) {
        if (strcmp(outcome->oracles[i].name, oracle) == 0) {
            return &outcome->oracles[i];
        }
    }
    if (outcome->oracle_count == GMD_ORACLE_MAX) {
        return NULL;
    }
    gmd_oracle_result *result = &outcome->oracles[outcome->oracle_count];
    snprintf(result->name, sizeof result->name, "%s", oracle);
    result->fate = GMD_ORACLE_PASSED;
    outcome->oracle_count++; /* last: the process may end here, and what counts must be whole */
    return result;
}

/* Where a violation showed; `device_number` as in gmd_violation. */
typedef struct moment {
    uint64_t request;
    bool is_at_end;
    uint8_t device_number;
} moment;

static void add_violation(gmd_outcome *outcome, const gmd_known *known, gmd_kind kind,
                          const gmd_given_party *parties, moment at, const char *message)
{
    const char *oracle = gmd_kinds[kind].oracle;
    char line[sizeof((gmd_violation *)0)->message]; /* an allocator's own words may be in it */
    gmd_utf8_copy_line(line, sizeof line, message);
    message = line;
    gmd_identity identity;
    gmd_identity_make(&identity, kind, parties);
    const known_entry *entry = known_find(known, &outcome->known_context, &identity, message);
    if (entry || outcome->known_context.is_spoilt) {
        GMD_LOG(VERDICT, "known: %s, request %" PRIu64 ": %s", oracle, at.request, message);
        outcome->known_context.is_spoilt |= entry && entry->spoils;
        outcome->known_count++;
        return;
    }
    GMD_LOG(VERDICT, "%s, request %" PRIu64 ": %s", oracle, at.request, message);
    outcome->verdict = outcome->verdict == GMD_ERROR ? GMD_ERROR : GMD_FAIL;
    gmd_oracle_result *result = result_of(outcome, oracle);
    if (result) {
        result->fate = GMD_ORACLE_FAILED;
    }
    if (outcome->violation_count == GMD_VIOLATION_MAX) {
        return;
    }
    gmd_violation *v = &outcome->violations[outcome->violation_count];
    *v = (gmd_violation){.identity = identity,
                         .request = at.request,
                         .is_at_end = at.is_at_end,
                         .device_number = at.device_number};
    snprintf(v->oracle, sizeof v->oracle, "%s", oracle);
    snprintf(v->message, sizeof v->message, "%s", message);
    outcome->violation_count++; /* last, likewise */
}

void outcome_violation(gmd_outcome *outcome, const gmd_known *known, gmd_kind kind,
                       const gmd_given_party *parties, uint64_t request, const char *message)
{
    add_violation(outcome, known, kind, parties, (moment){.request = request}, message);
}

void outcome_violation_at_end(gmd_outcome *outcome, const gmd_known *known, gmd_kind kind,
                              const gmd_given_party *parties, uint64_t requests,
                              const char *message)
{
    add_violation(outcome, known, kind, parties, (moment){.request = requests, .is_at_end = true},
                  message);
}

void outcome_tell(const gmd_outcome *o)
{
    for (uint32_t i = 0; i < o->violation_count; i++) {
        const gmd_violation *v = &o->violations[i];
        char at[GMD_MOMENT_TEXT];
        fprintf(stderr, "gmd: %s, %s: %s\n", v->oracle, gmd_violation_moment(v, at), v->message);
    }
    if (o->verdict == GMD_ERROR || o->verdict == GMD_UNFINISHED) {
        fprintf(stderr, "gmd: %s\n", o->error);
    }
}

void outcome_error(gmd_outcome *outcome, gmd_status status, const gmd_error *error)
{
    outcome->verdict = status == GMD_INTERRUPTED ? GMD_UNFINISHED : GMD_ERROR;
    outcome->error_status = status;
    snprintf(outcome->error, sizeof outcome->error, "%s", error->text);
}

void gmd_violation_add(gmd_judge *judge, gmd_kind kind, const gmd_given_party *parties,
                       const char *format, ...)
{
    char message[sizeof((gmd_violation *)0)->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const moment at = {judge->request_index, judge->is_at_end, (uint8_t)(judge->device + 1)};
    add_violation(judge->outcome, judge->known, kind, parties, at, message);
}

void gmd_precondition_met(gmd_judge *judge, unsigned which)
{
    if (judge->features) {
        const char *name = judge->speaking->entry->name;
        uint32_t family = (uint32_t)(unsigned char)name[0] ^ (uint32_t)(unsigned char)name[1] << 3;
        features_add(judge->features, family & 0xff, which);
    }
}

/* Puts the hooks of an oracle that can see into the lists. */
static void listen(gmd_judge *judge, const gmd_oracle *oracle, void *state,
                   gmd_oracle_result *result)
{
    hook_fn *const hooks[GMD_HOOK_COUNT] = {
        [GMD_HOOK_AFTER_ALLOC] = oracle->after_alloc,
        [GMD_HOOK_BEFORE_FREE] = oracle->before_free,
        [GMD_HOOK_ON_CANARY_FINDING] = oracle->on_canary_finding,
        [GMD_HOOK_AFTER_REQUEST] = oracle->after_request,
        [GMD_HOOK_AFTER_REFUSAL] = oracle->after_refusal,
        [GMD_HOOK_AFTER_WRONG_FREE] = oracle->after_wrong_free,
        [GMD_HOOK_AFTER_PEAK_RESET] = oracle->after_peak_reset,
        [GMD_HOOK_WHEN_OVER] = oracle->when_over,
        [GMD_HOOK_AT_END] = oracle->at_end,
    };
    for (int hook = 0; hook < GMD_HOOK_COUNT; hook++) {
        if (hooks[hook]) {
            judge->listeners[hook][judge->listener_count[hook]++] =
                (listener){hooks[hook], state, oracle, result};
        }
    }
}

/* --- what they cost -------------------------------------------------------------------------- */

/* What many short runs are sampled by goes on from one to the next. */
static void begin_costs(judge_costs *costs, gmd_costs how)
{
    if (how == GMD_COSTS_SAMPLED && costs->how == how) {
        return;
    }
    *costs = (judge_costs){.how = how, .clock_seconds = 1};
    for (int i = 0; how != GMD_COSTS_IGNORED && i < 8; i++) {
        double start = gmd_clock_s(), seconds = gmd_clock_s() - start;
        costs->clock_seconds = seconds < costs->clock_seconds ? seconds : costs->clock_seconds;
    }
}

static bool is_of_each_request(judge_hook hook)
{
    return hook == GMD_HOOK_AFTER_ALLOC || hook == GMD_HOOK_BEFORE_FREE ||
           hook == GMD_HOOK_AFTER_REQUEST;
}

static uint32_t distance_of(const judge_costs *costs)
{
    return costs->how == GMD_COSTS_SAMPLED ? JUDGE_SAMPLED_EACH : JUDGE_TIMED_EACH;
}

/* Every distance from 0 to twice the mean: what an oracle does at times is met like the rest. */
static uint32_t draw_distance(judge_costs *costs)
{
    costs->random += GMD_HASH_MULTIPLIER;
    return (uint32_t)(gmd_random_mix(costs->random) % (2 * distance_of(costs) - 1));
}

/* Processes that are forked from one open session would all time the same moments. */
static void begin_sampling(judge_costs *costs)
{
    costs->random = (uint64_t)(gmd_clock_s() * 1e9) | 1;
    costs->until = draw_distance(costs);
}

/* How many moments this one stands for; 0: it is not timed. */
static double weight_of(judge_costs *costs, judge_hook hook)
{
    bool is_sampled = costs->how == GMD_COSTS_SAMPLED;
    if (!is_sampled && !is_of_each_request(hook)) {
        return 1;
    }
    if (!is_sampled && costs->timed < JUDGE_TIMED_FIRST) {
        costs->timed++;
        return 1;
    }
    if (is_sampled && !costs->random) {
        begin_sampling(costs);
    }
    if (costs->until) {
        costs->until--;
        return 0;
    }
    costs->until = draw_distance(costs);
    return distance_of(costs);
}

static bool is_deaf(const listener *l, const gmd_view *view)
{
    return view->is_busy && l->oracle->needs_quiet;
}

/* after_alloc(), at_end() and so on of oracles/NAME.c, as its gmd_oracle names them. */
static void ask_one(gmd_judge *judge, const listener *l, const gmd_view *view)
{
    judge->speaking = l->oracle;
    l->result->asked += judge->costs.how != GMD_COSTS_IGNORED;
    l->hook(l->state, view, judge);
}

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Another process may have had the processor meanwhile: then the next moment is timed instead. */
static void ask_timed(gmd_judge *judge, judge_hook hook, const gmd_view *view, double weight)
{
    double took[GMD_ORACLE_MAX] = {0};
    const listener *list = judge->listeners[hook];
    double processor = processor_s(), start = gmd_clock_s(), before = start;
    for (uint32_t i = 0; i < judge->listener_count[hook]; i++) {
        if (!is_deaf(&list[i], view)) {
            ask_one(judge, &list[i], view);
            double now = gmd_clock_s();
            took[i] = now - before - judge->costs.clock_seconds;
            before = now;
        }
    }
    bool was_alone = before - start - (processor_s() - processor) < JUDGE_PREEMPTED_SECONDS;
    if (!was_alone && (weight > 1 || is_of_each_request(hook))) {
        judge->costs.until = 0;
        return;
    }
    for (uint32_t i = 0; i < judge->listener_count[hook]; i++) {
        list[i].result->seconds += took[i] > 0 ? took[i] * weight : 0;
    }
}

/* --- open, ask and close --------------------------------------------------------------------- */

gmd_status judge_open(gmd_judge *judge, gmd_outcome *outcome, const gmd_view *view,
                      const judge_options *options, gmd_error *error)
{
    *judge = (gmd_judge){.outcome = outcome, .known = options->known, .costs = judge->costs};
    begin_costs(&judge->costs, options->costs);
    outcome->known_context = (known_context){.fault_count = 0};
    snprintf(outcome->known_context.conf, sizeof outcome->known_context.conf, "%s",
             options->conf ? options->conf : "");
    for (size_t i = 0; gmd_oracles[i]; i++) {
        const gmd_oracle *oracle = gmd_oracles[i];
        const char *reason = oracle->blind_spot ? oracle->blind_spot(view) : NULL;
        bool is_off = options->oracles_off ||
                      (options->left_out && strcmp(options->left_out, oracle->entry->name) == 0);
        reason = is_off ? "switched off" : reason;
        gmd_oracle_result *result = result_of(outcome, oracle->entry->name);
        result->fate = reason ? GMD_ORACLE_SKIPPED : GMD_ORACLE_PASSED;
        result->reason[0] = '\0';
        result->asked = 0;
        result->seconds = 0;
        if (reason) {
            snprintf(result->reason, sizeof result->reason, "%s", reason);
        }
        bool is_idle = oracle->needs_pools && view->workload.knows_requests &&
                       !view->workload.has_pool_requests;
        bool is_asked = !reason && !is_idle;
        if (is_asked && oracle->create && !(judge->states[i] = oracle->create())) {
            return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the oracle %s",
                            oracle->entry->name);
        }
        if (is_asked) {
            listen(judge, oracle, judge->states[i], result);
        }
    }
    return GMD_OK;
}

void judge_close(gmd_judge *judge)
{
    for (size_t i = 0; gmd_oracles[i]; i++) {
        if (gmd_oracles[i]->destroy && judge->states[i]) {
            gmd_oracles[i]->destroy(judge->states[i]);
        }
        judge->states[i] = NULL;
    }
}

void judge_ask(gmd_judge *judge, judge_hook hook, const gmd_view *view)
{
    judge->request_index = view->request_index;
    judge->is_at_end = hook == GMD_HOOK_WHEN_OVER || hook == GMD_HOOK_AT_END;
    judge->device = view->device;
    double weight = judge->costs.how == GMD_COSTS_IGNORED ? 0 : weight_of(&judge->costs, hook);
    if (weight > 0) {
        ask_timed(judge, hook, view, weight);
        return;
    }
    for (uint32_t i = 0; i < judge->listener_count[hook]; i++) {
        const listener *l = &judge->listeners[hook][i];
        if (!is_deaf(l, view)) {
            ask_one(judge, l, view);
        }
    }
}
