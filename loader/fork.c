#include "loader/fork.h"
#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

_Atomic uint32_t *kiln__fork_word_alloc(bool wiped) {
    void *page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return NULL;
    if (wiped) (void)madvise(page, page_size(), MADV_WIPEONFORK);
    return page;
}

void kiln__fork_word_free(_Atomic uint32_t *word) {
    if (word) munmap((void *)word, page_size());
}
