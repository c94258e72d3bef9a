/* py_steps.c - a plan's steps as statements of Python: py_steps.h. */
#include "py_steps.h"

#include "checks.h"
#include "form.h"
#include "names.h"

#include <inttypes.h>
#include <string.h>

enum { LINE_MOST = 120 };

/* --- names ------------------------------------------------------------------------------- */

/* A string: the name that the case has for it. */
static const char *block_name(const void *writer, uint32_t allocation, char text[80])
{
    const py_writer *w = writer;
    const gmd_names *names = &w->reproducer->trace->blocks;
    uint32_t block = w->plan->allocations[allocation].block;
    if (block < names->count && names->items[block] && strlen(names->items[block]) < 70) {
        snprintf(text, 80, "\"%s\"", names->items[block]);
    } else {
        snprintf(text, 80, "\"b%" PRIu32 "\"", block);
    }
    return text;
}

const char *py_bytes(uint64_t bytes, char text[32])
{
    unsigned power = bytes == 0 ? 0 : bytes % (1 << 20) == 0 ? 20 : bytes % (1 << 10) == 0 ? 10 : 0;
    uint64_t count = bytes >> power;
    if (power == 0) {
        snprintf(text, 32, "%" PRIu64, count);
    } else if (count == 1) {
        snprintf(text, 32, "2**%u", power);
    } else {
        snprintf(text, 32, "%" PRIu64 " * 2**%u", count, power);
    }
    return text;
}

const char *py_stream_name(const void *writer, uint8_t device, uint32_t stream, char text[80])
{
    const py_writer *w = writer;
    (void)device; /* there is one */
    if (stream == 0) {
        return "default";
    }
    name_stream(w->reproducer->trace, stream, text);
    return text;
}

static void put_form(const py_writer *w, const char *form, const step *s, FILE *out)
{
    const form_names names = {.block = block_name, .stream = py_stream_name, .context = w};
    form_put(form, s, &names, out);
}

/* What PyTorch counts of what is live: nothing, at the end. */
static const struct {
    const char *check, *figure;
} end_figures[] = {{"end_allocated", "allocated_bytes"},
                   {"end_active", "active_bytes"},
                   {"end_requested", "requested_bytes"},
                   {"end_count", "allocation"}};

/* The verdict is about the end, and nothing else. */
static bool is_of_the_end(const gmd_reproducer *r)
{
    return r->verdict && checks_oracle(r, "accounting") && checks_has_group(r, "end") &&
           !checks_has_group(r, "statistics");
}

static bool checks(const py_writer *w, const char *check)
{
    return checks_has(w->reproducer, check);
}

bool py_has_huge_request(const gmd_trace *t)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->requests[i].op == GMD_OP_ALLOC && t->requests[i].bytes >= UINT64_C(1) << 62) {
            return true;
        }
    }
    return false;
}

/* --- one step ---------------------------------------------------------------------------- */

/* Steps without a form need nothing of PyTorch, or come with others. */
static const char *const forms[] = {
    [STEP_WORK] = "use(%n, %b, %s)\n",
    [STEP_FINISH] = "finish(%n)\n",
    [STEP_WAIT] = "%s.wait_stream(%o)\n",
    [STEP_SYNC_STREAM] = "%s.synchronize()\n",
    [STEP_SYNC_DEVICE] = "torch.cuda.synchronize()\n",
    [STEP_FRACTION] = "limit_memory(%f)\n",
    [STEP_LEFT_OUT] = NULL, /* as all others */
};

/* Out of memory must be true: asked again, under what would make it true if it was not. */
static void put_question(const py_writer *w, const step *s, const char *check, const char *before,
                         const char *when, FILE *out)
{
    bool is_only_other = checks(w, "cache_kept") || checks(w, "all_free"); /* the C program asks */
    fputs(before, out);
    if (is_only_other || checks(w, check)) {
        char bytes[32];
        fprintf(out, "    ask_again(%s, ", py_bytes(s->bytes, bytes));
        put_form(w, "%s", s, out);
        fprintf(out, ", \"%s\")\n", when);
    }
}

static const step *open_pool_at(const py_writer *w, const step *at)
{
    const step *begin = NULL;
    for (const step *s = w->plan->steps; s < at; s++) {
        begin = s->kind == STEP_BEGIN_POOL ? s : s->kind == STEP_END_POOL ? NULL : begin;
    }
    return begin;
}

static void put_questions(const py_writer *w, const step *s, FILE *out)
{
    const step *begin = open_pool_at(w, s);
    put_form(w, "if %b not in blocks:\n", s, out);
    put_question(w, s, "at_once", "", "at once, nothing freed", out);
    if (s->is_captured) { /* the rest waits, or gives memory back */
        fputs(checks(w, "at_once") ? "" : "    pass\n", out);
        return;
    }
    put_question(w, s, "idle", "    torch.cuda.synchronize()\n", "once all streams are idle", out);
    put_question(w, s, "emptied", "    torch.cuda.empty_cache()\n", "once the cache is emptied",
                 out);
    if (begin && checks(w, "reopened")) {
        put_form(w,
                 "    scope.__exit__(None, None, None)\n    torch.cuda.empty_cache()\n"
                 "    scope = torch.cuda.use_mem_pool(pool_%l)\n    scope.__enter__()\n",
                 begin, out);
        put_question(w, s, "reopened", "", "once the open pool is ended and begun again", out);
    }
}

static void put_alloc(const py_writer *w, const step *s, FILE *out)
{
    const gmd_trace *t = w->reproducer->trace;
    const gmd_request *r = &t->requests[s->request];
    char bytes[32];
    put_form(w, "alloc(%b, ", s, out);
    fputs(py_bytes(s->bytes, bytes), out);
    put_form(w, ", %s)\n", s, out);
    if (r->expect != GMD_EXPECT_ANY && checks_oracle(w->reproducer, "expect")) {
        put_form(w,
                 r->expect == GMD_EXPECT_OOM ? "check(%b not in blocks, \"expect: it is served\")\n"
                                             : "check(%b in blocks, \"expect: it is refused\")\n",
                 s, out);
    }
    if (plan_has(w->plan, STEP_BEGIN_CAPTURE) && !s->is_captured && checks(w, "order_of_work") &&
        w->plan->work_count > 0) {
        put_form(w, "check_order(%b)\n", s, out);
    }
    if (checks_oracle(w->reproducer, "oom_retry") && s->request == plan_last_alloc(t)) {
        put_questions(w, s, out);
    }
}

/* --- captures ---------------------------------------------------------------------------- */

bool py_guards_captures(const py_writer *w)
{
    const gmd_reproducer *r = w->reproducer;
    return plan_has(w->plan, STEP_SPOIL) || checks_oracle(r, "api_misuse") ||
           checks_oracle(r, "progress") || checks_oracle(r, "leak") ||
           checks_oracle(r, "accounting");
}

bool py_knows_spoilt(const py_writer *w)
{
    const gmd_reproducer *r = w->reproducer;
    return checks_oracle(r, "progress") ||
           (checks_oracle(r, "api_misuse") && plan_has(w->plan, STEP_SPOIL));
}

static bool checks_graphs(const py_writer *w)
{
    return checks_oracle(w->reproducer, "backing") && plan_has(w->plan, STEP_BEGIN_CAPTURE);
}

/* The first step of the kind that is of a request, behind `after`; NULL: there is none. */
static const step *find_step(const py_writer *w, const step *after, step_kind kind)
{
    const step *end = w->plan->steps + w->plan->step_count;
    for (const step *s = after; s < end && s->request != NO_REQUEST; s++) {
        if (s->kind == kind) {
            return s;
        }
    }
    return NULL;
}

bool py_notes_graphs(const py_writer *w)
{
    const step *first = find_step(w, w->plan->steps, STEP_END_CAPTURE);
    bool is_one = !first || (!find_step(w, first + 1, STEP_END_CAPTURE) &&
                             !find_step(w, first + 1, STEP_DESTROY_GRAPH));
    return (checks_graphs(w) && !is_one) ||
           (py_guards_captures(w) && plan_has(w->plan, STEP_LAUNCH));
}

/* Statements on the stream, behind `indent`: what is captured may be refused. */
static void put_captured(const py_writer *w, const step *s, const char *indent, FILE *out)
{
    fputs(indent, out);
    put_form(w, py_guards_captures(w) ? "with in_capture(%s):\n" : "with torch.cuda.stream(%s):\n",
             s, out);
}

static void put_graph_work(const py_writer *w, const step *s, FILE *out)
{
    put_form(w, "if %b in blocks:\n", s, out);
    put_captured(w, s, "    ", out);
    put_form(w, "        blocks[%b].memory.fill_(1)\n", s, out);
    if (checks_graphs(w) || checks(w, "order_in_graph")) {
        put_form(w, "        works[%n] = blocks[%b]._replace(memory=None), graph_%g\n", s, out);
    }
}

static void put_join(const py_writer *w, const step *s, FILE *out)
{
    bool is_guarded = py_guards_captures(w);
    if (is_guarded) {
        put_captured(w, s, "", out);
    }
    put_form(w, is_guarded ? "    %s.wait_stream(%o)\n" : "%s.wait_stream(%o)\n", s, out);
}

static void put_spoil(const py_writer *w, const step *s, FILE *out)
{
    fputs(py_knows_spoilt(w) ? "is_spoilt = True\n" : "", out);
    put_captured(w, s, "", out);
    put_form(w, "    %s.synchronize()\n", s, out);
}

static void put_end_capture(const py_writer *w, const step *s, FILE *out)
{
    put_captured(w, s, "", out);
    put_form(w, "    graph_%n.capture_end()\n", s, out);
    put_form(w, py_notes_graphs(w) ? "    graphs_done.add(graph_%n)\n" : "", s, out);
    fputs(py_knows_spoilt(w) ? "is_spoilt = False\n" : "", out);
    if (checks_graphs(w) && s == find_step(w, w->plan->steps, STEP_END_CAPTURE)) {
        fputs("torch.cuda.memory._record_memory_history(context=None)\n", out);
    }
}

static void put_launch(const py_writer *w, const step *s, FILE *out)
{
    if (!plan_is_launched(w->plan, s->number)) {
        return;
    }
    const char *indent = py_notes_graphs(w) ? "    " : "";
    put_form(w, py_notes_graphs(w) ? "if graph_%n in graphs_done:\n" : "", s, out);
    fputs(indent, out);
    put_form(w, "with torch.cuda.stream(%s):\n", s, out);
    fputs(indent, out);
    put_form(w, "    graph_%n.replay()\n", s, out);
}

/* --- pools ------------------------------------------------------------------------------- */

/* Whether the step is the first or the last one of its kind in the pool's life. */
static bool is_outermost(const py_writer *w, const step *s, int direction)
{
    const step *first = w->plan->steps, *end = first + w->plan->step_count;
    for (const step *o = s + direction; o >= first && o < end; o += direction) {
        if (o->kind == s->kind && o->life == s->life) {
            return false;
        }
    }
    return true;
}

/* Requests outside of captures need a torch.cuda.MemPool, whose id captures then share. */
static bool is_mem_pool(const py_writer *w, uint32_t life)
{
    const step *s = w->plan->steps, *end = s + w->plan->step_count;
    for (; s < end; s++) {
        if (s->kind == STEP_BEGIN_POOL && s->life == life && s[1].kind != STEP_BEGIN_CAPTURE) {
            return true;
        }
    }
    return false;
}

static void put_begin_pool(const py_writer *w, const step *s, FILE *out)
{
    bool has_id = is_mem_pool(w, s->life), captures = s[1].kind == STEP_BEGIN_CAPTURE;
    if (is_outermost(w, s, -1)) {
        put_form(w,
                 has_id ? "pool_%l = torch.cuda.MemPool()\n"
                        : "pool_%l = torch.cuda.graph_pool_handle()\n",
                 s, out);
    }
    if (captures) {
        put_form(w,
                 has_id ? "graph_%n = torch.cuda.CUDAGraph()\n"
                          "with torch.cuda.stream(%s):\n"
                          "    graph_%n.capture_begin(pool=pool_%l.id)\n"
                        : "graph_%n = torch.cuda.CUDAGraph()\n"
                          "with torch.cuda.stream(%s):\n"
                          "    graph_%n.capture_begin(pool=pool_%l)\n",
                 s + 1, out);
    } else {
        put_form(w, "scope = torch.cuda.use_mem_pool(pool_%l)\nscope.__enter__()\n", s, out);
    }
    if (checks_oracle(w->reproducer, "private_pool")) {
        put_form(w, has_id ? "open_pool = pool_%l.id\n" : "open_pool = pool_%l\n", s, out);
        fputs("held_pools.add(open_pool)\n", out);
    }
}

static void put_end_pool(const py_writer *w, const step *s, FILE *out)
{
    bool is_captures = s > w->plan->steps && s[-1].kind == STEP_END_CAPTURE;
    bool is_checked = checks_oracle(w->reproducer, "private_pool");
    if (!is_captures) {
        fputs(is_checked ? "end_pool(scope)\n" : "scope.__exit__(None, None, None)\n", out);
    }
    fputs(is_checked ? "open_pool = None\n" : "", out);
}

/* With the last hold the MemPool goes, which gives back at once what it has cached. */
static void put_release_pool(const py_writer *w, const step *s, FILE *out)
{
    if (is_outermost(w, s, 1)) {
        if (checks_oracle(w->reproducer, "private_pool")) {
            put_form(w,
                     is_mem_pool(w, s->life) ? "held_pools.discard(pool_%l.id)\n"
                                             : "held_pools.discard(pool_%l)\n",
                     s, out);
        }
        put_form(w, "del pool_%l\n", s, out);
    }
}

static void put_step(const py_writer *w, const step *s, FILE *out)
{
    switch (s->kind) {
    case STEP_ALLOC:
        put_alloc(w, s, out);
        break;
    case STEP_FREE:
        put_form(
            w, py_has_huge_request(w->reproducer->trace) ? "free(%b)\n" : "blocks.pop(%b, None)\n",
            s, out);
        break;
    case STEP_RECORD:
        put_form(w,
                 py_has_huge_request(w->reproducer->trace)
                     ? "record_block(%b, %s)\n"
                     : "if %b in blocks:\n    blocks[%b].memory.record_stream(%s)\n",
                 s, out);
        break;
    case STEP_EMPTY_CACHE:
        for (int64_t i = 0; i < s->number; i++) {
            fputs("torch.cuda.empty_cache()\n", out);
        }
        break;
    case STEP_BEGIN_POOL:
        put_begin_pool(w, s, out);
        break;
    case STEP_END_POOL:
        put_end_pool(w, s, out);
        break;
    case STEP_RELEASE_POOL:
        put_release_pool(w, s, out);
        break;
    case STEP_GRAPH_WORK:
        put_graph_work(w, s, out);
        break;
    case STEP_JOIN:
        put_join(w, s, out);
        break;
    case STEP_SPOIL:
        put_spoil(w, s, out);
        break;
    case STEP_END_CAPTURE:
        put_end_capture(w, s, out);
        break;
    case STEP_LAUNCH:
        put_launch(w, s, out);
        break;
    case STEP_DESTROY_GRAPH:
        put_form(w, "graph_%n.reset()\n", s, out);
        put_form(w, py_notes_graphs(w) ? "graphs_done.discard(graph_%n)\n" : "", s, out);
        break;
    case STEP_CHECK_GRAPH:
        put_form(w, checks(w, "order_in_graph") ? "check_graph_order(%b, %n)\n" : "", s, out);
        break;
    default:
        if ((size_t)s->kind < sizeof forms / sizeof *forms && forms[s->kind]) {
            put_form(w, forms[s->kind], s, out);
        }
    }
}

/* --- what is checked after a step -------------------------------------------------------- */

bool py_checks_statistics(const py_writer *w)
{
    return checks_oracle(w->reproducer, "accounting") && !is_of_the_end(w->reproducer);
}

/* What may change it, and only what is not about to change again. */
static bool changes_memory(const step *s)
{
    switch (s->kind) {
    case STEP_ALLOC:
    case STEP_FREE:
    case STEP_EMPTY_CACHE:
    case STEP_FRACTION:
    case STEP_END_POOL:
    case STEP_RELEASE_POOL:
    case STEP_END_CAPTURE:
        return true;
    default:
        return false;
    }
}

static void put_checks(const py_writer *w, const step *s, FILE *out)
{
    const step *capture = find_step(w, w->plan->steps, STEP_END_CAPTURE);
    bool has_graphs = capture && (s->request == NO_REQUEST || s->request > capture->request);
    fputs(checks_graphs(w) && has_graphs ? "check_graphs()\n" : "", out);
    fputs(py_checks_statistics(w) ? "check_statistics()\n" : "", out);
    fputs(checks_oracle(w->reproducer, "peak_bound") ? "check_limit()\n" : "", out);
}

/* --- requests ---------------------------------------------------------------------------- */

static void put_with_comment(const char *statements, const char *comment, FILE *out)
{
    size_t first = strcspn(statements, "\n");
    bool fits = first > 0 && first + strlen(comment) + 4 <= LINE_MOST;
    if (fits) {
        fprintf(out, "%.*s  # %s%s", (int)first, statements, comment, statements + first);
    } else {
        fprintf(out, "# %s\n%s", comment, statements);
    }
}

static void put_request(const py_writer *w, const step *first, const step *end)
{
    char *statements = NULL, *comment = request_comment(w->reproducer->trace, first);
    size_t size;
    FILE *out = open_memstream(&statements, &size);
    const step *last = NULL;
    for (const step *s = first; out && s < end; s++) {
        put_step(w, s, out);
        last = changes_memory(s) ? s : last;
    }
    if (out && last) {
        put_checks(w, last, out);
    }
    if (out && fclose(out) == 0 && comment) {
        put_with_comment(statements, comment, w->out);
    }
    free(statements);
    free(comment);
}

/* Requests that need no step are comments: moves of the clock, mostly. */
static void put_idle_requests(const py_writer *w, size_t from, size_t to)
{
    for (; from < to; from++) {
        const step idle = {.request = from};
        put_request(w, &idle, &idle);
    }
}

/* With everything freed. */
static void put_end_checks(const py_writer *w)
{
    for (size_t i = 0; i < sizeof end_figures / sizeof *end_figures; i++) {
        const char *figure = end_figures[i].figure;
        if (is_of_the_end(w->reproducer) && checks(w, end_figures[i].check)) {
            fprintf(w->out,
                    "live = statistics()[\"%s\"] - own[\"%s\"]\n"
                    "check(live == 0, f\"accounting: {live} %s with nothing live\")\n",
                    figure, figure, figure);
        }
    }
    if (checks_oracle(w->reproducer, "leak")) {
        fputs("held = torch.cuda.memory_stats(0)[\"reserved_bytes.all.current\"] - reserved\n"
              "check(held <= 0, f\"leak: {held} B stay reserved with everything freed\")\n",
              w->out);
    }
}

/* The end may still make a capture fail. */
static bool ends_in_capture(const py_writer *w)
{
    const step *s = w->plan->steps + w->plan->step_count;
    while (s > w->plan->steps && s[-1].request == NO_REQUEST) {
        s--;
        if (s->kind == STEP_END_CAPTURE) {
            return true;
        }
    }
    return false;
}

static bool frees_everything(const py_writer *w)
{
    static const char *const no_end[] = {"alignment",    "backing", "expect",
                                         "oom_retry",    "overlap", "peak_bound",
                                         "private_pool", "size",    "stream_order"};
    for (size_t i = 0; w->reproducer->verdict && i < sizeof no_end / sizeof *no_end; i++) {
        if (checks_oracle(w->reproducer, no_end[i])) {
            return false;
        }
    }
    return !w->reproducer->verdict || !checks_oracle(w->reproducer, "api_misuse") ||
           ends_in_capture(w);
}

void py_put_requests(const py_writer *w)
{
    const gmd_reproducer *r = w->reproducer;
    const step *s = w->plan->steps, *end = s + w->plan->step_count;
    size_t next = 0;
    for (const step *behind; s < end && s->request != NO_REQUEST; s = behind) {
        behind = plan_request_end(w->plan, s);
        put_idle_requests(w, next, s->request);
        next = s->request + 1;
        put_request(w, s, behind);
    }
    put_idle_requests(w, next, r->trace->count);
    bool frees = frees_everything(w);
    fputs(frees ? "\n" : "", w->out);
    for (; frees && s < end; s++) {
        put_step(w, s, w->out);
        if (changes_memory(s)) {
            put_checks(w, s, w->out);
        }
    }
    put_end_checks(w);
    fputs(frees ? "print(\"nothing shown\")\n"
                : "print(\"nothing shown\", flush=True)\nos._exit(0)\n",
          w->out);
}
