/* The arguments of a call of kiln.ops, read into a key. */
#include "loader/bindings/python/fast.h"

#include <string.h>

enum { TYPES_MAX = 8, FORMAT_MAX = 8 };

/* The first word of an argument in a key: what follows. */
enum { KEY_OBJECT = 1, KEY_INTEGER, KEY_REAL, KEY_BUFFER, KEY_TENSOR, KEY_NAMES };

/* Types of arrays. */
static struct {
    PyObject *type;
    const dlpack_exchange *exchange; /* NULL: the buffer interface */
    PyObject *records;               /* () -> whether gradients are recorded */
} types[TYPES_MAX];
static int type_count;

PyObject *array_register(PyObject *module, PyObject *args) {
    PyObject *type, *capsule, *records;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO", &type, &capsule, &records)) return NULL;
    for (int i = 0; i < type_count; i++)
        if (types[i].type == type) Py_RETURN_TRUE;
    dlpack_exchange *exchange = NULL;
    if (capsule != Py_None) {
        exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
        if (!exchange) return NULL;
        while (exchange && exchange->major != DLPACK_MAJOR)
            exchange = exchange->older;
        if (!exchange || !exchange->view) Py_RETURN_FALSE;
    }
    if (type_count == TYPES_MAX) Py_RETURN_FALSE;
    Py_INCREF(type);
    Py_INCREF(records);
    types[type_count].type = type;
    types[type_count].records = records;
    types[type_count++].exchange = exchange;
    Py_RETURN_TRUE;
}

static int type_of(PyObject *value) {
    for (int i = 0; i < type_count; i++)
        if ((PyObject *)Py_TYPE(value) == types[i].type) return i;
    return -1;
}

static bool push(arguments *all, uint64_t word) {
    if (all->words == KEY_MAX) return false;
    all->key[all->words++] = word;
    return true;
}

static bool push_all(arguments *all, const int64_t *numbers, int count) {
    for (int i = 0; i < count; i++)
        if (!push(all, (uint64_t)numbers[i])) return false;
    return true;
}

static bool push_object(arguments *all, const PyObject *value) {
    return push(all, KEY_OBJECT) && push(all, (uint64_t)(uintptr_t)value);
}

static bool read_buffer(arguments *all, PyObject *value) {
    Py_buffer *buffer = &all->buffers[all->count];
    if (PyObject_GetBuffer(value, buffer, PyBUF_RECORDS_RO)) {
        PyErr_Clear(); /* the way of Python knows more types of elements, or says what is wrong */
        buffer->obj = NULL;
        return false;
    }
    uint64_t format = 0;
    size_t length = buffer->format ? strlen(buffer->format) : 0;
    if (length > FORMAT_MAX) return false;
    if (length) memcpy(&format, buffer->format, length);
    all->data[all->count] = buffer->buf;
    return push(all, KEY_BUFFER | (uint64_t)buffer->ndim << 8 | (uint64_t)buffer->readonly << 16) &&
           push(all, format) && push_all(all, (const int64_t *)buffer->shape, buffer->ndim) &&
           push_all(all, (const int64_t *)buffer->strides, buffer->ndim);
}

static bool is_true(PyObject *answer) {
    bool yes = answer == Py_True;
    if (!answer) PyErr_Clear();
    Py_XDECREF(answer);
    return yes;
}

/* Whether gradients of a tensor are recorded. */
static bool records_gradient(PyObject *value, PyObject *records) {
    static PyObject *name;
    if (!name) name = PyUnicode_InternFromString("requires_grad");
    return is_true(name ? PyObject_GetAttr(value, name) : NULL) && is_true(PyObject_CallNoArgs(records));
}

static bool read_tensor(arguments *all, PyObject *value, int type) {
    const dlpack_exchange *exchange = types[type].exchange;
    dlpack_tensor tensor;
    if (records_gradient(value, types[type].records)) return false;
    if (exchange->view(value, &tensor)) {
        PyErr_Clear();
        return false;
    }
    all->exchange = exchange;
    all->device_type = tensor.device_type;
    all->device_id = tensor.device_id;
    all->data[all->count] = (char *)tensor.data + tensor.byte_offset;
    uint64_t element = (uint64_t)tensor.code << 16 | (uint64_t)tensor.bits << 24 | (uint64_t)tensor.lanes << 32;
    bool strided = tensor.strides;
    return push(all, KEY_TENSOR | (uint64_t)tensor.rank << 8 | element | (uint64_t)strided << 48) &&
           push(all, (uint64_t)(uint32_t)tensor.device_type << 32 | (uint32_t)tensor.device_id) &&
           push_all(all, tensor.shape, tensor.rank) && (!strided || push_all(all, tensor.strides, tensor.rank));
}

static bool read_value(arguments *all, PyObject *value) {
    if (value == Py_None || value == Py_True || value == Py_False || PyUnicode_CheckExact(value))
        return push_object(all, value);
    int type = type_of(value);
    if (type >= 0) return types[type].exchange ? read_tensor(all, value, type) : read_buffer(all, value);
    if (PyLong_CheckExact(value)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        return !overflow && push(all, KEY_INTEGER) && push(all, (uint64_t)number);
    }
    if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AsDouble(value);
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        return push(all, KEY_REAL) && push(all, bits);
    }
    return false;
}

bool arguments_read(arguments *all, PyObject *const *values, Py_ssize_t count, PyObject *names) {
    all->count = 0;
    all->words = 0;
    all->exchange = NULL;
    if (count > ARGUMENTS_MAX) return false;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (!push(all, KEY_NAMES | (uint64_t)count << 8 | (uint64_t)named << 16)) return false;
    for (Py_ssize_t i = 0; i < named; i++)
        if (!push_object(all, PyTuple_GetItem(names, i))) return false;
    for (; all->count < count; all->count++) {
        all->buffers[all->count].obj = NULL;
        all->data[all->count] = NULL;
        if (!read_value(all, values[all->count])) {
            all->count++; /* it may have a buffer */
            return false;
        }
    }
    return true;
}

void arguments_release(arguments *all) {
    for (Py_ssize_t i = 0; i < all->count; i++)
        if (all->buffers[i].obj) PyBuffer_Release(&all->buffers[i]);
}

void *array_data(PyObject *array) {
    int type = type_of(array);
    if (type >= 0 && types[type].exchange) {
        dlpack_tensor tensor;
        return types[type].exchange->view(array, &tensor) ? NULL : (char *)tensor.data + tensor.byte_offset;
    }
    Py_buffer buffer;
    if (PyObject_GetBuffer(array, &buffer, PyBUF_WRITABLE)) return NULL;
    void *data = buffer.buf;
    PyBuffer_Release(&buffer);
    return data;
}

/* FNV-1a, by words. */
uint64_t key_hash(const arguments *all) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < all->words; i++)
        hash = (hash ^ all->key[i]) * 0x100000001b3;
    return hash ^ hash >> 32;
}
