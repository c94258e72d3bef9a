/* gmd_script.h - a scenario file as read: its source, and what its scenario { } declares. */
#ifndef GMD_SCRIPT_H
#define GMD_SCRIPT_H

#include "gmd_scenario.h"

#include <lua.h>

enum param_type { PARAM_BOOLEAN, PARAM_INTEGER, PARAM_NUMBER, PARAM_TEXT };

struct declared_param {
    char *key, *text, *help; /* text: the default value as it would be given */
    enum param_type type;
    double least, most; /* of numbers */
};

#define SCRIPT_TAGS_MAX 8

struct binding;

/* What looks inside a run (inspection/inspector.c). The requests are the same with it as without
 * it. */
struct run_watch {
    void *context;        /* NULL: this run is not inspected */
    const gmd_sink *sink; /* what the engine gets in place of the run's own */
    void (*attach)(void *context, struct binding *binding); /* before the script is run */
    void (*begin)(void *context); /* the script is behind its declaration */
    void (*end)(void *context);   /* the script is over; nothing of its own is freed yet */
    void (*close)(void *context);
};

/* Fills in `watch` for a run of `scenario` whose requests go to `sink`; false: no memory. */
typedef bool open_watch_fn(const gmd_scenario *scenario, const gmd_sink *sink,
                           struct run_watch *watch);

struct gmd_scenario {
    char *name, *summary, *source;
    char *tags[SCRIPT_TAGS_MAX];
    size_t tag_count;
    char chunk[80]; /* how messages name the file, with Lua's leading '@' */
    size_t length;
    bool is_muted;
    const struct gmd_workspaces *workspaces; /* NULL: those that gmd is built with */
    FILE *unrecorded;                        /* gets the calls that no table has; or NULL */
    struct declared_param *params;
    size_t param_count, param_capacity;
    open_watch_fn *open_watch;         /* NULL: runs are not inspected */
    struct gmd_inspection *inspection; /* for open_watch; borrowed */
};

/* Adds a parameter; NULL when there is no memory. Strings are copied. */
struct declared_param *script_declare_param(gmd_scenario *scenario, const char *key,
                                            const char *text, const char *help,
                                            enum param_type type);

/* Runs the beginning of the script, up to and including its scenario { }. */
gmd_status script_read_declaration(gmd_scenario *scenario, gmd_error *error);

/* Finds `key` among the parameters; NULL: there is none. */
const struct declared_param *script_find_param(const gmd_scenario *scenario, const char *key);

/* Checks `value` against the declaration and pushes it. False: `error` says what was expected. */
bool script_push_param(lua_State *lua, const gmd_scenario *scenario,
                       const struct declared_param *param, const char *value, gmd_error *error);

#endif
