/* c_steps.c - a plan's steps as statements of C: c_steps.h. */
#include "c_steps.h"

#include "checks.h"
#include "form.h"
#include "names.h"

#include <inttypes.h>
#include <string.h>

enum { LINE_MOST = 100, DIRECT_MOST = 2 };

/* --- what is looked for ------------------------------------------------------------------ */

static bool is_for_one_of(const gmd_reproducer *r, const char *const *oracles)
{
    while (*oracles && !(r->verdict && checks_oracle(r, *oracles))) {
        oracles++;
    }
    return *oracles != NULL;
}

/* What is made free at the end cannot show it: the check is of an answer, or before a launch. */
static bool is_of_requests_only(const gmd_reproducer *r)
{
    return r->verdict && checks_oracle(r, "backing") && !checks_has(r, "backed_later");
}

/* Programs ask for memory only through the allocator, and do not call the driver. */
static bool is_called_by_programs(const char *function)
{
    return strncmp(function, "cuda", 4) == 0 && strncmp(function, "cudaMalloc", 10) != 0 &&
           strncmp(function, "cudaFree", 8) != 0;
}

bool c_marks_calls(const c_writer *w)
{
    const gmd_trace *t = w->reproducer->trace;
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        if (r->op == GMD_OP_FAULT && is_called_by_programs(t->functions.items[r->function])) {
            return true;
        }
    }
    return false;
}

/* The program makes forbidden calls itself. */
static bool notes_misuse(const c_writer *w)
{
    return checks_oracle(w->reproducer, "api_misuse") && plan_has(w->plan, STEP_SPOIL);
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
    case C_CHECK_BEFORE:
        return checks_oracle(r, "device_state") || c_marks_calls(w) || notes_misuse(w);
    case C_CHECK_AFTER:
        return checks_oracle(r, "device_state") || c_marks_calls(w) ||
               checks_oracle(r, "api_misuse");
    case C_CHECK_FAILURE:
        return checks_has(r, "order_by_failure") || c_checks(w, C_CHECK_FILLED);
    default:
        return !is_for_one_of(r, no_end) && !is_of_requests_only(r);
    }
}

/* A function for it, unless it is one call. */
const char *c_before(const c_writer *w)
{
    const gmd_reproducer *r = w->reproducer;
    bool is_other = checks_oracle(r, "device_state") || notes_misuse(w);
    return is_other ? "before_call()" : "gmd_sim_harness(false)";
}

const char *c_after(const c_writer *w)
{
    const gmd_reproducer *r = w->reproducer;
    bool is_other = checks_oracle(r, "device_state") || checks_oracle(r, "api_misuse");
    return is_other ? "after_call()" : "gmd_sim_harness(true)";
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

/* Statements on one device and, where they differ, on several: calls of functions in program.c.in.
 * Or without such a function, where it would be called twice at most. */
static const struct {
    const char *one, *many, *direct;
} forms[] = {
    [STEP_FREE] = {"release(%b);\n", NULL, NULL},
    [STEP_NEW_HANDLE] = {"blocks[%b].stream = %s;\n", NULL, NULL},
    [STEP_WORK] = {"use(%n, %b, %s);\n", NULL, NULL},
    [STEP_GRAPH_WORK] = {"capture_work(%n, %b, %s);\n", NULL, NULL},
    [STEP_MAY_END] = {"may_end[%n] = true;\n", NULL, NULL},
    [STEP_FINISH] = {"finish(%n);\n", NULL, NULL},
    [STEP_RECORD] = {"record(%b, %s);\n", NULL,
                     "if (gmd_record_stream && blocks[%b].is_live) {\n"
                     "    gmd_record_stream(blocks[%b].begin, %s);\n"
                     "}\n"},
    [STEP_WAIT] = {"stream_waits(%s, %o);\n", "stream_waits(%d, %s, %o);\n", NULL},
    [STEP_WAIT_IF_UNTOLD] = {"order_unless_told(%s, %o);\n", "order_unless_told(%d, %s, %o);\n",
                             NULL},
    [STEP_JOIN] = {"join_capture(%s, %o);\n", NULL, NULL},
    [STEP_SYNC_STREAM] = {"CUDA(cudaStreamSynchronize(%s));\n", "synchronize(%d, %s);\n", NULL},
    [STEP_SYNC_DEVICE] = {"CUDA(cudaDeviceSynchronize());\n", "synchronize_device(%d);\n", NULL},
    [STEP_SPOIL] = {"cudaStreamSynchronize(%s);\n"
                    "cudaGetLastError();\n",
                    NULL, NULL},
    [STEP_EMPTY_CACHE] = {"empty_cache();\n", NULL, NULL},
    [STEP_FRACTION] = {"limit_memory(%f);\n", "limit_memory(%f, %d);\n", NULL},
    [STEP_DEVICE] = {"CUDA(cudaSetDevice(%d));\n", NULL, NULL},
    [STEP_FORGET] = {"forget(%d, %s);\n", NULL,
                     "if (gmd_forget_stream) {\n"
                     "    gmd_forget_stream(%d, %s);\n"
                     "}\n"},
    [STEP_DESTROY] = {"CUDA(cudaStreamDestroy(%s));\n", NULL, NULL},
    [STEP_LEAVE_ERROR] = {"cudaSetDevice(-1);\n", NULL, NULL},
    [STEP_MAKE_STREAM] = {"CUDA(cudaStreamCreateWithFlags(&%s, cudaStreamNonBlocking));\n",
                          "make_stream(&%s, %d);\n", NULL},
    [STEP_END_POOL] = {"end_pool(%l);\n", "end_pool(%d, %l);\n",
                       "gmd_end_pool(%d, (const uint64_t[]){0, %l}, &(void *){NULL});\n"},
    [STEP_RELEASE_POOL] = {"release_pool(%l);\n", "release_pool(%d, %l);\n",
                           "gmd_release_pool(%d, (const uint64_t[]){0, %l});\n"},
    [STEP_BEGIN_CAPTURE] = {"CUDA(cudaStreamBeginCapture(%s, cudaStreamCaptureModeGlobal));\n",
                            NULL, NULL},
    [STEP_LAUNCH] = {"launch(graphs[%n], %s);\n", NULL,
                     "if (graphs[%n]) {\n"
                     "    CUDA(cudaGraphLaunch(graphs[%n], %s));\n"
                     "}\n"},
    [STEP_DESTROY_GRAPH] = {"destroy_graph(graphs[%n]);\n", NULL,
                            "if (graphs[%n]) {\n"
                            "    CUDA(cudaGraphExecDestroy(graphs[%n]));\n"
                            "}\n"},
    [STEP_CHECK_WORK] = {"check_work(graphs[%g], %n);\n", NULL,
                         "if (graphs[%g]) {\n"
                         "    check_memory(&works[%n]);\n"
                         "}\n"},
    [STEP_CHECK_GRAPH] = {"check_graph_order(%b, %n);\n", NULL, NULL},
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

static bool frees_at_refusal(const c_writer *w)
{
    return checks_has(w->reproducer, "all_free") || checks_has(w->reproducer, "asked_free");
}

/* How many such steps the program has. */
static size_t count_steps(const c_writer *w, step_kind kind)
{
    const struct {
        const plan *plan;
        bool has_requests, has_end;
    } parts[] = {{w->plan, true, c_checks(w, C_CHECK_FREED)},
                 {w->refusal, false, frees_at_refusal(w)}};
    size_t count = 0;
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        for (size_t i = 0; parts[p].plan && i < parts[p].plan->step_count; i++) {
            const step *s = &parts[p].plan->steps[i];
            bool is_there = s->request == NO_REQUEST ? parts[p].has_end : parts[p].has_requests;
            count += is_there && s->kind == kind;
        }
    }
    return count;
}

/* Whether the function for such steps does more than the call. */
static bool is_checked(const c_writer *w, step_kind kind)
{
    const gmd_reproducer *r = w->reproducer;
    switch (kind) {
    case STEP_EMPTY_CACHE:
        return c_checks(w, C_CHECK_EACH) || (w->refusal && checks_has(r, "cache_kept"));
    case STEP_BEGIN_POOL:
    case STEP_END_POOL:
    case STEP_RELEASE_POOL:
        return checks_oracle(r, "private_pool");
    default:
        return false;
    }
}

static bool is_direct(const c_writer *w, step_kind kind)
{
    return !is_checked(w, kind) && count_steps(w, kind) <= DIRECT_MOST;
}

static void put_before(const c_writer *w, FILE *out)
{
    if (c_checks(w, C_CHECK_BEFORE)) {
        fprintf(out, "%s;\n", c_before(w));
    }
}

static void put_after(const c_writer *w, FILE *out)
{
    if (c_checks(w, C_CHECK_AFTER)) {
        fprintf(out, "%s;\n", c_after(w));
    }
}

static bool is_allocators(step_kind kind)
{
    return kind == STEP_RECORD || kind == STEP_FORGET || kind == STEP_END_POOL ||
           kind == STEP_RELEASE_POOL;
}

static void put_call(const c_writer *w, const step *s, FILE *out)
{
    bool is_many = w->plan->device_count > 1 && forms[s->kind].many;
    if (!forms[s->kind].direct || !is_direct(w, s->kind)) {
        put_form(w, is_many ? forms[s->kind].many : forms[s->kind].one, s, out);
    } else if (!is_allocators(s->kind)) {
        put_form(w, forms[s->kind].direct, s, out);
    } else {
        put_before(w, out);
        put_form(w, forms[s->kind].direct, s, out);
        put_after(w, out);
    }
}

static void put_empty_cache(const c_writer *w, const step *s, FILE *out)
{
    bool has_function = !is_direct(w, STEP_EMPTY_CACHE);
    if (!has_function) {
        put_before(w, out);
        fputs("if (gmd_empty_cache) {\n", out);
    }
    for (int64_t i = 0; i < s->number; i++) {
        fputs(has_function ? forms[STEP_EMPTY_CACHE].one : "    gmd_empty_cache();\n", out);
    }
    if (!has_function) {
        fputs("}\n", out);
        put_after(w, out);
    }
}

/* A graph that nothing launches is not made. */
static void put_end_capture(const c_writer *w, const step *s, FILE *out)
{
    bool is_checked = checks_oracle(w->reproducer, "api_misuse") && !s->is_spoilt;
    bool is_made = plan_is_launched(w->plan, s->number);
    fputs(plan_has(w->plan, STEP_JOIN) ? "captured_count = 0;\n" : "", out);
    put_form(w,
             is_checked ? "cudaError_t end_%n = cudaStreamEndCapture(%s, &graph);\n"
                          "CHECK(!end_%n || end_%n == cudaErrorStreamCaptureWrongThread,\n"
                          "      \"api_misuse: the capture fails (%%d), "
                          "by nothing that is called here\\n\", end_%n);\n"
             : is_made  ? "if (cudaStreamEndCapture(%s, &graph) == cudaSuccess) {\n"
                        : "cudaStreamEndCapture(%s, &graph);\n",
             s, out);
    put_form(w, is_made && is_checked ? "if (!end_%n) {\n" : "", s, out);
    put_form(w,
             is_made ? "    CUDA(cudaGraphInstantiateWithFlags(&graphs[%n], graph, 0));\n"
                       "    CUDA(cudaGraphDestroy(graph));\n"
                       "}\n"
                     : "",
             s, out);
    fputs("cudaGetLastError();\n", out);
}

static void put_refusal(const c_writer *w, FILE *out);

static void put_request_for_memory(const c_writer *w, const step *s, FILE *out)
{
    put_form(w, "allocate(%b, ", s, out);
    fprintf(out, "%" PRIu64 "%s", s->bytes, s->bytes > INT64_MAX ? "u" : "");
    put_form(w, w->plan->device_count > 1 ? ", %d, %s);\n" : ", %s);\n", s, out);
}

static void put_alloc(const c_writer *w, const step *s, FILE *out)
{
    const gmd_trace *t = w->reproducer->trace;
    const gmd_request *r = &t->requests[s->request];
    bool has_graphs = w->plan->graph_count > 0; /* then allocate() does not know which it is for */
    put_request_for_memory(w, s, out);
    if (has_graphs && !s->is_captured) {
        put_form(w, c_checks(w, C_CHECK_ORDER) ? "check_order(%b);\n" : "", s, out);
        put_form(w, c_checks(w, C_CHECK_FILLED) ? "fill(%b);\n" : "", s, out);
    }
    if (r->expect != GMD_EXPECT_ANY && checks_oracle(w->reproducer, "expect")) {
        bool is_oom = r->expect == GMD_EXPECT_OOM;
        put_form(w, is_oom ? "expect_answer(%b, true);\n" : "expect_answer(%b, false);\n", s, out);
    }
    if (w->refusal && s->request == plan_last_alloc(t) && s->bytes > 0) {
        put_form(w, "if (!blocks[%b].is_live) {\n", s, out);
        put_refusal(w, out);
        fputs("}\n", out);
    }
}

static void put_free(const c_writer *w, const step *s, FILE *out)
{
    if (c_checks(w, C_CHECK_CONTENT)) {
        put_form(w, s->number < 0 ? "check_content(%b, 1);\n" : "check_content(%b, %m);\n", s, out);
    }
    put_form(w, forms[STEP_FREE].one, s, out);
}

/* What says whether the pool is for a stream: a capture's is for all that the capture comes to. */
static const char *filter_of(const c_writer *w, const step *s, bool is_captures)
{
    return s->stream == GMD_ALL_STREAMS                  ? "NULL"
           : is_captures && plan_has(w->plan, STEP_JOIN) ? "is_captured"
                                                         : "is_for_stream";
}

static void put_begin_pool(const c_writer *w, const step *s, bool is_captures, FILE *out)
{
    const char *filter = filter_of(w, s, is_captures);
    bool is_many = w->plan->device_count > 1, is_for_all = s->stream == GMD_ALL_STREAMS;
    if (!is_direct(w, STEP_BEGIN_POOL)) {
        put_form(w, is_many ? "begin_pool(%d, %l, " : "begin_pool(%l, ", s, out);
        fprintf(out, "%s, ", filter);
        put_form(w, is_for_all ? "NULL);\n" : "%s);\n", s, out);
        return;
    }
    const char *stream = is_many ? "pool_stream[%d]" : "pool_stream";
    if (!is_for_all) {
        put_form(w, stream, s, out);
        put_form(w, " = %s;\n", s, out);
    }
    put_before(w, out);
    put_form(w,
             "NEED(gmd_begin_pool &&\n"
             "         gmd_begin_pool(%d, (const uint64_t[]){0, %l}, ",
             s, out);
    fprintf(out, "%s, %s", filter, is_for_all ? "" : "&");
    put_form(w, is_for_all ? "NULL" : stream, s, out);
    fputs(") == 0,\n     \"the allocator begins no private pool\\n\");\n", out);
    put_after(w, out);
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

static void put_wait_if_untold(const c_writer *w, const step *s, bool is_many, FILE *out)
{
    bool is_inside = is_direct(w, STEP_WAIT_IF_UNTOLD);
    step_kind kind = is_inside ? STEP_WAIT : STEP_WAIT_IF_UNTOLD;
    fputs(is_inside ? "if (!gmd_record_stream) {\n    " : "", out);
    put_form(w, is_many ? forms[kind].many : forms[kind].one, s, out);
    fputs(is_inside ? "}\n" : "", out);
}

/* A step that only another kind of program needs. */
static bool is_idle(const c_writer *w, const step *s)
{
    switch (s->kind) {
    case STEP_CHECK_WORK:
        return !checks_has(w->reproducer, "backed_graph") || !plan_is_launched(w->plan, s->other);
    case STEP_CHECK_GRAPH:
        return !checks_has(w->reproducer, "order_in_graph");
    case STEP_DEVICE:
        return w->plan->device_count == 1;
    case STEP_LAUNCH:
    case STEP_DESTROY_GRAPH:
        return !plan_is_launched(w->plan, s->number);
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
    case STEP_BEGIN_CAPTURE:
        put_form(w, plan_has(w->plan, STEP_JOIN) ? "captured[captured_count++] = %s;\n" : "", s,
                 out);
        put_call(w, s, out);
        break;
    case STEP_END_CAPTURE:
        put_end_capture(w, s, out);
        break;
    case STEP_EMPTY_CACHE:
        put_empty_cache(w, s, out);
        break;
    case STEP_WAIT_IF_UNTOLD:
        put_wait_if_untold(w, s, is_many, out);
        break;
    default:
        put_call(w, s, out);
    }
}

void c_put_indented(const char *lines, const char *indent, FILE *out)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        fprintf(out, "%s%.*s\n", indent, (int)length, lines);
        lines += length + 1;
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

/* What is still held back ends by itself, soon. */
static bool is_wait(const step *s)
{
    return s->kind == STEP_SYNC_DEVICE || s->kind == STEP_END_CAPTURE || s->kind == STEP_JOIN;
}

static void put_end(const c_writer *w, bool frees)
{
    char *statements = NULL;
    size_t size;
    FILE *out = open_memstream(&statements, &size);
    for (size_t i = 0; out && i < w->plan->step_count; i++) {
        const step *s = &w->plan->steps[i];
        if (s->request == NO_REQUEST && (frees || is_wait(s))) {
            put_step(w, s, out);
        }
    }
    if (out && fclose(out) == 0) {
        c_put_indented(statements, "    ", w->out);
    }
    free(statements);
}

/* --- a refusal --------------------------------------------------------------------------- */

static void put_question(const c_writer *w, const char *check, const char *form, const step *alloc,
                         FILE *out)
{
    put_form(w, checks_has(w->reproducer, check) ? form : "", alloc, out);
}

/* The end of the requests up to the refused one: what lets work go on, or all else. */
static void put_end_of_refusal(const c_writer *w, bool lets_go, uint32_t refused, FILE *out)
{
    for (size_t i = 0; i < w->refusal->step_count; i++) {
        const step *s = &w->refusal->steps[i];
        bool is_refused = s->kind == STEP_FREE && s->allocation == refused;
        if (s->request == NO_REQUEST && (s->kind == STEP_MAY_END) == lets_go && !is_refused) {
            put_step(w, s, out);
        }
    }
}

typedef struct refusal_steps {
    const step *alloc, *begin_pool, *end_pool;
    bool is_captured;
} refusal_steps;

static refusal_steps find_refusal_steps(const plan *p)
{
    refusal_steps found = {.alloc = NULL};
    for (size_t i = 0; i < p->step_count; i++) {
        const step *s = &p->steps[i];
        bool is_end = s->request == NO_REQUEST;
        found.alloc = s->kind == STEP_ALLOC ? s : found.alloc;
        found.begin_pool = s->kind == STEP_BEGIN_POOL ? s : found.begin_pool;
        found.end_pool = is_end && s->kind == STEP_END_POOL ? s : found.end_pool;
        found.is_captured = found.is_captured || (is_end && s->kind == STEP_END_CAPTURE);
    }
    return found;
}

static void put_questions(const c_writer *w, FILE *out)
{
    const refusal_steps at = find_refusal_steps(w->refusal);
    if (!at.alloc) {
        return; /* nothing is asked for */
    }
    bool reopens = checks_has(w->reproducer, "reopened") && at.end_pool && at.begin_pool &&
                   at.begin_pool->device == at.alloc->device;
    put_question(w, "at_once", "ask_again(%b, \"at once, nothing freed\");\n", at.alloc, out);
    if (at.is_captured) { /* then CUDA lets nobody wait */
        return;
    }
    const step wait = {.kind = STEP_SYNC_DEVICE, .device = at.alloc->device};
    const step empty = {.kind = STEP_EMPTY_CACHE, .number = 1};
    put_end_of_refusal(w, true, at.alloc->allocation, out);
    put_step(w, &wait, out);
    put_question(w, "idle", "ask_again(%b, \"once all streams are idle\");\n", at.alloc, out);
    put_question(w, "cache_kept", "question_cache(%b);\n", at.alloc, out);
    if (checks_has(w->reproducer, "emptied")) {
        put_step(w, &empty, out);
        put_form(w, "ask_again(%b, \"once the cache is emptied\");\n", at.alloc, out);
    }
    if (reopens) {
        put_step(w, at.end_pool, out);
        put_step(w, &empty, out);
        put_begin_pool(w, at.begin_pool, false, out);
        put_form(w, "ask_again(%b, \"once the open pool is ended and begun again\");\n", at.alloc,
                 out);
    }
    if (frees_at_refusal(w)) {
        put_end_of_refusal(w, false, at.alloc->allocation, out);
    }
    put_question(w, "all_free", "ask_with_nothing_live(%b);\n", at.alloc, out);
    if (checks_has(w->reproducer, "asked_free") && !checks_has(w->reproducer, "all_free")) {
        put_request_for_memory(w, at.alloc, out);
    }
}

/* Out of memory must be true. Nothing comes after it: the answers change what is to come. */
static void put_refusal(const c_writer *w, FILE *out)
{
    const gmd_trace *t = w->reproducer->trace;
    char *statements = NULL;
    size_t size;
    bool is_last =
        w->reproducer->verdict && t->threads.count <= 1 && plan_last_alloc(t) + 1 == t->count;
    FILE *memory = open_memstream(&statements, &size);
    if (!memory) {
        return;
    }
    put_questions(w, memory);
    fputs(is_last ? "" : "puts(\"nothing shown\");\n_Exit(0);\n", memory);
    if (fclose(memory) == 0) {
        c_put_indented(statements, "    ", out);
    }
    free(statements);
}

/* --- the body ---------------------------------------------------------------------------- */

void c_put_for_device(const c_writer *w, const char *function, uint32_t device)
{
    if (w->plan->device_count > 1) {
        fprintf(w->out, "    %s(%" PRIu32 ");\n", function, device);
    } else {
        fprintf(w->out, "    %s();\n", function);
    }
}

void c_put_threads(const c_writer *w)
{
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
    if (frees || c_checks(w, C_CHECK_FAILURE)) {
        fprintf(w->out, "\n");
        put_end(w, frees);
    }
    for (uint32_t d = 0; d < w->plan->device_count; d++) {
        if (checks_has_group(w->reproducer, "end")) {
            c_put_for_device(w, "check_nothing_live", d);
        }
        if (checks_has(w->reproducer, "leak_reserved") || checks_has(w->reproducer, "leak_held")) {
            c_put_for_device(w, "check_leak", d);
        }
    }
    /* What is live stays so: nothing is freed while the process ends. */
    fprintf(w->out, "    puts(\"nothing shown\");\n    %s;\n}\n", frees ? "return 0" : "_Exit(0)");
}
