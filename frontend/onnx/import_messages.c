/* import_messages.c — see import_context.h. */
#include "frontend/onnx/import_context.h"

#include "base/text.h"

#include <stdio.h>

mdot_status fe_out_of_memory(const fe_context *context)
{
    bool bounded = context->scratch != NULL && ir_arena_failed(context->scratch);
    return mdot_fail(context->err, MDOT_OUT_OF_MEMORY, "%s: %s", context->file,
                     bounded ? "reading takes more memory than is allowed for a model of this size" : "memory ran out");
}

void fe_warn_to(void (*warning)(void *user, const char *message), void *user, const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    bs_make_printable(text);
    warning(user, text);
}

void fe_warn(const fe_context *context, const char *format, ...)
{
    if (context->options->warning == NULL) return;
    va_list args;
    va_start(args, format);
    fe_warn_to(context->options->warning, context->options->user, format, args);
    va_end(args);
}
