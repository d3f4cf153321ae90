/* guard.c — see guard.h. */
#include "tests/support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATTERN = 0xFF }; /* all ones: a NaN */

guarded guard_create(size_t bytes, guard_side side)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (bytes + page - 1) / page * page;
    guarded g = {.bytes = bytes, .mapping_bytes = inside + 2 * page};
    void *mapping = mmap(NULL, g.mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mapping != MAP_FAILED);
    g.mapping = mapping;
    if (inside > 0) {
        assert_int_equal(mprotect(g.mapping + page, inside, PROT_READ | PROT_WRITE), 0);
        memset(g.mapping + page, PATTERN, inside);
    }
    g.data = side == GUARD_BELOW ? g.mapping + page : g.mapping + page + inside - bytes;
    return g;
}

bool guard_intact(const guarded *g)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const unsigned char *first = g->mapping + page, *last = g->mapping + g->mapping_bytes - page;
    const unsigned char *data = g->data;
    for (const unsigned char *p = first; p < last; p++)
        if ((p < data || p >= data + g->bytes) && *p != PATTERN) return false;
    return true;
}

void guard_destroy(guarded *g)
{
    munmap(g->mapping, g->mapping_bytes);
    g->data = NULL;
}
