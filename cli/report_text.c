/* report_text.c — writes names from files as text of a page. */
#include "base/printable.h"
#include "cli/report.h"

#include <string.h>

void report_text(FILE *out, const char *text)
{
    for (const char *at = text; *at != '\0';) {
        int bytes = bs_printable_length(at);
        if (bytes == 0)
            fputc('?', out);
        else if (bytes == 1 && strchr("&<>\"'", *at) != NULL)
            fprintf(out, "&#%d;", *at);
        else
            fwrite(at, 1, (size_t)bytes, out);
        at += bytes == 0 ? 1 : bytes;
    }
}
