/* gmd_script.h - a scenario file as read: its source, and what its scenario { } declares. */
#ifndef GMD_SCRIPT_H
#define GMD_SCRIPT_H

#include "gmd_scenario.h"

#include <lua.h>

typedef enum gmd_param_type { GMD_BOOLEAN, GMD_INTEGER, GMD_NUMBER, GMD_TEXT } gmd_param_type;

typedef struct gmd_declared {
    char *key, *text, *help; /* text: the default value as it would be given */
    gmd_param_type type;
    double least, most; /* of numbers */
} gmd_declared;

#define GMD_TAGS_MAX 8

struct gmd_binding;

/* Whoever looks inside a run (inspection/inspector.c). The requests are the same with it as
 * without. */
typedef struct run_watch {
    void *context;        /* NULL: nobody looks inside this run */
    const gmd_sink *sink; /* that the engine is given instead of the run's own */
    void (*attach)(void *context, struct gmd_binding *binding); /* before the script is run */
    void (*begin)(void *context); /* the script is behind its declaration */
    void (*end)(void *context);   /* the script is over; nothing of its own is freed yet */
    void (*close)(void *context);
} run_watch;

/* Fills in `watch` for a run of `scenario` whose requests go to `sink`; false: no memory. */
typedef bool watch_opener(const gmd_scenario *scenario, const gmd_sink *sink, run_watch *watch);

struct gmd_scenario {
    char *name, *summary, *source;
    char *tags[GMD_TAGS_MAX];
    size_t tag_count;
    char chunk[80]; /* how messages name the file, with Lua's leading '@' */
    size_t length;
    bool is_muted;
    gmd_declared *params;
    size_t param_count;
    watch_opener *open_watch;          /* NULL: nobody looks inside */
    struct gmd_inspection *inspection; /* for open_watch; borrowed */
};

/* Adds a parameter; NULL when there is no memory. Strings are copied. */
gmd_declared *gmd_scenario_declare(gmd_scenario *scenario, const char *key, const char *text,
                                   const char *help, gmd_param_type type);

/* Runs the beginning of the script, up to and including its scenario { }. */
gmd_status gmd_scenario_read_declaration(gmd_scenario *scenario, gmd_error *error);

/* Finds `key` among the parameters; NULL: there is none. */
const gmd_declared *gmd_scenario_find(const gmd_scenario *scenario, const char *key);

/* Checks `value` against the declaration and pushes it. False: `error` says what was expected. */
bool gmd_param_push(lua_State *lua, const gmd_scenario *scenario, const gmd_declared *param,
                    const char *value, gmd_error *error);

#endif
