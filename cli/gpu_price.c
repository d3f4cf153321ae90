/* gpu_price.c — see gpu_price.h. */
#include "cli/gpu_price.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Parses "2.5" or "2.5/h", followed by blanks only. */
static bool is_price(const char *text, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value) || value <= 0) return false;
    if (strncmp(end, "/h", 2) == 0) end += 2;
    *out = value;
    return end[strspn(end, " \t\r")] == '\0';
}

/* Parses "NAME PRICE"; the name may contain blanks. */
static bool read_line(const char *command, const char *path, int number, char *line, cli_gpu_prices *prices)
{
    line[strcspn(line, "#\n")] = '\0';
    char *start = line + strspn(line, " \t\r");
    for (size_t end = strlen(start); end > 0 && strchr(" \t\r", start[end - 1]) != NULL; end--) start[end - 1] = '\0';
    if (*start == '\0') return true;
    char *gap = strrchr(start, ' '), *tab = strrchr(start, '\t');
    if (gap == NULL || tab > gap) gap = tab;
    double price = 0;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    if (gap == NULL || !is_price(gap + 1, &price)) {
        cli_usage_error(command, "--price: line %d of %s must have the form \"GPU PRICE\", for example A100 2.5",
                        number, path);
        return false;
    }
    while (gap > start && strchr(" \t", gap[-1]) != NULL) gap--;
    *gap = '\0';
    if (prices->count == CLI_MAX_GPUS) {
        cli_usage_error(command, "--price: %s has more than %d prices", path, CLI_MAX_GPUS);
        return false;
    }
    const char *name = mdot_gpu_find(start, &gpu, NULL) == MDOT_OK ? gpu.name : start; /* or the name of a --gpu-spec */
    cli_copy_gpu_name(name, prices->item[prices->count].name);
    prices->item[prices->count++].an_hour = price;
    return true;
}

bool cli_read_gpu_prices(const char *command, char *text, cli_gpu_prices *prices)
{
    prices->is_set = true;
    if (is_price(text, &prices->of_all)) return true;
    prices->of_all = 0;
    mdot_error err;
    FILE *file = cli_open_file(text, &err);
    if (file == NULL) {
        cli_usage_error(command,
                        "--price takes a price per hour, for example 2.5/h, or a file of prices; cannot read %s",
                        err.message);
        return false;
    }
    char line[256];
    bool read = true;
    for (int number = 1; read && fgets(line, sizeof line, file) != NULL; number++)
        read = read_line(command, text, number, line, prices);
    if (read && ferror(file) != 0) {
        cli_usage_error(command, "--price: cannot read %s", text);
        read = false;
    }
    fclose(file);
    return read;
}

double cli_gpu_price_of(const cli_gpu_prices *prices, const char *gpu)
{
    if (prices->of_all > 0) return prices->of_all;
    for (size_t i = 0; i < prices->count; i++)
        if (strcmp(prices->item[i].name, gpu) == 0) return prices->item[i].an_hour;
    return NAN;
}
