/* kernels/common/matmul/matmul_blocks.h: however a launch is cut into spans, each tile is computed once, in one larger
 * block.
 */
#include "kernels/common/matmul/matmul_blocks.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum {
    MOST = 40,
    TALL = KILN_MATMUL_BLOCK_ROWS / KILN_MATMUL_LAUNCHED,
    WIDE = KILN_MATMUL_BLOCK_COLUMNS / KILN_MATMUL_LAUNCHED
};

static uint32_t random_below(uint32_t end) {
    static uint64_t state;
    if (!state) state = (uint64_t)time(NULL), print_message("# seed %llu\n", (unsigned long long)state);
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % end;
}

/* Marks the tiles of a rectangle, none of which may be marked. */
static void mark(uint8_t (*done)[MOST], kiln_matmul_rectangle r, uint64_t tile_rows, uint64_t tile_cols) {
    assert_true(r.rows && r.cols && r.row + r.rows <= tile_rows && r.col + r.cols <= tile_cols);
    assert_int_equal(r.row / TALL, (r.row + r.rows - 1) / TALL);
    assert_int_equal(r.col / WIDE, (r.col + r.cols - 1) / WIDE);
    for (uint64_t row = r.row; row < r.row + r.rows; row++)
        for (uint64_t col = r.col; col < r.col + r.cols; col++) {
            assert_int_equal(done[row][col], 0);
            done[row][col] = 1;
        }
}

static void test_each_tile_once(void **state) {
    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint8_t done[MOST][MOST] = {{0}};
        const uint32_t rows = 1 + random_below(MOST), cols = 1 + random_below(MOST), tiles = rows * cols;
        const uint32_t span = 1 + random_below(round % 2 ? tiles : 12);
        uint64_t counted = 0;
        for (uint64_t begin = 0; begin < tiles; begin += span) {
            const uint64_t end = kiln_matmul_least(begin + span, tiles);
            for (uint64_t tile = begin; tile < end;) {
                const kiln_matmul_rectangle r = kiln_matmul_rectangle_of(tile, end - tile, rows, cols);
                assert_true(r.rows * r.cols <= end - tile);
                mark(done, r, rows, cols);
                tile += r.rows * r.cols;
                counted += r.rows * r.cols;
            }
        }
        assert_int_equal(counted, tiles);
    }
}

/* A span that has whole blocks is cut into no less. */
static void test_whole_blocks(void **state) {
    (void)state;
    const kiln_matmul_rectangle r = kiln_matmul_rectangle_of(0, TALL * WIDE, 3 * TALL, 3 * WIDE);
    assert_true(r.rows == TALL && r.cols == WIDE);
    const kiln_matmul_rectangle below = kiln_matmul_rectangle_of(TALL * WIDE, 1000, 3 * TALL, 3 * WIDE);
    assert_true(below.row == TALL && below.col == 0 && below.rows == TALL && below.cols == WIDE);
    const kiln_matmul_rectangle right = kiln_matmul_rectangle_of(3 * TALL * WIDE, 1000, 3 * TALL, 3 * WIDE);
    assert_true(right.row == 0 && right.col == WIDE && right.rows == TALL && right.cols == WIDE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_tile_once),
        cmocka_unit_test(test_whole_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
