// python_frames.h - where the calling thread is in its Python program, and what that is in words.
//
// CPython is found by its symbols in the process: the hooks are built without it. Its own functions
// for frames make an object of each, and need Python's lock, which PyTorch gives away while it
// works. For the versions whose frames are known (3.10 to 3.13) they are read where they lie: a
// thread's frames change by that thread only, and each keeps its code alive.
#ifndef GMD_PYTHON_FRAMES_H
#define GMD_PYTHON_FRAMES_H

#include <cstddef>
#include <cstdint>
#include <string>

struct python_object; // PyObject

enum python_place_kind : int32_t {
    AT_INSTRUCTION,
    IN_GENERATOR, // likewise
    AT_LINE       // Python did not tell the instruction
};

struct python_place { // in a frame
    python_object *code;
    int32_t at; // offset in bytes, or the line
    python_place_kind kind;

    bool operator==(const python_place &other) const
    {
        return code == other.code && at == other.at && kind == other.kind;
    }
};

constexpr size_t most_python_frames = 128;

// The innermost frame first; outer ones beyond those that there is room for are left out.
struct python_walk {
    size_t count;
    python_place places[most_python_frames];
};

// Whether this thread may be asked: Python is there and knows it.
bool python_knows_this_thread();

// Whether frames are read where they lie: not where it is not known how, and not before
// python_hold::take_frames has found that right.
bool python_reads_frames();

// Reads them: no reference is taken, and no lock is needed. False: they are not read.
bool python_read_frames(python_walk &walk);

// Python's lock, and its functions. An exception that is on its way is put aside. Python's code may
// run meanwhile, the garbage collector's say, and other threads.
class python_hold
{
  public:
    python_hold();
    ~python_hold();
    python_hold(const python_hold &) = delete;
    python_hold &operator=(const python_hold &) = delete;

    // By Python's own functions. The frames and codes live as long as this object.
    void take_frames(python_walk &walk);

    // FILE:LINE:FUNCTION; "" where Python itself shows no frame. `at`: in the walk that was taken
    // here, or any place that was read.
    std::string words_of(const python_place &place) const;

    // The code lives for good, and its address is no other's.
    void keep(const python_place &place) const;

  private:
    int lock;
    python_object *error[3] = {};
    size_t count = 0; // of frames that were taken
    python_object *frames[most_python_frames];
    python_place taken[most_python_frames];
};

#endif
