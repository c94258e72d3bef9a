/* c_steps.c - a plan's steps as statements of C: c_steps.h. */
#include "c_steps.h"

#include "checks.h"
#include "form.h"
#include "names.h"

#include <inttypes.h>
#include <string.h>

enum { LINE_MOST = 100 };

/* --- what is looked for ------------------------------------------------------------------ */

static bool is_for_one_of(const gmd_reproducer *r, const char *const *oracles)
{
    while (*oracles && !(r->verdict && checks_oracle(r, *oracles))) {
        oracles++;
    }
    return *oracles != NULL;
}

bool c_checks(const c_writer *w, c_check check)
{
    static const char *const no_end[] = {"alignment",  "expect", "oom_retry",    "overlap",
                                         "peak_bound", "size",   "stream_order", NULL};
    const gmd_reproducer *r = w->reproducer;
    switch (check) {
    case C_CHECK_ORDER:
        return checks_has(r, "order_of_work") && w->plan->work_count > 0 &&
               r->trace->conditions.schedule.kind != GMD_SCHEDULE_EAGER;
    case C_CHECK_CONTENT:
        return r->verdict && checks_oracle(r, "data");
    case C_CHECK_FILLED:
        return r->verdict && (checks_oracle(r, "data") || checks_has(r, "backed_at_once"));
    case C_CHECK_EACH:
        return checks_has(r, "backed_later") || checks_has_group(r, "statistics") ||
               checks_oracle(r, "peak_bound");
    default:
        return !is_for_one_of(r, no_end);
    }
}

/* --- names ------------------------------------------------------------------------------- */

const char *c_block_name(const void *writer, uint32_t allocation, char text[80])
{
    const c_writer *w = writer;
    const plan_allocation *a = &w->plan->allocations[allocation];
    char round[16] = "";
    if (a->round > 0) {
        snprintf(round, sizeof round, "_%u", a->round + 1);
    }
    name_block(w->reproducer->trace, a->block, text);
    return strncat(text, round, 79 - strlen(text));
}

const char *c_stream_name(const void *writer, uint8_t device, uint32_t stream, char text[80])
{
    const c_writer *w = writer;
    char place[16] = "";
    if (stream == 0) {
        return "NULL"; /* the default stream, of whichever device is current */
    }
    if (w->plan->device_count > 1) {
        snprintf(place, sizeof place, "_of_%u", device);
    }
    name_stream(w->reproducer->trace, stream, text);
    return strncat(text, place, 79 - strlen(text));
}

/* --- one step ---------------------------------------------------------------------------- */

static const struct {
    const char *one, *many; /* statements, on one device and, where they differ, on several */
} forms[] = {
    [STEP_FREE] = {"release(%b);\n", NULL},
    [STEP_NEW_HANDLE] = {"blocks[%b].stream = %s;\n", NULL},
    [STEP_WORK] = {"use(%n, %b, %s);\n", NULL},
    [STEP_GRAPH_WORK] = {"capture_work(%n, %b, %s);\n", NULL},
    [STEP_MAY_END] = {"uses[%n].may_end = true;\n", NULL},
    [STEP_FINISH] = {"finish(%n);\n", NULL},
    [STEP_RECORD] = {"record(%b, %s);\n", NULL},
    [STEP_WAIT] = {"stream_waits(%s, %o);\n", "stream_waits(%d, %s, %o);\n"},
    [STEP_WAIT_IF_UNTOLD] = {"order_unless_told(%s, %o);\n", "order_unless_told(%d, %s, %o);\n"},
    [STEP_JOIN] = {"join_capture(%s, %o);\n", NULL},
    [STEP_SYNC_STREAM] = {"CUDA(cudaStreamSynchronize(%s));\n", "synchronize(%d, %s);\n"},
    [STEP_SYNC_DEVICE] = {"CUDA(cudaDeviceSynchronize());\n", "synchronize_device(%d);\n"},
    [STEP_SPOIL] = {"cudaStreamSynchronize(%s);\n"
                    "cudaGetLastError();\n",
                    NULL},
    [STEP_EMPTY_CACHE] = {"empty_cache();\n", NULL},
    [STEP_FRACTION] = {"limit_memory(%f, %d);\n", NULL},
    [STEP_DEVICE] = {"CUDA(cudaSetDevice(%d));\n", NULL},
    [STEP_FORGET] = {"forget(%d, %s);\n", NULL},
    [STEP_DESTROY] = {"CUDA(cudaStreamDestroy(%s));\n", NULL},
    [STEP_MAKE_STREAM] = {"CUDA(cudaStreamCreateWithFlags(&%s, cudaStreamNonBlocking));\n",
                          "make_stream(&%s, %d);\n"},
    [STEP_END_POOL] = {"end_pool(%d, %l);\n", NULL},
    [STEP_RELEASE_POOL] = {"release_pool(%d, %l);\n", NULL},
    [STEP_BEGIN_CAPTURE] = {"begin_capture(%s);\n", NULL},
    [STEP_END_CAPTURE] = {"end_capture(%s, &graphs[%n]);\n", NULL},
    [STEP_LAUNCH] = {"launch(graphs[%n], %s);\n", NULL},
    [STEP_DESTROY_GRAPH] = {"destroy_graph(&graphs[%n]);\n", NULL},
    [STEP_CHECK_WORK] = {"check_work(graphs[%g], %n, %d);\n", NULL},
    [STEP_CHECK_GRAPH] = {"check_graph_order(%b, %n);\n", NULL},
};

static form_names names_of(const c_writer *w)
{
    return (form_names){.block = c_block_name, .stream = c_stream_name, .context = w};
}

static void put_form(const c_writer *w, const char *form, const step *s, FILE *out)
{
    const form_names names = names_of(w);
    form_put(form, s, &names, out);
}

static void put_alloc(const c_writer *w, const step *s, FILE *out)
{
    const gmd_trace *t = w->reproducer->trace;
    const gmd_request *r = &t->requests[s->request];
    bool has_graphs = w->plan->graph_count > 0; /* then allocate() does not know which it is for */
    put_form(w, "allocate(%b, ", s, out);
    fprintf(out, "%" PRIu64 "%s", s->bytes, s->bytes > INT64_MAX ? "u" : "");
    put_form(w, ", %d, %s);\n", s, out);
    if (has_graphs && !s->is_captured) {
        put_form(w, c_checks(w, C_CHECK_ORDER) ? "check_order(%b);\n" : "", s, out);
        put_form(w, c_checks(w, C_CHECK_FILLED) ? "fill(%b);\n" : "", s, out);
    }
    if (r->expect != GMD_EXPECT_ANY && checks_oracle(w->reproducer, "expect")) {
        bool is_oom = r->expect == GMD_EXPECT_OOM;
        put_form(w, is_oom ? "expect_answer(%b, true);\n" : "expect_answer(%b, false);\n", s, out);
    }
    if (w->refusal && s->request == plan_last_alloc(t) && s->bytes > 0) {
        put_form(w, "if (!blocks[%b].is_live) {\n    question_last_refusal();\n}\n", s, out);
    }
}

static void put_free(const c_writer *w, const step *s, FILE *out)
{
    if (c_checks(w, C_CHECK_CONTENT)) {
        put_form(w, s->number < 0 ? "check_content(%b, 1);\n" : "check_content(%b, %m);\n", s, out);
    }
    put_form(w, forms[STEP_FREE].one, s, out);
}

/* A capture's pool is for all streams that the capture comes to. */
static void put_begin_pool(const c_writer *w, const step *s, bool is_captures, FILE *out)
{
    put_form(w, "begin_pool(%d, %l, ", s, out);
    put_form(w,
             s->stream == GMD_ALL_STREAMS ? "NULL, NULL);\n"
             : is_captures                ? "is_captured, %s);\n"
                                          : "is_for_stream, %s);\n",
             s, out);
}

static void put_fault(const c_writer *w, const step *s, FILE *out)
{
    const gmd_trace *t = w->reproducer->trace;
    const gmd_request *r = &t->requests[s->request];
    if (s->kind == STEP_BUDGET) {
        fprintf(out, "gmd_sim_budget(%u, %" PRIu64 "u);\n", r->device, r->bytes);
        return;
    }
    fprintf(out, "gmd_sim_fault(");
    put_c_string(t->functions.items[r->function], out);
    fprintf(out, ", %" PRIu32 ", %s, %" PRIu32 ");\n", r->count, r->every_later ? "true" : "false",
            r->error);
}

/* A function for it, where it is needed more than twice. */
static void put_wait_if_untold(const c_writer *w, const step *s, bool is_many, FILE *out)
{
    size_t count = 0;
    for (size_t i = 0; i < w->plan->step_count; i++) {
        count += w->plan->steps[i].kind == STEP_WAIT_IF_UNTOLD;
    }
    step_kind kind = count > 2 ? STEP_WAIT_IF_UNTOLD : STEP_WAIT;
    fputs(count > 2 ? "" : "if (!gmd_record_stream) {\n    ", out);
    put_form(w, is_many ? forms[kind].many : forms[kind].one, s, out);
    fputs(count > 2 ? "" : "}\n", out);
}

/* A step that only another kind of program needs. */
static bool is_idle(const c_writer *w, const step *s)
{
    switch (s->kind) {
    case STEP_CHECK_WORK:
        return !checks_has(w->reproducer, "backed_graph");
    case STEP_CHECK_GRAPH:
        return !checks_has(w->reproducer, "order_in_graph");
    case STEP_DEVICE:
        return w->plan->device_count == 1;
    default:
        return s->kind == STEP_LEFT_OUT;
    }
}

static void put_step(const c_writer *w, const step *s, FILE *out)
{
    bool is_many = w->plan->device_count > 1 && forms[s->kind].many;
    if (is_idle(w, s)) {
        return;
    }
    switch (s->kind) {
    case STEP_ALLOC:
        put_alloc(w, s, out);
        break;
    case STEP_FREE:
        put_free(w, s, out);
        break;
    case STEP_BEGIN_POOL:
        put_begin_pool(w, s, s[1].kind == STEP_BEGIN_CAPTURE, out); /* each plan ends otherwise */
        break;
    case STEP_FAULT:
    case STEP_BUDGET:
        put_fault(w, s, out);
        break;
    case STEP_END_CAPTURE:
        put_form(w, s->is_spoilt ? "end_spoilt_capture(%s);\n" : forms[STEP_END_CAPTURE].one, s,
                 out);
        break;
    case STEP_WAIT_IF_UNTOLD:
        put_wait_if_untold(w, s, is_many, out);
        break;
    default:
        put_form(w, is_many ? forms[s->kind].many : forms[s->kind].one, s, out);
    }
}

/* --- requests ---------------------------------------------------------------------------- */

/* Statements with the request as a comment behind the first, or before it where that is too long.
 */
static void put_lines(const char *statements, const char *comment, FILE *out)
{
    size_t first = strcspn(statements, "\n");
    bool fits = first > 0 && 4 + first + strlen(comment) + 7 <= LINE_MOST;
    if (*comment && !fits) {
        fprintf(out, "    /* %s */\n", comment);
    }
    while (*statements) {
        size_t length = strcspn(statements, "\n");
        bool has_comment = *comment && fits;
        fprintf(out, "    %.*s", (int)length, statements);
        fprintf(out, has_comment ? "\t/* %s */\n" : "%s\n", has_comment ? comment : "");
        comment = "";
        statements += length + 1;
    }
}

/* Whether what is checked after each request may have changed other than in the calls that check.
 */
static bool is_checked_after(const step *s)
{
    return s->kind != STEP_ALLOC && s->kind != STEP_FREE && s->kind != STEP_EMPTY_CACHE;
}

static void put_checks(const c_writer *w, FILE *out)
{
    fputs(checks_has(w->reproducer, "backed_later") ? "check_backing();\n" : "", out);
    fputs(checks_has_group(w->reproducer, "statistics") ? "check_statistics();\n" : "", out);
    fputs(checks_oracle(w->reproducer, "peak_bound") ? "check_limit();\n" : "", out);
}

/* The steps [first, end) of one request. */
static void put_request(const c_writer *w, const step *first, const step *end)
{
    char *statements = NULL, *comment = request_comment(w->reproducer->trace, first);
    size_t size;
    bool is_checked = c_checks(w, C_CHECK_EACH);
    FILE *out = open_memstream(&statements, &size);
    for (const step *s = first; out && s < end; s++) {
        put_step(w, s, out);
        is_checked = is_checked && is_checked_after(s);
    }
    if (out && is_checked && ftell(out) > 0) {
        put_checks(w, out);
    }
    if (out && fclose(out) == 0 && comment) {
        put_lines(statements, comment, w->out);
    }
    free(statements);
    free(comment);
}

/* A request that needs no step, as a comment: a move of the clock, mostly. */
static void put_idle_requests(const c_writer *w, size_t from, size_t to, uint8_t thread)
{
    for (; from < to; from++) {
        char *comment = request_comment(w->reproducer->trace, &(step){.request = from});
        if (comment && w->reproducer->trace->requests[from].thread == thread) {
            put_lines("", comment, w->out);
        }
        free(comment);
    }
}

/* All requests of a thread, in turns where there are several threads. */
static void put_thread(const c_writer *w, uint8_t thread)
{
    const gmd_trace *t = w->reproducer->trace;
    bool takes_turns = t->threads.count > 1, is_on_turn = false;
    size_t next = 0;
    const step *s = w->plan->steps, *end = s + w->plan->step_count;
    for (; s < end && s->request != NO_REQUEST; s = plan_request_end(w->plan, s)) {
        bool is_own = s->thread == thread;
        if (takes_turns && is_own && !is_on_turn && s > w->plan->steps) {
            fprintf(w->out, "    await_turn(%zu);\n", s->request);
        } else if (takes_turns && !is_own && is_on_turn) {
            fprintf(w->out, "    turn = %zu;\n", s->request);
        }
        is_on_turn = is_own;
        put_idle_requests(w, next, s->request, thread);
        next = s->request + 1;
        if (is_own) {
            put_request(w, s, plan_request_end(w->plan, s));
        }
    }
    put_idle_requests(w, next, t->count, thread);
}

/* --- the end ----------------------------------------------------------------------------- */

static bool is_wait(const step *s)
{
    return s->kind == STEP_MAY_END || s->kind == STEP_SYNC_DEVICE || s->kind == STEP_SYNC_STREAM ||
           s->kind == STEP_FINISH || s->kind == STEP_END_CAPTURE || s->kind == STEP_JOIN;
}

static void put_end(const c_writer *w, const plan *p, bool frees)
{
    char *statements = NULL;
    size_t size;
    FILE *out = open_memstream(&statements, &size);
    for (size_t i = 0; out && i < p->step_count; i++) {
        const step *s = &p->steps[i];
        if (s->request == NO_REQUEST && (frees || is_wait(s))) {
            put_step(w, s, out);
        }
    }
    if (out && fclose(out) == 0) {
        put_lines(statements, "", w->out);
    }
    free(statements);
}

static void put_question(const c_writer *w, const char *check, const char *form, const step *alloc)
{
    put_form(w, checks_has(w->reproducer, check) ? form : "", alloc, w->out);
}

/* Out of memory must be true. Nothing comes after it: the answers change what is to come. */
static void put_refusal(const c_writer *w)
{
    const plan *p = w->refusal;
    const step *alloc = NULL, *begin = NULL, *end_pool = NULL;
    bool is_captured = false;
    for (size_t i = 0; i < p->step_count; i++) {
        const step *s = &p->steps[i];
        bool is_end = s->request == NO_REQUEST;
        alloc = s->kind == STEP_ALLOC ? s : alloc;
        begin = s->kind == STEP_BEGIN_POOL ? s : begin;
        end_pool = is_end && s->kind == STEP_END_POOL ? s : end_pool;
        is_captured = is_captured || (is_end && s->kind == STEP_END_CAPTURE);
    }
    if (!alloc) { /* there is one in every such plan */
        return;
    }
    bool may_wait = !is_captured; /* else CUDA lets nobody */
    bool reopens = may_wait && checks_has(w->reproducer, "reopened") && end_pool && begin &&
                   begin->device == alloc->device;
    fprintf(w->out, "\nstatic void question_last_refusal(void)\n{\n");
    put_question(w, "at_once", "    ask_again(%b, \"at once, nothing freed\");\n", alloc);
    if (may_wait) {
        put_form(w, "    wait_for_all(%d);\n", alloc, w->out);
        put_question(w, "idle", "    ask_again(%b, \"once all streams are idle\");\n", alloc);
        put_question(w, "cache_kept", "    question_cache(%b);\n", alloc);
        put_question(w, "emptied",
                     "    empty_cache();\n    ask_again(%b, \"once the cache is emptied\");\n",
                     alloc);
    }
    if (reopens) {
        put_form(w, "    end_pool(%d, %l);\n    empty_cache();\n    ", end_pool, w->out);
        put_begin_pool(w, begin, false, w->out);
        put_form(w, "    ask_again(%b, \"once the open pool is ended and begun again\");\n", alloc,
                 w->out);
    }
    if (may_wait && checks_has(w->reproducer, "all_free")) {
        put_end(w, p, true);
        put_form(w, "    ask_with_nothing_live(%b);\n", alloc, w->out);
    }
    fprintf(w->out, "    puts(\"nothing shown\");\n    _Exit(0);\n}\n");
}

/* --- the body ---------------------------------------------------------------------------- */

void c_put_threads(const c_writer *w)
{
    if (w->refusal) {
        put_refusal(w);
    }
    for (uint32_t t = 1; t < w->reproducer->trace->threads.count; t++) {
        fprintf(w->out, "\nstatic void *run_thread_%" PRIu32 "(void *unused)\n{\n", t);
        put_thread(w, (uint8_t)t);
        fprintf(w->out, "    return unused;\n}\n");
    }
}

static void put_joins(const c_writer *w)
{
    for (uint32_t t = 1; t < w->reproducer->trace->threads.count; t++) {
        fprintf(w->out, "    pthread_join(threads[%" PRIu32 "], NULL);\n", t);
    }
}

void c_put_requests(const c_writer *w)
{
    uint32_t threads = w->reproducer->trace->threads.count;
    if (threads > 1) {
        fprintf(w->out, "    pthread_t threads[%" PRIu32 "];\n", threads);
    }
    for (uint32_t t = 1; t < threads; t++) {
        fprintf(w->out,
                "    pthread_create(&threads[%" PRIu32 "], NULL, run_thread_%" PRIu32 ", NULL);\n",
                t, t);
    }
    put_thread(w, 0);
    put_joins(w);
    bool frees = c_checks(w, C_CHECK_FREED);
    if (frees || checks_oracle(w->reproducer, "stream_order")) {
        fprintf(w->out, "\n");
        put_end(w, w->plan, frees);
    }
    for (uint32_t d = 0; d < w->plan->device_count; d++) {
        if (checks_has_group(w->reproducer, "end")) {
            fprintf(w->out, "    check_nothing_live(%" PRIu32 ");\n", d);
        }
        if (checks_oracle(w->reproducer, "leak")) {
            fprintf(w->out, "    check_leak(%" PRIu32 ");\n", d);
        }
    }
    fprintf(w->out, "    puts(\"nothing shown\");\n    return 0;\n}\n");
}
