#include "gmd_places.h"

#include "gmd_text.h"

#include <stdlib.h>
#include <string.h>

/* Folders that hold what was installed, and packages by the name that a shortened path begins with.
 */
static const char *const installed_folders[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                                "\\site-packages\\", "/torchinductor_"};
static const char *const packages[] = {
    "torch/",        "torchvision/", "torchaudio/", "torchtext/",   "torch_geometric/",
    "transformers/", "accelerate/",  "peft/",       "diffusers/",   "timm/",
    "deepspeed/",    "lightning/",   "triton/",     "xformers/",    "pytorch_lightning/",
    "flash_attn/",   "apex/",        "numpy/",      "bitsandbytes/"};
static const char *const library_sources[] = {".cpp", ".cc",  ".cu", ".cuh",
                                              ".h",   ".hpp", ".so", ".c"};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Shared libraries with a version, and the interpreter itself. */
static bool is_binary(const char *file)
{
    const char *name = gmd_file_name(file);
    return strstr(name, ".so.") ||
           (name != file && begins_with(name, "python") && !ends_with(name, ".py"));
}

/* Names that are no files: "??", "<frozen importlib._bootstrap>", "<eval_with_key>.2". A notebook's
 * cell is the user's: "<ipython-input-3-...>". */
static bool is_no_file(const char *file)
{
    return !*file || *file == '?' || (*file == '<' && !begins_with(file, "<ipython-input"));
}

/* Whether a package made a file as it ran, and named it by a module of its own, wherever it lies:
 * "/tmp/torch_geometric.nn.conv.gat_conv_GATConv_propagate_qhqn251q.py". */
static bool is_generated(const char *name, const char *package)
{
    size_t length = strlen(package) - 1;
    return strncmp(name, package, length) == 0 && name[length] == '.' &&
           strchr(name + length + 1, '.');
}

bool gmd_is_library_file(const char *file)
{
    if (is_no_file(file) || is_binary(file)) {
        return true;
    }
    for (size_t i = 0; i < sizeof installed_folders / sizeof *installed_folders; i++) {
        if (strstr(file, installed_folders[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        if (begins_with(file, packages[i]) || is_generated(gmd_file_name(file), packages[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof library_sources / sizeof *library_sources; i++) {
        if (ends_with(file, library_sources[i])) {
            return true;
        }
    }
    return false;
}

/* The innermost frame of the user's own; where there is none, the outermost of all. In a program of
 * Python the outermost frame of a thread without Python is no place of it. */
static uint32_t user_frame(const gmd_places *places, uint32_t stack)
{
    size_t count;
    const uint32_t *frames = gmd_origins_stack(places->origins, stack, &count);
    const unsigned parts = places->parts_of[stack];
    if (places->has_python && (parts & GMD_PART_BACKWARD) && !(parts & GMD_PART_PYTHON)) {
        return GMD_NO_PLACE; /* compiled: the line is that of the way forward */
    }
    for (size_t i = 0; i < count; i++) {
        if (!places->is_library[frames[i]]) {
            return frames[i];
        }
    }
    bool is_elsewhere = places->has_python && !(places->parts_of[stack] & GMD_PART_PYTHON);
    return count && !is_elsewhere ? frames[count - 1] : GMD_NO_PLACE;
}

/* --- parts ----------------------------------------------------------------------------------- */

/* What a file is, is found once for each text, not for each frame of it. */
typedef struct file_kind {
    bool is_known, is_library;
    bool is_python;     /* else of C++ */
    bool runs_backward; /* as the outermost frame: Python that the engine of autograd called */
    bool is_of_modules; /* torch/nn/modules/module.py */
    bool is_autograd;   /* torch/autograd/__init__.py */
    bool is_activation; /* torch/nn/modules/activation.py */
    bool is_compiled;   /* torch.compile's own autograd.Function, and what calls it */
    uint16_t parts;     /* gmd_part */
} file_kind;

static uint16_t parts_of_file(const char *file)
{
    static const struct {
        const char *end;
        gmd_part part;
    } parts[] = {{"torch/nn/modules/rnn.py", GMD_PART_RECURRENT},
                 {"torch/utils/checkpoint.py", GMD_PART_CHECKPOINT},
                 {"torch/autograd/function.py", GMD_PART_FUNCTION}};
    bool is_layer = strstr(file, "torch/nn/modules/") || strstr(file, "torch/nn/parameter.py");
    unsigned found = is_layer ? GMD_PART_LAYER : 0;
    found |= strstr(file, "torch/optim/") ? GMD_PART_OPTIMIZER : 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        found |= gmd_is_path_end(file, parts[i].end) ? parts[i].part : 0;
    }
    return (uint16_t)found;
}

static file_kind classify_file(const char *file)
{
    return (file_kind){.is_known = true,
                       .is_library = gmd_is_library_file(file),
                       .is_python = ends_with(file, ".py"),
                       .runs_backward = gmd_is_path_end(file, "torch/autograd/function.py") ||
                                        gmd_is_path_end(file, "torch/autograd/graph.py") ||
                                        gmd_is_path_end(file, "torch/utils/checkpoint.py"),
                       .is_of_modules = gmd_is_path_end(file, "torch/nn/modules/module.py"),
                       .is_activation = gmd_is_path_end(file, "torch/nn/modules/activation.py"),
                       .is_autograd = gmd_is_path_end(file, "torch/autograd/__init__.py"),
                       .is_compiled = strstr(file, "torch/_functorch/_aot_autograd/"),
                       .parts = parts_of_file(file)};
}

static void classify_frames(gmd_places *places, file_kind *kinds)
{
    const gmd_origins *origins = places->origins;
    for (uint32_t frame = 0; frame < gmd_origins_frame_count(origins); frame++) {
        file_kind *kind = &kinds[gmd_origins_frame(origins, frame).file];
        if (!kind->is_known) {
            *kind = classify_file(
                gmd_origins_text(origins, gmd_origins_frame(origins, frame).file, NULL));
        }
        places->is_library[frame] = kind->is_library;
    }
}

static const char *function_of(const gmd_places *places, uint32_t frame)
{
    uint32_t function = gmd_origins_frame(places->origins, frame).function;
    return gmd_origins_text(places->origins, function, NULL);
}

/* module.py calls a module in these; in others it makes, moves or initialises one. */
static bool is_call(const char *function)
{
    static const char *const names[] = {"_call_impl", "_wrapped_call_impl", "__call__",
                                        "_slow_forward", "inner"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a part of a name between underscores begins so: "evaluate_model", but not "retrieval". */
static bool names_evaluation(const char *function)
{
    static const char *const words[] = {"eval", "valid", "infer", "test"};
    for (const char *part = function; part; part = strchr(part, '_')) {
        part += *part == '_';
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            if (begins_with(part, words[i])) {
                return true;
            }
        }
    }
    return false;
}

/* What the user's own line tells, beside its file. */
static uint16_t parts_of_line(const gmd_places *places, const file_kind *kinds,
                              const uint32_t *frames, size_t at, size_t count)
{
    const char *function = function_of(places, frames[at]);
    unsigned parts = strcmp(function, "__init__") == 0 ? GMD_PART_CONSTRUCTOR : 0;
    if (at + 1 < count && strcmp(function, "forward") != 0 &&
        (kinds[gmd_origins_frame(places->origins, frames[at + 1]).file].parts & GMD_PART_LAYER)) {
        parts |= GMD_PART_HOOK;
    }
    return (uint16_t)parts;
}

/* What a library's function tells, beside its file. */
static unsigned parts_of_function(const file_kind *kind, const char *function)
{
    unsigned parts = kind->is_of_modules && is_call(function) ? GMD_PART_MODULE : 0;
    parts |= kind->is_autograd ? GMD_PART_AUTOGRAD : 0u;
    return parts | (kind->is_autograd && strcmp(function, "grad") == 0 ? GMD_PART_GRAD : 0u);
}

/* Whether an optimizer calls the program, not the program's own optimizer its step(): a closure
 * that goes forward and backward. Trainers put all of an iteration into one. `parts`: of the frames
 * inside of the optimizer's. */
static bool is_closure(const gmd_places *places, const uint32_t *frames, size_t optimizer,
                       unsigned parts)
{
    if (parts & (GMD_PART_MODULE | GMD_PART_AUTOGRAD)) {
        return true;
    }
    for (size_t i = 0; i < optimizer; i++) {
        if (!places->is_library[frames[i]]) {
            return strcmp(function_of(places, frames[optimizer - 1]), "step") != 0;
        }
    }
    return false;
}

static uint16_t parts_of_frames(const gmd_places *places, const file_kind *kinds,
                                const uint32_t *frames, size_t count)
{
    unsigned parts = 0;
    bool is_innermost = true, is_attention = false, is_of_closure = false;
    for (size_t i = 0; i < count; i++) {
        const file_kind *kind = &kinds[gmd_origins_frame(places->origins, frames[i]).file];
        const char *function = function_of(places, frames[i]);
        if (kind->is_python && kind->is_library && !(parts & GMD_PART_PYTHON) && is_innermost) {
            parts |= GMD_PART_INSIDE;
        }
        if ((kind->parts & GMD_PART_OPTIMIZER) && !(parts & GMD_PART_OPTIMIZER)) {
            is_of_closure = is_of_closure || is_closure(places, frames, i, parts);
        }
        parts |= kind->parts | parts_of_function(kind, function);
        parts &= is_of_closure ? ~(unsigned)GMD_PART_OPTIMIZER : ~0u;
        parts |= kind->is_python ? GMD_PART_PYTHON : 0u;
        /* Multi-head attention is in the file of activation functions, and has parameters. */
        is_attention = is_attention || strcmp(function, "multi_head_attention_forward") == 0;
        parts |= kind->is_activation && !is_attention ? GMD_PART_ACTIVATION : 0u;
        if (!kind->is_library) {
            parts |= is_innermost ? parts_of_line(places, kinds, frames, i, count) : 0;
            parts |= names_evaluation(function) ? GMD_PART_EVALUATION : 0;
            is_innermost = false;
        }
    }
    return (uint16_t)parts;
}

/* The outermost frame of Python, or of the user's own; GMD_NO_PLACE: there is none. */
static uint32_t outermost_frame(const gmd_places *places, const file_kind *kinds,
                                const uint32_t *frames, size_t count)
{
    for (size_t i = count; i > 0; i--) {
        const file_kind *kind = &kinds[gmd_origins_frame(places->origins, frames[i - 1]).file];
        if (kind->is_python || !kind->is_library) {
            return frames[i - 1];
        }
    }
    return GMD_NO_PLACE;
}

static bool is_main_program(const gmd_places *places, uint32_t frame)
{
    return frame != GMD_NO_PLACE && strcmp(function_of(places, frame), "<module>") == 0;
}

/* What the program's own start leads to, as far as stacks go out to it. */
typedef struct program_calls {
    bool *functions; /* by text: whether it names one of them */
    bool is_known;
} program_calls;

static bool find_program_calls(const gmd_places *places, const file_kind *kinds,
                               program_calls *calls)
{
    const gmd_origins *origins = places->origins;
    *calls = (program_calls){calloc(gmd_origins_text_count(origins), sizeof *calls->functions), 0};
    for (uint32_t stack = 0; calls->functions && stack < gmd_origins_stack_count(origins);
         stack++) {
        size_t count;
        const uint32_t *frames = gmd_origins_stack(origins, stack, &count);
        if (is_main_program(places, outermost_frame(places, kinds, frames, count))) {
            calls->is_known = true;
            for (size_t i = 0; i < count; i++) {
                calls->functions[gmd_origins_frame(origins, frames[i]).function] = true;
            }
        }
    }
    return calls->functions != NULL;
}

/* The thread of backward() has no Python but what it calls itself; its C++ frames may be recorded.
 * It calls hooks of the user's: they begin a stack, which else the program's start does, or a
 * library that starts a thread. What the program calls itself, too, may be a stack that was cut. */
static unsigned parts_of_thread(const gmd_places *places, const file_kind *kinds,
                                const uint32_t *frames, size_t count, const program_calls *calls)
{
    uint32_t outermost = outermost_frame(places, kinds, frames, count);
    if (outermost != GMD_NO_PLACE) {
        const file_kind *kind = &kinds[gmd_origins_frame(places->origins, outermost).file];
        bool is_hook = kind->is_python && !kind->is_library && calls->is_known &&
                       !calls->functions[gmd_origins_frame(places->origins, outermost).function];
        return (kind->runs_backward || is_hook ? GMD_PART_BACKWARD : 0u) |
               (is_hook ? GMD_PART_HOOK : 0u);
    }
    for (size_t i = 0; i < count; i++) {
        if (strstr(function_of(places, frames[i]), "autograd::Engine")) {
            return GMD_PART_BACKWARD;
        }
    }
    return 0;
}

/* Parts that a stack has since the model was compiled: the autograd.Function that runs it is none
 * of the program's, and on the way back it is backward() itself. */
static unsigned parts_of_compiler(const gmd_places *places, const file_kind *kinds,
                                  const uint32_t *frames, size_t count, unsigned parts)
{
    for (size_t i = 0; i < count; i++) {
        if (kinds[gmd_origins_frame(places->origins, frames[i]).file].is_compiled) {
            return GMD_PART_FUNCTION |
                   (parts & GMD_PART_BACKWARD ? (unsigned)(GMD_PART_PYTHON | GMD_PART_INSIDE) : 0u);
        }
    }
    return 0;
}

static void classify_stacks(gmd_places *places, const file_kind *kinds, const program_calls *calls)
{
    for (uint32_t stack = 0; stack < gmd_origins_stack_count(places->origins); stack++) {
        size_t count;
        const uint32_t *frames = gmd_origins_stack(places->origins, stack, &count);
        uint16_t parts = parts_of_frames(places, kinds, frames, count);
        parts |= (uint16_t)parts_of_thread(places, kinds, frames, count, calls);
        parts &= (uint16_t)~parts_of_compiler(places, kinds, frames, count, parts);
        places->parts_of[stack] = parts;
        places->has_python = places->has_python || (parts & GMD_PART_PYTHON);
        places->has_frames = places->has_frames || count > 0;
        places->has_modules = places->has_modules || (parts & GMD_PART_MODULE);
        places->has_autograd =
            places->has_autograd || (parts & (GMD_PART_MODULE | GMD_PART_AUTOGRAD));
    }
    for (uint32_t stack = 0; stack < gmd_origins_stack_count(places->origins); stack++) {
        places->user_frame_of[stack] = user_frame(places, stack);
    }
    if (places->has_frames) {
        places->parts_of[0] = GMD_PART_BACKWARD;
    }
}

/* --- the whole ------------------------------------------------------------------------------- */

gmd_status gmd_places_make(gmd_places *places, const gmd_origins *origins, gmd_error *error)
{
    uint32_t stacks = gmd_origins_stack_count(origins);
    file_kind *kinds = calloc(gmd_origins_text_count(origins), sizeof *kinds);
    *places = (gmd_places){.origins = origins};
    places->is_library = calloc(gmd_origins_frame_count(origins), sizeof *places->is_library);
    places->user_frame_of = malloc(stacks * sizeof *places->user_frame_of);
    places->parts_of = malloc(stacks * sizeof *places->parts_of);
    program_calls calls = {0};
    bool ok = kinds && places->is_library && places->user_frame_of && places->parts_of;
    if (ok) {
        classify_frames(places, kinds);
        ok = find_program_calls(places, kinds, &calls);
    }
    if (ok) {
        classify_stacks(places, kinds, &calls);
    } else {
        gmd_places_free(places);
    }
    free(kinds);
    free(calls.functions);
    return ok ? GMD_OK : gmd_fail(error, GMD_NO_MEMORY, "no host memory for %u stacks", stacks);
}

void gmd_places_free(gmd_places *places)
{
    free(places->user_frame_of);
    free(places->parts_of);
    free(places->is_library);
    *places = (gmd_places){0};
}

void gmd_places_forget_frames(gmd_places *places)
{
    places->has_frames = places->has_python = false;
    places->has_modules = places->has_autograd = false;
    places->parts_of[0] = 0;
}

uint32_t gmd_places_frame(const gmd_places *places, uint32_t origin)
{
    return places->user_frame_of[gmd_origins_get(places->origins, origin).stack];
}

static bool is_python_frame(const gmd_places *places, uint32_t frame)
{
    uint32_t file = gmd_origins_frame(places->origins, frame).file;
    return ends_with(gmd_origins_text(places->origins, file, NULL), ".py");
}

uint32_t gmd_places_python_frame(const gmd_places *places, uint32_t stack)
{
    size_t count;
    const uint32_t *frames = gmd_origins_stack(places->origins, stack, &count);
    for (size_t i = 0; i < count; i++) {
        if (is_python_frame(places, frames[i])) {
            return frames[i];
        }
    }
    return GMD_NO_PLACE;
}

static bool calls_module(const gmd_places *places, uint32_t frame)
{
    uint32_t file = gmd_origins_frame(places->origins, frame).file;
    return gmd_is_path_end(gmd_origins_text(places->origins, file, NULL),
                           "torch/nn/modules/module.py");
}

bool gmd_places_are_same_calls(const gmd_places *places, uint32_t stack, uint32_t other)
{
    size_t counts[2], same = 0;
    bool is_python = false; /* operators have no frame of Python: all programs share those of C++ */
    const uint32_t *const of[2] = {gmd_origins_stack(places->origins, stack, &counts[0]),
                                   gmd_origins_stack(places->origins, other, &counts[1])};
    while (same < counts[0] && same < counts[1] && of[0][same] == of[1][same]) {
        is_python = is_python || is_python_frame(places, of[0][same]);
        same++;
    }
    for (int i = 0; i < 2; i++) {
        for (size_t at = same; at < counts[i]; at++) {
            if (calls_module(places, of[i][at])) {
                return false;
            }
        }
    }
    return is_python && same < counts[0] && same < counts[1] &&
           gmd_origins_frame(places->origins, of[0][same]).function !=
               gmd_origins_frame(places->origins, of[1][same]).function;
}

size_t gmd_places_callers_in(const gmd_places *places, uint32_t stack, uint32_t *callers,
                             size_t most)
{
    size_t count, found = 0;
    const uint32_t *frames = gmd_origins_stack(places->origins, stack, &count);
    bool is_outside = false;
    for (size_t i = 0; i < count && found < most; i++) {
        if (is_outside && !places->is_library[frames[i]]) {
            callers[found++] = frames[i];
        }
        is_outside = is_outside || frames[i] == places->user_frame_of[stack];
    }
    return found;
}

size_t gmd_places_callers(const gmd_places *places, uint32_t frame, uint32_t *callers, size_t most)
{
    uint32_t stack = 1, stacks = gmd_origins_stack_count(places->origins);
    while (stack < stacks && places->user_frame_of[stack] != frame) {
        stack++;
    }
    return stack < stacks && frame != GMD_NO_PLACE
               ? gmd_places_callers_in(places, stack, callers, most)
               : 0;
}

gmd_place gmd_places_get(const gmd_places *places, uint32_t frame)
{
    if (frame == GMD_NO_PLACE) {
        return (gmd_place){.file = "", .function = "", .is_library = true};
    }
    gmd_frame f = gmd_origins_frame(places->origins, frame);
    return (gmd_place){.file = gmd_origins_text(places->origins, f.file, NULL),
                       .function = gmd_origins_text(places->origins, f.function, NULL),
                       .line = f.line,
                       .is_library = places->is_library[frame]};
}

bool gmd_is_path_end(const char *path, const char *end)
{
    size_t length = strlen(path), end_length = strlen(end);
    return ends_with(path, end) && (length == end_length || path[length - end_length - 1] == '/');
}
