/* The rows of an operator's description, <op>.def, from which the program, the documentation, the bindings and the
 * build take what they need. An includer defines the rows that it wants; this header makes the others empty, and
 * rows_end.h undefines all of them. A row stands on one line, since scripts read KILN_KERNEL rows too.
 *
 * KILN_SUMMARY(text)                         what it computes
 * KILN_KERNEL(name)                          an entry point, kiln_<name>_<part>; in the order of a part's kernel list
 * KILN_TUNED_KERNEL(name)                    the same, which only tuned images have
 * KILN_PART(part)                            a typed function, kiln_<op>_<part>
 * KILN_PART_WITH_WORKSPACE(part)             the same, with kiln_<op>_<part>_workspace_size
 *
 * Fields of kiln_<op>_params, in the order of help:
 * KILN_TENSOR_OUT(name, dtype, shape, text)  dtype "part", fixed ("i32"), or the option whose choice it is
 *                                            ("index_type"); shape: names of sizes, "rows,cols", with
 *                                            factors, additions and divisors, "2*cols", "batch+1", "k/2",
 *                                            "gated*n" (an option: n for its first choice, 2*n for its second),
 *                                            "k/group" (a field of which 0 means k); "a|b": b where an optional
 *                                            input is left out; "option:a|b": a for the option's first choice
 * KILN_TENSOR_IN(name, dtype, shape, text)
 * KILN_TENSOR_INTEGERS(name, dtype, shape, integers, text)
 *                                            the same, of indices or lengths; integers says which ones benches give:
 *                                            "<rows": random ones below rows; "=rows": rows each; "/rows": ascending
 *                                            ones below rows, in each row anew; "//rows": in all rows together. What
 *                                            stands for rows has the form of follows, below
 * KILN_TENSOR_OPTIONAL(name, dtype, shape, text)      an input that may be NULL
 * KILN_TENSOR_OR(name, other, dtype, shape, text)     an input that may be NULL where the optional `other` is given
 * KILN_TENSOR_OUT_OPTIONAL(name, dtype, shape, text)  an output that may be NULL
 * KILN_TENSOR_UPDATE(name, dtype, shape, text)        a part of it is written, the rest stays
 * KILN_SIZE(name, typical, text)             int64_t, taken from the shapes; typical is for benches, 0 for those,
 *                                            all equal, that make the tensors as large as is asked for
 * KILN_SIZE_LEADING(name, typical, tensor, text)      the same; where no tensor's shape has it, the first of the
 *                                            leading dimensions of that tensor, of which there must be several: else 1
 * KILN_SIZE_OF(name, typical, follows, text) the same; benches take it from another size: "rows", "128*rows/128",
 *                                            "nodes*batch" or "4*rows/64+4*batch", where what is divided is rounded
 *                                            up; "option:a|b|c": one for each choice
 * KILN_STRIDE(name, tensor, text)            int64_t, elements between rows of the tensor
 * KILN_OPTION(name, choices, text)           int32_t; choices by name in the order of their numbers: "erf,tanh,quick"
 * KILN_INTEGER(name, text)                   int64_t
 * KILN_REAL(name, text)                      float
 * KILN_WORKSPACE(name, size_name, text)      device memory of the caller, and the field with its bytes */
#ifndef KILN_SUMMARY
#define KILN_SUMMARY(text)
#endif
#ifndef KILN_KERNEL
#define KILN_KERNEL(name)
#endif
#ifndef KILN_TUNED_KERNEL
#define KILN_TUNED_KERNEL(name) KILN_KERNEL(name)
#endif
#ifndef KILN_PART
#define KILN_PART(part)
#endif
#ifndef KILN_PART_WITH_WORKSPACE
#define KILN_PART_WITH_WORKSPACE(part) KILN_PART(part)
#endif
#ifndef KILN_TENSOR_OUT
#define KILN_TENSOR_OUT(name, dtype, shape, text)
#endif
#ifndef KILN_TENSOR_IN
#define KILN_TENSOR_IN(name, dtype, shape, text)
#endif
#ifndef KILN_TENSOR_INTEGERS
#define KILN_TENSOR_INTEGERS(name, dtype, shape, integers, text) KILN_TENSOR_IN(name, dtype, shape, text)
#endif
#ifndef KILN_TENSOR_OPTIONAL
#define KILN_TENSOR_OPTIONAL(name, dtype, shape, text)
#endif
#ifndef KILN_TENSOR_OR
#define KILN_TENSOR_OR(name, other, dtype, shape, text)
#endif
#ifndef KILN_TENSOR_OUT_OPTIONAL
#define KILN_TENSOR_OUT_OPTIONAL(name, dtype, shape, text)
#endif
#ifndef KILN_TENSOR_UPDATE
#define KILN_TENSOR_UPDATE(name, dtype, shape, text)
#endif
#ifndef KILN_SIZE
#define KILN_SIZE(name, typical, text)
#endif
#ifndef KILN_SIZE_LEADING
#define KILN_SIZE_LEADING(name, typical, tensor, text)
#endif
#ifndef KILN_SIZE_OF
#define KILN_SIZE_OF(name, typical, follows, text)
#endif
#ifndef KILN_STRIDE
#define KILN_STRIDE(name, tensor, text)
#endif
#ifndef KILN_OPTION
#define KILN_OPTION(name, choices, text)
#endif
#ifndef KILN_INTEGER
#define KILN_INTEGER(name, text)
#endif
#ifndef KILN_REAL
#define KILN_REAL(name, text)
#endif
#ifndef KILN_WORKSPACE
#define KILN_WORKSPACE(name, size_name, text)
#endif
