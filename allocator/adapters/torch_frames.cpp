// torch_frames.cpp - a thread's Python frames, taken through Python's C API, which is found by its
// symbols in the process: the hooks are built without Python (docs.python.org/3/c-api/frame.html).
//
// Most requests come from where earlier ones came from: the text of a stack is made once, and found
// again by what it is made of, the code and the instruction of each frame.
#include "torch_symbols.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

struct object;       // PyObject
struct thread_state; // PyThreadState

template <typename Function> void find(Function *&function, const char *name)
{
    function = reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

struct python {
    thread_state *(*this_thread)();
    int (*take_lock)();
    void (*give_lock)(int state);
    object *(*frame_of)(thread_state *);
    object *(*outer)(object *frame);
    object *(*code_of)(object *frame);
    int (*instruction_of)(object *frame); // since 3.11
    int (*line_of)(object *frame);
    object *(*attribute)(object *, const char *name);
    const char *(*text_of)(object *, ptrdiff_t *size);
    void (*take_error)(object **type, object **value, object **trace);
    void (*put_error)(object *type, object *value, object *trace);
    void (*release)(object *);

    python()
    {
        find(this_thread, "PyGILState_GetThisThreadState");
        find(take_lock, "PyGILState_Ensure");
        find(give_lock, "PyGILState_Release");
        find(frame_of, "PyThreadState_GetFrame");
        find(outer, "PyFrame_GetBack");
        find(code_of, "PyFrame_GetCode");
        find(instruction_of, "PyFrame_GetLasti");
        find(line_of, "PyFrame_GetLineNumber");
        find(attribute, "PyObject_GetAttrString");
        find(text_of, "PyUnicode_AsUTF8AndSize");
        find(take_error, "PyErr_Fetch");
        find(put_error, "PyErr_Restore");
        find(release, "Py_DecRef");
    }

    bool is_found() const
    {
        return this_thread && take_lock && give_lock && frame_of && outer && code_of && line_of &&
               attribute && text_of && take_error && put_error && release;
    }
};

const python &the_python()
{
    static const python found;
    return found;
}

// --- one stack -----------------------------------------------------------------------------------

constexpr size_t most_frames = 128;

struct place { // in a frame
    object *code;
    int instruction;

    bool operator==(const place &other) const
    {
        return code == other.code && instruction == other.instruction;
    }
};

struct taken_stack {
    object *frames[most_frames]; // innermost first; references of ours, and so is each code
    place places[most_frames];
    size_t count = 0;
};

void take_frames(const python &p, taken_stack &s)
{
    object *frame = p.frame_of(p.this_thread());
    while (frame && s.count < most_frames) {
        s.frames[s.count] = frame;
        s.places[s.count++] = {p.code_of(frame),
                               p.instruction_of ? p.instruction_of(frame) : p.line_of(frame)};
        frame = p.outer(frame);
    }
    if (frame) {
        p.release(frame);
    }
}

void add_attribute(const python &p, object *of, const char *name, std::string &text)
{
    object *value = p.attribute(of, name);
    ptrdiff_t length = 0;
    const char *words = value ? p.text_of(value, &length) : nullptr;
    if (words) {
        text.append(words, static_cast<size_t>(length));
    }
    if (value) {
        p.release(value);
    }
}

std::string text_of(const python &p, const taken_stack &s)
{
    std::string text;
    for (size_t i = 0; i < s.count; i++) {
        add_attribute(p, s.places[i].code, "co_filename", text);
        text += ":" + std::to_string(std::max(0, p.line_of(s.frames[i]))) + ":";
        add_attribute(p, s.places[i].code, "co_name", text);
        text += "\n";
    }
    return text;
}

// --- those that are known ------------------------------------------------------------------------

struct stack_key {
    std::vector<place> places;

    bool operator==(const stack_key &other) const
    {
        return places == other.places;
    }
};

struct hash_of_key {
    size_t operator()(const stack_key &key) const
    {
        size_t hash = key.places.size();
        for (const place &p : key.places) {
            hash = (hash ^ reinterpret_cast<uintptr_t>(p.code) ^
                    static_cast<size_t>(p.instruction) << 48) *
                   0x9e3779b97f4a7c15u;
            hash ^= hash >> 29;
        }
        return hash;
    }
};

// A known stack keeps its codes: no other can come to lie at their addresses. Read and written with
// Python's lock. Never destroyed, for blocks are freed at the very end.
constexpr size_t most_stacks = 1 << 16;

struct known_stacks {
    std::mutex lock; // Python may be built without its own
    std::unordered_map<stack_key, std::string, hash_of_key> texts;
};

known_stacks &the_known()
{
    static auto &known = *new known_stacks;
    return known;
}

// Gives the references of the frames back, and those of the codes unless a known stack has them.
void release(const python &p, const taken_stack &s, bool is_kept)
{
    for (size_t i = 0; i < s.count; i++) {
        p.release(s.frames[i]);
        if (!is_kept) {
            p.release(s.places[i].code);
        }
    }
}

// Whole lines only: outer frames that do not fit are left out.
size_t copy_lines(const std::string &from, char *text, size_t size)
{
    size_t length = from.size();
    if (length > size) {
        const size_t end = from.rfind('\n', size - 1);
        length = size == 0 || end == std::string::npos ? 0 : end + 1;
    }
    std::memcpy(text, from.data(), length);
    return length;
}

size_t take_stack(const python &p, char *text, size_t size)
{
    taken_stack s;
    take_frames(p, s);
    stack_key key = {std::vector<place>(s.places, s.places + s.count)};
    known_stacks &known = the_known();
    bool is_known = false;
    size_t known_length = 0;
    {
        const std::lock_guard<std::mutex> hold(known.lock);
        const auto found = known.texts.find(key);
        is_known = found != known.texts.end();
        known_length = is_known ? copy_lines(found->second, text, size) : 0;
    }
    if (is_known) {
        release(p, s, false);
        return known_length;
    }
    std::string made = text_of(p, s); // not under the lock: Python may let others in
    const size_t length = copy_lines(made, text, size);
    bool is_kept = false;
    {
        const std::lock_guard<std::mutex> hold(known.lock);
        is_kept = known.texts.size() < most_stacks &&
                  known.texts.emplace(std::move(key), std::move(made)).second;
    }
    release(p, s, is_kept);
    return length;
}

std::atomic<bool> is_allowed;

} // namespace

// The current thread's frames as gmd_stack_source wants them. A thread that Python does not know
// has none. Blocks are freed while an exception is on its way, too: it is put aside.
TORCH_EXPORT size_t gmd_torch_python_stack(void *context, char *text, size_t size)
{
    (void)context;
    const python &p = the_python();
    if (!is_allowed.load() || !p.is_found() || !p.this_thread()) {
        return 0;
    }
    const int lock = p.take_lock();
    object *error[3] = {};
    p.take_error(&error[0], &error[1], &error[2]);
    const size_t length = take_stack(p, text, size);
    p.put_error(error[0], error[1], error[2]);
    p.give_lock(lock);
    return length;
}

// Whether Python may be asked; not any more when it ends.
TORCH_EXPORT void gmd_torch_allow_python(int is_on)
{
    is_allowed.store(is_on != 0);
}
