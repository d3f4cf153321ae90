/* join.c — see join.h. Items that do not fit are counted. The last items give way if the count needs their space. */
#include "base/join.h"

#include <stdarg.h>
#include <stdio.h>

static void say_left_out(bs_join *list)
{
    list->used = list->safe_used;
    snprintf(list->text + list->used, list->size - list->used, "%s%zu more",
             list->safe_count > 0 ? " \xE2\x80\xA6 and " : "", list->left_out);
}

void bs_join_begin(bs_join *list, char *buffer, size_t size)
{
    *list = (bs_join){.text = buffer, .separator = ", ", .size = size};
    buffer[0] = '\0';
}

void bs_join_omit(bs_join *list)
{
    if (list->left_out == 0) list->left_out = list->count - list->safe_count;
    list->left_out++;
    say_left_out(list);
}

void bs_join_add(bs_join *list, const char *format, ...)
{
    if (list->left_out > 0) {
        bs_join_omit(list);
        return;
    }
    size_t left = list->size - list->used;
    int before = snprintf(list->text + list->used, left, "%s", list->count > 0 ? list->separator : "");
    int item = -1;
    if ((size_t)before < left) {
        va_list args;
        va_start(args, format);
        item = vsnprintf(list->text + list->used + before, left - (size_t)before, format, args);
        va_end(args);
    }
    if (item < 0 || (size_t)(before + item) >= left) {
        bs_join_omit(list);
        return;
    }
    list->used += (size_t)(before + item);
    list->count++;
    if (list->used + BS_LIST_LEAST > list->size) return;
    list->safe_used = list->used;
    list->safe_count = list->count;
}
