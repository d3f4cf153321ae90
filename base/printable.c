/* printable.c — see text.h. */
#include "base/text.h"

#include <string.h>

int bs_utf8_length(const char *text)
{
    static const struct {
        unsigned char first, last, low, high;
        int length;
    } rows[] = {{0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (p[0] < rows[i].first || p[0] > rows[i].last) continue;
        if (rows[i].length == 1) return 1;
        if (p[1] < rows[i].low || p[1] > rows[i].high) return 0;
        for (int k = 2; k < rows[i].length; k++)
            if ((p[k] & 0xC0) != 0x80) return 0;
        return rows[i].length;
    }
    return 0;
}

uint32_t bs_utf8_code(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    int length = bs_utf8_length(text);
    uint32_t code = length == 1 ? p[0] : p[0] & (0xFFu >> (length + 1));
    for (int k = 1; k < length; k++) code = code << 6 | (p[k] & 0x3F);
    return code;
}

int bs_printable_length(const char *text)
{
    static const struct {
        uint32_t first, last;
    } unprintable[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x061C, 0x061C},
                       {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};
    int length = bs_utf8_length(text);
    if (length == 0) return 0;
    uint32_t code = bs_utf8_code(text);
    for (size_t i = 0; i < sizeof unprintable / sizeof unprintable[0]; i++)
        if (code >= unprintable[i].first && code <= unprintable[i].last) return 0;
    return length;
}

bool bs_is_printable(const char *text)
{
    while (*text != '\0') {
        int length = bs_printable_length(text);
        if (length == 0) return false;
        text += length;
    }
    return true;
}

size_t bs_cut_length(const char *text, size_t max_bytes)
{
    size_t offset = 0;
    while (text[offset] != '\0') {
        int whole = bs_utf8_length(text + offset);
        size_t length = whole > 0 ? (size_t)whole : 1;
        if (length > max_bytes - offset) break;
        offset += length;
    }
    return offset;
}

void bs_make_printable(char *text)
{
    char *out = text;
    while (*text != '\0') {
        int length = bs_printable_length(text), whole = bs_utf8_length(text);
        if (length > 0) {
            memmove(out, text, (size_t)length);
            out += length;
        } else {
            *out++ = *text == '\n' || *text == '\t' || *text == '\r' ? ' ' : '?';
        }
        text += whole > 0 ? whole : 1;
    }
    *out = '\0';
}
