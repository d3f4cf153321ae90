/* csv_cell.c — see csv_cell.h. */
#include "base/csv_cell.h"

#include <stdbool.h>
#include <string.h>

static char printed(char c)
{
    return (unsigned char)c < ' ' ? ' ' : c;
}

void bs_csv_write(FILE *stream, const char *text, size_t length)
{
    bool is_quoted = length > 0 && (printed(text[0]) == ' ' || text[0] == '#' || printed(text[length - 1]) == ' ');
    for (size_t i = 0; i < length && !is_quoted; i++) is_quoted = text[i] == ',' || text[i] == '"';
    if (is_quoted) fputc('"', stream);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') fputc('"', stream);
        fputc(printed(text[i]), stream);
    }
    if (is_quoted) fputc('"', stream);
}

void bs_csv_write_text(FILE *stream, const char *text)
{
    bs_csv_write(stream, text, strlen(text));
}
