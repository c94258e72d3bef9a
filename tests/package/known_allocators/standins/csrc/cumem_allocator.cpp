// A stand-in for vLLM's source file: see README.md.
#include <Python.h>

static PyObject *g_python_malloc_callback = nullptr;
static PyObject *g_python_free_callback = nullptr;

extern "C" {

void *my_malloc(ssize_t size, int device, CUstream)
{
    void *memory = nullptr;
    if (cudaMalloc(&memory, static_cast<size_t>(size)) != cudaSuccess) {
        (void)cudaGetLastError();
        return nullptr;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    const unsigned long long values[] = {static_cast<unsigned long long>(device),
                                         static_cast<unsigned long long>(size),
                                         reinterpret_cast<unsigned long long>(memory), 0};
    PyObject *handle = PyTuple_New(4);
    for (Py_ssize_t i = 0; i < 4; ++i) {
        PyTuple_SetItem(handle, i, PyLong_FromUnsignedLongLong(values[i]));
    }
    PyObject_CallFunctionObjArgs(g_python_malloc_callback, handle, nullptr);
    Py_DECREF(handle);
    PyGILState_Release(state);
    return memory;
}

void my_free(void *memory, ssize_t, int, CUstream)
{
    unsigned long long values[4] = {};
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *address = PyLong_FromUnsignedLongLong(reinterpret_cast<unsigned long long>(memory));
    PyObject *handle = PyObject_CallFunctionObjArgs(g_python_free_callback, address, nullptr);
    if (handle) {
        PyArg_ParseTuple(handle, "KKKK", &values[0], &values[1], &values[2], &values[3]);
        (void)cudaFree(reinterpret_cast<void *>(values[2]));
    }
    Py_XDECREF(handle);
    Py_DECREF(address);
    PyGILState_Release(state);
}
}
