/* A case as a C program: a comment, the parts of program.c.in that it needs, and its requests. */
#define _GNU_SOURCE /* asprintf */
#include "c_steps.h"
#include "checks.h"
#include "fragments.h"

#include "program.c.in.h"

#include "gmd_min.h"

#include <inttypes.h>
#include <string.h>

enum { LINE_MOST = 100, MOST_BEHIND_NAMES = 12, NAME_MOST = 43 /* in the first line */ };

/* --- the comment ------------------------------------------------------------------------- */

/* What cannot be seen from outside, or not by everybody. */
static const struct {
    const char *oracle, *hint;
} hints[] = {
    {"api_misuse",
     "On a real device a call that the API forbids shows in `compute-sanitizer --tool memcheck "
     "./PROGRAM`; the program sees it on gmd's simulated device."},
    {"determinism", "Look at the answers: run it twice and compare what it prints."},
    {"misuse",
     "The program does not make the wrong free that the message names: it comes after the last "
     "request, and nothing of what the allocator says of itself may change with it."},
    {"private_pool",
     "Look at the answers: the program does not follow which memory belongs to which pool."},
    {"reference", "Look at the answers: PyTorch's algorithm gives those that the message names."},
    {"snapshot", "Look at the allocator's own list of its segments and blocks at the end."},
    {"leak",
     "Events, streams, handles and address ranges that are left are not counted: check them in "
     "the allocator. Other processes have memory of a real device, too: what it has lost is "
     "printed and no verdict, unless the allocator's statistics say so."},
};

static const char *hint_for(const gmd_reproducer *r)
{
    for (size_t i = 0; r->verdict && i < sizeof hints / sizeof *hints; i++) {
        if (checks_oracle(r, hints[i].oracle)) {
            return hints[i].hint;
        }
    }
    return NULL;
}

static void put_how_to_build(const gmd_reproducer *r, FILE *out)
{
    size_t stem = strlen(r->name);
    char *text = NULL;
    stem -= stem > 2 && strcmp(r->name + stem - 2, ".c") == 0 ? 2 : 0;
    if (asprintf(&text,
                 "Build: cc %s FOLDER/ALLOCATOR.so -I$CUDA/include -L$CUDA/lib64 -lcudart -o %.*s",
                 r->name, (int)stem, r->name) >= 0) {
        put_wrapped(text, " * ", out);
        free(text);
    }
    fprintf(
        out,
        " * or, for gmd's simulated device, with -I$GMD/include/gmd/cuda -L$GMD/lib/gmd/sim\n"
        " * -l:libcudart.so.13 -lgmd_sim; both folders of libraries in LD_LIBRARY_PATH.\n"
        " * Exit status: 0 nothing shown, 1 shown, 2 it could not run; a crash shows it, too.\n");
    if (needs_simulator(r->trace)) {
        put_wrapped("Calls of the device fail on purpose here: this needs the simulated device.",
                    " * ", out);
    }
    if (r->trace->conditions.schedule.kind >= GMD_SCHEDULE_SEEDED) {
        put_wrapped("The case was found with another order of the device's work, drawn at random, "
                    "which a real device cannot be told to keep: it may take several runs.",
                    " * ", out);
    }
    const char *hint = hint_for(r);
    if (hint) {
        put_wrapped(hint, " * ", out);
    }
}

static void put_comment(const gmd_reproducer *r, FILE *out)
{
    fprintf(out, "/* ");
    put_comment_text(r->name, out);
    fprintf(out, strlen(r->name) > NAME_MOST ? " - shows a defect\n * " : " - shows a defect ");
    fprintf(out, "of a GPU memory allocator, by itself.\n");
    put_findings(r, " * ", out);
    put_how_to_build(r, out);
    fprintf(out, " */\n");
}

/* --- what the program is made of --------------------------------------------------------- */

/* The names of the allocator's two functions, where its SPEC gives them. */
typedef struct function_names {
    char malloc[64], free[64];
} function_names;

static function_names functions_of(const char *spec)
{
    function_names f = {"gmd_malloc", "gmd_free"};
    const char *end = spec ? strstr(spec, ".so:") : NULL;
    const char *comma = end ? strchr(end, ',') : NULL;
    if (comma && comma - (end + 4) < (ptrdiff_t)sizeof f.malloc &&
        strlen(comma + 1) < sizeof f.free) {
        snprintf(f.malloc, sizeof f.malloc, "%.*s", (int)(comma - (end + 4)), end + 4);
        snprintf(f.free, sizeof f.free, "%s", comma + 1);
    }
    return f;
}

/* "a, b, c", of all blocks or streams. Behind `start` in lines that fit; "": in one line. */
static char *join_names(const c_writer *w, bool of_streams, const char *quote, const char *between,
                        const char *start)
{
    char *text = NULL, name[80];
    size_t column = strlen(start);
    size_t size, count = of_streams ? (size_t)w->plan->device_count * w->plan->stream_count
                                    : w->plan->allocation_count;
    const char *before = "";
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; out && i < count; i++) {
        if (!of_streams) {
            c_block_name(w, (uint32_t)i, name);
        } else if (w->plan->has_stream[i]) {
            c_stream_name(w, (uint8_t)(i / w->plan->stream_count),
                          (uint32_t)(i % w->plan->stream_count), name);
        } else {
            continue;
        }
        size_t width = strlen(before) + strlen(name) + 2 * strlen(quote);
        bool is_broken = *start && *before && column + width > LINE_MOST - MOST_BEHIND_NAMES;
        fprintf(out, "%s%s%s%s", is_broken ? ",\n    " : before, quote, name, quote);
        column = is_broken ? width + 4 : column + width;
        before = between;
    }
    if (out && !*before) {
        fprintf(out, "%snone%s", quote, quote);
    }
    return out && fclose(out) == 0 ? text : NULL;
}

/* Whether the program must know the limit itself. */
static bool has_limits(const c_writer *w)
{
    const gmd_reproducer *r = w->reproducer;
    return checks_oracle(r, "peak_bound") || checks_has(r, "cache_kept") ||
           (checks_has(r, "all_free") && plan_has(w->plan, STEP_FRACTION));
}

enum { SEGMENT_BYTES = 32 << 20 }; /* more than allocators take of the device for a small request */

/* Whether the requests may come near to filling the device, even if nothing is freed. */
static bool may_fill(const plan *p, uint64_t capacity)
{
    uint64_t left = capacity / 2;
    for (size_t i = 0; i < p->step_count; i++) {
        const step *s = &p->steps[i];
        if (s->kind == STEP_ALLOC) {
            if (left < SEGMENT_BYTES || s->bytes > left - SEGMENT_BYTES) {
                return true;
            }
            left -= SEGMENT_BYTES + s->bytes;
        }
    }
    return false;
}

/* The case's capacity, where it matters that a real device may have more; else 0. The simulated
 * device has that capacity. */
static uint64_t smaller_capacity(const c_writer *w)
{
    const gmd_trace *t = w->reproducer->trace;
    uint64_t capacity = t->conditions.capacity_bytes;
    bool has_conf = t->conditions.conf && *t->conditions.conf; /* may name parts of the capacity */
    bool matters = has_conf || has_limits(w) || plan_has(w->plan, STEP_FRACTION) ||
                   may_fill(w->plan, capacity);
    return matters && !needs_simulator(t) ? capacity : 0;
}

static bool moves_limit(const c_writer *w)
{
    return has_limits(w) || plan_has(w->plan, STEP_FRACTION);
}

/* Whether what the allocator holds of the device is looked at. */
static bool uses_held_bytes(const c_writer *w)
{
    const gmd_reproducer *r = w->reproducer;
    return checks_has(r, "leak_held") || checks_has(r, "handed") || checks_has(r, "limit_held") ||
           (checks_has(r, "all_free") && plan_has(w->plan, STEP_FRACTION));
}

static void choose_flags(const c_writer *w, fragment_choice *choice)
{
    const gmd_reproducer *r = w->reproducer;
    const gmd_trace *t = r->trace;
    checks_choose(r, choice);
    fragment_flag(choice, "devices", w->plan->device_count > 1);
    fragment_flag(choice, "captures", plan_has(w->plan, STEP_BEGIN_CAPTURE));
    fragment_flag(choice, "marks", c_marks_calls(w));
    fragment_flag(choice, "held",
                  t->conditions.schedule.kind != GMD_SCHEDULE_EAGER && w->plan->work_count);
    bool orders = c_checks(w, C_CHECK_ORDER), fills = c_checks(w, C_CHECK_FILLED);
    fragment_flag(choice, "order", orders);
    fragment_flag(choice, "filled", fills);
    fragment_flag(choice, "placed",
                  checks_oracle(r, "overlap") || checks_oracle(r, "alignment") ||
                      checks_oracle(r, "size") || checks_has(r, "backed_at_once") ||
                      (!plan_has(w->plan, STEP_BEGIN_CAPTURE) && (orders || fills)));
    fragment_flag(choice, "capacity", smaller_capacity(w) != 0);
    fragment_flag(choice, "limits", has_limits(w));
    fragment_flag(choice, "fractions", moves_limit(w));
    fragment_flag(choice, "new_limits", plan_has(w->plan, STEP_FRACTION));
    fragment_flag(choice, "spoils", plan_has(w->plan, STEP_SPOIL));
    fragment_flag(choice, "joins", plan_has(w->plan, STEP_JOIN));
    fragment_flag(choice, "before_calls", c_checks(w, C_CHECK_BEFORE));
    fragment_flag(choice, "ends", orders || plan_has(w->plan, STEP_FINISH));
    fragment_flag(choice, "calls", c_checks(w, C_CHECK_AFTER));
    fragment_flag(choice, "live_bytes",
                  checks_has(r, "live_allocated") || checks_has(r, "live_requested") ||
                      checks_has(r, "requested_live"));
    fragment_flag(choice, "live_count", checks_has(r, "count_live"));
}

typedef struct numbers {
    char devices[16], streams[16], uses[16], works[16], graphs[16], capacity[24];
} numbers;

static void choose_numbers(const c_writer *w, numbers *n, fragment_choice *choice)
{
    const plan *p = w->plan;
    const struct {
        const char *key;
        char *text;
        size_t size;
        uint64_t value;
    } rows[] = {
        {"DEVICES", n->devices, sizeof n->devices, p->device_count},
        {"STREAM_COUNT", n->streams, sizeof n->streams, p->stream_count},
        {"USES", n->uses, sizeof n->uses, p->work_count ? p->work_count : 1},
        {"WORKS", n->works, sizeof n->works, p->graph_work_count ? p->graph_work_count : 1},
        {"GRAPHS", n->graphs, sizeof n->graphs, p->graph_count ? p->graph_count : 1},
        {"CAPACITY", n->capacity, sizeof n->capacity,
         w->reproducer->trace->conditions.capacity_bytes},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(rows[i].text, rows[i].size, "%" PRIu64, rows[i].value);
        fragment_key(choice, rows[i].key, rows[i].text);
    }
}

/* What stands for the device: with one there is nothing to choose. */
static void choose_devices(const c_writer *w, fragment_choice *choice)
{
    static const struct {
        const char *key, *many, *one;
    } rows[] = {
        {"DEVICE", "device", "0"},
        {"DEVICE_ITEM", "device, ", ""},
        {"A_DEVICE", "device %d", "the device"},
        {"AND_OWN_DEVICE", ", own->device", ""},
        {"DEVICE_ARGUMENT", "device", ""},
        {"AND_DEVICE_ARGUMENT", ", device", ""},
        {"DEVICE_PARAMETERS", "int device", "void"},
        {"DEVICE_PARAMETER", "int device, ", ""},
        {"AND_DEVICE", ", int device", ""},
        {"PER_DEVICE", "[DEVICES]", ""},
        {"OF_DEVICE", "[device]", ""},
        {"IS_ON_DEVICE", " && blocks[i].device == device", ""},
        {"OF_BLOCK", "blocks[block].device", ""},
        {"OF_BLOCKS_DEVICE", "[blocks[block].device]", ""},
        {"OWN_DEVICE", "own->device", "0"},
        {"OF_OWN_BLOCK", "own->device", ""},
        {"OF_OWN", "[own->device]", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool is_many = w->plan->device_count > 1;
        fragment_key(choice, rows[i].key, is_many ? rows[i].many : rows[i].one);
    }
}

/* The line at `line`: how long it is, and how much of that comes before a tab. */
static size_t line_length(const char *line, size_t *statement)
{
    size_t length = strcspn(line, "\n");
    *statement = strcspn(line, "\t");
    *statement = gmd_min(*statement, length);
    return length;
}

/* How many lines from `lines` on have their comments in one column, and which. */
static size_t aligned_lines(const char *lines, size_t *column)
{
    size_t count = 0, comment = 0, statement;
    *column = 0;
    for (size_t length; *lines; lines += length + 1, count++) {
        length = line_length(lines, &statement);
        size_t width = gmd_max(statement, *column), own = length - statement - 1;
        own = statement < length && own < comment ? comment : own;
        if (statement == length || (count > 0 && width + 1 + own > LINE_MOST)) {
            break;
        }
        *column = width;
        comment = own;
    }
    return count;
}

/* Comments behind statements, after a tab, come below each other, as clang-format has them. */
static void put_aligned(const char *text, FILE *out)
{
    size_t column, statement;
    while (*text) {
        size_t count = aligned_lines(text, &column);
        for (; count > 0; count--) {
            size_t length = line_length(text, &statement);
            fprintf(out, "%-*.*s %.*s\n", (int)column, (int)statement, text,
                    (int)(length - statement - 1), text + statement + 1);
            text += length + 1;
        }
        size_t length = line_length(text, &statement);
        if (*text && statement == length) {
            fprintf(out, "%.*s\n", (int)length, text);
            text += length + (text[length] == '\n');
        }
    }
}

/* The parts that `body` needs. False: no host memory. */
static bool put_parts(const c_writer *w, const char *body, FILE *out)
{
    const char *spec = w->reproducer->allocator;
    bool is_pytorchs = spec && (strcmp(spec, "torch") == 0 || strcmp(spec, "reference") == 0);
    fragment_choice choice = {.flag_count = 0};
    numbers n;
    function_names functions = functions_of(spec);
    char *blocks = join_names(w, false, "", ", ", "enum { ");
    char *names = join_names(w, false, "\"", ", ", "static const char *const names[] = {");
    char *streams = join_names(w, true, "", ", ", "static cudaStream_t ");
    char *stream_names = join_names(w, true, "", " ", "");
    choose_flags(w, &choice);
    choose_numbers(w, &n, &choice);
    choose_devices(w, &choice);
    fragment_key(&choice, "BEFORE", c_before(w));
    fragment_key(&choice, "AFTER", c_after(w));
    fragment_key(&choice, "MALLOC", functions.malloc);
    fragment_key(&choice, "FREE", functions.free);
    fragment_key(&choice, "ALIGNMENT", is_pytorchs ? "512" : "256");
    fragment_key(&choice, "BLOCKS", blocks);
    fragment_key(&choice, "NAMES", names);
    fragment_key(&choice, "STREAMS", streams);
    fragment_key(&choice, "STREAM_NAMES", stream_names);
    char *parts = NULL;
    size_t size;
    FILE *memory = open_memstream(&parts, &size);
    bool is_put = blocks && names && streams && stream_names && memory &&
                  fragments_write(program_text, "//", &choice, body, memory);
    if (memory && fclose(memory) == 0) {
        put_aligned(parts, out);
    }
    free(parts);
    free(blocks);
    free(names);
    free(streams);
    free(stream_names);
    return is_put;
}

/* --- main() before the requests ---------------------------------------------------------- */

/* What the simulated device reads, and a real one does not. */
static void put_environment(const c_writer *w)
{
    const gmd_trace *t = w->reproducer->trace;
    bool is_backed = c_checks(w, C_CHECK_CONTENT);
    fprintf(w->out,
            "    setenv(\"GMD_SIM_SCHEDULE\", \"%s\", 0); /* of gmd's simulated device */\n",
            t->conditions.schedule.kind == GMD_SCHEDULE_EAGER ? "eager" : "lazy");
    if (t->conditions.capacity_bytes) {
        fprintf(w->out, "    setenv(\"GMD_SIM_CAPACITY\", \"%" PRIu64 "\", 0);\n",
                t->conditions.capacity_bytes);
    }
    if (w->plan->device_count > 1) {
        fprintf(w->out, "    setenv(\"GMD_SIM_DEVICES\", \"%" PRIu32 "\", 0);\n",
                w->plan->device_count);
    }
    fputs(is_backed ? "    setenv(\"GMD_SIM_BACKED\", \"1\", 0);\n" : "", w->out);
}

static void put_settings(const c_writer *w)
{
    const char *conf = w->reproducer->trace->conditions.conf;
    if (!conf || !*conf) {
        return;
    }
    fprintf(w->out,
            "    char message[400] = \"it has no gmd_configure\";\n    const char *conf = ");
    put_c_string(conf, w->out);
    fprintf(w->out, ";\n    setenv(\"PYTORCH_CUDA_ALLOC_CONF\", conf, 1);\n"
                    "    NEED(gmd_configure && gmd_configure(conf, message, sizeof message) == 0,\n"
                    "         \"the settings: %%s\\n\", message);\n");
}

static void put_streams(const c_writer *w)
{
    const plan *p = w->plan;
    bool is_many = p->device_count > 1;
    char name[80];
    for (size_t i = (size_t)p->device_count * p->stream_count; i-- > 0;) {
        uint8_t device = (uint8_t)(i / p->stream_count);
        if (p->has_stream[i]) {
            c_stream_name(w, device, (uint32_t)(i % p->stream_count), name);
            fprintf(w->out,
                    is_many ? "    make_stream(&%s, %u);\n"
                            : "    CUDA(cudaStreamCreateWithFlags(&%s, "
                              "cudaStreamNonBlocking));\n",
                    name, device);
        }
    }
}

/* What is known of a device, and its limit, before the requests. `at`: behind what there is of each
 * device; `device`: as an argument. */
static void put_start_of(const c_writer *w, const char *at, const char *device, FILE *out)
{
    const gmd_reproducer *r = w->reproducer;
    const char *comma = *device ? ", " : "";
    uint64_t capacity = smaller_capacity(w);
    bool is_limited = capacity || plan_has(w->plan, STEP_FRACTION); /* to less than the device */
    bool needs_size = has_limits(w) || (moves_limit(w) && capacity);
    if (uses_held_bytes(w) || (needs_size && *device)) {
        fprintf(out, "taken%s = held_bytes(%s);\n", at, device);
    } else if (needs_size) {
        fprintf(out, "size_t left;\nCUDA(cudaMemGetInfo(&left, &%s));\n",
                is_limited ? "device_bytes" : "limit");
    }
    if (has_limits(w) && (is_limited || uses_held_bytes(w) || *device)) {
        fprintf(out, "limit%s = device_bytes%s;\n", at, at);
    }
    if (capacity && moves_limit(w)) {
        fprintf(out, "if (device_bytes%s > capacity) {\n    limit_memory(1%s%s);\n}\n", at, comma,
                device);
    } else if (capacity) {
        fprintf(out, "shrink_device(%s%s%" PRIu64 ");\n", device, comma, capacity);
    }
    if (checks_has(r, "leak_reserved") || checks_has(r, "handed")) {
        fprintf(out,
                "size_t reserved = read_stats(%s).reserved_bytes;\n"
                "reserved_at_start%s = reserved == UNKNOWN ? 0 : reserved;\n",
                device, at);
    }
}

/* False: no host memory. */
static bool put_start(const c_writer *w)
{
    char *statements = NULL;
    size_t size;
    bool is_many = w->plan->device_count > 1;
    FILE *out = open_memstream(&statements, &size);
    if (!out) {
        return false;
    }
    put_start_of(w, is_many ? "[device]" : "", is_many ? "device" : "", out);
    bool is_put = fclose(out) == 0;
    if (is_put && *statements && is_many) {
        fprintf(w->out, "    for (int device = 0; device < DEVICES; device++) {\n");
        c_put_indented(statements, "        ", w->out);
        fprintf(w->out, "    }\n");
    } else if (is_put) {
        c_put_indented(statements, "    ", w->out);
    }
    free(statements);
    return is_put;
}

/* False: no host memory. */
static bool put_main(const c_writer *w)
{
    const gmd_reproducer *r = w->reproducer;
    fprintf(w->out, "\nint main(void)\n{\n");
    put_environment(w);
    fprintf(w->out, "    setbuf(stdout, NULL);\n");
    fprintf(w->out, "    NEED(!cudaDeviceSynchronize(), \"there is no device\\n\");\n");
    if (needs_simulator(r->trace)) {
        fprintf(w->out, "    NEED(%s, \"this needs gmd's simulated device\\n\");\n",
                plan_has(w->plan, STEP_FAULT) ? "gmd_sim_fault" : "gmd_sim_budget");
    }
    if (c_marks_calls(w)) {
        fprintf(w->out, "    gmd_sim_harness(true);\n");
    }
    put_settings(w);
    fprintf(w->out, "    if (gmd_init) {\n        gmd_init(%" PRIu32 ");\n    }\n",
            w->plan->device_count);
    put_streams(w);
    bool is_put = put_start(w);
    if (checks_oracle(r, "progress")) {
        fprintf(w->out,
                "    signal(SIGABRT, on_signal);\n    signal(SIGALRM, on_signal);\n"
                "    signal(SIGSEGV, on_signal);\n    alarm(%" PRIu32 ");\n",
                10 + w->plan->work_count / 5);
    }
    fprintf(w->out, "\n");
    c_put_requests(w);
    return is_put;
}

/* --- the program ------------------------------------------------------------------------- */

bool gmd_reproducer_fits_c(const gmd_reproducer *reproducer, char *reason, size_t size)
{
    const gmd_trace *t = reproducer->trace;
    if (t->threads.count > 1 && t->conditions.interleave.kind != GMD_SCHEDULE_UNSTATED) {
        snprintf(
            reason, size,
            "its threads change between CUDA calls, in an order that only gmd makes them keep");
        return false;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (gmd_op_needs(t->requests[i].op, GMD_NEEDS_CHECKPOINTS)) {
            snprintf(reason, size, "it brings a private pool back to a checkpoint");
            return false;
        }
        if (gmd_op_has(t->requests[i].op, GMD_FIELD_POOL_OPTIONS) && t->requests[i].pool_options) {
            snprintf(reason, size, "it makes a private pool with options");
            return false;
        }
    }
    return true;
}

/* False: no host memory. */
static bool put_program(c_writer *w, FILE *out)
{
    char *body = NULL;
    size_t size;
    w->out = open_memstream(&body, &size);
    if (!w->out) {
        return false;
    }
    c_put_threads(w);
    bool is_put = put_main(w);
    is_put = fclose(w->out) == 0 && is_put;
    if (is_put) {
        put_comment(w->reproducer, out);
        fputs("#include <cuda_runtime_api.h>\n", out);
        is_put = put_parts(w, body, out);
        put_aligned(body, out);
    }
    free(body);
    return is_put;
}

gmd_status gmd_reproducer_write_c(const gmd_reproducer *reproducer, FILE *out, gmd_error *error)
{
    char reason[200];
    if (!gmd_reproducer_fits_c(reproducer, reason, sizeof reason)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: no C program: %s", reproducer->name, reason);
    }
    const gmd_trace *t = reproducer->trace;
    plan whole = {0}, refusal = {0};
    size_t last = plan_last_alloc(t);
    bool questions = checks_oracle(reproducer, "oom_retry") && last < t->count;
    c_writer w = {reproducer, &whole, questions ? &refusal : NULL, NULL};
    bool is_put = plan_make(&whole, t, t->count) &&
                  (!questions || plan_make(&refusal, t, last + 1)) && put_program(&w, out);
    plan_free(&whole);
    plan_free(&refusal);
    if (!is_put) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a program");
    }
    return fflush(out) || ferror(out)
               ? gmd_fail(error, GMD_FAILED, "%s: cannot be written", reproducer->name)
               : GMD_OK;
}
