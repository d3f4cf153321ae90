/* capture.c — see capture.h. */
#include "tests/support/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

void capture_begin(capture *c)
{
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        c->file[i] = tmpfile();
        assert_non_null(c->file[i]);
        c->kept[i] = dup(i + 1);
        dup2(fileno(c->file[i]), i + 1);
    }
}

void capture_end(capture *c)
{
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        char *text = i == 0 ? c->out : c->err;
        size_t size = i == 0 ? sizeof c->out : sizeof c->err;
        dup2(c->kept[i], i + 1);
        close(c->kept[i]);
        rewind(c->file[i]);
        text[fread(text, 1, size - 1, c->file[i])] = '\0';
        fclose(c->file[i]);
    }
}
