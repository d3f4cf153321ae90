/* import_messages.h — errors and warnings of an import. Private to frontend/. */
#ifndef FE_IMPORT_MESSAGES_H
#define FE_IMPORT_MESSAGES_H

#include "frontend/onnx/context.h"
#include <stdarg.h>

/* Reports the arena that is exhausted; the scratch arena is bounded in proportion to the file. */
mdot_status fe_out_of_memory(const fe_context *context);
void fe_warn(const fe_context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sends a warning of one line, with control characters removed, because it may contain names from the file. */
void fe_warn_to(void (*warning)(void *user, const char *message), void *user, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

#endif
