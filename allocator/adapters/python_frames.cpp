#include "python_frames.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

namespace
{

struct thread_state; // PyThreadState

template <typename Function> void find(Function *&function, const char *name)
{
    function = reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

// docs.python.org/3/c-api: frame, code, object and init.
struct python {
    const char *(*version)();
    thread_state *(*this_thread)();
    int (*take_lock)();
    void (*give_lock)(int state);
    python_object *(*frame_of)(thread_state *);
    python_object *(*outer)(python_object *frame);
    python_object *(*code_of)(python_object *frame);
    int (*instruction_of)(python_object *frame); // since 3.11
    int (*line_of)(python_object *frame);
    int (*line_at)(python_object *code, int instruction);
    python_object *(*attribute)(python_object *, const char *name);
    const char *(*text_of)(python_object *, ptrdiff_t *size);
    void (*take_error)(python_object **type, python_object **value, python_object **trace);
    void (*put_error)(python_object *type, python_object *value, python_object *trace);
    void (*retain)(python_object *);
    void (*release)(python_object *);

    python()
    {
        find(version, "Py_GetVersion");
        find(this_thread, "PyGILState_GetThisThreadState");
        find(take_lock, "PyGILState_Ensure");
        find(give_lock, "PyGILState_Release");
        find(frame_of, "PyThreadState_GetFrame");
        find(outer, "PyFrame_GetBack");
        find(code_of, "PyFrame_GetCode");
        find(instruction_of, "PyFrame_GetLasti");
        find(line_of, "PyFrame_GetLineNumber");
        find(line_at, "PyCode_Addr2Line");
        find(attribute, "PyObject_GetAttrString");
        find(text_of, "PyUnicode_AsUTF8AndSize");
        find(take_error, "PyErr_Fetch");
        find(put_error, "PyErr_Restore");
        find(retain, "Py_IncRef");
        find(release, "Py_DecRef");
    }

    bool is_found() const
    {
        return version && this_thread && take_lock && give_lock && frame_of && outer && code_of &&
               line_of && line_at && attribute && text_of && take_error && put_error && retain &&
               release;
    }
};

const python &the_python()
{
    static const python found;
    return found;
}

// --- frames where they lie -----------------------------------------------------------------------

// Offsets in CPython's structures (Include/internal/pycore_frame.h), of builds with its lock.
struct frame_layout {
    const char *version;
    uint16_t thread_frames;  // in PyThreadState: the innermost frame, or what has it
    int16_t innermost;       // in that; -1: it is the frame
    uint16_t code, previous; // in a frame
    uint16_t instruction;    // a pointer into the code; 3.10: half the offset
    int16_t owner;           // -1: there is none
    uint16_t instructions;   // in a code: the first
    uint16_t first_shown;    // in a code: half the offset of where Python begins to show a frame
};

constexpr frame_layout layouts[] = {
    {"3.10.", 24, -1, 32, 24, 96, -1, 0, 0},
    {"3.11.", 56, 8, 32, 48, 56, 69, 184, 168},
    {"3.12.", 56, 0, 0, 8, 56, 70, 192, 176},
    {"3.13.", 72, -1, 0, 8, 56, 70, 200, 184},
};

enum owner { GENERATOR = 1, C_STACK = 3 };

const frame_layout *layout_of(const python &p)
{
    const char *version = p.is_found() ? p.version() : "";
    if (sizeof(void *) != 8 || std::strstr(version, "free-threading")) {
        return nullptr;
    }
    for (const frame_layout &l : layouts) {
        if (std::strncmp(version, l.version, std::strlen(l.version)) == 0) {
            return &l;
        }
    }
    return nullptr;
}

struct plain_reads {
    template <typename Value> static bool read(const char *from, size_t offset, Value &value)
    {
        std::memcpy(&value, from + offset, sizeof value);
        return true;
    }
};

// Where nothing is mapped they fail: the kernel takes the bytes, and says so. process_vm_readv()
// would do, but is not allowed everywhere.
class careful_reads
{
  public:
    careful_reads() : is_made(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {}

    ~careful_reads()
    {
        if (is_made) {
            close(ends[0]);
            close(ends[1]);
        }
    }

    careful_reads(const careful_reads &) = delete;
    careful_reads &operator=(const careful_reads &) = delete;

    bool are_possible() const
    {
        return is_made;
    }

    template <typename Value> bool read(const char *from, size_t offset, Value &value) const
    {
        return write(ends[1], from + offset, sizeof value) == ssize_t{sizeof value} &&
               ::read(ends[0], &value, sizeof value) == ssize_t{sizeof value};
    }

  private:
    int ends[2];
    bool is_made;
};

// False: nothing is there.
template <typename Reads>
bool read_place(const Reads &reads, const frame_layout &l, const char *frame, python_place &place,
                bool &is_shown)
{
    const char *code = nullptr;
    uint8_t owner = 0;
    int64_t instruction = 0;
    if (!reads.read(frame, l.code, code)) {
        return false;
    }
    if (l.owner < 0) {
        int32_t half = 0;
        if (!reads.read(frame, l.instruction, half)) {
            return false;
        }
        instruction = int64_t{half} * 2;
    } else {
        const char *at = nullptr;
        if (!reads.read(frame, static_cast<size_t>(l.owner), owner) ||
            !reads.read(frame, l.instruction, at)) {
            return false;
        }
        instruction = static_cast<int64_t>(reinterpret_cast<uintptr_t>(at) -
                                           reinterpret_cast<uintptr_t>(code)) -
                      l.instructions;
    }
    place = {reinterpret_cast<python_object *>(const_cast<char *>(code)),
             static_cast<int32_t>(instruction), owner == GENERATOR ? IN_GENERATOR : AT_INSTRUCTION};
    is_shown = owner != C_STACK;
    return true;
}

template <typename Reads>
bool read_frames(const Reads &reads, const frame_layout l, const thread_state *thread,
                 python_walk &walk)
{
    const char *frame = nullptr;
    walk.count = 0;
    if (!reads.read(reinterpret_cast<const char *>(thread), l.thread_frames, frame) ||
        (l.innermost >= 0 && !reads.read(frame, static_cast<size_t>(l.innermost), frame))) {
        return false;
    }
    while (frame && walk.count < most_python_frames) {
        bool is_shown = true;
        if (!read_place(reads, l, frame, walk.places[walk.count], is_shown) ||
            !reads.read(frame, l.previous, frame)) {
            return false;
        }
        walk.count += is_shown;
    }
    return true;
}

// Python shows no frame whose code has not begun.
bool has_begun(const frame_layout &l, const python_place &place)
{
    int32_t first = 0;
    if (l.owner < 0 || place.kind == IN_GENERATOR) {
        return true;
    }
    plain_reads::read(reinterpret_cast<const char *>(place.code), l.first_shown, first);
    return place.at >= 2 * first;
}

// --- whether that is right -----------------------------------------------------------------------

// Frames are read where they lie once that gave, for some stacks, what Python's functions tell.
enum trust { UNKNOWN, TRUSTED, REFUSED };

std::atomic<int> trusted{UNKNOWN};
const frame_layout *known_layout; // set before `trusted`

bool is_same_walk(const python &p, const frame_layout &l, const python_walk &read,
                  python_object *const *frames, const python_place *taken, size_t count)
{
    size_t at = 0;
    bool is_same = true;
    for (size_t i = 0; i < read.count && is_same && at < count; i++) {
        python_object *code = read.places[i].code;
        is_same = code == taken[at].code;
        if (is_same && has_begun(l, read.places[i])) {
            is_same = (taken[at].kind == AT_LINE || taken[at].at == read.places[i].at) &&
                      p.line_at(code, read.places[i].at) == p.line_of(frames[at]);
            at++;
        }
    }
    return is_same && at == count;
}

// UNKNOWN: it was not possible to look, or what was read may be a part of the stack only. Python's
// lock is held.
trust judge(const python &p, const frame_layout *l, python_object *const *frames,
            const python_place *taken, size_t count)
{
    static python_walk read;
    const careful_reads reads;
    if (!l) {
        return REFUSED;
    }
    if (!reads.are_possible()) {
        return UNKNOWN;
    }
    if (!read_frames(reads, *l, p.this_thread(), read)) {
        return REFUSED;
    }
    if (read.count == most_python_frames) {
        return UNKNOWN;
    }
    return is_same_walk(p, *l, read, frames, taken, count) ? TRUSTED : REFUSED;
}

} // namespace

bool python_knows_this_thread()
{
    const python &p = the_python();
    return p.is_found() && p.this_thread();
}

bool python_reads_frames()
{
    return trusted.load(std::memory_order_acquire) == TRUSTED;
}

bool python_read_frames(python_walk &walk)
{
    return python_reads_frames() &&
           read_frames(plain_reads{}, *known_layout, the_python().this_thread(), walk);
}

// --- by Python's functions -----------------------------------------------------------------------

python_hold::python_hold() : lock(the_python().take_lock())
{
    the_python().take_error(&error[0], &error[1], &error[2]);
}

python_hold::~python_hold()
{
    const python &p = the_python();
    for (size_t i = 0; i < count; i++) {
        p.release(taken[i].code);
        p.release(frames[i]);
    }
    p.put_error(error[0], error[1], error[2]);
    p.give_lock(lock);
}

void python_hold::take_frames(python_walk &walk)
{
    const python &p = the_python();
    python_object *frame = p.frame_of(p.this_thread());
    while (frame && count < most_python_frames) {
        frames[count] = frame;
        taken[count++] = {p.code_of(frame),
                          p.instruction_of ? p.instruction_of(frame) : p.line_of(frame),
                          p.instruction_of ? AT_INSTRUCTION : AT_LINE};
        frame = p.outer(frame);
    }
    const bool is_whole = !frame;
    if (frame) {
        p.release(frame);
    }
    walk.count = count;
    std::copy(taken, taken + count, walk.places);
    if (trusted.load(std::memory_order_relaxed) == UNKNOWN && count && is_whole) {
        known_layout = layout_of(p);
        trusted.store(judge(p, known_layout, frames, taken, count), std::memory_order_release);
    }
}

namespace
{

void add_attribute(const python &p, python_object *of, const char *name, std::string &text)
{
    python_object *value = p.attribute(of, name);
    ptrdiff_t length = 0;
    const char *words = value ? p.text_of(value, &length) : nullptr;
    if (words) {
        text.append(words, static_cast<size_t>(length));
    }
    if (value) {
        p.release(value);
    }
}

} // namespace

std::string python_hold::words_of(const python_place &place) const
{
    const python &p = the_python();
    const python_place *known = std::find(taken, taken + count, place);
    int line = 0;
    if (known != taken + count) {
        line = p.line_of(frames[known - taken]);
    } else if (has_begun(*known_layout, place)) {
        line = p.line_at(place.code, place.at);
    } else {
        return "";
    }
    std::string text;
    add_attribute(p, place.code, "co_filename", text);
    text += ":" + std::to_string(std::max(0, line)) + ":";
    add_attribute(p, place.code, "co_name", text);
    return text;
}

void python_hold::keep(const python_place &place) const
{
    the_python().retain(place.code);
}
