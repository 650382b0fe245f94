/* Lists the instructions of a code object as the simulated driver decodes them, a line each: address, text.
 *
 *     instructions FILE PROCESSOR
 *
 * Exit status 1 if the file cannot be loaded, 3 if LLVM's disassembler is not here. */
#include "tests/sim/amdgcn/decode/amd_code.h"
#include "tests/sim/amdgcn/decode/amd_llvm.h"
#include <stdio.h>
#include <stdlib.h>

enum { FILE_MAX = 16 << 20 };

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE PROCESSOR\n", argv[0]);
        return 2;
    }
    const char *absent;
    if (!amd_llvm_present(&absent)) {
        fprintf(stderr, "%s\n", absent);
        return 3;
    }
    FILE *file = fopen(argv[1], "rb");
    uint8_t *bytes = malloc(FILE_MAX);
    if (!file || !bytes) {
        perror(argv[1]);
        return 1;
    }
    size_t size = fread(bytes, 1, FILE_MAX, file);
    fclose(file);
    char why[512];
    amd_program *program = amd_program_load(bytes, size, argv[2], why, sizeof why);
    free(bytes);
    if (!program) {
        fprintf(stderr, "%s: %s\n", argv[1], why);
        return 1;
    }
    for (uint32_t i = 0; i < program->op_count; i++)
        printf("0x%x %s\n", program->ops[i].address, program->ops[i].text);
    amd_program_free(program);
    return 0;
}
