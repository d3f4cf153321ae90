/* base64.c — see base64.h. */
#include "slurm/request.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t sl_base64_text_bytes(size_t bytes) { return (bytes + 2) / 3 * 4 + 1; }

void sl_base64_write(const unsigned char *bytes, size_t count, char *out_text)
{
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? (uint32_t)bytes[i + 2] : 0);
        *out_text++ = alphabet[three >> 18];
        *out_text++ = alphabet[three >> 12 & 63];
        *out_text++ = left > 1 ? alphabet[three >> 6 & 63] : '=';
        *out_text++ = left > 2 ? alphabet[three & 63] : '=';
    }
    *out_text = '\0';
}

/* Returns a digit's value; -1 for other characters. */
static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool sl_base64_read(const char *text, size_t length, unsigned char *out_bytes, size_t *out_count)
{
    if (length % 4 != 0) return false;
    size_t count = 0;
    for (size_t i = 0; i < length; i += 4) {
        bool is_last = i + 4 == length;
        int padding = !is_last || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
        uint32_t three = 0;
        for (int j = 0; j < 4; j++) {
            int value = j < 4 - padding ? digit(text[i + (size_t)j]) : 0;
            if (value < 0) return false;
            three = three << 6 | (uint32_t)value;
        }
        if ((three & ((UINT32_C(1) << 8 * padding) - 1)) != 0) return false; /* bits outside all bytes */
        for (int j = 0; j < 3 - padding; j++) out_bytes[count++] = (unsigned char)(three >> (16 - 8 * j));
    }
    *out_count = count;
    return true;
}
