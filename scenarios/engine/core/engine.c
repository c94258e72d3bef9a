/* engine.c - the state of an engine, its host memory, its requests and its random numbers. */
#include "gmd_engine.h"

#include "gmd_min.h"

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

void engine_clear(struct engine *engine)
{
    if (engine->state != ENGINE_WAS_ENDED) {
        engine->state = ENGINE_RUNNING;
        engine->error.text[0] = '\0';
    }
}

void engine_misuse(struct engine *engine, const char *format, ...)
{
    if (engine->state != ENGINE_RUNNING) {
        return; /* the first message is the one that helps */
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(engine->error.text, sizeof engine->error.text, format, arguments);
    va_end(arguments);
    engine->state = ENGINE_MISUSED;
}

static host_block *host_block_of(void *memory)
{
    return (host_block *)((char *)memory - offsetof(host_block, memory));
}

static void link_host_block(struct engine *engine, host_block *block)
{
    block->prev = NULL;
    block->next = engine->host;
    if (engine->host) {
        engine->host->prev = block;
    }
    engine->host = block;
}

static void unlink_host_block(struct engine *engine, host_block *block)
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

void *host_take(struct engine *engine, size_t bytes)
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

void *host_take_more(struct engine *engine, void *memory, size_t bytes)
{
    void *larger = host_take(engine, bytes);
    if (memory) {
        size_t kept = host_block_of(memory)->bytes;
        memcpy(larger, memory, gmd_min(kept, bytes));
        host_give(engine, memory);
    }
    return larger;
}

void host_give(struct engine *engine, void *memory)
{
    if (memory) {
        host_block *block = host_block_of(memory);
        engine->host_bytes -= block->bytes;
        unlink_host_block(engine, block);
        free(block);
    }
}

void host_give_all(struct engine *engine)
{
    while (engine->host) {
        host_block *next = engine->host->next;
        free(engine->host);
        engine->host = next;
    }
    engine->host_bytes = 0;
}

bool engine_request(struct engine *engine, const gmd_request *request)
{
    bool is_free = request->op == GMD_OP_FREE;
    if (engine->state == ENGINE_WAS_ENDED || (engine->state != ENGINE_RUNNING && !is_free)) {
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
        engine->state = ENGINE_RAN_OUT;
        engine->refused_bytes = request->bytes;
        return false;
    default:
        engine->state = ENGINE_WAS_ENDED;
        return false;
    }
}

uint64_t engine_random(struct engine *engine, uint64_t limit)
{
    return gmd_random_below(&engine->random, limit); /* limits are small, and so is the bias */
}
