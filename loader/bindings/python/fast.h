/* Fast calls of kiln.ops: what a call was given, and what to do for it.
 *
 * The first call with arrays of such types, shapes, strides and places and with such options goes the way of Python
 * (kiln/_call.py), which also says what it did: a plan. The next call like it finds the plan by its key and does the
 * same, with other pointers. */
#ifndef KILN_PYTHON_FAST_H
#define KILN_PYTHON_FAST_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <kiln/ops.h>
#include <stdbool.h>

#include "loader/bindings/python/dlpack.h"

enum { ARGUMENTS_MAX = 24, KEY_MAX = 144, OUTPUTS_MAX = 12 };

/* The arguments of a call: where its arrays are, and the key, which is all else that matters. */
typedef struct arguments {
    Py_buffer buffers[ARGUMENTS_MAX]; /* of arrays with the buffer interface; obj is NULL: not such a one */
    void *data[ARGUMENTS_MAX];
    Py_ssize_t count;
    const dlpack_exchange *exchange; /* of arrays with DLPack's interface; NULL: there are none */
    int32_t device_type;             /* theirs */
    int32_t device_id;
    size_t words;
    uint64_t key[KEY_MAX];
} arguments;

/* Reads values, and the names of the last of them. False: such a call has no plan. Release what was read with
 * arguments_release in either case. */
bool arguments_read(arguments *all, PyObject *const *values, Py_ssize_t count, PyObject *names);
void arguments_release(arguments *all);

/* Where an array is that was just made; NULL, with an exception: it cannot be seen. */
void *array_data(PyObject *array);

/* register(type, capsule, records): arrays of this type are seen by DLPack's interface, or, with None, by that of
 * buffers; records() says whether gradients are recorded of those that require one. Returns whether it can be. */
PyObject *array_register(PyObject *module, PyObject *args);

/* What a call does. */
typedef struct plan plan;

/* From the tuple that kiln/_plan.py makes. NULL, with an exception: it is none. */
plan *plan_of(PyObject *description, const arguments *all, PyObject *const *values, PyObject *names);
bool plan_is_for(const plan *known, const arguments *all);
/* Frees it, unless a call runs by it: then when that has ended. */
void plan_drop(plan *known);
/* The call's result; NULL with an exception. */
PyObject *plan_run(plan *known, const arguments *all, PyObject *const *values);

uint64_t key_hash(const arguments *all);

/* Whether the kernels of this thread's calls may begin before those in front of them have ended. */
void plan_set_programmatic(bool on);

/* What raises a status. */
extern PyObject *fast_check;

#endif
