#include "listing.h"

#include "gmd_kind.h"
#include "gmd_report_text.h"
#include "gmd_terminal.h"

#include <stdio.h>
#include <string.h>

static void join_tags(const gmd_scenario *scenario, char *text, size_t size)
{
    const char *tag;
    text[0] = '\0';
    for (size_t i = 0; (tag = gmd_scenario_tag_at(scenario, i)); i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i ? "," : "", tag);
    }
}

static int larger(int width, size_t length)
{
    return length > (size_t)width && length < 64 ? (int)length : width;
}

/* The last column, behind what ends at `at`: it stays a column on a terminal that has room for one.
 */
static void put_last(int at, const char *text)
{
    enum { GAP = 2, LEAST = 24, BELOW = 8 };
    const gmd_terminal terminal = gmd_terminal_for(stdout, false);
    bool has_room = !terminal.columns || at + GAP + LEAST <= terminal.columns;
    int indent = has_room ? at + GAP : BELOW, column = indent;
    printf("%s%*s", has_room ? "" : "\n", has_room ? GAP : BELOW, "");
    gmd_put_flowing(stdout, terminal, indent, &column, text);
    putchar('\n');
}

typedef struct columns {
    const char *directory;
    int name, tags; /* widths */
} columns;

static void measure(void *context, const char *name)
{
    columns *widths = context;
    gmd_scenario *scenario = NULL;
    gmd_error error;
    char tags[128];
    widths->name = larger(widths->name, strlen(name));
    if (gmd_scenario_open(&scenario, name, widths->directory, &error) == GMD_OK) {
        join_tags(scenario, tags, sizeof tags);
        widths->tags = larger(widths->tags, strlen(tags));
        gmd_scenario_close(scenario);
    }
}

static void print_line(void *context, const char *name)
{
    const columns *widths = context;
    gmd_scenario *scenario = NULL;
    gmd_error error;
    char tags[128];
    if (gmd_scenario_open(&scenario, name, widths->directory, &error) != GMD_OK) {
        printf("%-*s  (cannot be loaded: %s)\n", widths->name, name, error.text);
        return;
    }
    join_tags(scenario, tags, sizeof tags);
    int used = printf("%-*s  %-*s", widths->name, name, widths->tags, tags);
    put_last(used, gmd_scenario_summary(scenario));
    gmd_scenario_close(scenario);
}

gmd_status cli_list_all(const char *directory, gmd_error *error)
{
    columns widths = {directory, 0, 0};
    gmd_status status = gmd_scenario_each(directory, measure, &widths, error);
    return status == GMD_OK ? gmd_scenario_each(directory, print_line, &widths, error) : status;
}

gmd_status cli_list_one(const char *name, const char *directory, gmd_error *error)
{
    gmd_scenario *scenario = NULL;
    gmd_status status = gmd_scenario_open(&scenario, name, directory, error);
    if (status != GMD_OK) {
        return status;
    }
    char tags[128];
    join_tags(scenario, tags, sizeof tags);
    int at = printf("%s: ", gmd_scenario_name(scenario));
    gmd_put_flowing(stdout, gmd_terminal_for(stdout, false), 4, &at,
                    gmd_scenario_summary(scenario));
    putchar('\n');
    if (*tags) {
        printf("    tags: %s\n", tags);
    }
    gmd_scenario_param param;
    int width = 0;
    for (size_t i = 0; gmd_scenario_param_at(scenario, i, &param); i++) {
        width = larger(width, strlen(param.key) + 1 + strlen(param.default_value));
    }
    for (size_t i = 0; gmd_scenario_param_at(scenario, i, &param); i++) {
        int used = printf("    %s=%s", param.key, param.default_value) - 4;
        int padding = printf("%*s", used < width ? width - used : 0, "");
        put_last(4 + used + padding, param.help);
    }
    gmd_scenario_close(scenario);
    return GMD_OK;
}

void cli_list_oracles(void)
{
    int width = 0;
    for (size_t i = 0; i < GMD_KIND_COUNT; i++) {
        width = larger(width, strlen(gmd_kinds[i].name));
    }
    for (size_t i = 0; i < GMD_JUDGE_COUNT; i++) {
        int at = printf("%s: ", gmd_judges[i].name);
        gmd_put_flowing(stdout, gmd_terminal_for(stdout, false), 2, &at, gmd_judges[i].holds_when);
        putchar('\n');
        for (size_t k = 0; k < GMD_KIND_COUNT; k++) {
            if (strcmp(gmd_kinds[k].oracle, gmd_judges[i].name) == 0) {
                int used = printf("    %-*s", width, gmd_kinds[k].name);
                put_last(used, gmd_kinds[k].meaning);
            }
        }
    }
}
