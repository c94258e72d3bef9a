#define _GNU_SOURCE
#include "report.h"

#include "patterns.h"

#include "gmd_demangle.h"
#include "gmd_grow.h"
#include "gmd_json.h"
#include "gmd_size.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STACK_TEXT = 16384, SHOWN_FRAMES = 12 };

/* Findings with the same cause. */
typedef enum cause_kind {
    CAUSE_LIFETIME, /* used after its free, in whatever way it was seen */
    CAUSE_PAST_END,
    CAUSE_BEFORE_START,
    CAUSE_UNINITIALISED,
    CAUSE_BAD_FREE,
    CAUSE_ACCESS, /* illegal, and no freed block is known for it */
} cause_kind;

typedef struct cause {
    cause_kind kind;
    uint32_t allocated_stack, other_stack;
    uint64_t address; /* where there is no stack; else 0 */
    unsigned evidence;
    uint64_t number, times; /* number 0: not reported yet */
} cause;

struct report {
    sanitizer_options options;
    stack_text_fn *stack_text;
    uint64_t count;
    cause *causes;
    uint32_t cause_count, cause_capacity;
    FILE *file;
    bool was_tried; /* to open the file */
    char latest[512];
    char stack[STACK_TEXT + 1];
};

static const struct {
    const char *name, *title;
} kinds[] = {
    [FINDING_WRITE_AFTER_FREE] = {"write_after_free", "write to memory that was freed"},
    [FINDING_WRITE_PAST_END] = {"write_past_end", "write past the end of a block"},
    [FINDING_WRITE_BEFORE_START] = {"write_before_start", "write before the start of a block"},
    [FINDING_UNINITIALISED_READ] = {"uninitialised_read", "read of memory that nobody wrote"},
    [FINDING_READ_AFTER_FREE] = {"read_after_free", "read of memory that was freed"},
    [FINDING_BAD_FREE] = {"bad_free", "free of memory that is no live block"},
    [FINDING_FREED_EARLY] = {"freed_early", "free while another stream may still use the memory"},
    [FINDING_REUSED_EARLY] = {"reused_early",
                              "use of memory that another stream may still use for its last owner"},
    [FINDING_USED_AFTER_FREE] = {"used_after_free", "work with memory that was freed before"},
    [FINDING_ILLEGAL_ACCESS] = {"illegal_access", "access to memory that is not mapped"},
};

static const char *const moments[] = {
    [MOMENT_FREE] = "free", [MOMENT_REUSE] = "reuse",   [MOMENT_CHECK] = "check",
    [MOMENT_READ] = "read", [MOMENT_QUEUED] = "queued", [MOMENT_FAULT] = "fault"};

static const char *const suspicions[] = {[SUSPECT_NONE] = "nothing",
                                         [SUSPECT_PARAMETER] = "address",
                                         [SUSPECT_BOUNDS] = "bounds",
                                         [SUSPECT_LATEST] = "latest_free"};

report *report_create(const sanitizer_options *options, stack_text_fn *stack_text)
{
    report *r = calloc(1, sizeof *r);
    if (r) {
        r->options = *options;
        r->stack_text = stack_text;
    }
    return r;
}

void report_destroy(report *r)
{
    if (r && r->file) {
        fclose(r->file);
    }
    if (r) {
        free(r->causes);
    }
    free(r);
}

uint64_t report_count(const report *r)
{
    return r->count;
}

const char *report_latest(const report *r)
{
    return r->latest;
}

/* --- words -------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

static const char *stream_text(cudaStream_t stream, char text[40])
{
    uintptr_t handle = (uintptr_t)stream;
    snprintf(text, 40, handle <= 1 ? "the default stream" : "stream 0x%zx", (size_t)handle);
    return text;
}

/* FILE:LINE:FUNCTION of what started the program. */
static bool is_starter(const char *line, size_t length)
{
    static const char *const starters[] = {"<frozen runpy>:", "/gmd_torch.py:"};
    bool is = false;
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        is = is || memmem(line, length, starters[i], strlen(starters[i]));
    }
    return is;
}

static void say_stack(report *r, const char *title, uint32_t stack)
{
    size_t length = stack ? r->stack_text(stack, r->stack, STACK_TEXT) : 0;
    if (length == 0) {
        say("    %s: no Python frames (a thread of PyTorch's own, the autograd engine's say)\n",
            title);
        return;
    }
    say("    %s:\n", title);
    r->stack[length] = '\0';
    unsigned shown = 0;
    for (char *line = r->stack, *end; *line && shown < SHOWN_FRAMES; line = end) {
        end = strchrnul(line, '\n');
        if (!is_starter(line, (size_t)(end - line))) {
            say("      %.*s\n", (int)(end - line), line);
            shown++;
        }
        end += *end == '\n';
    }
}

static const char *ordinal_text(uint64_t count, const char *word, char text[64])
{
    snprintf(text, 64, "%llu %s%s", (unsigned long long)count, word, count == 1 ? "" : "s");
    return text;
}

/* Where the first changed byte lies, in words. */
static void place_text(const finding *f, char text[128])
{
    char count[64];
    uint64_t at = f->changed.first, end = f->block.address + f->block.size;
    if (at >= end) {
        snprintf(text, 128, "%s past the end", ordinal_text(at - end, "byte", count));
        if (at == end) {
            snprintf(text, 128, "right behind the end");
        }
    } else if (at < f->block.address) {
        snprintf(text, 128, "%s before the start",
                 ordinal_text(f->block.address - at, "byte", count));
    } else {
        snprintf(text, 128, "at offset %llu", (unsigned long long)(at - f->block.address));
    }
}

/* A pattern that was found tells who wrote: memory was copied that nobody had written. */
static void say_word(const finding *f)
{
    uint64_t word = f->changed.word;
    unsigned char bytes[8];
    float numbers[2];
    memcpy(bytes, &word, sizeof bytes);
    memcpy(numbers, &word, sizeof numbers);
    say("    found there: ");
    for (size_t i = 0; i < sizeof bytes; i++) {
        say("%02x ", bytes[i]);
    }
    const char *name = pattern_name(word);
    if (name) {
        say("(%s)\n", name);
    } else {
        say("(as float32: %g %g)\n", (double)numbers[0], (double)numbers[1]);
    }
}

/* CUDA does not tell which address it was. */
static void say_suspicion(const finding *f)
{
    switch (f->suspicion) {
    case SUSPECT_PARAMETER:
        say("    CUDA reports an illegal access. The work had the address of this block, which was "
            "freed before and whose\n"
            "    memory was taken away.\n");
        break;
    case SUSPECT_BOUNDS:
        say("    CUDA reports an illegal access. The work had the address of this block, which is "
            "live: it may have read or\n"
            "    written outside of it, or it found the address of a freed block in device "
            "memory.\n");
        break;
    case SUSPECT_LATEST:
        say("    CUDA reports an illegal access, maybe to this block, the last that was freed and "
            "whose memory was taken away.\n");
        break;
    case SUSPECT_NONE:
        say("    CUDA reports an illegal access. No block is known that it may have been meant "
            "for.\n");
        break;
    }
}

static void say_meaning(const finding *f)
{
    switch (f->kind) {
    case FINDING_WRITE_AFTER_FREE:
        say("    The program gave the block back, and something wrote to it later than all work "
            "that was queued on its\n"
            "    stream then%s: a kernel on another stream without record_stream, a view or a "
            "pointer\n"
            "    that outlives its tensor, a graph that is replayed into freed memory.\n",
            f->block.recorded_count ? " and on the recorded ones" : "");
        break;
    case FINDING_WRITE_PAST_END:
        say("    A kernel or a copy writes beyond the end of this tensor's memory.\n");
        break;
    case FINDING_WRITE_BEFORE_START:
        say("    A kernel or a copy writes in front of this tensor's memory.\n");
        break;
    case FINDING_UNINITIALISED_READ:
        say("    An operator computes with values that were never written: torch.empty is not "
            "torch.zeros.\n");
        break;
    case FINDING_READ_AFTER_FREE:
        say("    The operator got memory of a block that had been given back by the time that it "
            "ran: on another\n"
            "    stream without record_stream, by a pointer that outlives its tensor, or copied "
            "from such memory.\n");
        break;
    case FINDING_FREED_EARLY:
    case FINDING_REUSED_EARLY:
        say("    No event, wait or record_stream orders this work before what the memory's stream "
            "does next: record_stream,\n"
            "    or a wait of that stream before the free, is missing.\n");
        break;
    case FINDING_USED_AFTER_FREE:
        say("    The work was queued after the free with a pointer into the block: a pointer, view "
            "or graph outlives its\n"
            "    tensor.\n");
        break;
    case FINDING_ILLEGAL_ACCESS:
        say_suspicion(f);
        break;
    case FINDING_BAD_FREE:
        say("    The pointer was freed already, or is none of this allocator.\n");
        break;
    }
}

static void say_moment(const finding *f)
{
    switch (f->moment) {
    case MOMENT_FREE:
        say("    Noticed when the block was freed.\n");
        break;
    case MOMENT_REUSE:
        say("    Noticed %.3f s after the free, before the memory went back into use.\n",
            (double)(f->now_ns - f->block.freed_ns) * 1e-9);
        break;
    case MOMENT_CHECK:
        say("    Noticed by a check while the block was %s.\n",
            f->block.freed_ns ? "held back after its free" : "in use");
        break;
    case MOMENT_READ:
    case MOMENT_QUEUED:
    case MOMENT_FAULT:
        break;
    }
}

/* A kernel's name in words, cut. */
static const char *use_text(const finding *f, char words[201])
{
    char *name = gmd_demangle(f->use);
    snprintf(words, 201, "%s", name ? name : f->use);
    free(name);
    return words;
}

static void say_use(report *r, const finding *f)
{
    if (f->use) {
        char title[320], words[201], stream[40];
        snprintf(title, sizeof title, "used by %s on %s, queued in", use_text(f, words),
                 stream_text(f->use_stream, stream));
        say_stack(r, title, f->use_stack);
    }
}

static void say_block(report *r, const finding *f)
{
    const guarded_block *b = &f->block;
    char size[24], stream[40];
    if (f->kind == FINDING_ILLEGAL_ACCESS && f->suspicion == SUSPECT_NONE) {
        say_use(r, f);
        return;
    }
    say("    block of %s (%llu bytes) at 0x%llx, allocated on %s\n", gmd_format_size(b->size, size),
        (unsigned long long)b->size, (unsigned long long)b->address,
        stream_text(b->stream, stream));
    for (uint32_t i = 0; i < b->recorded_count && i < GUARDED_STREAMS; i++) {
        say("    recorded on %s\n", stream_text(b->recorded[i], stream));
    }
    say_stack(r, "allocated", b->allocated_stack);
    if (b->freed_ns) {
        say_stack(r, "freed", b->freed_stack);
    }
    if (f->owner.address) {
        say("    the memory %s a block of %s on %s\n",
            f->kind == FINDING_FREED_EARLY ? "could have come back as" : "is now",
            gmd_format_size(f->owner.size, size), stream_text(f->owner.stream, stream));
        say_stack(r, "allocated", f->owner.allocated_stack);
    }
    say_use(r, f);
    if (f->moment != MOMENT_QUEUED) {
        say_stack(r, f->moment == MOMENT_READ ? "read in" : "noticed in", f->current_stack);
    }
}

static void make_fault_title(report *r, const finding *f)
{
    static const char *const places[] = {[SUSPECT_PARAMETER] = ", after its free, of",
                                         [SUSPECT_BOUNDS] = ", probably beyond the bounds of",
                                         [SUSPECT_LATEST] = ", maybe after its free, of"};
    char words[201], size[24];
    int length = snprintf(r->latest, sizeof r->latest, "cuda:%d: %s: %s", f->block.device,
                          kinds[f->kind].title, f->use ? use_text(f, words) : "by some work");
    if (f->suspicion != SUSPECT_NONE && length > 0 && (size_t)length < sizeof r->latest) {
        snprintf(r->latest + length, sizeof r->latest - (size_t)length, "%s a block of %s",
                 places[f->suspicion], gmd_format_size(f->block.size, size));
    }
}

/* The first line, which is the sentence of an exception, too. */
static void make_title(report *r, const finding *f)
{
    char place[128], count[64], size[24];
    if (f->kind == FINDING_BAD_FREE) {
        snprintf(r->latest, sizeof r->latest, "cuda:%d: %s: 0x%llx", f->block.device,
                 kinds[f->kind].title, (unsigned long long)f->block.address);
        return;
    }
    if (f->moment == MOMENT_QUEUED) {
        char words[201];
        snprintf(r->latest, sizeof r->latest, "cuda:%d: %s: %s, a block of %s", f->block.device,
                 kinds[f->kind].title, use_text(f, words), gmd_format_size(f->block.size, size));
        return;
    }
    if (f->moment == MOMENT_FAULT) {
        make_fault_title(r, f);
        return;
    }
    place_text(f, place);
    snprintf(r->latest, sizeof r->latest, "cuda:%d: %s: %s%s, the first %s of a block of %s",
             f->block.device, kinds[f->kind].title, ordinal_text(f->changed.changed, "byte", count),
             f->moment == MOMENT_READ ? "" : " changed", place,
             gmd_format_size(f->block.size, size));
}

static void say_finding(report *r, const finding *f)
{
    say("==gmd sanitizer== %llu: %s\n", (unsigned long long)r->count, r->latest);
    say_meaning(f);
    if (f->changed.changed && f->kind != FINDING_BAD_FREE) {
        say_word(f);
    }
    if (f->kind != FINDING_BAD_FREE) {
        say_block(r, f);
        say_moment(f);
    } else {
        say_stack(r, "freed in", f->current_stack);
    }
    fflush(stderr);
}

/* --- JSON lines --------------------------------------------------------------------------- */

static void write_stack(report *r, gmd_json *json, const char *key, uint32_t stack)
{
    size_t length = stack ? r->stack_text(stack, r->stack, STACK_TEXT) : 0;
    r->stack[length] = '\0';
    gmd_json_array(json, key);
    char *rest = r->stack;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        if (*line) {
            gmd_json_string(json, NULL, line);
        }
    }
    gmd_json_end(json);
}

static void write_stream(gmd_json *json, const char *key, cudaStream_t stream)
{
    char text[32];
    snprintf(text, sizeof text, "0x%zx", (size_t)(uintptr_t)stream);
    gmd_json_string(json, key, text);
}

static void write_address(gmd_json *json, const char *key, uint64_t address)
{
    char text[32];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)address);
    gmd_json_string(json, key, text);
}

static void write_block(report *r, gmd_json *json, const char *key, const guarded_block *b)
{
    gmd_json_object(json, key);
    write_address(json, "address", b->address);
    gmd_json_u64(json, "bytes", b->size);
    gmd_json_u64(json, "number", b->number);
    write_stream(json, "stream", b->stream);
    gmd_json_array(json, "recorded_streams");
    for (uint32_t i = 0; i < b->recorded_count && i < GUARDED_STREAMS; i++) {
        write_stream(json, NULL, b->recorded[i]);
    }
    gmd_json_end(json);
    write_stack(r, json, "allocated", b->allocated_stack);
    write_stack(r, json, "freed", b->freed_ns ? b->freed_stack : 0);
    gmd_json_end(json);
}

static void write_evidence(gmd_json *json, unsigned evidence)
{
    gmd_json_array(json, "found_by");
    if (evidence & EVIDENCE_BYTES) {
        gmd_json_string(json, NULL, "bytes");
    }
    if (evidence & EVIDENCE_REQUEST) {
        gmd_json_string(json, NULL, "request");
    }
    if (evidence & (EVIDENCE_HAPPENS_BEFORE | EVIDENCE_POSSIBLE)) {
        gmd_json_string(json, NULL, "happens_before");
    }
    if (evidence & EVIDENCE_FAULT) {
        gmd_json_string(json, NULL, "fault");
    }
    gmd_json_end(json);
}

static void write_change(gmd_json *json, const finding *f)
{
    gmd_json_object(json, "changed");
    gmd_json_i64(json, "first_offset", (int64_t)(f->changed.first - f->block.address));
    gmd_json_i64(json, "last_offset", (int64_t)(f->changed.last - f->block.address));
    gmd_json_u64(json, "bytes", f->changed.changed);
    write_address(json, "word_found", f->changed.word);
    write_address(json, "word_expected", f->expected);
    gmd_json_end(json);
}

static void write_use(report *r, gmd_json *json, const finding *f)
{
    gmd_json_object(json, "used_by");
    gmd_json_string(json, "what", f->use);
    write_stream(json, "stream", f->use_stream);
    write_stack(r, json, "queued", f->use_stack);
    gmd_json_end(json);
}

static void write_finding(report *r, const finding *f, const cause *c)
{
    gmd_json json;
    gmd_json_start(&json, r->file);
    gmd_json_row(&json, NULL);
    gmd_json_string(&json, "schema", "gmd-sanitizer-1");
    gmd_json_u64(&json, "finding", c->number);
    gmd_json_u64(&json, "pid", (uint64_t)getpid());
    gmd_json_double(&json, "time", (double)time(NULL));
    gmd_json_string(&json, "kind", kinds[f->kind].name);
    gmd_json_string(&json, "verdict", r->latest);
    write_evidence(&json, c->evidence);
    gmd_json_i64(&json, "device", f->block.device);
    gmd_json_string(&json, "noticed_at", moments[f->moment]);
    if (f->kind == FINDING_ILLEGAL_ACCESS) {
        gmd_json_string(&json, "suspected_by", suspicions[f->suspicion]);
    }
    if (f->changed.changed) {
        write_change(&json, f);
    }
    write_block(r, &json, "block", &f->block);
    if (f->owner.address) {
        write_block(r, &json, "came_back_to", &f->owner);
    }
    if (f->use) {
        write_use(r, &json, f);
    }
    write_stack(r, &json, "noticed_in", f->current_stack);
    gmd_json_end(&json);
    gmd_json_finish(&json);
    fflush(r->file);
}

static bool open_file(report *r)
{
    if (!r->was_tried) {
        r->was_tried = true;
        r->file = fopen(r->options.report, "ae");
        if (!r->file) {
            say("==gmd sanitizer== %s cannot be written: %s\n", r->options.report, strerror(errno));
        }
    }
    return r->file != NULL;
}

/* --- findings ----------------------------------------------------------------------------- */

static cause cause_of(const finding *f)
{
    static const cause_kind causes[] = {[FINDING_WRITE_PAST_END] = CAUSE_PAST_END,
                                        [FINDING_WRITE_BEFORE_START] = CAUSE_BEFORE_START,
                                        [FINDING_UNINITIALISED_READ] = CAUSE_UNINITIALISED,
                                        [FINDING_BAD_FREE] = CAUSE_BAD_FREE,
                                        [FINDING_USED_AFTER_FREE] = CAUSE_LIFETIME,
                                        [FINDING_ILLEGAL_ACCESS] = CAUSE_LIFETIME};
    bool is_of_live = f->suspicion == SUSPECT_BOUNDS || f->suspicion == SUSPECT_NONE;
    cause c = {.kind =
                   f->kind == FINDING_ILLEGAL_ACCESS && is_of_live ? CAUSE_ACCESS : causes[f->kind],
               .allocated_stack = f->block.allocated_stack,
               .evidence = f->evidence};
    if (c.kind == CAUSE_LIFETIME) {
        c.other_stack = f->block.freed_stack;
    } else if (c.kind == CAUSE_UNINITIALISED || c.kind == CAUSE_BAD_FREE) {
        c.other_stack = f->current_stack;
    }
    if (!c.allocated_stack) {
        c.address = f->block.address;
    }
    return c;
}

/* The free may not be known where a read was seen. */
static bool is_same_cause(const cause *a, const cause *b)
{
    return a->kind == b->kind && a->allocated_stack == b->allocated_stack &&
           a->address == b->address &&
           (a->other_stack == b->other_stack ||
            (a->kind == CAUSE_LIFETIME && (!a->other_stack || !b->other_stack)));
}

/* The one that is known, or a new one; NULL: no host memory. */
static cause *find_cause(report *r, const finding *f)
{
    cause c = cause_of(f);
    for (uint32_t i = 0; i < r->cause_count; i++) {
        if (is_same_cause(&r->causes[i], &c)) {
            return &r->causes[i];
        }
    }
    c.evidence = 0;
    if (!GMD_GROW(&r->causes, &r->cause_capacity, r->cause_count + 1)) {
        return NULL;
    }
    r->causes[r->cause_count] = c;
    return &r->causes[r->cause_count++];
}

static const char *evidence_text(unsigned evidence)
{
    return evidence & EVIDENCE_BYTES     ? "by its bytes"
           : evidence & EVIDENCE_REQUEST ? "by the request"
           : evidence & EVIDENCE_FAULT   ? "by an illegal access"
                                         : "by happens-before";
}

static void confirm(report *r, const finding *f, const cause *c)
{
    say("==gmd sanitizer== %llu, found %s as well\n", (unsigned long long)c->number,
        evidence_text(f->evidence));
    if (r->file) {
        write_finding(r, f, c);
    }
    fflush(stderr);
}

void report_finding(report *r, const finding *f)
{
    cause nowhere = cause_of(f), *c = find_cause(r, f);
    c = c ? c : &nowhere;
    bool is_new_evidence = f->evidence & ~c->evidence;
    c->evidence |= f->evidence;
    c->times++;
    if (c->number && !is_new_evidence) {
        return;
    }
    if (!c->number && c->evidence == EVIDENCE_POSSIBLE) {
        return;
    }
    make_title(r, f);
    if (c->number) {
        confirm(r, f, c);
        return;
    }
    c->number = ++r->count;
    if (r->count > r->options.most_reports) {
        return;
    }
    if (open_file(r)) {
        write_finding(r, f, c);
    }
    say_finding(r, f);
}

static void say_evidence(const report *r)
{
    uint64_t bytes = 0, order = 0, both = 0, faults = 0;
    for (uint32_t i = 0; i < r->cause_count; i++) {
        unsigned evidence = r->causes[i].number ? r->causes[i].evidence : 0;
        bool has_bytes = evidence & EVIDENCE_BYTES;
        bool has_order = evidence & (EVIDENCE_HAPPENS_BEFORE | EVIDENCE_POSSIBLE);
        bytes += has_bytes && !has_order;
        order += has_order && !has_bytes;
        both += has_bytes && has_order;
        faults += (evidence & EVIDENCE_FAULT) != 0;
    }
    say("==gmd sanitizer== found by bytes alone: %llu, by happens-before alone: %llu, by both: "
        "%llu\n",
        (unsigned long long)bytes, (unsigned long long)order, (unsigned long long)both);
    if (faults) {
        say("==gmd sanitizer== by an illegal access, too: %llu\n", (unsigned long long)faults);
    }
}

void report_summary(report *r, const report_figures *figures)
{
    char zones[24], held[24];
    say("==gmd sanitizer== %llu finding%s in %llu allocations, %llu verified after their free; at "
        "most %s of red zones, %s held back\n",
        (unsigned long long)r->count, r->count == 1 ? "" : "s",
        (unsigned long long)figures->allocations, (unsigned long long)figures->verified_blocks,
        gmd_format_size(figures->zone_peak_bytes, zones),
        gmd_format_size(figures->quarantine_peak_bytes, held));
    if (figures->mapped_peak_bytes) {
        say("==gmd sanitizer== at most %s in mappings of their own, which go when blocks are "
            "freed\n",
            gmd_format_size(figures->mapped_peak_bytes, zones));
    }
    if (figures->unwatched_blocks) {
        say("==gmd sanitizer== not watched: %llu blocks of captures and of streams that were "
            "captured at their free\n",
            (unsigned long long)figures->unwatched_blocks);
    }
    if (figures->lost_finds) {
        say("==gmd sanitizer== %llu further finds were lost: there was no room\n",
            (unsigned long long)figures->lost_finds);
    }
    if (figures->incomplete) {
        say("==gmd sanitizer== the last check was not made: %s\n", figures->incomplete);
    }
    if (r->count) {
        say_evidence(r);
        say("==gmd sanitizer== %s%s has them\n",
            r->count > r->options.most_reports ? "the first ones are above; " : "",
            r->file ? r->options.report : "no file");
    }
    fflush(stderr);
}
