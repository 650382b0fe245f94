/* The end of an operator's description: see rows.h. */
#undef KILN_SUMMARY
#undef KILN_KERNEL
#undef KILN_PART
#undef KILN_PART_WITH_WORKSPACE
#undef KILN_TENSOR_OUT
#undef KILN_TENSOR_IN
#undef KILN_TENSOR_OPTIONAL
#undef KILN_TENSOR_OUT_OPTIONAL
#undef KILN_TENSOR_UPDATE
#undef KILN_SIZE
#undef KILN_SIZE_LEADING
#undef KILN_STRIDE
#undef KILN_OPTION
#undef KILN_INTEGER
#undef KILN_REAL
#undef KILN_WORKSPACE
