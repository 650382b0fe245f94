/* What the HSA runtime answers, at the border: the vendor's name and number stay in the text, and what a caller can act
 * upon has a status of its own. */
#include "loader/rocm/rocm_driver.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* From hsa.h and hsa_ext_amd.h of ROCr, by hand. */
static const struct {
    uint32_t number;
    const char *name;
    kiln_status status;
} statuses[] = {
    {0x1000, "HSA_STATUS_ERROR", KILN_ERROR_DRIVER},
    {0x1001, "HSA_STATUS_ERROR_INVALID_ARGUMENT", KILN_ERROR_DRIVER},
    {0x1002, "HSA_STATUS_ERROR_INVALID_QUEUE_CREATION", KILN_ERROR_DRIVER},
    {0x1003, "HSA_STATUS_ERROR_INVALID_ALLOCATION", KILN_ERROR_OUT_OF_MEMORY},
    {0x1004, "HSA_STATUS_ERROR_INVALID_AGENT", KILN_ERROR_DRIVER},
    {0x1005, "HSA_STATUS_ERROR_INVALID_REGION", KILN_ERROR_DRIVER},
    {0x1006, "HSA_STATUS_ERROR_INVALID_SIGNAL", KILN_ERROR_DRIVER},
    {0x1007, "HSA_STATUS_ERROR_INVALID_QUEUE", KILN_ERROR_DRIVER},
    {0x1008, "HSA_STATUS_ERROR_OUT_OF_RESOURCES", KILN_ERROR_OUT_OF_MEMORY},
    {0x1009, "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT", KILN_ERROR_DRIVER},
    {0x100a, "HSA_STATUS_ERROR_RESOURCE_FREE", KILN_ERROR_DRIVER},
    {0x100b, "HSA_STATUS_ERROR_NOT_INITIALIZED", KILN_ERROR_DRIVER},
    {0x100c, "HSA_STATUS_ERROR_REFCOUNT_OVERFLOW", KILN_ERROR_DRIVER},
    {0x100d, "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS", KILN_ERROR_NO_IMAGE},
    {0x100e, "HSA_STATUS_ERROR_INVALID_INDEX", KILN_ERROR_DRIVER},
    {0x100f, "HSA_STATUS_ERROR_INVALID_ISA", KILN_ERROR_DRIVER},
    {0x1010, "HSA_STATUS_ERROR_INVALID_CODE_OBJECT", KILN_ERROR_NO_IMAGE},
    {0x1011, "HSA_STATUS_ERROR_INVALID_EXECUTABLE", KILN_ERROR_DRIVER},
    {0x1012, "HSA_STATUS_ERROR_FROZEN_EXECUTABLE", KILN_ERROR_DRIVER},
    {0x1013, "HSA_STATUS_ERROR_INVALID_SYMBOL_NAME", KILN_ERROR_NOT_FOUND},
    {0x1014, "HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED", KILN_ERROR_DRIVER},
    {0x1015, "HSA_STATUS_ERROR_VARIABLE_UNDEFINED", KILN_ERROR_UNSUPPORTED},
    {0x1016, "HSA_STATUS_ERROR_EXCEPTION", KILN_ERROR_DRIVER},
    {0x1017, "HSA_STATUS_ERROR_INVALID_ISA_NAME", KILN_ERROR_DRIVER},
    {0x1018, "HSA_STATUS_ERROR_INVALID_CODE_SYMBOL", KILN_ERROR_DRIVER},
    {0x1019, "HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL", KILN_ERROR_DRIVER},
    {0x1020, "HSA_STATUS_ERROR_INVALID_FILE", KILN_ERROR_DRIVER},
    {0x1021, "HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER", KILN_ERROR_DRIVER},
    {0x1022, "HSA_STATUS_ERROR_INVALID_CACHE", KILN_ERROR_DRIVER},
    {0x1023, "HSA_STATUS_ERROR_INVALID_WAVEFRONT", KILN_ERROR_DRIVER},
    {0x1024, "HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP", KILN_ERROR_DRIVER},
    {0x1025, "HSA_STATUS_ERROR_INVALID_RUNTIME_STATE", KILN_ERROR_DRIVER},
    {0x1026, "HSA_STATUS_ERROR_FATAL", KILN_ERROR_DRIVER},
    {40, "HSA_STATUS_ERROR_INVALID_MEMORY_POOL", KILN_ERROR_DRIVER},
    {41, "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION", KILN_ERROR_DEVICE_LOST},
    {42, "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION", KILN_ERROR_DEVICE_LOST},
    {43, "HSA_STATUS_ERROR_MEMORY_FAULT", KILN_ERROR_DEVICE_LOST},
    {44, "HSA_STATUS_CU_MASK_REDUCED", KILN_ERROR_DRIVER},
    {45, "HSA_STATUS_ERROR_OUT_OF_REGISTERS", KILN_ERROR_DRIVER},
};

static void each_status_keeps_its_name_and_number(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        char text[128];
        snprintf(text, sizeof text, "hsa_call: %s (0x%x)", statuses[i].name, (unsigned)statuses[i].number);
        assert_int_equal(kiln__rocm_fail(NULL, "hsa_call", statuses[i].number), statuses[i].status);
        assert_string_equal(kiln_last_error(), text);
    }
    assert_int_equal(kiln__rocm_fail(NULL, "hsa_call", 0x2345), KILN_ERROR_DRIVER);
    assert_string_equal(kiln_last_error(), "hsa_call: an error that kiln does not know (0x2345)");
}

/* No row of the list stays without one here. */
static void every_status_of_the_list_is_expected(void **state) {
    (void)state;
    static const uint32_t listed[] = {
#define KILN_ROCM_ERROR(name, number, status) number,
#include "loader/rocm/rocm_errors.def"
#undef KILN_ROCM_ERROR
    };
    assert_int_equal(sizeof listed / sizeof *listed, sizeof statuses / sizeof *statuses);
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        assert_int_equal(listed[i], statuses[i].number);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_status_keeps_its_name_and_number),
        cmocka_unit_test(every_status_of_the_list_is_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
