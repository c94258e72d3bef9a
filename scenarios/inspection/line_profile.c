#include "line_profile.h"

#include "gmd_min.h"
#include "gmd_sandbox.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX                                                                                  \
    256 /* Lua's own limit for C calls is 200; deeper lines count to their caller's                \
         */

typedef struct interval {
    int depth; /* of calls */
    uint32_t line;
    uint64_t active_before, active_peak, reserved_peak;
} interval;

typedef struct line_figures {
    uint64_t times, active_peak, reserved_peak, active, reserved;
    int64_t change;
    uint32_t open; /* intervals: a line may be running several times, by recursion */
} line_figures;

struct line_profile {
    line_figures lines[GMD_INSPECT_LINE_MAX]; /* by number, from 1 */
    interval open[DEPTH_MAX];
    int open_count;
    uint32_t first, last; /* that were seen */
    uint64_t active, reserved;
};

struct line_profile *line_profile_open(void)
{
    return calloc(1, sizeof(struct line_profile));
}

void line_profile_close(struct line_profile *profile)
{
    free(profile);
}

static void close_one(struct line_profile *p)
{
    const interval *closed = &p->open[--p->open_count];
    line_figures *line = &p->lines[closed->line];
    line->active_peak = gmd_max(line->active_peak, closed->active_peak);
    line->reserved_peak = gmd_max(line->reserved_peak, closed->reserved_peak);
    line->active = p->active;
    line->reserved = p->reserved;
    if (--line->open == 0) { /* otherwise the outer interval of the same line counts the change */
        line->change += (int64_t)(p->active - closed->active_before);
    }
    if (p->open_count > 0) {
        interval *around = &p->open[p->open_count - 1];
        around->active_peak = gmd_max(around->active_peak, closed->active_peak);
        around->reserved_peak = gmd_max(around->reserved_peak, closed->reserved_peak);
    }
}

static void close_from(struct line_profile *p, int depth)
{
    while (p->open_count > 0 && p->open[p->open_count - 1].depth >= depth) {
        close_one(p);
    }
}

static void enter_line(struct line_profile *p, int depth, uint32_t line)
{
    close_from(p, depth);
    if (line >= GMD_INSPECT_LINE_MAX || p->open_count == DEPTH_MAX) {
        return;
    }
    p->first = p->first == 0 || line < p->first ? line : p->first;
    p->last = line > p->last ? line : p->last;
    p->lines[line].times++;
    p->lines[line].open++;
    p->open[p->open_count++] = (interval){depth, line, p->active, p->active, p->reserved};
}

/* --- Lua's hooks ------------------------------------------------------------------------- */

static int depth_of(lua_State *lua)
{
    lua_Debug frame;
    int depth = 0;
    while (lua_getstack(lua, depth, &frame)) {
        depth++;
    }
    return depth;
}

static void on_event(lua_State *lua, lua_Debug *event)
{
    struct line_profile *p = binding_of(lua)->lines;
    switch (event->event) {
    case LUA_HOOKLINE:
        enter_line(p, depth_of(lua), (uint32_t)event->currentline);
        break;
    case LUA_HOOKRET:
        lua_getinfo(lua, "S", event);
        if (event->what[0] != 'C') {
            close_from(p, depth_of(lua));
        }
        break;
    default:
        sandbox_count(lua, event);
    }
}

void line_profile_begin(struct line_profile *profile, lua_State *lua)
{
    binding_of(lua)->lines = profile;
    lua_sethook(lua, on_event, LUA_MASKCOUNT | LUA_MASKLINE | LUA_MASKRET, SANDBOX_HOOK_EVERY);
}

void line_profile_note(struct line_profile *profile, uint64_t active, uint64_t reserved)
{
    profile->active = active;
    profile->reserved = reserved;
    if (profile->open_count > 0) {
        interval *top = &profile->open[profile->open_count - 1];
        top->active_peak = gmd_max(top->active_peak, active);
        top->reserved_peak = gmd_max(top->reserved_peak, reserved);
    }
}

/* --- the report -------------------------------------------------------------------------- */

static void write_row(const struct line_profile *p, uint32_t number, const char *code,
                      size_t length, gmd_inspection *out)
{
    char text[512];
    const line_figures *line = &p->lines[number];
    while (length > 0 && (code[length - 1] == '\r' || code[length - 1] == ' ')) {
        length--;
    }
    length = gmd_min(length, sizeof text - 1);
    memcpy(text, code, length);
    text[length] = '\0';
    out->lines[out->line_count++] = (gmd_line_row){.line = number,
                                                   .code = gmd_inspection_add_text(out, text),
                                                   .times = line->times,
                                                   .active_peak = line->active_peak,
                                                   .reserved_peak = line->reserved_peak,
                                                   .active = line->active,
                                                   .reserved = line->reserved,
                                                   .change = line->change};
}

void line_profile_write(struct line_profile *profile, const char *source, size_t length,
                        gmd_inspection *out)
{
    close_from(profile, 0);
    uint32_t number = 1;
    const char *at = source, *end = source + length;
    while (at < end && number <= profile->last) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((stop ? stop : end) - at);
        if (profile->first && number >= profile->first && out->line_count < GMD_INSPECT_LINE_MAX) {
            write_row(profile, number, at, bytes, out);
        }
        at = stop ? stop + 1 : end;
        number++;
    }
}
