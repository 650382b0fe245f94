/* That a call of kiln's succeeds: else the test fails with the call, its status and the error's text. */
#ifndef KILN_TESTS_ASSERT_OK_H
#define KILN_TESTS_ASSERT_OK_H

#include <kiln/kiln.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define assert_ok(call)                                                                                            \
    do {                                                                                                           \
        const kiln_status assert_got = (call);                                                                     \
        if (assert_got != KILN_OK) fail_msg("%s: %s: %s", #call, kiln_status_text(assert_got), kiln_last_error()); \
    } while (0)

#endif
