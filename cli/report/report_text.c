/* report_text.c — writes names from files, and numbers, as text of a page. */
#include "base/file.h"
#include "cli/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

mdot_status report_save(bs_memstream *page, const char *path, mdot_error *err)
{
    size_t size_bytes = 0;
    char *text = bs_memstream_close(page, &size_bytes);
    mdot_status status = text == NULL ? mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL) : MDOT_OK;
    if (status == MDOT_OK && path != NULL) status = bs_write_file(path, text, size_bytes, err);
    free(text);
    return status;
}

void report_text(FILE *out, const char *text)
{
    for (const char *cursor = text; *cursor != '\0';) {
        int bytes = bs_printable_length(cursor);
        if (bytes == 0)
            fputc('?', out);
        else if (bytes == 1 && strchr("&<>\"'", *cursor) != NULL)
            fprintf(out, "&#%d;", *cursor);
        else
            fwrite(cursor, 1, (size_t)bytes, out);
        cursor += bytes == 0 ? 1 : bytes;
    }
}

/* Separates digit groups in a whole number. */
static const char *group_digits(const char *digits, char out[REPORT_NUMBER_BYTES])
{
    size_t length = strlen(digits), used = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

const char *report_number(double value, char out[REPORT_NUMBER_BYTES])
{
    static const double least_shown = 0.0005, exact_below = 999.5, maximum = 1e15;
    if (value < least_shown) return strcpy(out, "0.00");
    if (value < exact_below || value >= maximum) {
        snprintf(out, REPORT_NUMBER_BYTES, "%.3g", value);
        return out;
    }
    char digits[24];
    double unit = pow(10, floor(log10(value)) - 2);
    snprintf(digits, sizeof digits, "%.0f", round(value / unit) * unit);
    return group_digits(digits, out);
}
