#include "guard_test.h"

#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static guard_bench *current; /* of the functions below, which get no context */

static void *inner_malloc(size_t size, int device, cudaStream_t stream)
{
    return gmd_allocator_malloc(current->allocator, size, device, stream);
}

static void inner_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    assert_true(gmd_allocator_free(current->allocator, ptr, device, stream));
}

static void inner_record(void *ptr, cudaStream_t stream)
{
    assert_true(gmd_allocator_record_stream(current->allocator, ptr, stream));
}

static void inner_empty(void)
{
    gmd_allocator_empty_cache(current->allocator);
}

static uint32_t inner_stack(void)
{
    return current->stack;
}

static size_t inner_text(uint32_t stack, char *text, size_t size)
{
    return current->text ? (size_t)snprintf(text, size, "%s", current->text)
                         : (size_t)snprintf(text, size, "train.py:%u:step\n", stack);
}

/* --- what the kernels do ------------------------------------------------------------------ */

static unsigned char pattern_byte(uint64_t pattern, uint64_t address)
{
    return (unsigned char)(pattern >> 8 * (address % 8));
}

static void note(sweep_find *find, uint64_t address, uint64_t word)
{
    if (!find->changed) {
        find->first = address;
        find->word = word;
    }
    find->last = address;
    find->changed++;
}

/* Words, as the kernels do. */
static void seek_by_host(const sweep_range *r, sweep_find *find)
{
    for (uint64_t at = (r->address + 7) / 8 * 8; at + 8 <= r->address + r->bytes; at += 8) {
        uint64_t word = 0;
        assert_int_equal(gmd_sim_peek(at, &word, sizeof word), 0);
        for (uint64_t i = 0; i < 8 && (word == r->expected || word == r->written); i++) {
            note(find, at + i, word);
        }
    }
}

static void sweep_bytes_by_host(const sweep_range *r, sweep_find *find)
{
    for (uint64_t at = r->address; at < r->address + r->bytes; at++) {
        unsigned char byte, written = pattern_byte(r->written, at);
        assert_int_equal(gmd_sim_peek(at, &byte, 1), 0);
        if ((r->flags & SWEEP_VERIFY) && byte != pattern_byte(r->expected, at)) {
            note(find, at, byte);
        }
        if (r->flags & SWEEP_WRITE) {
            assert_int_equal(gmd_sim_poke(at, &written, 1), 0);
        }
    }
}

static cudaError_t sweep_by_host(void *context, cudaStream_t stream, const sweep_range *ranges,
                                 uint32_t count, sweep_finds *finds)
{
    (void)context;
    (void)stream;
    for (uint32_t i = 0; i < count; i++) {
        sweep_find find = {.ticket = ranges[i].ticket, .state = SWEEP_COMPLETE};
        if (ranges[i].flags & SWEEP_SEEK) {
            seek_by_host(&ranges[i], &find);
        } else {
            sweep_bytes_by_host(&ranges[i], &find);
        }
        if (find.changed) {
            finds->entries[finds->count++ % SWEEP_FINDS] = find;
        }
    }
    return cudaSuccess;
}

/* --- the bench ---------------------------------------------------------------------------- */

void bench_open(guard_bench *bench, const char *text)
{
    gmd_sim_config config;
    sanitizer_options options;
    gmd_error error = {""};
    sweeps *s = NULL;
    const guard_allocator inner = {.malloc = inner_malloc,
                                   .free = inner_free,
                                   .record_stream = inner_record,
                                   .empty_cache = inner_empty,
                                   .keep_stack = inner_stack,
                                   .stack_text = inner_text};
    *bench = (guard_bench){.folder = "/tmp/gmd-guard-XXXXXX"};
    assert_non_null(mkdtemp(bench->folder));
    snprintf(bench->report, sizeof bench->report, "%s/report.jsonl", bench->folder);
    gmd_sim_default_config(&config);
    config.backed = true;
    config.capacity_bytes = (uint64_t)64 << 20;
    assert_int_equal(gmd_sim_reset(&config), 0);
    assert_int_equal(gmd_allocator_create(&bench->allocator, 1, "", &error), GMD_OK);
    assert_int_equal(sanitizer_options_parse(&options, text, &error), GMD_OK);
    snprintf(options.report, sizeof options.report, "%s", bench->report);
    assert_int_equal(sweeps_make(&s, 1, sweep_by_host, NULL, &error), GMD_OK);
    assert_int_equal(guard_create(&bench->guard, &options, &inner, s, 1, &error), GMD_OK);
    current = bench;
}

void bench_close(guard_bench *bench)
{
    guard_destroy(bench->guard);
    gmd_allocator_destroy(bench->allocator);
    (void)unlink(bench->report);
    (void)rmdir(bench->folder);
}

void *bench_malloc(guard_bench *bench, size_t size)
{
    gmd_error error = {""};
    void *block = guard_malloc(bench->guard, size, 0, NULL, &error);
    assert_string_equal(error.text, "");
    assert_non_null(block);
    return block;
}

void bench_poke(const void *address, const char *bytes, size_t count)
{
    assert_int_equal(gmd_sim_poke((uintptr_t)address, bytes, count), 0);
}

const char *bench_report(guard_bench *bench)
{
    static char text[1 << 20];
    FILE *file = fopen(bench->report, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    text[length] = '\0';
    return text;
}
