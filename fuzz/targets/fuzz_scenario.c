/* Any text is a scenario: an error that names the file, or a run within its bounds of time, memory
 * and requests. The inspector lists each block that it leaves behind. */
#include "fuzz.h"

#include "gmd_scenario_inspect.h"

#include <string.h>
#include <unistd.h>

#define INSTRUCTIONS "200000"
enum { REQUESTS_MAX = 20000 };

typedef struct served {
    uint64_t requests, live;
} served;

/* Memory for half a thousand blocks; and the end where a script goes on and on. */
static gmd_served serve(void *context, const gmd_request *request)
{
    served *s = context;
    if (++s->requests > REQUESTS_MAX) {
        return GMD_STOP;
    }
    if (request->op == GMD_OP_ALLOC) {
        if (s->live >= 500) {
            return GMD_OUT_OF_MEMORY;
        }
        s->live++;
    } else if (request->op == GMD_OP_FREE) {
        FUZZ_REQUIRE(s->live);
        s->live--;
    }
    return GMD_SERVED;
}

static void note_phase(void *context, const char *label)
{
    (void)context;
    FUZZ_REQUIRE(label);
}

static bool tell_memory(void *context, gmd_sink_memory *memory)
{
    served *s = context;
    *memory = (gmd_sink_memory){s->live, s->live, s->live, s->live, s->live};
    return true;
}

/* Each block counts as one byte, so that the parts of the report are numbers of blocks. */
static void require_explained(const gmd_inspection *inspection)
{
    uint64_t used = 0;
    for (int i = 0; i < GMD_HOLDERS; i++) {
        used += inspection->held[i].used;
    }
    FUZZ_REQUIRE(used == inspection->allocated);
}

/* One file for all inputs of the process; it goes with it. */
static char path[64];

static void remove_file(void)
{
    unlink(path);
}

static int scenario_file(void)
{
    static int file = -1;
    if (file < 0) {
        snprintf(path, sizeof path, "/tmp/gmd_fuzz_XXXXXX.lua");
        file = mkstemps(path, 4);
        FUZZ_REQUIRE(file >= 0 && atexit(remove_file) == 0);
    }
    return file;
}

static void require_place(const gmd_error *error)
{
    FUZZ_REQUIRE(strstr(error->text, ".lua"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const gmd_param bounds[] = {{"max_instructions", INSTRUCTIONS}};
    served s = {0};
    const gmd_sink sink = {
        .context = &s, .request = serve, .phase = note_phase, .memory = tell_memory};
    gmd_scenario *scenario = NULL;
    gmd_error error = {""};
    bool is_out_of_memory;
    int file = scenario_file();
    FUZZ_REQUIRE(ftruncate(file, 0) == 0);
    FUZZ_REQUIRE(pwrite(file, data, size, 0) == (ssize_t)size);
    if (gmd_scenario_open(&scenario, path, "", &error) != GMD_OK) {
        require_place(&error);
        return 0;
    }
    gmd_inspection *inspection = gmd_inspection_open(GMD_INSPECT_ALL, NULL, &error);
    FUZZ_REQUIRE(inspection);
    gmd_scenario_inspect(scenario, inspection);
    if (gmd_scenario_run(scenario, bounds, 1, 1, &sink, &is_out_of_memory, &error) != GMD_OK) {
        FUZZ_REQUIRE(error.text[0]);
    }
    if (inspection->is_complete && s.requests <= REQUESTS_MAX) {
        require_explained(inspection);
    }
    gmd_inspection_close(inspection);
    gmd_scenario_close(scenario);
    return 0;
}
