/* kiln._fast: functions of kiln.ops that remember what they did, in the limited API of Python 3.11. */
#include "loader/bindings/python/fast.h"

#include <stdlib.h>
#include <string.h>

enum { PLANS = 256 }; /* of a function; one takes the place of another whose key has the same hash */

typedef struct function {
    PyMethodDef definition;
    PyObject *slow; /* (arrays, options) -> (result, plan or None) */
    plan **plans;   /* [PLANS], once there is one */
} function;

/* Keeps a plan; without one the next call goes the way of Python, too. */
static void keep(function *self, PyObject *description, const arguments *all, PyObject *const *values,
                 PyObject *names) {
    if (!self->plans) self->plans = calloc(PLANS, sizeof *self->plans);
    plan *made = self->plans ? plan_of(description, all, values, names) : NULL;
    PyErr_Clear();
    if (!made) return;
    plan **place = &self->plans[key_hash(all) % PLANS];
    plan_drop(*place);
    *place = made;
}

/* By the way of Python, which has registered the types of the arrays when it gives a plan. */
static PyObject *call_slowly(function *self, PyObject *const *values, Py_ssize_t by_place, PyObject *names,
                             arguments *all, bool known) {
    PyObject *arrays = PyTuple_New(by_place), *options = PyDict_New(), *answer = NULL, *result = NULL, *description;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    bool built = arrays && options;
    for (Py_ssize_t i = 0; built && i < by_place; i++) {
        Py_INCREF(values[i]);
        built = !PyTuple_SetItem(arrays, i, values[i]);
    }
    for (Py_ssize_t i = 0; built && i < named; i++)
        built = !PyDict_SetItem(options, PyTuple_GetItem(names, i), values[by_place + i]);
    if (built) answer = PyObject_CallFunctionObjArgs(self->slow, arrays, options, NULL);
    if (answer && PyArg_ParseTuple(answer, "OO", &result, &description)) {
        Py_INCREF(result);
        if (!known && description != Py_None) {
            arguments_release(all);
            known = arguments_read(all, values, by_place + named, names);
        }
        if (known && description != Py_None) keep(self, description, all, values, names);
    }
    Py_XDECREF(answer);
    Py_XDECREF(arrays);
    Py_XDECREF(options);
    return result;
}

static PyObject *call(PyObject *capsule, PyObject *const *values, Py_ssize_t by_place, PyObject *names) {
    function *self = PyCapsule_GetPointer(capsule, NULL);
    if (!self) return NULL;
    arguments all;
    bool known = arguments_read(&all, values, by_place + (names ? PyTuple_Size(names) : 0), names);
    plan *found = known && self->plans ? self->plans[key_hash(&all) % PLANS] : NULL;
    PyObject *result = found && plan_is_for(found, &all) ? plan_run(found, &all, values)
                                                         : call_slowly(self, values, by_place, names, &all, known);
    arguments_release(&all);
    return result;
}

static char *copied(const char *text) {
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

/* function(name, text, slow): it lives as long as the process, as a module's functions do. */
static PyObject *make_function(PyObject *module, PyObject *args) {
    const char *name, *text;
    PyObject *slow;
    (void)module;
    if (!PyArg_ParseTuple(args, "ssO", &name, &text, &slow)) return NULL;
    function *made = calloc(1, sizeof *made);
    if (!made) return PyErr_NoMemory();
    made->definition = (PyMethodDef){.ml_name = copied(name),
                                     .ml_meth = (PyCFunction)(void (*)(void))call,
                                     .ml_flags = METH_FASTCALL | METH_KEYWORDS,
                                     .ml_doc = copied(text)};
    Py_INCREF(slow);
    made->slow = slow;
    PyObject *capsule = PyCapsule_New(made, NULL, NULL);
    PyObject *result = capsule ? PyCFunction_NewEx(&made->definition, capsule, NULL) : NULL;
    Py_XDECREF(capsule);
    return result;
}

/* start(check): what raises a status. */
static PyObject *start(PyObject *module, PyObject *check) {
    (void)module;
    Py_INCREF(check);
    fast_check = check;
    Py_RETURN_NONE;
}

/* programmatic(on), for this thread. */
static PyObject *programmatic(PyObject *module, PyObject *on) {
    int truth = PyObject_IsTrue(on);
    (void)module;
    if (truth < 0) return NULL;
    plan_set_programmatic(truth);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"start", start, METH_O, NULL},
                                {"programmatic", programmatic, METH_O, NULL},
                                {"function", make_function, METH_VARARGS, NULL},
                                {"register", array_register, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "kiln._fast", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__fast(void) {
    return PyModule_Create(&definition);
}
