/* A reader of device images of any kind, kernel by kernel, for kiln_image_inspect and kiln_image_verify. */
#ifndef KILN_LOADER_IMAGE_INSPECT_H
#define KILN_LOADER_IMAGE_INSPECT_H

#include "loader/image/cubin.h"
#include "loader/image/descriptor.h"
#include "loader/image/hsaco.h"
#include "loader/image/ptx.h"

typedef struct kiln__image_reader {
    kiln_image_kind kind;
    union {
        struct {
            kiln__cubin cubin;
            size_t cubin_cursor;
        };
        struct {
            kiln__hsaco hsaco;
            kiln__bytes hsaco_rest;
            kiln__elf hsaco_elf;
            kiln__elf_symbols hsaco_symbols;
        };
        struct {
            kiln__ptx ptx;
            kiln__ptx_place ptx_place;
        };
    };
} kiln__image_reader;

/* Recognises an image's format by its content and reads its properties. The bytes must outlive the reader.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_UNSUPPORTED (another format; the text names it and says what to
 * do). */
kiln_status kiln__image_open(const void *bytes, size_t size, kiln__image_reader *out_reader,
                             kiln_image_facts *out_facts);

/* Reads the next kernel; facts.kernel_count calls read all. Returns as kiln__image_open. */
kiln_status kiln__image_next(kiln__image_reader *reader, kiln_kernel_facts *out_kernel);

#endif
