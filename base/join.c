/* join.c — see text.h. Items beyond the buffer are counted. The last items give way if the count needs the space. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

static void write_omitted(bs_join *list)
{
    list->used = list->safe_used;
    snprintf(list->text + list->used, list->size - list->used, "%s%zu more",
             list->safe_count > 0 ? " \xE2\x80\xA6 and " : "", list->omitted);
}

void bs_join_begin(bs_join *list, char *buffer, size_t size)
{
    *list = (bs_join){.text = buffer, .separator = ", ", .size = size};
    buffer[0] = '\0';
}

void bs_join_omit(bs_join *list)
{
    if (list->omitted == 0) list->omitted = list->count - list->safe_count;
    list->omitted++;
    write_omitted(list);
}

void bs_join_add(bs_join *list, const char *format, ...)
{
    if (list->omitted > 0) {
        bs_join_omit(list);
        return;
    }
    size_t space = list->size - list->used;
    int prefix = snprintf(list->text + list->used, space, "%s", list->count > 0 ? list->separator : "");
    int item = -1;
    if ((size_t)prefix < space) {
        va_list args;
        va_start(args, format);
        item = vsnprintf(list->text + list->used + prefix, space - (size_t)prefix, format, args);
        va_end(args);
    }
    if (item < 0 || (size_t)(prefix + item) >= space) {
        bs_join_omit(list);
        return;
    }
    list->used += (size_t)(prefix + item);
    list->count++;
    if (list->used + BS_JOIN_MIN_BYTES > list->size) return;
    list->safe_used = list->used;
    list->safe_count = list->count;
}
