/* engine.c - the state of an engine, its host memory, its requests and its random numbers. */
#include "gmd_engine.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Enough for graphs of millions of nodes; a script that keeps more is stopped, not the machine. */
#define HOST_LIMIT ((size_t)2 << 30)

typedef struct host_block {
    struct host_block *prev, *next;
    size_t bytes;
    max_align_t memory[];
} host_block;

void gmd_engine_clear(gmd_engine *engine)
{
    if (engine->state != GMD_WAS_ENDED) {
        engine->state = GMD_RUNNING;
        engine->error.text[0] = '\0';
    }
}

void gmd_misuse(gmd_engine *engine, const char *format, ...)
{
    if (engine->state != GMD_RUNNING) {
        return; /* the first message is the one that helps */
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(engine->error.text, sizeof engine->error.text, format, arguments);
    va_end(arguments);
    engine->state = GMD_MISUSED;
}

static host_block *host_block_of(void *memory)
{
    return (host_block *)((char *)memory - offsetof(host_block, memory));
}

static void link_host_block(gmd_engine *engine, host_block *block)
{
    block->prev = NULL;
    block->next = engine->host;
    if (engine->host) {
        engine->host->prev = block;
    }
    engine->host = block;
}

static void unlink_host_block(gmd_engine *engine, host_block *block)
{
    if (block->prev) {
        block->prev->next = block->next;
    } else {
        engine->host = block->next;
    }
    if (block->next) {
        block->next->prev = block->prev;
    }
}

void *gmd_take(gmd_engine *engine, size_t bytes)
{
    host_block *block = NULL;
    if (bytes < HOST_LIMIT - engine->host_bytes) {
        block = calloc(1, sizeof *block + bytes);
    }
    if (!block) {
        engine->hooks.no_memory(engine->hooks.context);
        abort(); /* the hook broke its promise not to return */
    }
    block->bytes = bytes;
    engine->host_bytes += bytes;
    link_host_block(engine, block);
    return block->memory;
}

void *gmd_take_more(gmd_engine *engine, void *memory, size_t bytes)
{
    void *larger = gmd_take(engine, bytes);
    if (memory) {
        size_t kept = host_block_of(memory)->bytes;
        memcpy(larger, memory, kept < bytes ? kept : bytes);
        gmd_give(engine, memory);
    }
    return larger;
}

void gmd_give(gmd_engine *engine, void *memory)
{
    if (memory) {
        host_block *block = host_block_of(memory);
        engine->host_bytes -= block->bytes;
        unlink_host_block(engine, block);
        free(block);
    }
}

void gmd_give_all(gmd_engine *engine)
{
    while (engine->host) {
        host_block *next = engine->host->next;
        free(engine->host);
        engine->host = next;
    }
    engine->host_bytes = 0;
}

bool gmd_ask(gmd_engine *engine, const gmd_request *request)
{
    bool is_free = request->op == GMD_OP_FREE;
    if (engine->state == GMD_WAS_ENDED || (engine->state != GMD_RUNNING && !is_free)) {
        return false;
    }
    engine->requests++;
    gmd_request placed = *request;
    if (engine->sink->tells_lines && engine->hooks.line) {
        placed.line = engine->hooks.line(engine->hooks.context);
    }
    switch (engine->sink->request(engine->sink->context, &placed)) {
    case GMD_SERVED:
        return true;
    case GMD_OUT_OF_MEMORY:
        engine->state = GMD_RAN_OUT;
        engine->refused_bytes = request->bytes;
        return false;
    default:
        engine->state = GMD_WAS_ENDED;
        return false;
    }
}

uint64_t gmd_engine_random(gmd_engine *engine, uint64_t limit)
{
    return gmd_random_below(&engine->random, limit); /* limits are small, and so is the bias */
}
