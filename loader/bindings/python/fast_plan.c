/* Plans: what a call of kiln.ops does, once its key is known. */
#include "loader/bindings/python/fast.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMS_MAX = 1024, STREAMS_MAX = 4 };

/* A result that the call makes. */
typedef struct output {
    size_t offset;   /* of its pointer in params */
    Py_ssize_t like; /* the argument that make takes; -1: it takes args and options */
    PyObject *make;
    PyObject *args;
    PyObject *options;
} output;

struct plan {
    int users; /* the table that has it, and calls that run by it */
    PyObject *description;
    PyObject *objects; /* in the key by their addresses */
    kiln_device *device;
    kiln_operator_call call;
    kiln_workspace_call workspace_size;
    PyObject *make_workspace; /* (bytes) -> an array */
    size_t workspace_offset, workspace_size_offset;
    const char *params;
    Py_ssize_t params_size;
    Py_ssize_t pointer_count, output_count, result_count;
    struct {
        size_t offset;
        Py_ssize_t argument;
    } pointers[ARGUMENTS_MAX];
    output outputs[OUTPUTS_MAX];
    Py_ssize_t results[ARGUMENTS_MAX]; /* outputs, and arguments counted from -1 down */
    size_t words;
    uint64_t key[];
};

PyObject *fast_check;

/* ---- Streams: each thread's own, borrowed ---- */

typedef struct stream_cache {
    kiln_stream streams[STREAMS_MAX];
    void *natives[STREAMS_MAX];
    bool programmatic[STREAMS_MAX];
    unsigned next;
} stream_cache;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t caches;
static _Thread_local bool programmatic;

void plan_set_programmatic(bool on) {
    programmatic = on;
}

static void close_streams(void *memory) {
    stream_cache *cache = memory;
    for (int i = 0; i < STREAMS_MAX; i++)
        kiln_stream_close(&cache->streams[i]);
    free(cache);
}

static void make_caches(void) {
    pthread_key_create(&caches, close_streams);
}

/* The cached stream, as the thread wants it now. */
static kiln_status stream_at(stream_cache *cache, unsigned place, kiln_stream **out_stream) {
    *out_stream = &cache->streams[place];
    if (cache->programmatic[place] == programmatic) return KILN_OK;
    kiln_status status = kiln_stream_set_programmatic(*out_stream, programmatic);
    if (!status) cache->programmatic[place] = programmatic;
    return status;
}

static kiln_status stream_of(kiln_device *device, void *native, kiln_stream **out_stream) {
    static _Thread_local stream_cache *cache;
    if (!cache) {
        pthread_once(&once, make_caches);
        cache = calloc(1, sizeof *cache);
        if (!cache) return KILN_ERROR_OUT_OF_MEMORY;
        pthread_setspecific(caches, cache);
    }
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        if (cache->streams[i].device == device && cache->natives[i] == native) return stream_at(cache, i, out_stream);
    unsigned place = cache->next++ % STREAMS_MAX;
    kiln_stream_close(&cache->streams[place]);
    cache->natives[place] = native;
    cache->programmatic[place] = false;
    kiln_status status = kiln_stream_borrow(device, native, &cache->streams[place]);
    return status ? status : stream_at(cache, place, out_stream);
}

/* ---- Plans ---- */

static bool read_pointers(plan *made, PyObject *pairs) {
    made->pointer_count = PyTuple_Size(pairs);
    if (made->pointer_count < 0 || made->pointer_count > ARGUMENTS_MAX) return false;
    for (Py_ssize_t i = 0; i < made->pointer_count; i++)
        if (!PyArg_ParseTuple(PyTuple_GetItem(pairs, i), "nn", &made->pointers[i].offset, &made->pointers[i].argument))
            return false;
    return true;
}

static bool read_outputs(plan *made, PyObject *outputs) {
    made->output_count = PyTuple_Size(outputs);
    if (made->output_count < 0 || made->output_count > OUTPUTS_MAX) return false;
    for (Py_ssize_t i = 0; i < made->output_count; i++) {
        output *one = &made->outputs[i];
        if (!PyArg_ParseTuple(PyTuple_GetItem(outputs, i), "nnOOO", &one->offset, &one->like, &one->make, &one->args,
                              &one->options))
            return false;
        if (one->options == Py_None) one->options = NULL;
    }
    return true;
}

static bool read_results(plan *made, PyObject *results) {
    made->result_count = PyTuple_Size(results);
    if (made->result_count < 0 || made->result_count > ARGUMENTS_MAX) return false;
    for (Py_ssize_t i = 0; i < made->result_count; i++)
        made->results[i] = PyLong_AsSsize_t(PyTuple_GetItem(results, i));
    return !PyErr_Occurred();
}

static bool read_description(plan *made, PyObject *description) {
    unsigned long long device, call, workspace_size;
    PyObject *pointers, *outputs, *results;
    if (!PyArg_ParseTuple(description, "KKKy#OOOOnn", &device, &call, &workspace_size, &made->params,
                          &made->params_size, &pointers, &outputs, &results, &made->make_workspace,
                          &made->workspace_offset, &made->workspace_size_offset))
        return false;
    made->device = (kiln_device *)(uintptr_t)device;
    made->call = (kiln_operator_call)(uintptr_t)call;
    made->workspace_size = (kiln_workspace_call)(uintptr_t)workspace_size;
    return made->params_size <= PARAMS_MAX && read_pointers(made, pointers) && read_outputs(made, outputs) &&
           read_results(made, results);
}

plan *plan_of(PyObject *description, const arguments *all, PyObject *const *values, PyObject *names) {
    plan *made = calloc(1, sizeof *made + all->words * sizeof *all->key);
    if (!made) return (plan *)PyErr_NoMemory();
    made->users = 1;
    Py_INCREF(description);
    made->description = description;
    made->words = all->words;
    memcpy(made->key, all->key, all->words * sizeof *all->key);
    made->objects = PyList_New(0);
    bool kept = made->objects && (!names || !PyList_Append(made->objects, names));
    for (Py_ssize_t i = 0; kept && i < all->count; i++)
        if (PyUnicode_CheckExact(values[i])) kept = !PyList_Append(made->objects, values[i]);
    if (kept && read_description(made, description)) return made;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "kiln: not a plan");
    plan_drop(made);
    return NULL;
}

bool plan_is_for(const plan *known, const arguments *all) {
    return known->words == all->words && !memcmp(known->key, all->key, all->words * sizeof *all->key);
}

void plan_drop(plan *known) {
    if (!known || --known->users) return;
    Py_XDECREF(known->objects);
    Py_XDECREF(known->description);
    free(known);
}

/* ---- Runs ---- */

static bool make_outputs(const plan *known, PyObject *const *values, char *params, PyObject **made) {
    for (Py_ssize_t i = 0; i < known->output_count; i++) {
        const output *one = &known->outputs[i];
        made[i] = one->like < 0 ? PyObject_Call(one->make, one->args, one->options)
                                : PyObject_CallFunctionObjArgs(one->make, values[one->like], NULL);
        void *data = made[i] ? array_data(made[i]) : NULL;
        if (!made[i] || PyErr_Occurred()) return false;
        memcpy(params + one->offset, &data, sizeof data);
    }
    return true;
}

/* Workspace of the arrays' library, whose allocator orders what it is used for next behind this call. False: with an
 * exception. */
static bool make_workspace(const plan *known, kiln_stream *stream, char *params, PyObject **out_array,
                           kiln_status *out_status) {
    size_t size = 0;
    *out_status = known->workspace_size(stream, params, (size_t)known->params_size, &size);
    if (*out_status || !size) return true;
    *out_array = PyObject_CallFunction(known->make_workspace, "n", (Py_ssize_t)size);
    void *data = *out_array ? array_data(*out_array) : NULL;
    if (!data) return false;
    memcpy(params + known->workspace_offset, &data, sizeof data);
    memcpy(params + known->workspace_size_offset, &size, sizeof size);
    return true;
}

static PyObject *result_of(const plan *known, PyObject *const *made, PyObject *const *values, Py_ssize_t i) {
    Py_ssize_t place = known->results[i];
    PyObject *result = place < 0 ? values[-1 - place] : made[place];
    Py_INCREF(result);
    return result;
}

static PyObject *results_of(const plan *known, PyObject *const *made, PyObject *const *values) {
    if (!known->result_count) Py_RETURN_NONE;
    if (known->result_count == 1) return result_of(known, made, values, 0);
    PyObject *all = PyTuple_New(known->result_count);
    for (Py_ssize_t i = 0; all && i < known->result_count; i++)
        PyTuple_SetItem(all, i, result_of(known, made, values, i));
    return all;
}

/* False: with an exception. */
static bool launch(const plan *known, const arguments *all, char *params, PyObject **out_workspace) {
    void *native = NULL;
    kiln_stream *stream;
    if (all->exchange && all->device_type != DLPACK_CPU &&
        all->exchange->current_stream(all->device_type, all->device_id, &native))
        return false;
    kiln_status status = stream_of(known->device, native, &stream);
    if (!status && known->workspace_size && !make_workspace(known, stream, params, out_workspace, &status))
        return false;
    if (!status) {
        PyThreadState *state = PyEval_SaveThread();
        status = known->call(stream, params, (size_t)known->params_size);
        PyEval_RestoreThread(state);
    }
    if (!status) return true;
    PyObject *nothing = PyObject_CallFunction(fast_check, "i", (int)status); /* raises */
    Py_XDECREF(nothing);
    return false;
}

PyObject *plan_run(plan *known, const arguments *all, PyObject *const *values) {
    union {
        char bytes[PARAMS_MAX];
        int64_t aligned;
    } params;
    PyObject *made[OUTPUTS_MAX] = {NULL}, *workspace = NULL, *result = NULL;
    known->users++;
    memcpy(params.bytes, known->params, (size_t)known->params_size);
    for (Py_ssize_t i = 0; i < known->pointer_count; i++)
        memcpy(params.bytes + known->pointers[i].offset, &all->data[known->pointers[i].argument], sizeof(void *));
    if (make_outputs(known, values, params.bytes, made) && launch(known, all, params.bytes, &workspace))
        result = results_of(known, made, values);
    for (Py_ssize_t i = 0; i < known->output_count; i++)
        Py_XDECREF(made[i]);
    Py_XDECREF(workspace);
    plan_drop(known);
    return result;
}
