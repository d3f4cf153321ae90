/* text.c — escapes names in XML, and begins drawings. */
#include "simulator/experiment/experiment.h"

void ex_put_escaped(FILE *stream, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&': fputs("&amp;", stream); break;
        case '<': fputs("&lt;", stream); break;
        case '>': fputs("&gt;", stream); break;
        default: fputc(*text, stream);
        }
    }
}

void ex_put_svg_begin(FILE *stream, int width, int height, int left, const char *title)
{
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
            "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" y=\"24\" "
            "font-size=\"15\" font-weight=\"bold\">",
            width, height, left);
    ex_put_escaped(stream, title);
    fputs("</text>\n", stream);
}
