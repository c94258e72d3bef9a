/* A case as a C program: its requests as a table, and program.c.in, which carries them out. */
#include "reproducer.h"

#include "gmd_pool_book.h"

#include "program.c.in.h"

#include <inttypes.h>
#include <string.h>

/* --- the comment ------------------------------------------------------------------------- */

/* What cannot be seen from outside, or not by everybody. */
static const struct {
    const char *oracle, *hint;
} hints[] = {
    {"api_misuse",
     "On a real device a call that the API forbids shows in `compute-sanitizer\n"
     " * --tool memcheck ./PROGRAM ...`; the program sees it on gmd's simulated device."},
    {"determinism", "Look at the answers: run it twice and compare what it prints."},
    {"misuse",
     "The program does not make the wrong free that the message names: it comes after the\n"
     " * last request, and nothing of what the allocator says of itself may change with it."},
    {"private_pool",
     "Look at the answers: the program does not follow which memory belongs to which pool."},
    {"reference", "Look at the answers: PyTorch's algorithm gives those that the message names."},
    {"snapshot", "Look at the allocator's own list of its segments and blocks at the end."},
    {"leak",
     "Events, streams, handles and address ranges that are left are not counted here: look\n"
     " * at them in the allocator. Lost memory of a real device is told and no verdict, because\n"
     " * other processes have memory of it, too, unless the allocator's statistics say so."},
};

static const char *hint_for(const char *oracle)
{
    for (size_t i = 0; oracle && i < sizeof hints / sizeof *hints; i++) {
        if (strcmp(hints[i].oracle, oracle) == 0) {
            return hints[i].hint;
        }
    }
    return NULL;
}

static bool needs_simulator(const gmd_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->requests[i].op == GMD_OP_FAULT || trace->requests[i].op == GMD_OP_BUDGET) {
            return true;
        }
    }
    return false;
}

static void put_how_to_run(const gmd_reproducer *r, FILE *out)
{
    size_t stem = strlen(r->name);
    stem -= stem > 2 && strcmp(r->name + stem - 2, ".c") == 0 ? 2 : 0;
    fprintf(
        out,
        " * Build:  cc %s -o %.*s -ldl -lpthread\n"
        " * Run:    ./%.*s PATH/TO/ALLOCATOR.so[:MALLOC,FREE]\n"
        " *         LD_LIBRARY_PATH=PREFIX/lib/gmd/sim ./%.*s ...      on gmd's simulated device\n"
        " * Exit status: 0 nothing shown, 1 shown, 2 it could not run.\n",
        r->name, (int)stem, r->name, (int)stem, r->name, (int)stem, r->name);
    if (needs_simulator(r->trace)) {
        fprintf(out,
                " * Calls of the device fail on purpose here: this needs the simulated device.\n");
    }
    if (r->trace->schedule.kind >= GMD_SCHEDULE_SEEDED) {
        fprintf(out,
                " * The case was found with another order of the device's work, drawn at random,\n"
                " * which a real device cannot be told to keep: it may take several runs.\n");
    }
    const char *hint = hint_for(r->oracle);
    if (hint) {
        fprintf(out, " * %s\n", hint);
    }
}

static gmd_status put_comment(const gmd_reproducer *r, FILE *out, gmd_error *error)
{
    fprintf(out, "/* ");
    put_comment_text(r->name, out);
    fprintf(out, " - shows a defect of a GPU memory allocator, by itself.\n *\n");
    if (r->oracle) {
        fprintf(out, " * %s: ", r->oracle);
        put_comment_text(r->message, out);
        fprintf(out, "\n");
    }
    if (r->allocator || r->origin) {
        fprintf(out, " * ");
        put_comment_text(r->origin ? r->origin : "", out);
        if (r->allocator) {
            fprintf(out, "%sallocator: ", r->origin ? "; " : "");
            put_comment_text(r->allocator, out);
        }
        fprintf(out, "\n");
    }
    fprintf(out, " *\n");
    put_how_to_run(r, out);
    fprintf(out, " *\n * The case, as gmd runs it (gmd run CASE.gmd):\n");
    gmd_status status = put_case_lines(r->trace, " *     ", out, error);
    fprintf(out, " */\n");
    return status;
}

/* --- the requests ------------------------------------------------------------------------ */

static const char *const op_names[GMD_OP_COUNT] = {
    [GMD_OP_ALLOC] = "ALLOC",
    [GMD_OP_FREE] = "FREE",
    [GMD_OP_USE] = "USE",
    [GMD_OP_RECORD] = "RECORD",
    [GMD_OP_WAIT] = "WAIT",
    [GMD_OP_SYNC] = "SYNC",
    [GMD_OP_ADVANCE] = "ADVANCE",
    [GMD_OP_FRACTION] = "FRACTION",
    [GMD_OP_FAULT] = "FAULT",
    [GMD_OP_DEVICE] = "DEVICE",
    [GMD_OP_DESTROY] = "DESTROY",
    [GMD_OP_BUDGET] = "BUDGET",
    [GMD_OP_EMPTY_CACHE] = "EMPTY_CACHE",
    [GMD_OP_BEGIN_POOL] = "BEGIN_POOL",
    [GMD_OP_END_POOL] = "END_POOL",
    [GMD_OP_RELEASE_POOL] = "RELEASE_POOL",
    [GMD_OP_BEGIN_CAPTURE] = "BEGIN_CAPTURE",
    [GMD_OP_END_CAPTURE] = "END_CAPTURE",
    [GMD_OP_LAUNCH] = "LAUNCH",
};

static void put_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(out, "\\%c", *c);
        } else if ((unsigned char)*c < ' ' || *c == '?') {
            fprintf(out, "\\%03o", (unsigned char)*c);
        } else {
            fputc(*c, out);
        }
    }
    fputc('"', out);
}

static void put_fault(const gmd_trace *trace, const gmd_request *r, FILE *out)
{
    fprintf(out, ", .function = ");
    put_string(trace->functions.items[r->function], out);
    fprintf(out, ", .nth = %" PRIu32 ", .error = %" PRIu32 "%s", r->count, r->error,
            r->every_later ? ", .every_later = 1" : "");
}

static void put_stream(uint32_t stream, FILE *out)
{
    if (stream == GMD_ALL_STREAMS) {
        fprintf(out, ", .stream = ALL_STREAMS");
    } else if (stream) {
        fprintf(out, ", .stream = %" PRIu32, stream);
    }
}

static void put_operands(const gmd_trace *trace, const gmd_request *r, FILE *out)
{
    bool is_of_block = r->op <= GMD_OP_RECORD;
    if (is_of_block) {
        fprintf(out, ", .block = %" PRIu32, r->block);
    }
    if (r->op == GMD_OP_ALLOC || r->op == GMD_OP_BUDGET) {
        fprintf(out, ", .bytes = UINT64_C(%" PRIu64 ")", r->bytes);
    }
    bool means_all = r->op == GMD_OP_SYNC || r->op == GMD_OP_BEGIN_POOL;
    if (means_all || gmd_request_names_stream(r)) {
        put_stream(r->stream, out);
    }
    if (r->op == GMD_OP_ALLOC && r->expect != GMD_EXPECT_ANY) {
        fprintf(out, ", .expect = %s", r->expect == GMD_EXPECT_OOM ? "EXPECT_OOM" : "EXPECT_ALLOC");
    } else if (r->op == GMD_OP_WAIT) {
        fprintf(out, ", .other = %" PRIu32, r->other_stream);
    } else if (r->op == GMD_OP_USE || r->op == GMD_OP_ADVANCE) {
        fprintf(out, ", .ns = UINT64_C(%" PRIu64 ")", r->duration_ns);
    } else if (r->op == GMD_OP_FRACTION) {
        fprintf(out, ", .fraction = %.17g", r->fraction);
    } else if (gmd_op_is_on_pool(r->op)) {
        fprintf(out, ", .pool = %" PRIu32, r->pool);
    } else if (r->op == GMD_OP_FAULT) {
        put_fault(trace, r, out);
    }
}

static void put_request(const gmd_trace *trace, const gmd_request *r, FILE *out)
{
    char text[512];
    fprintf(out, "    {.op = %s", op_names[r->op]);
    put_operands(trace, r, out);
    if (r->device) {
        fprintf(out, ", .device = %u", r->device);
    }
    if (r->thread) {
        fprintf(out, ", .thread = %u", r->thread);
    }
    fprintf(out, ",\n     .text = ");
    put_string(gmd_request_text(trace, r, text, sizeof text), out);
    fprintf(out, "},\n");
}

/* --- the parameters ---------------------------------------------------------------------- */

typedef struct extent {
    uint32_t devices, uses;
} extent;

static extent extent_of(const gmd_trace *trace)
{
    extent e = {.devices = trace->device_count ? trace->device_count : 1};
    for (size_t i = 0; i < trace->count; i++) {
        uint32_t devices = trace->requests[i].device + UINT32_C(1);
        e.devices = devices > e.devices ? devices : e.devices;
        e.uses += trace->requests[i].op == GMD_OP_USE;
    }
    return e;
}

/* The names of the allocator's two functions, where its SPEC gives them. */
static void put_function_names(const char *spec, FILE *out)
{
    const char *end = spec ? strstr(spec, ".so:") : NULL;
    const char *names = end ? end + 4 : "gmd_malloc,gmd_free";
    size_t first = strcspn(names, ",");
    fprintf(out, "#define MALLOC_NAME \"%.*s\"\n#define FREE_NAME \"%s\"\n", (int)first, names,
            names[first] ? names + first + 1 : "gmd_free");
}

static const char *schedule_name(const gmd_trace *trace)
{
    return trace->schedule.kind == GMD_SCHEDULE_EAGER  ? "EAGER"
           : trace->schedule.kind == GMD_SCHEDULE_LAZY ? "LAZY"
                                                       : "TIMED";
}

static void put_parameters(const gmd_reproducer *r, FILE *out)
{
    const gmd_trace *t = r->trace;
    extent e = extent_of(t);
    fprintf(out, "\n/* --- the case */\n\n#define ORACLE ");
    put_string(r->oracle ? r->oracle : "", out);
    fprintf(out, "\n#define CONF ");
    put_string(t->conf ? t->conf : "", out);
    fprintf(out, "\n#define CAPACITY UINT64_C(%" PRIu64 ") /* of each device; 0: as it is */\n",
            t->capacity_bytes);
    put_function_names(r->allocator, out);
    bool is_pytorchs = r->allocator && (strcmp(r->allocator, "torch") == 0 ||
                                        strcmp(r->allocator, "reference") == 0);
    fprintf(out, "#define ALIGNMENT %d /* bytes that it promises */\n", is_pytorchs ? 512 : 256);
    fprintf(out,
            "\nenum { DEVICE_COUNT = %" PRIu32 ", STREAM_COUNT = %" PRIu32
            ", BLOCK_COUNT = %" PRIu32 ", THREAD_COUNT = %" PRIu32 ", POOL_COUNT = %" PRIu32
            ",\n       USE_COUNT = %" PRIu32 ", REQUEST_COUNT = %zu, ALL_STREAMS = -1 };\n"
            "enum { TIMED, EAGER, LAZY, SCHEDULE = %s }; /* when queued work completes */\n",
            e.devices, t->streams.count ? t->streams.count : 1, t->blocks.count,
            t->threads.count ? t->threads.count : 1, t->pools.count ? t->pools.count : 1, e.uses,
            t->count, schedule_name(t));
}

static const char includes[] = "#define _GNU_SOURCE\n"
                               "#include <dlfcn.h>\n#include <pthread.h>\n#include <signal.h>\n"
                               "#include <stdarg.h>\n#include <stdatomic.h>\n#include <stdbool.h>\n"
                               "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
                               "#include <string.h>\n#include <time.h>\n#include <unistd.h>\n";

static const char request_type[] =
    "\nenum { EXPECT_ANY, EXPECT_ALLOC, EXPECT_OOM };\n"
    "enum op {\n"
    "    ALLOC, FREE, USE, RECORD, WAIT, SYNC, ADVANCE, EMPTY_CACHE, FRACTION, DEVICE, DESTROY,\n"
    "    BEGIN_POOL, END_POOL, RELEASE_POOL, BEGIN_CAPTURE, END_CAPTURE, LAUNCH, FAULT, BUDGET\n"
    "};\n\n"
    "struct request {\n"
    "    enum op op;\n"
    "    int thread, device, block, stream, other, pool, expect;\n"
    "    uint64_t bytes, ns;\n"
    "    double fraction;\n"
    "    const char *function;\n"
    "    int nth, every_later, error;\n"
    "    const char *text;\n"
    "};\n\n"
    "static const struct request requests[REQUEST_COUNT + 1] = {\n";

bool gmd_reproducer_fits_c(const gmd_reproducer *reproducer, char *reason, size_t size)
{
    const gmd_trace *t = reproducer->trace;
    if (t->threads.count > 1 && t->interleave.kind != GMD_SCHEDULE_UNSTATED) {
        snprintf(
            reason, size,
            "its threads change between CUDA calls, in an order that only gmd makes them keep");
        return false;
    }
    return true;
}

gmd_status gmd_reproducer_write_c(const gmd_reproducer *reproducer, FILE *out, gmd_error *error)
{
    char reason[200];
    if (!gmd_reproducer_fits_c(reproducer, reason, sizeof reason)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: no C program: %s", reproducer->name, reason);
    }
    const gmd_trace *t = reproducer->trace;
    gmd_status status = put_comment(reproducer, out, error);
    if (status != GMD_OK) {
        return status;
    }
    fputs(includes, out);
    put_parameters(reproducer, out);
    fputs(request_type, out);
    for (size_t i = 0; i < t->count; i++) {
        put_request(t, &t->requests[i], out);
    }
    fprintf(out, "    {.text = \"\"},\n};\n\n%s", program_text);
    return fflush(out) || ferror(out)
               ? gmd_fail(error, GMD_FAILED, "%s: cannot be written", reproducer->name)
               : GMD_OK;
}
