/* gpu_price.c — prices on the command line (gpu_argument.h). */
#include "base/command/quantity.h"
#include "base/training/training_options.h"
#include "cli/gpu/gpu_argument.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* Finds the gap before the price at the end of "NAME PRICE"; NULL if there is none. The name and the price may contain
 * blanks. */
static char *find_price(char *line, double *out)
{
    char *found = NULL;
    for (char *cursor = line + strcspn(line, " \t"); *cursor != '\0'; cursor += strcspn(cursor, " \t")) {
        if (found == NULL && cli_read_price(cursor, out) == NULL) found = cursor;
        cursor += strspn(cursor, " \t");
    }
    return found;
}

/* Parses "NAME PRICE"; the name may contain blanks. */
static bool read_line(const char *command, const char *path, int number, char *line, cli_gpu_prices *prices)
{
    line[strcspn(line, "#\n")] = '\0';
    char *start = line + strspn(line, " \t\r");
    for (size_t end = strlen(start); end > 0 && strchr(" \t\r", start[end - 1]) != NULL; end--) start[end - 1] = '\0';
    if (*start == '\0') return true;
    double price = 0;
    char *gap = find_price(start, &price);
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    if (gap == NULL)
        return cli_refuse(command, "--price: line %d of %s must have the form \"GPU PRICE\", for example A100 2.5",
                          number, path);
    *gap = '\0';
    if (prices->count == CLI_MAX_GPUS)
        return cli_refuse(command, "--price: %s has more than %d prices", path, CLI_MAX_GPUS);
    const char *name = mdot_gpu_find(start, &gpu, NULL) == MDOT_OK ? gpu.name : start; /* or the name of a --gpu-spec */
    cli_copy_gpu_name(name, prices->item[prices->count].name);
    prices->item[prices->count++].an_hour = price;
    return true;
}

bool cli_read_gpu_prices(const char *command, char *text, void *out_prices)
{
    cli_gpu_prices *prices = out_prices;
    prices->is_set = true;
    const char *reason = cli_read_price(text, &prices->of_all);
    if (reason == NULL) return true;
    prices->of_all = 0;
    if (strchr("$+-.0123456789", *text) != NULL && access(text, F_OK) != 0)
        return cli_refuse(command, "--price \"%s\": %s", text, reason);
    mdot_error err;
    FILE *file = cli_open_file(text, &err);
    if (file == NULL)
        return cli_refuse(command,
                          "--price takes a price per hour, for example 2.5/h, or a file of prices; cannot read %s",
                          err.message);
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

double cli_total_steps(const cli_total *total, const mdot_configuration *c)
{
    if (total->steps > 0) return (double)total->steps;
    return (double)total->epochs * ceil((double)total->dataset / cli_samples_of_step(c));
}

double cli_total_cost(const cli_total *total, const mdot_configuration *c, const mdot_prediction *p)
{
    if (!total->prices.is_set) return NAN;
    double steps = cli_total_steps(total, c);
    double ms = steps > 0 ? steps * p->step_ms : 1e6 / cli_samples_of_step(c) * p->step_ms;
    return ms / 3.6e6 * cli_gpu_count(c) * cli_gpu_price_of(&total->prices, c->gpu_spec->name);
}
