// cumem.cpp - vLLM's cumem allocator (sleep mode) behind gmd's ABI: csrc/cumem_allocator.cpp of
// vLLM's sources, compiled in here. That keeps its books in Python; the two functions of
// vllm/device_allocator/cumem.py have a stand-in below, and so has the part of Python that carries
// them: the first keeps what it is told, the second waits for the block's device and hands it back.
#include "adapter.hpp"

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <utility>

// --- the part of Python ------------------------------------------------------------------------

using Py_ssize_t = ssize_t;
using PyGILState_STATE = int;
struct PyObject {
    unsigned long long values[4];
    PyObject *(*call)(PyObject *argument);
};
using PyCFunction = PyObject *(*)(PyObject *, PyObject *);
struct PyMethodDef {
    const char *name;
    PyCFunction function;
    int flags;
    const char *about;
};
struct PyModuleDef {
    int base;
    const char *name, *about;
    Py_ssize_t size;
    PyMethodDef *methods;
};
#define PyModuleDef_HEAD_INIT 0
#define METH_VARARGS          1
#define PyMODINIT_FUNC        PyObject *
#define Py_RETURN_NONE        return nullptr
static PyObject *const PyExc_TypeError = nullptr, *const PyExc_RuntimeError = nullptr;

namespace
{
std::recursive_mutex interpreter; // Python's lock
inline PyObject *PyLong_FromUnsignedLongLong(unsigned long long value)
{
    return new PyObject{{value, 0, 0, 0}, nullptr};
}
inline PyObject *PyTuple_New(Py_ssize_t)
{
    return new PyObject{};
}
inline int PyTuple_SetItem(PyObject *tuple, Py_ssize_t at, PyObject *item)
{
    tuple->values[at] = item->values[0];
    delete item;
    return 0;
}
// Lists are for another vendor's devices.
inline PyObject *PyList_New(Py_ssize_t)
{
    return nullptr;
}
inline int PyList_SetItem(PyObject *, Py_ssize_t, PyObject *)
{
    return -1;
}
inline int PyTuple_Check(PyObject *)
{
    return 1;
}
inline Py_ssize_t PyTuple_Size(PyObject *)
{
    return 4;
}
inline PyObject *PyObject_CallFunctionObjArgs(PyObject *callee, PyObject *argument, void *)
{
    return callee->call(argument);
}
inline int PyCallable_Check(PyObject *object)
{
    return object->call != nullptr;
}
// Four numbers ("KKKK"); two objects are never asked for here.
template <class... Values> int PyArg_ParseTuple(PyObject *tuple, const char *, Values... to)
{
    int at = 0;
    if constexpr (sizeof...(to) == 4) {
        ((*to = tuple->values[at++]), ...);
    }
    return at;
}
inline void Py_DECREF(PyObject *object)
{
    delete object;
}
inline void Py_XDECREF(PyObject *object)
{
    delete object;
}
inline PyGILState_STATE PyGILState_Ensure()
{
    interpreter.lock();
    return 0;
}
inline void PyGILState_Release(PyGILState_STATE)
{
    interpreter.unlock();
}
inline void PyErr_Print() {}
inline void PyErr_SetString(PyObject *, const char *) {}
inline PyObject *PyModule_Create(PyModuleDef *)
{
    return nullptr;
}
} // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-function-type"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wwrite-strings"
#include <cumem_allocator.cpp>
#pragma GCC diagnostic pop

// --- vllm/device_allocator/cumem.py --------------------------------------------------------------

namespace
{
auto &handles = *new std::map<unsigned long long, PyObject>; // of the blocks, by their address

PyObject *note_block(PyObject *handle)
{
    static PyObject none{};
    handles[handle->values[2]] = *handle;
    return &none;
}

PyObject *forget_block(PyObject *address)
{
    auto found = handles.find(address->values[0]);
    if (found == handles.end()) {
        return nullptr;
    }
    auto *handle = new PyObject(found->second);
    handles.erase(found);
    adapter::device_scope scope(static_cast<int>(handle->values[0]));
    (void)adapter::succeeded([] { return cudaDeviceSynchronize(); });
    return handle;
}

PyObject noting{{}, note_block}, forgetting{{}, forget_block};

// As PyTorch's pool asks, whose segments it serves.
ssize_t segment_of(size_t size)
{
    const size_t part = size_t{2} << 20;
    return static_cast<ssize_t>(size > SIZE_MAX - part ? size : (size + part - 1) / part * part);
}
} // namespace

extern "C" {

void gmd_init(int)
{
    g_python_malloc_callback = &noting;
    g_python_free_callback = &forgetting;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    adapter::device_scope scope(device);
    adapter::failure.clear();
    return scope.is_set() ? my_malloc(segment_of(size), device, stream) : nullptr;
}

void gmd_free(void *memory, size_t size, int device, cudaStream_t stream)
{
    adapter::device_scope scope(device);
    if (memory && scope.is_set()) {
        my_free(memory, segment_of(size), device, stream);
    }
}

// There is no cache: each block goes back to the device.
void gmd_empty_cache(void) {}
}
