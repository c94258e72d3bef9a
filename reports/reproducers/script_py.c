/* A case as a Python script for PyTorch's own allocator: the parts of script.py.in that it needs,
 * then its requests. */
#include "checks.h"
#include "fragments.h"
#include "py_steps.h"

#include "script.py.in.h"

#include <inttypes.h>
#include <string.h>

#define POOL_STREAMS 32 /* PyTorch makes no more of one priority, and then gives them again */

/* --- whether it fits --------------------------------------------------------------------- */

static const char *misfit(const gmd_request *r)
{
    return gmd_op_needs(r->op, GMD_NEEDS_FAULTS | GMD_NEEDS_BUDGETS)
               ? "only the simulated device makes calls fail on purpose"
           : r->op == GMD_OP_DESTROY     ? "PyTorch's streams are never destroyed"
           : r->op == GMD_OP_LEAVE_ERROR ? "no function of PyTorch leaves an error behind"
           : gmd_op_needs(r->op, GMD_NEEDS_CHECKPOINTS)
               ? "PyTorch brings pools back for torch.compile only"
           : gmd_op_has(r->op, GMD_FIELD_POOL_OPTIONS) && r->pool_options
               ? "it makes a private pool with options"
           : r->device ? "it needs several devices"
           : r->thread ? "it needs several threads"
           : r->op == GMD_OP_ALLOC && r->bytes > INT64_MAX
               ? "Python asks PyTorch for no more than 2^63 - 1 bytes"
               : NULL;
}

/* torch.cuda.use_mem_pool takes what a thread asks for on any stream. */
static bool has_pool_beside_others(const gmd_trace *t)
{
    uint32_t only = GMD_ALL_STREAMS;
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        if (r->op == GMD_OP_BEGIN_POOL) {
            only = r->stream;
        } else if (r->op == GMD_OP_END_POOL) {
            only = GMD_ALL_STREAMS;
        } else if (r->op == GMD_OP_ALLOC && only != GMD_ALL_STREAMS && r->stream != only) {
            return true;
        }
    }
    return false;
}

/* Streams have numbers from 0 on, named or not. */
static uint32_t count_streams(const gmd_trace *t)
{
    uint32_t count = t->streams.count;
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        bool names_stream = gmd_request_names_stream(r) && r->stream != GMD_ALL_STREAMS;
        uint32_t last = names_stream ? r->stream : 0;
        last = r->op == GMD_OP_WAIT && r->other_stream > last ? r->other_stream : last;
        count = last >= count ? last + 1 : count;
    }
    return count;
}

bool gmd_reproducer_fits_python(const gmd_reproducer *reproducer, char *reason, size_t size)
{
    const gmd_trace *t = reproducer->trace;
    const char *why = NULL;
    if (!reproducer->allocator || strcmp(reproducer->allocator, "torch") != 0) {
        why = "it is for PyTorch's own allocator (--allocator torch)";
    } else if (t->conditions.device_count > 1) {
        why = "it needs several devices";
    } else if (count_streams(t) > POOL_STREAMS + 1) {
        why = "PyTorch makes at most 32 streams";
    }
    for (size_t i = 0; i < t->count && !why; i++) {
        why = misfit(&t->requests[i]);
    }
    if (!why && has_pool_beside_others(t)) {
        why = "while its private pool takes one stream's requests, others' go elsewhere; "
              "torch.cuda.use_mem_pool takes all";
    }
    if (why) {
        snprintf(reason, size, "%s", why);
    }
    return !why;
}

/* --- the script -------------------------------------------------------------------------- */

/* A Python string; what could end it or the line does not stay as it is. */
static void put_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            fputc('\\', out);
        }
        fputc((unsigned char)*c < ' ' ? ' ' : *c, out);
    }
    fputc('"', out);
}

static void put_comment(const py_writer *w, FILE *out)
{
    const gmd_reproducer *r = w->reproducer;
    bool is_guarded = plan_has(w->plan, STEP_BEGIN_CAPTURE) && py_guards_captures(w);
    fprintf(out, "# Shows a defect of PyTorch's CUDA caching allocator, by itself.\n");
    put_findings(r, "# ", out);
    fprintf(out,
            "# Run: python3 %s (needs a GPU). Exit status: 0 nothing shown, 1 shown, 2 it could "
            "not run.\n",
            r->name);
    fprintf(out,
            "import os\nimport sys\nfrom collections import namedtuple\n%s\n"
            "sys.excepthook = lambda *error: (sys.__excepthook__(*error), os._exit(2))  "
            "# 1 would be a defect\n"
            "os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = ",
            is_guarded ? "from contextlib import contextmanager\n" : "");
    const char *conf = r->trace->conditions.conf ? r->trace->conditions.conf : "";
    put_string(conf, out);
    fprintf(out, "  # %sbefore torch is imported\nimport torch\n\n", *conf ? "" : "none; ");
}

/* More than once, or the script must know the limit. */
static bool moves_limit(const py_writer *w)
{
    return plan_has(w->plan, STEP_FRACTION) || checks_oracle(w->reproducer, "peak_bound");
}

/* Those that a script can check of the statistics: all, where the verdict is of another kind. */
static void choose_statistics(const py_writer *w, fragment_choice *choice)
{
    const gmd_reproducer *r = w->reproducer;
    static const char *const checks[] = {
        "allocated_active", "active_reserved", "allocated_reserved", "live_allocated",
        "live_requested",   "count_live",      "split_reserved"};
    bool is_one = false, is_checked = py_checks_statistics(w);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        is_one = is_one || checks_has(r, checks[i]);
    }
    fragment_flag(choice, "all_statistics", is_checked && (!is_one || !r->verdict));
    fragment_flag(choice, "live_bytes",
                  is_checked && (!is_one || checks_has(r, "live_allocated") ||
                                 checks_has(r, "live_requested")));
}

static void choose_flags(const py_writer *w, fragment_choice *choice)
{
    const gmd_reproducer *r = w->reproducer;
    const plan *p = w->plan;
    bool is_eager = r->trace->conditions.schedule.kind == GMD_SCHEDULE_EAGER;
    bool captures = plan_has(p, STEP_BEGIN_CAPTURE);
    checks_choose(r, choice);
    choose_statistics(w, choice);
    fragment_flag(choice, "captures", captures);
    fragment_flag(choice, "pooled", plan_has(p, STEP_BEGIN_POOL));
    fragment_flag(choice, "spoilt", py_knows_spoilt(w));
    fragment_flag(choice, "graphs_noted", py_notes_graphs(w));
    fragment_flag(choice, "held", !is_eager);
    fragment_flag(choice, "finishes", plan_has(p, STEP_FINISH));
    fragment_flag(choice, "order",
                  !is_eager && p->work_count > 0 && checks_has(r, "order_of_work"));
    fragment_flag(choice, "huge", py_has_huge_request(r->trace));
    fragment_flag(choice, "block",
                  checks_oracle(r, "overlap") || checks_has(r, "wraps") ||
                      (checks_oracle(r, "private_pool") && plan_has(p, STEP_BEGIN_POOL)));
}

/* The case's device is smaller than this one, and PyTorch has some memory for itself. */
static void put_limit(const py_writer *w)
{
    uint64_t capacity = w->reproducer->trace->conditions.capacity_bytes;
    char bytes[32];
    if (capacity || moves_limit(w)) {
        fprintf(w->out, "total = torch.cuda.get_device_properties(0).total_memory\n");
    }
    if (checks_oracle(w->reproducer, "peak_bound")) {
        fprintf(w->out, "limit_bytes, held_at_limit = 1 << 64, 0\n");
    }
    if (capacity) {
        fprintf(w->out, "if total > %s:  # which the case's device has\n",
                py_bytes(capacity, bytes));
    }
    if (capacity && moves_limit(w)) {
        fprintf(w->out, "    limit_memory(1.0)\n");
    } else if (capacity) {
        fprintf(
            w->out,
            "    limit = %s + torch.cuda.memory_stats(0)[\"reserved_bytes.all.current\"]\n"
            "    torch.cuda.set_per_process_memory_fraction(min((limit + 0.5) / total, 1.0), 0)\n",
            py_bytes(capacity, bytes));
    }
}

static void put_streams(const py_writer *w)
{
    char name[80];
    uint32_t count = 0;
    for (uint32_t s = 1; s < w->plan->stream_count; s++) {
        if (w->plan->has_stream[s]) {
            fprintf(w->out, "%s%s", count ? ", " : "", py_stream_name(w, 0, s, name));
            count++;
        }
    }
    if (count > 1) {
        fprintf(w->out, " = (torch.cuda.Stream() for _ in range(%" PRIu32 "))\n", count);
    } else if (count) {
        fprintf(w->out, " = torch.cuda.Stream()\n");
    }
}

/* With the first graph PyTorch takes memory that it keeps as long as there is one. */
static void put_first_graph(const py_writer *w)
{
    fprintf(w->out,
            "first_graph = torch.cuda.CUDAGraph()  # with it PyTorch takes memory for itself\n"
            "with torch.cuda.graph(first_graph, stream=torch.cuda.Stream(priority=-1)):  "
            "# no stream of the case\n"
            "    memory.fill_(1)\n"
            "first_graph.replay()\n"
            "del memory\n");
}

/* What comes before the first request. */
static void put_set_up(const py_writer *w)
{
    const gmd_reproducer *r = w->reproducer;
    bool captures = plan_has(w->plan, STEP_BEGIN_CAPTURE);
    fprintf(w->out, "\n\n%storch.empty(1, dtype=torch.uint8, device=\"cuda:0\").fill_(1)\n",
            captures ? "memory = " : "");
    put_streams(w);
    if (captures) {
        put_first_graph(w);
    }
    fprintf(w->out, "torch.cuda.synchronize()\ntorch.cuda.empty_cache()\n");
    if (checks_oracle(r, "accounting")) {
        fprintf(w->out, "own = statistics()  # what PyTorch has for itself\n");
    }
    if (moves_limit(w) || checks_oracle(r, "leak")) {
        fprintf(w->out, "reserved = torch.cuda.memory_stats(0)[\"reserved_bytes.all.current\"]  "
                        "# PyTorch's own\n");
    }
    put_limit(w);
    fputc('\n', w->out);
}

static bool put_script(py_writer *w, FILE *out)
{
    char *body = NULL, capacity[32];
    size_t size;
    uint64_t bytes = w->reproducer->trace->conditions.capacity_bytes;
    fragment_choice choice = {.flag_count = 0};
    choose_flags(w, &choice);
    fragment_key(&choice, "CAPACITY", bytes ? py_bytes(bytes, capacity) : "total");
    w->out = open_memstream(&body, &size);
    if (!w->out) {
        return false;
    }
    put_set_up(w);
    py_put_requests(w);
    bool is_put = fclose(w->out) == 0;
    if (is_put) {
        put_comment(w, out);
        is_put = fragments_write(script_text, "#", &choice, body, out);
        fputs(body, out);
    }
    free(body);
    return is_put;
}

gmd_status gmd_reproducer_write_python(const gmd_reproducer *reproducer, FILE *out,
                                       gmd_error *error)
{
    char reason[200];
    plan made = {0};
    py_writer w = {.reproducer = reproducer, .plan = &made};
    if (!gmd_reproducer_fits_python(reproducer, reason, sizeof reason)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: no Python script: %s", reproducer->name, reason);
    }
    bool is_put =
        plan_make(&made, reproducer->trace, reproducer->trace->count) && put_script(&w, out);
    plan_free(&made);
    if (!is_put) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a script");
    }
    return fflush(out) || ferror(out)
               ? gmd_fail(error, GMD_FAILED, "%s: cannot be written", reproducer->name)
               : GMD_OK;
}
