/* list.c — see list.h. Items that do not fit are counted; the last that stand where the count must go give way to it.
 */
#include "base/list.h"

#include <stdarg.h>
#include <stdio.h>

static void say_left_out(bs_list *list)
{
    list->used = list->safe_used;
    snprintf(list->text + list->used, list->size - list->used, "%s%zu more",
             list->safe_count > 0 ? " \xE2\x80\xA6 and " : "", list->left_out);
}

void bs_list_begin(bs_list *list, char *buffer, size_t size)
{
    *list = (bs_list){.text = buffer, .separator = ", ", .size = size};
    buffer[0] = '\0';
}

void bs_list_omit(bs_list *list)
{
    if (list->left_out == 0) list->left_out = list->count - list->safe_count;
    list->left_out++;
    say_left_out(list);
}

void bs_list_add(bs_list *list, const char *format, ...)
{
    if (list->left_out > 0) {
        bs_list_omit(list);
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
        bs_list_omit(list);
        return;
    }
    list->used += (size_t)(before + item);
    list->count++;
    if (list->used + BS_LIST_LEAST > list->size) return;
    list->safe_used = list->used;
    list->safe_count = list->count;
}
