/* base64.h — bytes as text of one line (RFC 4648, section 4): padded, without line breaks. */
#ifndef SL_BASE64_H
#define SL_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of characters for so many bytes, including the final NUL. */
size_t sl_base64_text_bytes(size_t bytes);
void sl_base64_write(const unsigned char *bytes, size_t count, char *out_text);

/* `out_bytes` must hold length / 4 * 3 bytes. False for text that sl_base64_write would not produce. */
bool sl_base64_read(const char *text, size_t length, unsigned char *out_bytes, size_t *out_count);

#endif
