// torch_frames.cpp - a thread's Python frames, taken through Python's C API, which is found by its
// symbols in the process: the hooks are built without Python. All of it is of the limited API
// (docs.python.org/3/c-api/frame.html).
#include "torch_symbols.h"

#include <algorithm>
#include <atomic>
#include <cstring>

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

struct text_room {
    char *text;
    size_t used, size;

    // False: it does not fit, and nothing is added.
    bool add(const char *what, size_t length)
    {
        if (length > size - used) {
            return false;
        }
        std::memcpy(text + used, what, length);
        used += length;
        return true;
    }
};

bool add_attribute(const python &p, object *of, const char *name, text_room &room)
{
    object *value = p.attribute(of, name);
    ptrdiff_t length = 0;
    const char *text = value ? p.text_of(value, &length) : nullptr;
    const bool is_added = text && room.add(text, static_cast<size_t>(length));
    if (value) {
        p.release(value);
    }
    return is_added;
}

bool add_frame(const python &p, object *frame, text_room &room)
{
    const size_t before = room.used;
    char line[32];
    const int length = std::snprintf(line, sizeof line, ":%d:", std::max(0, p.line_of(frame)));
    object *code = p.code_of(frame);
    const bool is_added = add_attribute(p, code, "co_filename", room) &&
                          room.add(line, static_cast<size_t>(length)) &&
                          add_attribute(p, code, "co_name", room) && room.add("\n", 1);
    p.release(code);
    room.used = is_added ? room.used : before;
    return is_added;
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
    text_room room = {text, 0, size};
    const int lock = p.take_lock();
    object *error[3] = {};
    p.take_error(&error[0], &error[1], &error[2]);
    object *frame = p.frame_of(p.this_thread());
    while (frame) {
        object *outer = add_frame(p, frame, room) ? p.outer(frame) : nullptr;
        p.release(frame);
        frame = outer;
    }
    p.put_error(error[0], error[1], error[2]);
    p.give_lock(lock);
    return room.used;
}

// Whether Python may be asked; not any more when it ends.
TORCH_EXPORT void gmd_torch_allow_python(int is_on)
{
    is_allowed.store(is_on != 0);
}
