/* sha256.h — the digest that names a job (FIPS 180-4): a `.job` file has the one that sha256sum prints, so that clients
 * can compute it, and no client can make a job that takes another one's name. */
#ifndef SV_SHA256_H
#define SV_SHA256_H

#include <stddef.h>

enum { SV_SHA256_TEXT = 65 }; /* hexadecimal digits and a NUL */

void sv_sha256(const void *bytes, size_t size_bytes, char out_text[SV_SHA256_TEXT]);

#endif
