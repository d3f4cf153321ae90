#include "accounting/accounting.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

bool ac_read_state(const char *text, mdot_outcome *out)
{
    static const struct {
        const char *name, *code;
        mdot_outcome outcome;
    } states[] = {
#define STATE(name, code, outcome) {name, code, MDOT_OUTCOME_##outcome},
#include "accounting/slurm_states.def"
    };
    size_t length = strcspn(text, " +");
    bool is_cut = text[length] == '+';
    if (length == 0) return false;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        size_t whole = strlen(states[i].name);
        bool is_name = strncasecmp(states[i].name, text, length) == 0 &&
                       (whole == length || (is_cut && length >= 4 && length < whole));
        bool is_code = strlen(states[i].code) == length && memcmp(states[i].code, text, length) == 0;
        if (!is_name && !is_code) continue;
        *out = states[i].outcome;
        return true;
    }
    return false;
}

/* Reads digits, at most nine, and moves on. */
static bool read_digits(const char **io_at, int64_t *out)
{
    const char *cursor = *io_at;
    int64_t value = 0;
    for (; isdigit((unsigned char)*cursor); cursor++) {
        if (cursor - *io_at == 9) return false;
        value = 10 * value + (*cursor - '0');
    }
    if (cursor == *io_at) return false;
    *io_at = cursor;
    *out = value;
    return true;
}

/* Reads "[DAYS-]N[:N[:N]]" and counts the parts after the days. */
static bool read_clock(const char *text, int64_t *out_days, int64_t part[3], int *out_parts)
{
    const char *cursor = text;
    int parts = 0;
    *out_days = -1;
    for (;;) {
        if (parts == 3 || !read_digits(&cursor, &part[parts])) return false;
        if (*cursor == '-' && parts == 0 && *out_days < 0) {
            *out_days = part[0];
            cursor++;
            continue;
        }
        parts++;
        if (*cursor != ':') break;
        cursor++;
    }
    if (*cursor == '.') {
        int64_t fraction;
        cursor++;
        if (!read_digits(&cursor, &fraction)) return false;
    }
    *out_parts = parts;
    return *cursor == '\0';
}

bool ac_read_duration(const char *text, int64_t *out_seconds)
{
    int64_t days, part[3] = {0};
    int parts;
    *out_seconds = -1;
    if (*text == '\0' || strcasecmp(text, "Unknown") == 0 || strcmp(text, "INVALID") == 0) return true;
    if (!read_clock(text, &days, part, &parts)) return false;
    if (days >= 0 && parts < 3) {
        /* D-HH[:MM] */
        *out_seconds = 86400 * days + 3600 * part[0] + 60 * part[1];
    } else if (parts == 3) {
        *out_seconds = (days > 0 ? 86400 * days : 0) + 3600 * part[0] + 60 * part[1] + part[2];
    } else if (parts == 2) {
        *out_seconds = 60 * part[0] + part[1];
    } else {
        *out_seconds = part[0];
    }
    return true;
}

bool ac_read_limit(const char *text, int64_t *out_seconds)
{
    *out_seconds = 0;
    if (*text == '\0' || strcasecmp(text, "Partition_Limit") == 0 || strcmp(text, "INVALID") == 0 ||
        strcasecmp(text, "Unknown") == 0)
        return true;
    if (strcasecmp(text, "UNLIMITED") == 0) {
        *out_seconds = -1;
        return true;
    }
    if (!ac_read_duration(text, out_seconds)) return false;
    if (strpbrk(text, "-:") == NULL) *out_seconds *= 60; /* TimelimitRaw */
    return true;
}

/* Reads the zone at the end of a time, as seconds east of Greenwich. */
static bool read_zone(const char *text, int64_t *out_east_s)
{
    int hours = 0, minutes = 0, used = 0;
    *out_east_s = 0;
    if (strcmp(text, "Z") == 0) return true;
    if (*text != '+' && *text != '-') return false;
    bool is_read = (sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &used) == 2 && used == 5) ||
                   (sscanf(text + 1, "%2d%2d%n", &hours, &minutes, &used) == 2 && used == 4);
    *out_east_s = (*text == '-' ? -1 : 1) * (3600 * (int64_t)hours + 60 * minutes);
    return is_read && text[1 + used] == '\0' && hours >= 0 && hours <= 15 && minutes >= 0 && minutes < 60;
}

bool ac_has_zone(const char *text)
{
    const char *clock = strchr(text, ':'), *zone = clock != NULL ? strpbrk(clock, "Z+-") : NULL;
    int64_t east_s;
    return zone != NULL && read_zone(zone, &east_s);
}

bool ac_read_time(const char *text, int64_t *out_seconds)
{
    *out_seconds = 0;
    if (*text == '\0' || strcasecmp(text, "Unknown") == 0 || strcasecmp(text, "None") == 0 || strcmp(text, "N/A") == 0)
        return true;
    if (strchr(text, '-') == NULL) {
        char *end;
        long long value = strtoll(text, &end, 10);
        *out_seconds = value;
        return *end == '\0' && value > 0;
    }
    struct tm t = {0};
    int used = 0;
    int read = sscanf(text, "%4d-%2d-%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &used);
    if (read != 3) return false;
    if (text[used] == 'T' || text[used] == ' ') {
        int rest = 0;
        text += used + 1;
        if (sscanf(text, "%2d:%2d:%2d%n", &t.tm_hour, &t.tm_min, &t.tm_sec, &rest) != 3) return false;
        used = rest;
    }
    bool is_date = t.tm_year >= 1970 && t.tm_mon >= 1 && t.tm_mon <= 12 && t.tm_mday >= 1 && t.tm_mday <= 31 &&
                   t.tm_hour >= 0 && t.tm_hour <= 23 && t.tm_min >= 0 && t.tm_min <= 59 && t.tm_sec >= 0 &&
                   t.tm_sec <= 60;
    int64_t east_s = 0;
    bool is_local = text[used] == '\0';
    if (!is_date || (!is_local && !read_zone(text + used, &east_s))) return false;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    t.tm_isdst = -1;
    *out_seconds = is_local ? (int64_t)mktime(&t) : (int64_t)timegm(&t) - east_s;
    return true;
}

bool ac_read_count(const char *text, int64_t *out_count)
{
    *out_count = 0;
    if (*text == '\0') return true;
    if (!read_digits(&text, out_count)) return false;
    if (*text == 'K' || *text == 'k') {
        *out_count *= 1000;
        text++;
    }
    return *text == '\0';
}

bool ac_read_gpus(const char *text, int64_t *out_count, const char **out_type, size_t *out_type_length)
{
    static const char gres[] = "gres/gpu";
    int64_t total = -1, typed = 0;
    *out_count = 0;
    *out_type = NULL;
    *out_type_length = 0;
    for (const char *cursor = text; *cursor != '\0';) {
        size_t length = strcspn(cursor, ",");
        const char *equals = memchr(cursor, '=', length);
        if (equals == NULL) return false;
        size_t name_length = (size_t)(equals - cursor);
        bool is_gpu = name_length >= sizeof gres - 1 && memcmp(cursor, gres, sizeof gres - 1) == 0;
        char separator = is_gpu ? cursor[sizeof gres - 1] : '\0';
        if (is_gpu && (separator == '=' || separator == ':')) {
            int64_t count;
            const char *digits = equals + 1;
            if (!read_digits(&digits, &count) || (digits != cursor + length)) return false;
            if (separator == '=') {
                total = count;
            } else {
                typed += count;
                if (*out_type == NULL) {
                    *out_type = cursor + sizeof gres;
                    *out_type_length = (size_t)(equals - *out_type);
                }
            }
        }
        cursor += length + (cursor[length] == ',');
    }
    *out_count = total >= 0 ? total : typed;
    return true;
}

bool ac_read_gres(const char *text, int64_t *out_count, const char **out_type, size_t *out_type_length)
{
    *out_count = 0;
    *out_type = NULL;
    *out_type_length = 0;
    for (const char *part = text; *part != '\0'; part += strcspn(part, ","), part += *part == ',') {
        if (strncmp(part, "gpu:", 4) != 0) continue;
        const char *item = part + 4, *end = item + strcspn(item, ",("), *number = end;
        int64_t count;
        while (number > item && number[-1] != ':') number--;
        const char *digits = number;
        if (!read_digits(&digits, &count) || digits != end) return false;
        *out_count += count;
        if (number == item || *out_type != NULL) continue;
        *out_type = item;
        *out_type_length = (size_t)(number - item) - 1;
    }
    return true;
}

bool ac_read_exit(const char *text, int64_t *out_code)
{
    int64_t code, signal;
    *out_code = -1;
    if (*text == '\0') return true;
    if (!read_digits(&text, &code)) return false;
    if (*text == '\0') {
        *out_code = code;
        return true;
    }
    text++;
    if (text[-1] != ':' || !read_digits(&text, &signal) || *text != '\0') return false;
    *out_code = signal > 0 ? 128 + signal : code;
    return true;
}
